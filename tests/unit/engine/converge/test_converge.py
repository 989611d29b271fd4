"""How a converge goes through its steps, waits for failing modules, and gives way to a newer intent."""

import asyncio
from collections.abc import AsyncIterator, Callable

import pytest
from typing_extensions import override

from addon_operator.engine import events, state, tasks
from addon_operator.engine.converge import converge, module_discovery
from addon_operator.engine.modules import module_run
from addon_operator.engine.queues import queue_set
from addon_operator.kernel.names import ModuleName
from tests.support import clocks
from tests.unit.engine import fakes
from tests.unit.engine.converge.fake_steps import FakeSteps, make_plan

WEB, DB = ModuleName("web"), ModuleName("db")


class Told(list[events.Event]):
    @property
    def ended(self) -> list[tuple[str, bool]]:
        return [
            (event.activation, event.superseded) for event in self if isinstance(event, events.ConvergeEnded)
        ]

    @property
    def unsettled(self) -> list[events.ConvergeUnsettled]:
        return [event for event in self if isinstance(event, events.ConvergeUnsettled)]


class Timers:
    """An event loop's timers, fired by hand."""

    def __init__(self) -> None:
        self.pending: list[asyncio.TimerHandle] = []

    def call_later(self, delay: float, callback: Callable[[], object], /) -> asyncio.TimerHandle:
        loop = asyncio.get_running_loop()
        self.pending.append(asyncio.TimerHandle(loop.time() + delay, callback, (), loop))
        return self.pending[-1]

    def fire(self) -> None:
        due, self.pending = self.pending, []
        for handle in due:
            if not handle.cancelled():
                handle._run()


class Bench:
    def __init__(self, on_failure: converge.OnFailure = converge.OnFailure.WAIT) -> None:
        self.clock = clocks.Clock()
        self.queues = queue_set.QueueSet(fakes.ignore, clock=self.clock, parallelism=4)
        self.queue = self.queues.main
        self.steps = FakeSteps()
        self.told = Told()
        self.timers = Timers()
        self.converger = converge.Converger(
            self.queues,
            self.steps.hooks,
            self.steps.discovery,
            self.steps.runner,
            self.told.append,
            on_failure=on_failure,
            timers=self.timers,
        )

    @property
    def ran(self) -> list[str]:
        return self.steps.ran

    @property
    def runs(self) -> list[str]:
        """What ran in ``main``."""
        return [step for step in self.ran if step not in self.removals]

    @property
    def removals(self) -> list[str]:
        """What ran beside it."""
        return [step for step in self.ran if step.startswith(("delete ", "purge "))]


Start = Callable[..., Bench]


def stalled(bench: Bench) -> bool:
    """A function, because the type checker expects an attribute to stay as it was asserted."""
    return bench.converger.is_stalled


@pytest.fixture
async def working() -> AsyncIterator[Start]:
    workers: list[asyncio.Task[None]] = []

    def start(on_failure: converge.OnFailure = converge.OnFailure.WAIT) -> Bench:
        bench = Bench(on_failure)
        workers.extend(asyncio.create_task(work()) for work in (bench.queues.work, bench.converger.work))
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
    assert bench.runs == ["beforeAll", "discover", "run db", "run web", "afterAll"]
    await clocks.settle()
    assert bench.removals == ["delete old", "purge gone"]
    assert bench.told.ended == [("onStartup", False)]


async def test_nothing_is_purged_on_a_plan_that_a_newer_intent_overtook(working: Start) -> None:
    bench = working()
    bench.steps.plan = make_plan((10, ["db"]), purges=["web"])
    bench.steps.runner.releases.letting_go = asyncio.Event()
    bench.converger.request("onStartup")
    await clocks.settle()
    bench.steps.plan = make_plan((10, ["db", "web"]))
    bench.converger.request("ModulesChanged")
    bench.steps.runner.releases.letting_go.set()
    await bench.converger.first_done.wait()
    await clocks.settle()
    assert bench.removals == []
    assert bench.runs[-3:] == ["run db", "run web", "afterAll"]


async def test_definitions_come_between_discovery_and_deletes(working: Start) -> None:
    bench = working()
    bench.steps.plan = make_plan((10, ["db"]), (20, ["web"]), deletes=["old"])
    bench.steps.with_crds = ("web",)
    bench.converger.request("onStartup")
    await bench.converger.first_done.wait()
    await clocks.settle()
    assert bench.runs[1:4] == ["discover", "crds web", "run db"]
    assert bench.removals == ["delete old"]


@pytest.mark.parametrize("on_failure", list(converge.OnFailure))
async def test_failing_definitions_hold_their_own_module_only(
    working: Start, on_failure: converge.OnFailure
) -> None:
    bench = working(on_failure)
    bench.steps.plan = make_plan((10, ["db"]), (20, ["web"]), deletes=["old"])
    bench.steps.with_crds = ("db",)
    bench.steps.broken = {"crds db"}
    bench.converger.request("onStartup")
    await clocks.settle()
    assert bench.runs == ["beforeAll", "discover", "crds db", "run web", "afterAll"]
    assert bench.removals == ["delete old"]
    waits = on_failure is converge.OnFailure.WAIT
    assert bench.converger.is_stalled is waits
    assert bench.converger.first_done.is_set() is not waits
    bench.steps.broken.clear()
    await bench.clock.advance(10)
    assert bench.runs[5:] == ["crds db", "run db"]


async def test_modules_of_one_number_run_side_by_side(working: Start) -> None:
    bench = working()
    bench.steps.plan = make_plan((10, ["a", "b"]), (20, ["c"]))
    bench.steps.gates["run a"] = asyncio.Event()
    bench.converger.request("onStartup")
    await clocks.settle()
    assert bench.ran[-2:] == ["run a", "run b"]
    bench.steps.gates["run a"].set()
    await bench.converger.first_done.wait()
    assert "run c" in bench.ran


async def test_a_failing_module_holds_up_first_installs_of_higher_numbers_alone(working: Start) -> None:
    bench = working()
    bench.steps.plan = make_plan((10, ["a", "b"]), (20, ["c", "there"]), (30, ["too"]))
    bench.steps.runner.releases.there = {"there", "too"}
    bench.steps.broken.add("run a")
    bench.converger.request("onStartup")
    await clocks.settle()
    assert bench.ran[2:] == ["run a", "run b", "run there", "run too"]
    assert bench.converger.state is state.ConvergeState.RUNNING
    bench.steps.broken.clear()
    await bench.clock.advance(30)
    assert bench.converger.first_done.is_set()
    assert bench.ran[-3:] == ["run a", "run c", "afterAll"]


async def test_a_module_with_a_hook_that_cannot_be_asked_holds_up_nothing_but_itself_and_the_end(
    working: Start,
) -> None:
    bench = working()
    bench.steps.plan = make_plan((10, ["a"]), (20, ["c"]), purges=["gone"])
    bench.steps.misconfigured.add("run a")
    bench.converger.request("onStartup")
    await clocks.settle()
    assert bench.runs[-3:] == ["run a", "run c", "afterAll"]
    assert bench.removals == ["purge gone"]
    assert not bench.converger.first_done.is_set()
    bench.steps.misconfigured.clear()
    await bench.clock.advance(30)
    assert bench.ran[-1] == "run a"
    assert bench.converger.first_done.is_set()


async def test_a_newer_intent_gives_up_a_module_that_the_converge_still_waits_for(working: Start) -> None:
    bench = working()
    bench.steps.plan = make_plan((10, ["a"]))
    bench.steps.misconfigured.add("run a")
    bench.converger.request("onStartup")
    await clocks.settle()
    bench.steps.plan = make_plan(deletes=["a"])
    bench.converger.request("ConfigMapChanged")
    await bench.converger.first_done.wait()
    assert bench.told.ended == [("onStartup", True), ("ConfigMapChanged", False)]


async def test_deletes_wait_for_those_of_higher_numbers_and_nothing_waits_for_them(working: Start) -> None:
    bench = working()
    bench.steps.plan = make_plan((10, ["db"]), deletes={"c": 2, "b": 1, "a": 1})
    bench.steps.gates["delete c"] = asyncio.Event()
    bench.converger.request("onStartup")
    await bench.converger.first_done.wait()
    await clocks.settle()
    assert bench.removals == ["delete c"]
    assert bench.queues.removals.awaited == {"c": [], "b": ["c"], "a": ["c"]}

    # Another converge begins none of them once more; what is enabled again stays.
    bench.steps.plan = make_plan((10, ["db"]), (20, ["a"]), deletes={"c": 2, "b": 1})
    bench.converger.request("ConfigMapChanged")
    await clocks.settle()
    assert bench.runs[-2:] == ["run a", "afterAll"]
    bench.steps.gates["delete c"].set()
    await clocks.settle()
    assert bench.removals == ["delete c", "delete b"]


async def test_a_delete_under_way_ends_when_its_module_is_enabled_again(working: Start) -> None:
    bench = working()
    bench.steps.plan = make_plan(deletes=["web"])
    bench.steps.gates["delete web"] = asyncio.Event()
    bench.converger.request("ConfigMapChanged")
    await clocks.settle()
    bench.steps.plan = make_plan((10, ["web"]))
    bench.converger.request("ConfigMapChanged")
    await clocks.settle()
    assert bench.steps.taken_back == ["web"]
    (removal,) = bench.queues.removals.tasks
    assert removal.superseded
    bench.steps.gates["delete web"].set()
    await clocks.settle()
    assert removal.done.result() is tasks.Outcome.DROPPED
    assert bench.runs[-2:] == ["run web", "afterAll"]


async def test_a_failing_module_lets_higher_numbers_go_when_the_policy_says_so(working: Start) -> None:
    bench = working(converge.OnFailure.CONTINUE)
    bench.steps.plan = make_plan((10, ["a"]), (20, ["c"]))
    bench.steps.broken.add("run a")
    bench.converger.request("onStartup")
    await bench.converger.first_done.wait()
    assert bench.ran[-2:] == ["run c", "afterAll"]
    bench.steps.broken.clear()
    await bench.clock.advance(30)
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
    await clocks.settle()
    bench.steps.broken.clear()
    await bench.clock.advance(4.9)
    assert bench.ran.count("discover") == 1
    await bench.clock.advance(0.2)
    assert bench.ran.count("discover") == 2
    assert bench.converger.first_done.is_set()


async def test_a_newer_intent_drops_what_has_not_begun_and_starts_over(working: Start) -> None:
    bench = working()
    bench.steps.plan = make_plan((10, ["a"]), (20, ["b"]))
    bench.steps.gates["run a"] = asyncio.Event()
    bench.converger.request("onStartup")
    await clocks.settle()
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


async def test_a_converge_of_which_something_was_dropped_begins_again(working: Start) -> None:
    bench = working()
    bench.steps.plan = make_plan((10, ["a"]), (20, ["c"]))
    bench.steps.broken.add("run a")
    bench.converger.request("onStartup")
    await clocks.settle()
    bench.steps.plan = make_plan((20, ["c"]))
    bench.queue.drop(lambda task: task.owner == "a")
    await clocks.settle()
    assert bench.told.ended == [("onStartup", True), ("onStartup", False)]
    assert bench.ran[-2:] == ["run c", "afterAll"]
    assert bench.converger.first_done.is_set()


async def test_a_converge_that_the_end_of_the_operator_breaks_off_does_not_begin_again(
    working: Start,
) -> None:
    bench = working()
    bench.steps.plan = make_plan((10, ["a"]))
    bench.steps.gates["run a"] = asyncio.Event()
    bench.converger.request("onStartup")
    await clocks.settle()
    bench.queue.close()
    bench.steps.gates["run a"].set()
    await clocks.settle()
    assert bench.told.ended == [("onStartup", True)]
    assert bench.ran.count("beforeAll") == 1


async def test_a_failing_module_that_the_newer_intent_no_longer_wants_is_not_tried_again(
    working: Start,
) -> None:
    bench = working()
    bench.steps.plan = make_plan((10, ["a"]))
    bench.steps.broken.add("run a")
    bench.converger.request("onStartup")
    await clocks.settle()
    bench.steps.plan = make_plan(deletes=["a"])
    bench.converger.request("ConfigMapChanged")
    await bench.converger.first_done.wait()
    await bench.clock.advance(100)
    assert bench.ran.count("run a") == 1
    assert bench.removals == ["delete a"]


async def test_a_run_wanted_before_the_discovery_that_disables_its_module_is_dropped(working: Start) -> None:
    bench = working()
    bench.steps.plan = make_plan((10, ["db"]), deletes=["web"])
    bench.steps.gates["beforeAll"] = asyncio.Event()
    bench.converger.request("ConfigMapChanged")
    await clocks.settle()
    bench.steps.broken.add("run web")
    run = bench.queue.add(module_run.ModuleRunTask(bench.steps.runner, WEB, "AbsentResources"))
    bench.steps.gates["beforeAll"].set()
    await clocks.settle()
    assert run.done.result() is tasks.Outcome.DROPPED
    assert bench.runs[-2:] == ["run db", "afterAll"]
    assert bench.removals == ["delete web"]


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


async def test_after_all_hooks_that_never_agree_let_converges_follow_with_a_growing_delay(
    working: Start,
) -> None:
    bench = working()
    bench.steps.after_all_changes = list(range(100, 200))
    bench.converger.request("onStartup")
    await bench.converger.first_done.wait()
    await clocks.settle()
    assert bench.ran.count("afterAll") == converge.AT_ONCE + 1
    assert bench.converger.state is state.ConvergeState.IDLE
    bench.timers.fire()
    await clocks.settle()
    assert bench.ran.count("afterAll") == converge.AT_ONCE + 2
    (first, second) = bench.told.unsettled
    assert [(each.rounds, each.hooks) for each in (first, second)] == [(6, ["afterAll"]), (7, ["afterAll"])]
    assert 5 <= first.delay < second.delay


async def test_another_reason_to_converge_does_not_wait_for_hooks_that_never_agree(working: Start) -> None:
    bench = working()
    bench.steps.after_all_changes = list(range(100, 200))
    bench.converger.request("onStartup")
    await bench.converger.first_done.wait()
    bench.steps.after_all_changes = []
    bench.converger.request("ConfigMapChanged")
    await clocks.settle()
    assert bench.told.ended[-1] == ("ConfigMapChanged", False)
    bench.timers.fire()
    await clocks.settle()
    assert bench.told.ended[-1] == ("ConfigMapChanged", False), "the delayed one is given up"


async def gives_way(bench: Bench) -> None:
    """A converge that has as often as it may given way to hooks, and waits for the module ``a``."""
    bench.steps.plan = make_plan((10, ["a"]), (20, ["b"]))
    bench.converger.request("onStartup")
    for _ in range(converge.GIVE_WAY):
        gate = bench.steps.gates["run a"] = asyncio.Event()
        await clocks.settle()
        bench.converger.request_by_hook("GlobalValuesChanged")
        bench.steps.gates["run a"] = asyncio.Event()
        gate.set()
    await clocks.settle()


async def test_hooks_that_change_values_all_the_time_let_a_converge_end_now_and_then(working: Start) -> None:
    bench = working()
    await gives_way(bench)
    assert "run b" not in bench.ran
    bench.converger.request_by_hook("GlobalValuesChanged")
    bench.steps.gates.pop("run a").set()
    await clocks.settle()
    assert bench.ran.count("run b") == 2, "one of the converge that went on, one of the one that was put off"
    changed = "GlobalValuesChanged"
    gave_way = [("onStartup", True), *[(changed, True)] * (converge.GIVE_WAY - 1)]
    assert bench.told.ended == [*gave_way, (changed, False), (changed, False)]


async def test_an_edit_is_never_put_off(working: Start) -> None:
    bench = working()
    await gives_way(bench)
    bench.converger.request("ConfigMapChanged")
    bench.steps.gates.pop("run a").set()
    await clocks.settle()
    assert bench.told.ended[-2:] == [("GlobalValuesChanged", True), ("ConfigMapChanged", False)]


async def test_what_hooks_changed_is_not_put_off_until_a_failing_module_succeeds(working: Start) -> None:
    bench = working()
    bench.steps.broken.add("run a")
    await gives_way(bench)
    bench.converger.request_by_hook("GlobalValuesChanged")
    bench.timers.fire()
    assert not stalled(bench)
    bench.steps.gates.pop("run a").set()
    await clocks.settle()
    assert stalled(bench)
    bench.steps.plan = make_plan((20, ["b"]), deletes=["a"])
    bench.timers.fire()
    await clocks.settle()
    assert bench.runs[-2:] == ["run b", "afterAll"]


async def test_a_module_whose_run_is_still_to_come_needs_no_other(working: Start) -> None:
    bench = working()
    bench.steps.plan = make_plan((10, ["db"]), (20, ["web"]))
    bench.steps.gates["run db"] = asyncio.Event()
    bench.converger.request("onStartup")
    await clocks.settle()
    assert (bench.converger.will_run(DB), bench.converger.will_run(WEB)) == (False, True)


async def test_the_state_and_the_number_of_remaining_tasks_are_reported(working: Start) -> None:
    bench = working()
    assert bench.converger.state is state.ConvergeState.NOT_STARTED
    bench.steps.plan = make_plan((10, ["a", "b"]), (20, ["c"]))
    for name in ("run a", "run b"):
        bench.steps.gates[name] = asyncio.Event()
    bench.converger.request("onStartup")
    await clocks.settle()
    assert (bench.converger.state, bench.converger.remaining) == (state.ConvergeState.RUNNING, 3)
    for gate in bench.steps.gates.values():
        gate.set()
    await bench.converger.first_done.wait()
    await clocks.settle()
    assert (bench.converger.state, bench.converger.remaining) == (state.ConvergeState.IDLE, 0)


async def test_a_converge_is_stalled_when_only_retries_of_modules_are_left(working: Start) -> None:
    bench = working()
    bench.steps.plan = make_plan((10, ["db", "web"]), (20, ["late"]))
    bench.steps.broken = {"run db"}
    bench.steps.gates["run web"] = asyncio.Event()
    assert not stalled(bench)
    bench.converger.request("onStartup")
    await clocks.settle()
    assert not stalled(bench), "another module still runs"
    bench.steps.gates.pop("run web").set()
    await clocks.settle()
    assert stalled(bench)
    bench.steps.broken.clear()
    await bench.clock.advance(10)
    assert not stalled(bench)
    assert bench.converger.first_done.is_set()


async def test_a_failing_global_hook_is_not_a_stall(working: Start) -> None:
    bench = working()
    bench.steps.broken = {"beforeAll"}
    bench.converger.request("onStartup")
    await clocks.settle()
    assert not stalled(bench)


async def test_a_module_begins_after_those_of_its_order_that_it_requires_and_others_do_not_wait(
    working: Start,
) -> None:
    bench = working()
    bench.steps.plan = make_plan((10, ["b", "z", "a"]), (20, ["c"]), requires={"a": ["z"]})
    for name in ("run b", "run z"):
        bench.steps.gates[name] = asyncio.Event()
    bench.converger.request("onStartup")
    await clocks.settle()
    assert bench.ran[-2:] == ["run b", "run z"]
    bench.steps.gates["run z"].set()
    await clocks.settle()
    assert bench.ran[-1] == "run a"
    bench.steps.gates["run b"].set()
    await bench.converger.first_done.wait()
    assert bench.ran[-2:] == ["run c", "afterAll"]


@pytest.mark.parametrize("on_failure", list(converge.OnFailure))
async def test_what_requires_a_failing_module_waits_and_the_converge_counts_as_stalled(
    working: Start, on_failure: converge.OnFailure
) -> None:
    bench = working(on_failure)
    bench.steps.plan = make_plan((10, ["z", "a", "b"]), (20, ["c", "d"]), requires={"a": ["z"], "c": ["a"]})
    bench.steps.broken.add("run z")
    bench.converger.request("onStartup")
    await clocks.settle()
    waits = on_failure is converge.OnFailure.WAIT
    expected = {"run z", "run b"} if waits else {"run z", "run b", "run d"}
    assert {step for step in bench.ran if step.startswith("run")} == expected
    assert stalled(bench) is waits
    assert bench.converger.first_done.is_set() is not waits
    bench.steps.broken.clear()
    await bench.clock.advance(30)
    runs = [step for step in bench.ran if step.startswith("run")]
    assert runs.index("run a") < runs.index("run c")
    assert runs.index("run z", 1) < runs.index("run a")
    assert bench.converger.first_done.is_set()


async def test_what_requires_a_module_that_stepped_aside_holds_up_no_other(working: Start) -> None:
    bench = working()
    bench.steps.plan = make_plan((10, ["z", "a"]), (20, ["c"]), requires={"a": ["z"]})
    bench.steps.misconfigured.add("run z")
    bench.converger.request("onStartup")
    await clocks.settle()
    assert bench.ran[-3:] == ["run z", "run c", "afterAll"]
    assert stalled(bench)
    assert not bench.converger.first_done.is_set()
    bench.steps.misconfigured.clear()
    await bench.clock.advance(30)
    assert bench.ran[-2:] == ["run z", "run a"]
    assert bench.converger.first_done.is_set()


async def test_a_delete_that_fails_holds_those_of_what_the_module_requires_and_no_runs(
    working: Start,
) -> None:
    bench = working()
    bench.steps.plan = make_plan((10, ["b"]), deletes=["a", "z"], requires={"a": ["z"]})
    bench.steps.broken.add("delete a")
    bench.converger.request("onStartup")
    await clocks.settle()
    assert bench.runs[-2:] == ["run b", "afterAll"]
    assert bench.removals == ["delete a"]
    bench.steps.broken.clear()
    await bench.clock.advance(30)
    assert bench.ran[-2:] == ["delete a", "delete z"]


class Looks(module_discovery.SecondLook):
    """A second look that is due after these seconds, one after another."""

    def __init__(self, *due: float | None) -> None:
        self.due = list(due)

    @override
    def converged(self) -> float | None:
        return self.due.pop(0)


@pytest.mark.parametrize("broken", [[], ["run a"]], ids=["all is well", "a module fails"])
async def test_a_second_look_follows_the_first_converge(working: Start, broken: list[str]) -> None:
    bench = working(converge.OnFailure.CONTINUE)
    bench.steps.plan = make_plan((10, ["a"]))
    bench.steps.discovery.second_look = Looks(5.0, None)
    bench.steps.broken.update(broken)
    bench.converger.request("onStartup")
    await clocks.settle()
    assert bench.runs.count("discover") == 1
    bench.timers.fire()
    await clocks.settle()
    assert bench.runs.count("discover") == 2
