"""Pauses between tries, and waiting that ends in time."""

import asyncio
import gc
import itertools
import threading
from concurrent import futures

import pytest

from addon_operator.aio import waiting
from tests.support import rows


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


async def test_what_must_come_is_waited_for_however_often_its_waiter_is_cancelled() -> None:
    lasting = waiting.Lasting[int](loop=asyncio.get_running_loop())

    async def wait() -> int:
        return await lasting

    waiter = asyncio.create_task(wait())
    for _ in range(3):
        await asyncio.sleep(0)
        waiter.cancel()
    await asyncio.sleep(0)
    assert not waiter.done()
    lasting.set_result(3)
    with pytest.raises(asyncio.CancelledError):
        await waiter


async def test_how_work_in_a_thread_ends_is_what_its_waiter_gets() -> None:
    with futures.ThreadPoolExecutor(1) as threads:
        assert await waiting.in_thread(threads, divmod, 7, 2) == (3, 1)
        with pytest.raises(ZeroDivisionError):
            await waiting.in_thread(threads, divmod, 1, 0)


@rows.each("divisor", [1, 0])
async def test_work_in_a_thread_is_waited_for_by_whom_is_cancelled_and_its_error_is_nobodys(
    divisor: int,
) -> None:
    unheard, going_on, ended = list[object](), threading.Event(), list[int]()
    asyncio.get_running_loop().set_exception_handler(lambda _, context: unheard.append(context))

    def work() -> float:
        going_on.wait(60)
        ended.append(1)
        return 1 / divisor

    with futures.ThreadPoolExecutor(1) as threads:
        waiter = asyncio.create_task(waiting.in_thread(threads, work))
        await asyncio.sleep(0)
        waiter.cancel()
        await asyncio.sleep(0)
        assert not waiter.done()
        going_on.set()
        with pytest.raises(asyncio.CancelledError):
            await waiter
    assert ended
    del waiter
    gc.collect()
    assert not unheard
