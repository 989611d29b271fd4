"""Pauses between tries, and waiting that ends in time."""

import asyncio
import itertools

import pytest

from addon_operator.aio import waiting


def test_each_pause_is_twice_as_long_until_the_longest() -> None:
    pauses = waiting.Backoff(0.5, 3.0).pauses()
    assert list(itertools.islice(pauses, 5)) == [0.5, 1.0, 2.0, 3.0, 3.0]


def test_a_pause_is_spread_around_its_length() -> None:
    backoff = waiting.Backoff(1.0, 10.0)
    assert [backoff.after(2, jitter) for jitter in (0.0, 0.5, 1.0)] == [1.0, 2.0, 3.0]


def test_thousands_of_failures_give_the_longest_pause() -> None:
    assert waiting.Backoff(1.0, 10.0).after(100_000) == 10.0


async def test_waiting_ends_with_the_event_or_with_the_time() -> None:
    event = asyncio.Event()
    assert not await waiting.wait_within(event, 0)
    event.set()
    assert await waiting.wait_within(event, 0)
    assert await waiting.wait_within(event, None)


def test_a_pause_may_grow_more_slowly() -> None:
    assert list(itertools.islice(waiting.Backoff(4.0, 10.0, growth=1.5).pauses(), 4)) == [4.0, 6.0, 9.0, 10.0]


async def test_work_that_must_end_is_waited_for_however_often_its_waiter_is_cancelled() -> None:
    work: asyncio.Future[int] = asyncio.get_running_loop().create_future()
    waiter = asyncio.create_task(waiting.to_its_end(work))
    for _ in range(3):
        await asyncio.sleep(0)
        waiter.cancel()
    await asyncio.sleep(0)
    assert not waiter.done()
    work.set_result(3)
    with pytest.raises(asyncio.CancelledError):
        await waiter


async def test_how_work_that_must_end_ends_is_what_its_waiter_gets() -> None:
    loop = asyncio.get_running_loop()
    assert await waiting.to_its_end(loop.run_in_executor(None, lambda: 3)) == 3
    with pytest.raises(ZeroDivisionError):
        await waiting.to_its_end(loop.run_in_executor(None, lambda: 1 // 0))
