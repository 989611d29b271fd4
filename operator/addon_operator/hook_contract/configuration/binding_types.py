"""The types of bindings: one table, from which schemas, checks and reading of configurations follow.

A configuration without ``configVersion`` is one of v0, here called legacy, and has types of its own.
"""

import functools
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final, Literal, TypeAlias

import msgspec

from addon_operator.hook_contract import crontab
from addon_operator.hook_contract.configuration import (
    config_schemas,
    conversion_bindings,
    crosschecks,
    webhook_bindings,
)
from addon_operator.hook_contract.configuration.bindings import (
    KUBERNETES_NAME,
    MAIN_QUEUE,
    SCHEDULE_NAME,
    FieldRequirement,
    KubernetesBinding,
    LabelOperator,
    LabelRequirement,
    LabelSelector,
    NamespaceSelector,
    ScheduleBinding,
    WatchEvent,
)
from addon_operator.hook_contract.configuration.config_schemas import HookKind, Schema
from addon_operator.kernel import clock

Raw: TypeAlias = Mapping[str, Any]
"""A part of a configuration that was checked; :mod:`.config_schemas` says which keys and types it has."""
Groups: TypeAlias = Mapping[str, Sequence[str]]
"""Names of kubernetes bindings by their group."""
_EQUAL: Final = frozenset({"=", "==", "Equals"})
_LEGACY_EVENTS: Final = {
    "add": WatchEvent.ADDED,
    "update": WatchEvent.MODIFIED,
    "delete": WatchEvent.DELETED,
}


class BindingType(msgspec.Struct, frozen=True):
    """One type of bindings that stand in a list."""

    key: str
    """In the configuration."""
    item: Schema
    """The shape of one binding."""
    field: Literal["schedules", "kubernetes", "webhooks", "conversions"]
    """Of :class:`.HookConfig`, to which the bindings go."""
    read: Callable[[Raw, Groups], object]
    checks: tuple[crosschecks.Check, ...] = ()
    """What is wrong beyond the shape."""
    warnings: tuple[crosschecks.Check, ...] = ()
    """What is allowed and yet hardly meant."""


def group_snapshots(items: Iterable[Raw]) -> Groups:
    """Return the names of kubernetes bindings by their group."""
    groups: dict[str, list[str]] = {}
    for item in items:
        if name := item.get("group"):
            groups.setdefault(name, []).append(item.get("name") or KUBERNETES_NAME)
    return groups


def _common(item: Raw, default_name: str, groups: Groups) -> dict[str, Any]:
    """Return what schedule and kubernetes bindings have in common."""
    return {
        "name": item.get("name") or default_name,
        "queue": item.get("queue") or MAIN_QUEUE,
        "group": item.get("group") or None,
        "allow_failure": item.get("allowFailure", False),
        "include_snapshots_from": _snapshots(item, groups),
    }


def _snapshots(item: Raw, groups: Groups) -> tuple[str, ...]:
    listed = [*item.get("includeSnapshotsFrom", ()), *groups.get(item.get("group", ""), ())]
    return tuple(dict.fromkeys(listed))


def _schedule(item: Raw, groups: Groups) -> ScheduleBinding:
    return ScheduleBinding(
        **_common(item, SCHEDULE_NAME, groups), crontab=crontab.parse(item["crontab"], item.get("timezone"))
    )


def _kubernetes(item: Raw, groups: Groups) -> KubernetesBinding:
    common = _common(item, KUBERNETES_NAME, groups)
    return KubernetesBinding(
        **common,
        kind=item["kind"],
        api_version=item.get("apiVersion") or None,
        execute_on_event=_events(item),
        execute_on_synchronization=item.get("executeHookOnSynchronization", True),
        # In "main" the next step waits behind the Synchronization run in any case.
        wait_for_synchronization=item.get("waitForSynchronization", True) or common["queue"] == MAIN_QUEUE,
        keep_full_objects=item.get("keepFullObjectsInMemory", True),
        keep_old_object=item.get("keepOldObject", False),
        resynchronization_period=period(item.get("resynchronizationPeriod")),
        names=_names(item.get("nameSelector")),
        labels=_label_selector(item.get("labelSelector")),
        fields=_fields(item),
        namespaces=_namespaces(item.get("namespace")),
        jq_filter=item.get("jqFilter") or None,
    )


def _events(item: Raw) -> frozenset[WatchEvent]:
    names = item.get("executeHookOnEvent", item.get("watchEvent"))
    return frozenset(WatchEvent) if names is None else frozenset(map(WatchEvent, names))


def _names(raw: Raw | None) -> tuple[str, ...]:
    return tuple(dict.fromkeys(raw["matchNames"])) if raw else ()


def _fields(item: Raw) -> tuple[FieldRequirement, ...]:
    return tuple(
        FieldRequirement(raw["field"], raw["value"], is_equal=raw["operator"] in _EQUAL)
        for raw in item.get("fieldSelector", {}).get("matchExpressions", ())
    )


def _namespaces(raw: Raw | None) -> NamespaceSelector | None:
    if raw is None:
        return None
    return NamespaceSelector(_names(raw.get("nameSelector")), _label_selector(raw.get("labelSelector")))


def _legacy_kubernetes(item: Raw, _: Groups) -> KubernetesBinding:
    name = item.get("objectName")
    return KubernetesBinding(
        kind=item["kind"],
        name=item.get("name") or "onKubernetesEvent",
        allow_failure=item.get("allowFailure", False),
        execute_on_event=frozenset(_LEGACY_EVENTS[event] for event in item.get("event", _LEGACY_EVENTS)),
        execute_on_synchronization=False,
        wait_for_synchronization=False,
        names=(name,) if name else (),
        labels=_label_selector(item.get("selector")),
        namespaces=_legacy_namespaces(item.get("namespaceSelector")),
        jq_filter=item.get("jqFilter") or None,
    )


def _legacy_namespaces(raw: Raw | None) -> NamespaceSelector | None:
    if raw is None or raw.get("any") or not raw.get("matchNames"):
        return None
    return NamespaceSelector(tuple(dict.fromkeys(raw["matchNames"])))


def _label_selector(raw: Raw | None) -> LabelSelector | None:
    if raw is None:
        return None
    return LabelSelector(
        match_labels=tuple(sorted(raw.get("matchLabels", {}).items())),
        match_expressions=tuple(
            LabelRequirement(item["key"], LabelOperator(item["operator"]), tuple(item.get("values", ())))
            for item in raw.get("matchExpressions", ())
        ),
    )


def period(text: str | None) -> float | None:
    """Return the seconds of a time with its unit."""
    return None if text is None else clock.parse_duration(text)


def _webhook(
    asked: webhook_bindings.ReviewType, item: Raw, groups: Groups
) -> webhook_bindings.WebhookBinding:
    return webhook_bindings.WebhookBinding(
        type=asked,
        name=item["name"],
        rules=tuple(
            webhook_bindings.WebhookRule(
                api_groups=tuple(raw["apiGroups"]),
                api_versions=tuple(raw["apiVersions"]),
                resources=tuple(raw["resources"]),
                operations=tuple(raw["operations"]),
                scope=raw.get("scope", "*"),
            )
            for raw in item["rules"]
        ),
        include_snapshots_from=_snapshots(item, groups),
        objects=_label_selector(item.get("labelSelector")),
        namespaces=_label_selector(item.get("namespace", {}).get("labelSelector")),
        failure_policy=item.get("failurePolicy", "Fail"),
        side_effects=item.get("sideEffects", "None"),
        timeout_seconds=int(item.get("timeoutSeconds", webhook_bindings.DEFAULT_TIMEOUT)),
        match_conditions=tuple(
            (each["name"], each["expression"]) for each in item.get("matchConditions", ())
        ),
    )


def _conversion(item: Raw, groups: Groups) -> conversion_bindings.ConversionBinding:
    return conversion_bindings.ConversionBinding(
        crd_name=item["crdName"],
        rules=tuple(
            conversion_bindings.ConversionRule(raw["fromVersion"], raw["toVersion"])
            for raw in item["conversions"]
        ),
        name=item.get("name") or conversion_bindings.KEY,
        include_snapshots_from=_snapshots(item, groups),
    )


TYPES: Final = (
    BindingType(
        "schedule",
        config_schemas.SCHEDULE,
        "schedules",
        _schedule,
        checks=(crosschecks.unknown_snapshots, crosschecks.two_timezones),
        warnings=(crosschecks.not_portable,),
    ),
    BindingType(
        "kubernetes",
        config_schemas.KUBERNETES,
        "kubernetes",
        _kubernetes,
        checks=(crosschecks.unknown_snapshots, crosschecks.contradictions),
        warnings=(crosschecks.shared_names, crosschecks.hardly_meant),
    ),
    *(
        BindingType(
            asked.key,
            config_schemas.ADMISSION,
            "webhooks",
            functools.partial(_webhook, asked),
            checks=(
                crosschecks.unknown_snapshots,
                crosschecks.conditions,
                crosschecks.rules,
                crosschecks.same_names,
            ),
            warnings=(crosschecks.without_group, crosschecks.kinds_as_resources, crosschecks.blocking),
        )
        for asked in webhook_bindings.ReviewType
    ),
    BindingType(
        conversion_bindings.KEY,
        config_schemas.CONVERSION,
        "conversions",
        _conversion,
        checks=(crosschecks.unknown_snapshots, crosschecks.versions_of_other_groups, crosschecks.conversions),
        warnings=(crosschecks.without_group,),
    ),
)
"""Types of ``configVersion: v1``."""
LEGACY_TYPES: Final = (
    BindingType(
        "schedule",
        config_schemas.LEGACY_SCHEDULE,
        "schedules",
        _schedule,
        warnings=(crosschecks.not_portable,),
    ),
    BindingType("onKubernetesEvent", config_schemas.LEGACY_KUBERNETES, "kubernetes", _legacy_kubernetes),
)
"""Types of configurations without ``configVersion``."""


def _schema(
    kind: HookKind, types: Iterable[BindingType], more: Raw, elsewhere: Mapping[str, str], least: int
) -> Schema:
    """Return the shape of a configuration; ``least``: how many bindings a list has at least."""
    other = HookKind.MODULE if kind is HookKind.GLOBAL else HookKind.GLOBAL
    sentence = f"only {other.value} hooks have this binding, and this is a {kind.value} hook"
    own, foreign = config_schemas.LIFECYCLE[kind], config_schemas.LIFECYCLE[other]
    return config_schemas.mapping(
        {
            **more,
            **{step.value: config_schemas.ORDER for step in own},
            **{each.key: config_schemas.listing(each.item, least) for each in types},
        },
        elsewhere={**elsewhere, **{step.value: sentence for step in foreign if step not in own}},
    )


_LEGACY_KEYS: Final = {each.key for each in LEGACY_TYPES}
_NEEDS_VERSION: Final = {
    key: "this needs 'configVersion: v1' in the configuration"
    for key in ("configVersion", "settings", *(each.key for each in TYPES))
    if key not in _LEGACY_KEYS
}
_OF_LEGACY: Final = {
    "onKubernetesEvent": "this belongs to configurations without configVersion; write 'kubernetes'"
}
_MORE: Final = {"configVersion": {"const": "v1"}, "settings": config_schemas.SETTINGS}
CURRENT: Final[Mapping[HookKind, Schema]] = {
    kind: _schema(kind, TYPES, _MORE, _OF_LEGACY, least=1) for kind in HookKind
}
"""Schemas of ``configVersion: v1``."""
LEGACY: Final[Mapping[HookKind, Schema]] = {
    kind: _schema(kind, LEGACY_TYPES, {}, _NEEDS_VERSION, least=0) for kind in HookKind
}
"""Schemas of configurations without ``configVersion``."""
