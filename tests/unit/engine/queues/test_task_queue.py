"""The order in which a queue runs its tasks, and what a failure holds up."""

import asyncio
import collections
import random
from collections.abc import AsyncIterator, Awaitable, Callable

import pytest
from typing_extensions import override

from addon_operator.engine import tasks
from addon_operator.engine.modules import module_run
from addon_operator.engine.queues import task_queue
from addon_operator.kernel import errors
from tests.support import clocks
from tests.unit.engine import fakes


class Bench:
    """A working queue whose tasks report what they do."""

    def __init__(self, parallelism: int = 1) -> None:
        self.clock = clocks.Clock()
        self.heard = fakes.Heard()
        self.queue = task_queue.TaskQueue(
            "main", tell=self.heard.append, clock=self.clock, parallelism=parallelism, rng=random.Random(1)
        )
        self.ran: list[str] = []
        self.fail: collections.Counter[str] = collections.Counter()
        self.gates: dict[str, asyncio.Event] = {}
        self.postpone: dict[str, float] = {}

    def task(self, name: str, owner: str = "", lane: int | None = None, **more: object) -> tasks.Task:
        async def run(task: tasks.Task) -> None:
            self.ran.append(name)
            if name in self.gates:
                await self.gates[name].wait()
                if name not in self.postpone:
                    task.checkpoint()
            if name in self.postpone:
                raise tasks.PostponedError(self.postpone[name])
            if self.fail[name] > 0:
                self.fail[name] -= 1
                raise errors.AddonOperatorError(f"{name} failed")

        return fakes.CallTask(tasks.TaskKind.MODULE_RUN, run, owner=owner, hook=name, lane=lane, **more)  # type: ignore[arg-type] # names are those of a task

    def add(self, name: str, owner: str = "", **more: object) -> tasks.Task:
        return self.queue.add(self.task(name, owner, **more))  # type: ignore[arg-type] # as above


@pytest.fixture
async def working() -> AsyncIterator[Callable[..., Awaitable[Bench]]]:
    workers: list[asyncio.Task[None]] = []

    async def start(parallelism: int = 1) -> Bench:
        bench = Bench(parallelism)
        workers.append(asyncio.create_task(bench.queue.work()))
        return bench

    yield start
    for worker in workers:
        worker.cancel()
    await asyncio.gather(*workers, return_exceptions=True)


Start = Callable[..., Awaitable[Bench]]


async def test_tasks_run_in_the_order_they_came(working: Start) -> None:
    bench = await working()
    last = [bench.add(name) for name in "abc"][-1]
    assert await last.done is tasks.Outcome.DONE
    assert bench.ran == ["a", "b", "c"]


async def test_a_task_that_waits_in_its_try_holds_up_its_owner_alone(working: Start) -> None:
    bench = await working()
    gone = asyncio.Event()

    async def run(task: tasks.Task) -> None:
        with task.waiting("ConfigMap a/b to be gone"):
            await gone.wait()
        bench.ran.append("waits")

    waits = bench.queue.add(fakes.CallTask(tasks.TaskKind.MODULE_HOOK_RUN, run, owner="one"))
    later = bench.add("later", "one")
    assert await bench.add("other", "two").done is tasks.Outcome.DONE
    assert await bench.add("global").done is tasks.Outcome.DONE
    assert (bench.ran, waits.waits_for) == (["other", "global"], "ConfigMap a/b to be gone")
    gone.set()
    assert await later.done is tasks.Outcome.DONE
    assert (bench.ran[2:], waits.waits_for) == (["waits", "later"], "")


async def test_a_task_that_waits_in_its_try_stops_when_it_is_superseded(working: Start) -> None:
    bench = await working()
    looked = asyncio.Event()

    async def run(task: tasks.Task) -> None:
        with task.waiting("ConfigMap a/b to be gone") as check:
            looked.set()
            await task.stopping.wait()
            check()

    task = bench.queue.add(fakes.CallTask(tasks.TaskKind.MODULE_HOOK_RUN, run, owner="one"))
    await looked.wait()
    bench.queue.drop(lambda each: each.owner == "one")
    assert await task.done is tasks.Outcome.DROPPED


async def test_a_failed_task_is_tried_again_before_later_tasks_of_its_module(working: Start) -> None:
    bench = await working()
    bench.fail["a"] = 1
    bench.add("a", "one")
    bench.add("b", "one")
    await clocks.settle()
    assert bench.ran == ["a"]
    await bench.clock.advance(30)
    assert bench.ran == ["a", "a", "b"]


async def test_the_backoff_of_one_module_does_not_hold_up_another(working: Start) -> None:
    bench = await working()
    bench.fail["a"] = 1
    bench.add("a", "one")
    other = bench.add("b", "two")
    assert await other.done is tasks.Outcome.DONE
    assert bench.ran == ["a", "b"]


async def test_a_queue_that_is_hastened_tries_at_once_what_failed(working: Start) -> None:
    bench = await working()
    bench.fail["a"] = 1
    bench.postpone["b"] = 60.0
    bench.add("a", "one")
    bench.add("b", "two")
    await clocks.settle()
    bench.queue.hasten()
    await clocks.settle()
    assert bench.ran == ["a", "b", "a"], "what was postponed has not failed"


async def test_only_the_failed_tasks_that_are_wanted_are_hastened(working: Start) -> None:
    bench = await working()
    bench.fail |= {"a": 1, "b": 1}
    bench.add("a", "one")
    bench.add("b", "two")
    await clocks.settle()
    bench.queue.hasten(lambda task: task.owner == "two")
    await clocks.settle()
    assert bench.ran == ["a", "b", "b"]


async def test_tasks_of_one_lane_run_side_by_side_up_to_the_parallelism(working: Start) -> None:
    bench = await working(2)
    for name in "abc":
        bench.gates[name] = asyncio.Event()
        bench.add(name, name, lane=10)
    await clocks.settle()
    assert bench.ran == ["a", "b"]
    bench.gates["b"].set()
    await clocks.settle()
    assert bench.ran == ["a", "b", "c"]


async def test_owners_do_not_wait_for_each_other(working: Start) -> None:
    bench = await working()
    for name in ("hook", "run", "global"):
        bench.gates[name] = asyncio.Event()
    bench.add("hook", "one")
    bench.add("after it", "one")
    bench.add("run", "two", lane=20)
    bench.add("global")
    bench.add("other", "three")
    await clocks.settle()
    assert bench.ran == ["hook", "run", "global", "other"]


async def test_a_task_whose_hook_hangs_counts_as_tried_and_takes_no_place(working: Start) -> None:
    bench = await working(1)
    hangs = asyncio.Event()

    async def run(task: tasks.Task) -> None:
        task.set_stuck()
        await hangs.wait()

    stuck = bench.queue.add(fakes.CallTask(tasks.TaskKind.MODULE_RUN, run, owner="one", lane=10))
    behind = bench.add("behind", "one", lane=10)
    await stuck.tried
    await behind.tried
    assert await bench.add("other", "two", lane=10).done is tasks.Outcome.DONE
    assert not stuck.done.done()
    hangs.set()
    assert await behind.done is tasks.Outcome.DONE
    assert bench.ran == ["other", "behind"]


async def test_a_task_that_others_are_not_to_run_beside_waits_for_who_is_at_work_alone(
    working: Start,
) -> None:
    bench = await working()
    bench.gates["run"] = asyncio.Event()
    bench.fail["fails"] = 1
    bench.add("run", "one")
    bench.add("fails", "two")
    await clocks.settle()
    bench.add("reload", also=frozenset({"one", "two"}))
    bench.add("later", "two")
    await clocks.settle()
    assert bench.ran == ["run", "fails"]
    bench.gates["run"].set()
    await clocks.settle()
    assert bench.ran == ["run", "fails", "reload"], "a failed one is not waited for, and holds its own"


async def test_two_tasks_of_one_module_never_run_at_once(working: Start) -> None:
    bench = await working(4)
    bench.gates["a"] = asyncio.Event()
    bench.add("a", "one", lane=10)
    bench.add("b", "one", lane=10)
    await clocks.settle()
    assert bench.ran == ["a"]


async def test_a_duplicate_of_a_pending_task_is_that_task(working: Start) -> None:
    bench = await working()
    bench.gates["a"] = asyncio.Event()
    running = bench.add("a", "one")
    await clocks.settle()
    first, second = bench.add("a", "one"), bench.add("a", "one")
    assert first is second
    assert first is not running, "what already runs may have read old values"


async def test_a_dropped_task_never_runs_and_tells_who_waits(working: Start) -> None:
    bench = await working()
    bench.fail["a"] = 99
    failing = bench.add("a", "one", converge=1)
    await clocks.settle()
    bench.queue.drop(lambda task: task.converge == 1)
    assert await failing.done is tasks.Outcome.DROPPED
    await bench.clock.advance(60)
    assert bench.ran == ["a"]


async def test_adding_and_dropping_tasks_compares_none_with_another() -> None:
    compared: list[object] = []

    class Compared(fakes.CallTask):
        @property
        @override
        def key(self) -> tuple[str, str, str, str]:
            compared.append(self)
            return super().key

        @override
        def __eq__(self, other: object) -> bool:
            compared.append(other)
            return self is other

        __hash__ = tasks.Task.__hash__

    async def run(_task: tasks.Task) -> None:
        raise AssertionError("nothing works on this queue")

    bench = Bench()
    added = [Compared(tasks.TaskKind.MODULE_RUN, run, owner=f"{number}") for number in range(100)]
    for task in added:
        bench.queue.add(task)
    bench.queue.drop(lambda task: int(task.owner) % 2 == 1)
    assert list(bench.queue.tasks) == added[::2]
    assert len(compared) < 10 * len(added)


async def test_a_running_task_that_is_dropped_stops_at_its_next_checkpoint(working: Start) -> None:
    bench = await working()
    bench.gates["a"] = asyncio.Event()
    task = bench.add("a", "one", converge=1)
    await clocks.settle()
    bench.queue.drop(lambda task: task.converge == 1)
    assert not task.done.done()
    bench.gates["a"].set()
    assert await task.done is tasks.Outcome.DROPPED
    assert bench.heard.failures == []


async def test_an_allowed_failure_is_reported_and_not_tried_again(working: Start) -> None:
    bench = await working()
    bench.fail["a"] = 1
    task = bench.add("a", "one", allow_failure=True)
    assert await task.done is tasks.Outcome.DONE
    assert bench.heard.failures == [("one", "a failed", None)]


async def test_the_first_try_is_reported_even_when_it_failed(working: Start) -> None:
    bench = await working()
    bench.fail["a"] = 1
    task = bench.add("a", "one")
    await task.tried
    assert not task.done.done()
    assert (task.attempts, task.last_error) == (1, "a failed")


async def test_an_error_is_kept_with_and_without_values(working: Start) -> None:
    class TellsTooMuchError(errors.AddonOperatorError):
        @property
        @override
        def without_values(self) -> str:
            return "the values are not valid"

    async def fail(task: tasks.Task) -> None:
        raise TellsTooMuchError("size: 'huge' is not an integer")

    async def break_down(task: tasks.Task) -> None:
        raise KeyError("huge")

    bench = await working()
    told = bench.queue.add(fakes.CallTask(tasks.TaskKind.MODULE_RUN, fail, owner="a"))
    await told.tried
    assert (told.last_error, told.last_error_without_values) == (
        "size: 'huge' is not an integer",
        "the values are not valid",
    )
    defect = bench.queue.add(
        fakes.CallTask(tasks.TaskKind.MODULE_RUN, break_down, owner="b", allow_failure=True)
    )
    await defect.tried
    assert defect.last_error_without_values == "KeyError; the operator's log says more"


async def test_draining_starts_nothing_more_and_waits_for_the_step_that_runs(working: Start) -> None:
    bench = await working()
    bench.gates["a"] = asyncio.Event()
    running = bench.add("a", "one")
    bench.add("b", "one")
    await clocks.settle()
    bench.gates["a"].set()
    await bench.queue.drain(grace=10)
    await clocks.settle()
    assert running.done.result() is tasks.Outcome.DROPPED, "it begins no further step"
    assert bench.ran == ["a"]


def test_the_backoff_grows_from_5_to_30_seconds() -> None:
    waits = {
        attempt: [task_queue.retry_delay(attempt, random.Random(seed)) for seed in range(20)]
        for attempt in range(1, 40)
    }
    assert all(5 <= wait <= 30 for each in waits.values() for wait in each)
    with_jitter = [attempt for attempt, each in waits.items() if len(set(each)) > 1]
    assert with_jitter[:4] == [1, 2, 3, 4]
    assert {min(waits[attempt]) for attempt in range(7, 40)} == {30}


def test_that_of_a_module_run_grows_to_five_minutes() -> None:
    longest = module_run.ModuleRunTask.longest_delay
    waits = [task_queue.retry_delay(attempt, random.Random(1), longest) for attempt in range(1, 40)]
    assert waits[0] < 6
    assert waits == sorted(waits)
    assert waits[-1] == 300


async def test_a_postponed_task_holds_up_its_own_hook_only_and_has_not_failed(working: Start) -> None:
    bench = await working()
    bench.postpone["a"] = 3.0
    first = bench.add("a", "one", is_distinct=True)
    bench.add("b", "one")
    bench.add("a", "one", is_distinct=True)
    await clocks.settle()
    assert bench.ran == ["a", "b"]
    assert (first.attempts, bench.heard.failures) == (0, [])
    del bench.postpone["a"]
    await bench.clock.advance(3.0)
    assert bench.ran == ["a", "b", "a", "a"]


async def test_a_postponed_task_that_is_dropped_while_it_runs_does_not_come_back(working: Start) -> None:
    bench = await working()
    bench.postpone["a"] = 3.0
    bench.gates["a"] = asyncio.Event()
    task = bench.add("a", "one")
    await clocks.settle()
    bench.queue.drop(lambda _: True)
    bench.gates.pop("a").set()
    assert await task.done is tasks.Outcome.DROPPED


async def test_a_strict_queue_waits_for_its_failing_head() -> None:
    bench = Bench()
    first, second = bench.task("a", "one"), bench.task("b", "two")
    first.not_before = 5.0
    assert task_queue.pick([first, second], [], 0.0, 1) is second
    assert task_queue.pick([first, second], [], 0.0, 1, is_strict=True) is None
    assert task_queue.pick([first, second], [], 5.0, 1, is_strict=True) is first


async def test_a_task_waits_for_tasks_before_it_of_owners_that_it_comes_after() -> None:
    bench = Bench()
    first, other = bench.task("a", "one"), bench.task("c", "three")
    second = bench.task("b", "two", after=frozenset({"one"}))
    third = bench.task("d", "four", after=frozenset({"two"}))
    first.not_before = 5.0
    assert task_queue.pick([first, second, third, other], [], 0.0, 1) is other
    assert task_queue.pick([second], [first], 0.0, 2) is None
    assert task_queue.pick([second, first], [], 0.0, 1) is second, "it stands before what it comes after"
    assert task_queue.pick([second], [], 0.0, 1) is second
    first.kind = tasks.TaskKind.MODULE_HOOK_RUN
    assert task_queue.pick([first, second], [], 0.0, 1) is second, "it is of another kind"
