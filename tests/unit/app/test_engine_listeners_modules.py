"""What the engine does to modules, as series that come and go."""

import json
import pathlib

import pytest
import structlog
from msgspec import structs

from addon_operator.app import engine_listeners, event_log, event_metrics
from addon_operator.engine import events, state, tasks
from addon_operator.helm import release_types
from addon_operator.hook_contract.configuration import hook_config
from addon_operator.kernel import errors, names
from addon_operator.kube.objects import events as kube_events
from addon_operator.kube.objects import suspension
from addon_operator.modules import model, release, windows
from addon_operator.process.children import children
from addon_operator.telemetry import metrics
from tests.support import logs, told_events
from tests.unit.engine import fakes

WEB = names.ModuleName("web")
Status = state.ModuleStatus


@pytest.fixture
def meters() -> metrics.Metrics:
    return metrics.Metrics()


@pytest.fixture
def tell(meters: metrics.Metrics) -> events.Listener:
    return engine_listeners.shown(meters, structlog.get_logger())


def value(meters: metrics.Metrics, name: str, **labels: str) -> float | None:
    return meters.registry.get_sample_value(f"addon_operator_{name}", labels)


def module(status: state.ModuleStatus) -> state.ModuleState:
    return state.ModuleState(model.Module(WEB, 1, pathlib.Path("web")), status)


def hook(name: str, owner: names.ModuleName | None = WEB) -> state.Hook:
    text = json.dumps({"configVersion": "v1", "beforeHelm": 1, "schedule": [{"crontab": "* * * * *"}]})
    kind = hook_config.HookKind.MODULE
    return state.Hook(name, pathlib.Path(name), hook_config.parse(text, kind, name), owner)


def test_what_waits_for_a_window_has_a_series_as_long_as_it_waits(
    meters: metrics.Metrics, tell: events.Listener
) -> None:
    tell(events.HeldBack(WEB, windows.HeldBack("upgrade to revision 2", 2000.0, 1000.0)))
    assert value(meters, "module_held_back", module="web") == 1000
    tell(events.HeldBack(WEB, None))
    assert value(meters, "module_held_back", module="web") is None


def test_only_modules_that_exist_have_a_series_of_their_suspension(
    meters: metrics.Metrics, tell: events.Listener
) -> None:
    wanted = suspension.Suspension("the disk is replaced", since=1000.0)
    tell(state.SuspensionChanged(WEB, wanted))
    assert value(meters, "module_suspended", module="web") is None
    suspended = module(Status.READY)
    suspended.suspended = wanted
    tell(state.ModuleChanged(suspended))
    assert value(meters, "module_suspended", module="web") == 1000
    tell(state.ModuleChanged(module(Status.READY)))
    assert value(meters, "module_suspended", module="web") is None


def test_the_log_says_what_waits_for_a_window_and_when_nothing_does_any_more() -> None:
    log = logs.Records()
    tell = event_log.EventLog(log.logger)
    tell(events.HeldBack(WEB, windows.HeldBack("upgrade to revision 2", 2000.0, 1000.0)))
    tell(events.HeldBack(WEB, None))
    assert log.lines == [
        ("info", "held back: waits for a window, which opens at 1970-01-01T00:33:20Z: upgrade to revision 2"),
        ("info", "nothing waits for a window any more"),
    ]


@pytest.mark.parametrize(
    ("status", "enabled"),
    [
        (Status.PENDING, 1),
        (Status.RUNNING, 1),
        (Status.READY, 1),
        (Status.FAILED, 1),
        (Status.DELETING, 0),
        (Status.DISABLED, 0),
    ],
)
def test_the_state_of_a_module_is_shown(
    meters: metrics.Metrics, tell: events.Listener, status: state.ModuleStatus, enabled: int
) -> None:
    tell(state.ModuleChanged(module(Status.PENDING)))
    tell(state.ModuleChanged(module(status)))
    assert value(meters, "module_info", module="web", state=status) == 1
    assert value(meters, "module_enabled", module="web") == enabled
    assert value(meters, "module_run_errors_total", module="web") == 0


def test_a_module_that_never_runs_has_counters_and_no_times(
    meters: metrics.Metrics, tell: events.Listener
) -> None:
    tell(state.ModuleChanged(module(Status.DISABLED)))
    assert value(meters, "module_run_errors_total", module="web") == 0
    assert value(meters, "module_run_seconds_count", module="web") is None
    tell(state.ModuleChanged(module(Status.PENDING)))
    assert value(meters, "module_run_seconds_count", module="web") == 0


def test_a_run_in_which_helm_had_nothing_to_do_has_no_time_of_helm(
    meters: metrics.Metrics, tell: events.Listener
) -> None:
    skipped = release_types.ReleaseOutcome(
        release_types.ReleaseAction.SKIPPED, "equal", 1, release.Checksum("1"), release.SkippedBy.INPUTS
    )
    tell(events.ReleaseEnsured(WEB, "OperatorStartup", skipped))
    labels = {"module": "web", "activation": "OperatorStartup"}
    assert value(meters, "helm_upgrades_skipped_total", module="web", by="inputs") == 1
    assert value(meters, "module_helm_seconds_count", **labels) is None
    upgraded = structs.replace(skipped, by=None, seconds={release_types.Operation.UPGRADE: 2.0})
    tell(events.ReleaseEnsured(WEB, "OperatorStartup", upgraded))
    assert value(meters, "module_helm_seconds_sum", **labels) == 2.0


def test_series_of_hooks_go_when_their_module_is_disabled(
    meters: metrics.Metrics, tell: events.Listener
) -> None:
    tell(events.HooksRegistered(WEB, (hook("a.sh"),)))
    tell(events.HooksRegistered(None, (hook("a.sh", None),)))
    assert value(meters, "binding_count", module="web", hook="a.sh") == 2
    tell(state.ModuleChanged(module(Status.DISABLED)))
    assert value(meters, "binding_count", module="web", hook="a.sh") is None
    assert value(meters, "binding_count", module="", hook="a.sh") == 2
    assert value(meters, "module_enabled", module="web") == 0


def test_series_of_a_hook_go_when_its_module_has_it_no_more(
    meters: metrics.Metrics, tell: events.Listener
) -> None:
    tell(events.HooksRegistered(WEB, (hook("a.sh"), hook("b.sh"))))
    tell(events.HooksRegistered(WEB, (hook("b.sh"),)))
    assert value(meters, "binding_count", module="web", hook="a.sh") is None
    assert value(meters, "binding_count", module="web", hook="b.sh") == 2


def test_the_time_of_converges_is_there_from_the_first_one_on(
    meters: metrics.Metrics, tell: events.Listener
) -> None:
    tell(events.ConvergeStarted("onStartup"))
    assert value(meters, "convergence_seconds", activation="onStartup") == 0
    assert value(meters, "convergence_total", activation="onStartup") == 0
    tell(events.ConvergeEnded("onStartup", 2.5, superseded=False))
    assert value(meters, "convergence_seconds", activation="onStartup") == 2.5
    tell(events.ConvergeEnded("onStartup", 1, superseded=True))
    assert value(meters, "convergence_total", activation="onStartup") == 1


def brief(records: logs.Records) -> list[str]:
    """A line of each record, with ``!`` before a warning."""
    return [
        " ".join(
            [
                "! " * (record["level"] == "warning") + record["event"],
                *(f"{key}={value}" for key, value in record.items() if key not in ("level", "event")),
            ]
        )
        for record in records
    ]


def test_numbers_of_modules_and_runs_are_seen_at_info() -> None:
    log = logs.Records()
    tell = event_log.EventLog(log.logger)
    tell(events.HooksRegistered(None, (hook("a.sh", None), hook("b.sh", None))))
    tell(events.HooksRegistered(WEB, (hook("c.sh"),)))
    for enabled in (3, 3, 2):
        tell(events.ModulesDiscovered(enabled, 5))
    tell(events.ModuleRan(WEB, "onStartup", 1.23456))
    tell(events.Noted("release uninstalled", "old"))
    assert brief(log) == [
        "found 2 global hooks, 5 modules, 3 of them enabled",
        "found 2 global hooks, 5 modules, 2 of them enabled",
        "module run ended module=web activation=onStartup seconds=1.235 reason=ModuleRan",
        "release uninstalled module=old",
    ]


def test_removals_and_directories_that_are_gone_are_warnings() -> None:
    log = logs.Records()
    tell = event_log.EventLog(log.logger)
    tell(events.RemovalDue("release old is purged: no module directory explains it"))
    tell(events.ModuleGone(WEB, pathlib.Path("modules/010-web")))
    assert brief(log) == [
        "! release old is purged: no module directory explains it",
        "! module web: modules/010-web is gone module=web",
    ]


def test_each_removal_is_an_event_on_the_config_map() -> None:
    recorder = told_events.Recorder()
    config_map = kube_events.ObjectReference("v1", "ConfigMap", "addon-operator", "addons")
    tell = engine_listeners.config_listener(recorder, {"ConfigMap": config_map}, lambda: "uid-1")
    tell(events.RemovalDue("release old is purged: no module directory explains it"))
    tell(events.Noted("release uninstalled", "old"))
    about = structs.replace(config_map, uid="uid-1")
    purged = "Release old is purged: no module directory explains it."
    assert recorder.told == [(about, "Warning", "Removed", purged)]


def test_runs_of_hooks_and_those_that_hold_a_queue_are_seen_at_info() -> None:
    log = logs.Records()
    tell = event_log.EventLog(log.logger)
    labels = events.HookLabels("c.sh", "schedule", "slow", "schedule", WEB)
    tell(events.HookHolds(labels, 30.0))
    tell(events.HookSucceeded(labels, children.ChildResult(0, 0.0, 0.0, 45.67891, 1, False, None, False, "")))
    fields = "hook=c.sh module=web binding=schedule queue=slow activation=schedule"
    assert brief(log) == [
        f"queue slow waits: the hook has been running for 30 s {fields}",
        f"hook run done seconds=45.679 {fields}",
    ]


async def test_of_a_task_that_fails_it_is_said_what_comes_next() -> None:
    async def run(_: tasks.Task) -> None:
        raise AssertionError("nothing is run here")

    log = logs.Records()
    tell = event_log.EventLog(log.logger)
    task = fakes.CallTask(tasks.TaskKind.MODULE_RUN, run, owner=WEB)
    for delay in (5.0, None):
        tell(events.TaskFailed("main", task, errors.ModuleError(WEB, "no"), delay))
    task.supersede()
    tell(events.TaskFailed("main", task, errors.ModuleError(WEB, "no"), None))
    assert [record["event"].rpartition("; ")[2] for record in log] == [
        "next try in 5.0 s",
        "failure is allowed",
        "a newer task takes its place",
    ]


def test_what_a_hook_may_not_have_meant_is_logged_once_and_counted_each_time() -> None:
    log = logs.Records()
    meters = metrics.Metrics()
    labels = events.HookLabels("c.sh", "schedule", "slow", "schedule", WEB)
    for is_new in (True, False):
        event = events.HookDoubted(labels, "printed a patch", is_new=is_new)
        event_log.EventLog(log.logger)(event)
        event_metrics.EventMetrics(meters)(event)
    assert [line.partition(" hook=")[0] for line in brief(log)] == ["! module web: hook c.sh printed a patch"]
    assert 'addon_operator_hook_doubts_total{hook="c.sh",module="web"} 2.0' in meters.render().decode()
