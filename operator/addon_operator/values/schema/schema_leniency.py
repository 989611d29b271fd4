"""Read schemas as leniently as the original does: what real modules write, in the form that is checked.

The original's loader passes over some wrong shapes of keywords and refuses others; what it refuses is refused
here, too, and what says nothing, or nothing possible, is a warning.
"""

import math
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, NamedTuple

from addon_operator.documents import json_pointers, yaml_loader
from addon_operator.kernel import names
from addon_operator.values.schema import schema_keywords, schema_walk

NULL_TYPE: Final = "null"
EMPTY: Final = "this is empty and checks nothing; write a value, or remove it"
_NO_VALUE: Final = "no value is valid here"
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
    """What to say of it."""


def _dropped(note: str) -> Shape:
    return Shape({}, (note,))


def _shown(value: object) -> str:
    return yaml_loader.shown(value) if isinstance(value, str) else "this"


def _type(keyword: str, value: object) -> Shape | None:
    if not isinstance(value, str | list):
        return None
    if value == []:
        return _dropped(EMPTY)
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
    """Return the type that was most likely meant."""
    word = name.lower()
    return _OTHER_NAMES.get(word) or names.nearest(word, schema_keywords.TYPES, _ALIKE)


def _items(keyword: str, value: object) -> Shape | None:
    if isinstance(value, Mapping) or value is None:
        return None
    if value == []:
        return _dropped(EMPTY)
    if isinstance(value, list):
        return Shape({keyword: value}, (_BY_POSITION,))
    near = nearest_type(value) if isinstance(value, str) else None
    return _dropped(f"{_shown(value)} is not a schema and checks nothing; write {{type: {near or 'string'}}}")


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
    return None if once == value else Shape({keyword: once}, ("a name occurs twice; remove one",))


def _helm_names(keyword: str, value: object) -> Shape | None:
    if isinstance(value, str):
        return Shape({keyword: [value]})
    if isinstance(value, list) and all(isinstance(name, str) for name in value):
        return _names(keyword, value)
    return _dropped("this is not a list of names and checks nothing; write one")


def _number(value: object) -> float:
    """Return the value, or "not a number" for another one, which is neither above nor below anything."""
    return value if isinstance(value, int | float) and not isinstance(value, bool) else math.nan


def _at_least(_: str, value: object) -> Shape | None:
    return _dropped("a number below 0 checks nothing; remove it") if _number(value) < 0 else None


def _at_most(keyword: str, value: object) -> Shape | None:
    note = f"the number is below 0, and so {_NO_VALUE}; correct or remove it"
    return Shape({keyword: value}, (note,)) if _number(value) < 0 else None


def _factor(keyword: str, value: object) -> Shape | None:
    note = "the number is not above 0, and so no number is valid here; correct or remove it"
    return Shape({keyword: value}, (note,)) if _number(value) <= 0 else None


def _filled_list(_: str, value: object) -> Shape | None:
    return _dropped(EMPTY) if value == [] else None


def _reference(_: str, value: object) -> Shape | None:
    if isinstance(value, str):
        return None
    return _dropped("this is not a text and refers to nothing; write '#/definitions/NAME'")


def _extend(keyword: str, value: object) -> Shape:
    file = schema_keywords.CONFIG_SCHEMA_FILE
    if not isinstance(value, Mapping) or value.get("schema") is None:
        return _dropped(f"this has no effect; write {{schema: {file}}}")
    right = {"schema": file}
    notes = () if value == right else (f"{file} is extended, whatever else this says; write its name alone",)
    return Shape({keyword: right}, notes)


def _sensitive(keyword: str, value: object) -> Shape | None:
    if isinstance(value, bool):
        return None
    return Shape({keyword: True}, (f"{_shown(value)} is read as true; write true or false",))


def _switch(_: str, value: object) -> Shape | None:
    if isinstance(value, bool):
        return None
    return _dropped(f"{_shown(value)} is not true or false and checks nothing; write true, or remove it")


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
    **dict.fromkeys(schema_keywords.KUBERNETES_SWITCHES, _switch),
}


_MAY_BE_NULL: Final = frozenset({"default", "example", "examples"})


class LenientReader:
    """Reads one file; ``notes`` are what is strange in it."""

    def __init__(self) -> None:
        self.notes: list[tuple[json_pointers.Path, str]] = []
        """Place and sentence of each thing that checks nothing."""

    def read(self, schema: object, path: json_pointers.Path = ()) -> Any:  # noqa: ANN401  # what is not a schema stays as it is
        """Return the schema with its lists of types, empty parts and single names written out.

        A list of types becomes ``type`` and ``nullable``, an empty property or ``properties`` becomes ``{}``,
        a single name in ``x-required-for-helm`` a list of one, and a shape that says nothing is left out.
        """
        if schema is None:
            return {}
        if not isinstance(schema, Mapping):
            return schema
        return dict(self._keywords(schema, path))

    def _keywords(self, schema: Mapping[str, Any], path: json_pointers.Path) -> Iterator[tuple[str, Any]]:
        for keyword, value in schema.items():
            place = (*path, keyword)
            if problem := schema_keywords.unknown(keyword, value):
                self.notes.append((place, problem))
            elif value is None and _is_empty(keyword):
                self.notes.append((place, EMPTY))
            else:
                reader = _READERS.get(keyword)
                shape = (reader and reader(keyword, value)) or Shape({keyword: value})
                self.notes.extend((place, note) for note in shape.notes)
                for name, written in shape.written.items():
                    yield name, self._inner(name, written, place)

    def _inner(self, keyword: str, value: Any, place: json_pointers.Path) -> Any:  # noqa: ANN401  # any JSON
        if keyword in schema_walk.MAPS_OF_SCHEMAS and (value is None or isinstance(value, Mapping)):
            return {name: self.read(inner, (*place, name)) for name, inner in (value or {}).items()}
        if keyword in (*schema_walk.LISTS_OF_SCHEMAS, "items") and isinstance(value, list):
            return [self.read(inner, (*place, index)) for index, inner in enumerate(value)]
        if keyword in schema_walk.SINGLE_SCHEMAS:
            return self.read(value, place)
        return value


def _is_empty(keyword: str) -> bool:
    """Say whether a keyword without a value says nothing."""
    if keyword in schema_walk.MAPS_OF_SCHEMAS or keyword in _MAY_BE_NULL:
        return False
    return keyword in schema_keywords.KEYWORDS
