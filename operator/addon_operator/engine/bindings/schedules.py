"""Ticks: calls what is due, at the time of the wall clock, once the first converge is done."""

import asyncio
import datetime as dt
from collections.abc import Callable, Hashable
from typing import Final

from addon_operator.aio import waiting
from addon_operator.engine.bindings import timetable
from addon_operator.kernel import clock as clocks

LOOK_AGAIN: Final = 30.0
"""Seconds after which the clock is looked at again at the latest: it may have been set, or have slept."""


class Schedules:
    """The timetable of all hooks, at work until cancelled. Nothing ticks before :meth:`open`."""

    def __init__(self, clock: clocks.Clock) -> None:
        self._clock = clock
        self._table = timetable.Timetable()
        self._news = asyncio.Event()
        self.opened = asyncio.Event()
        """Set by :meth:`open`."""

    def add(self, owner: Hashable, rhythm: timetable.Rhythm, due: Callable[[], object]) -> None:
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
