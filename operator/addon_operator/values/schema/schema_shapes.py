"""Shapes of keywords that say nothing or nothing possible: what the original makes of each, and what to tell.

The original's loader passes over some wrong shapes and refuses others; what it refuses is refused here, too.
"""

from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

from addon_operator.documents import yaml_loader
from addon_operator.kernel import suggestions
from addon_operator.values.schema import schema_keywords

NULL_TYPE: Final = "null"
EMPTY: Final = "this is empty and checks nothing; write a value, or remove it"
_NO_VALUE: Final = "no value is right here"
_ALIKE: Final = 0.55
_OTHER_NAMES: Final = {
    "map": "object",
    "mapping": "object",
    "dict": "object",
    "list": "array",
    "float": "number",
    "double": "number",
    "text": "string",
}


class Shape(NamedTuple):
    """What a keyword is read as."""

    written: Mapping[str, Any]
    """Keywords in its place."""
    notes: tuple[str, ...] = ()
    """What to tell of it."""


def read(keyword: str, value: object) -> Shape | None:
    """How a keyword is read, ``None`` if it is as it stands."""
    reader = _READERS.get(keyword)
    return None if reader is None else reader(keyword, value)


def _shown(value: object) -> str:
    return yaml_loader.shown(value) if isinstance(value, str) else "this"


def _type(keyword: str, value: object) -> Shape | None:
    if not isinstance(value, str | list):
        return None
    if value == []:
        return Shape({}, (EMPTY,))
    names = value if isinstance(value, list) else [value]
    said = [name for name in names if name not in (None, NULL_TYPE)]
    strange = [name for name in said if isinstance(name, str) and name not in schema_keywords.TYPES]
    # Without any type that there is, no value is right, as in the original.
    types = [name for name in said if name not in strange]
    written = {keyword: types[0] if len(types) == 1 else types}
    if len(said) < len(names):
        written["nullable"] = True
    return Shape(written, tuple(_no_type(name, is_only=not types) for name in strange))


def _no_type(name: str, *, is_only: bool) -> str:
    near = nearest_type(name)
    hint = f"did you mean {near}" if near else f"write one of {', '.join(schema_keywords.TYPES)}"
    effect = f"; {_NO_VALUE}" if is_only else ""
    return f"there is no type {yaml_loader.shown(name)}{effect}; {hint}{'?' if near else ''}"


def nearest_type(name: str) -> str | None:
    """The type that was most likely meant."""
    word = name.lower()
    return _OTHER_NAMES.get(word) or suggestions.nearest(word, schema_keywords.TYPES, _ALIKE)


def _items(keyword: str, value: object) -> Shape | None:
    if isinstance(value, Mapping) or value is None:
        return None
    if value == []:
        return Shape({}, (EMPTY,))
    if isinstance(value, list):
        return Shape({keyword: value}, (_BY_POSITION,))
    near = nearest_type(value) if isinstance(value, str) else None
    return Shape(
        {}, (f"{_shown(value)} is no schema and checks nothing; write {{type: {near or 'string'}}}",)
    )


_BY_POSITION: Final = (
    "a list checks items by their position; write one schema, without '-', to check all of them"
)


def _additional(keyword: str, value: object) -> Shape | None:
    if isinstance(value, bool | Mapping) or value is None:
        return None
    return Shape({keyword: True}, (f"{_shown(value)} is read as true; write true, false or a schema",))


def _names(keyword: str, value: object) -> Shape | None:
    if not isinstance(value, list) or not all(isinstance(name, str) for name in value):
        return None
    once = list(dict.fromkeys(value))
    return None if once == value else Shape({keyword: once}, ("a name stands twice; remove one",))


def _helm_names(keyword: str, value: object) -> Shape | None:
    if isinstance(value, str):
        return Shape({keyword: [value]})
    if isinstance(value, list) and all(isinstance(name, str) for name in value):
        return _names(keyword, value)
    return Shape({}, ("this is no list of names and checks nothing; write one",))


def _number(value: object) -> float | None:
    return value if isinstance(value, int | float) and not isinstance(value, bool) else None


def _at_least(_: str, value: object) -> Shape | None:
    number = _number(value)
    return (
        None if number is None or number >= 0 else Shape({}, ("a number below 0 checks nothing; remove it",))
    )


def _at_most(keyword: str, value: object) -> Shape | None:
    number = _number(value)
    if number is None or number >= 0:
        return None
    return Shape({keyword: value}, (f"the number is below 0, and so {_NO_VALUE}; mend or remove it",))


def _factor(keyword: str, value: object) -> Shape | None:
    number = _number(value)
    if number is None or number > 0:
        return None
    return Shape(
        {keyword: value}, ("the number is not above 0, and so no number is right here; mend or remove it",)
    )


def _filled_list(_: str, value: object) -> Shape | None:
    return Shape({}, (EMPTY,)) if value == [] else None


def _reference(_: str, value: object) -> Shape | None:
    if isinstance(value, str):
        return None
    return Shape({}, ("this is no text and refers to nothing; write '#/definitions/NAME'",))


def _extend(keyword: str, value: object) -> Shape:
    right = {"schema": schema_keywords.CONFIG_SCHEMA_FILE}
    if not isinstance(value, Mapping) or value.get("schema") is None:
        return Shape({}, (f"this has no effect; write {{schema: {right['schema']}}}",))
    if value == right:
        return Shape({keyword: right})
    return Shape(
        {keyword: right}, (f"{right['schema']} is extended, whatever else this says; write its name alone",)
    )


def _sensitive(keyword: str, value: object) -> Shape | None:
    if isinstance(value, bool):
        return None
    return Shape({keyword: True}, (f"{_shown(value)} is read as true; write true or false",))


def _switch(_: str, value: object) -> Shape | None:
    if isinstance(value, bool):
        return None
    return Shape({}, (f"{_shown(value)} is not true or false and checks nothing; write true, or remove it",))


_READERS: Final[Mapping[str, Callable[[str, object], Shape | None]]] = {
    "type": _type,
    "items": _items,
    "additionalProperties": _additional,
    "required": _names,
    **dict.fromkeys(("minProperties", "minItems", "minLength"), _at_least),
    **dict.fromkeys(("maxProperties", "maxItems", "maxLength"), _at_most),
    "multipleOf": _factor,
    **dict.fromkeys(("enum", "allOf", "anyOf", "oneOf"), _filled_list),
    "$ref": _reference,
    schema_keywords.EXTEND: _extend,
    schema_keywords.REQUIRED_FOR_HELM: _helm_names,
    schema_keywords.SENSITIVE: _sensitive,
    **dict.fromkeys(("x-kubernetes-int-or-string", "x-kubernetes-preserve-unknown-fields"), _switch),
}
