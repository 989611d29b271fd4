"""Modules as their objects in the cluster show them: what a replica that does not lead knows of modules.

The leader writes the objects. What only it knows, such as its queues, is not in them.
"""

import asyncio
import math
from collections.abc import Sequence
from typing import Final

import msgspec

from addon_operator.aio import waiting
from addon_operator.documents import json_documents
from addon_operator.engine import introspection, state
from addon_operator.kernel import clock
from addon_operator.kube.client import client
from addon_operator.kube.informers import informers, object_changes, object_selections, projections
from addon_operator.kube.objects import suspension
from addon_operator.modules import windows
from addon_operator.modules.health import resource_health
from addon_operator.status import module_conditions, module_status

MOST: Final = 5000
"""How many modules are shown."""
_SYNC_SECONDS: Final = 2.0
"""How long the first who looks waits for the objects."""
_TEXT_MAX: Final = 2048
_TEXTS_MAX: Final = 40


class _Writer(msgspec.Struct):
    """Who wrote fields of an object, and when."""

    manager: str = ""
    time: str = ""


class _Metadata(msgspec.Struct, rename="camel"):
    name: str
    managed_fields: list[_Writer] = []


class _Condition(msgspec.Struct, rename="camel"):
    type: str
    status: str = ""
    reason: str = ""
    message: str = ""
    last_transition_time: str = ""


class _Release(msgspec.Struct):
    revision: int = 0
    name: str = ""
    namespace: str = ""


class _Suspended(msgspec.Struct):
    since: str
    reason: str = ""
    by: str = ""
    until: str | None = None


class _HeldBack(msgspec.Struct):
    what: str
    since: str
    until: str = ""
    confirm: str = ""


class _NextTry(msgspec.Struct, rename="camel"):
    at: str
    failed: int = 0
    waits_for: list[str] = []


class _Finding(msgspec.Struct):
    type: str
    message: str
    since: str = ""


class _Status(msgspec.Struct, rename="camel"):
    state: str = str(state.ModuleStatus.PENDING)
    order: int = 0
    hooks: list[str] | None = None
    conditions: list[_Condition] = []
    description: str = ""
    release: _Release | None = None
    last_run: str | None = None
    last_error: str = ""
    suspended: _Suspended | None = None
    held_back: _HeldBack | None = None
    next_try: _NextTry | None = None
    findings: list[_Finding] | None = None
    """``None`` if there are none, or the build before wrote it."""


class _Module(msgspec.Struct):
    """A Module object, as far as it is shown."""

    metadata: _Metadata
    status: _Status = msgspec.field(default_factory=_Status)


class StoredModule(msgspec.Struct, frozen=True):
    """What the object of one module shows; without values, as all of it."""

    row: introspection.ModuleRow
    """Its ``lastError`` is without values, or says why the object cannot be shown."""
    shown: module_status.Shown
    written: str
    """When an operator wrote the object last; RFC 3339, UTC; empty if that is not known."""


class StoredModules(msgspec.Struct, frozen=True):
    """What all objects show."""

    is_known: bool
    """Whether it is known which there are."""
    modules: Sequence[StoredModule] = ()
    total: int = 0
    """How many there are."""
    trouble: str = ""
    """Why they are not followed just now; empty if they are."""
    trouble_since: str = ""
    """RFC 3339, UTC; empty without trouble."""


def read(data: bytes) -> StoredModule:
    """Return what an object shows, a JSON document; one that nobody can read is a module that failed."""
    try:
        found = msgspec.json.decode(data, type=_Module)
        status = state.ModuleStatus(found.status.state)
        return _stored(found, status)
    except (*json_documents.BROKEN, ValueError) as error:
        name = msgspec.json.decode(data, type=_Named).metadata.name
        why = f"its Module object cannot be read by this version of the operator: {error}"
        unread = _Module(_Metadata(name), _Status(state=str(state.ModuleStatus.FAILED), last_error=why))
        return _stored(unread, state.ModuleStatus.FAILED)


class _Named(msgspec.Struct):
    """An object of which only the name is certain."""

    metadata: "_Name"


class _Name(msgspec.Struct):
    name: str


def _stored(found: _Module, status: state.ModuleStatus) -> StoredModule:
    conditions = {each.type: each for each in found.status.conditions}
    release = found.status.release
    return StoredModule(
        row=_row(found, status, conditions),
        shown={
            "since": {
                type_: conditions[type_].last_transition_time
                for type_ in module_conditions.TYPES
                if type_ in conditions
            },
            "revision": release.revision if release is not None else None,
            "events": [],
        },
        written=max(
            (each.time for each in found.metadata.managed_fields if each.manager == client.FIELD_MANAGER),
            default="",
        ),
    )


def _row(
    found: _Module, status: state.ModuleStatus, conditions: dict[str, _Condition]
) -> introspection.ModuleRow:
    """Return the module as the leader's page has it; what only the leader knows is empty."""
    stored, next_try = found.status, found.status.next_try
    health = _health(conditions)
    return {
        "name": found.metadata.name,
        "description": _cut(stored.description),
        "release": _release(found),
        "order": stored.order,
        "enabled": _said(conditions, "Enabled", "True") != "",
        "state": str(status),
        "health": health,
        "healthMessage": ""
        if health in ("", resource_health.HealthState.HEALTHY)
        else _cut(conditions["Healthy"].message),
        "findings": [
            {"type": each.type, "message": _cut(each.message), "since": each.since}
            for each in (_besides(conditions) if stored.findings is None else stored.findings)
        ],
        "reason": _cut(conditions["Enabled"].message) if "Enabled" in conditions else "",
        "suspended": "" if stored.suspended is None else _suspended(stored.suspended),
        "requires": [],
        "hooks": None if stored.hooks is None else len(stored.hooks),
        "lastRun": stored.last_run,
        "lastError": _cut(stored.last_error),
        "tries": 0 if next_try is None else next_try.failed,
        "nextTry": None if next_try is None else next_try.at,
        "cure": [] if next_try is None else _texts(next_try.waits_for),
        "waitingBindings": [],
        "answering": [],
        "heldBack": _held_back(stored.held_back),
        "atHook": "",
        "runningHooks": [],
    }


def _besides(conditions: dict[str, _Condition]) -> list[_Finding]:
    """Return what the build before said beside a run that succeeded, as one finding of the worst kind."""
    ready = conditions.get("Ready", _Condition("Ready"))
    _, is_said, message = ready.message.partition("The last run succeeded; ")
    return [_Finding(ready.reason, message)] if is_said else []


def _texts(texts: Sequence[str]) -> list[str]:
    return [_cut(each) for each in texts[:_TEXTS_MAX]]


def _cut(text: str) -> str:
    return text if len(text) <= _TEXT_MAX else f"{text[: _TEXT_MAX - 1]}…"


def _said(conditions: dict[str, _Condition], type_: str, status: str) -> str:
    """Return the message of a condition that has this status; empty if it has another one."""
    found = conditions.get(type_)
    return "" if found is None or found.status != status else _cut(found.message or found.reason or type_)


def _health(conditions: dict[str, _Condition]) -> str:
    found = conditions.get("Healthy")
    if found is None:
        return ""
    if found.status == "True":
        # Whatever the reason: a module without a release has one of its own.
        return str(resource_health.HealthState.HEALTHY)
    said = (found.status, found.reason)
    return next((str(each) for each, as_said in module_conditions.HEALTH.items() if as_said == said), "")


def _release(found: _Module) -> str:
    release = found.status.release or _Release()
    name = release.name or found.metadata.name
    return f"{release.namespace}/{name}" if release.namespace else name


def _suspended(found: _Suspended) -> str:
    until = None if found.until is None else clock.parse_rfc3339(found.until)
    return _cut(str(suspension.Suspension(found.reason, clock.parse_rfc3339(found.since), found.by, until)))


def _held_back(found: _HeldBack | None) -> introspection.HeldBackRow | None:
    if found is None:
        return None
    until = clock.parse_rfc3339(found.until) if found.until else math.inf
    since = clock.parse_rfc3339(found.since)
    return introspection.held_back_row(
        windows.HeldBack(_cut(found.what), until, since, confirm=_cut(found.confirm))
    )


class _Shown(msgspec.Struct, frozen=True):
    """A projection: keeps what is shown of an object; a change is one of that."""

    async def reduce(self, objects: Sequence[bytes]) -> Sequence[projections.Reduced]:
        return await projections.reduced(objects, _reduced)


def _reduced(data: bytes) -> projections.Reduced:
    entry = msgspec.json.encode(read(data))
    return projections.Reduced(entry, projections.digest(entry))


class FollowedModules(object_changes.ObjectListener):
    """Follows the objects from the first look on: as long as nobody looks, nothing is asked for."""

    def __init__(self, watches: informers.Informers, namespace: str, time: clock.Clock) -> None:
        """``namespace`` is the operator's."""
        self._watches = watches
        self._namespace = namespace
        self._clock = time
        self._subscription: informers.Subscription | None = None
        self._is_synced = asyncio.Event()
        self._trouble_since = ""

    @property
    def is_followed(self) -> bool:
        """Whether somebody has looked, and nobody has closed it since."""
        return self._subscription is not None

    async def look(self) -> StoredModules:
        """Return what the objects show; the first look waits for them for a moment. Never raises."""
        if self._subscription is None:
            self._subscription = self._watches.subscribe(_selection(self._namespace), _Shown(), self)
            await waiting.wait_within(self._is_synced, _SYNC_SECONDS)
        return await self._seen()

    async def _seen(self) -> StoredModules:
        if (subscription := self._subscription) is None:
            return StoredModules(is_known=False)
        trouble, since = subscription.reason or "", self._trouble_since
        if not (subscription.synced and subscription.is_kind_known):
            return StoredModules(is_known=False, trouble=trouble, trouble_since=since)
        entries = subscription.lazy_snapshot()
        modules = await asyncio.to_thread(_in_order, entries)
        return StoredModules(
            is_known=True, modules=modules, total=len(entries), trouble=trouble, trouble_since=since
        )

    def close(self) -> None:
        """Follow nothing any more."""
        if self._subscription is not None:
            self._subscription.close()
            self._subscription = None

    def synced(self) -> None:
        """See :class:`.ObjectListener`."""
        self._is_synced.set()

    def changed(self, changes: Sequence[object_changes.Change]) -> None:
        """See :class:`.ObjectListener`: who looks gets what is there then."""

    def trouble(self, reason: str | None) -> None:
        """See :class:`.ObjectListener`."""
        if reason is None:
            self._trouble_since = ""
        elif not self._trouble_since:
            self._trouble_since = clock.rfc3339(self._clock.time())


def _selection(namespace: str) -> object_selections.ObjectSelection:
    """Select what operators keep: what others created says nothing of modules."""
    labels = ",".join(f"{key}={value}" for key, value in module_status.LABELS.items())
    return object_selections.ObjectSelection(
        module_status.KIND, module_status.API_VERSION, label_selector=labels, namespaces=(namespace,)
    )


_DECODER: Final = msgspec.json.Decoder(StoredModule)


def _in_order(entries: Sequence[bytes]) -> list[StoredModule]:
    """Return the modules in run order; to be called in a thread."""
    found = [_DECODER.decode(entry) for entry in entries[:MOST]]
    return sorted(found, key=lambda each: (each.row["order"], each.row["name"]))
