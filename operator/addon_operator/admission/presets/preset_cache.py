"""The PodPresets of the cluster in memory, kept true by a watch, by lists, and against their disorder.

Events of a watch and answers to lists come side by side; what is older than what is known is skipped.
Source: "Resource versions" of the Kubernetes API conventions: those of one resource grow and can be
compared.
"""

import asyncio
from collections.abc import Collection, Iterable, Mapping
from typing import Final, Literal

import msgspec

from addon_operator.admission import events
from addon_operator.podpreset import model, selection, volume_types

AT_ONCE: Final = 16
"""How many presets are read before whoever waits for the event loop has a turn; they take some 3 ms."""

_Key = tuple[str, model.PresetName]


class _KnownVersion(msgspec.Struct, frozen=True):
    version: int
    uid: str
    """Empty while the preset is being deleted."""


class PresetCache:
    """The presets of all namespaces; to be used in one event loop."""

    def __init__(
        self, tell: events.Listener, allowed_volumes: Collection[str] = volume_types.SOURCE_NAMES
    ) -> None:
        """Treat presets with volumes of other types than those allowed as invalid."""
        self._tell = tell
        self._allowed_volumes = allowed_volumes
        self._index = selection.PresetIndex()
        self._known: dict[_Key, _KnownVersion] = {}
        self._deleted: dict[_Key, int] = {}
        self._uids: set[str] = set()
        self._filled = asyncio.Event()

    @property
    def filled(self) -> bool:
        """Whether all presets were listed once."""
        return self._filled.is_set()

    async def wait_filled(self) -> None:
        """Wait until all presets were listed once."""
        await self._filled.wait()

    def match(self, namespace: str, labels: Mapping[str, str]) -> tuple[model.Preset, ...]:
        """Return the valid presets that apply to a pod with these labels, in their order."""
        return self._index.match(namespace, labels)

    def watched(self, type_: Literal["ADDED", "MODIFIED", "DELETED"] | None, stored: events.Stored) -> None:
        """Take over an event of the watch; ``None`` is the type of what is listed before it."""
        key, version = _key(stored), _version(stored)
        if type_ != "DELETED":
            self._put(key, version, stored)
        elif not self._is_older(key, version):
            self._deleted[key] = version
            self._remove(key)

    async def fill(self, items: Iterable[events.Stored], resource_version: str) -> None:
        """Take over a list of all namespaces, a few presets at a time, so that pods need not wait for it.

        What the watch reports meanwhile is newer, or known already.
        """
        listed = list(items)
        for number, item in enumerate(listed, start=1):
            self._put(_key(item), _version(item), item)
            if number % AT_ONCE == 0:
                await asyncio.sleep(0)
        self.listed(None, listed, resource_version)

    def listed(self, namespace: str | None, items: Iterable[events.Stored], resource_version: str) -> None:
        """Take over a list of one namespace, or of all: what is not in it is gone."""
        by_key = {_key(item): item for item in items}
        for key, item in by_key.items():
            self._put(key, _version(item), item)
        at = _number(resource_version)
        for key in [key for key in self._known if namespace in (None, key[0])]:
            if key not in by_key and (not at or self._known[key].version <= at):
                self._remove(key)
        if namespace is None:
            self._deleted = {key: version for key, version in self._deleted.items() if version > at}
            self._filled.set()

    def clear(self) -> None:
        """Forget everything: the resource itself is gone."""
        for key in list(self._known):
            self._remove(key)
        self._deleted.clear()

    def holds(self, uid: str) -> bool:
        """Say whether the preset of that uid is known and not being deleted, valid or not."""
        return uid in self._uids

    def _put(self, key: _Key, version: int, stored: events.Stored) -> None:
        last = self._known.get(key)
        if self._is_older(key, version) or (last is not None and version and last.version == version):
            return
        parsed = model.parse(stored, self._allowed_volumes)
        self._remember(key, _KnownVersion(version, _live_uid(stored)))
        if isinstance(parsed, model.Preset):
            self._index.put(parsed)
        else:
            self._index.remove(*key)
        self._tell(events.PresetStored(stored, parsed))

    def _remember(self, key: _Key, now: _KnownVersion) -> None:
        before = self._known.get(key)
        if before is not None:
            self._uids.discard(before.uid)
        self._known[key] = now
        if now.uid:
            self._uids.add(now.uid)

    def _remove(self, key: _Key) -> None:
        last = self._known.pop(key, None)
        if last is not None:
            self._uids.discard(last.uid)
            self._index.remove(*key)
            self._tell(events.PresetGone(*key))

    def _is_older(self, key: _Key, version: int) -> bool:
        last = self._known.get(key)
        newest = max(last.version if last else 0, self._deleted.get(key, 0))
        # Without a version that can be compared everything is taken as it comes.
        return bool(version) and version < newest


def _key(stored: events.Stored) -> _Key:
    metadata = stored.get("metadata") or {}
    return str(metadata.get("namespace") or ""), model.PresetName(str(metadata.get("name") or ""))


def _live_uid(stored: events.Stored) -> str:
    metadata = stored.get("metadata") or {}
    return "" if metadata.get("deletionTimestamp") else str(metadata.get("uid") or "")


def _version(stored: events.Stored) -> int:
    return _number((stored.get("metadata") or {}).get("resourceVersion"))


def _number(text: object) -> int:
    return int(text) if isinstance(text, str) and text.isdecimal() else 0
