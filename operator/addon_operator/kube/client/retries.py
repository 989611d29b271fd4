"""When a request goes out, and when it is sent again.

A request that was refused for load (429) was not carried out and may always go again; after a 5xx or a broken
connection only reads may, since a write could have been carried out.
"""

import contextlib
from collections.abc import Awaitable, Callable
from typing import Final, TypeVar

import msgspec

from addon_operator.aio import waiting
from addon_operator.kube import api_errors

READS: Final = frozenset({"GET", "HEAD"})
"""Methods that change nothing."""
MAX_ATTEMPTS: Final = 5
_BACKOFF: Final = waiting.Backoff(0.2, 10.0)
_TRANSIENT: Final = frozenset({None, 500, 502, 503, 504})
_WRITE_ATTEMPTS: Final = 8
_WRITE_PAUSE_SECONDS: Final = 0.1

T = TypeVar("T")


async def until_written(
    attempt: Callable[[], Awaitable[T]],
    sleep: waiting.Sleep,
    *faster: type[api_errors.ApiError],
) -> T:
    """Call what reads an object, decides and writes it, again as long as somebody else is faster.

    The write has to carry the resourceVersion that was read. ``faster`` are the errors that say so, if not
    only :class:`.Conflict`. Raises what the last attempt raises.
    """
    for number in range(1, _WRITE_ATTEMPTS):
        with contextlib.suppress(api_errors.Conflict, *faster):
            return await attempt()
        await sleep(_WRITE_PAUSE_SECONDS * number)
    return await attempt()


def delay(
    number: int, method: str, status: int | None, retry_after: float | None, jitter: float
) -> float | None:
    """Return the seconds until the next try, or ``None`` to give up.

    ``number`` is that of the try that failed, 1 for the first; ``status`` is ``None`` if no answer came,
    ``retry_after`` what the server asked for in seconds; ``jitter`` is from 0 to 1.
    """
    may_repeat = status == 429 or (method in READS and status in _TRANSIENT)
    if number >= MAX_ATTEMPTS or not may_repeat:
        return None
    if retry_after is None:
        return _BACKOFF.after(number, jitter)
    return min(_BACKOFF.longest, retry_after) + _BACKOFF.first * jitter


def parse_retry_after(header: str | None) -> float | None:
    """Return the seconds of a ``Retry-After`` header; the API server writes whole seconds, never dates."""
    if header is None or not header.isascii() or not header.isdigit():
        return None
    return float(header[:9])


class Rate(msgspec.Struct, frozen=True):
    """How many requests may go out."""

    qps: float
    """Per second, in the long run; 0 lifts the limit."""
    burst: int
    """At once."""


UNLIMITED: Final = Rate(0, 1)


class RateLimiter:
    """Lets as many requests through as the rate allows, in the order they came."""

    def __init__(self, rate: Rate, time: waiting.Time) -> None:
        self._rate = rate
        self._time = time
        self._tokens = float(rate.burst)
        self._refilled = time.monotonic()

    async def wait(self) -> None:
        """Return when the next request may go out."""
        delay = self._reserve()
        if delay > 0:
            await self._time.sleep(delay)

    def _reserve(self) -> float:
        if self._rate.qps <= 0:
            return 0.0
        now = self._time.monotonic()
        self._tokens = min(self._rate.burst, self._tokens + (now - self._refilled) * self._rate.qps)
        self._refilled = now
        # The bucket may go below zero: each waiting request has its place in time.
        self._tokens -= 1
        return max(0.0, -self._tokens / self._rate.qps)
