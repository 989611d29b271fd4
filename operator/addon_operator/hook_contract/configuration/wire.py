"""Hook configurations as they are written, once their shape is checked against :mod:`.schemas`."""

from typing import NotRequired, TypedDict


class RawLabelRequirement(TypedDict):
    """One item of a label selector's ``matchExpressions``."""

    key: str
    operator: str
    values: NotRequired[list[str]]


class RawLabelSelector(TypedDict, total=False):
    """``labelSelector``."""

    matchLabels: dict[str, str]
    matchExpressions: list[RawLabelRequirement]


class RawNameSelector(TypedDict):
    """``nameSelector``."""

    matchNames: list[str]


class RawFieldRequirement(TypedDict):
    """One item of a field selector's ``matchExpressions``."""

    field: str
    operator: str
    value: str


class RawFieldSelector(TypedDict):
    """``fieldSelector``."""

    matchExpressions: list[RawFieldRequirement]


class RawNamespace(TypedDict, total=False):
    """``namespace``."""

    nameSelector: RawNameSelector
    labelSelector: RawLabelSelector


class RawSettings(TypedDict, total=False):
    """``settings``."""

    executionMinInterval: str
    executionMinPeriod: str
    executionBurst: int
    executionTimeout: str


class RawBinding(TypedDict, total=False):
    """What items of ``schedule`` and ``kubernetes`` have in common."""

    name: str
    queue: str
    group: str
    allowFailure: bool
    includeSnapshotsFrom: list[str]


class RawSchedule(RawBinding):
    """One item of ``schedule``."""

    crontab: str
    timezone: NotRequired[str]


class RawKubernetes(RawBinding):
    """One item of ``kubernetes``."""

    kind: str
    apiVersion: NotRequired[str]
    executeHookOnEvent: NotRequired[list[str]]
    watchEvent: NotRequired[list[str]]
    executeHookOnSynchronization: NotRequired[bool]
    waitForSynchronization: NotRequired[bool]
    keepFullObjectsInMemory: NotRequired[bool]
    resynchronizationPeriod: NotRequired[str]
    nameSelector: NotRequired[RawNameSelector]
    labelSelector: NotRequired[RawLabelSelector]
    fieldSelector: NotRequired[RawFieldSelector]
    namespace: NotRequired[RawNamespace]
    jqFilter: NotRequired[str]


class RawConfig(TypedDict, total=False):
    """A configuration with ``configVersion: v1``; the lifecycle bindings stand beside these keys."""

    configVersion: str
    settings: RawSettings
    schedule: list[RawSchedule]
    kubernetes: list[RawKubernetes]


class RawLegacySchedule(TypedDict):
    """One item of ``schedule`` without ``configVersion``."""

    crontab: str
    name: NotRequired[str]
    allowFailure: NotRequired[bool]


class RawLegacyNamespaces(TypedDict, total=False):
    """``namespaceSelector`` without ``configVersion``."""

    matchNames: list[str]
    any: bool


class RawLegacyKubernetes(TypedDict):
    """One item of ``onKubernetesEvent``."""

    kind: str
    name: NotRequired[str]
    event: NotRequired[list[str]]
    selector: NotRequired[RawLabelSelector]
    objectName: NotRequired[str]
    namespaceSelector: NotRequired[RawLegacyNamespaces]
    jqFilter: NotRequired[str]
    allowFailure: NotRequired[bool]


class RawLegacyConfig(TypedDict, total=False):
    """A configuration without ``configVersion``."""

    schedule: list[RawLegacySchedule]
    onKubernetesEvent: list[RawLegacyKubernetes]
