"""Whoever reads modules refuses what is not a directory of modules, and says which one was meant."""

import pathlib
from collections.abc import Callable

import pytest
from click import testing

from addon_operator.cli import main
from addon_operator.commands import values_files
from addon_operator.commands.authoring import new_hook, new_module
from addon_operator.commands.checks import hook_places, hooks_check, module_lint, values_check
from addon_operator.commands.dev import dev_place
from addon_operator.kernel import errors
from addon_operator.loading import module_files, module_scan
from addon_operator.testing import suites
from tests.support import rows

WEB = "repo/modules/010-web"
IS_MEANT = "{root}/repo/modules, or --modules-dir"
WRONG = {
    "the repository": ("repo", IS_MEANT),
    "a module": (WEB, IS_MEANT),
    "templates of a module": (f"{WEB}/templates", IS_MEANT),
    "below hooks of a module": (f"{WEB}/hooks/sub", IS_MEANT),
    "a file": ("repo/README.md", "README.md is not a directory; name it with MODULES_DIR"),
    "a path that vanished": ("gone", "gone does not exist; name it with MODULES_DIR"),
}


def _lint(path: pathlib.Path) -> str:
    """Return what is wrong, as an error."""
    raise errors.ConfigurationError(_told(module_lint.of_all([_places(path)])))


def _check_values(path: pathlib.Path) -> str:
    raise errors.ConfigurationError(_told(values_check.check(_places(path))))


def _told(report: values_check.ValuesReport) -> str:
    assert (report.failed, report.modules) == (True, 0)
    return "; ".join(finding.problem for finding in report.findings)


def _places(path: pathlib.Path) -> values_files.FilesToCheck:
    return values_files.places({"modules_dirs": str(path), "global_hooks_dir": None}, {})


READERS: dict[str, Callable[[pathlib.Path], object]] = {
    "start and plan": lambda path: module_files.load([path], 1),
    "values show and module why": lambda path: _places(path).load(),
    "module test": lambda path: suites.chosen([], {"MODULES_DIR": str(path)}),
    "module lint": _lint,
    "values check": _check_values,
    "hooks check": lambda path: list(
        hook_places.configured({"modules_dirs": str(path), "global_hooks_dir": None}, {}).places()
    ),
    "dev": lambda path: dev_place.check_modules(dev_place.Modules(path, None, path)),
}
WHILE_IT_RUNS: dict[str, Callable[[pathlib.Path], object]] = {"reload": lambda path: module_scan.scan([path])}
"""What vanishes there is told by the system's error."""
WRITERS: dict[str, Callable[[pathlib.Path], object]] = {
    "new module": lambda path: new_module.create(
        new_module.Request("db", path, None, None, None, with_schema=False)
    ),
    "new hook": lambda path: new_hook.find(
        "web/run.py", hook_places.configured({"modules_dirs": str(path), "global_hooks_dir": None}, {})
    ),
}
"""What is not there yet, they may make, or do not find."""
ALL = {**READERS, **WHILE_IT_RUNS, **WRITERS}
CASES = [
    (reader, wrong)
    for wrong in WRONG
    for reader in (READERS if wrong in ("a file", "a path that vanished") else ALL)
]


@pytest.fixture
def root(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> pathlib.Path:
    for path in (
        *(f"{WEB}/{name}" for name in ("values.yaml", "templates/a.yaml", "hooks/sub/a.sh")),
        *("repo/crds/a.yaml", "repo/deploy/chart/operator/Chart.yaml", "repo/docs/x", "repo/README.md"),
        *("empty/.keep", "here/x"),
    ):
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).touch()
    monkeypatch.chdir(tmp_path / "here")
    return tmp_path


@rows.each(("reader", "wrong"), CASES)
def test_what_is_not_a_directory_of_modules_is_refused_by_all(
    root: pathlib.Path, reader: str, wrong: str
) -> None:
    where, said = WRONG[wrong]
    with pytest.raises(errors.AddonOperatorError) as raised:
        ALL[reader](root / where)
    assert f"modules directory {root / where} " in str(raised.value)
    assert said.format(root=root) in str(raised.value)
    assert "\n" not in str(raised.value)


def test_an_empty_directory_is_started_with_and_told_by_who_checks(root: pathlib.Path) -> None:
    empty = root / "empty"
    assert module_files.load([empty], 1).modules == ()
    for report in (values_check.check(_places(empty)), module_lint.of_all([_places(empty)])):
        assert report.notes == (f"{empty} holds no module, so nothing is checked there",)
    with pytest.raises(errors.AddonOperatorError, match=r"has no modules; write one with"):
        READERS["dev"](empty)
    assert hooks_check.check(list(hook_places.in_modules(empty)), ("*",)).files == ()


@pytest.mark.parametrize("command", [["module", "lint"], ["values", "check"], ["hooks", "check"]])
def test_a_module_that_somebody_stands_in_is_what_is_checked(
    root: pathlib.Path, command: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (root / WEB / "values.yaml").write_text("nothing")
    (root / WEB / "hooks" / "plain.sh").write_text("#!/bin/sh\n")
    monkeypatch.chdir(root / WEB)
    ran = testing.CliRunner().invoke(main.cli, [*command, "-o", "name"], standalone_mode=False)
    assert (ran.return_value, ran.exception) == (1, None)
    elsewhere = [*command, "--modules-dir", str(root / "empty")]
    ran = testing.CliRunner().invoke(main.cli, elsewhere, standalone_mode=False)
    assert (ran.return_value, ran.exception) == (0, None)


def test_somebody_who_stands_in_a_part_of_a_module_is_told_where_the_modules_are(
    root: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(root / WEB / "templates")
    said = f"modules does not exist, as 010-web is a module; set MODULES_DIR={root}/repo/modules, or"
    with pytest.raises(errors.ConfigurationError, match=said):
        module_files.load([pathlib.Path("modules")], 1)
