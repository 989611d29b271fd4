"""The informer cache: what one projection keeps of watched objects, and who is called when it changes."""

import asyncio
import bisect
import logging
from collections.abc import Iterator, Mapping, Sequence
from typing import Final, Protocol

import msgspec

from addon_operator.documents import json_documents
from addon_operator.kube.informers import projections, wire
from addon_operator.kube.informers.object_changes import Change, ChangeType, ObjectKey

_log = logging.getLogger(__name__)

Key = tuple[str, str]
"""An object key as it is kept: the collector soon leaves plain tuples of strings alone, named ones never."""


Kept = tuple[bytes, bytes, int, str]
"""What is known of an object: entry, digest, hash of its uid (enough to tell it from the one of the same name
before it), resourceVersion. A plain tuple as well."""
Difference = tuple[ChangeType, Key, Kept, bytes | None]
"""A change before anybody wants to read it, and the entry before a Modified."""
_SLICE: Final = 200
"""How many objects are handled before others get their turn in the event loop."""
SKIPS: Final = "skips "
"""Begins the reason of a cache that is up to date but for objects which its projection fails on."""
_CONFIDENTIAL: Final = "Secret"
"""Kind of objects that no message may quote."""


class CacheListener(Protocol):
    """Who is called about a cache: a subscription, which lies above this module and shares the cache."""

    def cache_synced(self, cache: "InformerCache") -> None:
        """Note that the first complete list is in the cache."""
        ...

    def cache_changed(self, cache: "InformerCache", changes: Sequence[Change]) -> None:
        """Note changes of objects; never called before ``cache_synced``."""
        ...

    def cache_troubled(self) -> None:
        """Note that :attr:`InformerCache.reason` has changed."""
        ...

    def path_not_served(self, cache: "InformerCache") -> None:
        """Look the kind up again: the API server has just not had the path of its objects."""
        ...


class Batch(msgspec.Struct, frozen=True):
    """Events in their order, and what the projection made of them; ``None`` where that is known already."""

    events: Sequence[wire.ObjectEvent]
    reduced: Sequence[projections.Reduced | projections.ProjectionError | None]


class InformerCache:
    """The entries of one projection.

    A list comes as :meth:`begin_list`, batches of its objects and :meth:`end_list`, which finds what is no
    longer there; the events of a watch are batches too. Each batch is first prepared, which may take time,
    and then kept at once.
    """

    def __init__(self, projection: projections.Projection, label: str) -> None:
        """``label`` names the objects in logs."""
        self.projection = projection
        self.listeners: list[CacheListener] = []
        self.synced = False
        self._label = label
        self._kept: dict[Key, Kept] = {}
        self._order: list[Key] = []
        self.size = 0
        """Bytes of all entries as JSON."""
        self._unlisted: set[Key] | None = None
        self._trouble: str | None = None
        self._failing: dict[Key, str] = {}
        """What is said of objects that the projection fails on, and nothing of their content."""

    @property
    def reason(self) -> str | None:
        """Why the cache is not up to date, or lacks objects; ``None`` when all is well."""
        if self._trouble or not self._failing:
            return self._trouble
        more = len(self._failing) - 1
        first = next(iter(self._failing.values()))
        return f"{SKIPS}{first}{f'; so it is with {more} more' if more else ''}"

    @property
    def count(self) -> int:
        """How many objects are there."""
        return len(self._order)

    def keys(self) -> list[ObjectKey]:
        """Return the objects, sorted."""
        return [ObjectKey(*key) for key in self._order]

    def entry(self, key: ObjectKey) -> bytes | None:
        """Return the kept entry of an object; ``None`` if it is not there."""
        kept = self._kept.get(key)
        return None if kept is None else kept[0]

    def rows(self) -> Iterator[tuple[Key, bytes]]:
        """Return the keys and kept entries, sorted by key."""
        kept = self._kept
        return ((key, kept[key][0]) for key in self._order)

    def additions(self) -> list[Change]:
        """Return all objects as Added, for a listener that knows none of them."""
        return [_change(ChangeType.ADDED, key, self._kept[key]) for key in self._order]

    def deletions(self) -> list[Change]:
        """Return all objects as Deleted, for a listener that knows them and loses the cache."""
        return [_change(ChangeType.DELETED, key, self._kept[key]) for key in self._order]

    def changes_since(self, before: Mapping[Key, Kept]) -> list[Change]:
        """Return what a listener has to hear that knows these objects, which were read in another way."""
        now = self._kept
        gone = [(key, kept) for key, kept in before.items() if key not in now or now[key][2] != kept[2]]
        changes = [_change(ChangeType.DELETED, key, kept) for key, kept in gone]
        for key in self._order:
            known, kept = before.get(key), now[key]
            if known is None or known[2] != kept[2]:
                changes.append(_change(ChangeType.ADDED, key, kept))
            elif known[1] != kept[1]:
                changes.append(_change(ChangeType.MODIFIED, key, kept, known[0]))
        return changes

    @property
    def objects(self) -> Mapping[Key, Kept]:
        """All objects that are there."""
        return self._kept

    async def prepare(self, events: Sequence[wire.ObjectEvent]) -> Batch:
        """Apply the projection to what is new."""
        is_new = [event.deleted or not self._knows(event) for event in events]
        data = [event.data for event, new in zip(events, is_new, strict=True) if new]
        answers = iter(await self._reduced(data) if data else ())
        return Batch(events, [next(answers) if new else None for new in is_new])

    async def _reduced(
        self, data: Sequence[bytes]
    ) -> Sequence[projections.Reduced | projections.ProjectionError]:
        """Apply the projection; what it cannot do to one object is that object's trouble alone."""
        if b"" in data:
            rest = iter(await self._reduced(readable) if (readable := list(filter(None, data))) else ())
            return [next(rest) if each else _too_deep() for each in data]
        try:
            return await self.projection.reduce(data)
        except _ODD:
            if len(data) == 1:
                return [_too_deep()]
        return [answer for each in data for answer in await self._reduced([each])]

    def _knows(self, event: wire.ObjectEvent) -> bool:
        entry = self._kept.get(event.key)
        return entry is not None and entry[2:] == (hash(event.uid), event.version)

    def begin_list(self) -> None:
        """Count as gone at :meth:`end_list` whatever is in no batch from now on."""
        self._unlisted = {*self._order, *self._failing}

    def abandon_list(self) -> None:
        """Drop a list that was not read to its end."""
        self._unlisted = None

    def take(self, batch: Batch) -> None:
        """Keep a batch, and call the listeners with what it changes."""
        reason = self.reason
        differences: list[Difference] = []
        for event, reduced in zip(batch.events, batch.reduced, strict=True):
            if self._unlisted is not None and not event.deleted:
                self._unlisted.discard(event.key)
            differences += self._take_one(event, reduced)
        self._report(differences, reason)

    async def end_list(self) -> None:
        """End the list: what was not in it is gone."""
        gone = sorted(self._unlisted or ())
        self._unlisted = None
        for start in range(0, len(gone), _SLICE):
            reason = self.reason
            slice_ = gone[start : start + _SLICE]
            self._report([difference for key in slice_ for difference in self._remove(key)], reason)
            await asyncio.sleep(0)
        if not self.synced:
            self.synced = True
            for listener in tuple(self.listeners):
                listener.cache_synced(self)

    def set_trouble(self, reason: str | None) -> None:
        """Set why the objects cannot be followed, or that they can."""
        before, self._trouble = self.reason, reason
        self._report((), before)

    def note_not_served(self) -> None:
        """Report that the API server does not have the path just now."""
        for listener in tuple(self.listeners):
            listener.path_not_served(self)

    def _report(self, differences: Sequence[Difference], reason: str | None) -> None:
        # Before the first list is complete nobody is called, and nothing is unpacked for nothing.
        changes = [_change(*difference) for difference in differences] if self.synced else []
        for listener in tuple(self.listeners):
            if changes:
                listener.cache_changed(self, changes)
            if self.reason != reason:
                listener.cache_troubled()

    def _take_one(
        self,
        event: wire.ObjectEvent,
        reduced: projections.Reduced | projections.ProjectionError | None,
    ) -> list[Difference]:
        if event.deleted:
            last = reduced if isinstance(reduced, projections.Reduced) else None
            return self._remove(event.key, last, event.version)
        if isinstance(reduced, projections.ProjectionError):
            return self._note_failure(event, reduced)
        self._failing.pop(event.key, None)
        if reduced is None:
            return []
        new = (json_documents.pack(reduced.entry), reduced.digest, hash(event.uid), event.version)
        return self._put(event.key, new)

    def _put(self, key: Key, new: Kept) -> list[Difference]:
        old = self._kept.get(key)
        if old is not None and old[2] != new[2]:
            # Deleted and created again while nobody watched.
            return [*self._remove(key), *self._put(key, new)]
        self._kept[key] = new
        self.size += json_documents.size_of(new[0])
        if old is not None:
            self.size -= json_documents.size_of(old[0])
        if old is None:
            bisect.insort(self._order, key)
            return [(ChangeType.ADDED, key, new, None)]
        return [] if old[1] == new[1] else [(ChangeType.MODIFIED, key, new, old[0])]

    def _remove(
        self, key: Key, last: projections.Reduced | None = None, version: str | None = None
    ) -> list[Difference]:
        self._failing.pop(key, None)
        old = self._kept.pop(key, None)
        if old is None:
            return []
        self.size -= json_documents.size_of(old[0])
        del self._order[bisect.bisect_left(self._order, key)]
        entry = old[0] if last is None else last.entry
        return [(ChangeType.DELETED, key, (entry, old[1], old[2], version or old[3]), None)]

    def _note_failure(self, event: wire.ObjectEvent, error: projections.ProjectionError) -> list[Difference]:
        """Keep the last good entry, but not that of another object which had the name before."""
        old = self._kept.get(event.key)
        before = self._failing.get(event.key)
        removed = self._remove(event.key) if old is not None and old[2] != hash(event.uid) else []
        namespace, name = event.key
        named = f"{self._label} {namespace}/{name}" if namespace else f"{self._label} {name}"
        self._failing[event.key] = f"{named}: {error.discreet}"
        if self._failing[event.key] != before:
            shown = error.discreet if self._label == _CONFIDENTIAL else str(error)
            _log.warning("an event is skipped: %s: %s", named, shown)
        return removed


_ODD: Final = (ValueError, TypeError, LookupError, AttributeError, RecursionError)
"""What it leads to that an object nests too deep, or has something else at a place than its kind says."""


def _too_deep() -> projections.ProjectionError:
    return projections.ProjectionError(
        "it cannot be read: mappings and lists nest too deep, or it is not as its kind says"
    )


def _change(type_: ChangeType, key: Key, entry: Kept, before: bytes | None = None) -> Change:
    return Change(type_, ObjectKey(*key), entry[0], entry[3], before)
