"""Defaults of schemas: filling keys that are missing.

As in Kubernetes, only a missing key is filled (an explicit ``null`` is a value), and only inside mappings and
lists that exist or were themselves filled.
"""

from collections.abc import Sequence
from typing import Any

from addon_operator.documents import json_documents
from addon_operator.kernel import json_types
from addon_operator.values.schema import schema_walk
from addon_operator.values.schema.schema_walk import SchemaObject


def fill(schemas: Sequence[SchemaObject], value: json_types.JsonValue, definitions: SchemaObject) -> None:
    """Fill missing keys at any depth, in place.

    Raises :class:`RecursionError` for a schema whose defaults hold themselves.
    """
    facets = [facet for schema in schemas for facet in schema_walk.facets(schema, definitions)]
    if isinstance(value, dict):
        _fill_keys(facets, value, definitions)
        for key, inner in value.items():
            _fill_inner(facets, key, inner, definitions)
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            _fill_inner(facets, index, inner, definitions)


def _fill_inner(
    facets: Sequence[SchemaObject], key: str | int, value: json_types.JsonValue, definitions: SchemaObject
) -> None:
    if isinstance(value, dict | list):
        fill([child for facet in facets for child in schema_walk.children(facet, key)], value, definitions)


def _fill_keys(
    facets: Sequence[SchemaObject], value: json_types.JsonObject, definitions: SchemaObject
) -> None:
    for facet in facets:
        for key, schema in facet.get("properties", {}).items():
            if key not in value:
                _fill_key(value, key, schema_walk.dereference(schema, definitions))


def _fill_key(value: json_types.JsonObject, key: str, schema: SchemaObject) -> None:
    default: Any = schema.get("default")
    # A null that the schema does not allow would be refused as if somebody had set it.
    if default is not None or ("default" in schema and schema.get("nullable")):
        value[key] = json_documents.copy_value(default)
