"""How causes become runs: merged, limited, repeated, told to the right contexts."""

import asyncio
import gc
import tracemalloc
from collections.abc import AsyncIterator, Sequence

import pytest
from typing_extensions import override

from addon_operator.engine import events, intents, state
from addon_operator.engine.bindings import hook_tasks, triggers
from addon_operator.engine.hooks import hook_outputs
from addon_operator.engine.queues import queue_set
from addon_operator.hook_contract import binding_contexts
from addon_operator.hook_contract.configuration import bindings
from addon_operator.kernel.names import ModuleName
from tests.support import clocks
from tests.unit.engine import bound_fakes, fakes

ADDED = bindings.WatchEvent.ADDED


class Objects(triggers.FollowedObjects):
    """Snapshots by the binding's name."""

    def __init__(self) -> None:
        super().__init__()
        self.held: dict[str, list[bytes]] = {}
        self.asked = 0

    @override
    def entries(self, hook: state.Hook, binding: bindings.KubernetesBinding) -> binding_contexts.Entries:
        self.asked += 1
        return tuple(self.held.get(binding.name, ()))


class Bench:
    def __init__(self) -> None:
        self.clock = clocks.Clock()
        self.log = fakes.Heard()
        self.queues = queue_set.QueueSet(self.log.append, clock=self.clock)
        self.hooks = bound_fakes.Hooks()
        self.objects = Objects()
        self.inbox = fakes.Inbox()
        self.tasks = hook_tasks.HookTasks(self.queues, self.hooks, self.objects, self.inbox, self.clock)

    @property
    def changed(self) -> list[str]:
        """Hooks whose changes the engine is to react to."""
        return [intent.hook.name for intent in self.inbox.put_in if isinstance(intent, intents.ValuesChanged)]

    def hold(self, hook: state.Hook) -> None:
        """Let the hook run until it is released."""
        self.hooks.gates[hook.name] = asyncio.Event()

    async def release(self, hook: state.Hook) -> None:
        self.hooks.gates.pop(hook.name).set()
        await clocks.settle()

    async def wait(self, seconds: float) -> None:
        await self.clock.advance(seconds)


@pytest.fixture
async def bench() -> AsyncIterator[Bench]:
    made = Bench()
    working = asyncio.create_task(made.queues.work())
    await clocks.settle()
    yield made
    working.cancel()
    await asyncio.gather(working, return_exceptions=True)


def pods(name: str = "pods", **more: object) -> dict[str, object]:
    return {"name": name, "kind": "Pod", **more}


def hook(name: str = "a.sh", *kubernetes: dict[str, object], **more: object) -> state.Hook:
    listed = list(kubernetes) or [pods()]
    return bound_fakes.hook(name, {"kubernetes": listed, **more})


def ticking(*names: str, **more: object) -> state.Hook:
    listed = [{"name": name, "crontab": "* * * * *", **more} for name in names]
    return bound_fakes.hook("t.sh", {"schedule": listed})


def event(of: state.Hook, name: str, change: bindings.WatchEvent = ADDED, binding: int = 0) -> triggers.Event:
    return triggers.Event(
        of.config.kubernetes[binding], change, binding_contexts.PackedEntry(bound_fakes.entry(name))
    )


def tick(of: state.Hook, binding: int = 0) -> triggers.Tick:
    return triggers.Tick(of.config.schedules[binding])


class Bound:
    """A binding that notes how its Synchronization goes."""

    def __init__(self, of: state.Hook, index: int = 0) -> None:
        self.binding = of.config.kubernetes[index]
        self.went: list[str] = []

    def synchronization_begins(self) -> None:
        self.went.append("begins")

    def synchronization_ended(self) -> None:
        self.went.append("ended")

    def synchronization_failed(self, error: str) -> None:
        self.went.append(error)


async def test_events_that_wait_together_share_one_run(bench: Bench) -> None:
    one = hook()
    bench.hold(one)
    bench.tasks.add(one, event(one, "first"))
    await clocks.settle()
    for name in "abc":
        bench.tasks.add(one, event(one, name))
    await bench.release(one)
    assert bench.hooks.told == ["a.sh: pods Added first", "a.sh: pods Added a, pods Added b, pods Added c"]


async def test_what_comes_while_a_hook_runs_waits_for_the_next_run(bench: Bench) -> None:
    one = hook()
    bench.hold(one)
    running = bench.tasks.add(one, event(one, "a"))
    await clocks.settle()
    assert bench.tasks.add(one, event(one, "b")) is not running
    await bench.release(one)
    assert bench.hooks.told == ["a.sh: pods Added a", "a.sh: pods Added b"]


async def test_only_neighbours_are_merged_so_that_hooks_keep_their_order(bench: Bench) -> None:
    first, second = hook("a.sh"), hook("b.sh")
    bench.hold(first)
    for one, name in [(first, "0"), (first, "1"), (second, "2"), (first, "3"), (first, "4")]:
        bench.tasks.add(one, event(one, name))
        await clocks.settle()
    await bench.release(first)
    assert bench.hooks.told == [
        "a.sh: pods Added 0",
        "a.sh: pods Added 1",
        "b.sh: pods Added 2",
        "a.sh: pods Added 3, pods Added 4",
    ]


async def test_in_a_crowded_queue_events_join_a_run_further_ahead_in_their_own_order(bench: Bench) -> None:
    hooks = [hook("a.sh"), hook("b.sh")]
    bench.hold(hooks[0])
    bench.tasks.add(hooks[0], event(hooks[0], "first"))
    await clocks.settle()
    added = [[bench.tasks.add(one, event(one, f"{number:03}")) for one in hooks] for number in range(500)]
    assert len(bench.queues.main.pending) <= hook_tasks.CROWDED + 1
    await bench.release(hooks[0])
    await asyncio.gather(*(task.done for task in added[-1]))
    for name in ("a.sh", "b.sh"):
        told = [
            item["object"]["metadata"]["name"]
            for run in bench.hooks.runs
            if run.hook == name
            for item in run.contexts
        ]
        assert [seen for seen in told if seen != "first"] == [f"{number:03}" for number in range(500)]


async def test_thousands_of_events_are_one_run_and_take_little_memory_until_then(bench: Bench) -> None:
    one = hook()
    bench.hold(one)
    bench.tasks.add(one, event(one, "first"))
    await clocks.settle()
    gc.collect()
    tracemalloc.start()
    text = "x" * 20_000
    for number in range(300):
        entry = binding_contexts.PackedEntry(bound_fakes.entry(str(number), data=text))
        bench.tasks.add(one, triggers.Event(one.config.kubernetes[0], ADDED, entry))
    held, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert held < 300 * 1_000, "the objects are 6 MB"
    assert len(bench.queues.main.pending) == 1
    await bench.release(one)
    assert [len(run.contexts) for run in bench.hooks.runs] == [1, 300]


async def test_a_failed_run_keeps_its_events_takes_what_came_and_sees_new_snapshots(bench: Bench) -> None:
    one = hook("a.sh", pods(includeSnapshotsFrom=["pods"]))
    bench.hooks.fail["a.sh"] = 1
    bench.objects.held["pods"] = [bound_fakes.entry("a")]
    bench.tasks.add(one, event(one, "a"))
    await clocks.settle()
    bench.tasks.add(one, event(one, "b"))
    bench.objects.held["pods"].append(bound_fakes.entry("b"))
    await bench.wait(30)
    assert [len(run.contexts[0]["snapshots"]["pods"]) for run in bench.hooks.runs] == [1, 2]
    assert bench.hooks.told == ["a.sh: pods Added a", "a.sh: pods Added a, pods Added b"]


async def test_all_contexts_of_a_run_see_the_same_snapshot_taken_once(bench: Bench) -> None:
    one = hook(
        "a.sh", pods(includeSnapshotsFrom=["pods", "nodes"]), pods("nodes", includeSnapshotsFrom=["pods"])
    )
    bench.hold(one)
    bench.tasks.add(one, event(one, "0"))
    await clocks.settle()
    for cause in (event(one, "a"), event(one, "b", binding=1)):
        bench.tasks.add(one, cause)
    bench.objects.asked = 0
    await bench.release(one)
    assert bench.objects.asked == 2
    assert [sorted(item["snapshots"]) for item in bench.hooks.runs[1].contexts] == [
        ["nodes", "pods"],
        ["pods"],
    ]


async def test_contexts_of_one_group_collapse_into_the_last_with_the_snapshots(bench: Bench) -> None:
    one = bound_fakes.hook(
        "a.sh",
        {
            "kubernetes": [pods(group="all"), pods("nodes", group="all"), pods("other")],
            "schedule": [{"name": "tick", "crontab": "* * * * *", "group": "all"}],
        },
    )
    bench.hold(one)
    bench.tasks.add(one, event(one, "0", binding=2))
    await clocks.settle()
    bench.objects.held["pods"] = [bound_fakes.entry("a")]
    bench.tasks.add(one, event(one, "a"))
    bench.tasks.add(one, event(one, "b", binding=1))
    task = bench.tasks.add(one, tick(one))
    assert len(task.run_for) == 1, "a group takes no memory however many events come"
    await bench.release(one)
    expected = {
        "binding": "tick",
        "type": "Group",
        "groupName": "all",
        "snapshots": {
            "pods": [{"object": {"kind": "Pod", "metadata": {"name": "a", "namespace": "n"}}}],
            "nodes": [],
        },
    }
    assert bench.hooks.runs[1].contexts == [expected]


async def test_a_group_between_other_contexts_keeps_its_positions(bench: Bench) -> None:
    one = hook("a.sh", pods(group="all"), pods("other"))
    bench.hold(one)
    bench.tasks.add(one, event(one, "0", binding=1))
    await clocks.settle()
    for name, binding in [("a", 0), ("b", 0), ("c", 1), ("d", 0)]:
        bench.tasks.add(one, event(one, name, binding=binding))
    await bench.release(one)
    assert bench.hooks.told[1:] == ["a.sh: pods Group, other Added c, pods Group"]


async def test_a_tick_is_not_queued_twice_while_it_waits(bench: Bench) -> None:
    one = ticking("often", "rarely")
    bench.hold(one)
    bench.tasks.add(one, tick(one))
    await clocks.settle()
    for binding in (0, 0, 1, 0):
        bench.tasks.add(one, tick(one, binding))
    await bench.release(one)
    assert bench.hooks.told == ["t.sh: often Schedule", "t.sh: often Schedule, rarely Schedule"]


async def test_a_tick_that_waits_behind_another_hook_is_not_queued_again(bench: Bench) -> None:
    one, other = ticking("often"), hook("b.sh")
    bench.hold(other)
    bench.tasks.add(other, event(other, "0"))
    await clocks.settle()
    bench.tasks.add(one, tick(one))
    bench.tasks.add(other, event(other, "1"))
    bench.tasks.add(one, tick(one))
    await bench.release(other)
    assert bench.hooks.told == ["b.sh: pods Added 0", "t.sh: often Schedule", "b.sh: pods Added 1"]


async def test_a_tick_during_the_run_of_the_one_before_makes_one_more_run(bench: Bench) -> None:
    one = ticking("often")
    bench.hold(one)
    bench.tasks.add(one, tick(one))
    await clocks.settle()
    bench.tasks.add(one, tick(one))
    await bench.release(one)
    assert bench.hooks.told == ["t.sh: often Schedule"] * 2


async def test_bindings_of_one_hook_run_in_their_own_queues(bench: Bench) -> None:
    one = hook("a.sh", pods(), pods("slow", queue="slow"))
    bench.tasks.add(one, event(one, "a"))
    bench.tasks.add(one, event(one, "b", binding=1))
    await clocks.settle()
    assert sorted((run.labels.queue, str(run)) for run in bench.hooks.runs) == [
        ("main", "a.sh: pods Added a"),
        ("slow", "a.sh: slow Added b"),
    ]


async def test_the_labels_of_a_run_say_which_binding_of_which_module_made_it(bench: Bench) -> None:
    one = bound_fakes.hook("a.sh", {"kubernetes": [pods(queue="q")]}, module="web")
    bench.tasks.add(one, event(one, "a"))
    await clocks.settle()
    assert bench.hooks.runs[0].labels == events.HookLabels(
        "a.sh", "pods", "q", "Kubernetes", ModuleName("web")
    )
    at_times = ticking("often")
    bench.tasks.add(at_times, tick(at_times))
    await clocks.settle()
    assert bench.hooks.runs[1].labels == events.HookLabels("t.sh", "often", "main", "Schedule")


@pytest.mark.parametrize(
    ("allowed", "tries"), [([True, True], 1), ([True, False], 2), ([False, True], 2)], ids=str
)
async def test_a_run_may_fail_if_all_its_bindings_say_so(
    bench: Bench, allowed: Sequence[bool], tries: int
) -> None:
    one = hook("a.sh", *(pods(f"p{index}", allowFailure=may) for index, may in enumerate(allowed)))
    bench.hold(one)
    bench.tasks.add(one, event(one, "0"))
    await clocks.settle()
    bench.tasks.add(one, event(one, "a"))
    bench.tasks.add(one, event(one, "b", binding=1))
    bench.hooks.runs.clear()
    await bench.release(one)
    bench.hooks.runs.clear()
    bench.hooks.fail["a.sh"] = 1
    bench.tasks.add(one, event(one, "c"))
    task = bench.tasks.add(one, event(one, "d", binding=1))
    await clocks.settle()
    await bench.wait(30)
    assert len(bench.hooks.runs) == tries
    assert bench.hooks.runs[0].allow_failure is (tries == 1)
    assert task.done.done()


async def test_a_failure_that_is_allowed_is_known_until_the_hook_works_or_is_gone(bench: Bench) -> None:
    one = hook("a.sh", pods(allowFailure=True), pods("nodes", allowFailure=True))

    async def run(binding: int = 0) -> list[tuple[str, int]]:
        bench.tasks.add(one, event(one, "a", binding=binding))
        await clocks.settle()
        return [(each.binding, each.times) for each in bench.tasks.allowed_failures]

    bench.hooks.fail["a.sh"] = 3
    assert await run() == [("pods", 1)]
    assert await run() == [("pods", 2)]
    assert await run(1) == [("pods", 2), ("nodes", 1)]
    assert await run() == [("nodes", 1)], "it worked for that binding"
    assert bench.tasks.allowed_failures[0].error == "hook a.sh failed"
    bench.tasks.forget(one)
    assert bench.tasks.allowed_failures == ()
    bench.hooks.fail["a.sh"] = 1
    await run()
    bench.tasks.drop(one.module or "")
    assert bench.tasks.allowed_failures == ()


async def test_synchronizations_report_their_start_and_end(bench: Bench) -> None:
    one = hook("a.sh", pods(), pods("nodes"))
    bound = [Bound(one, 0), Bound(one, 1)]
    for each in bound:
        bench.tasks.add(one, triggers.Synchronization(each))
    bench.objects.held["pods"] = [bound_fakes.entry("a")]
    await clocks.settle()
    assert bench.hooks.told == ["a.sh: pods Synchronization a, nodes Synchronization"]
    assert [each.went for each in bound] == [["begins", "ended"]] * 2


async def test_a_failed_synchronization_begins_anew(bench: Bench) -> None:
    one = hook()
    bound = Bound(one)
    bench.hooks.fail["a.sh"] = 1
    bench.tasks.add(one, triggers.Synchronization(bound))
    await clocks.settle()
    assert bound.went == ["begins", "hook a.sh failed"]
    await bench.wait(30)
    assert bound.went[2:] == ["begins", "ended"]


async def test_a_synchronization_that_may_fail_counts_as_ended(bench: Bench) -> None:
    one = hook("a.sh", pods(allowFailure=True))
    bound = Bound(one)
    bench.hooks.fail["a.sh"] = 1
    bench.tasks.add(one, triggers.Synchronization(bound))
    await clocks.settle()
    assert bound.went == ["begins", "ended"]


async def test_a_synchronization_is_not_merged_with_events(bench: Bench) -> None:
    one = hook()
    bench.hold(one)
    bench.tasks.add(one, event(one, "0"))
    await clocks.settle()
    bench.tasks.add(one, triggers.Synchronization(Bound(one)))
    bench.tasks.add(one, event(one, "a"))
    bench.tasks.add(one, triggers.Synchronization(Bound(one)))
    await bench.release(one)
    assert bench.hooks.told[1:] == [
        "a.sh: pods Synchronization",
        "a.sh: pods Added a",
        "a.sh: pods Synchronization",
    ]


async def test_synchronizations_that_are_waited_for_are_merged_only_with_such(bench: Bench) -> None:
    one = hook("a.sh", pods(), pods("nodes"))
    bench.hold(one)
    bench.tasks.add(one, event(one, "0"))
    await clocks.settle()
    bench.tasks.add(one, triggers.Synchronization(Bound(one), is_awaited=True))
    bench.tasks.add(one, triggers.Synchronization(Bound(one, 1)))
    await bench.release(one)
    assert bench.hooks.told[1:] == ["a.sh: pods Synchronization", "a.sh: nodes Synchronization"]


async def test_values_changed_on_events_and_ticks_are_reacted_to(bench: Bench) -> None:
    bench.hooks.effects = hook_outputs.HookEffects(values_changed=True)
    one, at_times = hook(), ticking("often")
    bench.tasks.add(one, event(one, "a"))
    bench.tasks.add(at_times, tick(at_times))
    await clocks.settle()
    assert bench.changed == ["a.sh", "t.sh"]


async def test_flags_changed_on_events_are_reacted_to(bench: Bench) -> None:
    bench.hooks.effects = hook_outputs.HookEffects(flags_changed=True)
    one = hook()
    bench.tasks.add(one, event(one, "a"))
    await clocks.settle()
    assert bench.changed == ["a.sh"]


async def test_a_run_that_changes_nothing_is_not_reacted_to(bench: Bench) -> None:
    one = hook()
    bench.tasks.add(one, event(one, "a"))
    await clocks.settle()
    assert bench.hooks.told
    assert bench.changed == []


@pytest.mark.parametrize("reacts", [False, True])
async def test_values_changed_by_a_synchronization_are_reacted_to_only_if_nothing_else_uses_them(
    bench: Bench, reacts: bool
) -> None:
    bench.hooks.effects = hook_outputs.HookEffects(values_changed=True)
    one = hook()
    bench.tasks.add(one, triggers.Synchronization(Bound(one), reacts=reacts))
    await clocks.settle()
    assert bench.changed == (["a.sh"] if reacts else [])


async def test_a_module_s_waiting_runs_are_dropped(bench: Bench) -> None:
    web, db = (bound_fakes.hook("a.sh", {"kubernetes": [pods()]}, module=name) for name in ("web", "db"))
    bench.hooks.fail["a.sh"] = 1
    task = bench.tasks.add(web, event(web, "a"))
    await clocks.settle()
    bench.tasks.drop("web")
    bench.tasks.add(db, event(db, "b"))
    await clocks.settle()
    assert task.done.done()
    assert bench.hooks.told == ["a.sh: pods Added a", "a.sh: pods Added b"]


def limited(burst: int | None = None) -> state.Hook:
    settings = {"executionMinInterval": "3s"} | ({"executionBurst": burst} if burst else {})
    return hook("a.sh", settings=settings)


async def test_a_limited_hook_waits_and_gets_all_that_came_meanwhile(bench: Bench) -> None:
    one = limited()
    for name in "abc":
        bench.tasks.add(one, event(one, name))
        await clocks.settle()
    assert bench.hooks.told == ["a.sh: pods Added a"]
    await bench.wait(2.9)
    assert bench.hooks.told == []
    await bench.wait(0.2)
    assert bench.hooks.told == ["a.sh: pods Added b, pods Added c"]
    assert bench.log.failures == []


async def test_a_burst_of_runs_is_allowed_and_refilled_one_by_one(bench: Bench) -> None:
    one = limited(burst=2)
    for name in "abcd":
        bench.tasks.add(one, event(one, name))
        await clocks.settle()
    assert bench.hooks.told == ["a.sh: pods Added a", "a.sh: pods Added b"]
    await bench.wait(3)
    assert bench.hooks.told == ["a.sh: pods Added c, pods Added d"]
    bench.tasks.add(one, event(one, "e"))
    await clocks.settle()
    assert bench.hooks.told == []
    await bench.wait(9)
    for name in "fgh":
        bench.tasks.add(one, event(one, name))
        await clocks.settle()
    assert bench.hooks.told == ["a.sh: pods Added e", "a.sh: pods Added f"]


async def test_a_limited_hook_does_not_hold_up_others_in_its_queue(bench: Bench) -> None:
    one, other = limited(), hook("b.sh")
    for of, name in [(one, "a"), (one, "b"), (other, "c")]:
        bench.tasks.add(of, event(of, name))
        await clocks.settle()
    assert bench.hooks.told == ["a.sh: pods Added a", "b.sh: pods Added c"]


async def test_a_synchronization_does_not_wait_and_counts(bench: Bench) -> None:
    one = limited()
    for _ in range(2):
        bench.tasks.add(one, triggers.Synchronization(Bound(one)))
        await clocks.settle()
    bench.tasks.add(one, event(one, "a"))
    await clocks.settle()
    assert bench.hooks.told == ["a.sh: pods Synchronization"] * 2
    await bench.wait(3)
    assert bench.hooks.told == ["a.sh: pods Added a"]


async def test_limits_are_forgotten_with_their_hook(bench: Bench) -> None:
    one = limited()
    bench.tasks.add(one, event(one, "a"))
    await clocks.settle()
    bench.tasks.attach(one)
    bench.tasks.forget(one)
    bench.tasks.add(one, event(one, "b"))
    await clocks.settle()
    assert bench.hooks.told == ["a.sh: pods Added a", "a.sh: pods Added b"]


async def test_a_hook_without_config_version_gets_contexts_in_the_old_form(bench: Bench) -> None:
    one = bound_fakes.legacy_hook(
        {"onKubernetesEvent": [{"kind": "Pod", "event": ["add"]}], "schedule": [{"crontab": "* * * * *"}]}
    )
    bench.tasks.add(one, event(one, "a"))
    await clocks.settle()
    bench.tasks.add(one, tick(one))
    await clocks.settle()
    assert [run.contexts for run in bench.hooks.runs] == [
        [
            {
                "binding": "onKubernetesEvent",
                "resourceEvent": "add",
                "resourceNamespace": "n",
                "resourceKind": "Pod",
                "resourceName": "a",
            }
        ],
        [{"binding": "schedule"}],
    ]


async def test_two_bindings_without_names_keep_their_own_objects(bench: Bench) -> None:
    one = bound_fakes.hook("a.sh", {"kubernetes": [{"kind": "Pod"}, {"kind": "Node"}], "beforeAll": 1})
    held = {"Pod": [bound_fakes.entry("p")], "Node": [bound_fakes.entry("x")]}

    class ByKind(triggers.FollowedObjects):
        @override
        def entries(self, hook: state.Hook, binding: bindings.KubernetesBinding) -> binding_contexts.Entries:
            return held[binding.kind]

    tasks = hook_tasks.HookTasks(bench.queues, bench.hooks, ByKind(), bench.inbox, bench.clock)
    for index in (0, 1):
        tasks.add(one, triggers.Synchronization(Bound(one, index)))
    await clocks.settle()
    assert bench.hooks.told == ["a.sh: kubernetes Synchronization p, kubernetes Synchronization x"]
    assert {name: list(found) for name, found in ByKind().snapshots(one).items()} == {
        "kubernetes": [*held["Pod"], *held["Node"]]
    }
