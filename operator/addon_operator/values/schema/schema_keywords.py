"""The keywords of schemas, and what each of them may say."""

from collections.abc import Mapping
from typing import Any, Final

from addon_operator.kernel import suggestions
from addon_operator.values.schema import schema_rules

CONFIG_SCHEMA_FILE: Final = "config-values.yaml"
EXTEND: Final = "x-extend"
REQUIRED_FOR_HELM: Final = "x-required-for-helm"
SENSITIVE: Final = "x-sensitive"
_EXTENSION: Final = "x-"
_ALIKE: Final = 0.7
_MUCH_ALIKE: Final = 0.85

TYPES: Final = ["string", "number", "integer", "boolean", "array", "object"]

_SCHEMA: Final = {"$ref": "#/definitions/schema"}
_NAMES: Final = {"type": "array", "items": {"type": "string"}}
_COUNT: Final = {"type": "integer"}
_NUMBER: Final = {"type": "number"}
_SWITCH: Final = {"type": "boolean"}
_TEXT: Final = {"type": "string"}
_SCHEMAS_BY_NAME: Final = {"type": "object", "additionalProperties": _SCHEMA}
_SCHEMA_LIST: Final = {"type": "array", "minItems": 1, "items": _SCHEMA}
_RULES: Final = {
    "type": "array",
    "items": {
        "type": "object",
        "properties": {"rule": _TEXT, "expression": _TEXT, "message": _TEXT},
        "anyOf": [{"required": ["rule"]}, {"required": ["expression"]}],
    },
}

KEYWORDS: Final[Mapping[str, Mapping[str, Any]]] = {
    "type": {
        "if": {"type": "array"},
        "then": {"items": {"enum": TYPES}},
        "else": {"enum": TYPES},
    },
    "properties": _SCHEMAS_BY_NAME,
    "patternProperties": _SCHEMAS_BY_NAME,
    "definitions": _SCHEMAS_BY_NAME,
    "additionalProperties": {"type": ["boolean", "object"], "if": {"type": "object"}, "then": _SCHEMA},
    "required": _NAMES,
    "minProperties": _COUNT,
    "maxProperties": _COUNT,
    "items": {"if": {"type": "array"}, "then": {"items": _SCHEMA}, "else": _SCHEMA},
    "minItems": _COUNT,
    "maxItems": _COUNT,
    "uniqueItems": _SWITCH,
    "minimum": _NUMBER,
    "maximum": _NUMBER,
    "exclusiveMinimum": _SWITCH,
    "exclusiveMaximum": _SWITCH,
    "multipleOf": _NUMBER,
    "minLength": _COUNT,
    "maxLength": _COUNT,
    "pattern": _TEXT,
    "format": _TEXT,
    "enum": {"type": "array", "minItems": 1},
    "allOf": _SCHEMA_LIST,
    "anyOf": _SCHEMA_LIST,
    "oneOf": _SCHEMA_LIST,
    "not": _SCHEMA,
    "nullable": _SWITCH,
    "$ref": _TEXT,
    "title": _TEXT,
    "description": _TEXT,
    "default": {},
    "example": {},
    "examples": {},
    "externalDocs": {},
    "discriminator": {},
    "xml": {},
    "$schema": {},
    "readOnly": _SWITCH,
    "writeOnly": {},
    "deprecated": {},
    EXTEND: {
        "type": "object",
        "properties": {"schema": {"enum": [CONFIG_SCHEMA_FILE]}},
        "required": ["schema"],
        "additionalProperties": False,
    },
    REQUIRED_FOR_HELM: _NAMES,
    SENSITIVE: _SWITCH,
    "x-kubernetes-int-or-string": _SWITCH,
    "x-kubernetes-preserve-unknown-fields": _SWITCH,
    **dict.fromkeys(schema_rules.RULE_KEYWORDS, _RULES),
}
"""What a schema may say, and the schema of each keyword."""
META: Final = {
    "definitions": {"schema": {"type": "object", "properties": KEYWORDS}},
    **_SCHEMA,
}
"""What a schema has to be, as a JSON Schema."""


def unknown(keyword: str, value: object = None) -> str | None:
    """What to tell of a keyword that is not known, ``None`` if there is nothing wrong with it.

    Extensions are free; one that is nearly ours is most likely misspelt. One whose ``value`` is a schema is
    most likely a property.
    """
    if keyword in KEYWORDS:
        return None
    extends = keyword.startswith(_EXTENSION)
    known = [name for name in KEYWORDS if name.startswith(_EXTENSION) is extends]
    near = suggestions.nearest(keyword, known, _MUCH_ALIKE if extends else _ALIKE)
    if not extends and _is_schema(value) and near not in _HOLDING_SCHEMAS:
        return "this is no keyword of a schema and checks nothing; put it under properties"
    if near:
        return f"this is no keyword of a schema and checks nothing; did you mean {near!r}?"
    return None if extends else "this is no keyword of a schema and checks nothing; remove it"


_HOLDING_SCHEMAS: Final = frozenset(
    {*("properties", "patternProperties", "definitions", "additionalProperties"), "items", "not"}
)


def _is_schema(value: object) -> bool:
    return isinstance(value, Mapping) and any(keyword in KEYWORDS for keyword in value)
