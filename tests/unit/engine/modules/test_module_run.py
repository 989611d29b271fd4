"""Module runs and removals: their steps, what a further try repeats, and what waits for a window."""

import asyncio

import pytest

from addon_operator.engine import events
from addon_operator.kernel import clock
from addon_operator.kube.objects import module_objects
from tests.support import api_server, engine, hooks, programs

REMOVAL = ["a.sh: beforeDeleteHelm", "uninstall web", "a.sh: afterDeleteHelm", "uninstall web"]
"""The second one takes away the record that the hooks after the first one are to come."""


def once(run: hooks.Run, binding: str, failed: list[str]) -> None:
    """Fail at the first run with a binding."""
    if run.contexts[0]["binding"] == binding and not failed:
        failed.append(binding)
        raise programs.ProgramError("it fails once", 3)


async def test_a_first_run_goes_through_start_up_hooks_helm_and_hooks_again(op: engine.Operator) -> None:
    op.hook("web/b.sh", {"onStartup": 1, "beforeHelm": 20})
    op.hook("web/a.sh", {"beforeHelm": 20, "afterHelm": 1})
    op.hook("web/c.sh", {"beforeHelm": -5})
    await op.start()
    before = ["c.sh: beforeHelm", "a.sh: beforeHelm", "b.sh: beforeHelm"]
    assert op.story == ["b.sh: onStartup", *before, "upgrade web", "a.sh: afterHelm"]
    assert op.statuses == {"web": "Ready"}
    await op.edit(web={"size": 2})
    assert op.story == [*before, "upgrade web", "a.sh: afterHelm"], "it does not start up again"


async def test_synchronizations_come_between_start_up_and_helm(op: engine.Operator) -> None:
    op.server.put(api_server.an_object("Pod", "x"))
    hook = op.hook(
        "web/a.sh", {"onStartup": 1, "beforeHelm": 1, "kubernetes": [{"name": "pods", "kind": "Pod"}]}
    )
    await op.start()
    assert op.story == ["a.sh: onStartup", "a.sh: pods Synchronization x", "a.sh: beforeHelm", "upgrade web"]
    assert len(hook.runs[-1].contexts[0]["snapshots"]["pods"]) == 1


async def test_values_that_a_hook_sets_are_seen_by_the_next_hook_and_gone_after_a_removal(
    op: engine.Operator,
) -> None:
    op.hook("web/a.sh", {"onStartup": 1}, lambda run: run.set_values(web={"x": 5}))
    seen = op.hook("web/b.sh", {"beforeHelm": 1, "afterDeleteHelm": 1})
    await op.start()
    assert seen.runs[0].values == {"global": {"enabledModules": ["web"]}, "web": {"x": 5}}
    await op.edit(webEnabled="false")
    op.hook("web/a.sh", {"onStartup": 1})
    await op.edit(webEnabled="true")
    assert seen.told == ["beforeHelm", "afterDeleteHelm", "beforeHelm"]
    assert op.told[-2:] == ["a.sh: onStartup", "b.sh: beforeHelm"], "enabled again, it starts up again"


async def test_values_changed_by_after_helm_run_the_module_again_without_start_up(
    op: engine.Operator,
) -> None:
    op.hook("web/a.sh", {"onStartup": 1, "afterHelm": 1}, lambda run: run.set_values(web={"x": 5}))
    hook = op.hook(
        "web/b.sh", {"afterHelm": 2}, lambda run: run.set_values(web={"y": run.values["web"]["x"]})
    )
    await op.start()
    after = ["upgrade web", "a.sh: afterHelm", "b.sh: afterHelm"]
    assert op.story == ["a.sh: onStartup", *after, *after]
    hook.act = lambda run: run.set_values(web={"y": run.values["web"]["y"] + 1})
    await op.edit(web={"size": 2})
    assert "afterHelm hooks changed the values in 10 runs in a row" in op.module("web").last_error


async def test_values_changed_by_after_helm_before_another_hook_failed_are_not_forgotten(
    op: engine.Operator,
) -> None:
    op.helm.writes_objects = True
    op.hook("web/a.sh", {"afterHelm": 1}, lambda run: run.set_values(web={"x": run.values["web"]["size"]}))
    failing = op.hook("web/b.sh", {"afterHelm": 2})
    await op.edit(web={"size": 1})
    await op.start()
    assert op.helm.content("web", 2)["config"]["web"] == {"size": 1, "x": 1}
    failing.fails = 1
    await op.edit(web={"size": 2})
    await op.advance(6)
    last = max(op.helm.records("web"))
    assert op.helm.content("web", last)["config"]["web"] == {"size": 2, "x": 2}


async def test_a_further_try_repeats_only_the_hooks_that_had_not_succeeded(op: engine.Operator) -> None:
    op.hook("web/a.sh", {"onStartup": 1, "beforeHelm": 1})
    hook = op.hook("web/b.sh", {"onStartup": 2, "beforeHelm": 2})
    hook.fails = 1
    await op.start()
    assert op.story == ["a.sh: onStartup", "b.sh: onStartup"]
    await op.advance(10)
    assert op.story == ["b.sh: onStartup", "a.sh: beforeHelm", "b.sh: beforeHelm", "upgrade web"]
    hook.fails = 1
    await op.edit(web={"size": 2})
    await op.edit(web={"size": 3})
    before = ["a.sh: beforeHelm", "b.sh: beforeHelm"]
    assert op.story == [*before, *before, "upgrade web"], "they have not seen what changed meanwhile"


async def test_a_further_try_after_helm_failed_runs_all_before_helm_hooks_again(op: engine.Operator) -> None:
    """What the check before Helm misses may come with the second or third run of a hook."""
    op.hook("web/a.sh", {"onStartup": 1, "beforeHelm": 1})
    op.hook("web/b.sh", {"beforeHelm": 2, "afterHelm": 1})
    op.helm.fail["upgrade web"] = "it says no"
    await op.start()
    before = ["a.sh: beforeHelm", "b.sh: beforeHelm"]
    assert op.story == ["a.sh: onStartup", *before, "upgrade web"]
    assert (op.statuses, op.heard.of(events.ModuleFailed)) == (
        {"web": "Failed"},
        [events.ModuleFailed(op.module("web").module.name)],
    )
    assert op.module("web").last_error.startswith("helm install failed")
    op.helm.fail.clear()
    await op.advance(10)
    assert op.story == [*before, "install web", "b.sh: afterHelm"]


@pytest.mark.parametrize("is_first", [True, False], ids=["the first run", "a later one"])
async def test_only_a_first_run_that_fails_in_after_helm_starts_up_again(
    op: engine.Operator, is_first: bool
) -> None:
    op.helm.writes_objects = True
    pods = {"name": "pods", "kind": "Pod"}
    op.hook("web/a.sh", {"onStartup": 1, "kubernetes": [pods]})
    hook = op.hook("web/b.sh", {"afterHelm": 1})
    if not is_first:
        await op.start()
    hook.fails = 1
    await (op.start() if is_first else op.edit(web={"size": 2}))
    assert op.told[-1] == "b.sh: afterHelm"
    await op.advance(6)
    start_up = ["a.sh: onStartup", "a.sh: pods Synchronization"] if is_first else []
    assert op.told == [*start_up, "b.sh: afterHelm"]


async def test_a_hook_that_cannot_be_asked_lets_other_modules_go_and_is_asked_again(
    op: engine.Operator,
) -> None:
    hook = op.hook("web/a.sh", {"beforeHlem": 1})
    op.modules.add("zoo", order=20)
    await op.start()
    assert op.statuses == {"web": "Failed", "zoo": "Ready"}
    assert "beforeHelm" in op.module("web").last_error
    assert len(op.heard.of(events.DiscoveryFailed)) == 1
    hook.config = {"configVersion": "v1", "beforeHelm": 1}
    await op.advance(6)
    assert (op.told, op.statuses["web"]) == (["a.sh: beforeHelm"], "Ready")


async def test_a_run_stops_between_two_steps_when_its_module_is_disabled(op: engine.Operator) -> None:
    first = op.hook("web/a.sh", {"onStartup": 1})
    op.hook("web/b.sh", {"beforeHelm": 2})
    first.hold()
    await op.start()
    await op.edit(webEnabled="false")
    await first.release()
    assert op.story == ["a.sh: onStartup"]
    assert op.heard.of(events.ModuleFailed) == []


async def test_a_run_reads_the_records_of_its_release_unless_its_own_converge_has_listed_them(
    op: engine.Operator,
) -> None:
    op.modules.add("web")
    await op.start()
    op.helm.put("web", 2, "deployed")
    await op.edit(web={"size": 2})
    assert max(op.helm.records("web")) == 3


async def test_a_module_without_a_chart_runs_its_hooks_only(op: engine.Operator) -> None:
    op.modules.add("web", chart=False)
    op.hook("web/a.sh", {"beforeHelm": 1, "afterHelm": 2, "beforeDeleteHelm": 1, "afterDeleteHelm": 1})
    await op.start()
    await op.edit(webEnabled="false")
    assert op.story == ["a.sh: beforeHelm", "a.sh: afterHelm", "a.sh: afterDeleteHelm"]


async def test_a_removal_runs_hooks_around_the_uninstall(op: engine.Operator) -> None:
    op.hook("web/a.sh", {"beforeDeleteHelm": 1, "afterDeleteHelm": 1})
    await op.start()
    await op.edit(webEnabled="false")
    assert op.story == ["upgrade web", *REMOVAL]
    assert op.statuses == {"web": "Disabled"}


async def test_a_failing_before_delete_hook_keeps_the_release_and_is_repeated_alone(
    op: engine.Operator,
) -> None:
    op.hook("web/a.sh", {"beforeDeleteHelm": 1})
    op.hook("web/b.sh", {"beforeDeleteHelm": 2}).fails = 1
    await op.start()
    op.helm.fail["uninstall web"] = "it says no"
    await op.edit(webEnabled="false")
    assert op.story == ["upgrade web", "a.sh: beforeDeleteHelm", "b.sh: beforeDeleteHelm"]
    assert [event.deleting for event in op.heard.of(events.ModuleFailed)] == [True]
    await op.advance(10)
    assert op.story == ["b.sh: beforeDeleteHelm", "uninstall web"]
    op.helm.fail.clear()
    await op.advance(30)
    assert op.story == ["uninstall web"]


async def test_a_removal_that_failed_is_not_tried_again_by_the_edit_that_enables_its_module(
    op: engine.Operator,
) -> None:
    hook = op.hook("web/a.sh", {"beforeDeleteHelm": 1})
    await op.start()
    hook.fails = 1
    await op.edit(webEnabled="false")
    assert op.told == ["a.sh: beforeDeleteHelm"]
    await op.edit(webEnabled="true")
    assert (hook.told, op.helm.statuses("web")) == (["beforeDeleteHelm"], {1: "deployed"})
    assert op.statuses == {"web": "Ready"}


async def test_a_removal_is_noted_as_unfinished_until_the_hooks_after_it_succeeded(
    op: engine.Operator,
) -> None:
    op.modules.add("plain")
    hook = op.hook("web/a.sh", {"beforeDeleteHelm": 1, "afterDeleteHelm": 1})
    failed: list[str] = []
    hook.act = lambda run: once(run, "afterDeleteHelm", failed)
    await op.start()
    await op.edit(webEnabled="false", plainEnabled="false")
    assert (op.helm.statuses("web"), op.helm.statuses("plain")) == ({1: "uninstalled"}, {})
    assert "a.sh: beforeDeleteHelm" in op.told
    await op.stop()
    await op.start()
    assert op.story == ["a.sh: afterDeleteHelm", "uninstall web"], "what comes before the removal is over"
    assert op.helm.statuses("web") == {}


async def test_a_removal_that_ends_while_a_converge_plans_it_once_more_is_not_repeated(
    op: engine.Operator,
) -> None:
    hook = op.hook("web/a.sh", {"beforeDeleteHelm": 1, "afterDeleteHelm": 1})
    gate = asyncio.Event()
    gate.set()

    async def decide(_: object) -> bool:
        await gate.wait()
        return True

    op.enabled_script("zoo", decide)
    op.modules.add("api")
    await op.start()
    hook.hold()
    await op.edit(webEnabled="false")
    gate.clear()
    await op.edit(apiEnabled="false")
    await hook.release()
    assert op.statuses["web"] == "Disabled"
    gate.set()
    await op.advance(1)
    assert hook.told == ["beforeDeleteHelm", "afterDeleteHelm"]
    assert op.statuses == {"api": "Disabled", "web": "Disabled", "zoo": "Ready"}


async def test_a_removal_that_gives_way_is_no_failure_and_the_module_starts_up_again(
    op: engine.Operator,
) -> None:
    hook = op.hook("web/a.sh", {"onStartup": 1, "beforeDeleteHelm": 1})
    await op.start()
    hook.hold()
    await op.edit(webEnabled="false")
    await op.edit(webEnabled="true")
    tasks = (await op.parts.answers.views.main_queue())["tasks"]
    assert "waits for its removal to end" in [task["state"] for task in tasks]
    await hook.release()
    assert op.told == ["a.sh: onStartup", "a.sh: beforeDeleteHelm", "a.sh: onStartup"]
    assert op.heard.of(events.ModuleFailed) == []
    assert op.statuses == {"web": "Ready"}


@pytest.mark.parametrize("changes", [True, False], ids=["its configuration", "its text"])
async def test_only_hooks_whose_configuration_changed_on_disk_start_their_module_up_again(
    op: engine.Operator, changes: bool
) -> None:
    op.settings["watch_modules"], op.helm.writes_objects = "true", True
    hook = op.hook("web/a.sh", {"onStartup": 1, "beforeHelm": 1})
    await op.start()
    hook.config = {**hook.config, "beforeHelm": 2 if changes else 1}
    await change_hook(op, "true")
    again = ["a.sh: onStartup"] if changes else []
    assert op.told == ["a.sh: onStartup", "a.sh: beforeHelm", *again, "a.sh: beforeHelm"]
    hook.config = {"nonsense": True}
    await change_hook(op, "false")
    await op.edit(web={"size": 2})
    assert op.told[-1] == "a.sh: beforeHelm", "it stays as it was"


async def change_hook(op: engine.Operator, text: str) -> None:
    op.modules.add("web", {"hooks/a.sh": f"#!/bin/sh\n{text}\n"})
    await op.reread()


async def test_a_module_whose_files_are_wrong_fails_before_anything_of_it_runs(op: engine.Operator) -> None:
    op.hook("web/a.sh", {"beforeHelm": 1})
    op.modules.add("web", {"module.yaml": "namspace: x\n"})
    await op.start()
    assert (op.story, op.statuses) == ([], {"web": "Failed"})
    assert "namspace" in op.module("web").last_error


async def test_a_module_without_a_verdict_fails_as_its_script_did_until_that_answers(
    op: engine.Operator,
) -> None:
    asked: list[str] = []

    def decide(_: object) -> bool:
        asked.append("web")
        if len(asked) < 3:
            raise programs.ProgramError("it cannot say")
        return True

    op.enabled_script("web", decide)
    op.modules.add("zoo", order=20)
    await op.start()
    assert op.statuses == {"web": "Failed", "zoo": "Ready"}, "nobody waits for it"
    assert "its enabled script failed" in op.module("web").last_error
    assert asked == ["web"], "not again what the discovery has asked just now"
    await op.advance(6)
    assert (op.statuses["web"], asked) == ("Failed", ["web"] * 2)
    await op.advance(11)
    assert (op.statuses["web"], asked[:3]) == ("Ready", ["web"] * 3)


async def test_a_script_that_hangs_holds_nobody_else_and_its_late_verdict_counts(op: engine.Operator) -> None:
    asked: list[asyncio.Event] = []

    async def decide(_: object) -> bool:
        asked.append(asyncio.Event())
        await asked[-1].wait()
        return True

    op.settings["drift_mode"] = "ignore"
    op.enabled_script("web", decide)
    op.modules.add("zoo", order=20)
    op.modules.add("api")
    await op.start()
    assert op.statuses["api"] == "Disabled"
    await op.advance(4)
    assert op.statuses == {"api": "Ready", "web": "Failed", "zoo": "Ready"}, "nobody waits for it"
    assert "its enabled script has been running since" in op.module("web").last_error
    assert op.module("web").is_off, "it has no release"
    await op.edit(zoo={"size": 2})
    assert op.helm.changes[-1] == "upgrade zoo"
    assert len(asked) == 1, "the one that runs is waited for"
    asked[0].set()
    await op.advance(1)
    assert (op.statuses["web"], len(asked)) == ("Ready", 1)
    await op.edit(web={"size": 3})
    await op.advance(4)
    assert (op.statuses["web"], op.module("web").is_off) == ("Failed", False)
    await op.edit(web={"size": 4})
    await op.advance(4)
    assert len(asked) == 3, "what sees older values is ended"
    asked[2].set()
    await op.advance(1)
    assert op.statuses["web"] == "Ready"


HOUR = 3600.0
NIGHTS = '[{"schedule": "0 22 * * *", "duration": "4h"}]'


async def windowed(op: engine.Operator, *others: str) -> None:
    """Modules whose releases are there, at noon: they may change from 22 o'clock on."""
    op.settings["windows"] = NIGHTS
    op.server.serve("Module", module_objects.API_VERSION)
    op.helm.writes_objects = True
    op.clock.now = 23 * HOUR
    op.modules.add("web")
    for name in others:
        op.modules.add(name, {"module.yaml": "requires: {modules: [web]}\n"})
    await op.start()
    await op.clock.advance(13 * HOUR)
    op.story  # noqa: B018 - forgets the start


async def test_an_upgrade_waits_for_a_window_its_hooks_do_not_and_the_run_succeeds(
    op: engine.Operator,
) -> None:
    op.hook("web/a.sh", {"beforeHelm": 1, "afterHelm": 1})
    await windowed(op)
    await op.edit(web={"size": 2})
    assert op.story == ["a.sh: beforeHelm", "a.sh: afterHelm"]
    held = op.module("web").held_back
    assert held is not None
    assert held.until == 46 * HOUR
    assert op.statuses == {"web": "Ready"}
    await op.clock.advance(10 * HOUR)
    assert "upgrade web" in op.story


async def test_a_run_on_top_of_a_failed_revision_that_waits_is_no_success_and_not_tried_again(
    op: engine.Operator,
) -> None:
    await windowed(op)
    op.helm.put("web", 2, "failed")
    await op.edit(web={"size": 2})
    assert op.statuses == {"web": "Failed"}
    assert op.module("web").last_error.startswith(
        "the last revision failed; waits for a window, which opens at"
    )
    assert op.story == []


async def test_a_removal_waits_with_its_hooks_for_its_window(op: engine.Operator) -> None:
    op.hook("web/a.sh", {"beforeDeleteHelm": 1, "afterDeleteHelm": 1})
    await windowed(op)
    await op.edit(webEnabled="false")
    assert (op.story, op.statuses) == ([], {"web": "Deleting"})
    held = op.module("web").held_back
    assert held is not None
    assert held.what.startswith("removal of the release: the module is disabled: ")
    assert clock.rfc3339(46 * HOUR) in str(held)
    await op.clock.advance(10 * HOUR)
    assert op.story == REMOVAL
    assert op.statuses == {"web": "Disabled"}


async def test_a_removal_that_somebody_wants_past_its_window_begins(op: engine.Operator) -> None:
    await windowed(op)
    await op.edit(webEnabled="false")
    assert op.story == []
    await annotate(op, "web", now="1")
    assert op.story == ["uninstall web"]


async def test_removals_that_go_together_wait_together(op: engine.Operator) -> None:
    await windowed(op, "top")
    await op.edit(webEnabled="false", topEnabled="false")
    assert op.statuses == {"web": "Deleting", "top": "Deleting"}
    await op.clock.advance(10 * HOUR)
    assert op.story == ["uninstall top", "uninstall web"]


async def test_a_removal_that_nobody_has_confirmed_holds_those_that_go_with_it(op: engine.Operator) -> None:
    op.modules.add("web", {"module.yaml": "removal: {confirm: true}\n"})
    await windowed(op, "top")
    await op.clock.advance(11 * HOUR)
    await op.edit(webEnabled="false", topEnabled="false")
    for name in ("web", "top"):
        held = op.module(name).held_back
        assert held is not None
        assert (held.confirm, held.reason) == ("web", "WaitsForConfirmation")
    assert op.story == []
    await annotate(op, "web", **{"confirm-removal": "1"})
    await op.advance(28)
    assert op.story == ["uninstall top", "uninstall web"]


async def test_a_purge_waits_for_the_windows_of_the_setting(op: engine.Operator) -> None:
    op.modules.add("old")
    await windowed(op)
    await op.stop()
    op.modules.remove("old")
    await op.start()
    await op.advance(30)
    assert [event.module for event in op.heard.of(events.HeldBack)] == ["old"]
    assert op.story == []
    await op.clock.advance(10 * HOUR)
    assert op.story == ["uninstall old"]


async def test_a_run_past_its_window_may_pass_until_one_succeeds(op: engine.Operator) -> None:
    hook = op.hook("web/a.sh", {"beforeHelm": 1})
    await windowed(op)
    await op.edit(web={"size": 2})
    assert "upgrade web" not in op.story
    hook.fails = 1
    await annotate(op, "web", now="1")
    assert op.story == ["a.sh: beforeHelm"]
    await op.advance(6)
    assert op.story == ["a.sh: beforeHelm", "upgrade web"]
    await op.edit(web={"size": 3})
    assert op.story == ["a.sh: beforeHelm"]


async def annotate(op: engine.Operator, module: str, **annotations: str) -> None:
    marked = {f"addon-operator.io/{key}": value for key, value in annotations.items()}
    op.server.put(
        api_server.an_object("Module", module, api_version=module_objects.API_VERSION, annotations=marked)
    )
    # The watch may be between two requests.
    await op.advance(2)


async def test_a_module_without_a_release_is_removed_at_any_time(op: engine.Operator) -> None:
    op.modules.add("web", chart=False)
    op.hook("web/a.sh", {"afterDeleteHelm": 1})
    await windowed(op)
    await op.edit(webEnabled="false")
    assert (op.story, op.statuses) == (["a.sh: afterDeleteHelm"], {"web": "Disabled"})
