"""Reads bindings from a configuration whose shape is checked already, and says what that shape is.

A configuration without ``configVersion`` is one of v0, here called legacy: such a hook never gets a
Synchronization run, and its contexts have a shape of their own.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Final, NotRequired, TypedDict

from addon_operator.hook_contract.configuration import bindings, crontab
from addon_operator.kernel import durations

DEPRECATION: Final = "the configuration has no configVersion and is read as v0; write 'configVersion: v1'"

_EQUAL: Final = frozenset({"=", "==", "Equals"})
_LEGACY_EVENTS: Final = {
    "add": bindings.WatchEvent.ADDED,
    "update": bindings.WatchEvent.MODIFIED,
    "delete": bindings.WatchEvent.DELETED,
}


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


def schedules(raw: RawConfig) -> tuple[bindings.ScheduleBinding, ...]:
    """The bindings of ``schedule``."""
    groups = _group_snapshots(raw.get("kubernetes", ()))
    return tuple(_schedule(item, groups) for item in raw.get("schedule", ()))


def kubernetes(raw: RawConfig) -> tuple[bindings.KubernetesBinding, ...]:
    """The bindings of ``kubernetes``."""
    items = raw.get("kubernetes", ())
    groups = _group_snapshots(items)
    return tuple(_kubernetes(item, groups) for item in items)


def binding_name(item: RawKubernetes) -> str:
    """The name of a kubernetes binding, which it need not have written."""
    return item.get("name") or bindings.KUBERNETES_NAME


def label_selector(raw: RawLabelSelector) -> bindings.LabelSelector:
    """A label selector."""
    return bindings.LabelSelector(
        match_labels=tuple(sorted(raw.get("matchLabels", {}).items())),
        match_expressions=tuple(
            bindings.LabelRequirement(
                item["key"], bindings.LabelOperator(item["operator"]), tuple(item.get("values", ()))
            )
            for item in raw.get("matchExpressions", ())
        ),
    )


def period(text: str | None) -> float | None:
    """Seconds of an optional duration."""
    return None if text is None else durations.parse(text)


def _group_snapshots(items: Iterable[RawKubernetes]) -> Mapping[str, Sequence[str]]:
    groups: dict[str, list[str]] = {}
    for item in items:
        if name := item.get("group"):
            groups.setdefault(name, []).append(binding_name(item))
    return groups


def _snapshots(item: RawBinding, groups: Mapping[str, Sequence[str]]) -> tuple[str, ...]:
    listed = [*item.get("includeSnapshotsFrom", ()), *groups.get(item.get("group", ""), ())]
    return tuple(dict.fromkeys(listed))


def _schedule(item: RawSchedule, groups: Mapping[str, Sequence[str]]) -> bindings.ScheduleBinding:
    return bindings.ScheduleBinding(
        crontab=crontab.parse(item["crontab"], item.get("timezone")),
        name=item.get("name") or bindings.SCHEDULE_NAME,
        queue=item.get("queue") or bindings.MAIN_QUEUE,
        group=item.get("group") or None,
        allow_failure=item.get("allowFailure", False),
        include_snapshots_from=_snapshots(item, groups),
    )


def _kubernetes(item: RawKubernetes, groups: Mapping[str, Sequence[str]]) -> bindings.KubernetesBinding:
    queue = item.get("queue") or bindings.MAIN_QUEUE
    return bindings.KubernetesBinding(
        kind=item["kind"],
        api_version=item.get("apiVersion") or None,
        name=binding_name(item),
        queue=queue,
        group=item.get("group") or None,
        allow_failure=item.get("allowFailure", False),
        include_snapshots_from=_snapshots(item, groups),
        execute_on_event=_events(item),
        execute_on_synchronization=item.get("executeHookOnSynchronization", True),
        # In "main" the next step waits behind the Synchronization run in any case.
        wait_for_synchronization=item.get("waitForSynchronization", True) or queue == bindings.MAIN_QUEUE,
        keep_full_objects=item.get("keepFullObjectsInMemory", True),
        resynchronization_period=period(item.get("resynchronizationPeriod")),
        names=_names(item.get("nameSelector")),
        labels=label_selector(item["labelSelector"]) if "labelSelector" in item else None,
        fields=_fields(item),
        namespaces=_namespaces(item.get("namespace")),
        jq_filter=item.get("jqFilter") or None,
    )


def _events(item: RawKubernetes) -> frozenset[bindings.WatchEvent]:
    names = item.get("executeHookOnEvent", item.get("watchEvent"))
    return frozenset(bindings.WatchEvent) if names is None else frozenset(map(bindings.WatchEvent, names))


def _names(raw: RawNameSelector | None) -> tuple[str, ...]:
    return tuple(dict.fromkeys(raw["matchNames"])) if raw else ()


def _fields(item: RawKubernetes) -> tuple[bindings.FieldRequirement, ...]:
    selector = item.get("fieldSelector")
    requirements = selector["matchExpressions"] if selector else ()
    return tuple(
        bindings.FieldRequirement(raw["field"], raw["value"], is_equal=raw["operator"] in _EQUAL)
        for raw in requirements
    )


def _namespaces(raw: RawNamespace | None) -> bindings.NamespaceSelector | None:
    if raw is None:
        return None
    labels = label_selector(raw["labelSelector"]) if "labelSelector" in raw else None
    return bindings.NamespaceSelector(_names(raw.get("nameSelector")), labels)


def legacy_schedules(raw: RawLegacyConfig) -> tuple[bindings.ScheduleBinding, ...]:
    """The bindings of ``schedule``."""
    return tuple(
        bindings.ScheduleBinding(
            crontab=crontab.parse(item["crontab"]),
            name=item.get("name") or bindings.SCHEDULE_NAME,
            allow_failure=item.get("allowFailure", False),
        )
        for item in raw.get("schedule", ())
    )


def legacy_kubernetes(raw: RawLegacyConfig) -> tuple[bindings.KubernetesBinding, ...]:
    """The bindings of ``onKubernetesEvent``."""
    return tuple(_legacy_kubernetes(item) for item in raw.get("onKubernetesEvent", ()))


def _legacy_kubernetes(item: RawLegacyKubernetes) -> bindings.KubernetesBinding:
    name = item.get("objectName")
    return bindings.KubernetesBinding(
        kind=item["kind"],
        name=item.get("name") or "onKubernetesEvent",
        allow_failure=item.get("allowFailure", False),
        execute_on_event=frozenset(_LEGACY_EVENTS[event] for event in item.get("event", _LEGACY_EVENTS)),
        execute_on_synchronization=False,
        wait_for_synchronization=False,
        names=(name,) if name else (),
        labels=label_selector(item["selector"]) if "selector" in item else None,
        namespaces=_legacy_namespaces(item.get("namespaceSelector")),
        jq_filter=item.get("jqFilter") or None,
    )


def _legacy_namespaces(raw: RawLegacyNamespaces | None) -> bindings.NamespaceSelector | None:
    if raw is None or raw.get("any") or not raw.get("matchNames"):
        return None
    return bindings.NamespaceSelector(tuple(dict.fromkeys(raw["matchNames"])))
