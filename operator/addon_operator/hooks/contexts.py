"""Binding contexts: what a hook is told about the reason of its run, as items of ``BINDING_CONTEXT_PATH``.

The shapes are those of the Go operator ("Binding context" of its documentation, and its code where that is
silent).
"""

import enum
from collections.abc import Iterable, Mapping, Sequence
from typing import Final, TypeAlias

from addon_operator.hooks import bindings
from addon_operator.kernel.json_types import JsonObject, JsonValue

Snapshots: TypeAlias = Mapping[str, Sequence[JsonObject]]
"""Entries, as :func:`entry` makes them, by the name of their kubernetes binding."""


class _Missing(enum.Enum):
    MISSING = enum.auto()


MISSING: Final = _Missing.MISSING
"""Stands for a field that is not there, which is something else than ``null``."""

_LEGACY_EVENTS: Final = {
    bindings.WatchEvent.ADDED: "add",
    bindings.WatchEvent.MODIFIED: "update",
    bindings.WatchEvent.DELETED: "delete",
}


def entry(
    kubernetes_object: JsonValue | _Missing = MISSING, filter_result: JsonValue | _Missing = MISSING
) -> JsonObject:
    """An object in a snapshot or context.

    ``object`` is there if the binding keeps full objects, ``filterResult`` if it has a jqFilter, even when
    the filter gave ``null``.
    """
    fields = {"object": kubernetes_object, "filterResult": filter_result}
    return {key: value for key, value in fields.items() if not isinstance(value, _Missing)}


def lifecycle(binding: bindings.LifecycleBinding, snapshots: Snapshots | None = None) -> JsonObject:
    """The context of a step of life; all but ``onStartup`` hold the snapshots of every kubernetes binding."""
    if binding is bindings.LifecycleBinding.ON_STARTUP:
        return {"binding": binding.value}
    return _with_snapshots({"binding": binding.value}, snapshots or {})


def schedule(name: str, snapshots: Snapshots | None = None) -> JsonObject:
    """The context of a tick."""
    return _with_snapshots({"binding": name, "type": "Schedule"}, snapshots)


def synchronization(
    name: str, objects: Iterable[JsonObject], snapshots: Snapshots | None = None
) -> JsonObject:
    """The context of the run with all objects that exist; ``objects`` are entries."""
    return _with_snapshots({"binding": name, "type": "Synchronization", "objects": [*objects]}, snapshots)


def event(
    name: str, watch_event: bindings.WatchEvent, changed: JsonObject, snapshots: Snapshots | None = None
) -> JsonObject:
    """The context of one change; ``changed`` is the object's entry."""
    context: JsonObject = {"binding": name, "type": "Event", "watchEvent": watch_event.value, **changed}
    return _with_snapshots(context, snapshots)


def group(name: str, group_name: str, snapshots: Snapshots | None = None) -> JsonObject:
    """The context of anything that happens to a binding with a ``group``: only the snapshots count."""
    return _with_snapshots({"binding": name, "type": "Group", "groupName": group_name}, snapshots or {})


def legacy_event(watch_event: bindings.WatchEvent, name: str, changed: JsonObject) -> JsonObject:
    """The context of one change for a configuration without ``configVersion``; ``changed`` is the object."""
    metadata = changed.get("metadata")
    meta = metadata if isinstance(metadata, dict) else {}
    return {
        "binding": name,
        "resourceEvent": _LEGACY_EVENTS[watch_event],
        "resourceNamespace": meta.get("namespace", ""),
        "resourceKind": changed.get("kind", ""),
        "resourceName": meta.get("name", ""),
    }


def collapse_groups(contexts: Iterable[JsonObject]) -> list[JsonObject]:
    """The contexts of one merged run: of neighbours that belong to the same group only the last one stays."""
    collapsed: list[JsonObject] = []
    for context in contexts:
        group_name = context.get("groupName")
        if collapsed and group_name is not None and collapsed[-1].get("groupName") == group_name:
            collapsed.pop()
        collapsed.append(context)
    return collapsed


def _with_snapshots(context: JsonObject, snapshots: Snapshots | None) -> JsonObject:
    if snapshots is not None:
        context["snapshots"] = {name: [*entries] for name, entries in snapshots.items()}
    return context
