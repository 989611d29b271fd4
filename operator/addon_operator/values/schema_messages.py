"""What a schema demands, in words. Values never appear here: they may be secrets."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, cast

import jsonschema

from addon_operator.kernel import patterns
from addon_operator.values import json_documents, yaml_reading

Path = tuple[str | int, ...]

MISSING_KEY: Final = "must have the key "
"""How the rule of a missing key begins."""


def explain(error: jsonschema.ValidationError, base: Path = ()) -> Iterator[tuple[Path, str]]:
    """The places (below ``base``) and rules of one validation error."""
    path = (*base, *error.absolute_path)
    if error.validator == "additionalProperties":
        yield from _unknown_keys(error, path)
    else:
        yield path, rule(error)


def rule(error: jsonschema.ValidationError) -> str:
    """What the value had to be."""
    keyword = str(error.validator)
    if keyword in _COMBINED:
        return _combined(error)
    if keyword == "pattern":
        return f"must match '{error.validator_value}'"
    if keyword == "required":
        return _missing(error)
    return _RULES.get(keyword, _other)(error.validator_value)


def _schema(error: jsonschema.ValidationError) -> Mapping[str, Any]:
    return cast("Mapping[str, Any]", error.schema)


def _other(demand: object) -> str:
    return f"must satisfy {_json(demand)}"


def _unknown_keys(error: jsonschema.ValidationError, path: Path) -> Iterator[tuple[Path, str]]:
    known = _schema(error).get("properties", {})
    for key in patterns.unknown_keys(cast("Mapping[str, Any]", error.instance), _schema(error)):
        yield (*path, key), _unknown_key(known)


def _unknown_key(known: Mapping[str, Any]) -> str:
    names = ", ".join(sorted(known))
    return (
        f"the schema does not know this key (it knows {names})" if known else "the schema allows no keys here"
    )


def _missing(error: jsonschema.ValidationError) -> str:
    # The library makes one error for each missing key and names it only in its own message.
    required = cast("list[str]", error.validator_value)
    missing = next(key for key in required if error.message.startswith(repr(key)))
    return f"{MISSING_KEY}{missing!r}"


def _types(demand: Any) -> str:  # noqa: ANN401  # any JSON
    names = [demand] if isinstance(demand, str) else list(demand)
    return "must be " + " or ".join(_TYPE_NAMES.get(name, name) for name in names)


def _combined(error: jsonschema.ValidationError) -> str:
    keyword = str(error.validator)
    if keyword == "not":
        return "must not be of the form that the schema excludes"
    count = len(cast("list[Any]", error.validator_value))
    if keyword == "oneOf" and not error.context:
        return f"must be of exactly one of {count} forms, and is of several"
    nearest = min(error.context or (), key=_distance, default=None)
    hint = "" if nearest is None or nearest.validator in _COMBINED else f" (nearest: {_nearest(nearest)})"
    return f"must be of one of {count} forms{hint}"


def _distance(error: jsonschema.ValidationError) -> tuple[int, bool]:
    """Small for the form that was most likely meant: right until deep inside, or at least in its type."""
    return -len(error.relative_path), error.validator == "type"


def _nearest(error: jsonschema.ValidationError) -> str:
    where = yaml_reading.format_path(tuple(error.relative_path))
    return f"{where} {rule(error)}".strip()


def _json(value: object) -> str:
    return json_documents.encode(value).decode()


def _list(values: Any) -> str:  # noqa: ANN401  # any JSON
    return ", ".join(_json(value) for value in values)


def _count(text: str) -> Callable[[Any], str]:
    return lambda demand: text.format(_json(demand))


_COMBINED: Final = frozenset({"anyOf", "oneOf", "not"})
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
