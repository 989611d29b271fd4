"""The shapes of what stands in hook configurations, as JSON Schema; :mod:`.binding_types` puts them together.

Source: "Bindings" of the addon-operator documentation, the hook configuration of shell-operator, on which
that builds, and ``admissionregistration.k8s.io/v1`` of the Kubernetes API, to which most fields of webhooks
go as they are. Beyond the standard, a schema may hold ``x-elsewhere``: sentences for keys that are unknown
where they stand but mean something in another place.
"""

import enum
from collections.abc import Mapping
from typing import Any, Final, TypeAlias

from addon_operator.hook_contract.configuration import bindings

Schema: TypeAlias = Mapping[str, Any]


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

_BOOL: Final[Schema] = {"type": "boolean"}
ORDER: Final[Schema] = {"type": "integer", "minimum": -(2**53), "maximum": 2**53}
_PERIOD: Final[Schema] = {"type": "string", "format": "period"}
_JQ: Final[Schema] = {"type": "string", "format": "jq"}
_NAME_SELECTOR: Final = mapping({"matchNames": listing(NAME)}, required=("matchNames",))
_FIELD_SELECTOR: Final = mapping(
    {
        "matchExpressions": listing(
            mapping(
                {
                    "field": NAME,
                    "operator": {"enum": ["=", "==", "Equals", "!=", "NotEquals"]},
                    "value": TEXT,
                },
                required=("field", "operator", "value"),
            )
        )
    },
    required=("matchExpressions",),
)
_NAMESPACE: Final = mapping(
    {"nameSelector": _NAME_SELECTOR, "labelSelector": LABEL_SELECTOR}, minProperties=1
)
_EVENTS: Final = listing({"enum": list(bindings.WatchEvent)})

SETTINGS: Final = mapping(
    {
        "executionMinInterval": _PERIOD,
        "executionMinPeriod": _PERIOD,
        "executionBurst": {"type": "integer", "minimum": 0, "maximum": 2**53},
        "executionTimeout": _PERIOD,
    }
)
_COMMON: Final[Mapping[str, Schema]] = {
    "name": TEXT,
    "queue": TEXT,
    "group": TEXT,
    "allowFailure": _BOOL,
    "includeSnapshotsFrom": listing(NAME, at_least=1),
}
_CRONTAB: Final[Schema] = {"type": "string", "format": "crontab"}
SCHEDULE: Final = mapping(
    {**_COMMON, "crontab": _CRONTAB, "timezone": {"type": "string", "format": "timezone"}},
    required=("crontab",),
)
KUBERNETES: Final = mapping(
    {
        **_COMMON,
        "apiVersion": {"type": "string", "format": "api-version-or-empty"},
        "kind": NAME,
        "executeHookOnEvent": _EVENTS,
        "watchEvent": _EVENTS,
        "executeHookOnSynchronization": _BOOL,
        "waitForSynchronization": _BOOL,
        "keepFullObjectsInMemory": _BOOL,
        "keepOldObject": _BOOL,
        "resynchronizationPeriod": _PERIOD,
        "nameSelector": _NAME_SELECTOR,
        "labelSelector": LABEL_SELECTOR,
        "fieldSelector": _FIELD_SELECTOR,
        "namespace": _NAMESPACE,
        "jqFilter": _JQ,
    },
    required=("kind",),
    elsewhere={"namespaceSelector": "write 'namespace' with a 'nameSelector' or 'labelSelector' in it"},
)
LEGACY_SCHEDULE: Final = mapping(
    {"name": TEXT, "crontab": _CRONTAB, "allowFailure": _BOOL}, required=("crontab",)
)
LEGACY_KUBERNETES: Final = mapping(
    {
        "name": TEXT,
        "event": listing({"enum": ["add", "update", "delete"]}),
        "kind": NAME,
        "selector": LABEL_SELECTOR,
        "objectName": TEXT,
        "namespaceSelector": mapping({"matchNames": listing(NAME), "any": _BOOL}),
        "jqFilter": _JQ,
        "allowFailure": _BOOL,
        # Old hooks have it; it was about logs of the Go operator.
        "disableDebug": _BOOL,
    },
    required=("kind",),
)


LONGEST_SECONDS: Final = 30
"""What the API server waits at the most."""
MOST_CONDITIONS: Final = 64
"""What the API server takes of ``matchConditions``."""

_GROUP: Final[Schema] = {"type": "string", "format": "rule-group"}
_RULE_VERSION: Final[Schema] = {"type": "string", "format": "rule-version"}
_RESOURCE: Final[Schema] = {"type": "string", "format": "rule-resource"}
_RULE: Final = mapping(
    {
        "apiGroups": listing(_GROUP, at_least=1),
        "apiVersions": listing(_RULE_VERSION, at_least=1),
        "resources": listing(_RESOURCE, at_least=1),
        "operations": listing({"enum": ["CREATE", "UPDATE", "DELETE", "CONNECT", "*"]}, 1),
        "scope": {"enum": ["Cluster", "Namespaced", "*"]},
    },
    required=("apiGroups", "apiVersions", "resources", "operations"),
)
_CONDITION: Final = mapping(
    {"name": {"type": "string", "format": "label-key"}, "expression": NAME},
    required=("name", "expression"),
)
_OF_LABELS: Final = mapping(
    {"labelSelector": LABEL_SELECTOR},
    required=("labelSelector",),
    elsewhere={
        "nameSelector": "the API server selects namespaces by labels: write a labelSelector, "
        "with the label kubernetes.io/metadata.name for a name"
    },
)
_NEVER_RUNS: Final = "this binding runs for requests of the API server, not in a queue; remove it"
ADMISSION: Final = mapping(
    {
        "name": {"type": "string", "format": "webhook-name"},
        "group": TEXT,
        "includeSnapshotsFrom": listing(NAME, at_least=1),
        "labelSelector": LABEL_SELECTOR,
        "namespace": _OF_LABELS,
        "rules": listing(_RULE, at_least=1),
        "failurePolicy": {"enum": ["Ignore", "Fail"]},
        "locks": {"enum": ["cluster"]},
        "sideEffects": {"enum": ["None", "NoneOnDryRun"]},
        "timeoutSeconds": {"type": "integer", "minimum": 1, "maximum": LONGEST_SECONDS},
        "matchConditions": listing(_CONDITION),
    },
    required=("name", "rules"),
    elsewhere={
        "queue": _NEVER_RUNS,
        "allowFailure": "write failurePolicy: Ignore, or let the hook answer",
        "objectSelector": "write labelSelector",
        "namespaceSelector": "write 'namespace' with a 'labelSelector' in it",
        "matchPolicy": "it is always Equivalent; remove it",
        "clientConfig": "the operator writes it; remove it",
    },
)

_VERSION: Final[Schema] = {"type": "string", "format": "api-version"}
CONVERSION: Final = mapping(
    {
        "name": TEXT,
        "group": TEXT,
        "includeSnapshotsFrom": listing(NAME, at_least=1),
        "crdName": {"type": "string", "format": "crd-name"},
        "conversions": listing(
            mapping({"fromVersion": _VERSION, "toVersion": _VERSION}, required=("fromVersion", "toVersion")),
            at_least=1,
        ),
    },
    required=("crdName", "conversions"),
    elsewhere={"queue": _NEVER_RUNS},
)
