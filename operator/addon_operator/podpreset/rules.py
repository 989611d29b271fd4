"""Rules between the fields of one object; the field rules themselves stand in the shapes."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from addon_operator.kernel import quantities
from addon_operator.podpreset import scalars
from addon_operator.podpreset.schema import Rule

AT_MOST_ONE: Final = "may not have more than one field specified at a time"
AT_MOST_ONE_VOLUME_TYPE: Final = "may not specify more than 1 volume type"
VALUE_AND_SOURCE: Final = "may not be specified when value is not empty"
SUB_PATHS: Final = "subPathExpr and subPath are mutually exclusive"
_NOTHING: Final[tuple[object, ...]] = (None, "", [])
_CPU_DIVISORS: Final = ("1m", "1")
_BYTE_DIVISORS: Final = ("1", "1k", "1M", "1G", "1T", "1P", "1E", "1Ki", "1Mi", "1Gi", "1Ti", "1Pi", "1Ei")


def exactly_one(*names: str) -> Rule:
    """One of the fields must be there, and no other of them."""

    def rule(value: Mapping[str, Any], path: str) -> Iterator[str]:
        present = [name for name in names if value.get(name) not in _NOTHING]
        if not present:
            yield f"{path}: must specify one of: {', '.join(names)}"
        elif len(present) > 1:
            yield f"{path}: {AT_MOST_ONE} ({' and '.join(present)})"

    return rule


def at_least_one(*names: str) -> Rule:
    """One or more of the fields must be there."""

    def rule(value: Mapping[str, Any], path: str) -> Iterator[str]:
        if not any(value.get(name) for name in names):
            yield f"{path}: must specify at least one of: {', '.join(names)}"

    return rule


def one_volume_type(names: Sequence[str]) -> Rule:
    """A volume, or one source of a projected volume, is of one type."""

    def rule(value: Mapping[str, Any], path: str) -> Iterator[str]:
        present = [name for name in names if name in value]
        if len(present) > 1:
            yield f"{path}: {AT_MOST_ONE_VOLUME_TYPE} ({' and '.join(present)})"

    return rule


def value_or_source(value: Mapping[str, Any], path: str) -> Iterator[str]:
    """A variable has a value or a source of its value."""
    if "valueFrom" in value and scalars.text(value.get("value")):
        yield f"{path}.valueFrom: {VALUE_AND_SOURCE}"


def divisor(value: Mapping[str, Any], path: str) -> Iterator[str]:
    """The divisors that the API server accepts for a resource."""
    given = value.get("divisor")
    allowed = _CPU_DIVISORS if value["resource"].endswith(".cpu") else _BYTE_DIVISORS
    if given is None or quantities.canonical(given) == "0":
        return
    if quantities.canonical(given) not in {quantities.canonical(one) for one in allowed}:
        listed = ", ".join(allowed)
        yield f"{path}.divisor: {given} is not supported with {value['resource']}; use one of {listed}"


def sub_paths(value: Mapping[str, Any], path: str) -> Iterator[str]:
    """A mount has at most one of the two ways to name a path inside of its volume."""
    if value.get("subPath") and value.get("subPathExpr"):
        yield f"{path}.subPathExpr: {SUB_PATHS}"


RECURSIVE_READ_ONLY: Final = (
    "may only be specified when readOnly is true and mountPropagation is None or not given"
)


def recursive_read_only(value: Mapping[str, Any], path: str) -> Iterator[str]:
    """A mount can be recursively read-only only if it is read-only and does not propagate."""
    if value.get("recursiveReadOnly") not in {"Enabled", "IfPossible"}:
        return
    if not value.get("readOnly") or value.get("mountPropagation", "None") != "None":
        yield f"{path}.recursiveReadOnly: {RECURSIVE_READ_ONLY}"
