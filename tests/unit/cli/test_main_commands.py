"""What all commands have in common, those of tomorrow included: formats, tables, and names of clusters."""

import ast
import pathlib
import re
from collections.abc import Iterator
from typing import Final

import click
import pytest
from click import testing

from addon_operator import cli
from addon_operator.cli import completion, main
from addon_operator.settings import settings, settings_loading
from tests.support import rows
from tests.unit.cli.verbs import GROUPS, LEAVES

SOURCES: Final = sorted(pathlib.Path(str(cli.__file__)).parent.rglob("*.py"))
DOCUMENTS: Final = {
    "config": {"module", "global"},
    "describe": {"module"},
    "diff": {"module"},
    "patches": {"module", "global"},
    "snapshots": {"module", "global"},
    "values": {"global"},
    "version": {""},
}
"""Commands that print one document or text, and the groups that they are in; all others print rows."""
GIVEN_FORMATS: Final = {"preview pod": {"yaml", "json", "diff"}}
"""Commands that print documents for other programs alone."""
MORE_FORMATS: Final = {"plan": {"markdown"}, "lint": {"github", "sarif"}, "module lint": {"github", "sarif"}}
LIST: Final = {"table", "wide", "yaml", "json", "name"}
NAMES_OF_LISTS: Final = {
    "list",
    "status",
    "check",
    "lint",
    "settings",
    "resource-monitor",
    "main",
    "plan",
    "why",
}
PRINTS_ROWS_BESIDE_PYTEST: Final = "module_verbs.py"


def options(command: click.Command) -> dict[str, click.Option]:
    return {
        name: option for option in command.params if isinstance(option, click.Option) for name in option.opts
    }


def formats(option: click.Option) -> set[str]:
    return set(option.type.get_metavar(option, click.Context(click.Command("x")))[1:-1].split("|"))  # type: ignore[index]


FORMATS: Final = {
    name: formats(option) for name, command in LEAVES.items() if (option := options(command).get("-o"))
}


def expected(name: str) -> set[str]:
    group, _, verb = name.rpartition(" ")
    if name in GIVEN_FORMATS:
        return GIVEN_FORMATS[name]
    if group in DOCUMENTS.get(verb, ()):
        return {"table", "yaml", "json"}
    return LIST | MORE_FORMATS.get(name, set())


@rows.each("name", FORMATS)
def test_every_command_has_the_one_set_of_formats(name: str) -> None:
    assert FORMATS[name] == expected(name)


@rows.each("name", [name for name in LEAVES if name.split()[-1] in NAMES_OF_LISTS])
def test_every_command_that_lists_something_has_formats(name: str) -> None:
    assert FORMATS[name] >= LIST


def calls(name: str) -> Iterator[tuple[pathlib.Path, ast.Call]]:
    for file in SOURCES:
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.Call) and ast.unparse(node.func) == name:
                yield file, node


def test_there_is_one_kind_of_table_and_all_of_it_can_be_had() -> None:
    tables = {file.name for file in SOURCES if "rich.table" in file.read_text()}
    assert tables == {"printing.py", "dev_screen.py"}, "the second is a screen"
    cut = {
        file.name for file, call in calls("printing.listing") if "wide" not in {k.arg for k in call.keywords}
    }
    assert cut == {PRINTS_ROWS_BESIDE_PYTEST}


CLUSTER: Final = {"-n": "--namespace", "--context": "--kube-context", "--kubeconfig": "--kube-config"}
"""How kubectl names a cluster and a namespace, and how such an option may be called besides."""
WRITES_A_FILE: Final = "devcluster up"
"""Its --kubeconfig is a file that it writes, of a cluster that it starts."""


@rows.each("name", LEAVES)
def test_a_cluster_is_named_as_kubectl_does_it_everywhere(name: str) -> None:
    given = options(LEAVES[name])
    if name == WRITES_A_FILE:
        assert "--kubeconfig" in given
        return
    about = {option for option in given if "namespace" in option or "kube-co" in option or "kubeco" in option}
    about -= {"--keep-namespace"}
    if {"--context", "-n", *about} & set(given):
        assert set(CLUSTER) <= set(given)
    for short, long in CLUSTER.items():
        option = given.get(short)
        if option is not None:
            assert set(option.opts) <= {short, long, "--kubeconfig", "--context"}, "it means nothing else"


@rows.each("name", LEAVES)
def test_the_shell_completes_contexts_and_namespaces_wherever_one_is_named(name: str) -> None:
    given = options(LEAVES[name])
    completed = {"--context": completion.complete_context, "-n": completion.complete_namespace}
    for option, complete in completed.items():
        if option in given:
            assert given[option]._custom_shell_complete is complete


def test_every_command_that_asks_a_cluster_takes_it() -> None:
    asking = {name for name, command in LEAVES.items() if "--debug-unix-socket" in options(command)}
    asking |= {"plan", "preview pod", "dev", "start", "settings", "page", "raw"}
    assert {name for name in asking if not set(CLUSTER) <= set(options(LEAVES[name]))} == set()


PATHS: Final = ("PATH", "PATHS", "FILE", "DIR", "MODULE_DIR")
NEEDS: Final = {
    "config set": ["log.level", "debug"],
    "module suspend": ["web", "--reason", "x"],
    "new hook": ["web/x"],
    "preview pod": ["--no-cluster"],
    "values show": ["web"],
}
"""What a command needs besides, if that is not one word for each argument."""
STARTS_SOMETHING: Final = {
    ("devcluster up", "--kubeconfig"),
    ("plan", "--record"),
    ("plan", "--base"),
    ("dev", "--kubeconfig"),
    ("new module", "directory"),
}
"""What is looked at only once a cluster is there, or made."""
NOWHERE: Final = "some/nowhere"


def paths() -> Iterator[tuple[str, str]]:
    """Return all parameters that name a file or a directory; settings are walked below."""
    of_settings = {flag for row in settings.TABLE.values() for flag in row.flags}
    for name, command in LEAVES.items():
        takes_settings = name in ("start", "plan", "settings")
        for param in command.params:
            words = set(re.split(r"[^A-Z_-]+", param.make_metavar(click.Context(command))))
            if words & set(PATHS) and not (takes_settings and of_settings & set(param.opts)):
                yield name, param.opts[0]


def words_of(name: str, option: str) -> list[str]:
    command = LEAVES[name]
    needed = NEEDS.get(name) or [
        "a-word"
        for param in command.params
        if isinstance(param, click.Argument) and param.required and param.name != option
    ]
    given = [option, NOWHERE] if option.startswith("-") else [NOWHERE]
    if option == "--kubeconfig" and name == "preview pod":
        needed = []
    if name == "preview pod" and option != "-f":
        given += ["-f", "pod.yaml"]
    return [*name.split(), *needed, *given]


@rows.each(
    ("name", "option"),
    sorted(each for each in paths() if each not in STARTS_SOMETHING and each != ("module why", "path")),
    ids=str,
)
def test_a_path_of_the_user_is_absolute_in_every_message(
    name: str, option: str, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "modules/010-web").mkdir(parents=True, exist_ok=True)
    (tmp_path / "pod.yaml").write_text("{apiVersion: v1, kind: Pod, metadata: {name: web}}")
    monkeypatch.chdir(tmp_path)
    ran = testing.CliRunner().invoke(main.cli, words_of(name, option), standalone_mode=False)
    said = f"{ran.output} {ran.exception or ''}"
    mentions = re.findall(r"[^\s'\"(:]*some/nowhere", said)
    assert ran.exception is not None or ran.return_value, said
    assert mentions, said
    assert set(mentions) == {f"{tmp_path}/{NOWHERE}"}, said


@rows.each(("name", "option"), sorted({*paths()} - {("module why", "path")}), ids=str)
def test_the_shell_completes_names_of_files_wherever_one_is_wanted(name: str, option: str) -> None:
    command = LEAVES[name]
    (param,) = [each for each in command.params if option in each.opts]
    offered = param.shell_complete(click.Context(command), "some/no")
    assert [(item.value, item.type) for item in offered] == [("some/no", "file")]


@rows.each(
    ("name", "command"), [*LEAVES.items()], ids=lambda each: str(each) if isinstance(each, str) else ""
)
def test_the_shell_completes_names_of_modules_wherever_an_operator_is_asked_about_one(
    name: str, command: click.Command
) -> None:
    asked = [
        each
        for each in command.params
        if isinstance(each, click.Argument) and "MODULE" in each.make_metavar(click.Context(command))
    ]
    if "--debug-unix-socket" in options(command):
        for param in asked:
            assert param._custom_shell_complete is completion.complete_module, name


def test_a_path_of_the_operator_is_absolute_whichever_setting_it_is() -> None:
    relative = {
        field: "a/b" for field, row in settings.TABLE.items() if row.type.metavar in ("PATH", "PATHS")
    }
    loaded = settings_loading.in_force(settings_loading.load({"namespace": "addons", **relative}, {}))
    for field in relative:
        found = getattr(loaded, field)
        for path in found if isinstance(found, tuple) else (found,):
            assert path == pathlib.Path("a/b").absolute(), field


PASS_ALL_ON: Final = {"devcluster kubectl", "devcluster helm"}
"""What they are given is for another program."""
TAKE_SETTINGS: Final = {"plan", "settings", "start"}
"""Wrong values of these are told all at once, with their variables."""


def wrong_lines() -> Iterator[tuple[str, ...]]:
    """All command lines that are wrong in a way that every command can be."""
    for name, command in LEAVES.items():
        words = tuple(name.split())
        arguments = [each for each in command.params if isinstance(each, click.Argument)]
        required = [each for each in arguments if each.required]
        if name not in PASS_ALL_ON:
            yield *words, "--nonsense"
            yield *words, "--hepl"
        if name not in PASS_ALL_ON and all(each.nargs == 1 for each in arguments):
            yield *words, *["a"] * (len(arguments) + 1)
        if required:
            yield words
            yield *words, *[""] * len(required)
        if "-o" in options(command):
            yield *words, *["a"] * len(required), "-o", "tabel"
            yield *words, "-o"
        if "--debug-unix-socket" in options(command) and name not in TAKE_SETTINGS:
            yield *words, *["a"] * len(required), "-n", "Not_One"
            yield *words, *["a"] * len(required), "--context", ""
    for name in GROUPS:
        yield *name.split(), "wrnog"
        yield *name.split(), "--wrnog"


@rows.each("line", [*wrong_lines()], ids=" ".join)
def test_a_wrong_command_line_is_told_in_one_sentence_with_code_2(
    line: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        main.main(line)
    told = capsys.readouterr()
    assert (ended.value.code, told.out) == (2, ""), told.err
    assert told.err.startswith("Error: ")
    assert told.err.count("\n") == 1, "one line"
    assert not told.err.rstrip().endswith("."), "one sentence, as all errors"
    if line[-1] in ("--nonsense", "wrnog", "--wrnog"):
        path = " ".join(("addon-operator", *(line[:-1] or ("start",) * (line[-1] == "--wrnog"))))
        assert f"'{path} --help' lists them all" in told.err, "nothing is near"
    if line[-1] == "--hepl":
        assert told.err.rstrip().endswith("did you mean '--help'?")


def needed(command: click.Command) -> list[click.Option]:
    return [each for each in command.params if isinstance(each, click.Option) and each.required]


@rows.each("name", [name for name, command in LEAVES.items() if needed(command)])
def test_a_command_without_an_option_that_it_needs_says_what_that_is_for_and_the_whole_line(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    command = LEAVES[name]
    arguments = [each for each in command.params if isinstance(each, click.Argument) and each.required]
    with pytest.raises(SystemExit):
        main.main([*name.split(), *["a"] * len(arguments)])
    told = capsys.readouterr().err
    (option,) = needed(command)
    assert option.help
    purpose = option.help.partition(". ")[0].rstrip(".")
    assert purpose.count(" ") > 3, "more than its name says"
    assert f"{max(option.opts, key=len)} is missing: {purpose[0].lower()}{purpose[1:]}; write " in told
    words = ["addon-operator", *name.split(), "[OPTIONS]"]
    words += [str(each.metavar) for each in arguments]
    assert told.endswith(f"; write {' '.join(words)} {max(option.opts, key=len)} {option.metavar}\n")


@pytest.mark.parametrize(
    "line", ["devcluster --name one kubectl get pods", "module -n addons list", "queue -o json"]
)
def test_an_option_before_its_command_is_sent_behind_it(
    line: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        main.main(line.split())
    group, option = line.split()[:2]
    assert (
        f"put it behind the command: 'addon-operator {group} COMMAND {option} …'" in capsys.readouterr().err
    )


@rows.each("width", [40, 80])
@rows.each("name", [*GROUPS, *(each for each in LEAVES if each not in PASS_ALL_ON)])
def test_help_fits_a_terminal_and_cuts_no_sentence(
    name: str, width: int, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    with pytest.raises(SystemExit) as ended:
        main.main([*name.split(), "--help"])
    told = capsys.readouterr()
    assert (ended.value.code, told.err) == (0, "")
    lines = told.out.splitlines()
    commands = lines[lines.index("Commands:") :] if "Commands:" in lines else []
    assert [line for line in commands if line.endswith("...")] == []
    too_long = [line for line in lines if len(line) > width and " " in line.strip()]
    assert width == 40 or too_long == [], too_long
