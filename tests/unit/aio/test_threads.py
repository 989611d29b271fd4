"""Work in the threads of a pool, and in threads that nobody waits for."""

import asyncio
import contextvars
import threading

import pytest

from addon_operator.aio import threads
from tests.support import clocks


async def test_the_result_is_that_of_the_function() -> None:
    assert await threads.run_apart(max, 1, 2) == 2


async def test_an_error_is_passed_on() -> None:
    with pytest.raises(ValueError, match="invalid literal"):
        await threads.run_apart(int, "x")


async def test_work_in_a_pool_sees_the_context_of_its_caller() -> None:
    asked = contextvars.ContextVar("asked", default="nothing")
    asked.set("something")
    assert await threads.run(threads.EDITS, asked.get) == "something"


async def test_a_cancellation_does_not_wait_for_the_end_of_the_work() -> None:
    begun, gate = threading.Event(), threading.Event()

    def work() -> None:
        begun.set()
        gate.wait()

    task = asyncio.create_task(threads.run_apart(work))
    await asyncio.to_thread(begun.wait)
    (thread,) = (each for each in threading.enumerate() if each.name == "work")
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert thread.is_alive()
    assert thread.daemon
    gate.set()
    await asyncio.to_thread(thread.join)
    await clocks.settle()
