"""The shape of hook configurations as JSON Schema, one per version and kind of hook.

Source: "Bindings" of the addon-operator documentation and the hook configuration of shell-operator, on which
that builds. Beyond the standard, a schema may hold ``x-elsewhere``: sentences for keys that are unknown where
they stand but mean something in another place.
"""

import enum
from collections.abc import Mapping
from typing import Any, Final

from addon_operator.hook_contract.configuration import bindings

Schema = Mapping[str, Any]


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

UNSUPPORTED: Final = ("kubernetesValidating", "kubernetesMutating", "kubernetesCustomResourceConversion")
"""Keys of shell-operator that addon-operator reads and has never acted upon."""


def _object(
    properties: Mapping[str, Schema],
    required: tuple[str, ...] = (),
    elsewhere: Mapping[str, str] | None = None,
    **more: object,
) -> Schema:
    return {
        "type": "object",
        "additionalProperties": False,
        "properties": properties,
        "required": list(required),
        "x-elsewhere": elsewhere or {},
        **more,
    }


def _list(items: Schema, at_least: int = 0) -> Schema:
    return {"type": "array", "items": items, "minItems": at_least}


_TEXT: Final[Schema] = {"type": "string"}
_NAME: Final[Schema] = {"type": "string", "minLength": 1}
_BOOL: Final[Schema] = {"type": "boolean"}
_ORDER: Final[Schema] = {"type": "integer"}
_PERIOD: Final[Schema] = {"type": "string", "format": "period"}
_JQ: Final[Schema] = {"type": "string", "format": "jq"}
_LABEL_KEY: Final[Schema] = {"type": "string", "format": "label-key"}
_LABEL_VALUE: Final[Schema] = {"type": "string", "format": "label-value"}

_WITH_VALUES: Final = [bindings.LabelOperator.IN, bindings.LabelOperator.NOT_IN]
_WITHOUT_VALUES: Final = [bindings.LabelOperator.EXISTS, bindings.LabelOperator.DOES_NOT_EXIST]
_LABEL_REQUIREMENT: Final = _object(
    {
        "key": _LABEL_KEY,
        "operator": {"enum": list(bindings.LabelOperator)},
        "values": _list(_LABEL_VALUE),
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
_LABEL_SELECTOR: Final = _object(
    {
        "matchLabels": {
            "type": "object",
            "propertyNames": _LABEL_KEY,
            "additionalProperties": _LABEL_VALUE,
        },
        "matchExpressions": _list(_LABEL_REQUIREMENT),
    },
    minProperties=1,
)
_NAME_SELECTOR: Final = _object({"matchNames": _list(_NAME)}, required=("matchNames",))
_FIELD_SELECTOR: Final = _object(
    {
        "matchExpressions": _list(
            _object(
                {
                    "field": _NAME,
                    "operator": {"enum": ["=", "==", "Equals", "!=", "NotEquals"]},
                    "value": _TEXT,
                },
                required=("field", "operator", "value"),
            )
        )
    },
    required=("matchExpressions",),
)
_NAMESPACE: Final = _object(
    {"nameSelector": _NAME_SELECTOR, "labelSelector": _LABEL_SELECTOR}, minProperties=1
)
_EVENTS: Final = _list({"enum": list(bindings.WatchEvent)})

_SETTINGS: Final = _object(
    {
        "executionMinInterval": _PERIOD,
        "executionMinPeriod": _PERIOD,
        "executionBurst": {"type": "integer", "minimum": 1},
        "executionTimeout": _PERIOD,
    }
)
_COMMON: Final[Mapping[str, Schema]] = {
    "name": _TEXT,
    "queue": _TEXT,
    "group": _TEXT,
    "allowFailure": _BOOL,
    "includeSnapshotsFrom": _list(_NAME, at_least=1),
}
_CRONTAB: Final[Schema] = {"type": "string", "format": "crontab"}
_SCHEDULE: Final = _object(
    {**_COMMON, "crontab": _CRONTAB, "timezone": {"type": "string", "format": "timezone"}},
    required=("crontab",),
)
_KUBERNETES: Final = _object(
    {
        **_COMMON,
        "apiVersion": {"type": "string", "format": "api-version"},
        "kind": _NAME,
        "executeHookOnEvent": _EVENTS,
        "watchEvent": _EVENTS,
        "executeHookOnSynchronization": _BOOL,
        "waitForSynchronization": _BOOL,
        "keepFullObjectsInMemory": _BOOL,
        "keepOldObject": _BOOL,
        "resynchronizationPeriod": _PERIOD,
        "nameSelector": _NAME_SELECTOR,
        "labelSelector": _LABEL_SELECTOR,
        "fieldSelector": _FIELD_SELECTOR,
        "namespace": _NAMESPACE,
        "jqFilter": _JQ,
    },
    required=("kind",),
    elsewhere={"namespaceSelector": "write 'namespace' with a 'nameSelector' or 'labelSelector' in it"},
)
_LEGACY_SCHEDULE: Final = _object(
    {"name": _TEXT, "crontab": _CRONTAB, "allowFailure": _BOOL}, required=("crontab",)
)
_LEGACY_KUBERNETES: Final = _object(
    {
        "name": _TEXT,
        "event": _list({"enum": ["add", "update", "delete"]}),
        "kind": _NAME,
        "selector": _LABEL_SELECTOR,
        "objectName": _TEXT,
        "namespaceSelector": _object({"matchNames": _list(_NAME), "any": _BOOL}),
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
    return _object(
        {
            "configVersion": {"const": "v1"},
            "settings": _SETTINGS,
            **_lifecycle(kind),
            "schedule": _list(_SCHEDULE, at_least=1),
            "kubernetes": _list(_KUBERNETES, at_least=1),
            **{key: {"type": "array"} for key in UNSUPPORTED},
        },
        elsewhere={
            "onKubernetesEvent": "this belongs to configurations without configVersion; write 'kubernetes'",
            **_foreign_lifecycle(kind),
        },
    )


def _legacy(kind: HookKind) -> Schema:
    needs_version = "this needs 'configVersion: v1' in the configuration"
    return _object(
        {
            **_lifecycle(kind),
            "schedule": _list(_LEGACY_SCHEDULE),
            "onKubernetesEvent": _list(_LEGACY_KUBERNETES),
        },
        elsewhere={
            **dict.fromkeys(("configVersion", "kubernetes", "settings", *UNSUPPORTED), needs_version),
            **_foreign_lifecycle(kind),
        },
    )


CURRENT: Final[Mapping[HookKind, Schema]] = {kind: _current(kind) for kind in HookKind}
"""Schemas of ``configVersion: v1``."""
LEGACY: Final[Mapping[HookKind, Schema]] = {kind: _legacy(kind) for kind in HookKind}
"""Schemas of configurations without ``configVersion``."""
