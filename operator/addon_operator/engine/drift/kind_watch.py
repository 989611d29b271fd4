"""One watch of a kind's objects, shared by all modules whose releases have such objects."""

import abc
import asyncio
import dataclasses
from collections.abc import Iterable, Sequence
from typing import Final

import msgspec
import orjson

from addon_operator.kernel import names
from addon_operator.kube.discovery import api_resources
from addon_operator.kube.informers import (
    informers,
    object_changes,
    object_selections,
    projections,
    watch_health,
)
from addon_operator.modules.drift import not_ours
from addon_operator.modules.health import resource_health

ObjectKey = object_changes.ObjectKey
LABEL: Final = "app.kubernetes.io/managed-by=Helm"
"""Helm labels all that it makes."""


class KindScope(msgspec.Struct, frozen=True):
    """What a watch covers."""

    resource: api_resources.Resource
    namespace: str | None = None
    """One namespace, where the operator may not list the whole cluster."""

    @property
    def is_work(self) -> bool:
        """Whether the objects end by themselves: Jobs and Pods."""
        return (self.resource.api_version.rpartition("/")[0], self.resource.kind) in resource_health.WORK

    @property
    def selection(self) -> object_selections.ObjectSelection:
        """The objects of the scope, for :mod:`.informers`; whether work has ended, only its status says."""
        return object_selections.ObjectSelection(
            self.resource.kind,
            self.resource.api_version,
            label_selector=LABEL if self.is_work else "",
            namespaces=None if self.namespace is None else (self.namespace,),
            metadata_only=not self.is_work,
        )


@dataclasses.dataclass(frozen=True, slots=True)
class Work(projections.Projection):
    """Keeps of each Job or Pod in which version it is, and whether it has ended then."""

    async def reduce(self, objects: Sequence[bytes]) -> Sequence[projections.Reduced]:
        """See :class:`.Projection`."""
        return await projections.reduced(objects, _at_work)


def _at_work(data: bytes) -> projections.Reduced:
    resource = orjson.loads(data)
    version = str((resource.get("metadata") or {}).get("resourceVersion"))
    entry = orjson.dumps({"version": version, "ended": resource_health.has_ended(resource)})
    return projections.Reduced(entry, version.encode())


class KindWatchListener(abc.ABC):
    """Whoever wants to know which objects of a scope come and go."""

    @abc.abstractmethod
    def missing(self, modules: Iterable[names.ModuleName]) -> None:
        """Take note that an object is missing of these modules."""

    @abc.abstractmethod
    def touched(self, scope: KindScope, key: ObjectKey) -> None:
        """Take note of an object that some module wants: it is new, or has another content."""

    @abc.abstractmethod
    def in_trouble(self, watch: "KindWatch") -> None:
        """Take note that the objects cannot be followed; the watch has the reason."""


class KindWatch(object_changes.ObjectListener):
    """Which objects of a scope are there, and which of those that modules want are not."""

    def __init__(self, scope: KindScope, listener: KindWatchListener) -> None:
        self.scope = scope
        self.reason: str | None = None
        """Why objects cannot be followed just now."""
        self.health = watch_health.WatchHealth(f"the watch of {scope.resource.kind} of releases")
        """Whether the objects can be followed; a watch that has just begun gets the grace of others."""
        self.health.stands()
        self.health.falls()
        self.is_synced = False
        """Whether what is missing is known."""
        self.has_answered = asyncio.Event()
        """Set once it is synced, or known that this takes its time."""
        self._listener = listener
        self._wanted: dict[ObjectKey, set[names.ModuleName]] = {}
        self._present: set[ObjectKey] = set()
        self._at_work: dict[ObjectKey, str] = {}
        """Versions of work that had not ended when it was seen last."""
        self._lost: set[ObjectKey] = set()
        """Work that was deleted before it ended."""
        self._subscription: informers.Subscription | None = None

    def open(self, watches: informers.Informers) -> None:
        """Begin to follow the objects."""
        projection = Work() if self.scope.is_work else projections.Content(not_ours.is_ours)
        self._subscription = watches.subscribe(self.scope.selection, projection, self)

    def close(self) -> None:
        """Let go of the objects."""
        if self._subscription is not None:
            self._subscription.close()

    @property
    def is_idle(self) -> bool:
        """Whether no module wants an object any more."""
        return not self._wanted

    @property
    def objects(self) -> int:
        """How many objects of releases are there, whoever wants them."""
        return len(self._present)

    @property
    def modules(self) -> frozenset[names.ModuleName]:
        """All modules that want an object of this scope."""
        return frozenset[names.ModuleName]().union(*self._wanted.values())

    def want(self, module: names.ModuleName, keys: Iterable[ObjectKey]) -> None:
        """Follow these objects for the module."""
        for key in keys:
            self._wanted.setdefault(key, set()).add(module)

    def drop(self, module: names.ModuleName, keys: Iterable[ObjectKey]) -> None:
        """Note that the module does not have these objects any longer."""
        for key in keys:
            wanting = self._wanted.get(key, set())
            wanting.discard(module)
            if not wanting:
                self._wanted.pop(key, None)

    def wanting(self, key: ObjectKey) -> frozenset[names.ModuleName]:
        """Return the modules that have the object."""
        return frozenset(self._wanted.get(key, ()))

    def is_by_others(self, key: ObjectKey) -> bool:
        """Say whether others are known to have written the object."""
        return self._subscription is not None and self._subscription.entry(key) == projections.BY_OTHERS

    def is_missing(self, key: ObjectKey) -> bool:
        """Say whether the object is known not to be there."""
        return self.is_synced and key not in self._present

    def has_ended(self, key: ObjectKey) -> bool:
        """Say whether work is not there and counts as done: unless it was seen to go before it ended."""
        return self.scope.is_work and self.is_missing(key) and key not in self._lost

    def synced(self) -> None:
        """Note that the first complete list is there."""
        if self._subscription is not None:
            self._present = set(self._subscription.keys())
            if self.scope.is_work:
                for key in self._present:
                    self._note_work(key, self._subscription.entry(key))
        self.is_synced = True
        self.has_answered.set()
        self.health.stands()
        self._tell_missing(self._wanted)

    def changed(self, changes: Sequence[object_changes.Change]) -> None:
        """Report objects that came, changed or went."""
        gone: list[ObjectKey] = []
        for change in changes:
            if self.scope.is_work:
                is_deleted = change.type is object_changes.ChangeType.DELETED
                self._note_work(change.key, change.entry, is_deleted=is_deleted)
            if change.type is object_changes.ChangeType.DELETED:
                self._present.discard(change.key)
                gone.append(change.key)
                continue
            self._present.add(change.key)
            if change.key in self._wanted:
                self._listener.touched(self.scope, change.key)
        self._tell_missing(gone)

    def _note_work(self, key: ObjectKey, entry: bytes | None, *, is_deleted: bool = False) -> None:
        state = orjson.loads(entry or b"{}")
        before = self._at_work.pop(key, None)
        self._lost.discard(key)
        if state.get("ended", True):
            return
        if not is_deleted:
            self._at_work[key] = state["version"]
        elif before != state["version"]:
            # Its last version says how it went. Without one, it went unseen, and may have ended.
            self._lost.add(key)

    def trouble(self, reason: str | None) -> None:
        """Report that objects cannot be followed just now, or can be again."""
        self.reason = reason
        if reason is not None:
            self.has_answered.set()
            self._listener.in_trouble(self)
        self._judge()

    def _judge(self) -> None:
        # A kind that is not there (any more) is waited for; all its objects are absent.
        is_there = self._subscription is None or self._subscription.is_kind_known
        if self.reason is not None and is_there:
            self.health.falls(self.reason)
        elif self.is_synced or not is_there:
            self.health.stands()

    def _tell_missing(self, keys: Iterable[ObjectKey]) -> None:
        concerned = {
            module for key in keys if key not in self._present for module in self._wanted.get(key, ())
        }
        if concerned:
            self._listener.missing(concerned)
