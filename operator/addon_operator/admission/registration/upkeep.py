"""Keeps an object as it should be, whoever else changes it: when to look at it, how often to repair it."""

import asyncio
from collections.abc import Iterable, Sequence
from typing import Final

import msgspec

from addon_operator.aio import waiting
from addon_operator.kube.discovery import api_resources
from addon_operator.kube.informers import (
    informer_cache,
    object_changes,
    object_selections,
    projections,
    shared_watches,
)

CHECK_SECONDS: Final = 30.0
"""Between two looks at an object that nobody touched."""
ERROR_SECONDS: Final = 5.0
"""Until the next look after an error."""

# Whoever undoes our repairs at once is a program: repairing ever slower leaves the cluster in peace.
_PAUSES: Final = waiting.Backoff(1.0, 60.0)
_AT_ONCE: Final = 2


class Repairs(msgspec.Struct):
    """Counts the repairs of one object, and knows when somebody undoes each of them."""

    has_conflict: bool = False
    _streak: int = 0
    _last: float = float("-inf")

    def may_repair(self, now: float) -> bool:
        """Say whether the next repair is due; ``now`` is a monotonic time."""
        return self._wait(now) <= 0

    def note(self, now: float) -> None:
        """Note a repair."""
        self._streak = self._streak + 1 if now - self._last < 2 * _PAUSES.longest else 1
        self._last = now

    def settled(self, now: float) -> None:
        """Note that nothing is to be repaired; that lasts if the others had time to change it again."""
        if self.may_repair(now):
            self.has_conflict = False

    def pause(self, now: float) -> float:
        """Return the seconds until the next look."""
        wait = self._wait(now)
        return min(CHECK_SECONDS, wait) if wait > 0 else CHECK_SECONDS

    def _wait(self, now: float) -> float:
        late = self._streak - _AT_ONCE
        return self._last + (_PAUSES.after(late) if late > 0 else 0.0) - now


def conflict(called: str, kind: str, name: str) -> str:
    """Say that somebody undoes repairs; ``kind`` is that of the object as kubectl takes it."""
    return (
        f"somebody changes {called} as often as it is restored; "
        f"'kubectl get {kind} {name} --show-managed-fields -o yaml' shows who"
    )


class Touches(informer_cache.CacheListener):
    """Follows objects of one cluster-wide kind by name, and sets ``changed`` when one may have changed.

    Without the right to watch, the regular look has to do.
    """

    def __init__(
        self, watches: shared_watches.SharedWatches, resource: api_resources.Resource, changed: asyncio.Event
    ) -> None:
        self._watches = watches
        self._resource = resource
        self._changed = changed
        self._caches: dict[str, informer_cache.InformerCache] = {}

    def follow(self, names: Iterable[str]) -> None:
        """Follow the objects of these names from now on, and no others."""
        wanted = set(names)
        for name in self._caches.keys() - wanted:
            self._watches.detach(self._caches.pop(name), self)
        for name in wanted - self._caches.keys():
            path = object_selections.WatchPath(self._resource, name=name, metadata_only=True)
            self._caches[name] = self._watches.attach(path, projections.FullObject(keep=False), self)

    def cache_synced(self, cache: informer_cache.InformerCache) -> None:  # noqa: ARG002
        """See :class:`.CacheListener`."""
        self._changed.set()

    def cache_changed(
        self,
        cache: informer_cache.InformerCache,  # noqa: ARG002
        changes: Sequence[object_changes.Change],  # noqa: ARG002
    ) -> None:
        """See :class:`.CacheListener`."""
        self._changed.set()

    def cache_troubled(self) -> None:
        """See :class:`.CacheListener`."""

    def path_not_served(self, cache: informer_cache.InformerCache) -> None:
        """See :class:`.CacheListener`."""
