"""From a checked configuration with ``configVersion: v1`` to bindings."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from addon_operator.hook_contract.configuration import bindings, crontab, wire
from addon_operator.kernel import durations

_EQUAL: Final = frozenset({"=", "==", "Equals"})


def schedules(raw: wire.RawConfig) -> tuple[bindings.ScheduleBinding, ...]:
    """The bindings of ``schedule``."""
    groups = _group_snapshots(raw.get("kubernetes", ()))
    return tuple(_schedule(item, groups) for item in raw.get("schedule", ()))


def kubernetes(raw: wire.RawConfig) -> tuple[bindings.KubernetesBinding, ...]:
    """The bindings of ``kubernetes``."""
    items = raw.get("kubernetes", ())
    groups = _group_snapshots(items)
    return tuple(_kubernetes(item, groups) for item in items)


def binding_name(item: wire.RawKubernetes) -> str:
    """The name of a kubernetes binding, which it need not have written."""
    return item.get("name") or bindings.KUBERNETES_NAME


def label_selector(raw: wire.RawLabelSelector) -> bindings.LabelSelector:
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


def _group_snapshots(items: Iterable[wire.RawKubernetes]) -> Mapping[str, Sequence[str]]:
    groups: dict[str, list[str]] = {}
    for item in items:
        if name := item.get("group"):
            groups.setdefault(name, []).append(binding_name(item))
    return groups


def _snapshots(item: wire.RawBinding, groups: Mapping[str, Sequence[str]]) -> tuple[str, ...]:
    listed = [*item.get("includeSnapshotsFrom", ()), *groups.get(item.get("group", ""), ())]
    return tuple(dict.fromkeys(listed))


def _schedule(item: wire.RawSchedule, groups: Mapping[str, Sequence[str]]) -> bindings.ScheduleBinding:
    return bindings.ScheduleBinding(
        crontab=crontab.parse(item["crontab"], item.get("timezone")),
        name=item.get("name") or bindings.SCHEDULE_NAME,
        queue=item.get("queue") or bindings.MAIN_QUEUE,
        group=item.get("group") or None,
        allow_failure=item.get("allowFailure", False),
        include_snapshots_from=_snapshots(item, groups),
    )


def _kubernetes(item: wire.RawKubernetes, groups: Mapping[str, Sequence[str]]) -> bindings.KubernetesBinding:
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


def _events(item: wire.RawKubernetes) -> frozenset[bindings.WatchEvent]:
    names = item.get("executeHookOnEvent", item.get("watchEvent"))
    return frozenset(bindings.WatchEvent) if names is None else frozenset(map(bindings.WatchEvent, names))


def _names(raw: wire.RawNameSelector | None) -> tuple[str, ...]:
    return tuple(dict.fromkeys(raw["matchNames"])) if raw else ()


def _fields(item: wire.RawKubernetes) -> tuple[bindings.FieldRequirement, ...]:
    selector = item.get("fieldSelector")
    requirements = selector["matchExpressions"] if selector else ()
    return tuple(
        bindings.FieldRequirement(raw["field"], raw["value"], is_equal=raw["operator"] in _EQUAL)
        for raw in requirements
    )


def _namespaces(raw: wire.RawNamespace | None) -> bindings.NamespaceSelector | None:
    if raw is None:
        return None
    labels = label_selector(raw["labelSelector"]) if "labelSelector" in raw else None
    return bindings.NamespaceSelector(_names(raw.get("nameSelector")), labels)
