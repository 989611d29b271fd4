"""Find the parts of an OpenAPI schema that speak of a place in the values, and fill in the defaults there.

As in Kubernetes, only a missing key is filled (an explicit ``null`` is a value), and only inside mappings and
lists that exist or were themselves filled.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from addon_operator.documents import json_documents, patterns
from addon_operator.kernel import json_types

SchemaObject = Mapping[str, Any]

REFERENCE_PREFIX: Final = "#/definitions/"
MAPS_OF_SCHEMAS: Final = ("properties", "patternProperties", "definitions")
LISTS_OF_SCHEMAS: Final = ("allOf", "anyOf", "oneOf")
SINGLE_SCHEMAS: Final = ("items", "not", "additionalProperties")
ANY_ITEM: Final = -1
"""An index for an item whose place in the list is not known."""
_ALTERNATIVES: Final = ("anyOf", "oneOf")


def dereference(schema: SchemaObject, definitions: SchemaObject) -> SchemaObject:
    """The schema with what it refers to; its own keywords win."""
    seen: set[str] = set()
    while (reference := schema.get("$ref")) is not None and reference not in seen:
        seen.add(reference)
        target = definitions[reference.removeprefix(REFERENCE_PREFIX)]
        schema = {**target, **{key: value for key, value in schema.items() if key != "$ref"}}
        if "$ref" in target:
            schema = {**schema, "$ref": target["$ref"]}
    return schema


def subschemas(
    schema: SchemaObject, path: Sequence[str | int] = ()
) -> Iterator[tuple[tuple[str | int, ...], Any]]:
    """All schemas in the schema, itself first, each with its path."""
    yield tuple(path), schema
    for keyword, key, inner in _parts(schema):
        yield from subschemas(inner, (*path, keyword, *key))


def _parts(schema: SchemaObject) -> Iterator[tuple[str, tuple[str | int, ...], Any]]:
    for keyword in MAPS_OF_SCHEMAS:
        for name, inner in schema.get(keyword, {}).items():
            yield keyword, (name,), inner
    for keyword in LISTS_OF_SCHEMAS:
        for index, inner in enumerate(schema.get(keyword, ())):
            yield keyword, (index,), inner
    for keyword in SINGLE_SCHEMAS:
        inner = schema.get(keyword)
        if isinstance(inner, Mapping):
            yield keyword, (), inner
    # Items by their position.
    if isinstance(items := schema.get("items"), list):
        for index, inner in enumerate(items):
            yield "items", (index,), inner


def facets(
    schema: SchemaObject, definitions: SchemaObject, *, alternatives: bool = False
) -> Iterator[SchemaObject]:
    """The schema and all that ``allOf`` adds to it, without references.

    With ``alternatives`` also what ``anyOf`` and ``oneOf`` may add.
    """
    resolved = dereference(schema, definitions)
    yield resolved
    for keyword in ("allOf", *(_ALTERNATIVES if alternatives else ())):
        for inner in resolved.get(keyword, ()):
            yield from facets(inner, definitions, alternatives=alternatives)


def children(facet: SchemaObject, key: str | int) -> Iterator[SchemaObject]:
    """The schemas that a facet has for a key of a mapping, or an item of a list."""
    if isinstance(key, int):
        items = facet.get("items")
        if isinstance(items, list):
            yield from items if key == ANY_ITEM else items[key : key + 1]
        elif items is not None:
            yield items
        return
    named = [facet["properties"][key]] if key in facet.get("properties", {}) else []
    named += [
        inner for pattern, inner in facet.get("patternProperties", {}).items() if patterns.found(pattern, key)
    ]
    others = facet.get("additionalProperties")
    yield from named or ([others] if isinstance(others, Mapping) else [])


def fill(schemas: Sequence[SchemaObject], value: json_types.JsonValue, definitions: SchemaObject) -> None:
    """Fill missing keys at any depth, in place.

    Raises :class:`RecursionError` for a schema whose defaults hold themselves.
    """
    parts = [part for schema in schemas for part in facets(schema, definitions)]
    if isinstance(value, dict):
        _fill_keys(parts, value, definitions)
        for key, inner in value.items():
            _fill_inner(parts, key, inner, definitions)
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            _fill_inner(parts, index, inner, definitions)


def _fill_inner(
    parts: Sequence[SchemaObject], key: str | int, value: json_types.JsonValue, definitions: SchemaObject
) -> None:
    if isinstance(value, dict | list):
        fill([child for facet in parts for child in children(facet, key)], value, definitions)


def _fill_keys(
    parts: Sequence[SchemaObject], value: json_types.JsonObject, definitions: SchemaObject
) -> None:
    for facet in parts:
        for key, schema in facet.get("properties", {}).items():
            if key not in value:
                _fill_key(value, key, dereference(schema, definitions))


def _fill_key(value: json_types.JsonObject, key: str, schema: SchemaObject) -> None:
    default: Any = schema.get("default")
    # A null that the schema does not allow would be refused as if somebody had set it.
    if default is not None or ("default" in schema and schema.get("nullable")):
        value[key] = json_documents.copy_value(default)
