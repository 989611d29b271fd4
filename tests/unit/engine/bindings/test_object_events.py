"""Hooks bound to objects: nothing is lost, nothing told twice, and what waits together is one run."""

import asyncio
from typing import Any

import pytest

from addon_operator.engine import events
from addon_operator.engine.bindings import binding_events, hook_tasks
from addon_operator.kernel import names
from tests.support import api_server, clocks, engine, hooks


def pods(name: str = "pods", kind: str = "Pod", **more: object) -> dict[str, object]:
    return {"name": name, "kind": kind, **more}


async def put(op: engine.Operator, *names: str, kind: str = "Pod", **fields: Any) -> None:  # noqa: ANN401
    """Create objects, or change them, one after the other."""
    for name in names:
        op.server.put(api_server.an_object(kind, name, spec={"change": op.server.version}, **fields))
    await clocks.settle()


async def delete(op: engine.Operator, name: str, kind: str = "Pod") -> None:
    op.server.delete(kind, name)
    await clocks.settle()


async def started(op: engine.Operator, *kubernetes: dict[str, object], **more: object) -> hooks.Hook:
    """A hook of the module ``web``, after its first Synchronization."""
    hook = op.hook("web/a.sh", {"kubernetes": list(kubernetes) or [pods()], **more})
    await op.start()
    assert op.statuses == {"web": "Ready"}
    assert op.told
    return hook


def held(op: engine.Operator, plural: str) -> asyncio.Event:
    """Let requests for a kind wait until the event is set."""
    return op.server.hold(lambda asked: asked.path.endswith(f"/{plural}"))


async def release(event: asyncio.Event) -> None:
    event.set()
    await clocks.settle()


# The first list, and what changes meanwhile.


async def test_a_hook_gets_all_objects_and_then_each_change(op: engine.Operator) -> None:
    await put(op, "b", "a")
    op.hook("web/a.sh", {"kubernetes": [pods()]})
    await op.start()
    assert op.told == ["a.sh: pods Synchronization a b"]
    await put(op, "c")
    await put(op, "a")
    await delete(op, "b")
    assert op.told == ["a.sh: pods Added c", "a.sh: pods Modified a", "a.sh: pods Deleted b"]


@pytest.mark.parametrize("owner", ["web/", ""], ids=["of a module", "global"])
async def test_synchronizations_run_hook_by_hook_with_their_bindings_together(
    op: engine.Operator, owner: str
) -> None:
    op.hook(f"{owner}a.sh", {"kubernetes": [pods(), pods("nodes", "Node")]})
    op.hook(f"{owner}b.sh", {"kubernetes": [pods()]})
    await op.start()
    assert op.told == ["a.sh: pods Synchronization, nodes Synchronization", "b.sh: pods Synchronization"]


async def test_what_changes_before_the_synchronization_run_is_in_its_snapshot_alone(
    op: engine.Operator,
) -> None:
    nodes = held(op, "nodes")
    op.hook("web/a.sh", {"kubernetes": [pods(), pods("nodes", "Node")]})
    await op.start()
    await put(op, "a")
    assert op.told == []
    await release(nodes)
    assert op.told == ["a.sh: pods Synchronization a, nodes Synchronization"]


async def test_what_changes_during_the_synchronization_run_becomes_events_after_it(
    op: engine.Operator,
) -> None:
    hook = op.hook("web/a.sh", {"kubernetes": [pods()]})
    hook.hold()
    await op.start()
    await put(op, "a", "a")
    await delete(op, "a")
    assert op.told == ["a.sh: pods Synchronization"]
    await hook.release()
    assert op.told == ["a.sh: pods Added a, pods Modified a, pods Deleted a"]


async def test_what_changes_during_a_synchronization_run_that_fails_is_in_the_next_snapshot(
    op: engine.Operator,
) -> None:
    hook = op.hook("web/a.sh", {"kubernetes": [pods()]})
    hook.fails = 1
    hook.hold()
    await op.start()
    await put(op, "a")
    await hook.release()
    assert op.statuses == {"web": "Failed"}
    await op.advance(10)
    assert op.told == ["a.sh: pods Synchronization", "a.sh: pods Synchronization a"]


@pytest.mark.parametrize("owner", ["web/", ""], ids=["of a module", "global"])
async def test_a_further_try_repeats_only_what_had_not_succeeded(op: engine.Operator, owner: str) -> None:
    op.hook(f"{owner}a.sh", {"kubernetes": [pods()]})
    op.hook(f"{owner}b.sh", {"kubernetes": [pods()]}).fails = 1
    op.hook(f"{owner}c.sh", {"kubernetes": [pods()]})
    await op.start()
    assert op.told == ["a.sh: pods Synchronization", "b.sh: pods Synchronization"]
    await op.advance(10)
    assert op.told == ["b.sh: pods Synchronization", "c.sh: pods Synchronization"]


async def test_only_the_wanted_events_make_runs(op: engine.Operator) -> None:
    await started(op, pods(executeHookOnEvent=["Deleted"]), pods("none", executeHookOnEvent=[]))
    await put(op, "a", "a")
    await delete(op, "a")
    assert op.told == ["a.sh: pods Deleted a"]


async def test_without_a_synchronization_run_the_snapshot_is_there_before_helm(op: engine.Operator) -> None:
    await put(op, "a")
    listed = held(op, "pods")
    config = {
        "kubernetes": [pods(executeHookOnSynchronization=False, queue="slow")],
        "beforeHelm": 1,
    }
    hook = op.hook("web/a.sh", config)
    await op.start()
    assert op.told == []
    await release(listed)
    assert op.told == ["a.sh: beforeHelm"]
    assert [each["object"]["metadata"]["name"] for each in hook.runs[0].contexts[0]["snapshots"]["pods"]] == [
        "a"
    ]
    await put(op, "b")
    assert op.told == ["a.sh: pods Added b"]


async def test_a_synchronization_in_a_named_queue_runs_beside_those_in_main_and_is_waited_for(
    op: engine.Operator,
) -> None:
    in_main = op.hook("web/a.sh", {"kubernetes": [pods()]})
    in_queue = op.hook("web/b.sh", {"kubernetes": [pods(queue="slow")]})
    in_main.hold()
    in_queue.hold()
    await op.start()
    assert sorted(op.told) == ["a.sh: pods Synchronization", "b.sh: pods Synchronization"]
    await in_main.release()
    assert op.helm.changes == []
    await in_queue.release()
    assert op.helm.changes == ["upgrade web"]


async def test_what_need_not_be_waited_for_does_not_hold_up_the_module(op: engine.Operator) -> None:
    free: dict[str, Any] = {"queue": "slow", "waitForSynchronization": False}
    nodes = held(op, "nodes")
    hook = op.hook("web/a.sh", {"kubernetes": [pods(**free), pods("nodes", "Node", **free)]})
    hook.hold()
    await op.start()
    assert op.statuses == {"web": "Ready"}
    assert op.told == ["a.sh: pods Synchronization"]
    await release(nodes)
    await hook.release()
    assert op.told == ["a.sh: nodes Synchronization"]


async def test_a_failing_synchronization_in_a_named_queue_is_tried_again_by_its_queue_alone(
    op: engine.Operator,
) -> None:
    op.hook("web/a.sh", {"kubernetes": [pods(queue="slow")]}).fails = 1
    await op.start()
    assert op.statuses == {"web": "Failed"}
    state = op.module("web")
    what = "hook a.sh: the Synchronization run of binding pods in queue slow has failed"
    assert state.last_error.startswith(f"{what}: hook a.sh failed with exit code 1")
    why = "'addon-operator module describe web' and the operator's log say why"
    assert state.last_error_without_values == f"{what}; {why}"
    await op.advance(20)
    assert op.told == ["a.sh: pods Synchronization"] * 2
    assert op.statuses == {"web": "Ready"}


async def test_a_failure_that_is_allowed_is_told_not_retried_and_known_until_the_hook_works(
    op: engine.Operator,
) -> None:
    hook = op.hook("web/a.sh", {"kubernetes": [pods(allowFailure=True)]})
    hook.fails = 2
    await op.start()
    assert op.statuses == {"web": "Ready"}
    await put(op, "a")
    await op.advance(60)
    assert op.told == ["a.sh: pods Synchronization", "a.sh: pods Added a"]
    (row,) = await op.failing_hooks("web")
    assert row.startswith("hook a.sh on pods failed, which is allowed")
    await put(op, "b")
    assert await op.failing_hooks("web") == []


@pytest.mark.parametrize(("allowed", "tries"), [((True, True), 1), ((True, False), 2)], ids=str)
async def test_a_run_may_fail_if_all_its_bindings_say_so(
    op: engine.Operator, allowed: tuple[bool, bool], tries: int
) -> None:
    both = [pods(f"p{index}", allowFailure=may) for index, may in enumerate(allowed)]
    hook = await started(op, *both)
    hook.fails = 1
    await put(op, "a")
    await op.advance(30)
    assert op.told == ["a.sh: p0 Added a, p1 Added a"] * tries


async def test_a_global_synchronization_in_a_named_queue_is_waited_for_until_it_has_succeeded(
    op: engine.Operator,
) -> None:
    op.modules.add("web")
    op.hook("a.sh", {"kubernetes": [pods(queue="slow")]}).fails = 2
    await op.start()
    assert op.helm.changes == []
    await op.advance(60)
    assert op.told == ["a.sh: pods Synchronization"] * 3
    assert op.helm.changes == ["upgrade web"]


async def test_a_run_says_which_binding_of_which_module_made_it(op: engine.Operator) -> None:
    await started(op, pods(queue="q"), schedule=[{"name": "often", "crontab": "* * * * *"}])
    await put(op, "a")
    await op.advance(60)
    web = names.ModuleName("web")
    assert [each.labels for each in op.heard.of(events.HookSucceeded)] == [
        events.HookLabels("a.sh", "pods", "q", "Synchronization", web),
        events.HookLabels("a.sh", "pods", "q", "Kubernetes", web),
        events.HookLabels("a.sh", "often", "main", "Schedule", web),
    ]


# What cannot be followed, and what is not there yet.


async def test_a_kind_that_comes_later_does_not_hold_up_the_module(op: engine.Operator) -> None:
    op.hook("web/a.sh", {"kubernetes": [pods(), pods("shops", "Shop", apiVersion="example.com/v1")]})
    await op.start()
    assert op.statuses == {"web": "Ready"}
    assert op.told == ["a.sh: pods Synchronization"]
    (waiting,) = op.waits
    assert waiting.startswith("shops: the API server has no kind 'Shop' in example.com/v1")
    op.server.serve("Shop", "example.com/v1")
    await put(op, "s", kind="Shop", api_version="example.com/v1")
    await op.advance(30)
    assert op.told == ["a.sh: shops Synchronization s"]
    await put(op, "t", kind="Shop", api_version="example.com/v1")
    assert op.told == ["a.sh: shops Added t"]
    assert op.waits == ["shops: no more"]


async def test_a_right_that_is_missing_is_told_once_and_the_hook_goes_on_when_it_is_given(
    op: engine.Operator,
) -> None:
    await started(op)
    op.server.refuse(403, lambda asked: asked.path.endswith("/pods"), times=3)
    op.server.cut()
    await clocks.settle()
    await op.advance(10)
    first, last = op.waits
    assert "may not watch pods" in first
    assert last == "pods: no more"
    await put(op, "a")
    assert op.told == ["a.sh: pods Added a"]


async def test_objects_are_counted(op: engine.Operator) -> None:
    def counts() -> dict[str, int]:
        return {each.binding.name: each.objects for each in op.heard.of(binding_events.SnapshotChanged)}

    await put(op, "a")
    await started(op)
    assert counts() == {"pods": 1}
    await put(op, "b", "b")
    assert counts() == {"pods": 2}
    await delete(op, "a")
    assert counts() == {"pods": 1}


@pytest.mark.parametrize(
    ("keep", "entry"),
    [(True, {"object", "filterResult"}), (False, {"filterResult"})],
    ids=["the whole object", "only what the filter gives"],
)
async def test_a_filter_decides_what_is_an_event_and_what_is_kept(
    op: engine.Operator, keep: bool, entry: set[str]
) -> None:
    binding = pods(jqFilter=".metadata.labels", keepFullObjectsInMemory=keep, includeSnapshotsFrom=["pods"])
    hook = await started(op, binding)
    hook.runs.clear()
    await put(op, "a", labels={"x": "1"})
    await put(op, "a", labels={"x": "1"})
    await put(op, "a", labels={"x": "2"})
    told = [run.contexts[0] for run in hook.runs]
    assert [(event["watchEvent"], event["filterResult"]) for event in told] == [
        ("Added", {"x": "1"}),
        ("Modified", {"x": "2"}),
    ]
    assert told[1]["snapshots"]["pods"][0].keys() == entry


# What waits together.


async def test_what_comes_while_a_hook_runs_is_one_run_after_it(op: engine.Operator) -> None:
    hook = await started(op)
    hook.hold()
    await put(op, "first")
    await put(op, "a", "b", "c")
    await hook.release()
    assert op.told == ["a.sh: pods Added first", "a.sh: pods Added a, pods Added b, pods Added c"]


async def test_only_neighbours_are_merged_so_that_hooks_keep_their_order(op: engine.Operator) -> None:
    first = op.hook("a.sh", {"kubernetes": [pods()]})
    op.hook(
        "b.sh", {"kubernetes": [pods("maps", "ConfigMap", namespace={"nameSelector": {"matchNames": ["x"]}})]}
    )
    await op.start()
    assert len(op.told) == 2
    first.hold()
    await put(op, "0", "1")
    op.server.put(api_server.an_object("ConfigMap", "2", "x"))
    await clocks.settle()
    await put(op, "3", "4")
    await first.release()
    assert op.told == [
        "a.sh: pods Added 0, pods Added 1",
        "b.sh: maps Added 2",
        "a.sh: pods Added 3, pods Added 4",
    ]


async def test_in_a_crowded_queue_events_join_a_run_further_ahead_in_their_own_order(
    op: engine.Operator,
) -> None:
    """Both hooks get all events, and the queue stays short."""
    bound = [op.hook(f"{name}.sh", {"kubernetes": [pods(name)]}) for name in "ab"]
    await op.start()
    bound[0].hold()
    await put(op, "first")
    numbers = [f"{number:03}" for number in range(100)]
    for number in numbers:
        op.server.put(api_server.an_object("Pod", number))
        await asyncio.sleep(0)
    await clocks.settle()
    queue = op.parts.engine.queues[0]
    assert len(queue.pending) <= hook_tasks.CROWDED + 1
    for hook in bound:
        hook.runs.clear()
    await bound[0].release()
    for hook in bound:
        told = [each["object"]["metadata"]["name"] for run in hook.runs for each in run.contexts]
        assert [name for name in told if name != "first"] == numbers


async def test_a_failed_run_keeps_its_events_takes_what_came_and_sees_new_snapshots(
    op: engine.Operator,
) -> None:
    hook = await started(op, pods(includeSnapshotsFrom=["pods"]))
    hook.runs.clear()
    hook.fails = 1
    await put(op, "a")
    await put(op, "b")
    await op.advance(30)
    assert op.told == ["a.sh: pods Added a", "a.sh: pods Added a, pods Added b"]
    seen = [[len(each["snapshots"]["pods"]) for each in run.contexts] for run in hook.runs]
    assert seen == [[1], [2, 2]], "all contexts of a run see the same"


async def test_each_context_has_the_snapshots_that_its_binding_asks_for(op: engine.Operator) -> None:
    both = pods(includeSnapshotsFrom=["pods", "nodes"]), pods("nodes", includeSnapshotsFrom=["pods"])
    hook = await started(op, *both)
    await put(op, "a")
    assert [sorted(each["snapshots"]) for each in hook.runs[-1].contexts] == [["nodes", "pods"], ["pods"]]


async def test_contexts_of_one_group_collapse_into_the_last_and_others_keep_their_places(
    op: engine.Operator,
) -> None:
    maps = {"nameSelector": {"matchNames": ["x"]}}
    hook = await started(
        op,
        pods(group="all"),
        pods("nodes", "Node", group="all"),
        pods("other", "ConfigMap", namespace=maps),
        schedule=[{"name": "tick", "crontab": "* * * * *", "group": "all"}],
    )
    hook.hold()
    await put(op, "a")
    op.server.put(api_server.an_object("Node", "n", None))
    await put(op, "b")
    op.server.put(api_server.an_object("ConfigMap", "c", "x"))
    await put(op, "d")
    await op.advance(60)
    await hook.release()
    assert op.told == ["a.sh: pods Group", "a.sh: pods Group, other Added c, tick Group"]
    group = hook.runs[-1].contexts[-1]
    assert (group["type"], group["groupName"]) == ("Group", "all")
    names = {
        name: [each["object"]["metadata"]["name"] for each in found]
        for name, found in group["snapshots"].items()
    }
    assert names == {"pods": ["a", "b", "d"], "nodes": ["n"]}


async def test_two_bindings_without_names_keep_their_own_objects(op: engine.Operator) -> None:
    await put(op, "p")
    op.server.put(api_server.an_object("Node", "x", None))
    op.hook("a.sh", {"kubernetes": [{"kind": "Pod"}, {"kind": "Node"}]})
    await op.start()
    assert op.told == ["a.sh: kubernetes Synchronization p, kubernetes Synchronization x"]


async def test_a_hook_with_bindings_in_two_queues_never_runs_twice_at_once(op: engine.Operator) -> None:
    hook = await started(op, pods(), pods("slow", queue="slow"))
    hook.hold()
    await put(op, "a")
    (first,) = op.told
    assert [len(queue.tasks) for queue in op.parts.engine.queues] == [1, 1]
    await hook.release()
    assert {first, *op.told} == {"a.sh: pods Added a", "a.sh: slow Added a"}


async def test_a_hook_without_config_version_gets_events_alone_in_the_old_form(op: engine.Operator) -> None:
    await put(op, "before")
    config = {
        "configVersion": None,
        "onKubernetesEvent": [{"kind": "Pod", "event": ["add"]}],
        "schedule": [{"crontab": "* * * * *"}],
    }
    hook = op.hook("a.sh", config)
    await op.start()
    await put(op, "a", "a")
    await op.advance(60)
    assert [run.contexts for run in hook.runs] == [
        [
            {
                "binding": "onKubernetesEvent",
                "resourceEvent": "add",
                "resourceNamespace": "addons",
                "resourceKind": "Pod",
                "resourceName": "a",
            }
        ],
        [{"binding": "schedule"}],
    ]


# How often.


LIMITED = {"executionMinInterval": "3s"}


async def test_a_limited_hook_waits_gets_all_that_came_meanwhile_and_holds_up_no_other(
    op: engine.Operator,
) -> None:
    op.hook("a.sh", {"kubernetes": [pods()], "settings": LIMITED})
    op.hook(
        "b.sh", {"kubernetes": [pods("maps", "ConfigMap", namespace={"nameSelector": {"matchNames": ["x"]}})]}
    )
    await op.start()
    await op.advance(5)
    assert len(op.told) == 2
    for name in "abc":
        await put(op, name)
    op.server.put(api_server.an_object("ConfigMap", "d", "x"))
    await clocks.settle()
    assert op.told == ["a.sh: pods Added a", "b.sh: maps Added d"]
    await op.clock.advance(2.9)
    assert op.told == []
    await op.clock.advance(0.2)
    assert op.told == ["a.sh: pods Added b, pods Added c"]
    assert op.heard.failures == []


async def test_a_burst_of_runs_is_allowed_and_refilled_one_by_one(op: engine.Operator) -> None:
    await started(op, settings={**LIMITED, "executionBurst": 2})
    await op.advance(30)
    for name in "abcd":
        await put(op, name)
    assert op.told == ["a.sh: pods Added a", "a.sh: pods Added b"]
    await op.advance(3)
    assert op.told == ["a.sh: pods Added c, pods Added d"]
    await put(op, "e")
    assert op.told == []
    await op.advance(9)
    for name in "fgh":
        await put(op, name)
    assert op.told == ["a.sh: pods Added e", "a.sh: pods Added f", "a.sh: pods Added g"]


async def test_a_synchronization_does_not_wait_and_counts(op: engine.Operator) -> None:
    await started(op, pods(resynchronizationPeriod="1m"), settings={"executionMinInterval": "50s"})
    await put(op, "a")
    assert op.told == []
    await op.advance(55)
    assert op.told == ["a.sh: pods Added a"]
    await op.advance(6)
    assert op.told == ["a.sh: pods Synchronization a"]


async def test_a_limit_is_that_of_the_hook_as_it_is_enabled_anew(op: engine.Operator) -> None:
    await started(op, settings={"executionMinInterval": "1h"})
    await op.edit(webEnabled="false")
    await op.edit(webEnabled="true")
    assert op.told == ["a.sh: pods Synchronization"]


async def test_a_binding_synchronizes_again_at_its_period_and_events_go_on(op: engine.Operator) -> None:
    hook = await started(op, pods(resynchronizationPeriod="1m"))
    await put(op, "a")
    assert op.told == ["a.sh: pods Added a"]
    await op.advance(60)
    assert op.told == ["a.sh: pods Synchronization a"]
    hook.hold()
    await put(op, "b")
    await op.advance(180)
    await hook.release()
    assert op.told == ["a.sh: pods Added b", "a.sh: pods Synchronization a b"], "three periods make one"
    hook.hold()
    await op.advance(60)
    await put(op, "c")
    await hook.release()
    assert op.told == ["a.sh: pods Synchronization a b", "a.sh: pods Added c"]


# What changed values.


@pytest.mark.parametrize("changes", [True, False], ids=["values", "nothing"])
async def test_values_that_change_on_an_event_make_the_module_run(op: engine.Operator, changes: bool) -> None:
    hook = await started(op)
    hook.act = (lambda run: run.set_values(web={"size": len(run.contexts)})) if changes else None
    await put(op, "a")
    assert op.helm.changes == ["upgrade web"] * (2 if changes else 1)
    await put(op, "b")
    assert op.helm.changes == ["upgrade web"] * (2 if changes else 1), "the same values again"


async def test_values_that_a_synchronization_changes_are_those_of_the_run_that_it_is_part_of(
    op: engine.Operator,
) -> None:
    op.hook("web/a.sh", {"kubernetes": [pods()]}, lambda run: run.set_values(web={"size": 3}))
    await op.start()
    assert op.helm.changes == ["upgrade web"]
    assert op.helm.content("web", 1)["config"]["web"] == {"size": 3}


# Modules that come and go.


async def test_a_module_that_is_disabled_gets_no_events_and_its_watches_and_queues_end(
    op: engine.Operator,
) -> None:
    config = {
        "kubernetes": [pods(queue="slow", resynchronizationPeriod="10s")],
        "schedule": [{"crontab": "* * * * *", "queue": "ticks"}],
    }
    hook = op.hook("web/a.sh", config)
    await op.start()
    await op.advance(60)
    assert [queue.name for queue in op.parts.engine.queues] == ["main", "slow", "ticks"]
    hook.fails = 100
    await put(op, "a")
    assert op.told
    await op.edit(webEnabled="false")
    await put(op, "b")
    await op.advance(120)
    assert op.told == []
    assert [queue.name for queue in op.parts.engine.queues] == ["main"]
    assert [each.binding.name for each in op.heard.of(binding_events.BindingGone)] == ["pods"]
    assert [watch for watch in op.parts.cluster.watches.watches if "pods" in watch] == []


async def test_a_module_that_is_being_removed_gets_no_events_and_keeps_its_snapshots(
    op: engine.Operator,
) -> None:
    hook = await started(op, beforeDeleteHelm=1, afterDeleteHelm=1)
    hook.hold()
    await op.edit(webEnabled="false")
    await put(op, "a")
    await hook.release()
    assert op.told == ["a.sh: beforeDeleteHelm", "a.sh: afterDeleteHelm"]
    seen = [len(run.contexts[0]["snapshots"]["pods"]) for run in hook.runs[-2:]]
    assert seen == [0, 1]


async def test_a_module_that_is_enabled_again_gets_synchronizations_and_ticks_anew(
    op: engine.Operator,
) -> None:
    await started(op, schedule=[{"crontab": "* * * * *"}])
    await op.edit(webEnabled="false")
    await put(op, "a")
    await op.edit(webEnabled="true")
    assert op.told == ["a.sh: pods Synchronization a"]
    await op.advance(60)
    assert op.told == ["a.sh: schedule Schedule"]
    await put(op, "b")
    assert op.told == ["a.sh: pods Added b"]


async def test_a_queue_stays_as_long_as_another_module_uses_it(op: engine.Operator) -> None:
    for module in ("web", "db"):
        op.hook(f"{module}/a.sh", {"kubernetes": [pods(queue="slow")]})
    await op.start()
    for key, left in (("webEnabled", ["main", "slow"]), ("dbEnabled", ["main"])):
        await op.edit(**{key: "false"})
        assert [queue.name for queue in op.parts.engine.queues] == left


async def test_a_module_that_is_disabled_while_its_objects_are_listed_is_not_waited_for(
    op: engine.Operator,
) -> None:
    held(op, "pods")
    op.hook("web/a.sh", {"kubernetes": [pods()]})
    await op.start()
    assert op.statuses == {"web": "Running"}
    await op.edit(webEnabled="false")
    assert op.statuses == {"web": "Disabled"}
    assert op.told == []
