"""Timers that go off when a test says so."""

import asyncio
from collections.abc import Callable

from typing_extensions import override


class Timer(asyncio.TimerHandle):
    """Goes off when a test calls it; nothing waits for it."""

    def __init__(self, seconds: float, call: Callable[[], object]) -> None:
        self.seconds = seconds
        self.call = call
        self.is_cancelled = False

    @override
    def cancel(self) -> None:
        self.is_cancelled = True


class Timers(list[Timer]):
    """All that were set; its ``call_later`` takes the place of an event loop's."""

    def call_later(self, delay: float, callback: Callable[[], object], /) -> asyncio.TimerHandle:
        timer = Timer(delay, callback)
        self.append(timer)
        return timer

    @property
    def running(self) -> list[Timer]:
        return [timer for timer in self if not timer.is_cancelled]
