"""The PodPresets of the cluster in memory, followed by an informer in every replica."""

import asyncio
import logging
from collections.abc import Collection, Mapping, Sequence
from typing import Any, Final

import msgspec
import orjson

from addon_operator.admission import events
from addon_operator.kube.informers import (
    informers,
    object_changes,
    object_selections,
    projections,
    shared_watches,
    watch_health,
)
from addon_operator.podpreset import model, selection, volume_types

AT_ONCE: Final = 16
"""How many presets are read before whoever waits for the event loop has a turn; they take some 3 ms."""

_log = logging.getLogger(__name__)

_Key = tuple[str, model.PresetName]


class _Known(msgspec.Struct, frozen=True):
    version: str
    uid: str
    """Empty while the preset is being deleted."""
    parsed: events.Parsed


class _Stored(projections.Projection):
    """Keeps each preset as it is stored; every write is a change."""

    async def reduce(self, objects: Sequence[bytes]) -> Sequence[projections.Reduced]:
        return [projections.Reduced(data, projections.digest(data)) for data in objects]


class PresetCache(object_changes.ObjectListener):
    """The presets of all namespaces; to be used in one event loop."""

    def __init__(
        self, tell: events.Listener, allowed_volumes: Collection[str] = volume_types.SOURCE_NAMES
    ) -> None:
        """Treat presets with volumes of other types than those allowed as invalid."""
        self.health: Final = watch_health.WatchHealth("the watch of PodPresets")
        self._tell = tell
        self._allowed_volumes = allowed_volumes
        self._index = selection.PresetIndex()
        self._known: dict[_Key, _Known] = {}
        self._uids: set[str] = set()
        self._listed = asyncio.Event()
        self._filled = asyncio.Event()
        self._subscription: informers.Subscription | None = None

    @property
    def filled(self) -> bool:
        """Whether all presets were listed once."""
        return self._filled.is_set()

    @property
    def unready_reason(self) -> str | None:
        """Why pods cannot be admitted yet."""
        listed = None if self.filled else "the PodPresets have not been listed yet"
        return self.health.never_came_up or listed

    async def wait_filled(self) -> None:
        """Wait until all presets were listed once."""
        await self._filled.wait()

    async def follow(self, watches: shared_watches.SharedWatches) -> None:
        """Follow the presets of the cluster, until cancelled."""
        kind = object_selections.ObjectSelection(model.KIND, model.API_VERSION)
        self._listed.clear()
        self._subscription = following = informers.Subscription(kind, _Stored(), self, watches)
        try:
            await self._listed.wait()
            await self._fill(following)
            await asyncio.Event().wait()
        finally:
            following.close()

    async def _fill(self, following: informers.Subscription) -> None:
        """Read all presets, a few at a time, so that pods need not wait for it.

        What changes meanwhile comes at once: each is read as it is when its turn comes.
        """
        for number, key in enumerate(following.keys(), start=1):
            if (entry := following.entry(key)) is not None:
                self.put(orjson.loads(entry))
            if number % AT_ONCE == 0:
                await asyncio.sleep(0)
        for known in self._known.keys() - set(following.keys()):
            self._remove(known)
        self._filled.set()

    def synced(self) -> None:
        """See :class:`.ObjectListener`."""
        self._listed.set()
        self.trouble(None if self._subscription is None else self._subscription.reason)

    def changed(self, changes: Sequence[object_changes.Change]) -> None:
        """See :class:`.ObjectListener`."""
        for change in changes:
            if change.type is object_changes.ChangeType.DELETED:
                self._remove((change.key.namespace, model.PresetName(change.key.name)))
            else:
                self.put(orjson.loads(change.entry))

    def trouble(self, reason: str | None) -> None:
        """See :class:`.ObjectListener`."""
        following = self._subscription
        if reason is None:
            if following is not None and following.synced:
                self.health.stands()
            return
        self.health.falls(reason)
        if self.filled:
            _log.warning("presets are served from memory, which may be late: %s", reason)
        elif following is not None and following.is_kind_known:
            _log.warning("no pods are admitted with presets before they can be listed: %s", reason)

    def match(self, namespace: str, labels: Mapping[str, str]) -> tuple[model.Preset, ...]:
        """Return the valid presets that apply to a pod with these labels, in their order."""
        return self._index.match(namespace, labels)

    def holds(self, uid: str) -> bool:
        """Say whether the preset of that uid is known and not being deleted, valid or not."""
        return uid in self._uids

    def parsed(self, stored: events.Stored) -> events.Parsed:
        """Return what a stored preset says, without reading it if this state of it is known."""
        known = self._known.get(_key(stored))
        if known is not None and known.version == _version(stored) and known.uid == live_uid(stored):
            return known.parsed
        return model.parse(stored, self._allowed_volumes)

    def put(self, stored: events.Stored) -> None:
        """Take over a preset as it is stored now."""
        key, known = _key(stored), self._known.get(_key(stored))
        parsed = self.parsed(stored)
        if known is not None and parsed is known.parsed:
            return
        self._uids.discard(known.uid if known is not None else "")
        self._known[key] = now = _Known(_version(stored), live_uid(stored), parsed)
        if now.uid:
            self._uids.add(now.uid)
        if isinstance(parsed, model.Preset):
            self._index.put(parsed)
        else:
            self._index.remove(*key)
        self._tell(events.PresetStored(stored, parsed))

    def _remove(self, key: _Key) -> None:
        if (known := self._known.pop(key, None)) is not None:
            self._uids.discard(known.uid)
            self._index.remove(*key)
            self._tell(events.PresetGone(*key))


def live_uid(stored: events.Stored) -> str:
    """Return the uid of a preset; empty while it is being deleted."""
    metadata = _metadata(stored)
    return "" if metadata.get("deletionTimestamp") else str(metadata.get("uid") or "")


def _key(stored: events.Stored) -> _Key:
    metadata = _metadata(stored)
    return str(metadata.get("namespace") or ""), model.PresetName(str(metadata.get("name") or ""))


def _version(stored: events.Stored) -> str:
    return str(_metadata(stored).get("resourceVersion") or "")


def _metadata(stored: events.Stored) -> Mapping[str, Any]:
    return stored.get("metadata") or {}
