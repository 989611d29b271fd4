"""Parts of schemas of hook configurations that several bindings have.

Beyond the standard, a schema may hold ``x-elsewhere``: sentences for keys that are unknown where they stand
but mean something in another place.
"""

from collections.abc import Mapping
from typing import Any, Final, TypeAlias

from addon_operator.hook_contract.configuration import bindings

Schema: TypeAlias = Mapping[str, Any]


def mapping(
    properties: Mapping[str, Schema],
    required: tuple[str, ...] = (),
    elsewhere: Mapping[str, str] | None = None,
    **more: object,
) -> Schema:
    """Return the schema of a mapping that has no other keys than these."""
    return {
        "type": "object",
        "additionalProperties": False,
        "properties": properties,
        "required": list(required),
        "x-elsewhere": elsewhere or {},
        **more,
    }


def listing(items: Schema, at_least: int = 0) -> Schema:
    """Return the schema of a list."""
    return {"type": "array", "items": items, "minItems": at_least}


TEXT: Final[Schema] = {"type": "string"}
NAME: Final[Schema] = {"type": "string", "minLength": 1}
_LABEL_KEY: Final[Schema] = {"type": "string", "format": "label-key"}
_LABEL_VALUE: Final[Schema] = {"type": "string", "format": "label-value"}

_WITH_VALUES: Final = [bindings.LabelOperator.IN, bindings.LabelOperator.NOT_IN]
_WITHOUT_VALUES: Final = [bindings.LabelOperator.EXISTS, bindings.LabelOperator.DOES_NOT_EXIST]
_LABEL_REQUIREMENT: Final = mapping(
    {
        "key": _LABEL_KEY,
        "operator": {"enum": list(bindings.LabelOperator)},
        "values": listing(_LABEL_VALUE),
    },
    required=("key", "operator"),
    allOf=[
        {
            "if": {"properties": {"operator": {"enum": _WITH_VALUES}}},
            "then": {"required": ["values"], "properties": {"values": {"minItems": 1}}},
        },
        {
            "if": {"properties": {"operator": {"enum": _WITHOUT_VALUES}}},
            "then": {"properties": {"values": {"maxItems": 0}}},
        },
    ],
)
LABEL_SELECTOR: Final = mapping(
    {
        "matchLabels": {
            "type": "object",
            "propertyNames": _LABEL_KEY,
            "additionalProperties": _LABEL_VALUE,
        },
        "matchExpressions": listing(_LABEL_REQUIREMENT),
    },
    minProperties=1,
)
