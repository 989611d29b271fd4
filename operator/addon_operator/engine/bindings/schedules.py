"""Ticks: calls what is due, at the time of the wall clock, once the first converge is done."""

import asyncio
import dataclasses
import datetime as dt
import heapq
import itertools
from collections.abc import Callable, Hashable
from typing import Final, Protocol

from addon_operator.aio import waiting
from addon_operator.kernel import clock as clocks

LOOK_AGAIN: Final = 30.0
"""Seconds after which the clock is looked at again at the latest: it may have been set, or have slept."""


class Rhythm(Protocol):
    """Says when something is due: :class:`.Crontab` and :class:`Period` do."""

    @property
    def every(self) -> float | None:
        """Seconds between two moments, if that is all there is to it."""
        ...

    def next_after(self, moment: dt.datetime) -> dt.datetime:
        """The first moment after ``moment``."""
        ...


@dataclasses.dataclass(frozen=True, slots=True)
class Period:
    """A rhythm of equal steps."""

    every: float
    """Seconds."""

    def next_after(self, moment: dt.datetime) -> dt.datetime:
        """One step later."""
        return moment + dt.timedelta(seconds=self.every)


@dataclasses.dataclass(slots=True, order=True)
class _Appointment:
    at: dt.datetime
    number: int
    owner: Hashable = dataclasses.field(compare=False)
    rhythm: Rhythm = dataclasses.field(compare=False)
    due: Callable[[], object] = dataclasses.field(compare=False)
    is_gone: bool = dataclasses.field(default=False, compare=False)


class Timetable:
    """Keeps entries of owners in the order of their next moments, without a clock of its own."""

    def __init__(self) -> None:
        self._heap: list[_Appointment] = []
        self._numbers = itertools.count()

    def __len__(self) -> int:
        return sum(not entry.is_gone for entry in self._heap)

    @property
    def next(self) -> dt.datetime | None:
        """The next moment at which something is due."""
        while self._heap and self._heap[0].is_gone:
            heapq.heappop(self._heap)
        return self._heap[0].at if self._heap else None

    def add(self, owner: Hashable, rhythm: Rhythm, due: Callable[[], object], now: dt.datetime) -> None:
        """Call ``due`` at each moment of ``rhythm`` after ``now``, until :meth:`remove`."""
        heapq.heappush(
            self._heap, _Appointment(rhythm.next_after(now), next(self._numbers), owner, rhythm, due)
        )

    def remove(self, owner: Hashable) -> None:
        """Forget all entries of the owner."""
        for entry in self._heap:
            if entry.owner == owner:
                entry.is_gone = True
        self._heap = [entry for entry in self._heap if not entry.is_gone]
        heapq.heapify(self._heap)

    def take_due(self, now: dt.datetime) -> list[Callable[[], object]]:
        """What is due by ``now``; moments that were missed are made up for by one."""
        found = []
        while (moment := self.next) is not None and moment <= now:
            entry = heapq.heappop(self._heap)
            found.append(entry.due)
            entry.at = _following(entry, now)
            heapq.heappush(self._heap, entry)
        return found

    def restart(self, now: dt.datetime) -> None:
        """Begin all rhythms anew at ``now``: what was due before is not made up for."""
        for entry in self._heap:
            entry.at = entry.rhythm.next_after(now)
        heapq.heapify(self._heap)


def _following(entry: _Appointment, now: dt.datetime) -> dt.datetime:
    """The next moment after ``now``; equal steps are counted from the first, so that none drifts."""
    if entry.rhythm.every is None:
        return entry.rhythm.next_after(now)
    step = dt.timedelta(seconds=entry.rhythm.every)
    missed = (now - entry.at) // step
    return entry.at + (missed + 1) * step


class Schedules:
    """The timetable of all hooks, at work until cancelled. Nothing ticks before :meth:`open`."""

    def __init__(self, clock: clocks.Clock) -> None:
        self._clock = clock
        self._table = Timetable()
        self._news = asyncio.Event()
        self.opened = asyncio.Event()
        """Set by :meth:`open`."""

    def add(self, owner: Hashable, rhythm: Rhythm, due: Callable[[], object]) -> None:
        """Call ``due`` at each moment of ``rhythm`` from now on."""
        self._table.add(owner, rhythm, due, self._now())
        self._news.set()

    def remove(self, owner: Hashable) -> None:
        """End all that the owner added."""
        self._table.remove(owner)

    def open(self) -> None:
        """Begin to tick; moments before are not made up for."""
        if not self.opened.is_set():
            self.opened.set()
            self._table.restart(self._now())
            self._news.set()

    def tick(self) -> None:
        """Call all that is due by now."""
        if self.opened.is_set():
            for due in self._table.take_due(self._now()):
                due()

    async def work(self) -> None:
        """Tick until cancelled."""
        while True:
            self._news.clear()
            self.tick()
            await waiting.wait_within(self._news, self._pause())

    def _pause(self) -> float | None:
        moment = self._table.next if self.opened.is_set() else None
        if moment is None:
            return None
        return min(max((moment - self._now()).total_seconds(), 0.0), LOOK_AGAIN)

    def _now(self) -> dt.datetime:
        return dt.datetime.fromtimestamp(self._clock.time(), dt.UTC)
