"""What every command has in common."""

import json
import pathlib
import platform
import re
import subprocess
import sys
import tomllib
from typing import Final

import click
import pytest

import addon_operator
from addon_operator.cli import main, start
from addon_operator.kernel import errors
from addon_operator.settings import settings
from tests.support import rows

ROOT = pathlib.Path(__file__).parents[3]


def test_version_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main.main(["version"])
    assert ended.value.code == 0
    assert capsys.readouterr().out == f"addon-operator {addon_operator.__version__}\n"


def test_an_unknown_command_is_reported_without_a_traceback(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main.main(["fly"])
    assert ended.value.code == 2
    assert "there is no command 'fly'" in capsys.readouterr().err


@pytest.mark.parametrize(("no_color", "start"), [("1", "Error: "), ("", "\x1b[31m")], ids=["obeyed", "empty"])
def test_no_color_is_obeyed(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], no_color: str, start: str
) -> None:
    monkeypatch.setenv("NO_COLOR", no_color)
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    with pytest.raises(SystemExit):
        main.main(["queue", "list", "--debug-unix-socket", "/nowhere/at/all"])
    assert capsys.readouterr().err.startswith(start)


def test_an_unknown_command_is_reported_with_the_nearest_one(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main.main(["modul", "list"])
    assert ended.value.code == 2
    assert "did you mean 'module'?" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["--config-map", "", "--modules-dir=/nowhere"], "'' (flag --config-map) is not allowed"),
        (["--log-levle", "debug"], "did you mean '--log-level'?"),
    ],
    ids=["a setting", "an unknown option"],
)
def test_options_of_start_may_stand_alone(
    capsys: pytest.CaptureFixture[str], arguments: list[str], expected: str
) -> None:
    with pytest.raises(SystemExit):
        main.main(arguments)
    assert expected in capsys.readouterr().err


@pytest.mark.parametrize("option", ["-h", "--help"])
def test_help_is_about_all_commands(capsys: pytest.CaptureFixture[str], option: str) -> None:
    with pytest.raises(SystemExit):
        main.main([option])
    running, files, operator, rest = re.split(r"^(?=\S.*:$)", capsys.readouterr().out, flags=re.MULTILINE)[2:]
    assert running.startswith("About a running operator:")
    assert "  queue " in running
    assert files.startswith("About files, without an operator:")
    assert "  lint " in files
    assert "  start " in operator
    assert rest.startswith("Commands:")
    assert "  version " in rest


def test_nothing_imports_structlog_before_what_it_takes_along_is_hidden() -> None:
    look = "import sys, addon_operator.cli.main, addon_operator.cli.start; print('structlog' in sys.modules)"
    told = subprocess.run([sys.executable, "-c", look], capture_output=True, text=True, check=True)
    assert told.stdout == "False\n"


def test_a_full_disk_is_told_in_a_sentence(tmp_path: pathlib.Path) -> None:
    with pathlib.Path("/dev/full").open("w") as full:
        ran = subprocess.run(
            [sys.executable, "-m", "addon_operator", "settings", "-o", "json"],
            stdout=full, stderr=subprocess.PIPE, text=True, check=False, cwd=tmp_path,
        )  # fmt: skip
    assert (ran.returncode, ran.stderr) == (
        1,
        "Error: the output cannot be written: No space left on device\n",
    )


def test_the_version_is_a_document_for_programs(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main.main(["version", "-o", "json"])
    assert ended.value.code == 0
    assert json.loads(capsys.readouterr().out) == {
        "version": addon_operator.__version__,
        "python": platform.python_version(),
    }


def test_the_options_of_start_stand_below_the_headings_of_the_reference(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with pytest.raises(SystemExit):
        main.main(["start", "--help"])
    shown = capsys.readouterr().out
    headings = [line for line in shown.splitlines() if line.endswith(":") and not line.startswith(" ")]
    groups = dict.fromkeys(f"{row.group}:" for row in settings.TABLE.values())
    assert headings == [*groups, "Options:"]
    assert shown.index("--namespace") < shown.index("HTTP and metrics:") < shown.index("--listen-port")


@pytest.mark.parametrize(
    "flags",
    [
        ("--kubeconfig", "/x", "--context", "c", "-n", "addons"),
        ("--kube-config", "/x", "--kube-context", "c", "--namespace", "addons"),
    ],
    ids=["kubectl", "before"],
)
def test_a_cluster_is_named_as_kubectl_does_it_and_as_before(
    capsys: pytest.CaptureFixture[str], flags: tuple[str, ...]
) -> None:
    with pytest.raises(SystemExit):
        main.main(["settings", "-o", "json", *flags])
    rows = {row["name"]: row["value"] for row in json.loads(capsys.readouterr().out)}
    assert (rows["KUBE_CONFIG"], rows["KUBE_CONTEXT"]) == ("/x", "c")
    assert rows["ADDON_OPERATOR_NAMESPACE"] == "addons"


def test_the_program_is_a_plugin_of_kubectl(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    scripts = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["scripts"]
    assert scripts["kubectl-addon_operator"] == scripts["addon-operator"]
    monkeypatch.setattr(sys, "argv", ["/usr/bin/kubectl-addon_operator"])
    with pytest.raises(SystemExit):
        main.main(["module", "list", "--help"])
    assert capsys.readouterr().out.startswith("Usage: kubectl addon-operator module list ")


@pytest.mark.parametrize(
    ("words", "offered"),
    [
        (["queue", "list", "-o", ""], "table\nwide\nyaml\njson\nname\n:4\n"),
        (["queue", "l"], "list\tList the tasks in all queues.\n:4\n"),
        (["module", "list", "--kubeconfig", "/x"], ":0\n"),
        ([], None),
    ],
    ids=["values", "commands", "files", "no word"],
)
def test_kubectl_completes_its_plugin(
    capsys: pytest.CaptureFixture[str], words: list[str], offered: str | None
) -> None:
    scripts = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["scripts"]
    assert scripts["kubectl_complete-addon_operator"] == "addon_operator.cli.main:complete_for_kubectl"
    main.complete_for_kubectl(words)
    told = capsys.readouterr().out
    assert told == offered if offered is not None else told.startswith("completion\n")


@pytest.mark.parametrize(
    ("arguments", "hint"),
    [
        (["describe", "web"], "did you mean 'module describe'?"),
        (["why", "web"], "did you mean 'module why'?"),
        (["list"], "did you mean 'module list'?"),
        (["module", "list", "badchart"], "'module describe badchart' shows one"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_who_leaves_a_word_out_is_told_the_command(
    capsys: pytest.CaptureFixture[str], arguments: list[str], hint: str
) -> None:
    with pytest.raises(SystemExit) as ended:
        main.main(arguments)
    assert ended.value.code == 2
    assert hint in capsys.readouterr().err


@rows.each("place", [["-n", "addons"], ["--context=prod"], ["--kubeconfig", "x", "-n", "addons"]])
@rows.each("command", [["module", "list"], ["queue", "main", "-o", "json"], ["page"]])
def test_options_of_kubectl_may_stand_before_the_command(command: list[str], place: list[str]) -> None:
    ctx = click.Context(main.cli)
    words = command[: 1 + (command[0] != "page")]
    assert main.cli.parse_args(ctx, [*place, *command]) == [*words[1:], *place, *command[len(words) :]]


def test_only_options_that_are_near_are_offered(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main.main(["start", "--namspace", "addons"])
    assert "did you mean '--namespace'?" in capsys.readouterr().err


def test_why_the_operator_ends_is_one_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    error = errors.ConfigurationError("the port is taken")
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    start._end_with_a_record(error, "text")
    printed = capsys.readouterr()
    assert printed.out + printed.err == "", "the sentence follows"
    monkeypatch.setattr("sys.stderr.isatty", lambda: False)
    with pytest.raises(SystemExit) as ended:
        start._end_with_a_record(error, "text")
    printed = capsys.readouterr()
    assert (ended.value.code, (printed.out + printed.err).count("the port is taken")) == (1, 1)


SEVERAL: Final = {row.name: row for row in settings.TABLE.values() if len(row.flags) > 1}
WRONG: Final = {
    "NAMESPACE": "A_B",
    "UNNUMBERED_MODULE_ORDER": "x",
    "CRD_FILTER_PREFIXES": None,
    "LISTEN_ADDRESS": None,
    "LISTEN_PORT": "x",
    "KUBE_CONFIG": None,
    "KUBE_CONTEXT": None,
}
"""A text that is not allowed for each setting that has several flags; ``None`` where any text is."""


@pytest.mark.parametrize("name", SEVERAL)
def test_a_flag_of_several_spellings_is_named_as_it_was_typed(
    name: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ADDON_OPERATOR_NAMESPACE", "addons")
    row, text = SEVERAL[name], WRONG[name] or "some"
    for flag in row.flags:
        for arguments in ([flag, text], [f"{flag}={text}" if flag.startswith("--") else f"{flag}{text}"]):
            with pytest.raises(SystemExit):
                main.main([*(["start"] if WRONG[name] else ["settings", "-o", "json"]), *arguments])
            printed = capsys.readouterr()
            assert f"flag {flag}" in printed.err + printed.out
            others = [f"flag {each}" for each in row.flags if each != flag]
            assert not [
                other for other in others if f"{other})" in printed.err or f'"{other}"' in printed.out
            ]


def test_the_last_of_two_spellings_counts_and_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main.main(["start", "-n", "addons", "--prometheus-listen-port", "1", "--listen-port", "x"])
    assert "'x' (flag --listen-port) is not allowed" in capsys.readouterr().err


@pytest.mark.parametrize("command", ["start", "plan", "settings"])
def test_wrong_settings_are_one_line_where_there_is_no_terminal(
    command: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("ADDON_OPERATOR_LISTEN_PRT", "1")

    def told(*, is_terminal: bool) -> list[str]:
        monkeypatch.setattr("sys.stderr.isatty", lambda: is_terminal)
        with pytest.raises(SystemExit):
            main.main([command, "-n", "x", "--listen-port", "x", "--log-type", "y"])
        return click.unstyle(capsys.readouterr().err).splitlines()

    assert len(told(is_terminal=True)) == 5
    (line,) = told(is_terminal=False)
    assert line.startswith(
        "Error: 2 settings are wrong: ADDON_OPERATOR_LISTEN_PORT: 'x' (flag --listen-port)"
    )
    assert "; LOG_TYPE: 'y'" in line
    assert "; also set: ADDON_OPERATOR_LISTEN_PRT is not a setting" in line


@pytest.mark.parametrize(
    "closed", [">&-", *(pytest.param(one, marks=pytest.mark.slow) for one in ("<&-", "2>&-")), "<&- >&- 2>&-"]
)
def test_what_is_written_to_a_closed_output_goes_nowhere(closed: str, tmp_path: pathlib.Path) -> None:
    command = f"'{sys.executable}' -m addon_operator settings {closed}"
    ran = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=False, cwd=tmp_path)
    assert (ran.returncode, ran.stderr) == (0, "")


def test_what_the_system_refuses_is_one_sentence(
    tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    with pytest.raises(SystemExit) as ended:
        main.main(["module", "lint"])
    said = "Error: the working directory does not exist any more; change into another one\n"
    assert (ended.value.code, capsys.readouterr().err) == (1, said)


def test_an_error_of_the_system_that_nobody_expected_names_the_path(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail() -> None:
        raise PermissionError(13, "Permission denied", "/closed/" + "a" * 1000 + "/file")

    monkeypatch.setattr(main.cli, "main", lambda **_: fail())
    with pytest.raises(SystemExit) as ended:
        main.main(["version"])
    said = capsys.readouterr().err
    assert ended.value.code == 1
    assert said.endswith("/file: Permission denied; correct its name or its permissions\n")
    assert len(said) < 500


def test_a_python_that_is_too_old_is_told_in_one_sentence_and_every_page_has_the_same_floor() -> None:
    requires = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["requires-python"]
    floor = requires.removeprefix(">=")
    for page in ("README.md", "docs/how-to/install-the-commands.md", "Makefile"):
        assert f"Python {floor} or newer" in (ROOT / page).read_text()
    look = "import sys; sys.version_info = (3, 11, 3); from addon_operator.cli import main"
    done = subprocess.run([sys.executable, "-c", look], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == (
        f"Error: addon-operator needs Python {floor} or newer, and this is 3.11.3; "
        "start it with another one\n"
    )
