"""Values as rules see them: by the types of the schema, not by how a number was written.

Source: "Validation rules" of the Kubernetes documentation on CustomResourceDefinitions, "Escaping" and the
table of types.
"""

import re
from collections.abc import Sequence
from typing import Final

from addon_operator.kernel import json_types
from addon_operator.values.schema import schema_walk
from addon_operator.values.schema.schema_walk import SchemaObject

_RESERVED: Final = re.compile(
    "true|false|null|in|as|break|const|continue|else|for|function|if|import|let|loop|package|namespace"
    "|return|var|void|while"
)
_ESCAPES: Final = {"__": "__underscores__", ".": "__dot__", "-": "__dash__", "/": "__slash__"}
_ESCAPED: Final = re.compile(r"__|[./-]")


def convert(
    schemas: Sequence[SchemaObject], value: json_types.JsonValue, definitions: SchemaObject
) -> json_types.JsonValue:
    """A copy for a rule.

    What the schema calls a ``number`` is floating point even if it was written without a fraction. A property
    whose name is no identifier can be named by its escaped form as well: ``self.my__dash__key``.
    """
    facets = [facet for schema in schemas for facet in schema_walk.facets(schema, definitions)]
    if isinstance(value, dict):
        return _mapping(facets, value, definitions)
    if isinstance(value, list):
        return [convert(_children(facets, index), item, definitions) for index, item in enumerate(value)]
    if isinstance(value, int) and not isinstance(value, bool) and _is_number(facets):
        return float(value)
    return value


def _mapping(
    facets: Sequence[SchemaObject], value: json_types.JsonObject, definitions: SchemaObject
) -> json_types.JsonObject:
    converted = {key: convert(_children(facets, key), inner, definitions) for key, inner in value.items()}
    properties = {key for facet in facets for key in facet.get("properties", ())}
    for key in properties & value.keys():
        converted.setdefault(escape(key), converted[key])
    return converted


def _children(facets: Sequence[SchemaObject], key: str | int) -> list[SchemaObject]:
    return [child for facet in facets for child in schema_walk.children(facet, key)]


def _is_number(facets: Sequence[SchemaObject]) -> bool:
    return any(_only_numbers(facet.get("type")) for facet in facets)


def _only_numbers(types: str | list[str] | None) -> bool:
    return types == "number" or (isinstance(types, list) and "number" in types and "integer" not in types)


def escape(name: str) -> str:
    """The name of a property as a rule writes it: ``my-key`` is ``my__dash__key``, ``in`` is ``__in__``."""
    if _RESERVED.fullmatch(name):
        return f"__{name}__"
    return _ESCAPED.sub(lambda match: _ESCAPES[match[0]], name)
