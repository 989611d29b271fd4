"""Metrics that time itself moves: the ticks of a living process and the delay of its event loop."""

import asyncio
from typing import Final

from addon_operator.aio import waiting
from addon_operator.kernel import clock
from addon_operator.telemetry import metrics

TICK_SECONDS: Final = 10.0
LAG_SECONDS: Final = 0.5
BEAT_SECONDS: Final = 1.0
STALE_SECONDS: Final = 30.0
"""Without a beat for so long, the event loop counts as stuck."""


class Heartbeat:
    """Knows when the event loop last came round."""

    def __init__(self, time: clock.Clock) -> None:
        self._clock = time
        self._last = time.monotonic()

    async def keep(self, sleep: waiting.Sleep = asyncio.sleep) -> None:
        """Beat every second, until cancelled."""
        while True:
            self._last = self._clock.monotonic()
            await sleep(BEAT_SECONDS)

    def unhealthy_reason(self) -> str | None:
        """Say why the event loop counts as stuck, or ``None``."""
        age = self._clock.monotonic() - self._last
        return f"the event loop has been stuck for {age:.0f} s" if age > STALE_SECONDS else None


async def tick(registry: metrics.Metrics, sleep: waiting.Sleep = asyncio.sleep) -> None:
    """Count ``live_ticks`` up every ten seconds, until cancelled."""
    while True:
        await sleep(TICK_SECONDS)
        registry.process.live_ticks.inc()


async def watch_lag(
    registry: metrics.Metrics, time: clock.Clock, sleep: waiting.Sleep = asyncio.sleep
) -> None:
    """Measure by how much the event loop wakes too late, until cancelled."""
    while True:
        due = time.monotonic() + LAG_SECONDS
        await sleep(LAG_SECONDS)
        registry.process.loop_lag_seconds.observe(max(0.0, time.monotonic() - due))
