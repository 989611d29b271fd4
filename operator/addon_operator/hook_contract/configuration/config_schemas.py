"""The shape of hook configurations as JSON Schema, one per version and kind of hook.

Source: "Bindings" of the addon-operator documentation and the hook configuration of shell-operator, on which
that builds. Beyond the standard, a schema may hold ``x-elsewhere``: sentences for keys that are unknown where
they stand but mean something in another place.
"""

import enum
from collections.abc import Mapping
from typing import Final

from addon_operator.hook_contract.configuration import bindings, schema_parts, webhook_schemas

Schema = schema_parts.Schema


class HookKind(enum.Enum):
    """Whose hook it is; that decides which bindings it may have."""

    GLOBAL = "global"
    MODULE = "module"


LIFECYCLE: Final[Mapping[HookKind, tuple[bindings.LifecycleBinding, ...]]] = {
    HookKind.GLOBAL: (
        bindings.LifecycleBinding.ON_STARTUP,
        bindings.LifecycleBinding.BEFORE_ALL,
        bindings.LifecycleBinding.AFTER_ALL,
    ),
    HookKind.MODULE: (
        bindings.LifecycleBinding.ON_STARTUP,
        bindings.LifecycleBinding.BEFORE_HELM,
        bindings.LifecycleBinding.AFTER_HELM,
        bindings.LifecycleBinding.BEFORE_DELETE_HELM,
        bindings.LifecycleBinding.AFTER_DELETE_HELM,
    ),
}

_BOOL: Final[Schema] = {"type": "boolean"}
_ORDER: Final[Schema] = {"type": "integer", "minimum": -(2**53), "maximum": 2**53}
_PERIOD: Final[Schema] = {"type": "string", "format": "period"}
_JQ: Final[Schema] = {"type": "string", "format": "jq"}
_NAME_SELECTOR: Final = schema_parts.mapping(
    {"matchNames": schema_parts.listing(schema_parts.NAME)}, required=("matchNames",)
)
_FIELD_SELECTOR: Final = schema_parts.mapping(
    {
        "matchExpressions": schema_parts.listing(
            schema_parts.mapping(
                {
                    "field": schema_parts.NAME,
                    "operator": {"enum": ["=", "==", "Equals", "!=", "NotEquals"]},
                    "value": schema_parts.TEXT,
                },
                required=("field", "operator", "value"),
            )
        )
    },
    required=("matchExpressions",),
)
_NAMESPACE: Final = schema_parts.mapping(
    {"nameSelector": _NAME_SELECTOR, "labelSelector": schema_parts.LABEL_SELECTOR}, minProperties=1
)
_EVENTS: Final = schema_parts.listing({"enum": list(bindings.WatchEvent)})

_SETTINGS: Final = schema_parts.mapping(
    {
        "executionMinInterval": _PERIOD,
        "executionMinPeriod": _PERIOD,
        "executionBurst": {"type": "integer", "minimum": 0, "maximum": 2**53},
        "executionTimeout": _PERIOD,
    }
)
_COMMON: Final[Mapping[str, Schema]] = {
    "name": schema_parts.TEXT,
    "queue": schema_parts.TEXT,
    "group": schema_parts.TEXT,
    "allowFailure": _BOOL,
    "includeSnapshotsFrom": schema_parts.listing(schema_parts.NAME, at_least=1),
}
_CRONTAB: Final[Schema] = {"type": "string", "format": "crontab"}
_SCHEDULE: Final = schema_parts.mapping(
    {**_COMMON, "crontab": _CRONTAB, "timezone": {"type": "string", "format": "timezone"}},
    required=("crontab",),
)
_KUBERNETES: Final = schema_parts.mapping(
    {
        **_COMMON,
        "apiVersion": {"type": "string", "format": "api-version-or-empty"},
        "kind": schema_parts.NAME,
        "executeHookOnEvent": _EVENTS,
        "watchEvent": _EVENTS,
        "executeHookOnSynchronization": _BOOL,
        "waitForSynchronization": _BOOL,
        "keepFullObjectsInMemory": _BOOL,
        "keepOldObject": _BOOL,
        "resynchronizationPeriod": _PERIOD,
        "nameSelector": _NAME_SELECTOR,
        "labelSelector": schema_parts.LABEL_SELECTOR,
        "fieldSelector": _FIELD_SELECTOR,
        "namespace": _NAMESPACE,
        "jqFilter": _JQ,
    },
    required=("kind",),
    elsewhere={"namespaceSelector": "write 'namespace' with a 'nameSelector' or 'labelSelector' in it"},
)
_LEGACY_SCHEDULE: Final = schema_parts.mapping(
    {"name": schema_parts.TEXT, "crontab": _CRONTAB, "allowFailure": _BOOL}, required=("crontab",)
)
_LEGACY_KUBERNETES: Final = schema_parts.mapping(
    {
        "name": schema_parts.TEXT,
        "event": schema_parts.listing({"enum": ["add", "update", "delete"]}),
        "kind": schema_parts.NAME,
        "selector": schema_parts.LABEL_SELECTOR,
        "objectName": schema_parts.TEXT,
        "namespaceSelector": schema_parts.mapping(
            {"matchNames": schema_parts.listing(schema_parts.NAME), "any": _BOOL}
        ),
        "jqFilter": _JQ,
        "allowFailure": _BOOL,
        # Old hooks have it; it was about logs of the Go operator.
        "disableDebug": _BOOL,
    },
    required=("kind",),
)


def _lifecycle(kind: HookKind) -> dict[str, Schema]:
    return {binding.value: _ORDER for binding in LIFECYCLE[kind]}


def _foreign_lifecycle(kind: HookKind) -> dict[str, str]:
    other = HookKind.MODULE if kind is HookKind.GLOBAL else HookKind.GLOBAL
    sentence = f"only {other.value} hooks have this binding, and this is a {kind.value} hook"
    return {binding.value: sentence for binding in LIFECYCLE[other] if binding not in LIFECYCLE[kind]}


def _current(kind: HookKind) -> Schema:
    return schema_parts.mapping(
        {
            "configVersion": {"const": "v1"},
            "settings": _SETTINGS,
            **_lifecycle(kind),
            "schedule": schema_parts.listing(_SCHEDULE, at_least=1),
            "kubernetes": schema_parts.listing(_KUBERNETES, at_least=1),
            **webhook_schemas.BY_KEY,
        },
        elsewhere={
            "onKubernetesEvent": "this belongs to configurations without configVersion; write 'kubernetes'",
            **_foreign_lifecycle(kind),
        },
    )


def _legacy(kind: HookKind) -> Schema:
    needs_version = "this needs 'configVersion: v1' in the configuration"
    return schema_parts.mapping(
        {
            **_lifecycle(kind),
            "schedule": schema_parts.listing(_LEGACY_SCHEDULE),
            "onKubernetesEvent": schema_parts.listing(_LEGACY_KUBERNETES),
        },
        elsewhere={
            **dict.fromkeys(
                ("configVersion", "kubernetes", "settings", *webhook_schemas.BY_KEY),
                needs_version,
            ),
            **_foreign_lifecycle(kind),
        },
    )


CURRENT: Final[Mapping[HookKind, Schema]] = {kind: _current(kind) for kind in HookKind}
"""Schemas of ``configVersion: v1``."""
LEGACY: Final[Mapping[HookKind, Schema]] = {kind: _legacy(kind) for kind in HookKind}
"""Schemas of configurations without ``configVersion``."""
