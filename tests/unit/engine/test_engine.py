"""The start of the engine, and what follows from what its sources want of it."""

import pathlib

import pytest

from addon_operator.engine import events, intents
from addon_operator.kernel.names import ModuleName
from addon_operator.modules import model
from tests.support import api_server, clocks, engine, hooks

WEB, OFF, LATE = map(ModuleName, ("web", "off", "late"))
PODS = {"name": "pods", "kind": "Pod"}
AROUND = {"beforeAll": 1, "afterAll": 1}
CONVERGE = ["all.sh: beforeAll", "upgrade web", "all.sh: afterAll"]
"""Without a change Helm is not called."""
ALL = [CONVERGE[0], CONVERGE[-1]]


async def started(op: engine.Operator, *more: str) -> hooks.Hook:
    """A module, others, and a global hook around all of them, after the first converge."""
    hook = op.hook("all.sh", AROUND)
    for name in ("web", *more):
        op.modules.add(name, enabled=name != OFF)
    await op.start()
    op.story  # noqa: B018 - forgets the start
    return hook


async def put(op: engine.Operator, name: str, kind: str = "Pod") -> None:
    op.server.put(api_server.an_object(kind, name))
    await clocks.settle()


async def test_global_hooks_synchronize_between_start_up_and_the_first_converge(op: engine.Operator) -> None:
    op.modules.add("web")
    op.hook("all.sh", {"onStartup": 1, "kubernetes": [PODS], **AROUND})
    last = op.hook("b.sh", {"kubernetes": [PODS]})
    last.hold()
    await op.start()
    assert op.story == ["all.sh: onStartup", "all.sh: pods Synchronization", "b.sh: pods Synchronization"]
    await last.release()
    assert op.story == CONVERGE


async def test_an_edit_lets_what_failed_be_tried_at_once(op: engine.Operator) -> None:
    op.modules.add("web")
    op.hook("all.sh", {"onStartup": 1, **AROUND}).fails = 1
    await op.start()
    assert op.story == ["all.sh: onStartup"]
    await op.edit(web={"size": 2})
    assert op.story == ["all.sh: onStartup", *CONVERGE]


@pytest.mark.parametrize(
    ("others", "now"),
    [
        ((intents.RunWanted(WEB, "x"),), intents.RunWanted(WEB, "x", at_once=True)),
        ((intents.ChartPulled(OFF), intents.ChartPulled(LATE)), intents.ChartPulled(WEB)),
    ],
    ids=["it is wanted at once", "a late chart is there"],
)
async def test_the_next_try_of_a_run_is_only_hastened_for_it(
    op: engine.Operator, others: tuple[intents.Intent, ...], now: intents.Intent
) -> None:
    hook = op.hook("web/a.sh", {"beforeHelm": 1})
    await started(op, "off", "late")
    hook.fails = 2
    await op.want(intents.RunWanted(WEB, "x"))
    assert op.story == ["a.sh: beforeHelm"]
    await op.want(*others)
    assert op.story == []
    await op.want(now)
    assert op.story == ["a.sh: beforeHelm"]


async def test_what_need_not_be_waited_for_or_is_not_there_does_not_hold_up_the_first_converge(
    op: engine.Operator,
) -> None:
    op.modules.add("web")
    free = op.hook("a.sh", {"kubernetes": [{**PODS, "queue": "slow", "waitForSynchronization": False}]})
    op.hook("b.sh", {"kubernetes": [{"name": "shops", "kind": "Shop"}]})
    free.hold()
    await op.start()
    assert sorted(op.story) == ["a.sh: pods Synchronization", "upgrade web"]
    op.server.serve("Shop", "example.com/v1")
    await op.advance(60)
    assert op.told == ["b.sh: shops Synchronization"]


async def test_schedules_tick_although_a_failing_module_keeps_the_first_converge_from_its_end(
    op: engine.Operator,
) -> None:
    op.hook("a.sh", {"schedule": [{"name": "tick", "crontab": "* * * * *"}]})
    op.hook("web/b.sh", {"beforeHelm": 1}).fails = 100
    await op.start()
    await op.advance(121)
    assert not op.parts.engine.converger.first_done.is_set()
    assert "a.sh: tick Schedule" in op.told


@pytest.mark.parametrize("has_script", [True, False], ids=["of a scripted module", "a global one"])
async def test_a_hook_whose_values_may_decide_about_modules_asks_for_a_converge_when_it_changes_them(
    op: engine.Operator, has_script: bool
) -> None:
    section = "web" if has_script else "global"
    if has_script:
        op.enabled_script("web", lambda _: True)
    hook = op.hook("web/a.sh" if has_script else "a.sh", {"kubernetes": [PODS]})
    await started(op)
    hook.act = lambda run: run.set_values(**{section: {"size": 2}})
    await put(op, "x")
    assert op.story == ["a.sh: pods Added x", *CONVERGE]


@pytest.mark.parametrize("at_once", [False, True])
async def test_a_run_wanted_of_a_module_that_is_disabled_or_gone_does_nothing(
    op: engine.Operator, at_once: bool
) -> None:
    removal = op.hook("web/a.sh", {"beforeDeleteHelm": 1})
    await started(op, "off")
    removal.hold()
    await op.edit(webEnabled="false")
    op.story  # noqa: B018 - forgets the converge
    await op.want(*(intents.RunWanted(name, "x", at_once=at_once) for name in (OFF, WEB, ModuleName("gone"))))
    await removal.release()
    assert op.story == ["uninstall web"]
    assert not op.heard.of(events.PartFailed)


async def test_a_defect_at_one_intent_is_shown_and_holds_up_no_other(op: engine.Operator) -> None:
    op.hook("web/a.sh", {"beforeHelm": 1})
    await started(op)
    states = op.graph.states
    # Something that nobody thought of: a module is enabled that is not there.
    states.enabled = (*states.enabled, LATE)
    await op.want(intents.RunWanted(LATE, "x"), intents.RunWanted(WEB, "x"))
    assert op.story == ["a.sh: beforeHelm"]
    [failed] = op.heard.of(events.PartFailed)
    assert (failed.part, type(failed.error)) == ("reactions", KeyError)
    assert states.refusals[0].startswith("the reaction to RunWanted late failed because of a defect")
    states.replace([*states.modules, model.Module(LATE, 1, pathlib.Path("late"))])
    await op.advance(failed.delay)
    assert [event.module for event in op.heard.of(events.ModuleRan)][-1] == LATE
    assert states.refusals == []


async def test_apis_that_came_or_went_make_a_converge(op: engine.Operator) -> None:
    await started(op)
    await op.want(intents.ApisChanged())
    assert op.story == ALL


async def test_what_the_first_converge_waits_for_is_reported_without_values(op: engine.Operator) -> None:
    op.hook("a.sh", {"kubernetes": [{**PODS, "queue": "slow"}]}).fails = 1
    op.modules.add("web")
    op.helm.fail["upgrade web"] = "size: 'huge' is not an integer"
    await op.start()
    [waits] = op.parts.engine.waiting_for()
    assert waits.startswith("hook a.sh failed once: hook a.sh failed with exit code 1")
    await op.advance(6)
    [waits] = op.parts.engine.waiting_for()
    assert waits.startswith("module web failed once: helm install failed with a text that may hold values")


async def test_a_drain_ends_all_queues(op: engine.Operator) -> None:
    op.hook("a.sh", {"kubernetes": [{**PODS, "queue": "slow"}]})
    await started(op)
    await op.parts.engine.drain(5)
    await put(op, "x")
    assert op.story == []
    assert [queue.name for queue in op.parts.engine.queues] == ["main", "slow"]


async def test_a_change_on_disk_runs_its_module_and_a_new_module_is_a_converge(op: engine.Operator) -> None:
    op.settings["watch_modules"], op.helm.writes_objects = "true", True
    op.hook("web/a.sh", {"beforeHelm": 1})
    await started(op)
    op.modules.add("web", {"templates/a.yaml": "a: 1"})
    await op.reread()
    assert op.story == ["a.sh: beforeHelm"]
    op.modules.add("new", order=20)
    await op.reread()
    assert op.story == ["all.sh: beforeAll", "a.sh: beforeHelm", "upgrade new", "all.sh: afterAll"]


async def test_a_change_on_disk_during_a_converge_does_not_keep_it_from_its_end(op: engine.Operator) -> None:
    op.settings["watch_modules"], op.helm.writes_objects = "true", True
    op.helm.fail["upgrade web"] = op.helm.fail["install web"] = "it says no"
    await started(op)
    op.helm.fail.clear()
    op.modules.add("web", {"templates/a.yaml": "a: 1"})
    await op.reread()
    assert op.statuses == {"web": "Ready"}
    assert op.parts.engine.converger.first_done.is_set()


async def test_a_release_whose_directory_is_back_is_not_purged_before_a_discovery_has_seen_it(
    op: engine.Operator,
) -> None:
    op.settings["watch_modules"], op.helm.writes_objects = "true", True
    for name in ("old", "web"):
        op.modules.add(name)
    hook = op.hook("all.sh", {"beforeAll": 1})
    await op.start()
    await op.stop()
    op.modules.remove("old")
    op.helm.fail["uninstall old"] = "it says no"
    await op.start()
    await op.advance(30)
    assert "uninstall old" in op.story
    hook.hold()
    op.modules.add("old")
    await op.reread()
    op.helm.fail.clear()
    await op.advance(60)
    assert op.helm.statuses("old") == {1: "deployed"}


async def test_a_converge_gives_way_as_soon_as_a_module_is_gone(op: engine.Operator) -> None:
    hook = op.hook("web/a.sh", {"beforeHelm": 1})
    op.modules.add("old")
    await op.edit(oldEnabled="false")
    await op.start()
    hook.hold()
    await op.want(intents.ConvergeWanted("test"))
    op.parts.engine.forget(ModuleName("old"))
    await hook.release()
    ended = [(each.activation, each.superseded) for each in op.heard.of(events.ConvergeEnded)]
    assert ended[-2:] == [("test", True), ("ModulesChanged", False)]


async def test_a_change_on_disk_does_not_wait_for_a_discovery_that_fails(op: engine.Operator) -> None:
    op.settings["watch_modules"], op.helm.writes_objects = "true", True
    await started(op)
    op.server.refuse(403, lambda asked: asked.path.endswith("/secrets"), times=100)
    await op.want(intents.ConvergeWanted("test"))
    assert op.heard.of(events.DiscoveryFailed)
    op.modules.add("new")
    await op.reread()
    assert "new" in op.statuses
    op.server.accept()
    await op.advance(40)
    assert op.statuses == {"web": "Ready", "new": "Ready"}
