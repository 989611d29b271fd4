"""Ticks: calls what is due, at the time of the wall clock, once the first converge is done."""

import asyncio
import datetime as dt
from collections.abc import Callable, Hashable
from typing import Final

import msgspec

from addon_operator.aio import waiting
from addon_operator.hook_contract import crontab
from addon_operator.kernel import clock as clocks

LOOK_AGAIN: Final = 30.0
"""Seconds after which the clock is looked at again at the latest: it may have been set, or have slept."""


class _Appointment(msgspec.Struct):
    at: dt.datetime
    owner: Hashable
    rhythm: crontab.Crontab
    due: Callable[[], object]


class Timetable:
    """Keeps entries of owners with their next moments, without a clock of its own."""

    def __init__(self) -> None:
        self._entries: list[_Appointment] = []

    @property
    def next(self) -> dt.datetime | None:
        """The next moment at which something is due."""
        return min((entry.at for entry in self._entries), default=None)

    def add(
        self, owner: Hashable, rhythm: crontab.Crontab, due: Callable[[], object], now: dt.datetime
    ) -> None:
        """Call ``due`` at each moment of ``rhythm`` after ``now``, until :meth:`remove`."""
        self._entries.append(_Appointment(rhythm.next_after(now), owner, rhythm, due))

    def remove(self, owner: Hashable) -> None:
        """Forget all entries of the owner."""
        self._entries = [entry for entry in self._entries if entry.owner != owner]

    def take_due(self, now: dt.datetime) -> list[Callable[[], object]]:
        """Take what is due by ``now``; moments that were missed are made up for by one."""
        due = sorted((entry for entry in self._entries if entry.at <= now), key=lambda entry: entry.at)
        for entry in due:
            entry.at = _following(entry, now)
        return [entry.due for entry in due]

    def restart(self, now: dt.datetime) -> None:
        """Begin all rhythms anew at ``now``: what was due before is not made up for."""
        for entry in self._entries:
            entry.at = entry.rhythm.next_after(now)


def _following(entry: _Appointment, now: dt.datetime) -> dt.datetime:
    """Return the next moment after ``now``; equal steps are counted from the first, so that none drifts."""
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

    def add(self, owner: Hashable, rhythm: crontab.Crontab, due: Callable[[], object]) -> None:
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
