"""Find the parts of an OpenAPI schema that speak of a place in the values, and fill in the defaults there.

As in Kubernetes, only a missing key is filled (an explicit ``null`` is a value), and only inside mappings and
lists that exist or were themselves filled.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from addon_operator.documents import json_documents, patterns
from addon_operator.kernel import errors, json_types

SchemaObject = Mapping[str, Any]

REFERENCE_PREFIX: Final = "#/definitions/"
MAPS_OF_SCHEMAS: Final = ("properties", "patternProperties", "definitions")
LISTS_OF_SCHEMAS: Final = ("allOf", "anyOf", "oneOf")
SINGLE_SCHEMAS: Final = ("items", "not", "additionalProperties")
ANY_ITEM: Final = -1
"""An index for an item whose place in the list is not known."""


def dereference(schema: SchemaObject, definitions: SchemaObject) -> SchemaObject:
    """Return the schema with what it refers to; its own keywords win."""
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
    """Yield all schemas in the schema, itself first, each with its path."""
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
    schemas: Iterable[SchemaObject], definitions: SchemaObject, *, alternatives: bool = False
) -> list[SchemaObject]:
    """Return the schemas and all that ``allOf`` adds to them, without references.

    With ``alternatives`` also what ``anyOf`` and ``oneOf`` may add. Each schema is looked at once, whatever
    number of ways lead to it.

    Raises :class:`RecursionError` for a schema that holds itself in ``allOf``.
    """
    collected: list[SchemaObject] = []
    keywords = LISTS_OF_SCHEMAS if alternatives else ("allOf",)
    is_open: dict[int, bool] = {}

    def collect(schemas: Iterable[SchemaObject]) -> None:
        for schema in schemas:
            if (seen := is_open.get(id(schema))) is not None:
                if seen and not alternatives:
                    raise RecursionError("a schema holds itself")
                continue
            is_open[id(schema)] = True
            resolved = dereference(schema, definitions)
            collected.append(resolved)
            for keyword in keywords:
                collect(resolved.get(keyword, ()))
            is_open[id(schema)] = False

    collect(schemas)
    return collected


def children(parts: Iterable[SchemaObject], key: str | int) -> list[SchemaObject]:
    """Return the schemas that facets have for a key of a mapping, or an item of a list."""
    return [child for facet in parts for child in _children(facet, key)]


def _children(facet: SchemaObject, key: str | int) -> Sequence[SchemaObject]:
    if isinstance(key, int):
        items = facet.get("items")
        if isinstance(items, list):
            return items if key == ANY_ITEM else items[key : key + 1]
        return () if items is None else (items,)
    named = [facet["properties"][key]] if key in facet.get("properties", {}) else []
    named += [
        inner for pattern, inner in facet.get("patternProperties", {}).items() if patterns.found(pattern, key)
    ]
    others = facet.get("additionalProperties")
    return named or ([others] if isinstance(others, Mapping) else [])


MAX_FILLED: Final = 100_000
"""How many keys the defaults of a schema may fill in: one within the other, they double with each level."""
MAX_FILLED_BYTES: Final = 16 << 20
"""How large all that is filled in may be, as JSON."""


class TooManyDefaultsError(errors.ConfigurationError):
    """A schema would fill in more than it may."""


def fill(schemas: Iterable[SchemaObject], value: json_types.JsonValue, definitions: SchemaObject) -> None:
    """Fill missing keys at any depth, in place.

    Raises :class:`RecursionError` for a schema whose defaults hold themselves, and
    :class:`TooManyDefaultsError`.
    """
    _Filling(definitions).fill(schemas, value)


class _Filling:
    """Fills one document, and counts."""

    def __init__(self, definitions: SchemaObject) -> None:
        self._definitions = definitions
        self._filled = self._bytes = 0

    def fill(self, schemas: Iterable[SchemaObject], value: json_types.JsonValue) -> None:
        parts = facets(schemas, self._definitions)
        if isinstance(value, dict):
            for facet in parts:
                for key, schema in facet.get("properties", {}).items():
                    if key not in value:
                        self._fill_key(value, key, dereference(schema, self._definitions))
        for key, inner in items_of(value):
            if isinstance(inner, dict | list):
                self.fill(children(parts, key), inner)

    def _fill_key(self, value: json_types.JsonObject, key: str, schema: SchemaObject) -> None:
        default: Any = schema.get("default")
        # A null that the schema does not allow would be refused as if somebody had set it.
        if default is not None or ("default" in schema and schema.get("nullable")):
            self._filled += 1
            text = json_documents.encode(default)
            self._bytes += len(text)
            if self._filled > MAX_FILLED or self._bytes > MAX_FILLED_BYTES:
                raise TooManyDefaultsError(
                    f"its defaults fill in more than {MAX_FILLED} keys, or {MAX_FILLED_BYTES >> 20} MiB; "
                    "remove some of those within others"
                )
            value[key] = json_documents.decode(text)


def items_of(value: json_types.JsonValue) -> Iterable[tuple[str | int, json_types.JsonValue]]:
    """Return the keys or indexes of a mapping or list with their values; nothing for other values."""
    if isinstance(value, dict):
        return value.items()
    return enumerate(value) if isinstance(value, list) else ()
