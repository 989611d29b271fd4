"""Named queues wait for their failing head, go with their last task, and end with the operator.

Tests of bindings hold that they are made, worked beside each other, and gone with their last binding.
"""

import asyncio
from collections.abc import AsyncIterator

import pytest

from addon_operator.engine import events, tasks
from addon_operator.engine.queues import queue_set
from addon_operator.kernel import errors
from tests.support import clocks
from tests.unit.engine import fakes


class Bench:
    def __init__(self) -> None:
        self.ran: list[str] = []
        self.clock = clocks.Clock()
        self.log = fakes.Heard()
        self.queues = queue_set.QueueSet(self.log.append, clock=self.clock)
        self.gate = asyncio.Event()

    def add(self, queue: str, name: str, *, fails: bool = False, waits: bool = False) -> tasks.Task:
        async def run(task: tasks.Task) -> None:
            self.ran.append(name)
            if waits:
                await self.gate.wait()
            if fails:
                raise errors.AddonOperatorError(f"{name} failed")

        task = fakes.CallTask(tasks.TaskKind.MODULE_HOOK_RUN, run, owner=name, hook=name)
        return self.queues[queue].add(task)

    @property
    def gone(self) -> list[str]:
        return [event.queue for event in self.log.of(events.QueueGone)]

    @property
    def names(self) -> list[str]:
        return [queue.name for queue in self.queues.all]


@pytest.fixture
async def bench() -> AsyncIterator[Bench]:
    made = Bench()
    working = asyncio.create_task(made.queues.work())
    await clocks.settle()
    yield made
    working.cancel()
    await asyncio.gather(working, return_exceptions=True)


async def test_a_failing_head_holds_up_its_named_queue_and_no_other(bench: Bench) -> None:
    for name in ("one", "two"):
        bench.queues.use(name)
    bench.add("one", "a", fails=True)
    bench.add("one", "b")
    bench.add("two", "c")
    bench.add("main", "d")
    await clocks.settle()
    assert sorted(bench.ran) == ["a", "c", "d"]
    await bench.clock.advance(30)
    assert sorted(bench.ran) == ["a", "a", "c", "d"]


async def test_a_queue_without_bindings_ends_with_its_last_task(bench: Bench) -> None:
    bench.queues.use("slow")
    task = bench.add("slow", "a", waits=True)
    await clocks.settle()
    bench.queues.leave("slow")
    assert bench.names == ["main", "slow"]
    bench.gate.set()
    assert await task.done is tasks.Outcome.DONE
    await clocks.settle()
    assert bench.names == ["main"]
    assert bench.gone == ["slow"]


async def test_a_drain_begins_nothing_more_in_any_queue(bench: Bench) -> None:
    bench.queues.use("slow")
    running = bench.add("slow", "a", waits=True)
    bench.add("slow", "b")
    await clocks.settle()
    draining = asyncio.create_task(bench.queues.drain(5))
    await clocks.settle()
    bench.add("main", "c")
    bench.add("late", "d")
    bench.gate.set()
    await draining
    await clocks.settle()
    assert bench.ran == ["a"]
    assert running.done.done()
