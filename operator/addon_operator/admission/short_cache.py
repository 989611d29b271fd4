"""What was read a moment ago, and reads that are under way, shared by all who ask."""

import asyncio
import collections
import dataclasses
from collections.abc import Awaitable, Callable
from typing import Final, Generic, TypeVar

from addon_operator.kernel import clock

K = TypeVar("K")
V = TypeVar("V")

ENTRIES_MAX: Final = 1024


@dataclasses.dataclass(frozen=True, slots=True)
class _Entry(Generic[V]):
    value: V
    until: float


class ShortCache(Generic[K, V]):
    """Asks ``load`` for a key at most once at a time, and not again for a few seconds.

    To be used in one event loop. What is too old is dropped with the next question, whatever that is about.
    """

    def __init__(
        self,
        load: Callable[[K], Awaitable[V]],
        time: clock.Clock,
        seconds: float,
        *,
        keep: Callable[[V], bool] = lambda _: True,
    ) -> None:
        """``keep`` says whether an answer may be given again."""
        self._load = load
        self._clock = time
        self._seconds = seconds
        self._keep = keep
        self._entries: collections.OrderedDict[K, _Entry[V]] = collections.OrderedDict()
        self._running: dict[K, asyncio.Task[V]] = {}

    async def get(self, key: K) -> V:
        """The value of a key; raises what ``load`` raises, to all who wait for it."""
        self._drop_old()
        entry = self._entries.get(key)
        if entry is not None:
            return entry.value
        running = self._running.get(key)
        if running is None:
            running = self._running[key] = asyncio.create_task(self._fetch(key))
            running.add_done_callback(_retrieve)
        # Whoever gives up waiting must not take the answer from the others.
        return await asyncio.shield(running)

    async def _fetch(self, key: K) -> V:
        try:
            value = await self._load(key)
        finally:
            del self._running[key]
        if self._keep(value):
            self._entries[key] = _Entry(value, self._clock.monotonic() + self._seconds)
            if len(self._entries) > ENTRIES_MAX:
                self._entries.popitem(last=False)
        return value

    def _drop_old(self) -> None:
        now = self._clock.monotonic()
        while self._entries and next(iter(self._entries.values())).until <= now:
            self._entries.popitem(last=False)


def _retrieve(task: "asyncio.Task[V]") -> None:
    """Mark an error as seen: everybody who waited may have given up."""
    if not task.cancelled():
        task.exception()
