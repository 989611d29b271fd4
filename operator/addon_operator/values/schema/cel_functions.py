"""What Kubernetes adds to CEL: lists, regular expressions, URLs, quantities, IP addresses and CIDRs.

The runtime brings the other extensions itself: texts, math, base64, optional fields and ``cel.bind``.

Source: "CEL in Kubernetes", section "Kubernetes CEL libraries", of the Kubernetes documentation. What those
libraries give as a type of its own (a URL, a quantity, an address) is a mapping here.
"""

import functools
import ipaddress
import itertools
import operator
import re
import urllib.parse
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Final

from addon_operator.documents import json_documents, patterns
from addon_operator.kernel import json_types
from addon_operator.values.schema import schema_keywords

if TYPE_CHECKING:
    from cel_expr_python import cel

_Map = dict[str, Any]

_QUANTITY: Final = re.compile(
    r"(?P<number>[-+]?(?:\d+(?:\.\d*)?|\.\d+))(?:(?P<binary>[KMGTPE]i)|(?P<decimal>[numkMGTPE])|[eE](?P<exponent>[-+]?\d{1,3}))?"
)
_BINARY: Final = {"Ki": 1, "Mi": 2, "Gi": 3, "Ti": 4, "Pi": 5, "Ei": 6}
_DECIMAL: Final = {"n": -9, "u": -6, "m": -3, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_EXACT: Final = "exact"
_INT64: Final = 2**63


def declarations() -> "list[cel.FunctionDecl]":
    """All functions, for an environment of the runtime."""
    return _Declarations().all()


_Overload = tuple["Sequence[cel.Type]", Callable[..., Any]]


class _Declarations:
    """Names, types and implementations; the runtime finds an implementation by the types alone."""

    def __init__(self) -> None:
        from cel_expr_python import cel

        self._cel = cel
        kinds = cel.Type
        self._list = kinds.List(kinds.DYN)
        self._map = kinds.Map(kinds.STRING, kinds.DYN)
        self._int, self._bool, self._string, self._dyn = kinds.INT, kinds.BOOL, kinds.STRING, kinds.DYN
        self._double = kinds.DOUBLE

    def all(self) -> "list[cel.FunctionDecl]":
        return [*self._lists(), *self._patterns(), *self._urls(), *self._quantities(), *self._addresses()]

    def _lists(self) -> "list[cel.FunctionDecl]":
        lists, truth = self._list, self._bool
        return [
            self._method("isSorted", truth, _is_sorted, lists),
            self._method("sum", self._dyn, _sum, lists),
            self._method("min", self._dyn, min, lists),
            self._method("max", self._dyn, max, lists),
            self._function("sets.contains", truth, _contains_all, lists, lists),
            self._function("sets.equivalent", truth, _equivalent, lists, lists),
            self._function("sets.intersects", truth, _intersects, lists, lists),
        ]

    def _patterns(self) -> "list[cel.FunctionDecl]":
        text = self._string
        return [
            self._method("find", text, _find, text, text),
            self._overloaded(
                "findAll",
                self._list,
                methods=[((text, text), _find_all), ((text, text, self._int), _find_all)],
            ),
        ]

    def _urls(self) -> "list[cel.FunctionDecl]":
        text, url = self._string, self._map
        parts = ("Scheme", "Host", "Hostname", "Port", "EscapedPath")
        return [
            self._function("isURL", self._bool, schema_keywords.parses(_url), text),
            self._function("url", url, _url, text),
            *(self._method(f"get{part}", text, operator.itemgetter(part), url) for part in parts),
            self._method("getQuery", self._map, operator.itemgetter("Query"), url),
        ]

    def _quantities(self) -> "list[cel.FunctionDecl]":
        text, quantity, truth = self._string, self._map, self._bool
        numbers = (quantity, self._int)
        return [
            self._function("isQuantity", truth, schema_keywords.parses(_quantity), text),
            self._function("quantity", quantity, _quantity, text),
            self._method("isInteger", truth, _is_integer, quantity),
            self._method("asInteger", self._int, _as_integer, quantity),
            self._method("asApproximateFloat", self._double, _as_float, quantity),
            self._method("sign", self._int, _sign, quantity),
            self._method("isLessThan", truth, _compared(operator.lt), quantity, quantity),
            self._method("isGreaterThan", truth, _compared(operator.gt), quantity, quantity),
            self._method("compareTo", self._int, _compare, quantity, quantity),
            self._combination("add", operator.add, numbers),
            self._combination("sub", operator.sub, numbers),
        ]

    def _combination(
        self, name: str, combine: Callable[[Fraction, Fraction], Fraction], others: "Sequence[cel.Type]"
    ) -> "cel.FunctionDecl":
        implementation = functools.partial(_combined, combine)
        overloads = [((self._map, other), implementation) for other in others]
        return self._overloaded(name, self._map, methods=overloads)

    def _addresses(self) -> "list[cel.FunctionDecl]":
        text, address, truth, number = self._string, self._map, self._bool, self._int
        kinds = ("Unspecified", "Loopback", "LinkLocalMulticast", "LinkLocalUnicast", "GlobalUnicast")
        return [
            self._function("isIP", truth, schema_keywords.parses(_ip), text),
            self._overloaded("ip", address, [((text,), _ip)], methods=[((address,), _ip_of)]),
            self._function("ip.isCanonical", truth, _is_canonical, text),
            self._method("family", number, operator.itemgetter("family"), address),
            *(self._method(f"is{kind}", truth, operator.itemgetter(kind), address) for kind in kinds),
            self._function("isCIDR", truth, schema_keywords.parses(_cidr), text),
            self._function("cidr", address, _cidr, text),
            *(
                self._overloaded(
                    name, truth, methods=[((address, inner), _holds) for inner in (text, address)]
                )
                for name in ("containsIP", "containsCIDR")
            ),
            self._method("prefixLength", number, operator.itemgetter("prefix"), address),
            self._method("masked", address, _masked, address),
        ]

    def _function(
        self, name: str, gives: "cel.Type", implementation: Callable[..., Any], *takes: "cel.Type"
    ) -> "cel.FunctionDecl":
        return self._overloaded(name, gives, [(takes, implementation)])

    def _method(
        self, name: str, gives: "cel.Type", implementation: Callable[..., Any], *takes: "cel.Type"
    ) -> "cel.FunctionDecl":
        return self._overloaded(name, gives, methods=[(takes, implementation)])

    def _overloaded(
        self,
        name: str,
        gives: "cel.Type",
        functions: "Sequence[_Overload]" = (),
        methods: "Sequence[_Overload]" = (),
    ) -> "cel.FunctionDecl":
        overloads = [*((*one, False) for one in functions), *((*one, True) for one in methods)]
        made = [
            self._cel.Overload(
                f"{name}/{index}",
                return_type=gives,
                parameters=list(takes),
                is_member=is_method,
                impl=_plain_errors(implementation),
            )
            for index, (takes, implementation, is_method) in enumerate(overloads)
        ]
        return self._cel.FunctionDecl(name, made)


def _plain_errors(implementation: Callable[..., Any]) -> Callable[..., Any]:
    """The runtime turns these, and no others, into errors of the rule."""

    def called(*arguments: Any) -> Any:  # noqa: ANN401  # values of CEL
        try:
            return implementation(*arguments)
        except (ArithmeticError, LookupError, TypeError, RecursionError) as error:
            raise ValueError(str(error)) from None

    return called


def _is_sorted(items: list[Any]) -> bool:
    return all(not after < before for before, after in itertools.pairwise(items))


def _sum(items: list[Any]) -> int | float:
    if any(isinstance(item, bool) or not isinstance(item, int | float) for item in items):
        raise ValueError("sum() takes numbers")
    total: int | float = sum(items)
    return total


def _distinct(items: list[json_types.JsonValue]) -> set[bytes]:
    return {json_documents.canonical(item) for item in items}


def _contains_all(items: list[json_types.JsonValue], wanted: list[json_types.JsonValue]) -> bool:
    return _distinct(wanted) <= _distinct(items)


def _equivalent(left: list[json_types.JsonValue], right: list[json_types.JsonValue]) -> bool:
    return _distinct(left) == _distinct(right)


def _intersects(left: list[json_types.JsonValue], right: list[json_types.JsonValue]) -> bool:
    return not _distinct(left).isdisjoint(_distinct(right))


def _find(text: str, pattern: str) -> str:
    return next(patterns.all_found(pattern, text), "")


def _find_all(text: str, pattern: str, limit: int = -1) -> list[str]:
    found = patterns.all_found(pattern, text)
    return list(found) if limit < 0 else list(itertools.islice(found, limit))


def _url(text: str) -> _Map:
    """An absolute URI or an absolute path."""
    parts = urllib.parse.urlsplit(text)
    if not (parts.scheme or text.startswith("/")) or re.search(r"[\s\x00-\x1f]", text):
        raise ValueError(f"{text!r} is not a URL")
    host = parts.netloc.rpartition("@")[2]
    return {
        "Scheme": parts.scheme,
        "Host": host,
        "Hostname": parts.hostname or "",
        "Port": "" if parts.port is None else str(parts.port),
        "EscapedPath": parts.path,
        "Query": urllib.parse.parse_qs(parts.query, keep_blank_values=True),
    }


def _quantity(text: str) -> _Map:
    found = _QUANTITY.fullmatch(text)
    if found is None:
        raise ValueError(f"{text!r} is not a quantity")
    scale = Fraction(1)
    if found["binary"]:
        scale = Fraction(1024) ** _BINARY[found["binary"]]
    elif found["decimal"] or found["exponent"]:
        scale = Fraction(10) ** int(found["exponent"] or _DECIMAL[found["decimal"]])
    return _quantity_of(Fraction(found["number"]) * scale)


def _quantity_of(exact: Fraction) -> _Map:
    return {_EXACT: str(exact)}


def _exact(quantity: _Map | int) -> Fraction:
    return Fraction(quantity) if isinstance(quantity, int) else Fraction(quantity[_EXACT])


def _is_integer(quantity: _Map) -> bool:
    exact = _exact(quantity)
    return exact.denominator == 1 and -_INT64 <= exact < _INT64


def _as_integer(quantity: _Map) -> int:
    if not _is_integer(quantity):
        raise ValueError("the quantity is not an integer")
    return int(_exact(quantity))


def _as_float(quantity: _Map) -> float:
    return float(_exact(quantity))


def _sign(quantity: _Map) -> int:
    exact = _exact(quantity)
    return (exact > 0) - (exact < 0)


def _compared(compare: Callable[[Fraction, Fraction], bool]) -> Callable[[_Map, _Map], bool]:
    return lambda left, right: compare(_exact(left), _exact(right))


def _compare(left: _Map, right: _Map) -> int:
    return _sign(_quantity_of(_exact(left) - _exact(right)))


def _combined(combine: Callable[[Fraction, Fraction], Fraction], left: _Map, right: _Map | int) -> _Map:
    return _quantity_of(combine(_exact(left), _exact(right)))


def _ip(text: str) -> _Map:
    if "%" in text:
        raise ValueError(f"{text!r} has a zone")
    address = ipaddress.ip_address(text)
    local = address.is_multicast or address.is_link_local or address.is_loopback or address.is_unspecified
    limited = isinstance(address, ipaddress.IPv4Address) and int(address) == 2**32 - 1
    return {
        "address": str(address),
        "family": address.version,
        "Unspecified": address.is_unspecified,
        "Loopback": address.is_loopback,
        "LinkLocalMulticast": _is_link_local_multicast(address),
        "LinkLocalUnicast": address.is_link_local,
        "GlobalUnicast": not (local or limited),
    }


def _is_link_local_multicast(address: ipaddress.IPv4Address | ipaddress.IPv6Address) -> bool:
    if isinstance(address, ipaddress.IPv4Address):
        return address in ipaddress.IPv4Network("224.0.0.0/24")
    return address.packed[0] == 0xFF and address.packed[1] & 0x0F == 0x02


def _is_canonical(text: str) -> bool:
    return bool(_ip(text)["address"] == text)


def _cidr(text: str) -> _Map:
    if "/" not in text or "%" in text:
        raise ValueError(f"{text!r} is not a CIDR")
    interface = ipaddress.ip_interface(text)
    return {
        "address": str(interface.ip),
        "network": str(interface.network),
        "prefix": interface.network.prefixlen,
        "family": interface.version,
    }


def _ip_of(cidr: _Map) -> _Map:
    return _ip(cidr["address"])


def _masked(cidr: _Map) -> _Map:
    return _cidr(cidr["network"])


def _holds(cidr: _Map, inner: _Map | str) -> bool:
    """Whether an address or a CIDR lies in a CIDR."""
    text = inner if isinstance(inner, str) else str(inner.get("network", inner["address"]))
    outer, network = ipaddress.ip_network(cidr["network"]), ipaddress.ip_interface(text).network
    same = (outer.version, network.version) in ((4, 4), (6, 6))
    return same and outer.supernet_of(network)  # type: ignore[arg-type]  # both are of one version
