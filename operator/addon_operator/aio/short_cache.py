"""What was read a moment ago, and reads that are under way, shared by all who ask."""

import asyncio
import collections
from collections.abc import Awaitable, Callable
from typing import Final, Generic, TypeVar

import msgspec

from addon_operator.kernel import clock

K = TypeVar("K")
V = TypeVar("V")

ENTRIES_MAX: Final = 1024
WEIGHT_MAX: Final = 16 << 20
"""Most that all answers may weigh together; in bytes where that is what ``weight`` gives."""


class _Entry(msgspec.Struct, Generic[V], frozen=True):
    value: V
    until: float
    weight: int


class _Run(msgspec.Struct, Generic[V]):
    """An answer that is under way."""

    task: "asyncio.Task[V]"
    waiting: int = 0
    """How many wait for it."""


class ShortCache(Generic[K, V]):
    """Asks ``load`` for a key at most once at a time, and not again for a few seconds.

    To be used in one event loop. What is too old is dropped with the next question, whatever that is about,
    and the oldest answers when there are too many of them. What nobody waits for any more is given up.
    """

    def __init__(
        self,
        load: Callable[[K], Awaitable[V]],
        time: clock.Clock,
        seconds: float,
        *,
        keep: Callable[[V], bool] = lambda _: True,
        weight: Callable[[V], int] = lambda _: 1,
    ) -> None:
        """``keep`` says whether an answer may be given again, ``weight`` what it counts."""
        self._load = load
        self._clock = time
        self._seconds = seconds
        self._keep = keep
        self._weight = weight
        self._weighs = 0
        self._entries: collections.OrderedDict[K, _Entry[V]] = collections.OrderedDict()
        self._running: dict[K, _Run[V]] = {}

    @property
    def running(self) -> int:
        """How many answers are under way."""
        return len(self._running)

    async def get(self, key: K) -> V:
        """Return the value of a key; raises what ``load`` raises, to all who wait for it."""
        self._drop_old()
        entry = self._entries.get(key)
        if entry is not None:
            return entry.value
        run = self._running.get(key)
        if run is None:
            run = self._running[key] = _Run(asyncio.create_task(self._fetch(key)))
            run.task.add_done_callback(_retrieve)
        return await self._wait(key, run)

    async def _wait(self, key: K, run: _Run[V]) -> V:
        run.waiting += 1
        try:
            # Whoever gives up waiting must not take the answer from the others.
            return await asyncio.shield(run.task)
        finally:
            run.waiting -= 1
            if not run.waiting and not run.task.done():
                # Whoever asks from now on begins again.
                del self._running[key]
                run.task.cancel()

    async def _fetch(self, key: K) -> V:
        try:
            value = await self._load(key)
        finally:
            run = self._running.get(key)
            if run is not None and run.task is asyncio.current_task():
                del self._running[key]
        if self._keep(value):
            self._put(key, value)
        return value

    def _put(self, key: K, value: V) -> None:
        if key in self._entries:
            self._weighs -= self._entries.pop(key).weight
        entry = _Entry(value, self._clock.monotonic() + self._seconds, self._weight(value))
        self._entries[key] = entry
        self._weighs += entry.weight
        while len(self._entries) > ENTRIES_MAX or self._weighs > WEIGHT_MAX:
            self._drop_first()

    def _drop_first(self) -> None:
        _, entry = self._entries.popitem(last=False)
        self._weighs -= entry.weight

    def _drop_old(self) -> None:
        now = self._clock.monotonic()
        while self._entries and next(iter(self._entries.values())).until <= now:
            self._drop_first()


def _retrieve(task: "asyncio.Task[V]") -> None:
    """Mark an error as seen: everybody who waited may have given up."""
    if not task.cancelled():
        task.exception()
