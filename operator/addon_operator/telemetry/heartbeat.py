"""Metrics that time itself moves: the ticks of a living process and the delay of its event loop."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final

from addon_operator.kernel import clock
from addon_operator.telemetry import metrics

TICK_SECONDS: Final = 10.0
LAG_SECONDS: Final = 0.5

Sleep = Callable[[float], Awaitable[None]]


async def tick(meters: metrics.Metrics, sleep: Sleep = asyncio.sleep) -> None:
    """Count ``live_ticks`` up every ten seconds, until cancelled."""
    while True:
        await sleep(TICK_SECONDS)
        meters.process.live_ticks.inc()


async def watch_lag(meters: metrics.Metrics, time: clock.Clock, sleep: Sleep = asyncio.sleep) -> None:
    """Measure by how much the event loop wakes too late, until cancelled."""
    while True:
        due = time.monotonic() + LAG_SECONDS
        await sleep(LAG_SECONDS)
        meters.process.loop_lag_seconds.observe(max(0.0, time.monotonic() - due))
