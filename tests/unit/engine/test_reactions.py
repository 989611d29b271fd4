"""What an edit, a hook that changes values, a wish for a run, and a chart that arrives lead to."""

import pytest

from addon_operator.engine import events, intents
from addon_operator.kernel import names
from tests.support import api_server, clocks, engine, hooks, modules

EVERYTHING = ["all.sh: beforeAll", "scripted.sh: beforeHelm", "web.sh: beforeHelm", "all.sh: afterAll"]
POD = {"kind": "Pod", "executeHookOnSynchronization": False}


async def started(op: engine.Operator, **more: object) -> dict[str, hooks.Hook]:
    """An operator with a module, one with an ``enabled`` script, and a disabled one."""
    made = {
        name: op.hook(f"{name}/{name}.sh", {"beforeHelm": 1, **more}) for name in ("web", "scripted", "off")
    }
    op.modules.add("off", {"values.yaml": "offEnabled: false\n"})
    op.enabled_script("scripted", lambda _: True)
    made["all"] = op.hook("all.sh", {"beforeAll": 1, "afterAll": 1, **more})
    await op.start()
    op.story  # noqa: B018 - forgets the start
    return made


def told(op: engine.Operator) -> list[str]:
    """Runs of hooks; modules of one number run side by side, in any order."""
    found = op.told
    middle = slice(1, -1) if found[:1] == EVERYTHING[:1] else slice(None)
    found[middle] = sorted(found[middle])
    return found


@pytest.mark.parametrize(
    ("sections", "follows"),
    [
        ({"global": {"size": 1}}, EVERYTHING),
        ({"offEnabled": "true"}, [EVERYTHING[0], "off.sh: beforeHelm", *EVERYTHING[1:]]),
        ({"scripted": {"size": 1}}, EVERYTHING),
        ({"scripted": {"size": 1}, "web": {"size": 1}}, EVERYTHING),
        ({"web": {"size": 1}}, ["web.sh: beforeHelm"]),
        ({"webMaintenance": "NoResourceReconciliation"}, ["web.sh: beforeHelm"]),
        ({"off": {"size": 1}}, []),
        ({"web": {}}, []),
    ],
    ids=[
        "global values",
        "an Enabled flag",
        "a section that an enabled script sees",
        "sections with and without a script",
        "one section",
        "maintenance",
        "a section of a disabled module",
        "nothing",
    ],
)
async def test_an_edit_leads_to_what_sees_it(
    op: engine.Operator, sections: dict[str, object], follows: list[str]
) -> None:
    await started(op)
    await op.edit(**sections)
    assert told(op) == follows


async def test_an_edit_before_the_first_converge_needs_none_of_its_own(op: engine.Operator) -> None:
    first = op.hook("first.sh", {"onStartup": 1})
    first.hold()
    await started(op)
    await op.edit(**{"global": {"size": 1}})
    assert told(op) == []
    await first.release()
    assert told(op) == EVERYTHING


async def test_an_edit_lets_what_failed_be_tried_at_once(op: engine.Operator) -> None:
    op.hook("first.sh", {"onStartup": 1}).fails = 1
    await started(op)
    await op.edit(**{"global": {"size": 1}})
    assert op.told[:2] == ["first.sh: onStartup", "all.sh: beforeAll"]


@pytest.mark.parametrize(
    ("owner", "follows"),
    [("all", EVERYTHING), ("web", ["web.sh: beforeHelm"]), ("scripted", EVERYTHING)],
    ids=["global", "of a module", "of a module with an enabled script"],
)
async def test_values_that_a_hook_changes_on_an_event_lead_to_what_sees_them(
    op: engine.Operator, owner: str, follows: list[str]
) -> None:
    made = await started(op, kubernetes=[POD])
    section = "global" if owner == "all" else owner

    def act(run: hooks.Run) -> None:
        if run.contexts[0]["binding"] == "kubernetes":
            run.patch_values({"op": "add", "path": f"/{section}/size", "value": 1})

    made[owner].act = act
    op.server.put(api_server.an_object("Pod", "a"))
    await clocks.settle()
    after = [line for line in told(op) if "kubernetes" not in line]
    assert sorted(after) == sorted(follows)


# Wishes for one run.


async def test_a_run_that_is_wanted_at_once_does_not_wait_for_the_next_try(op: engine.Operator) -> None:
    made = await started(op)
    made["web"].fails = 100
    await op.run("web")
    await op.run("web")
    assert told(op) == ["web.sh: beforeHelm"]
    await op.run("web", at_once=True)
    assert told(op) == ["web.sh: beforeHelm"]


@pytest.mark.parametrize("at_once", [False, True], ids=["soon", "at once"])
async def test_a_run_wanted_of_a_module_that_is_disabled_or_gone_does_nothing(
    op: engine.Operator, at_once: bool
) -> None:
    await started(op)
    for name in ("off", "gone"):
        await op.run(name, at_once=at_once)
    assert told(op) == []
    assert op.heard.of(events.PartFailed) == []


async def test_a_run_that_failed_for_a_late_chart_is_tried_when_its_pull_has_ended(
    op: engine.Operator,
) -> None:
    made = await started(op)
    made["web"].fails = 1
    await op.run("web")
    for name in ("off", "scripted"):
        await op.intend(intents.ChartPulled(names.ModuleName(name)))
    assert told(op) == ["web.sh: beforeHelm"]
    for _ in range(2):
        await op.intend(intents.ChartPulled(names.ModuleName("web")))
    assert told(op) == ["web.sh: beforeHelm"]
    assert op.module("web").status == "Ready"


async def test_a_defect_at_one_intent_is_shown_and_holds_up_no_other(op: engine.Operator) -> None:
    await started(op)
    states = op.graph.states
    # Something that nobody thought of: a module is enabled that is not there.
    states.enabled = (*states.enabled, names.ModuleName("late"))
    op.graph.inbox.put_nowait(intents.RunWanted(names.ModuleName("late"), "x"))
    await op.run("web")
    assert told(op) == ["web.sh: beforeHelm"]
    [failed] = op.heard.of(events.PartFailed)
    assert (failed.part, type(failed.error)) == ("reactions", KeyError)
    assert states.refusals[0].startswith("the reaction to RunWanted late failed because of a defect")
    states.replace([*states.modules, modules.model_of("late", 10)])
    await op.advance(failed.delay)
    assert states.refusals == []


async def test_a_drain_begins_nothing_more_in_any_queue(op: engine.Operator) -> None:
    made = await started(op, kubernetes=[{**POD, "queue": "slow"}])
    made["all"].hold()
    op.server.put(api_server.an_object("Pod", "a"))
    await clocks.settle()
    told(op)
    await op.parts.engine.drain(0)
    op.server.put(api_server.an_object("Pod", "b"))
    await op.edit(**{"global": {"size": 1}})
    await made["all"].release()
    assert told(op) == []
