"""What Kubernetes adds to CEL: lists, regular expressions, URLs, quantities, IP addresses and CIDRs.

The runtime brings the other extensions itself: texts, math, base64, optional fields and ``cel.bind``.

Source: "CEL in Kubernetes", section "Kubernetes CEL libraries", of the Kubernetes documentation. What those
libraries give as a type of its own (a URL, a quantity, an address) is a mapping here.
"""

import ipaddress
import itertools
import operator
import re
import urllib.parse
from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Final, cast

from addon_operator.documents import json_documents, patterns
from addon_operator.kernel import json_types, quantities
from addon_operator.values.schema import schema_keywords

if TYPE_CHECKING:
    from cel_expr_python import cel

_Map = dict[str, Any]

_EXACT: Final = "exact"
_INT64: Final = 2**63
_SIGNATURE: Final = re.compile(
    r"(?:(?P<receiver>list|map|string)\.)?(?P<name>[\w.]+)\((?P<takes>[^)]*)\) (?P<gives>\w+)"
)


def declarations() -> "list[cel.FunctionDecl]":
    """Return all functions, for an environment of the runtime, which finds an overload by its types alone."""
    from cel_expr_python import cel

    kinds = cel.Type
    types = {
        "bool": kinds.BOOL,
        "int": kinds.INT,
        "double": kinds.DOUBLE,
        "string": kinds.STRING,
        "dyn": kinds.DYN,
        "list": kinds.List(kinds.DYN),
        "map": kinds.Map(kinds.STRING, kinds.DYN),
    }
    overloads: dict[str, list[cel.Overload]] = {}
    for signature, implementation in FUNCTIONS.items():
        found = cast("re.Match[str]", _SIGNATURE.fullmatch(signature))
        takes = [*filter(None, [found["receiver"], *found["takes"].split(", ")])]
        overloads.setdefault(found["name"], []).append(
            cel.Overload(
                signature,
                return_type=types[found["gives"]],
                parameters=[types[name] for name in takes],
                is_member=found["receiver"] is not None,
                impl=_plain_errors(implementation),
            )
        )
    return [cel.FunctionDecl(name, overload) for name, overload in overloads.items()]


def _plain_errors(implementation: Callable[..., Any]) -> Callable[..., Any]:
    """Raise only what the runtime turns into errors of the rule."""

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


def _find_all(text: str, pattern: str, limit: int = -1) -> list[str]:
    matches = patterns.all_found(pattern, text)
    return list(matches) if limit < 0 else list(itertools.islice(matches, limit))


def _url(text: str) -> _Map:
    """Parse an absolute URI or an absolute path."""
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
    exact = quantities.parse(text)
    if exact is None:
        raise ValueError(f"{text!r} is not a quantity")
    return _quantity_of(exact)


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


def _compare(left: _Map | int, right: _Map | int) -> int:
    return (_exact(left) > _exact(right)) - (_exact(left) < _exact(right))


def _added(left: _Map, right: _Map | int) -> _Map:
    return _quantity_of(_exact(left) + _exact(right))


def _subtracted(left: _Map, right: _Map | int) -> _Map:
    return _quantity_of(_exact(left) - _exact(right))


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


def _holds(cidr: _Map, inner: _Map | str) -> bool:
    """Say whether an address or a CIDR lies in a CIDR."""
    text = inner if isinstance(inner, str) else str(inner.get("network", inner["address"]))
    outer, network = ipaddress.ip_network(cidr["network"]), ipaddress.ip_interface(text).network
    same = (outer.version, network.version) in ((4, 4), (6, 6))
    return same and outer.supernet_of(network)  # type: ignore[arg-type]  # both are of one version


_ADDRESS_KINDS: Final = ("Unspecified", "Loopback", "LinkLocalMulticast", "LinkLocalUnicast", "GlobalUnicast")
_URL_PARTS: Final = ("Scheme", "Host", "Hostname", "Port", "EscapedPath")
FUNCTIONS: Final[Mapping[str, Callable[..., Any]]] = {
    "list.isSorted() bool": _is_sorted,
    "list.sum() dyn": _sum,
    "list.min() dyn": min,
    "list.max() dyn": max,
    "sets.contains(list, list) bool": lambda items, wanted: _distinct(wanted) <= _distinct(items),
    "sets.equivalent(list, list) bool": lambda left, right: _distinct(left) == _distinct(right),
    "sets.intersects(list, list) bool": lambda left, right: not _distinct(left).isdisjoint(_distinct(right)),
    "string.find(string) string": lambda text, pattern: next(patterns.all_found(pattern, text), ""),
    "string.findAll(string) list": _find_all,
    "string.findAll(string, int) list": _find_all,
    "isURL(string) bool": schema_keywords.parses(_url),
    "url(string) map": _url,
    **{f"map.get{part}() string": operator.itemgetter(part) for part in _URL_PARTS},
    "map.getQuery() map": operator.itemgetter("Query"),
    "isQuantity(string) bool": schema_keywords.parses(_quantity),
    "quantity(string) map": _quantity,
    "map.isInteger() bool": _is_integer,
    "map.asInteger() int": _as_integer,
    "map.asApproximateFloat() double": lambda quantity: float(_exact(quantity)),
    "map.sign() int": lambda quantity: _compare(quantity, 0),
    "map.isLessThan(map) bool": lambda left, right: _compare(left, right) < 0,
    "map.isGreaterThan(map) bool": lambda left, right: _compare(left, right) > 0,
    "map.compareTo(map) int": _compare,
    **{f"map.add({other}) map": _added for other in ("map", "int")},
    **{f"map.sub({other}) map": _subtracted for other in ("map", "int")},
    "isIP(string) bool": schema_keywords.parses(_ip),
    "ip(string) map": _ip,
    "map.ip() map": lambda cidr: _ip(cidr["address"]),
    "ip.isCanonical(string) bool": lambda text: _ip(text)["address"] == text,
    "map.family() int": operator.itemgetter("family"),
    **{f"map.is{kind}() bool": operator.itemgetter(kind) for kind in _ADDRESS_KINDS},
    "isCIDR(string) bool": schema_keywords.parses(_cidr),
    "cidr(string) map": _cidr,
    **{f"map.containsIP({inner}) bool": _holds for inner in ("string", "map")},
    **{f"map.containsCIDR({inner}) bool": _holds for inner in ("string", "map")},
    "map.prefixLength() int": operator.itemgetter("prefix"),
    "map.masked() map": lambda cidr: _cidr(cidr["network"]),
}
"""Implementations by their signatures: receiver (of a method), name, what it takes, what it gives."""
