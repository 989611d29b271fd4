"""The JSON Schema of what hooks print for ``--config``, for editors."""

from collections.abc import Mapping
from typing import Any

from addon_operator.hook_contract.configuration import binding_types, config_schemas
from addon_operator.kernel import json_types


def document(kind: config_schemas.HookKind) -> json_types.JsonObject:
    """Return the schema for ``configVersion: v1``, without formats that only the operator knows."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": f"Configuration of a {kind.value} hook",
        **_plain(binding_types.CURRENT[kind]),
    }


def _plain(node: Any) -> Any:  # noqa: ANN401  # a schema, or a part of one
    if isinstance(node, list | tuple):
        return [_plain(each) for each in node]
    if not isinstance(node, Mapping):
        return node
    return {
        key: _plain(each)
        for key, each in node.items()
        if not key.startswith("x-") and not (key == "format" and isinstance(each, str))
    }
