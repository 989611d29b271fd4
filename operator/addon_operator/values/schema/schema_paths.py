"""Which paths values can have, as schemas say, and a sample of what may stand there."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import msgspec
from msgspec import structs

from addon_operator.documents import json_documents, json_pointers, patterns
from addon_operator.kernel import json_types, names
from addon_operator.values.schema import schema_keywords, schema_walk

ANY: Final = "*"
"""Stands for any key, or any item of a list."""
_MOST_WAYS: Final = 1000
"""Ways into a schema that are followed at once; of a path with more, nothing is said."""
_MOST_SAMPLES: Final = 100
"""Values that are made up for one place."""
_OPEN: Final = "x-kubernetes-preserve-unknown-fields"
_SAMPLES: Final = ("default", "example", "x-example")
_LISTS_OF_SAMPLES: Final = ("x-examples", "examples", "enum")
_OF_TYPE: Final[Mapping[str, json_types.JsonValue]] = {
    "string": "sample", "integer": 1, "number": 1, "boolean": True, "array": []
}  # fmt: skip
_OF_FORMAT: Final[Mapping[str, str]] = {
    "byte": "c2FtcGxl", "cidr": "192.0.2.0/24", "date": "2020-01-01", "date-time": "2020-01-01T00:00:00Z",
    "datetime": "2020-01-01T00:00:00Z", "duration": "1h", "email": "sample@example.com",
    "hostname": "sample.example.com", "ip": "192.0.2.1", "ipv4": "192.0.2.1", "ipv6": "2001:db8::1",
    "mac": "00:00:5e:00:53:01", "uri": "https://sample.example.com",
    "uuid": "00000000-0000-4000-8000-000000000000",
}  # fmt: skip
NO_SAMPLE: Final = object()
"""Returned where a schema says too little to make up a value."""


class UnknownKey(msgspec.Struct, frozen=True):
    """A key that a schema does not allow where a path has it."""

    index: int
    """Which key of the path it is."""
    known: tuple[str, ...]
    """The keys that may stand there."""

    def hint(self, path: Sequence[str]) -> str:
        """Return what to write instead, as far as that can be known."""
        otherwise = f"it knows {names.listed(self.known, 10)}" if self.known else "it has no keys"
        return names.did_you_mean(path[self.index], self.known, otherwise)


class _Part(msgspec.Struct, frozen=True):
    """One schema that a value must keep to."""

    schema: schema_walk.SchemaObject
    is_closed: bool
    """Whether ``properties`` forbid other keys, see :func:`.schema_keywords.prepare`."""


_Way = tuple[_Part, ...]
"""All schemas that what stands somewhere must keep to; none: anything may stand there."""


def unknown_key(definition: schema_walk.SchemaObject, path: Sequence[str]) -> UnknownKey | None:
    """Return the first key of a path that no values can have; ``None`` if all may be there.

    What only a branch of ``anyOf``, ``oneOf`` or ``not`` forbids may be there. :data:`ANY` in the path is any
    key. Takes as long as the schema is large, for each key.
    """
    definitions = definition.get("definitions", {})
    ways: list[_Way] = [(_Part(definition, is_closed=True),)]
    for index, key in enumerate(path):
        if len(ways) > _MOST_WAYS:
            return None
        known: dict[str, None] = {}
        further: dict[tuple[tuple[int, bool], ...], _Way] = {}
        for way in ways:
            parts = _facets(way, definitions)
            for child in _children(parts, key, known):
                if not child:
                    return None
                further[tuple((id(part.schema), part.is_closed) for part in child)] = child
        if not further:
            return UnknownKey(index, tuple(known))
        ways = list(further.values())
    return None


def _facets(way: _Way, definitions: schema_walk.SchemaObject) -> _Way:
    """Return the parts with all that ``allOf`` adds to them, without references."""
    found: dict[tuple[int, bool], _Part] = {}
    pending = list(way)
    while pending:
        part = pending.pop()
        if (id(part.schema), part.is_closed) not in found:
            schema = schema_walk.dereference(part.schema, definitions)
            found[id(part.schema), part.is_closed] = structs.replace(part, schema=schema)
            pending += [_Part(each, is_closed=False) for each in schema.get("allOf", ())]
    return tuple(found.values())


def _children(parts: _Way, key: str, known: dict[str, None]) -> Iterator[_Way]:
    """Yield the ways on to a key: none if it cannot be there; notes in ``known`` which can."""
    if key != ANY:
        child = _child(parts, key, known)
        if child is not None:
            yield child
        return
    keys = dict.fromkeys(name for part in parts for name in part.schema.get("properties", {}))
    if any(_holds_items(part.schema) for part in parts):
        child = _child(parts, "0", known)
        if child is not None:
            yield child
    elif all(_allows_others(part) for part in parts):
        yield ()
    for name in keys:
        child = _child(parts, name, known)
        if child is not None:
            yield child


def _child(parts: _Way, key: str, known: dict[str, None]) -> _Way | None:
    """Return what a key must keep to; ``None`` if it cannot be there."""
    child: list[_Part] = []
    is_there = True
    for part in parts:
        found = _of_part(part, key)
        if found is None:
            is_there = False
            known.update(dict.fromkeys(part.schema.get("properties", {})))
        else:
            child += found
    return tuple(child) if is_there else None


def _of_part(part: _Part, key: str) -> list[_Part] | None:
    schema = part.schema
    is_closed = part.is_closed and "additionalProperties" not in schema
    if _holds_items(schema):
        items = schema.get("items")
        inner = [_Part(items, is_closed)] if isinstance(items, Mapping) else []
        return inner if json_pointers.is_index(key) else None
    if not _may_hold(schema):
        return None
    if named := _named(schema, key):
        return [_Part(inner, is_closed) for inner in named]
    others = schema.get("additionalProperties")
    if isinstance(others, Mapping):
        return [_Part(others, is_closed=False)]
    return [] if _allows_others(part) else None


def _named(schema: schema_walk.SchemaObject, key: str) -> list[schema_walk.SchemaObject]:
    found = [schema["properties"][key]] if key in schema.get("properties", {}) else []
    by_pattern = schema.get("patternProperties", {}).items()
    return found + [inner for pattern, inner in by_pattern if patterns.found(pattern, key)]


def _allows_others(part: _Part) -> bool:
    """Say whether keys may be there that ``properties`` do not name."""
    others = part.schema.get("additionalProperties")
    if others is not None:
        return others is not False
    is_closed = part.is_closed and "properties" in part.schema and not part.schema.get(_OPEN)
    return not is_closed and _may_hold(part.schema)


def _types(schema: schema_walk.SchemaObject) -> list[str]:
    types = schema.get("type", [])
    return [types] if isinstance(types, str) else list(types)


def _holds_items(schema: schema_walk.SchemaObject) -> bool:
    return _types(schema) == ["array"]


def _may_hold(schema: schema_walk.SchemaObject) -> bool:
    """Say whether a value can be a mapping."""
    if schema.get("x-kubernetes-int-or-string"):
        return False
    types = _types(schema)
    # A type that there is not is another mistake, and told elsewhere.
    return not types or "object" in types or not set(types) <= set(schema_keywords.TYPES)


def sample(definition: schema_walk.SchemaObject, path: Sequence[str]) -> Any:  # noqa: ANN401  # any JSON
    """Return a value that may stand at a path, or :data:`NO_SAMPLE`: an example, a default, or the least."""
    definitions = definition.get("definitions", {})
    schemas: list[schema_walk.SchemaObject] = [definition]
    for key in path:
        schemas = schema_walk.children(schema_walk.facets(schemas, definitions), key)
    return _Samples(definitions).of(schemas)


class _Samples:
    """Makes up values; objects that hold objects end where there are many."""

    def __init__(self, definitions: schema_walk.SchemaObject) -> None:
        self._definitions = definitions
        self._left = _MOST_SAMPLES

    def of(self, schemas: Sequence[schema_walk.SchemaObject]) -> Any:  # noqa: ANN401  # any JSON
        facets = schema_walk.facets(schemas, self._definitions)
        for facet in facets:
            for given in (*map(facet.get, _SAMPLES), *map(_first(facet), _LISTS_OF_SAMPLES)):
                if given is not None:
                    return json_documents.copy_value(given)
        types = [name for facet in facets for name in _types(facet)]
        self._left -= 1
        if self._left <= 0:
            return NO_SAMPLE
        if "object" in types or any("properties" in facet for facet in facets):
            return self._mapping(facets)
        return _scalar(facets, types)

    def _mapping(self, facets: Sequence[schema_walk.SchemaObject]) -> json_types.JsonObject:
        words = ("required", schema_keywords.REQUIRED_FOR_HELM)
        required = dict.fromkeys(key for facet in facets for word in words for key in facet.get(word, ()))
        values = {}
        for key in required:
            value = self.of(schema_walk.children(facets, key))
            if value is not NO_SAMPLE:
                values[key] = value
        return values


def _first(facet: schema_walk.SchemaObject) -> Any:  # noqa: ANN401  # a function of the keyword
    def first(keyword: str) -> Any:  # noqa: ANN401  # any JSON
        given = facet.get(keyword)
        return given[0] if isinstance(given, list) and given else None

    return first


def _scalar(facets: Sequence[schema_walk.SchemaObject], types: Sequence[str]) -> Any:  # noqa: ANN401  # any JSON
    if any("pattern" in facet for facet in facets) or not types:
        return NO_SAMPLE
    value = _OF_TYPE.get(types[0], NO_SAMPLE)
    if isinstance(value, str):
        formats = [facet["format"] for facet in facets if facet.get("format") in _OF_FORMAT]
        if formats:
            return _OF_FORMAT[formats[0]]
        longest = max(len(value), *(facet.get("minLength", 0) for facet in facets))
        shortest = min(longest, *(facet.get("maxLength", longest) for facet in facets))
        return value.ljust(min(longest, 1000), "x")[: max(shortest, 0)]
    if types[0] in ("integer", "number"):
        lowest = max([1, *(facet["minimum"] for facet in facets if "minimum" in facet)])
        return min([lowest, *(facet["maximum"] for facet in facets if "maximum" in facet)])
    return list(value) if isinstance(value, list) else value
