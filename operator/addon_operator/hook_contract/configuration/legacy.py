"""From a checked configuration without ``configVersion`` (v0) to bindings.

Such a hook never gets a Synchronization run, and its contexts have a shape of their own.
"""

from typing import Final

from addon_operator.hook_contract.configuration import bindings, crontab, reading, wire

DEPRECATION: Final = "the configuration has no configVersion and is read as v0; write 'configVersion: v1'"

_EVENTS: Final = {
    "add": bindings.WatchEvent.ADDED,
    "update": bindings.WatchEvent.MODIFIED,
    "delete": bindings.WatchEvent.DELETED,
}


def schedules(raw: wire.RawLegacyConfig) -> tuple[bindings.ScheduleBinding, ...]:
    """The bindings of ``schedule``."""
    return tuple(
        bindings.ScheduleBinding(
            crontab=crontab.parse(item["crontab"]),
            name=item.get("name") or bindings.SCHEDULE_NAME,
            allow_failure=item.get("allowFailure", False),
        )
        for item in raw.get("schedule", ())
    )


def kubernetes(raw: wire.RawLegacyConfig) -> tuple[bindings.KubernetesBinding, ...]:
    """The bindings of ``onKubernetesEvent``."""
    return tuple(_kubernetes(item) for item in raw.get("onKubernetesEvent", ()))


def _kubernetes(item: wire.RawLegacyKubernetes) -> bindings.KubernetesBinding:
    name = item.get("objectName")
    return bindings.KubernetesBinding(
        kind=item["kind"],
        name=item.get("name") or "onKubernetesEvent",
        allow_failure=item.get("allowFailure", False),
        execute_on_event=frozenset(_EVENTS[event] for event in item.get("event", _EVENTS)),
        execute_on_synchronization=False,
        wait_for_synchronization=False,
        names=(name,) if name else (),
        labels=reading.label_selector(item["selector"]) if "selector" in item else None,
        namespaces=_namespaces(item.get("namespaceSelector")),
        jq_filter=item.get("jqFilter") or None,
    )


def _namespaces(raw: wire.RawLegacyNamespaces | None) -> bindings.NamespaceSelector | None:
    if raw is None or raw.get("any") or not raw.get("matchNames"):
        return None
    return bindings.NamespaceSelector(tuple(dict.fromkeys(raw["matchNames"])))
