"""The heartbeat of the event loop."""

import asyncio

import pytest

from addon_operator.telemetry import heartbeat
from tests.support import clocks


class EndedError(Exception):
    pass


async def beat_once(heart: heartbeat.Heartbeat) -> None:
    async def sleep(seconds: float) -> None:
        assert seconds == heartbeat.BEAT_SECONDS
        raise EndedError

    with pytest.raises(EndedError):
        await heart.keep(sleep)


async def test_a_loop_that_comes_round_is_healthy() -> None:
    time = clocks.Clock()
    heart = heartbeat.Heartbeat(time)
    time.now += heartbeat.STALE_SECONDS + 5
    await beat_once(heart)
    assert heart.unhealthy_reason() is None


async def test_a_loop_that_does_not_come_round_is_stuck() -> None:
    time = clocks.Clock()
    heart = heartbeat.Heartbeat(time)
    await beat_once(heart)
    time.now += heartbeat.STALE_SECONDS
    assert heart.unhealthy_reason() is None
    time.now += 1
    assert heart.unhealthy_reason() == "the event loop has been stuck for 31 s"


async def test_it_beats_until_it_is_cancelled() -> None:
    task = asyncio.create_task(heartbeat.Heartbeat(clocks.Clock()).keep())
    await clocks.settle()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
