"""A token bucket that delays requests, as ``KUBE_CLIENT_QPS`` and ``KUBE_CLIENT_BURST`` ask for."""

import asyncio
from collections.abc import Awaitable, Callable

from addon_operator.kernel import clock

Sleep = Callable[[float], Awaitable[None]]


class RateLimiter:
    """Lets ``burst`` requests through at once and ``qps`` per second after that, in the order they came."""

    def __init__(self, qps: float, burst: int, time: clock.Clock, sleep: Sleep = asyncio.sleep) -> None:
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
