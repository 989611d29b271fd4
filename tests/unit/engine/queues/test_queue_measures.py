"""Single operations of queues are measured under the names of the original."""

import asyncio

from addon_operator.engine.queues import queue_set, tasks
from tests.unit.engine import fakes


async def test_each_operation_is_told_with_its_queue() -> None:
    told: list[tuple[str, str]] = []
    failures = [True]

    async def run(_: tasks.Task) -> None:
        if failures:
            failures.clear()
            raise RuntimeError("once")

    def measure(queue: str, action: str, seconds: float) -> None:
        assert seconds >= 0
        told.append((queue, action))

    clock = fakes.Clock()
    queues = queue_set.QueueSet(fakes.QueueLog(), lambda _: None, clock=clock, measure=measure)
    queues.use("own")
    working = asyncio.create_task(queues.work())
    queues["own"].add(tasks.Task(tasks.TaskKind.MODULE_HOOK_RUN, run))
    await fakes.settle()
    await clock.advance(60, queues["own"])
    working.cancel()
    await asyncio.gather(working, return_exceptions=True)
    assert [action for queue, action in told if queue == "own" and action != "RemoveFirst"] == [
        "AddLast",
        "AddFirst",
        "Filter",
    ]
    assert ("main", "RemoveFirst") in told
