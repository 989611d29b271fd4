"""The shape of the operations that change objects, as JSON Schema: one per operation.

``x-elsewhere`` is explained in :mod:`.config_schemas`; messages do not show what stands in the
place of a mapping or list that is marked with ``x-secret``.
"""

from collections.abc import Mapping
from typing import Final

from addon_operator.documents import json_pointers
from addon_operator.hook_contract.configuration import config_schemas
from addon_operator.hook_contract.configuration.config_schemas import Schema

OF_GO_SDK: Final = "ignoreMissingObjects"
"""As the Go SDK for modules of Deckhouse writes ``ignoreMissingObject``."""
_BOOL: Final[Schema] = {"type": "boolean"}
_NAME: Final[Schema] = {"type": "string", "minLength": 1, "format": "object-name"}
_NAMESPACE: Final[Schema] = {"type": "string", "format": "object-name-or-empty"}
_API_VERSION: Final[Schema] = {"type": "string", "format": "api-version"}
_POINTER: Final[Schema] = {"type": "string", "format": "json-pointer"}
_JSON_OBJECT: Final[Schema] = {"type": "object", "x-secret": True}

_METADATA: Final[Schema] = {**_JSON_OBJECT, "properties": {"name": _NAME, "namespace": _NAMESPACE}}
_OBJECT: Final[Schema] = {
    **_JSON_OBJECT,
    "properties": {"apiVersion": _API_VERSION, "kind": config_schemas.NAME, "metadata": _METADATA},
    "required": ["apiVersion", "kind", "metadata"],
}
_JSON_PATCH: Final[Schema] = {
    "type": "array",
    "x-secret": True,
    "items": {
        **_JSON_OBJECT,
        "properties": {"op": {"enum": list(json_pointers.PATCH_MEMBERS)}, "path": _POINTER, "from": _POINTER},
        "required": ["op"],
        "allOf": [
            {
                "if": {"properties": {"op": {"const": op}}, "required": ["op"]},
                "then": {"required": list(members)},
            }
            for op, members in json_pointers.PATCH_MEMBERS.items()
        ],
    },
}
_TARGET: Final[Schema] = {
    "apiVersion": {"type": "string", "format": "api-version-or-empty"},
    "kind": config_schemas.NAME,
    "namespace": _NAMESPACE,
    "name": _NAME,
    "subresource": config_schemas.TEXT,
    "ignoreMissingObject": _BOOL,
    OF_GO_SDK: _BOOL,
}
_PATCH: Final[Schema] = {**_TARGET, "ignoreHookError": _BOOL}
_CREATE: Final[Schema] = {"object": _OBJECT, "subresource": config_schemas.TEXT}

_FIELDS: Final[Mapping[str, tuple[Schema, tuple[str, ...]]]] = {
    "Create": (_CREATE, ("object",)),
    "CreateOrUpdate": (_CREATE, ("object",)),
    "CreateIfNotExists": (_CREATE, ("object",)),
    "Apply": ({**_CREATE, "fieldManager": config_schemas.NAME, "force": _BOOL}, ("object",)),
    "Delete": (_TARGET, ("kind", "name")),
    "DeleteInBackground": (_TARGET, ("kind", "name")),
    "DeleteNonCascading": (_TARGET, ("kind", "name")),
    "MergePatch": ({**_PATCH, "mergePatch": _JSON_OBJECT}, ("kind", "name", "mergePatch")),
    "JSONPatch": ({**_PATCH, "jsonPatch": _JSON_PATCH}, ("kind", "name", "jsonPatch")),
    "JQPatch": ({**_PATCH, "jqFilter": config_schemas.NAME}, ("kind", "name", "jqFilter")),
}


def _schema(fields: Schema, required: tuple[str, ...]) -> Schema:
    elsewhere: dict[str, list[str]] = {}
    for name, (other, _) in _FIELDS.items():
        for key in other.keys() - fields.keys():
            elsewhere.setdefault(key, []).append(name)
    return config_schemas.mapping(
        {"operation": {}, **fields},
        required,
        {key: f"it is for {', '.join(of)}" for key, of in sorted(elsewhere.items())},
    )


BY_OPERATION: Final[Mapping[str, Schema]] = {name: _schema(*fields) for name, fields in _FIELDS.items()}
"""Schema of the document by the name of its operation."""
