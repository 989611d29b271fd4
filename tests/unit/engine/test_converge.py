"""How a converge goes through its steps, waits for failing modules, and gives way to a newer intent."""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence

import pytest

from addon_operator.engine import converge, task_queue, tasks
from addon_operator.kernel import errors
from addon_operator.kernel.names import ModuleName
from addon_operator.modules import plan
from tests.unit.engine import fakes

WEB, DB = ModuleName("web"), ModuleName("db")


class FakeSteps:
    """Steps that write down what ran; a name in ``broken`` fails, one in ``gates`` waits."""

    def __init__(self) -> None:
        self.ran: list[str] = []
        self.broken: set[str] = set()
        self.gates: dict[str, asyncio.Event] = {}
        self.plan = make_plan()
        self.values: list[object] = [0]
        self.after_all_changes: list[object] = []

    def task(self, name: str, kind: tasks.TaskKind, owner: str = "", **more: object) -> tasks.Task:
        async def run(task: tasks.Task) -> None:
            self.ran.append(name)
            if name in self.gates:
                await self.gates[name].wait()
                task.checkpoint()
            if name in self.broken:
                raise errors.AddonOperatorError(f"{name} is broken")
            if name == "afterAll" and self.after_all_changes:
                self.values.append(self.after_all_changes.pop())

        return tasks.Task(kind, run, owner=owner, hook=name, **more)  # type: ignore[arg-type] # the dataclass's

    def before_all(self, activation: str) -> Sequence[tasks.Task]:
        return [self.task("beforeAll", tasks.TaskKind.GLOBAL_HOOK_RUN)]

    def after_all(self, activation: str) -> Sequence[tasks.Task]:
        return [self.task("afterAll", tasks.TaskKind.GLOBAL_HOOK_RUN)]

    def discover(self, activation: str, found: Callable[[plan.ConvergePlan], None]) -> tasks.Task:
        task = self.task("discover", tasks.TaskKind.DISCOVER_MODULES, holds_queue=True, fixed_delay=5.0)
        run = task.run

        async def discover(task: tasks.Task) -> None:
            await run(task)
            found(self.plan)

        task.run = discover
        return task

    def run(self, module: ModuleName, activation: str) -> tasks.Task:
        return self.task(f"run {module}", tasks.TaskKind.MODULE_RUN, module)

    def delete(self, module: ModuleName, activation: str) -> tasks.Task:
        return self.task(f"delete {module}", tasks.TaskKind.MODULE_DELETE, module)

    def purge(self, release: str, activation: str) -> tasks.Task:
        return self.task(f"purge {release}", tasks.TaskKind.MODULE_PURGE, release)

    def global_values(self) -> object:
        return self.values[-1]


def make_plan(
    *stages: tuple[int, Sequence[str]], deletes: Sequence[str] = (), purges: Sequence[str] = ()
) -> plan.ConvergePlan:
    return plan.ConvergePlan(
        enabled=tuple(ModuleName(name) for _, modules in stages for name in modules),
        deletes=tuple(map(ModuleName, deletes)),
        stages=tuple(plan.Stage(order, tuple(map(ModuleName, modules))) for order, modules in stages),
        purges=tuple(purges),
        verdicts={},
    )


class Told:
    def __init__(self) -> None:
        self.ended: list[tuple[str, bool]] = []

    def converge_started(self, activation: str) -> None:
        pass

    def converge_ended(self, activation: str, seconds: float, *, superseded: bool) -> None:
        self.ended.append((activation, superseded))


class Bench:
    def __init__(self, on_failure: converge.OnFailure = converge.OnFailure.WAIT) -> None:
        self.clock = fakes.Clock()
        self.queue = task_queue.TaskQueue("main", observer=fakes.QueueLog(), clock=self.clock, parallelism=4)
        self.steps = FakeSteps()
        self.told = Told()
        self.converger = converge.Converger(self.queue, self.steps, self.told, on_failure=on_failure)

    @property
    def ran(self) -> list[str]:
        return self.steps.ran


Start = Callable[..., Bench]


@pytest.fixture
async def working() -> AsyncIterator[Start]:
    workers: list[asyncio.Task[None]] = []

    def start(on_failure: converge.OnFailure = converge.OnFailure.WAIT) -> Bench:
        bench = Bench(on_failure)
        workers.extend(asyncio.create_task(work()) for work in (bench.queue.work, bench.converger.work))
        return bench

    yield start
    for worker in workers:
        worker.cancel()
    await asyncio.gather(*workers, return_exceptions=True)


async def test_the_steps_come_in_the_documented_order(working: Start) -> None:
    bench = working()
    bench.steps.plan = make_plan((10, ["db"]), (20, ["web"]), deletes=["old"], purges=["gone"])
    bench.converger.request("onStartup")
    await bench.converger.first_done.wait()
    assert bench.ran == [
        "beforeAll", "discover", "delete old", "run db", "run web", "purge gone", "afterAll"
    ]  # fmt: skip
    assert bench.told.ended == [("onStartup", False)]


async def test_modules_of_one_number_run_side_by_side(working: Start) -> None:
    bench = working()
    bench.steps.plan = make_plan((10, ["a", "b"]), (20, ["c"]))
    bench.steps.gates["run a"] = asyncio.Event()
    bench.converger.request("onStartup")
    await fakes.settle()
    assert bench.ran[-2:] == ["run a", "run b"]
    bench.steps.gates["run a"].set()
    await bench.converger.first_done.wait()
    assert "run c" in bench.ran


async def test_a_failing_module_holds_up_higher_numbers_and_nothing_of_its_own_number(working: Start) -> None:
    bench = working()
    bench.steps.plan = make_plan((10, ["a", "b"]), (20, ["c"]))
    bench.steps.broken.add("run a")
    bench.converger.request("onStartup")
    await fakes.settle()
    assert "run b" in bench.ran
    assert "run c" not in bench.ran
    assert bench.converger.state is converge.ConvergeState.RUNNING
    bench.steps.broken.clear()
    await bench.clock.advance(30, bench.queue)
    assert bench.converger.first_done.is_set()
    assert bench.ran[-3:] == ["run a", "run c", "afterAll"]


async def test_a_failing_module_lets_higher_numbers_go_when_the_policy_says_so(working: Start) -> None:
    bench = working(converge.OnFailure.CONTINUE)
    bench.steps.plan = make_plan((10, ["a"]), (20, ["c"]))
    bench.steps.broken.add("run a")
    bench.converger.request("onStartup")
    await bench.converger.first_done.wait()
    assert bench.ran[-2:] == ["run c", "afterAll"]
    bench.steps.broken.clear()
    await bench.clock.advance(30, bench.queue)
    assert bench.ran[-1] == "run a", "and it is tried again"


async def test_a_failing_delete_does_not_hold_up_module_runs(working: Start) -> None:
    bench = working()
    bench.steps.plan = make_plan((10, ["a"]), deletes=["old"])
    bench.steps.broken.add("delete old")
    bench.converger.request("onStartup")
    await bench.converger.first_done.wait()
    assert "run a" in bench.ran


async def test_a_failing_discovery_is_tried_again_after_five_seconds(working: Start) -> None:
    bench = working()
    bench.steps.broken.add("discover")
    bench.converger.request("onStartup")
    await fakes.settle()
    bench.steps.broken.clear()
    await bench.clock.advance(4.9, bench.queue)
    assert bench.ran.count("discover") == 1
    await bench.clock.advance(0.2, bench.queue)
    assert bench.ran.count("discover") == 2
    assert bench.converger.first_done.is_set()


async def test_a_newer_intent_drops_what_has_not_begun_and_starts_over(working: Start) -> None:
    bench = working()
    bench.steps.plan = make_plan((10, ["a"]), (20, ["b"]))
    bench.steps.gates["run a"] = asyncio.Event()
    bench.converger.request("onStartup")
    await fakes.settle()
    bench.converger.request("ConfigMapChanged")
    bench.steps.gates.pop("run a").set()
    await bench.converger.first_done.wait()
    assert bench.ran == [
        "beforeAll",
        "discover",
        "run a",
        "beforeAll",
        "discover",
        "run a",
        "run b",
        "afterAll",
    ]
    assert bench.told.ended == [("onStartup", True), ("ConfigMapChanged", False)]


async def test_a_failing_module_that_the_newer_intent_no_longer_wants_is_not_tried_again(
    working: Start,
) -> None:
    bench = working()
    bench.steps.plan = make_plan((10, ["a"]))
    bench.steps.broken.add("run a")
    bench.converger.request("onStartup")
    await fakes.settle()
    bench.steps.plan = make_plan(deletes=["a"])
    bench.converger.request("ConfigMapChanged")
    await bench.converger.first_done.wait()
    await bench.clock.advance(100, bench.queue)
    assert bench.ran.count("run a") == 1
    assert bench.ran[-2:] == ["delete a", "afterAll"]


async def test_a_burst_of_requests_ends_in_one_converge(working: Start) -> None:
    bench = working()
    bench.steps.plan = make_plan((10, ["a"]))
    for number in range(50):
        bench.converger.request(f"edit {number}")
    await bench.converger.first_done.wait()
    assert bench.told.ended == [("edit 49", False)]


async def test_global_values_changed_by_after_all_converge_again_before_it_counts_as_done(
    working: Start,
) -> None:
    bench = working()
    bench.steps.after_all_changes = [1]
    bench.converger.request("onStartup")
    await bench.converger.first_done.wait()
    assert bench.ran == ["beforeAll", "discover", "afterAll"] * 2
    assert bench.told.ended == [("onStartup", False), ("AfterAllHooksChangeGlobalValues", False)]


async def test_a_module_whose_run_is_still_to_come_needs_no_other(working: Start) -> None:
    bench = working()
    bench.steps.plan = make_plan((10, ["db"]), (20, ["web"]))
    bench.steps.gates["run db"] = asyncio.Event()
    bench.converger.request("onStartup")
    await fakes.settle()
    assert (bench.converger.will_run(DB), bench.converger.will_run(WEB)) == (False, True)


async def test_the_state_and_the_number_of_remaining_tasks_are_told(working: Start) -> None:
    bench = working()
    assert bench.converger.state is converge.ConvergeState.NOT_STARTED
    bench.steps.plan = make_plan((10, ["a", "b"]), (20, ["c"]))
    for name in ("run a", "run b"):
        bench.steps.gates[name] = asyncio.Event()
    bench.converger.request("onStartup")
    await fakes.settle()
    assert (bench.converger.state, bench.converger.remaining) == (converge.ConvergeState.RUNNING, 3)
    for gate in bench.steps.gates.values():
        gate.set()
    await bench.converger.first_done.wait()
    await fakes.settle()
    assert (bench.converger.state, bench.converger.remaining) == (converge.ConvergeState.IDLE, 0)
