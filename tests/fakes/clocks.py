"""Time that passes when a test says so, and the moment when nothing is left to do without it."""

import asyncio
import time
from typing import Any, Final

from typing_extensions import override

from addon_operator.kernel import clock

_THREAD_SECONDS: Final = 0.0005
"""Between two looks at threads that work."""
_PATIENCE: Final = 30.0
"""Seconds until something that never comes to rest is a failure."""


class Clock(clock.Clock):
    """Stands still until a test moves it; then whatever sleeps on the event loop wakes in time, too."""

    def __init__(self) -> None:
        self.now = 100.0

    @override
    def monotonic(self) -> float:
        return self.now

    @override
    def time(self) -> float:
        return self.now

    async def advance(self, seconds: float) -> None:
        """Let so much time pass, and everything happen that is due then."""
        self.now += seconds
        _skip(asyncio.get_running_loop(), seconds)
        await settle()


def _skip(loop: asyncio.AbstractEventLoop, seconds: float) -> None:
    """Move the time of the loop, by which its timers go off, on."""
    inside: dict[str, Any] = vars(loop)
    if "skipped" not in inside:
        before = loop.time
        inside["time"] = lambda: before() + inside["skipped"]
    inside["skipped"] = inside.get("skipped", 0.0) + seconds


async def settle() -> None:
    """Return when nothing is left that can run without time passing, in threads neither."""
    loop = asyncio.get_running_loop()
    ends, is_quiet = time.monotonic() + _PATIENCE, False
    while True:
        # The second turn of two quiet ones has asked the sockets and pipes for news, too.
        was_quiet = is_quiet
        await asyncio.sleep(_THREAD_SECONDS if _threads_work(loop) else 0)
        is_quiet = not _is_busy(loop)
        if is_quiet and was_quiet:
            return
        if time.monotonic() > ends:
            raise AssertionError("it never comes to rest")


def _is_busy(loop: asyncio.AbstractEventLoop) -> bool:
    """Say whether a callback is ready, a timer is due, or a thread works."""
    insides: dict[str, Any] = vars(loop)
    due = (handle.when() <= loop.time() for handle in insides["_scheduled"] if not handle.cancelled())
    return bool(insides["_ready"]) or any(due) or _threads_work(loop)


def _threads_work(loop: asyncio.AbstractEventLoop) -> bool:
    executor: Any = vars(loop).get("_default_executor")
    return executor is not None and executor._idle_semaphore._value < len(executor._threads)
