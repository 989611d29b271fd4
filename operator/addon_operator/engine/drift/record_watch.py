"""Notices what others do to the records of releases: one watch in each namespace where modules have some.

What this operator and its Helm write is known by its version. A record that others made or changed is judged
by whoever reads it; one that is gone or cannot be used makes a run of its module.
"""

import asyncio
import dataclasses
from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Final

import msgspec
import orjson
from msgspec import structs

from addon_operator.aio import waiting
from addon_operator.engine import events, intents
from addon_operator.engine.drift import drift, drift_backoff
from addon_operator.helm import places
from addon_operator.helm.releases import record_lists, releases
from addon_operator.kernel import clock as clocks
from addon_operator.kernel import errors, names
from addon_operator.kube.informers import informers, object_changes, object_selections, projections

ACTIVATION: Final = "ReleaseRecordLost"
GATHER: Final = 0.3
"""Seconds in which what the operator itself has written becomes known to it."""
RECHECK: Final = 1.0
"""Seconds until a record is looked at again that Helm is at work on."""
RETRY: Final = 10.0
"""Seconds until a record is looked at again that could not be read."""


class _State(msgspec.Struct, frozen=True):
    """A record at one moment."""

    module: names.ModuleName
    number: int
    version: str
    """Its resourceVersion; empty if it is gone."""
    is_last: bool = False
    """Whether the release has no later one."""


@dataclasses.dataclass(frozen=True, slots=True)
class _Labels(projections.Projection):
    """Keeps which revision of which release each record is of; a change is every write."""

    async def reduce(self, objects: Sequence[bytes]) -> Sequence[projections.Reduced]:
        """See :class:`.Projection`."""
        return await projections.reduced(objects, _revision)


def _revision(data: bytes) -> projections.Reduced:
    metadata = orjson.loads(data).get("metadata") or {}
    labels, version = metadata.get("labels") or {}, str(metadata.get("resourceVersion"))
    kept = [str(labels.get("name")), str(labels.get("version")), version]
    return projections.Reduced(orjson.dumps(kept), version.encode())


class RecordWatch(object_changes.ObjectListener):
    """Follows the records of releases that are watched over."""

    def __init__(
        self,
        manager: releases.ReleaseManager,
        watches: informers.Informers,
        restoring: drift.Drift,
        tell: events.Listener,
        inbox: intents.Inbox,
        clock: clocks.Clock,
    ) -> None:
        self._manager = manager
        self._watches = watches
        self._drift = restoring
        self._tell = tell
        self._inbox = inbox
        self._clock = clock
        self._modules: frozenset[names.ModuleName] = frozenset()
        self._namespaces: tuple[str, ...] = ()
        self._subscription: informers.Subscription | None = None
        self._seen: dict[names.ModuleName, dict[int, _State]] = {}
        """The last state of each record, by number: Helm writes one several times."""
        self._due: dict[names.ModuleName, float] = {}
        self._revisions: dict[names.ModuleName, int] = {}
        self._backoffs = drift_backoff.DriftBackoffs()
        self._wake = asyncio.Event()
        self.looked: Callable[[names.ModuleName], None] = lambda _: None
        """Is told of each release whose record was looked at."""

    def follow(self, modules: Collection[names.ModuleName]) -> None:
        """Watch the records of these modules' releases, and of no others."""
        self._modules = frozenset(modules)
        namespaces = tuple(sorted({self._manager.places.of(each).namespace for each in self._modules}))
        if namespaces == self._namespaces:
            return
        self._namespaces, before = namespaces, self._subscription
        self._subscription = None
        if namespaces:
            selection = object_selections.ObjectSelection(
                self._manager.record_kind,
                "v1",
                label_selector=record_lists.OWNED_BY_HELM,
                namespaces=namespaces,
                metadata_only=True,
            )
            self._subscription = self._watches.subscribe(selection, _Labels(), self)
        if before is not None:
            before.close()

    def synced(self) -> None:
        """Look at what is other than it was read: it changed before anybody watched."""
        if self._subscription is None:
            return
        last = {module: _State(module, 0, "", is_last=True) for module in self._modules}
        for key in self._subscription.keys():  # noqa: SIM118 - it is no mapping
            state = self._state(key, self._subscription.entry(key))
            if state is not None and state.number > last[state.module].number:
                last[state.module] = structs.replace(state, is_last=True)
        for module, state in last.items():
            self._note(module, [state])

    def changed(self, changes: Sequence[object_changes.Change]) -> None:
        """Look at releases of whose records others may have changed one."""
        for change in changes:
            is_gone = change.type is object_changes.ChangeType.DELETED
            if (state := self._state(change.key, change.entry, is_gone=is_gone)) is not None:
                self._note(state.module, [state])

    def trouble(self, reason: str | None) -> None:
        """Report why records are not watched: what others did is found when a record is read."""
        if reason is not None:
            text = f"changes that others make to records of releases are found by runs of modules: {reason}"
            self._tell(events.Warned(text))

    def _state(
        self, key: object_changes.ObjectKey, entry: bytes | None, *, is_gone: bool = False
    ) -> _State | None:
        name, number, version = orjson.loads(entry or b'["", "", ""]')
        release = self._manager.places.key(places.ReleaseLocation(key.namespace, name))
        module = names.ModuleName(release)
        if not number.isdecimal() or module not in self._modules:
            return None
        return _State(module, int(number), "" if is_gone else version)

    def _note(self, module: names.ModuleName, states: Iterable[_State]) -> None:
        seen = self._seen.setdefault(module, {})
        for each in states:
            before = seen.get(each.number, each)
            seen[each.number] = structs.replace(each, is_last=each.is_last or before.is_last)
        self._look_in(module, GATHER)

    def _look_in(self, module: names.ModuleName, seconds: float) -> None:
        due = self._clock.monotonic() + seconds
        self._due[module] = min(due, self._due.get(module, due))
        self._wake.set()

    async def work(self) -> None:
        """Look at records that others may have changed, until cancelled."""
        while True:
            self._wake.clear()
            await self.look()
            await waiting.wait_until(self._wake, min(self._due.values(), default=None), self._clock)

    async def look(self) -> None:
        """Look at every release whose time has come."""
        now = self._clock.monotonic()
        due = [module for module, when in self._due.items() if when <= now]
        for module in due:
            del self._due[module]
        await asyncio.gather(*map(self._try, due))

    async def _try(self, module: names.ModuleName) -> None:
        if self._drift.is_at_work(module):
            self._look_in(module, RECHECK)
            return
        seen = tuple(self._seen.pop(module, {}).values())
        if module not in self._modules:
            return
        self._tell_revision(module)
        if all(self._manager.knows(module, each.number, each.version, is_last=each.is_last) for each in seen):
            return
        try:
            why = await self._manager.look_at_record(module)
        except Exception as error:  # noqa: BLE001 - a defect at one must not hold up others
            if not isinstance(error, errors.AddonOperatorError):
                self._tell(events.PartFailed("records", error, RETRY))
            self._seen[module] = {each.number: each for each in seen} | self._seen.get(module, {})
            self._look_in(module, RETRY)
            return
        self.looked(module)
        self._tell_revision(module)
        if why:
            self._put_in_order(module, why)

    def _tell_revision(self, module: names.ModuleName) -> None:
        """Report which revision is the last one, if that is another one than before."""
        number = self._manager.last_revision(module)
        if number and self._revisions.get(module) != number:
            self._revisions[module] = number
            self._tell(events.RevisionSeen(module, number))

    def _put_in_order(self, module: names.ModuleName, why: str) -> None:
        now = self._clock.monotonic()
        wanted = intents.RunWanted(module, ACTIVATION, at_once=True)
        self._tell(events.Warned(f"module {module}: {why}; the module runs to put that in order"))
        wait = self._backoffs.wait(module, now)
        asyncio.get_running_loop().call_later(wait, self._inbox.put_nowait, wanted)
        self._backoffs.restored([module], now + wait)
