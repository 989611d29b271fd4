"""How an operator is asked to end, and what becomes of a part that ends by itself."""

import asyncio
from collections.abc import Callable, Coroutine

import pytest

from addon_operator.app import stopping
from addon_operator.kernel import errors
from tests.support import clocks, logs, rows


@pytest.fixture
def clock() -> clocks.Clock:
    return clocks.Clock()


async def test_the_first_signal_asks_to_stop(clock: clocks.Clock) -> None:
    request = stopping.StopRequest(clock)
    request.ask()
    assert (request.asked.is_set(), request.hurried.is_set()) == (True, False)


@pytest.mark.parametrize(("seconds", "hurries"), [(0.0, False), (0.9, False), (1.0, True), (20.0, True)])
async def test_a_further_signal_hurries_unless_it_is_the_same_key_press(
    clock: clocks.Clock, seconds: float, hurries: bool
) -> None:
    request = stopping.StopRequest(clock)
    request.ask()
    clock.now += seconds
    request.ask()
    assert request.hurried.is_set() == hurries


async def test_a_signal_during_the_start_interrupts_it_once(clock: clocks.Clock) -> None:
    calls: list[str] = []
    request = stopping.StopRequest(clock)
    request.listen(lambda: calls.append("interrupted"))
    request.ask()
    request.ask()
    assert calls == ["interrupted"]


async def test_a_signal_after_the_start_interrupts_nothing(clock: clocks.Clock) -> None:
    calls: list[str] = []
    request = stopping.StopRequest(clock)
    request.listen(lambda: calls.append("interrupted"))
    request.started()
    request.ask()
    assert calls == []
    assert request.asked.is_set()


async def forever() -> None:
    await asyncio.get_running_loop().create_future()


async def fail() -> None:
    raise errors.AddonOperatorError("the Lease was lost")


async def give(value: int) -> int:
    return value


async def test_work_gives_its_result_while_nothing_ends_it() -> None:
    assert await stopping.unless(give(7), forever()) == 7


async def test_work_is_cancelled_by_what_ends_it() -> None:
    cancelled = asyncio.Event()

    async def work() -> None:
        try:
            await forever()
        finally:
            cancelled.set()

    with pytest.raises(errors.AddonOperatorError, match="the Lease was lost"):
        await stopping.unless(work(), fail())
    assert cancelled.is_set()


async def test_work_is_cancelled_together_with_who_waits_for_it() -> None:
    cancelled = asyncio.Event()
    began = asyncio.Event()

    async def work() -> None:
        began.set()
        try:
            await forever()
        finally:
            cancelled.set()

    waiting = asyncio.create_task(stopping.unless(work(), forever()))
    await began.wait()
    waiting.cancel()
    await asyncio.gather(waiting, return_exceptions=True)
    assert cancelled.is_set()


async def ended(work: asyncio.Task[None]) -> "asyncio.Task[None]":
    await asyncio.wait([work])
    return work


async def crash() -> None:
    raise ValueError("no such\nthing")


async def grouped() -> None:
    async with asyncio.TaskGroup() as group:
        group.create_task(crash())
        group.create_task(forever())


async def idle() -> None:
    return


@rows.each("work", [crash, grouped], ids=lambda work: work.__name__)
async def test_a_crash_is_one_sentence_and_the_log_gets_the_cause(
    work: Callable[[], Coroutine[None, None, None]],
) -> None:
    log, task = logs.Records(), await ended(asyncio.create_task(work(), name="engine"))
    error = stopping.defect_of(task, log.logger)
    assert str(error) == (
        "the operator stops because of a bug in its part engine (ValueError: no such thing); "
        "report it with the log"
    )
    (record,) = log
    assert (record["level"], record["event"]) == ("error", "a part of the operator failed: engine")
    assert isinstance(record["exc_info"], ValueError)


async def test_an_error_for_people_is_passed_on() -> None:
    log, task = logs.Records(), await ended(asyncio.create_task(fail(), name="lease"))
    assert str(stopping.defect_of(task, log.logger)) == "the Lease was lost"
    assert log == []


async def test_a_part_that_just_ends_is_a_defect_too() -> None:
    task = await ended(asyncio.create_task(idle(), name="ticks"))
    assert "its part ticks (it ended)" in str(stopping.defect_of(task, logs.Records().logger))
