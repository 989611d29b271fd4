"""The start of the engine, and what follows from values that hooks change."""

import asyncio
import pathlib
from collections.abc import AsyncIterator

import pytest
from typing_extensions import override

from addon_operator.engine import engine, events, intents, reactions, state, tasks
from addon_operator.engine.converge import converge
from addon_operator.engine.hooks import hook_outputs
from addon_operator.kernel import errors
from addon_operator.kernel.names import ModuleName
from addon_operator.modules import model
from addon_operator.values import sources
from tests.support import clocks
from tests.unit.engine import bound_fakes, fakes
from tests.unit.engine.converge import fake_steps

WEB, SCRIPTED, OFF, LATE = map(ModuleName, ("web", "scripted", "off", "late"))


def module(name: ModuleName, enabled_script: pathlib.Path | None = None) -> model.Module:
    return model.Module(name, 1, pathlib.Path(name), enabled_script=enabled_script)


class Bench:
    """An engine with global hooks that are told their contexts instead of being run."""

    def __init__(self, *hooks: state.Hook) -> None:
        self.clock = clocks.Clock()
        self.hooks = bound_fakes.Hooks()
        self.inbox = fakes.Inbox()
        self.cluster = bound_fakes.Cluster()
        queues, bindings, ticks, self.tasks = bound_fakes.bound_with_tasks(
            self.hooks, self.cluster, self.clock, inbox=self.inbox
        )
        self.queues, self.ticks = queues, ticks
        self.steps = fake_steps.FakeSteps(hooks)
        modules = [module(WEB), module(SCRIPTED, pathlib.Path("enabled")), module(OFF)]
        self.steps.plan = fake_steps.Wanted(modules, frozenset({WEB, SCRIPTED}), {})
        self.converger = converge.Converger(
            queues, self.steps.hooks, self.steps.discovery, self.steps.runner, fakes.ignore
        )
        states = self.steps.runner.states
        states.enabled = (WEB, SCRIPTED)
        self.heard = fakes.Heard()
        self.engine = engine.Engine(
            self.inbox, queues, self.converger, self.steps.runner, bindings, self.heard.append
        )
        self.working: asyncio.Task[None] | None = None

    async def start(self) -> None:
        self.working = asyncio.create_task(self.engine.work())
        await clocks.settle()

    async def pass_time(self, seconds: float) -> None:
        await self.clock.advance(seconds)

    @property
    def story(self) -> list[str]:
        """Steps and hooks, as far as they have run, and forget them."""
        found = [*self.steps.ran, *self.hooks.told]
        self.steps.ran.clear()
        return found


@pytest.fixture
async def benches() -> AsyncIterator[list[Bench]]:
    made: list[Bench] = []
    yield made
    for bench in made:
        if bench.working is not None:
            bench.working.cancel()
            await asyncio.gather(bench.working, return_exceptions=True)


def hook(name: str, **document: object) -> state.Hook:
    return bound_fakes.hook(name, document)


def pods(**more: object) -> dict[str, object]:
    return {"name": "pods", "kind": "Pod", **more}


CONVERGE = ["beforeAll", "discover", "run scripted", "run web", "afterAll"]


async def started(benches: list[Bench], *hooks: state.Hook) -> Bench:
    bench = Bench(*hooks)
    benches.append(bench)
    await bench.start()
    return bench


async def test_global_hooks_synchronize_between_start_up_and_the_first_converge(
    benches: list[Bench],
) -> None:
    bench = Bench(hook("a.sh", kubernetes=[pods()]), hook("b.sh", kubernetes=[pods()]))
    benches.append(bench)
    bench.hooks.gates["b.sh"] = asyncio.Event()
    await bench.start()
    assert bench.story == ["onStartup", "a.sh: pods Synchronization", "b.sh: pods Synchronization"]
    bench.hooks.gates.pop("b.sh").set()
    await clocks.settle()
    assert bench.story == CONVERGE


async def test_an_edit_lets_what_failed_be_tried_at_once(benches: list[Bench]) -> None:
    bench = Bench()
    benches.append(bench)
    bench.steps.broken.add("onStartup")
    await bench.start()
    bench.steps.broken.clear()
    assert bench.story == ["onStartup"]
    change = sources.ConfigChange(True, frozenset(), frozenset(), frozenset())
    bench.inbox.put_nowait(intents.ConfigEdited(change))
    await clocks.settle()
    assert bench.story == ["onStartup", *CONVERGE]


async def test_a_run_that_is_wanted_at_once_does_not_wait_for_the_next_try(benches: list[Bench]) -> None:
    bench = await started(benches)
    assert bench.story == ["onStartup", *CONVERGE]
    bench.steps.broken.add("run web")
    bench.inbox.put_nowait(intents.RunWanted(WEB, "x"))
    await clocks.settle()
    bench.inbox.put_nowait(intents.RunWanted(WEB, "x"))
    await clocks.settle()
    assert bench.story == ["run web"]
    bench.inbox.put_nowait(intents.RunWanted(WEB, "x", at_once=True))
    await clocks.settle()
    assert bench.story == ["run web"]


async def test_a_run_that_failed_for_a_late_chart_is_tried_when_its_pull_has_ended(
    benches: list[Bench],
) -> None:
    bench = await started(benches)
    assert bench.story == ["onStartup", *CONVERGE]
    bench.steps.broken.add("run web")
    bench.inbox.put_nowait(intents.RunWanted(WEB, "x"))
    await clocks.settle()
    for other in (OFF, SCRIPTED):
        bench.inbox.put_nowait(intents.ChartPulled(other))
    await clocks.settle()
    assert bench.story == ["run web"]
    bench.steps.broken.clear()
    bench.inbox.put_nowait(intents.ChartPulled(WEB))
    await clocks.settle()
    bench.inbox.put_nowait(intents.ChartPulled(WEB))
    await clocks.settle()
    assert bench.story == ["run web"]


async def test_a_global_synchronization_that_nobody_waits_for_runs_beside_the_converge(
    benches: list[Bench],
) -> None:
    bench = Bench(hook("a.sh", kubernetes=[pods(queue="slow", waitForSynchronization=False)]))
    benches.append(bench)
    bench.hooks.gates["a.sh"] = asyncio.Event()
    await bench.start()
    assert bench.story == ["onStartup", *CONVERGE, "a.sh: pods Synchronization"]


async def test_a_global_synchronization_in_a_named_queue_is_waited_for_however_often_it_fails(
    benches: list[Bench],
) -> None:
    bench = Bench(hook("a.sh", kubernetes=[pods(queue="slow")]))
    benches.append(bench)
    bench.hooks.fail["a.sh"] = 2
    await bench.start()
    for _ in range(2):
        assert bench.story[-1] == "a.sh: pods Synchronization"
        await bench.pass_time(40)
    assert bench.story == [*CONVERGE, "a.sh: pods Synchronization"]


async def test_a_kind_that_is_not_there_does_not_hold_up_the_first_converge(benches: list[Bench]) -> None:
    bench = Bench(hook("a.sh", kubernetes=[pods(kind="Shop")]))
    benches.append(bench)
    bench.cluster.unknown["Shop"] = "no such kind"
    await bench.start()
    assert bench.story == ["onStartup", *CONVERGE]
    bench.cluster.appear("Shop")
    await clocks.settle()
    assert bench.story == ["a.sh: pods Synchronization"]


EVERY_MINUTE = [{"name": "tick", "crontab": "* * * * *"}]


async def test_schedules_tick_after_the_first_converge(benches: list[Bench]) -> None:
    bench = Bench(hook("a.sh", schedule=EVERY_MINUTE))
    benches.append(bench)
    bench.steps.gates["run web"] = asyncio.Event()
    await bench.start()
    await bench.pass_time(60)
    assert "a.sh: tick Schedule" not in bench.story
    bench.steps.gates.pop("run web").set()
    await bench.converger.first_done.wait()
    await clocks.settle()
    bench.story  # noqa: B018 - forgets the steps
    await bench.pass_time(60)
    assert bench.story == ["a.sh: tick Schedule"]


async def test_schedules_tick_although_a_failing_module_keeps_the_first_converge_from_its_end(
    benches: list[Bench], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engine, "_LOOK_AGAIN", 0.01)
    bench = Bench(hook("a.sh", schedule=EVERY_MINUTE))
    benches.append(bench)
    bench.steps.broken = {"run web"}
    await bench.start()
    assert bench.converger.is_stalled
    await asyncio.wait_for(bench.ticks.opened.wait(), 60)
    await bench.pass_time(60)
    assert "a.sh: tick Schedule" in bench.story


async def test_a_global_hook_that_changes_values_on_an_event_asks_for_a_converge(
    benches: list[Bench],
) -> None:
    bench = await started(benches, hook("a.sh", kubernetes=[pods()]))
    bench.story  # noqa: B018 - forgets the start
    bench.hooks.effects = hook_outputs.HookEffects(values_changed=True)
    bench.cluster.put("Pod", "x")
    await clocks.settle()
    assert bench.story == [*CONVERGE, "a.sh: pods Added x"]


@pytest.mark.parametrize(
    ("owner", "follows"),
    [(WEB, ["run web"]), (SCRIPTED, CONVERGE), (OFF, [])],
    ids=["a module", "one with an enabled script", "a disabled one"],
)
async def test_a_module_hook_that_changes_values_makes_its_module_run(
    benches: list[Bench], owner: ModuleName, follows: list[str]
) -> None:
    bench = await started(benches)
    bench.story  # noqa: B018 - forgets the start
    changed = bound_fakes.hook("a.sh", {"schedule": EVERY_MINUTE}, module=owner)
    bench.inbox.put_nowait(intents.ValuesChanged(changed))
    await clocks.settle()
    assert bench.story == follows


@pytest.mark.parametrize("at_once", [False, True])
async def test_a_run_wanted_of_a_module_that_is_disabled_or_gone_does_nothing(
    benches: list[Bench], at_once: bool
) -> None:
    bench = await started(benches)
    bench.steps.gates["delete off"] = asyncio.Event()
    modules = bench.steps.plan.modules
    bench.steps.plan = fake_steps.Wanted(modules, frozenset({WEB, SCRIPTED}), {OFF: True})
    bench.inbox.put_nowait(intents.ConvergeWanted("test"))
    await clocks.settle()
    assert "delete off" in bench.story
    for name in (OFF, ModuleName("gone")):
        bench.inbox.put_nowait(intents.RunWanted(name, "x", at_once=at_once))
        await clocks.settle()
    bench.steps.gates["delete off"].set()
    await clocks.settle()
    assert bench.story == []
    assert not bench.heard.of(events.PartFailed)


async def test_a_defect_at_one_intent_is_shown_and_holds_up_no_other(benches: list[Bench]) -> None:
    bench = await started(benches)
    bench.story  # noqa: B018 - forgets the start
    states = bench.steps.runner.states
    # Something that nobody thought of: a module is enabled that is not there.
    states.enabled = (*states.enabled, LATE)
    bench.inbox.put_nowait(intents.RunWanted(LATE, "x"))
    bench.inbox.put_nowait(intents.RunWanted(WEB, "x"))
    await clocks.settle()
    assert bench.story == ["run web"]
    [failed] = bench.heard.of(events.PartFailed)
    assert (failed.part, type(failed.error)) == ("reactions", KeyError)
    assert states.refusals[0].startswith("the reaction to RunWanted late failed because of a defect")
    states.replace([*states.modules, module(LATE)])
    await bench.pass_time(failed.delay)
    assert bench.story == ["run late"]
    assert states.refusals == []


async def test_apis_that_came_or_went_make_a_converge(benches: list[Bench]) -> None:
    bench = await started(benches)
    bench.story  # noqa: B018 - forgets the start
    bench.inbox.put_nowait(intents.ApisChanged())
    await clocks.settle()
    assert bench.story == CONVERGE


async def test_what_hooks_in_named_queues_wait_for_is_reported(benches: list[Bench]) -> None:
    bench = Bench(hook("a.sh", kubernetes=[pods(queue="slow")]))
    benches.append(bench)
    bench.hooks.fail["a.sh"] = 1
    await bench.start()
    assert list(bench.engine.waiting_for()) == ["hook a.sh failed once: hook a.sh failed"]


async def test_what_the_first_converge_waits_for_is_reported_without_values(benches: list[Bench]) -> None:
    class TellsTooMuchError(errors.AddonOperatorError):
        @property
        @override
        def without_values(self) -> str:
            return "the values are not valid"

    async def fail(task: tasks.Task) -> None:
        raise TellsTooMuchError("size: 'huge' is not an integer")

    bench = await started(benches)
    await bench.engine.queues[0].add(fakes.CallTask(tasks.TaskKind.MODULE_RUN, fail, owner="web")).tried
    assert list(bench.engine.waiting_for()) == ["module web failed once: the values are not valid"]


async def test_a_drain_ends_all_queues(benches: list[Bench]) -> None:
    bench = await started(benches, hook("a.sh", kubernetes=[pods(queue="slow")]))
    bench.story  # noqa: B018 - forgets the start
    await bench.engine.drain(5)
    bench.cluster.put("Pod", "x")
    await clocks.settle()
    assert bench.story == []
    assert [queue.name for queue in bench.engine.queues] == ["main", "slow"]


@pytest.mark.parametrize(
    ("reaction", "follows"),
    [
        (reactions.Reaction(), []),
        (reactions.Reaction(runs=(WEB,)), ["run web"]),
        (reactions.Reaction(converge=True), CONVERGE),
    ],
    ids=["nothing", "a run", "a converge"],
)
async def test_modules_that_changed_on_disk_are_run(
    benches: list[Bench], reaction: reactions.Reaction, follows: list[str]
) -> None:
    bench = await started(benches)
    bench.story  # noqa: B018 - forgets the start
    await reload(bench, reaction)
    assert bench.story == follows


async def test_a_change_on_disk_during_a_converge_does_not_keep_it_from_its_end(benches: list[Bench]) -> None:
    bench = Bench()
    benches.append(bench)
    bench.steps.broken = {"run web"}
    await bench.start()
    bench.story  # noqa: B018 - forgets the start
    bench.steps.broken.clear()
    await reload(bench, reactions.Reaction(runs=(WEB,)))
    assert bench.story == CONVERGE
    assert bench.converger.state is state.ConvergeState.IDLE


async def test_a_change_on_disk_does_not_wait_for_a_discovery_that_fails(benches: list[Bench]) -> None:
    bench = Bench()
    benches.append(bench)
    bench.steps.broken = {"discover"}
    await bench.start()
    assert bench.story == ["onStartup", "beforeAll", "discover"]
    taken: list[str] = []

    async def take(_task: tasks.Task) -> None:
        taken.extend(bench.story)
        bench.steps.broken.clear()
        bench.engine.reloaded(reactions.Reaction(converge=True))

    task = fakes.CallTask(tasks.TaskKind.RELOAD_MODULES, take)
    await asyncio.wait_for(bench.engine.reload(task), 60)
    await clocks.settle()
    assert (taken, bench.story) == ([], CONVERGE)


async def reload(bench: Bench, reaction: reactions.Reaction) -> None:
    async def take(_task: tasks.Task) -> None:
        bench.engine.reloaded(reaction)

    await bench.engine.reload(fakes.CallTask(tasks.TaskKind.RELOAD_MODULES, take))
    await clocks.settle()


async def test_a_run_past_windows_may_pass_them_and_begins(benches: list[Bench]) -> None:
    bench = Bench()
    benches.append(bench)
    await bench.start()
    bench.inbox.put_nowait(intents.RunWanted(WEB, "test", past_windows=True))
    bench.story  # noqa: B018
    await clocks.settle()
    assert bench.story == ["run web"]
    assert bench.steps.runner.releases.windows.may_pass(WEB)


async def test_modules_converge_for_a_disabled_one_that_is_to_be_removed_past_its_windows(
    benches: list[Bench],
) -> None:
    bench = Bench()
    benches.append(bench)
    await bench.start()
    bench.story  # noqa: B018
    for wanted in (intents.RunWanted(OFF, "test", past_windows=True), intents.ConvergeWanted("test")):
        bench.inbox.put_nowait(wanted)
        await clocks.settle()
        assert "beforeAll" in bench.story
    assert bench.steps.runner.releases.windows.may_pass(OFF)
