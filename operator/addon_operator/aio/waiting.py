"""Time and sleep, pauses that grow from try to try, and waiting that ends in time."""

import asyncio
import contextlib
import random
from collections.abc import Awaitable, Callable, Iterator
from concurrent import futures
from typing import Final, Protocol, TypeVar, TypeVarTuple

import msgspec

from addon_operator.kernel import clock

T = TypeVar("T")
Arguments = TypeVarTuple("Arguments")

Sleep = Callable[[float], Awaitable[None]]
"""Waits that many seconds, as :func:`asyncio.sleep` does."""

_EXPONENT_MAX: Final = 30
"""A power of thousands of failures is not a number any more."""


class Time(clock.Clock, Protocol):
    """Clocks, sleep and chance: a seam, so that tests neither wait nor gamble."""

    async def sleep(self, seconds: float) -> None:
        """Wait that many seconds."""
        ...

    def jitter(self) -> float:
        """Return a random number from 0 to 1."""
        ...


class SystemTime(clock.SystemClock):
    """The machine's clocks, and real chance."""

    async def sleep(self, seconds: float) -> None:
        """Wait that many seconds."""
        await asyncio.sleep(seconds)

    def jitter(self) -> float:
        """Return a random number from 0 to 1."""
        return random.random()  # noqa: S311 - nothing secret


class Timers(Protocol):
    """What calls something later: the event loop, or a test by hand."""

    def call_later(self, delay: float, callback: Callable[[], object], /) -> asyncio.TimerHandle:
        """Call it after ``delay`` seconds, unless the handle is cancelled."""
        ...


class Backoff(msgspec.Struct, frozen=True):
    """Pauses between tries, each longer than the one before; in seconds."""

    first: float
    longest: float
    growth: float = 2.0

    def after(self, failures: int, jitter: float = 0.5) -> float:
        """Return the pause after that many failures in a row.

        ``jitter`` from 0 to 1 makes it 0.5 to 1.5 times as long.
        """
        return min(self.longest, self.first * self.growth ** min(failures - 1, _EXPONENT_MAX)) * (
            0.5 + jitter
        )

    def pauses(self) -> Iterator[float]:
        """Yield the pauses one after another, without end."""
        failures = 0
        while True:
            failures += 1
            yield self.after(failures)


class News:
    """Tells something to all who follow it, each by an event of its own.

    With one event for several, who clears it takes the news from others who do not wait at that moment.
    """

    def __init__(self) -> None:
        self._followers: list[asyncio.Event] = []

    def follow(self) -> asyncio.Event:
        """Return an event for the caller alone, for as long as this lives."""
        event = asyncio.Event()
        self._followers.append(event)
        return event

    def set(self) -> None:
        """Set the events of all followers."""
        for event in self._followers:
            event.set()


async def wait_within(event: asyncio.Event, seconds: float | None) -> bool:
    """Wait for the event, at most that many seconds if not ``None``; whether it came."""
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            await event.wait()
    return event.is_set()


async def wait_until(event: asyncio.Event, moment: float | None, time: clock.Clock) -> bool:
    """Wait for the event, at most until ``moment`` of the monotonic clock if given; whether it came."""
    return await wait_within(event, None if moment is None else max(0.0, moment - time.monotonic()))


class Lasting(asyncio.Future[T]):
    """What will come of work that nobody may leave half done.

    A task that is cancelled while it waits for it waits on, and is cancelled when it is there.
    """

    def cancel(self, msg: object = None) -> bool:  # noqa: ARG002 - the signature of the standard library
        """Refuse, by which a task that waits learns of its cancellation only when it goes on."""
        # It will not ask what came of it.
        self.add_done_callback(asyncio.Future.exception)
        return False


async def in_thread(threads: futures.Executor, function: Callable[[*Arguments], T], *args: *Arguments) -> T:
    """Run blocking work in one of the threads; a cancellation goes on when it is done.

    The loop has less to do than with futures of threads and a shield around them.
    """
    loop = asyncio.get_running_loop()
    done = Lasting[T](loop=loop)

    def work() -> None:
        try:
            result = function(*args)
        except BaseException as error:  # noqa: BLE001 - passed on
            loop.call_soon_threadsafe(done.set_exception, error)
        else:
            loop.call_soon_threadsafe(done.set_result, result)

    threads.submit(work)
    return await done
