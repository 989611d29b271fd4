"""All commands end with the exit codes of one table, whatever they do."""

import inspect
import pathlib
import re
from typing import Final, NoReturn

import click
import pytest

from addon_operator.cli import exit_codes, main
from addon_operator.commands.plan import plan_report, planning
from addon_operator.devcluster import locations
from addon_operator.telemetry import logs
from tests.support import rows
from tests.unit.cli import debug_server, verbs

ExitCode = exit_codes.ExitCode
PAGE: Final = pathlib.Path(__file__).parents[3] / "docs" / "reference" / "cli.md"
BROKEN_HOOK: Final = "#!/bin/sh\necho 'configVersion: v9'\n"
ASKS_AN_OPERATOR: Final = [
    name
    for name, command in verbs.LEAVES.items()
    if any("--debug-unix-socket" in each.opts for each in command.params)
    and name not in ("plan", "settings", "start")
]
NEEDS: Final = {
    "config set": ["log.level", "debug"],
    "module suspend": ["--reason", "x", "web"],
}
"""What a command that asks an operator needs besides one word for each argument."""
FAILS: Final = {
    "devcluster build": "devcluster build docker",
    "devcluster env": "devcluster env --name gone",
    "devcluster helm": "devcluster helm --name gone list",
    "devcluster kubectl": "devcluster kubectl --name gone get pods",
    "devcluster up": "devcluster up",
    "dev": "dev gone",
    "health explain": "health explain gone",
    "hooks check": "hooks check gone",
    "lint": "lint gone",
    "module lint": "module lint gone",
    "module schema": "module schema --values-of gone",
    "module test": "module test gone",
    "new hook": "new hook gone/x",
    "new module": "new module Not_One",
    "plan": "plan --namespace addons --modules-dir gone --state gone.json",
    "preview pod": "preview pod -f gone.yaml --no-cluster",
    "settings": "settings --log-level loud",
    "start": "start --log-level loud",
    "values check": "values check gone",
    "values show": "values show gone",
    "wait": "wait --timeout 1ms --listen-port 1",
}
"""A line for each other command with which it fails."""
NEVER_FAILS: Final = {"completion", "devcluster down", "devcluster status", "hooks schema", "version"}
FINDS: Final = {
    "health explain": ("health explain pod.yaml", ExitCode.FOUND),
    "hooks check": ("hooks check", ExitCode.FAILED),
    "module diff": ("module diff web", ExitCode.FAILED),
    "lint": ("lint", ExitCode.FAILED),
    "module lint": ("module lint", ExitCode.FAILED),
    "module render": ("module render web --diff", ExitCode.FAILED),
    "plan": ("plan --namespace addons", ExitCode.FOUND),
    "preview pod": (
        "preview pod -f pod.yaml --presets empty.yaml --objects empty.yaml",
        ExitCode.NOTHING,
    ),
    "values check": ("values check", ExitCode.FAILED),
}
"""A line for each command that finds something, and its code without ``--exit-code``."""
FINDS_ALWAYS: Final = ("health explain", "plan")
"""Commands that tell what they find from a failure without being asked."""


@pytest.fixture(autouse=True)
def place(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> pathlib.Path:
    """A directory with a module whose hook is broken, and a pod with a reference to nothing."""
    hook = tmp_path / "modules" / "010-web" / "hooks" / "broken.sh"
    hook.parent.mkdir(parents=True)
    hook.write_text(BROKEN_HOOK)
    hook.chmod(0o755)
    (tmp_path / "modules" / "010-web" / "values.yaml").write_text("web: [no mapping]\n")
    (tmp_path / "pod.yaml").write_text(
        "{apiVersion: v1, kind: Pod, metadata: {name: web},"
        " spec: {containers: [{name: app, image: i, args: [$(NOPE)]}]}}"
    )
    (tmp_path / "empty.yaml").touch()
    monkeypatch.chdir(tmp_path)
    for name in ("HOME", "XDG_CACHE_HOME", "XDG_STATE_HOME"):
        monkeypatch.setenv(name, str(tmp_path))
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "gone"))
    monkeypatch.setenv("DEBUG_UNIX_SOCKET", str(tmp_path / "gone.socket"))
    return tmp_path


def code(line: str | list[str]) -> object:
    with pytest.raises(SystemExit) as ended:
        main.main(line.split() if isinstance(line, str) else line)
    return ended.value.code


@rows.each("name", verbs.LEAVES)
def test_a_command_ends_with_a_code_of_the_table_or_with_none_of_its_own(name: str) -> None:
    callback = verbs.LEAVES[name].callback
    assert callback is not None
    result = inspect.signature(callback, eval_str=True).return_annotation
    assert result in (None, NoReturn, ExitCode)
    has_option = any("--exit-code" in each.opts for each in verbs.LEAVES[name].params)
    assert (name in FINDS) == (has_option or name in FINDS_ALWAYS)
    assert result is ExitCode or name not in FINDS


def test_a_failure_is_known_of_each_command() -> None:
    known = {*ASKS_AN_OPERATOR, *FAILS, *NEVER_FAILS}
    assert known == set(verbs.LEAVES)


@rows.each("name", ASKS_AN_OPERATOR)
def test_a_command_without_the_operator_that_it_asks_fails_with_1(name: str) -> None:
    arguments = [each for each in verbs.LEAVES[name].params if isinstance(each, click.Argument)]
    needed = NEEDS.get(name, ["web"] * sum(each.required for each in arguments))
    assert code([*name.split(), *needed]) == 1


@pytest.mark.parametrize("name", FAILS)
def test_a_command_that_cannot_do_its_work_fails_with_1(
    name: str, monkeypatch: pytest.MonkeyPatch, place: pathlib.Path
) -> None:
    monkeypatch.setenv(locations.STATE_VARIABLE, str(place / "pod.yaml" / "no-directory"))
    assert code(FAILS[name]) == 1


@pytest.mark.parametrize("name", FINDS)
def test_what_a_command_finds_is_told_from_a_failure(
    name: str, place: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    line, without = FINDS[name]

    async def make(*_: object) -> plan_report.PlanReport:
        return plan_report.PlanReport("addons", (), (plan_report.Purge("old", "no directory"),), ())

    monkeypatch.setattr(planning, "make", make)
    monkeypatch.setattr(logs, "configure", lambda *_, **__: None)
    with debug_server.running(place / "gone.socket"):
        assert code(line) == without
        assert name in FINDS_ALWAYS or code(f"{line} --exit-code") == 3


def test_the_page_has_the_table() -> None:
    rows = re.findall(r"^\| (\d+) \| .+ \|$", PAGE.read_text(), re.MULTILINE)
    assert [int(row) for row in rows] == list(ExitCode)
