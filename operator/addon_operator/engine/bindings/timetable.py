"""What is due when: moments of schedule bindings and of periods, without a clock of its own."""

import dataclasses
import datetime as dt
import heapq
import itertools
from collections.abc import Callable, Hashable
from typing import Protocol


class Rhythm(Protocol):
    """When something is due; :class:`.Crontab` is one."""

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
class _Entry:
    at: dt.datetime
    number: int
    owner: Hashable = dataclasses.field(compare=False)
    rhythm: Rhythm = dataclasses.field(compare=False)
    due: Callable[[], object] = dataclasses.field(compare=False)
    is_gone: bool = dataclasses.field(default=False, compare=False)


class Timetable:
    """Entries of owners, in the order of their next moments."""

    def __init__(self) -> None:
        self._heap: list[_Entry] = []
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
        heapq.heappush(self._heap, _Entry(rhythm.next_after(now), next(self._numbers), owner, rhythm, due))

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


def _following(entry: _Entry, now: dt.datetime) -> dt.datetime:
    """The next moment after ``now``; equal steps are counted from the first, so that none drifts."""
    if entry.rhythm.every is None:
        return entry.rhythm.next_after(now)
    step = dt.timedelta(seconds=entry.rhythm.every)
    missed = (now - entry.at) // step
    return entry.at + (missed + 1) * step
