"""How a converge goes through its steps, waits for failing modules, and gives way to a newer intent."""

import asyncio
from collections.abc import Sequence

import pytest

from addon_operator.engine import events
from addon_operator.engine.converge import converge
from addon_operator.engine.state import ConvergeState
from tests.support import api_server, clocks, engine, hooks

STEPS = {"beforeAll": 1, "afterAll": 1}


def module(
    op: engine.Operator, name: str, order: int = 10, requires: Sequence[str] = (), **config: object
) -> hooks.Hook:
    """A module with a chart, and a hook that shows its runs."""
    needs = f"requires: {{modules: [{', '.join(requires)}]}}\n" if requires else ""
    op.modules.add(name, {"module.yaml": needs} if needs else None, order=order)
    return op.hook(f"{name}/{name}.sh", {"beforeHelm": 1, **config})


def runs(op: engine.Operator) -> list[str]:
    """Modules that were run, in their order; forgets it."""
    return [line.partition(".sh: ")[0] for line in op.story if line.endswith(".sh: beforeHelm")]


def ended(op: engine.Operator) -> list[tuple[str, bool]]:
    """Activation of each converge, and whether a newer intent superseded it."""
    return [(event.activation, event.superseded) for event in op.heard.of(events.ConvergeEnded)]


# The steps.


async def test_the_steps_come_in_the_documented_order(op: engine.Operator) -> None:
    for name in ("gone", "old"):
        op.modules.add(name)
    await op.start()
    await op.stop()
    op.modules.remove("gone")
    op.modules.add("old", {"values.yaml": "oldEnabled: false\n"})
    op.hook("all.sh", {"onStartup": 1, "kubernetes": [{"name": "pods", "kind": "Pod"}], **STEPS})
    module(op, "web", 20)
    module(op, "db", 10)
    op.story  # noqa: B018 - forgets the first operator
    await op.start()
    await op.advance(60)
    assert op.story == [
        "all.sh: onStartup",
        "all.sh: pods Synchronization",
        "all.sh: beforeAll",
        "helm uninstall old",
        "db.sh: beforeHelm",
        "helm upgrade db",
        "web.sh: beforeHelm",
        "helm upgrade web",
        "helm uninstall gone",
        "all.sh: afterAll",
    ]
    assert ended(op)[-1] == ("onStartup", False)


async def test_modules_of_one_number_run_side_by_side_and_the_next_number_waits(op: engine.Operator) -> None:
    first = module(op, "a", 10)
    module(op, "b", 10)
    module(op, "c", 20)
    first.hold()
    await op.start()
    assert sorted(runs(op)) == ["a", "b"]
    await first.release()
    assert runs(op) == ["c"]


async def test_no_more_modules_run_side_by_side_than_the_setting_says(op: engine.Operator) -> None:
    op.settings["modules_parallelism"] = "2"
    held = [module(op, name) for name in "abc"]
    for hook in held:
        hook.hold()
    await op.start()
    assert sorted(runs(op)) == ["a", "b"]
    await held[1].release()
    assert runs(op) == ["c"]


async def test_deletes_come_in_the_reverse_order_one_after_another(op: engine.Operator) -> None:
    held = {name: module(op, name, order, beforeDeleteHelm=1) for name, order in (("a", 10), ("b", 20))}
    await op.start()
    op.story  # noqa: B018 - forgets the start
    held["b"].hold()
    await op.edit(aEnabled="false", bEnabled="false")
    assert op.story == ["b.sh: beforeDeleteHelm"]
    await held["b"].release()
    assert op.story == ["helm uninstall b", "a.sh: beforeDeleteHelm", "helm uninstall a"]


async def test_a_module_begins_after_those_of_its_order_that_it_requires_and_others_do_not_wait(
    op: engine.Operator,
) -> None:
    held = {
        name: module(op, name, order, requires)
        for name, order, requires in [("b", 10, ()), ("z", 10, ()), ("a", 10, ("z",)), ("c", 20, ())]
    }
    held["b"].hold()
    held["z"].hold()
    await op.start()
    assert sorted(runs(op)) == ["b", "z"]
    await held["z"].release()
    await op.advance(2)
    assert runs(op) == ["a"], "as soon as what it requires is healthy"
    await held["b"].release()
    assert runs(op) == ["c"]


# Definitions.


def definition(kind: str) -> dict[str, str]:
    plural = f"{kind.lower()}s"
    return {
        "crds/a.yaml": f"""
            apiVersion: apiextensions.k8s.io/v1
            kind: CustomResourceDefinition
            metadata: {{name: {plural}.example.com}}
            spec:
              group: example.com
              names: {{kind: {kind}, plural: {plural}, singular: {kind.lower()}}}
              scope: Namespaced
              versions:
              - {{name: v1, served: true, storage: true, schema: {{openAPIV3Schema: {{type: object}}}}}}
            """
    }


@pytest.mark.parametrize("on_failure", ["wait", "continue"])
async def test_failing_definitions_hold_their_own_module_only(op: engine.Operator, on_failure: str) -> None:
    op.settings["converge_on_failure"] = on_failure
    module(op, "web", 20)
    module(op, "db", 10)
    op.modules.add("db", definition("Cron"))
    op.server.refuse(500, lambda asked: asked.is_write and "crons.example.com" in asked.path, times=1)
    op.hook("all.sh", STEPS)
    await op.start()
    assert op.story == ["all.sh: beforeAll", "web.sh: beforeHelm", "helm upgrade web", "all.sh: afterAll"]
    waits = on_failure == "wait"
    assert op.converger.is_stalled is waits
    assert op.converger.first_done.is_set() is not waits
    await op.advance(10)
    assert runs(op) == ["db"]
    assert op.server.names("CustomResourceDefinition") == ["crons.example.com"]


# Failures.


async def test_a_failing_module_holds_up_higher_numbers_and_nothing_of_its_own_number(
    op: engine.Operator,
) -> None:
    module(op, "a").fails = 1
    module(op, "b")
    module(op, "c", 20)
    op.hook("all.sh", {"afterAll": 1})
    await op.start()
    assert sorted(runs(op)) == ["a", "b"]
    assert op.converger.state is ConvergeState.RUNNING
    assert op.converger.is_stalled
    await op.advance(10)
    assert op.told == ["a.sh: beforeHelm", "c.sh: beforeHelm", "all.sh: afterAll"]
    assert op.converger.first_done.is_set()
    assert (op.converger.state, op.converger.remaining) == (ConvergeState.IDLE, 0)


async def test_a_failing_module_lets_higher_numbers_go_when_the_setting_says_so(op: engine.Operator) -> None:
    op.settings["converge_on_failure"] = "continue"
    module(op, "a").fails = 1
    module(op, "c", 20)
    await op.start()
    assert runs(op) == ["a", "c"]
    assert op.converger.first_done.is_set()
    await op.advance(10)
    assert runs(op) == ["a"], "and it is tried again"


async def test_a_module_with_a_hook_that_cannot_be_asked_holds_up_nothing_but_itself_and_the_end(
    op: engine.Operator,
) -> None:
    op.modules.add("a", {"hooks/b.sh": "#!/bin/sh\n"})
    module(op, "c", 20)
    op.hook("all.sh", {"afterAll": 1})
    await op.start()
    assert op.told == ["c.sh: beforeHelm", "all.sh: afterAll"]
    assert not op.converger.first_done.is_set()
    op.hook("a/b.sh", {"beforeHelm": 1})
    await op.advance(10)
    assert op.told == ["b.sh: beforeHelm"]
    assert op.converger.first_done.is_set()


@pytest.mark.parametrize("on_failure", ["wait", "continue"])
async def test_what_requires_a_failing_module_waits_and_the_converge_counts_as_stalled(
    op: engine.Operator, on_failure: str
) -> None:
    op.settings["converge_on_failure"] = on_failure
    module(op, "z").fails = 1
    module(op, "a", 10, ("z",))
    module(op, "b")
    module(op, "c", 20, ("a",))
    module(op, "d", 20)
    await op.start()
    waits = on_failure == "wait"
    assert sorted(runs(op)) == (["b", "z"] if waits else ["b", "d", "z"])
    assert op.converger.is_stalled is waits
    assert op.converger.first_done.is_set() is not waits
    await op.advance(30)
    after = runs(op)
    assert after.index("z") < after.index("a") < after.index("c")
    assert op.converger.first_done.is_set()


async def test_a_delete_that_fails_holds_those_of_what_the_module_requires_and_no_runs(
    op: engine.Operator,
) -> None:
    module(op, "z")
    module(op, "a", 10, ("z",))
    module(op, "b")
    op.modules.add("b", {"values.yaml": "bEnabled: false\n"})
    await op.start()
    await op.advance(2)
    op.story  # noqa: B018 - forgets the start
    op.helm.fail["uninstall a"] = "no"
    await op.edit(aEnabled="false", zEnabled="false", bEnabled="true")
    assert op.story == ["helm uninstall a", "b.sh: beforeHelm", "helm upgrade b"]
    del op.helm.fail["uninstall a"]
    await op.advance(30)
    assert op.story == ["helm uninstall a", "helm uninstall z"]


async def test_a_failing_delete_does_not_hold_up_module_runs(op: engine.Operator) -> None:
    module(op, "old")
    module(op, "new")
    op.modules.add("new", {"values.yaml": "newEnabled: false\n"})
    await op.start()
    op.helm.fail["uninstall"] = "no"
    await op.edit(oldEnabled="false", newEnabled="true")
    assert op.statuses == {"old": "Deleting", "new": "Ready"}


async def test_a_failing_discovery_is_tried_again_after_five_seconds(op: engine.Operator) -> None:
    module(op, "web")
    op.server.refuse(403, lambda asked: asked.is_list and asked.path.endswith("/secrets"), times=1)
    await op.start()
    await op.advance(4.9)
    assert op.statuses == {"web": "Disabled"}
    await op.advance(0.2)
    assert op.statuses == {"web": "Ready"}
    assert len(op.heard.of(events.DiscoveryFailed)) == 1


async def test_a_failing_global_hook_is_not_a_stall(op: engine.Operator) -> None:
    module(op, "web")
    op.hook("all.sh", STEPS).fails = 1
    await op.start()
    assert not op.converger.is_stalled
    assert runs(op) == []
    await op.advance(10)
    assert runs(op) == ["web"]


# A newer intent.


async def test_a_newer_intent_drops_what_has_not_begun_and_starts_over(op: engine.Operator) -> None:
    first = module(op, "a")
    module(op, "b", 20)
    op.hook("all.sh", STEPS)
    first.hold()
    await op.start()
    await op.edit(**{"global": {"size": 1}})
    await first.release()
    assert op.told == [
        "all.sh: beforeAll",
        "a.sh: beforeHelm",
        "all.sh: beforeAll",
        "a.sh: beforeHelm",
        "b.sh: beforeHelm",
        "all.sh: afterAll",
    ]
    assert ended(op) == [("onStartup", True), ("ConfigMapChanged", False)]


async def test_a_burst_of_edits_ends_in_one_converge_of_the_last_state(op: engine.Operator) -> None:
    module(op, "a")
    await op.start()
    for size in range(20):
        op.deliver(**{"global": {"size": size}})
    await clocks.settle()
    assert ended(op)[-1] == ("ConfigMapChanged", False)
    assert op.helm.changes == ["upgrade a"] * 2
    assert op.helm.content("a", 2)["config"]["global"]["size"] == 19


async def test_a_failing_module_that_the_newer_intent_disables_is_not_tried_again(
    op: engine.Operator,
) -> None:
    module(op, "a").fails = 100
    op.hook("all.sh", {"afterAll": 1})
    await op.start()
    await op.edit(aEnabled="false")
    await op.advance(100)
    assert op.told == ["a.sh: beforeHelm", "all.sh: afterAll"]
    assert ended(op) == [("onStartup", True), ("ConfigMapChanged", False)]


async def test_a_newer_intent_ends_the_helm_call_of_a_module_that_it_disables(op: engine.Operator) -> None:
    module(op, "a")
    op.helm.gate = asyncio.Event()
    await op.start()
    assert op.helm.running == {"a"}
    await op.edit(aEnabled="false")
    assert op.helm.running == set()


async def test_a_run_wanted_while_its_module_is_disabled_is_dropped(op: engine.Operator) -> None:
    web = module(op, "web")
    all_ = op.hook("all.sh", {"beforeAll": 1})
    await op.start()
    op.story  # noqa: B018 - forgets the start
    all_.hold()
    web.fails = 100
    await op.edit(webEnabled="false")
    await op.run("web")
    await all_.release()
    await op.advance(60)
    assert op.story == ["all.sh: beforeAll", "web.sh: beforeHelm", "helm uninstall web"]


# Hooks that change global values.


def changing(op: engine.Operator, name: str, binding: str, times: int) -> hooks.Hook:
    """A global hook that changes global values that often."""
    left = iter(range(times))

    def act(run: hooks.Run) -> None:
        if (number := next(left, None)) is not None:
            run.patch_values({"op": "add", "path": "/global/changed", "value": number})

    return op.hook(name, {binding: 1}, act)


async def test_global_values_changed_by_after_all_converge_again_before_it_counts_as_done(
    op: engine.Operator,
) -> None:
    changing(op, "all.sh", "afterAll", 1)
    await op.start()
    assert op.told == ["all.sh: afterAll"] * 2
    assert ended(op) == [("onStartup", False), ("AfterAllHooksChangeGlobalValues", False)]
    assert op.converger.first_done.is_set()


async def test_after_all_hooks_that_never_agree_let_converges_follow_with_a_growing_delay(
    op: engine.Operator,
) -> None:
    changing(op, "all.sh", "afterAll", 1000)
    await op.start()
    assert len(op.told) == converge.AT_ONCE + 1
    assert op.converger.state is ConvergeState.IDLE
    (first,) = op.heard.of(events.ConvergeUnsettled)
    await op.advance(first.delay)
    assert len(op.told) == 1
    _, second = op.heard.of(events.ConvergeUnsettled)
    assert [(each.rounds, each.hooks) for each in (first, second)] == [(6, ["all.sh"]), (7, ["all.sh"])]
    assert 5 <= first.delay < second.delay


async def test_another_reason_to_converge_does_not_wait_for_hooks_that_never_agree(
    op: engine.Operator,
) -> None:
    changing(op, "all.sh", "afterAll", converge.AT_ONCE + 1)
    await op.start()
    await op.edit(**{"global": {"size": 1}})
    assert ended(op)[-1] == ("ConfigMapChanged", False)
    await op.advance(60)
    assert ended(op)[-1] == ("ConfigMapChanged", False), "the delayed one is given up"


async def event(op: engine.Operator) -> None:
    """Something that the global hook changes global values for."""
    op.server.put(api_server.an_object("Pod", f"pod-{op.server.version}"))
    await clocks.settle()


async def gave_way(op: engine.Operator) -> hooks.Hook:
    """A converge that has given way to hooks as often as it may, and waits for the module ``a``."""
    first = module(op, "a")
    module(op, "b", 20)

    def act(run: hooks.Run) -> None:
        run.patch_values({"op": "add", "path": "/global/changed", "value": op.server.version})

    op.hook(
        "all.sh",
        {"kubernetes": [{"kind": "Pod", "executeHookOnSynchronization": False, "queue": "events"}]},
        act,
    )
    first.hold()
    await op.start()
    for _ in range(converge.GIVE_WAY):
        await event(op)
        await first.release(hold=True)
    return first


async def test_hooks_that_change_values_all_the_time_let_a_converge_end_now_and_then(
    op: engine.Operator,
) -> None:
    first = await gave_way(op)
    assert "b" not in runs(op)
    await event(op)
    await first.release()
    assert runs(op).count("b") == 2, "one of the converge that went on, one of the one that was put off"
    changed = "GlobalValuesChanged"
    assert ended(op)[-2:] == [(changed, False), (changed, False)]


async def test_an_edit_is_never_put_off(op: engine.Operator) -> None:
    first = await gave_way(op)
    await op.edit(**{"global": {"size": 1}})
    await first.release()
    assert ended(op)[-2:] == [("GlobalValuesChanged", True), ("ConfigMapChanged", False)]


async def test_what_hooks_changed_is_not_put_off_until_a_failing_module_succeeds(op: engine.Operator) -> None:
    first = await gave_way(op)
    first.fails = 1
    await event(op)
    await first.release()
    assert ended(op)[-1][1], "it has not ended yet"
    before = len(ended(op))
    await op.advance(2)
    assert ended(op)[before:] == [("GlobalValuesChanged", True), ("GlobalValuesChanged", False)]


# What is known of it.


async def test_the_state_and_the_number_of_remaining_tasks_are_reported(op: engine.Operator) -> None:
    held = [module(op, name, order) for name, order in (("a", 10), ("b", 10), ("c", 20))]
    for hook in held:
        hook.hold()
    await op.start()
    assert (op.converger.state, op.converger.remaining) == (ConvergeState.RUNNING, 3)
    for hook in held:
        await hook.release()
    assert (op.converger.state, op.converger.remaining) == (ConvergeState.IDLE, 0)
    assert op.statuses == {"a": "Ready", "b": "Ready", "c": "Ready"}


async def test_what_it_waits_for_is_told_without_values(op: engine.Operator) -> None:
    module(op, "web").fails = 100
    op.modules.add("db", {"values.yaml": "dbEnabled: true\ndb: {size: huge}\n"})
    op.modules.add("db", {"openapi/config-values.yaml": "properties: {size: {type: integer}}\n"})
    pods = {"kind": "Pod", "queue": "slow", "waitForSynchronization": False}
    op.hook("a.sh", {"kubernetes": [pods]}).fails = 100
    await op.start()
    assert not [phrase for phrase in op.parts.engine.waiting_for() if "huge" in phrase]
    assert sorted(phrase.partition(":")[0] for phrase in op.parts.engine.waiting_for()) == [
        "hook a.sh failed once",
        "module db failed once",
        "module web failed once",
    ]


async def test_schedules_tick_although_a_failing_module_keeps_the_first_converge_from_its_end(
    op: engine.Operator,
) -> None:
    module(op, "web").fails = 1000
    op.hook("a.sh", {"schedule": [{"name": "tick", "crontab": "* * * * *"}]})
    await op.start()
    await op.advance(90)
    assert "a.sh: tick Schedule" in op.told
