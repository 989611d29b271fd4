"""The states of modules: who hears of them, and what of an error may be shown where values may not."""

import pathlib

import pytest

from addon_operator.engine import module_states, state
from addon_operator.hook_contract.configuration import hook_config
from addon_operator.kernel import errors, names
from addon_operator.kube.objects import suspension
from addon_operator.modules import findings, model, module_config
from addon_operator.modules.health import module_health, resource_health
from addon_operator.values.schema import schema_violations

WEB = names.ModuleName("web")
VIOLATION = schema_violations.Violation("web.port", "must be an integer", '"eighty"', "openapi/values.yaml")


@pytest.fixture
def reported() -> list[str]:
    """The statuses that were reported."""
    return []


@pytest.fixture
def states(reported: list[str]) -> module_states.ModuleStates:
    return module_states.ModuleStates(
        [model.Module(WEB, 10, pathlib.Path("010-web"))], lambda event: reported.append(event.state.status)
    )


def discover(states: module_states.ModuleStates, *, enabled: bool, reason: str = "because") -> None:
    verdict = model.Verdict(WEB, enabled, reason)
    states.discovered({WEB: verdict}, [WEB] if enabled else [])


@pytest.mark.parametrize(
    ("enabled", "status"), [(True, "Pending"), (False, "Disabled")], ids=["enabled", "disabled"]
)
def test_the_first_discovery_reports_every_module(
    states: module_states.ModuleStates, reported: list[str], enabled: bool, status: str
) -> None:
    discover(states, enabled=enabled)
    assert reported == [status]


def test_a_discovery_without_news_reports_nothing(
    states: module_states.ModuleStates, reported: list[str]
) -> None:
    discover(states, enabled=False)
    discover(states, enabled=False)
    assert len(reported) == 1


def test_the_error_of_an_enabled_script_is_over_when_it_gives_a_verdict(
    states: module_states.ModuleStates,
) -> None:
    error = errors.ModuleError(WEB, "its enabled script failed")
    states.discovered({WEB: model.Verdict(WEB, enabled=False, reason="it stays off", error=error)}, [])
    states.mark(WEB, state.ModuleStatus.FAILED, error)
    states.discovered({WEB: model.Verdict(WEB, enabled=False, reason="it stays off", error=error)}, [])
    assert (states[WEB].status, states[WEB].last_error) == (
        state.ModuleStatus.FAILED,
        "its enabled script failed",
    )
    discover(states, enabled=False)
    assert (states[WEB].status, states[WEB].last_error) == (state.ModuleStatus.DISABLED, "")


def test_a_discovery_that_succeeds_leaves_the_error_of_a_run(states: module_states.ModuleStates) -> None:
    discover(states, enabled=True)
    states.mark(WEB, state.ModuleStatus.FAILED, errors.ModuleError(WEB, "helm failed"))
    discover(states, enabled=True)
    assert states[WEB].last_error == "helm failed"


def test_another_reason_is_reported(states: module_states.ModuleStates, reported: list[str]) -> None:
    discover(states, enabled=False)
    discover(states, enabled=False, reason="another")
    assert reported == ["Disabled", "Disabled"]
    assert states[WEB].reason == "another"


@pytest.mark.parametrize("status", [state.ModuleStatus.PENDING, state.ModuleStatus.FAILED])
def test_a_module_without_hooks_that_ran_is_disabled_at_once(
    states: module_states.ModuleStates, reported: list[str], status: state.ModuleStatus
) -> None:
    discover(states, enabled=True)
    states.mark(WEB, status, "its hook reported nothing")
    discover(states, enabled=False)
    assert reported[-1] == "Disabled"
    assert (states[WEB].last_error, states[WEB].last_error_without_values) == ("", "")


def test_a_module_whose_hooks_ran_waits_for_its_delete(states: module_states.ModuleStates) -> None:
    discover(states, enabled=True)
    states[WEB].hooks = ()
    states.mark(WEB, state.ModuleStatus.READY, "")
    discover(states, enabled=False)
    assert states[WEB].status is state.ModuleStatus.READY


def test_values_in_an_error_are_kept_for_the_log_alone(states: module_states.ModuleStates) -> None:
    states.mark(
        WEB, state.ModuleStatus.FAILED, schema_violations.InvalidValuesError([VIOLATION], "not ready")
    )
    assert '"eighty"' in states[WEB].last_error
    assert states[WEB].last_error_without_values == (
        "not ready: web.port: must be an integer (openapi/values.yaml)"
    )


def test_other_errors_are_shown_as_they_are(states: module_states.ModuleStates) -> None:
    states.mark(WEB, state.ModuleStatus.FAILED, errors.ModuleError("web", "its chart is gone"))
    assert states[WEB].last_error_without_values == "its chart is gone"
    states.mark(WEB, state.ModuleStatus.RUNNING)
    assert states[WEB].last_error == "its chart is gone"
    states.mark(WEB, state.ModuleStatus.READY, "")
    assert states[WEB].last_error == states[WEB].last_error_without_values == ""


def test_maintenance_is_part_of_the_reason_until_it_ends(
    states: module_states.ModuleStates, reported: list[str]
) -> None:
    discover(states, enabled=True)
    states.maintain(WEB, "NoResourceReconciliation")
    assert states[WEB].reason == (
        "because; in maintenance (NoResourceReconciliation): Helm and healing leave it alone"
    )
    discover(states, enabled=True)
    assert len(reported) == 2
    assert "in maintenance" in states[WEB].reason
    states.maintain(WEB, "")
    assert states[WEB].reason == "because"
    assert len(reported) == 3


def test_a_hook_is_current_as_long_as_its_module_has_this_very_one(
    states: module_states.ModuleStates,
) -> None:
    def made() -> state.Hook:
        return state.Hook("a.sh", pathlib.Path("a.sh"), hook_config.HookConfig(), WEB)

    hook = made()
    assert not states.is_current(hook), "it is not registered yet"
    states[WEB].hooks = (hook,)
    assert states.is_current(hook)
    states[WEB].hooks = (made(),)
    assert not states.is_current(hook), "the module was removed and enabled again"
    states.replace([])
    assert not states.is_current(hook)
    assert states.is_current(state.Hook("g.sh", pathlib.Path("g.sh"), hook_config.HookConfig()))


def test_a_module_that_comes_is_suspended_as_its_object_was_before(reported: list[str]) -> None:
    states = module_states.ModuleStates([], lambda _: None)
    wanted = suspension.Suspension("the disk is replaced", since=1000.0)
    web = model.Module(names.ModuleName("web"), 1, pathlib.Path("web"))
    states.suspend(web.name, wanted)
    states.replace([web])
    assert states[web.name].suspended == wanted
    states.suspend(web.name, None)
    states.replace([web])
    assert states[web.name].suspended is None


def test_a_module_whose_run_has_not_begun_says_for_which_it_waits(reported: list[str]) -> None:
    db = names.ModuleName("db")
    requires = module_config.Requirements(modules=(db,))
    web = model.Module(WEB, 10, pathlib.Path("010-web"), config=module_config.ModuleConfig(requires=requires))
    told: list[str] = []
    states = module_states.ModuleStates(
        [web, model.Module(db, 10, pathlib.Path("010-db"))],
        lambda event: told.append(f"{event.state.module.name}: {event.state.reason}"),
    )
    assert [each.name for each in states.modules] == ["db", "web"]
    verdicts = {name: model.Verdict(name, True, "on") for name in (db, WEB)}
    states.discovered(verdicts, [db, WEB])
    assert told == ["db: on", "web: on; waits for db"]
    states.mark(db, state.ModuleStatus.FAILED, "it failed")
    assert states[WEB].reason == "on; waits for db"
    told.clear()
    states.mark(db, state.ModuleStatus.READY, "")
    assert told == ["db: on", "web: on"]


def test_each_module_that_is_not_as_it_should_be_is_named_with_its_reason() -> None:
    wrong = "030-shop/values.yaml, line 1: not YAML"
    found = module_states.ModuleStates(
        [
            model.Module(names.ModuleName("web"), 10, pathlib.Path("web")),
            model.Module(names.ModuleName("db"), 20, pathlib.Path("db")),
            model.Module(names.ModuleName("shop"), 30, pathlib.Path("shop"), problem=wrong),
            model.Module(
                names.ModuleName("till"), 40, pathlib.Path("till"), hooks_problem="run.sh: not executable"
            ),
            model.Module(names.ModuleName("fine"), 50, pathlib.Path("fine")),
        ],
        lambda _event: None,
    )
    found.mark(names.ModuleName("web"), state.ModuleStatus.FAILED, "no such image")
    found.will_retry(names.ModuleName("web"), 90.0, 4)
    failed = module_health.ModuleHealth(resource_health.HealthState.FAILED, "1 of 3 pods ready")
    found.note_health(names.ModuleName("db"), failed)
    assert found.troubles == [
        "module web failed 4 times: no such image",
        "module db is unhealthy: 1 of 3 pods ready",
        f"module shop cannot run: {wrong}",
        "module till cannot run: run.sh: not executable",
    ]
    found.mark(names.ModuleName("web"), state.ModuleStatus.READY, "")
    assert found.troubles[0].startswith("module db ")


def field_manager(name: str, module: names.ModuleName | None = WEB) -> str:
    return state.Hook(name, pathlib.Path(name), hook_config.HookConfig(), module).field_manager


def test_each_hook_has_a_field_manager_of_its_own_that_the_api_server_takes() -> None:
    assert field_manager("a.sh") == "addon-operator:web/a.sh"
    assert field_manager("sub/a.sh", None) == "addon-operator:sub/a.sh"
    longest, long, other = "x" * 109, "ü" * 100, "ü" * 101
    assert field_manager(longest) == f"addon-operator:web/{longest}"
    assert len(field_manager(long).encode()) <= 128
    assert field_manager(long).startswith("addon-operator:web/üü")
    assert field_manager(long) != field_manager(other)


def test_what_is_known_before_the_first_discovery_is_told_with_it(
    states: module_states.ModuleStates, reported: list[str]
) -> None:
    states.note_leaving(WEB, "it waits for finalizers")
    states.note(WEB, findings.CHART_LOST, "put Chart.yaml back")
    assert (reported, states[WEB].reason) == ([], "not discovered yet")
    discover(states, enabled=True)
    assert len(reported) == 1
    assert states[WEB].reason == "because; it waits for finalizers"
    states.note(WEB, findings.CHART_LOST, "put Chart.yaml back")
    assert len(reported) == 1, "it is no news"
    states.note(WEB, findings.CHART_LOST)
    assert len(reported) == 2
    assert states[WEB].found() == []
