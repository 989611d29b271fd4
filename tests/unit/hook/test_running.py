"""From the start of a hook's process to its exit code and files, with the library for hooks in Python."""

import json
import os
import pathlib
import subprocess
import sys
import tempfile
import textwrap
from collections.abc import Callable

import pytest

from addon_operator import hook
from addon_operator.hook_contract.configuration import hook_config

OUTPUTS = ("VALUES_JSON_PATCH_PATH", "CONFIG_VALUES_JSON_PATCH_PATH", "METRICS_PATH", "KUBERNETES_PATCH_PATH")
CONFIG = {"configVersion": "v1", "beforeHelm": 10}
Main = Callable[[hook.Run], None]


class Files:
    """The files of a run of this process, as the operator makes them."""

    def __init__(self, directory: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.directory = directory
        self.write("BINDING_CONTEXT_PATH", [{"binding": "beforeHelm", "snapshots": {}}])
        self.write("VALUES_PATH", {"global": {}, "web": {"size": 2}})
        self.write("CONFIG_VALUES_PATH", {"global": {}, "web": {}})
        for name in OUTPUTS:
            (directory / name).touch()
        for name in ("BINDING_CONTEXT_PATH", "VALUES_PATH", "CONFIG_VALUES_PATH", *OUTPUTS):
            monkeypatch.setenv(name, str(directory / name))
        for name in ("DEBUG", "LOG_LEVEL", "ADDON_OPERATOR_LOG_LEVEL"):
            monkeypatch.delenv(name, raising=False)
        monkeypatch.setattr("sys.argv", ["hook.py"])

    def write(self, name: str, document: object) -> None:
        (self.directory / name).write_text(json.dumps(document))

    def written(self) -> dict[str, str]:
        """What was written to files that are not empty; nothing else may be left."""
        assert len(list(self.directory.iterdir())) == len(OUTPUTS) + 3
        texts = {name: (self.directory / name).read_text() for name in OUTPUTS}
        return {name: text for name, text in texts.items() if text}


@pytest.fixture
def files(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> Files:
    return Files(tmp_path, monkeypatch)


def fails(main: Main, capsys: pytest.CaptureFixture[str]) -> str:
    """What a hook writes to standard error that ends with exit code 1."""
    with pytest.raises(SystemExit) as ended:
        hook.run(CONFIG, main)
    assert ended.value.code == 1
    return capsys.readouterr().err


@pytest.mark.parametrize("given", [CONFIG, json.dumps(CONFIG), "configVersion: v1\nbeforeHelm: 10"], ids=type)
def test_the_configuration_is_printed_and_main_is_not_called(
    given: hook.Config, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.argv", ["hook.py", "--config"])
    hook.run(given, lambda _run: pytest.fail("called"))
    assert (
        hook_config.parse(capsys.readouterr().out, hook_config.HookKind.MODULE, "x").order(
            hook_config.LifecycleBinding.BEFORE_HELM
        )
        == 10
    )


def test_a_configuration_that_is_not_json_is_one_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.argv", ["hook.py", "--config"])
    with pytest.raises(SystemExit):
        hook.run({"configVersion": {"v1"}}, print)
    assert capsys.readouterr().err.startswith("Error: the configuration: this is not JSON: ")


def give_all(run: hook.Run) -> None:
    run.values.set("web.internal.size", run.values["web.size"] + len(run.contexts))
    run.config_values.set("web.seen", value=True)
    run.metrics.set("size", 3)
    run.kubernetes.delete("Job", "old", namespace="shop")


def test_what_main_gives_back_is_written_when_it_has_returned(files: Files) -> None:
    def main(run: hook.Run) -> None:
        give_all(run)
        assert files.written() == {}

    hook.run(CONFIG, main)
    assert {name: json.loads(text) for name, text in files.written().items()} == {
        "VALUES_JSON_PATCH_PATH": [{"op": "add", "path": "/web/internal", "value": {"size": 3}}],
        "CONFIG_VALUES_JSON_PATCH_PATH": [{"op": "add", "path": "/web/seen", "value": True}],
        "METRICS_PATH": {"name": "size", "action": "set", "value": 3},
        "KUBERNETES_PATCH_PATH": {"operation": "Delete", "kind": "Job", "name": "old", "namespace": "shop"},
    }


def test_a_hook_that_gives_nothing_back_writes_nothing(files: Files) -> None:
    hook.run(CONFIG, lambda run: run.values["web.size"])
    assert files.written() == {}


def test_what_the_hook_wrote_itself_stays(files: Files) -> None:
    def main(run: hook.Run) -> None:
        pathlib.Path(os.environ["METRICS_PATH"]).write_text('{"name": "mine", "set": 1}')
        run.metrics.set("ours", 2)

    hook.run(CONFIG, main)
    names = [json.loads(line)["name"] for line in files.written()["METRICS_PATH"].splitlines()]
    assert names == ["mine", "ours"]


def test_exit_code_0_is_success(files: Files) -> None:
    def main(run: hook.Run) -> None:
        run.metrics.set("size", 3)
        sys.exit()

    with pytest.raises(SystemExit) as ended:
        hook.run(CONFIG, main)
    assert ended.value.code is None
    assert list(files.written()) == ["METRICS_PATH"]


def tell(run: hook.Run) -> None:
    give_all(run)
    run.kubernetes.merge_patch(
        "Shop", "x", {"status": {"ok": False}}, subresource="status", ignore_hook_error=True
    )


def refuse(run: hook.Run) -> None:
    tell(run)
    raise hook.HookError("the shop is closed;\n  open it")


def test_a_failure_is_one_line_and_gives_nothing_back_but_patches_that_say_so(
    files: Files, capsys: pytest.CaptureFixture[str]
) -> None:
    line = refuse.__code__.co_firstlineno + 2
    told = fails(refuse, capsys)
    assert told == f"Error: the shop is closed; open it ({pathlib.Path(__file__).name}, line {line})\n"
    assert list(files.written()) == ["KUBERNETES_PATCH_PATH"]
    assert json.loads(files.written()["KUBERNETES_PATCH_PATH"])["kind"] == "Shop"


def test_an_exit_code_of_its_own_gives_nothing_else_back_either(files: Files) -> None:
    def main(run: hook.Run) -> None:
        tell(run)
        sys.exit(7)

    with pytest.raises(SystemExit) as ended:
        hook.run(CONFIG, main)
    assert ended.value.code == 7
    assert json.loads(files.written()["KUBERNETES_PATCH_PATH"])["kind"] == "Shop"


def divide(run: hook.Run) -> None:
    run.values.set("web.size", 1 // len(run.snapshots))


def test_an_unexpected_error_is_one_line_with_its_kind_and_the_hooks_own_line(
    files: Files, capsys: pytest.CaptureFixture[str]
) -> None:
    line = divide.__code__.co_firstlineno + 1
    told = fails(divide, capsys)
    assert told.startswith("Error: ZeroDivisionError: ")
    assert told.endswith(f"({pathlib.Path(__file__).name}, line {line})\n")
    assert told.count("\n") == 1
    assert files.written() == {}


@pytest.mark.parametrize(
    ("variable", "value", "shown"),
    [
        ("DEBUG", "1", True),
        ("DEBUG", "0", False),
        ("LOG_LEVEL", "debug", True),
        ("ADDON_OPERATOR_LOG_LEVEL", "DEBUG", True),
        ("LOG_LEVEL", "info", False),
    ],
)
def test_a_traceback_is_for_debugging(
    files: Files,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    variable: str,
    value: str,
    shown: bool,
) -> None:
    monkeypatch.setenv(variable, value)
    told = fails(divide, capsys)
    assert ("Traceback" in told) == shown
    assert told.splitlines()[-1].startswith("Error: ZeroDivisionError")


def test_values_are_only_read_when_somebody_looks(files: Files) -> None:
    (files.directory / "VALUES_PATH").write_text("{")
    hook.run(CONFIG, lambda run: run.metrics.add(run.contexts[0].binding))
    assert list(files.written()) == ["METRICS_PATH"]


@pytest.mark.parametrize(
    ("spoil", "sentence"),
    [
        (lambda path: path.write_text("{"), "VALUES_PATH is not JSON: Expecting property name"),
        (pathlib.Path.unlink, "VALUES_PATH cannot be read: No such file or directory"),
    ],
    ids=["no JSON", "no file"],
)
def test_a_file_that_cannot_be_read_is_named(
    files: Files, capsys: pytest.CaptureFixture[str], spoil: Callable[[pathlib.Path], object], sentence: str
) -> None:
    spoil(files.directory / "VALUES_PATH")
    told = fails(give_all, capsys)
    assert told.startswith("Error: VALUES_PATH: /")
    assert sentence in told


@pytest.mark.parametrize("name", ["VALUES_PATH", "METRICS_PATH"])
def test_a_hook_that_is_run_by_hand_says_which_variable_is_missing(
    files: Files, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    monkeypatch.delenv(name)
    told = fails(give_all, capsys)
    assert told.startswith(f"Error: {name} is not set; the operator sets it when it starts a hook")
    assert files.written() == {}


def test_a_file_that_cannot_be_written_leaves_all_others_as_they_were(
    files: Files, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("KUBERNETES_PATCH_PATH", str(files.directory / "gone" / "file"))
    told = fails(give_all, capsys)
    assert "cannot be written: No such file or directory" in told
    assert files.written() == {}


def test_a_pipe_gets_what_the_hook_gives_back(
    files: Files, monkeypatch: pytest.MonkeyPatch, tmp_path: pathlib.Path
) -> None:
    reading, writing = os.pipe()
    monkeypatch.setenv("METRICS_PATH", f"/dev/fd/{writing}")
    hook.run(CONFIG, lambda run: run.metrics.set("size", 3))
    os.close(writing)
    with os.fdopen(reading) as pipe:
        assert json.loads(pipe.read())["name"] == "size"


TRIED = """
from addon_operator import hook
print("first", flush=True)
hook.run({}, lambda run: run.metrics.set("size", 3))
print("last")
"""


def test_a_hook_that_is_tried_by_hand_can_write_to_its_standard_output(files: Files) -> None:
    output = files.directory.parent / "output"
    with output.open("w") as stdout:
        environ = {**os.environ, "METRICS_PATH": "/dev/stdout"}
        subprocess.run([sys.executable, "-c", TRIED], check=True, stdout=stdout, env=environ)
    assert pathlib.Path("/dev/stdout").is_symlink()
    assert files.written() == {}
    assert '{"name": "size", "action": "set", "value": 3}' in output.read_text()


def test_files_in_memory_are_files_like_others(monkeypatch: pytest.MonkeyPatch) -> None:
    memory = pathlib.Path("/dev/shm")
    if not os.access(memory, os.W_OK):
        pytest.skip("there is no file system in memory")
    with tempfile.TemporaryDirectory(dir=memory) as directory:
        files = Files(pathlib.Path(directory), monkeypatch)
        monkeypatch.setenv("KUBERNETES_PATCH_PATH", f"{directory}/gone/file")
        with pytest.raises(SystemExit):
            hook.run(CONFIG, give_all)
        assert files.written() == {}


def test_the_file_behind_a_link_is_written(files: Files, monkeypatch: pytest.MonkeyPatch) -> None:
    link = files.directory.parent / "link"
    link.symlink_to(files.directory / "METRICS_PATH")
    monkeypatch.setenv("METRICS_PATH", str(link))
    hook.run(CONFIG, lambda run: run.metrics.set("size", 3))
    assert link.is_symlink()
    assert list(files.written()) == ["METRICS_PATH"]


def test_an_enabled_script_can_read_values_without_contexts_and_outputs(files: Files) -> None:
    run = hook.Run(environ={"VALUES_PATH": str(files.directory / "VALUES_PATH")})
    assert run.values["web.size"] == 2


def test_authors_can_test_a_hook_without_files() -> None:
    run = hook.Run(
        contexts=[{"binding": "x"}], values={"web": {"size": 1}}, config_values={"web": {}}, environ={}
    )
    give_all(run)
    assert run.values.patch == [{"op": "add", "path": "/web/internal", "value": {"size": 2}}]
    assert json.loads(run.outputs()["CONFIG_VALUES_JSON_PATCH_PATH"])[0]["path"] == "/web/seen"


EXAMPLE = textwrap.dedent(str(hook.__doc__).split("::\n", 1)[1].split("\nThe contract")[0])


def test_the_example_of_the_library_does_what_it_says(files: Files) -> None:
    example = files.directory.parent / "example.py"
    example.write_text(EXAMPLE)
    files.write("VALUES_PATH", {"global": {"highAvailability": True}, "web": {}})
    subprocess.run([sys.executable, example], check=True)
    (operation,) = json.loads(files.written()["VALUES_JSON_PATCH_PATH"])
    assert operation == {"op": "add", "path": "/web/internal", "value": {"replicas": 2}}


def test_a_python_that_is_too_old_is_reported_in_one_line() -> None:
    look = "import sys; sys.version_info = (3, 9, 2); from addon_operator import hook"
    done = subprocess.run([sys.executable, "-c", look], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr.count("\n")) == (1, 1)
    assert "needs Python 3.11 or newer, and this is 3.9; name another one" in done.stderr


def test_the_library_imports_nothing_but_the_standard_library_and_not_much_of_that() -> None:
    look = "import sys; from addon_operator import hook; print(*sys.modules)"
    said = subprocess.run(
        [sys.executable, "-c", look], capture_output=True, text=True, check=True
    ).stdout.split()
    ours = {name for name in said if name.startswith("addon_operator.")}
    assert {name.split(".")[1] for name in ours} == {"hook", "kernel"}
    slow = {
        "asyncio",
        "pathlib",
        "inspect",
        "dataclasses",
        "logging",
        "subprocess",
        "structlog",
        "yaml",
        "orjson",
    }
    assert slow & set(said) == set()


def test_a_run_imports_neither_typing_nor_copy_and_names_for_annotations_are_there_all_the_same() -> None:
    source = str(pathlib.Path(hook.__file__).parents[2])
    look = "from addon_operator import hook; print(*sys.modules); print(hook.Config, hook.Path)"
    said = subprocess.run(
        [sys.executable, "-I", "-S", "-c", f"import sys; sys.path.insert(0, {source!r}); {look}"],
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    assert not {"typing", "copy", "contextlib"} & set(said.splitlines()[0].split())
    with pytest.raises(AttributeError, match="has no attribute 'Paths'"):
        hook.Paths  # type: ignore[attr-defined]  # noqa: B018 - it raises
