"""Bindings from the first list to events: nothing lost, nothing told twice, nothing held up."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from typing import Any

import pytest

from addon_operator.engine import events, state, tasks
from addon_operator.engine.bindings import binding_events, hook_bindings
from addon_operator.engine.hooks import hook_outputs
from addon_operator.kernel import errors
from addon_operator.kernel.names import ModuleName
from tests.support import clocks
from tests.unit.engine import bound_fakes, fakes

WEB = ModuleName("web")


class Bench:
    """One module's hooks; what they are told stands in ``hooks.told``."""

    def __init__(self) -> None:
        self.clock = clocks.Clock()
        self.cluster = bound_fakes.Cluster()
        self.heard = fakes.Heard()
        self.hooks = bound_fakes.Hooks()
        self.queues, self.bindings, self.ticks = bound_fakes.bound(
            self.hooks, self.cluster, self.clock, self.heard.append
        )
        self.ticks.open()
        self.stopping = asyncio.Event()

    async def start(self, *hooks: state.Hook, owner: str = WEB) -> None:
        """What a module run does."""
        for batch in await self.bindings.start(owner, hooks, self.stopping):
            await self.bindings.run(batch, "onStartup")
        await self.bindings.wait(owner, self.stopping)
        self.bindings.tick(owner)

    @property
    def waits(self) -> list[str]:
        """Why bindings wait, and when they do not any more."""
        return [
            f"{event.binding.name}: {event.reason or 'no more'}"
            for event in self.heard.of(binding_events.BindingWaits)
        ]

    @property
    def counts(self) -> dict[str, int]:
        return {event.binding.name: event.objects for event in self.heard.of(binding_events.SnapshotChanged)}

    async def told(self) -> list[str]:
        await clocks.settle()
        return self.hooks.told

    async def pass_time(self, seconds: float) -> None:
        await self.clock.advance(seconds)
        self.ticks.tick()
        await clocks.settle()


@pytest.fixture
async def bench() -> AsyncIterator[Bench]:
    made = Bench()
    working = asyncio.create_task(made.queues.work())
    await clocks.settle()
    yield made
    working.cancel()
    await asyncio.gather(working, return_exceptions=True)


def pods(name: str = "pods", kind: str = "Pod", **more: object) -> dict[str, object]:
    return {"name": name, "kind": kind, **more}


def hook(name: str, *kubernetes: dict[str, object], **more: object) -> state.Hook:
    return bound_fakes.hook(name, {"kubernetes": list(kubernetes), **more}, module=WEB)


async def test_a_hook_gets_all_objects_and_then_each_change(bench: Bench) -> None:
    bench.cluster.put("Pod", "b")
    bench.cluster.put("Pod", "a")
    await bench.start(hook("a.sh", pods()))
    assert await bench.told() == ["a.sh: pods Synchronization a b"]
    bench.cluster.put("Pod", "c")
    await clocks.settle()
    bench.cluster.put("Pod", "a")
    bench.cluster.remove("Pod", "b")
    assert await bench.told() == ["a.sh: pods Added c", "a.sh: pods Modified a, pods Deleted b"]


async def test_synchronizations_run_hook_by_hook_with_their_bindings_together(bench: Bench) -> None:
    await bench.start(hook("a.sh", pods(), pods("nodes", "Node")), hook("b.sh", pods()))
    assert await bench.told() == [
        "a.sh: pods Synchronization, nodes Synchronization",
        "b.sh: pods Synchronization",
    ]
    assert bench.hooks.runs == []


async def test_a_run_in_main_is_part_of_the_module_s_run(bench: Bench) -> None:
    await bench.start(hook("a.sh", pods()))
    assert bench.hooks.runs[0].labels == events.HookLabels("a.sh", "pods", "main", "onStartup", WEB)
    assert bench.heard.failures == []


async def test_what_changes_before_the_synchronization_run_is_in_its_snapshot_alone(bench: Bench) -> None:
    bench.cluster.slow.add("Node")
    starting = asyncio.create_task(bench.start(hook("a.sh", pods(), pods("nodes", "Node"))))
    await clocks.settle()
    bench.cluster.put("Pod", "a")
    assert await bench.told() == []
    bench.cluster.appear("Node")
    await starting
    assert await bench.told() == ["a.sh: pods Synchronization a, nodes Synchronization"]


async def test_what_changes_during_the_synchronization_run_becomes_events_after_it(bench: Bench) -> None:
    bench.hooks.gates["a.sh"] = asyncio.Event()
    starting = asyncio.create_task(bench.start(hook("a.sh", pods())))
    await clocks.settle()
    bench.cluster.put("Pod", "a")
    bench.cluster.put("Pod", "a")
    bench.cluster.remove("Pod", "a")
    assert await bench.told() == ["a.sh: pods Synchronization"]
    bench.hooks.gates.pop("a.sh").set()
    await starting
    assert await bench.told() == ["a.sh: pods Added a, pods Modified a, pods Deleted a"]


async def test_what_changes_during_a_synchronization_run_that_fails_is_in_the_next_snapshot(
    bench: Bench,
) -> None:
    bench.hooks.gates["a.sh"] = asyncio.Event()
    bench.hooks.fail["a.sh"] = 1
    one = hook("a.sh", pods())
    starting = asyncio.create_task(bench.start(one))
    await clocks.settle()
    bench.cluster.put("Pod", "a")
    bench.hooks.gates.pop("a.sh").set()
    with pytest.raises(errors.AddonOperatorError, match=r"hook a\.sh failed"):
        await starting
    bench.hooks.runs.clear()
    await bench.start(one)
    assert await bench.told() == ["a.sh: pods Synchronization a"]


async def test_a_further_start_repeats_only_what_had_not_succeeded(bench: Bench) -> None:
    hooks = hook("a.sh", pods()), hook("b.sh", pods())
    bench.hooks.fail["b.sh"] = 1
    with pytest.raises(errors.AddonOperatorError):
        await bench.start(*hooks)
    assert await bench.told() == ["a.sh: pods Synchronization", "b.sh: pods Synchronization"]
    await bench.start(*hooks)
    assert await bench.told() == ["b.sh: pods Synchronization"]
    await bench.start(*hooks)
    assert await bench.told() == []


async def test_only_the_wanted_events_make_runs(bench: Bench) -> None:
    one = hook("a.sh", pods(executeHookOnEvent=["Deleted"]), pods("none", executeHookOnEvent=[]))
    await bench.start(one)
    bench.hooks.runs.clear()
    bench.cluster.put("Pod", "a")
    bench.cluster.put("Pod", "a")
    bench.cluster.remove("Pod", "a")
    assert await bench.told() == ["a.sh: pods Deleted a"]


async def test_without_a_synchronization_run_the_snapshot_is_there_when_the_start_is_over(
    bench: Bench,
) -> None:
    one = hook("a.sh", pods(executeHookOnSynchronization=False, queue="slow"))
    bench.cluster.slow.add("Pod")
    bench.cluster.put("Pod", "a")
    starting = asyncio.create_task(bench.start(one))
    await clocks.settle()
    assert not starting.done()
    bench.cluster.appear("Pod")
    await starting
    assert {name: len(found) for name, found in bench.bindings.snapshots(one).items()} == {"pods": 1}
    assert await bench.told() == []
    bench.cluster.put("Pod", "b")
    assert await bench.told() == ["a.sh: pods Added b"]


async def test_a_synchronization_in_a_named_queue_is_waited_for(bench: Bench) -> None:
    bench.hooks.gates["a.sh"] = asyncio.Event()
    starting = asyncio.create_task(bench.start(hook("a.sh", pods(queue="slow"))))
    await clocks.settle()
    assert [run.labels.queue for run in bench.hooks.runs] == ["slow"]
    assert not starting.done()
    bench.hooks.gates.pop("a.sh").set()
    await starting


async def test_a_synchronization_in_a_named_queue_runs_beside_those_in_main(bench: Bench) -> None:
    bench.hooks.gates["a.sh"] = asyncio.Event()
    starting = asyncio.create_task(bench.start(hook("a.sh", pods()), hook("b.sh", pods(queue="slow"))))
    assert sorted(await bench.told()) == ["a.sh: pods Synchronization", "b.sh: pods Synchronization"]
    bench.hooks.gates.pop("a.sh").set()
    await starting


async def test_without_wait_the_start_goes_on(bench: Bench) -> None:
    bench.hooks.gates["a.sh"] = asyncio.Event()
    bench.cluster.slow.add("Node")
    free: dict[str, Any] = {"queue": "slow", "waitForSynchronization": False}
    one = hook("a.sh", pods(**free), pods("nodes", "Node", **free))
    await asyncio.wait_for(bench.start(one), 60)
    assert await bench.told() == ["a.sh: pods Synchronization"]
    bench.cluster.appear("Node")
    bench.hooks.gates.pop("a.sh").set()
    assert await bench.told() == ["a.sh: nodes Synchronization"]


async def test_a_failing_synchronization_in_a_named_queue_fails_the_start_and_not_the_queue_of_others(
    bench: Bench,
) -> None:
    one = hook("a.sh", pods(queue="slow"))
    bench.hooks.fail["a.sh"] = 1
    with pytest.raises(
        hook_bindings.BindingError,
        match=r"hook a\.sh: the Synchronization run of binding pods in queue slow has failed: hook a",
    ) as failed:
        await bench.start(one)
    assert failed.value.without_values.endswith(
        "queue slow has failed; 'addon-operator module describe web' and the operator's log say why"
    )
    with pytest.raises(hook_bindings.BindingError):
        await bench.start(one)
    assert await bench.told() == ["a.sh: pods Synchronization"], "its queue tries it again, nobody else"
    await bench.pass_time(30)
    await bench.start(one)
    assert await bench.told() == ["a.sh: pods Synchronization"]


async def test_a_start_that_is_patient_waits_until_the_queue_has_succeeded(bench: Bench) -> None:
    one = hook("a.sh", pods(queue="slow"))
    bench.hooks.fail["a.sh"] = 2
    await bench.bindings.start(WEB, [one], bench.stopping)
    waiting = asyncio.create_task(bench.bindings.wait(WEB, bench.stopping, patient=True))
    await clocks.settle()
    for _ in range(2):
        assert not waiting.done()
        await bench.pass_time(40)
    await waiting
    assert len(bench.hooks.runs) == 3


async def test_an_allowed_failure_of_a_synchronization_is_reported_and_not_retried(bench: Bench) -> None:
    await bench.start(hook("a.sh", pods(allowFailure=True)))
    bench.hooks.runs.clear()
    bench.bindings.end(WEB)
    bench.hooks.fail["a.sh"] = 1
    await bench.start(hook("a.sh", pods(allowFailure=True)))
    assert bench.heard.warnings == ["hook a.sh failed; failure is allowed"]
    bench.cluster.put("Pod", "a")
    assert await bench.told() == ["a.sh: pods Synchronization", "a.sh: pods Added a"]


async def test_a_kind_that_comes_later_does_not_hold_up_the_start(bench: Bench) -> None:
    bench.cluster.unknown["Shop"] = "the API server has no kind Shop"
    one = hook("a.sh", pods(), pods("shops", "Shop"), beforeHelm=1)
    await asyncio.wait_for(bench.start(one), 60)
    assert await bench.told() == ["a.sh: pods Synchronization"]
    assert bench.waits == ["shops: the API server has no kind Shop"]
    assert bench.bindings.waiting(WEB) == [
        {"hook": "a.sh", "binding": "shops", "kind": "Shop", "reason": "the API server has no kind Shop"}
    ]
    assert bench.bindings.waiting(tasks.GLOBAL_OWNER) == []
    assert bench.bindings.snapshots(one)["shops"] == ()
    bench.cluster.put("Shop", "s")
    bench.hooks.effects = hook_outputs.HookEffects(values_changed=True)
    bench.cluster.appear("Shop")
    assert await bench.told() == ["a.sh: shops Synchronization s"]
    bench.cluster.put("Shop", "t")
    assert await bench.told() == ["a.sh: shops Added t"]
    assert bench.bindings.waiting(WEB) == []
    assert bench.waits[1:] == ["shops: no more"]


async def test_the_same_problem_is_reported_once(bench: Bench) -> None:
    await bench.start(hook("a.sh", pods()))
    listener = bench.cluster.subscriptions[0].listener
    for reason in ("no rights", "no rights", None, None, "no rights"):
        listener.trouble(reason)
    assert bench.waits == ["pods: no rights", "pods: no more", "pods: no rights"]


async def test_trouble_after_the_first_list_does_not_hold_up_a_start(bench: Bench) -> None:
    one = hook("a.sh", pods())
    await bench.start(one)
    bench.cluster.subscriptions[0].listener.trouble("no rights")
    await asyncio.wait_for(bench.start(one), 60)


async def test_a_start_that_is_stopped_ends_at_once(bench: Bench) -> None:
    bench.cluster.slow.add("Pod")
    starting = asyncio.create_task(bench.start(hook("a.sh", pods())))
    await clocks.settle()
    bench.stopping.set()
    await asyncio.wait_for(starting, 60)
    assert await bench.told() == []


async def test_a_start_ends_when_its_module_is_ended_meanwhile(bench: Bench) -> None:
    bench.cluster.slow.add("Pod")
    starting = asyncio.create_task(bench.start(hook("a.sh", pods())))
    await clocks.settle()
    bench.bindings.end(WEB)
    await asyncio.wait_for(starting, 60)
    assert await bench.told() == []


async def test_a_start_that_was_stopped_is_taken_up_again(bench: Bench) -> None:
    one = hook("a.sh", pods())
    bench.cluster.slow.add("Pod")
    bench.stopping.set()
    await bench.start(one)
    bench.stopping.clear()
    bench.cluster.appear("Pod")
    await clocks.settle()
    await bench.start(one)
    assert await bench.told() == ["a.sh: pods Synchronization"]


async def test_a_start_that_begins_again_repeats_all_synchronizations(bench: Bench) -> None:
    one = hook("a.sh", pods(), pods("nodes", "Node", queue="slow"))
    await bench.start(one)
    bench.hooks.runs.clear()
    bench.bindings.begin_again(WEB)
    bench.cluster.put("Pod", "a")
    await bench.start(one)
    assert sorted(await bench.told()) == ["a.sh: nodes Synchronization", "a.sh: pods Synchronization a"]
    assert len(bench.cluster.subscriptions) == 2


async def test_a_muted_module_gets_no_events_and_keeps_its_snapshots(bench: Bench) -> None:
    one = hook("a.sh", pods(), schedule=[{"crontab": "* * * * *"}])
    await bench.start(one)
    bench.hooks.runs.clear()
    bench.bindings.mute(WEB)
    bench.cluster.put("Pod", "a")
    await bench.pass_time(120)
    assert await bench.told() == []
    assert len(bench.bindings.snapshots(one)["pods"]) == 1


async def test_a_muted_module_drops_the_run_that_fails_in_its_queue(bench: Bench) -> None:
    await bench.start(hook("a.sh", pods(queue="slow")))
    bench.hooks.runs.clear()
    bench.hooks.fail["a.sh"] = 100
    bench.cluster.put("Pod", "a")
    assert len(await bench.told()) == 1
    bench.bindings.mute(WEB)
    await bench.pass_time(60)
    assert await bench.told() == []


async def test_a_module_that_is_enabled_again_gets_synchronizations_and_ticks_anew(bench: Bench) -> None:
    one = hook("a.sh", pods(), schedule=[{"crontab": "* * * * *"}])
    await bench.start(one)
    bench.bindings.mute(WEB)
    bench.cluster.put("Pod", "a")
    bench.hooks.runs.clear()
    await bench.start(one)
    assert await bench.told() == ["a.sh: pods Synchronization a"]
    await bench.pass_time(60)
    assert await bench.told() == ["a.sh: schedule Schedule"]
    bench.cluster.put("Pod", "b")
    assert await bench.told() == ["a.sh: pods Added b"]


async def test_the_end_of_a_module_ends_its_watches_schedules_and_queues(bench: Bench) -> None:
    one = hook(
        "a.sh",
        pods(queue="slow", resynchronizationPeriod="10s"),
        schedule=[{"crontab": "* * * * *", "queue": "ticks"}],
    )
    await bench.start(one)
    await bench.pass_time(60)
    assert [queue.name for queue in bench.queues.all] == ["main", "slow", "ticks"]
    bench.hooks.runs.clear()
    bench.bindings.end(WEB)
    await bench.pass_time(120)
    assert bench.cluster.subscriptions == []
    assert [queue.name for queue in bench.queues.all] == ["main"]
    assert await bench.told() == []
    assert [event.binding.name for event in bench.heard.of(binding_events.BindingGone)] == ["pods"]
    assert bench.bindings.snapshots(one) == {"pods": ()}


async def test_a_queue_stays_as_long_as_another_module_uses_it(bench: Bench) -> None:
    other = bound_fakes.hook("b.sh", {"kubernetes": [pods(queue="slow")]}, module="db")
    await bench.start(hook("a.sh", pods(queue="slow")))
    await bench.start(other, owner="db")
    bench.bindings.end(WEB)
    assert [queue.name for queue in bench.queues.all] == ["main", "slow"]
    bench.bindings.end("db")
    assert [queue.name for queue in bench.queues.all] == ["main"]


async def test_changed_hooks_of_a_module_replace_the_old_ones(bench: Bench) -> None:
    await bench.start(hook("a.sh", pods(), schedule=[{"crontab": "* * * * *"}]))
    await bench.start(hook("a.sh", pods("nodes", "Node")))
    assert await bench.told() == ["a.sh: pods Synchronization", "a.sh: nodes Synchronization"]
    assert [found.kind for found in bench.cluster.subscriptions] == ["Node"]
    await bench.pass_time(120)
    assert await bench.told() == []


async def test_a_binding_synchronizes_again_at_its_period(bench: Bench) -> None:
    await bench.start(hook("a.sh", pods(resynchronizationPeriod="1m")))
    bench.hooks.runs.clear()
    bench.cluster.put("Pod", "a")
    assert await bench.told() == ["a.sh: pods Added a"]
    await bench.pass_time(60)
    assert await bench.told() == ["a.sh: pods Synchronization a"]
    bench.cluster.put("Pod", "b")
    assert await bench.told() == ["a.sh: pods Added b"]
    await bench.pass_time(60)
    assert await bench.told() == ["a.sh: pods Synchronization a b"]


async def test_periods_that_pass_while_a_hook_runs_make_one_synchronization(bench: Bench) -> None:
    await bench.start(hook("a.sh", pods(resynchronizationPeriod="1m")))
    bench.hooks.runs.clear()
    bench.hooks.gates["a.sh"] = asyncio.Event()
    bench.cluster.put("Pod", "a")
    await clocks.settle()
    for _ in range(3):
        await bench.pass_time(60)
    bench.hooks.gates.pop("a.sh").set()
    assert await bench.told() == ["a.sh: pods Added a", "a.sh: pods Synchronization a"]


async def test_events_go_on_while_a_further_synchronization_runs(bench: Bench) -> None:
    await bench.start(hook("a.sh", pods(resynchronizationPeriod="1m")))
    bench.hooks.runs.clear()
    bench.hooks.gates["a.sh"] = asyncio.Event()
    await bench.pass_time(60)
    bench.cluster.put("Pod", "a")
    bench.hooks.gates.pop("a.sh").set()
    assert await bench.told() == ["a.sh: pods Synchronization", "a.sh: pods Added a"]


async def test_schedules_tick_after_the_start_until_the_end(bench: Bench) -> None:
    one = bound_fakes.hook("a.sh", {"schedule": [{"name": "often", "crontab": "* * * * *"}]}, module=WEB)
    await bench.bindings.start(WEB, [one], bench.stopping)
    await bench.pass_time(120)
    assert await bench.told() == []
    bench.bindings.tick(WEB)
    bench.bindings.tick(WEB)
    await bench.pass_time(60)
    assert await bench.told() == ["a.sh: often Schedule"]


async def test_objects_are_counted(bench: Bench) -> None:
    bench.cluster.put("Pod", "a")
    await bench.start(hook("a.sh", pods()))
    assert bench.counts == {"pods": 1}
    bench.cluster.put("Pod", "b")
    bench.cluster.put("Pod", "b")
    assert bench.counts == {"pods": 2}
    bench.cluster.remove("Pod", "a")
    assert bench.counts == {"pods": 1}


async def test_global_synchronizations_are_queued_in_main_one_after_another(bench: Bench) -> None:
    hooks: Sequence[state.Hook] = [
        bound_fakes.hook("a.sh", {"kubernetes": [pods(), pods("nodes", "Node")]}),
        bound_fakes.hook("b.sh", {"kubernetes": [pods()]}),
    ]
    bench.hooks.fail["a.sh"] = 1
    batches = await bench.bindings.start(tasks.GLOBAL_OWNER, hooks, bench.stopping)
    queued = [bench.bindings.queue(batch, "onStartup") for batch in batches]
    assert await bench.told() == ["a.sh: pods Synchronization, nodes Synchronization"]
    await bench.pass_time(30)
    assert [await task.done for task in queued] == [tasks.Outcome.DONE] * 2
    assert await bench.told() == [
        "a.sh: pods Synchronization, nodes Synchronization",
        "b.sh: pods Synchronization",
    ]


async def test_a_legacy_hook_gets_events_and_no_synchronization(bench: Bench) -> None:
    one = bound_fakes.legacy_hook({"onKubernetesEvent": [{"kind": "Pod"}]})
    bench.cluster.put("Pod", "a")
    await bench.start(one, owner=tasks.GLOBAL_OWNER)
    await clocks.settle()
    assert bench.hooks.runs == []
    bench.cluster.put("Pod", "b")
    await clocks.settle()
    assert [context["resourceName"] for run in bench.hooks.runs for context in run.contexts] == ["b"]
