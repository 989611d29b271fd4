"""Single operations of queues are measured under the names of the original."""

import asyncio

from addon_operator.engine import events, tasks
from addon_operator.engine.queues import queue_set
from tests.support import clocks
from tests.unit.engine import fakes


async def test_each_operation_is_reported_with_its_queue() -> None:
    heard = fakes.Heard()
    failures = [True]

    async def run(_: tasks.Task) -> None:
        if failures:
            failures.clear()
            raise RuntimeError("once")

    clock = clocks.Clock()
    queues = queue_set.QueueSet(heard.append, clock=clock)
    queues.use("own")
    working = asyncio.create_task(queues.work())
    queues["own"].add(fakes.CallTask(tasks.TaskKind.MODULE_HOOK_RUN, run))
    await clocks.settle()
    await clock.advance(60)
    queues["own"].drop(lambda _: True)
    working.cancel()
    await asyncio.gather(working, return_exceptions=True)
    measured = heard.of(events.QueueOperation)
    assert all(event.seconds >= 0 for event in measured)
    told = [(event.queue, event.operation) for event in measured]
    assert [action for queue, action in told if queue == "own" and action != "RemoveFirst"] == [
        "AddLast",
        "AddFirst",
        "Filter",
    ]
    assert ("main", "RemoveFirst") in told
