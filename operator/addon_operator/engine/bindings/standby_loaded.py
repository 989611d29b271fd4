"""Hooks that a replica has loaded to answer the API server while it does not lead, with their snapshots.

They go when they are not needed any more, and are read again when their file changes. Requests that are being
answered still need what goes: it is let go of when the last of them is over.
"""

import asyncio
import pathlib
from collections.abc import Awaitable, Callable, Collection
from typing import Final, TypeAlias

import msgspec

from addon_operator.engine import state
from addon_operator.engine.bindings import triggers
from addon_operator.hook_contract.configuration import bindings, hook_config
from addon_operator.kernel import clock
from addon_operator.kube.informers import informers

ANSWERED_SECONDS: Final = 60.0
"""So long after it was asked for, no request needs a hook any more: the API server waits for 30 seconds."""

Place: TypeAlias = tuple[str, str]
"""Module, empty for the global hooks, and name of a hook."""
Follow: TypeAlias = Callable[[bindings.KubernetesBinding], informers.Subscription]
"""Begins to follow the objects of a binding."""
Stamp: TypeAlias = tuple[int, int, int] | None
"""By what a changed file is known; ``None`` if there is none."""
Read: TypeAlias = Callable[[str, str], Awaitable[tuple[state.Hook, Stamp]]]
"""Asks a hook for its configuration; raises an :class:`.AddonOperatorError`."""


class Loaded(msgspec.Struct):
    """A hook, and what is followed for it."""

    hook: state.Hook
    objects: triggers.FollowedObjects
    stamp: Stamp
    subscriptions: tuple[informers.Subscription, ...]
    asked: float = 0.0
    """When it was last asked for, on the monotonic clock."""

    def close(self) -> None:
        """Let go of what is followed."""
        for subscription in self.subscriptions:
            subscription.close()


class LoadedHooks:
    """Loads hooks when they are first needed, and lets go of them."""

    def __init__(self, read: Read, follow: Follow, clock_: clock.Clock) -> None:
        self._read = read
        self._follow = follow
        self._clock = clock_
        self._loaded: dict[Place, Loaded] = {}
        self._retired: list[Loaded] = []

    def __len__(self) -> int:
        """Return how many are held, with those that requests may still need."""
        return len(self._loaded) + len(self._retired)

    async def get(self, place: Place) -> Loaded:
        """Return a hook as its file is now; raises an :class:`.AddonOperatorError` if there is none."""
        held = self._loaded.get(place)
        if held is None or held.stamp != await asyncio.to_thread(stamp, held.hook.path):
            loaded = await self._load(place)
            self._retire(place)
            self._loaded[place] = held = loaded
        held.asked = self._clock.monotonic()
        return held

    def keep_only(self, places: Collection[Place]) -> None:
        """Let go of all others, as soon as no request needs them."""
        for place in self._loaded.keys() - set(places):
            self._retire(place)
        over = self._clock.monotonic() - ANSWERED_SECONDS
        for loaded in [each for each in self._retired if each.asked <= over]:
            self._retired.remove(loaded)
            loaded.close()

    async def _load(self, place: Place) -> Loaded:
        hook, read = await self._read(*place)
        objects, included = triggers.FollowedObjects(), _included(hook.config)
        subscriptions = []
        for binding in hook.config.kubernetes:
            if binding.name in included:
                subscriptions.append(subscription := self._follow(binding))
                objects.add(hook, binding, subscription)
        return Loaded(hook, objects, read, tuple(subscriptions))

    def _retire(self, place: Place) -> None:
        if (loaded := self._loaded.pop(place, None)) is not None:
            self._retired.append(loaded)


def stamp(path: pathlib.Path) -> Stamp:
    """Return what changes with a file."""
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_ino, found.st_size, found.st_mtime_ns


def _included(config: hook_config.HookConfig) -> set[str]:
    """Return the kubernetes bindings whose snapshots answers need."""
    return {name for each in config.answering for name in each.include_snapshots_from}
