"""When a request goes out, and when it is sent again.

A request that was refused for load (429) was not carried out and may always go again; after a 5xx or a broken
connection only reads may, since a write could have been carried out.
"""

import asyncio
from typing import Final

from addon_operator.aio import waiting
from addon_operator.kernel import clock

READS: Final = frozenset({"GET", "HEAD"})
"""Methods that change nothing."""
MAX_ATTEMPTS: Final = 5
_BACKOFF: Final = waiting.Backoff(0.2, 10.0)
_TRANSIENT: Final = frozenset({None, 500, 502, 503, 504})


def delay(
    number: int, method: str, status: int | None, retry_after: float | None, jitter: float
) -> float | None:
    """Seconds until the next try, or ``None`` to give up.

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
    """Seconds of a ``Retry-After`` header; the API server writes whole seconds, never dates."""
    if header is None or not header.isascii() or not header.isdigit():
        return None
    return float(header[:9])


class RateLimiter:
    """Lets ``burst`` requests through at once and ``qps`` per second after that, in the order they came."""

    def __init__(
        self, qps: float, burst: int, time: clock.Clock, sleep: waiting.Sleep = asyncio.sleep
    ) -> None:
        """``qps`` and ``burst`` are those of ``KUBE_CLIENT_QPS`` and ``KUBE_CLIENT_BURST``."""
        self._qps = qps
        self._burst = burst
        self._clock = time
        self._sleep = sleep
        self._tokens = float(burst)
        self._refilled = time.monotonic()

    async def wait(self) -> None:
        """Return when the next request may go out; at once if ``qps`` is 0."""
        delay = self._reserve()
        if delay > 0:
            await self._sleep(delay)

    def _reserve(self) -> float:
        if self._qps <= 0:
            return 0.0
        now = self._clock.monotonic()
        self._tokens = min(self._burst, self._tokens + (now - self._refilled) * self._qps)
        self._refilled = now
        # The bucket may go below zero: each waiting request has its place in time.
        self._tokens -= 1
        return max(0.0, -self._tokens / self._qps)
