"""How a plan is shown."""

import dataclasses
import pathlib
from collections.abc import Mapping, Sequence

import click
import orjson
import pytest
import yaml
from click import testing

from addon_operator.cli import main
from addon_operator.cli import plan as plan_command
from addon_operator.commands.plan import given_values, plan_report, planning
from addon_operator.commands.plan_state import plan_state
from addon_operator.documents import manifest_diff
from addon_operator.kernel import errors
from addon_operator.kernel.names import ModuleName
from addon_operator.settings import settings as settings_module
from addon_operator.settings import settings_loading
from addon_operator.telemetry import logs
from tests.support import rows
from tests.unit.commands.plan_state import states

PAGE = pathlib.Path(__file__).parents[3] / "docs" / "how-to" / "plan-a-change.md"
CHANGE = manifest_diff.ManifestChange(
    manifest_diff.ChangeKind.CHANGED,
    manifest_diff.ManifestKey("ConfigMap", "web", "", "v1"),
    ("--- applied ConfigMap web", "+++ rendered ConfigMap web", "-  color: green", "+  color: red"),
)


def module(
    name: str, step: plan_report.PlanStep, changes: tuple[manifest_diff.ManifestChange, ...] = ()
) -> plan_report.ModuleReport:
    release = plan_report.ReleaseReport(step, f"because of {name}", 3, (), changes)
    return plan_report.ModuleReport(ModuleName(name), 10, True, "enabled in values.yaml", release)


UPGRADE = module("web", plan_report.PlanStep.UPGRADE, (CHANGE,))
NOTHING = module("db", plan_report.PlanStep.NOTHING)
UNKNOWN = module("bad", plan_report.PlanStep.UNKNOWN)


@pytest.fixture
def planned(monkeypatch: pytest.MonkeyPatch) -> list[plan_report.ModuleReport]:
    """The modules of the plan that the command gets."""
    modules = [UPGRADE, NOTHING]

    async def make(
        _settings: object, _environ: object, only: Sequence[str], pod: str | None, *_: object
    ) -> plan_report.PlanReport:
        if only:
            raise errors.ConfigurationError(f"there is no module {only[0]!r}; there are none")
        purges = (plan_report.Purge("gone", "no directory"),) if UNKNOWN not in modules else ()
        given = given_values.HookValuesOrigin(
            given_values.Source.OPERATOR, f"the operator in pod {pod}", {ModuleName("web"): 3}
        )
        losses = ("the removal of release gone deletes 1 object",) if purges else ()
        return plan_report.PlanReport(
            "addons", tuple(modules), purges, losses, ("hooks were not run",), given
        )

    monkeypatch.setattr(planning, "make", make)
    monkeypatch.setattr(logs, "configure", lambda *_, **__: None)
    return modules


def run(*arguments: str) -> testing.Result:
    return testing.CliRunner().invoke(
        main.cli, ["plan", "--namespace", "addons", *arguments], standalone_mode=False
    )


def test_the_text_has_a_row_for_each_module_and_purge_then_the_differences(
    planned: list[plan_report.ModuleReport],
) -> None:
    result = run()
    head, *lines = result.stdout.splitlines()
    assert head == "the removal of release gone deletes 1 object"
    rows = [line.split() for line in lines]
    assert rows[0] == ["MODULE", "ORDER", "STATE", "WHY", "ACTION", "BECAUSE"]
    assert rows[1][:3] == ["web", "10", "enabled"]
    assert rows[1][-4:] == ["upgrade", "because", "of", "web"]
    assert rows[3] == ["gone", "purge", "no", "directory"]
    assert "web: 1 changed\n--- applied ConfigMap web\n" in result.stdout
    assert result.stdout.endswith("Releases: 1 to upgrade, 1 to purge.\n")
    assert result.stderr == "Note: hooks were not run\n"


def test_the_json_is_one_document(planned: list[plan_report.ModuleReport]) -> None:
    result = run("-o", "json")
    document = orjson.loads(result.stdout)
    assert (document["namespace"], document["changes"]) == ("addons", True)
    assert document["modules"][0]["changes"][0] == {
        "change": "changed",
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "namespace": None,
        "name": "web",
        "diff": "--- applied ConfigMap web\n+++ rendered ConfigMap web\n-  color: green\n+  color: red\n",
    }
    assert document["purges"] == [{"release": "gone", "reason": "no directory", "pending": False}]
    assert document["losses"] == ["the removal of release gone deletes 1 object"]
    assert document["notes"] == ["hooks were not run"]


@pytest.mark.parametrize("output", ["json", "yaml"])
def test_the_document_says_whose_values_of_hooks_it_has(
    planned: list[plan_report.ModuleReport], output: str
) -> None:
    document = yaml.safe_load(run("-o", output, "--from-pod", "one").stdout)
    assert document["hookValues"] == {
        "from": "operator", "operator": "the operator in pod one", "releases": {"web": 3}
    }  # fmt: skip
    assert document["modules"][0]["action"] == "upgrade"


@pytest.mark.parametrize(
    ("modules", "exit_code"),
    [([NOTHING], 3), ([UPGRADE, UNKNOWN], 1), ([NOTHING, UNKNOWN], 1)],
    ids=["a purge", "an error beside a change", "an error alone"],
)
def test_the_exit_code_tells_changes_and_errors(
    planned: list[plan_report.ModuleReport], modules: list[plan_report.ModuleReport], exit_code: int
) -> None:
    planned[:] = modules
    assert run().return_value == exit_code


def test_a_plan_without_changes_says_so(
    planned: list[plan_report.ModuleReport], monkeypatch: pytest.MonkeyPatch
) -> None:
    async def make(*_: object) -> plan_report.PlanReport:
        return plan_report.PlanReport("addons", (NOTHING,), (), ())

    monkeypatch.setattr(planning, "make", make)
    result = run()
    assert result.return_value == 0
    assert result.stdout.endswith("No release would change.\n")


def test_single_modules_are_passed_on(planned: list[plan_report.ModuleReport]) -> None:
    result = run("--module", "wbe")
    assert isinstance(result.exception, errors.ConfigurationError)
    assert "'wbe'" in str(result.exception)


def test_wrong_settings_are_reported_before_anything_is_asked() -> None:
    result = testing.CliRunner(env={"ADDON_OPERATOR_NAMESPACE": ""}).invoke(
        main.cli, ["plan"], standalone_mode=False
    )
    assert isinstance(result.exception, errors.AddonOperatorError)
    assert "NAMESPACE" in str(result.exception)


def test_a_state_file_says_nothing_but_the_settings_that_are_recorded(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[tuple[settings_module.Settings, Mapping[str, str]]] = []

    async def make(
        settings: settings_module.Settings, environ: Mapping[str, str], *_: object
    ) -> plan_report.PlanReport:
        asked.append((settings, environ))
        raise errors.ConfigurationError("enough")

    monkeypatch.setattr(planning, "make", make)
    others = {
        variable: "/theirs"
        for field, row in settings_module.TABLE.items()
        if field not in plan_command.RECORDED
        for variable in row.variables
    }
    written = {**others, "LD_PRELOAD": "/theirs", "HELM_DRIVER": "configmap"}
    plan_state.write(dataclasses.replace(states.state(), settings=written), tmp_path / "state.json")
    run("--state", str(tmp_path / "state.json"))
    ((settings, environ),) = asked
    assert settings.helm_driver == "configmap"
    assert "/theirs" not in environ.values()
    assert settings.modules_dirs == settings_loading.load({"namespace": "addons"}, {}).modules_dirs


@rows.each("options", [("--state", "a", "--base", ""), ("--state", ""), ("--record", "")])
def test_an_option_with_an_empty_name_is_not_taken_for_the_working_directory(
    options: tuple[str, ...],
) -> None:
    error = run(*options).exception
    assert isinstance(error, click.UsageError)
    assert "need a name that is not empty" in error.message


def test_the_page_names_every_action_and_every_key(planned: list[plan_report.ModuleReport]) -> None:
    page = PAGE.read_text()
    actions = {*map(str, plan_report.PlanStep), "purge"}
    assert all(f"| `{action}` |" in page for action in actions)
    document = orjson.loads(run("-o", "json").stdout)
    keys = {*document, *document["modules"][0], *document["modules"][0]["changes"][0], *document["purges"][0]}
    keys |= set(document["hookValues"])
    assert all(f'"{key}"' in page for key in keys)
