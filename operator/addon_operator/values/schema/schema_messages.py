"""What a schema demands, in words. Values never appear here: they may be secrets."""

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias, cast

from addon_operator.documents import json_documents, json_pointers, json_schemas

if TYPE_CHECKING:
    import jsonschema

MISSING_KEY: Final = "must have the key "
"""How the rule of a missing key begins."""


class Fault(NamedTuple):
    """One thing that is wrong."""

    path: json_pointers.Path
    rule: str
    shows_value: bool = True
    """Whether the value at the path is of use: it is not for a key that is missing or not known."""


def explain(error: "jsonschema.ValidationError") -> Iterator[Fault]:
    """Yield the places and rules of one validation error."""
    yield from _explain(error, tuple(error.absolute_path))


def _explain(error: "jsonschema.ValidationError", path: json_pointers.Path) -> Iterator[Fault]:
    keyword = str(error.validator)
    if keyword == "additionalProperties":
        yield from _unknown_keys(error, path)
    elif keyword in _CHOICES and error.context:
        yield from _no_form(_branches(error), path)
    else:
        yield Fault(path, _rule(error), keyword != "required")


def _rule(error: "jsonschema.ValidationError") -> str:
    """Return what the value had to be."""
    keyword = str(error.validator)
    if keyword == "not":
        return "must not be of the form that the schema excludes"
    if keyword in _CHOICES:
        count = len(cast("list[Any]", error.validator_value))
        return f"must be of exactly one of {count} forms, and is of several"
    if keyword == "pattern":
        return f"must match '{error.validator_value}'"
    if keyword == "required":
        return _missing(error)
    return _RULES.get(keyword, _other)(error.validator_value)


def _schema(error: "jsonschema.ValidationError") -> Mapping[str, Any]:
    return cast("Mapping[str, Any]", error.schema)


def _other(demand: object) -> str:
    return f"must satisfy {_json(demand)}"


def _unknown_keys(error: "jsonschema.ValidationError", path: json_pointers.Path) -> Iterator[Fault]:
    properties = _schema(error).get("properties", {})
    for key in json_schemas.unknown_keys(cast("Mapping[str, Any]", error.instance), _schema(error)):
        yield Fault((*path, key), _unknown_key(properties), shows_value=False)


def _unknown_key(properties: Mapping[str, Any]) -> str:
    names = ", ".join(sorted(properties))
    return (
        f"the schema does not know this key (it knows {names})"
        if properties
        else "the schema allows no keys here"
    )


def _missing(error: "jsonschema.ValidationError") -> str:
    # The library makes one error for each missing key and names it only in its own message.
    required = cast("list[str]", error.validator_value)
    missing = next(key for key in required if error.message.startswith(repr(key)))
    return f"{MISSING_KEY}{missing!r}"


def _types(demand: Any) -> str:  # noqa: ANN401  # any JSON
    names = [demand] if isinstance(demand, str) else list(demand)
    if not names:
        return "cannot be set: the schema gives no type that there is"
    return "must be " + " or ".join(_TYPE_NAMES.get(name, name) for name in names)


_Branch: TypeAlias = "list[jsonschema.ValidationError]"


def _branches(error: "jsonschema.ValidationError") -> list[_Branch]:
    """Return what is wrong with each of the forms, without the one that stands for ``nullable``."""
    branches: dict[int, _Branch] = {}
    for inner in error.context or ():
        branches.setdefault(cast("int", inner.relative_schema_path[0]), []).append(inner)
    return [branch for branch in branches.values() if branch[0].schema != {"type": "null"}]


def _no_form(branches: list[_Branch], path: json_pointers.Path) -> Iterator[Fault]:
    nearest = min(branches, key=_distance)
    if len(branches) == 1:
        for inner in nearest:
            yield from _explain(inner, (*path, *inner.relative_path))
        return
    faults = [fault for inner in nearest for fault in _explain(inner, tuple(inner.relative_path))]
    hint = "; ".join(map(_hint, faults[:_HINTS]))
    shows_value = all(one.shows_value for one in faults)
    yield Fault(path, f"must be of one of {len(branches)} forms (nearest: {hint})", shows_value)


def _distance(branch: _Branch) -> tuple[bool, bool, int, int]:
    """Return a number that is small for the form that was most likely meant.

    That is one of the right type whose names of kinds and modes are those of the value, then the one of which
    the least is wrong, then the one that is right until deep inside.
    """
    keywords = [(str(inner.validator), len(inner.relative_path)) for inner in branch]
    return (
        ("type", 0) in keywords,
        any(keyword == "enum" for keyword, _ in keywords),
        len(branch),
        -max(depth for _, depth in keywords),
    )


def _hint(fault: Fault) -> str:
    where = json_pointers.format_path(fault.path)
    if fault.rule.startswith("the schema"):
        return f"{where}: {fault.rule}"
    return f"{where} {fault.rule}".strip()


def _json(value: object) -> str:
    return json_documents.encode(value).decode()


def _list(values: Any) -> str:  # noqa: ANN401  # any JSON
    return ", ".join(_json(value) for value in values)


def _count(text: str) -> Callable[[Any], str]:
    return lambda demand: text.format(_json(demand))


_CHOICES: Final = frozenset({"anyOf", "oneOf"})
_HINTS: Final = 3
"""How much of what is wrong with a form is shown."""
_TYPE_NAMES: Final = {
    "string": "a string",
    "number": "a number",
    "integer": "an integer",
    "boolean": "a boolean",
    "array": "a list",
    "object": "a mapping",
    "null": "null",
}
_RULES: Final[Mapping[str, Callable[[Any], str]]] = {
    "type": _types,
    "enum": lambda demand: f"must be one of {_list(demand)}",
    "const": _count("must be {}"),
    "minimum": _count("must be at least {}"),
    "maximum": _count("must be at most {}"),
    "exclusiveMinimum": _count("must be greater than {}"),
    "exclusiveMaximum": _count("must be less than {}"),
    "multipleOf": _count("must be a multiple of {}"),
    "minLength": _count("must have at least {} characters"),
    "maxLength": _count("must have at most {} characters"),
    "minItems": _count("must have at least {} items"),
    "maxItems": _count("must have at most {} items"),
    "minProperties": _count("must have at least {} keys"),
    "maxProperties": _count("must have at most {} keys"),
    "uniqueItems": lambda _: "must not have an item twice",
    "format": lambda demand: f"must have the format {demand}",
}
