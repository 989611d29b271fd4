"""Mistakes that show before the cluster is needed: one sentence that says what, where and what to do."""

import logging
import os
import pathlib
from collections.abc import Callable, Iterator

import pytest
import structlog

from addon_operator.cli import main
from addon_operator.kernel import errors
from addon_operator.loading import preflight
from addon_operator.process import workspaces
from addon_operator.settings import settings

Start = Callable[..., str]
"""Starts the operator with these options and gives back the sentence with which it refuses."""

KUBECONFIG = """\
apiVersion: v1
kind: Config
current-context: here
contexts: [{name: here, context: {cluster: here, user: me}}]
clusters: [{name: here, cluster: {server: "http://127.0.0.1:1"}}]
users: [{name: me, user: {token: t}}]
"""


@pytest.fixture
def untouched_logging() -> Iterator[None]:
    root = logging.getLogger()
    handlers, level = list(root.handlers), root.level
    yield
    root.handlers[:] = handlers
    root.setLevel(level)
    structlog.reset_defaults()


@pytest.fixture
def modules(tmp_path: pathlib.Path) -> pathlib.Path:
    (tmp_path / "modules" / "010-web").mkdir(parents=True)
    return tmp_path / "modules"


def executable(path: pathlib.Path, body: str) -> pathlib.Path:
    path.write_text(f"#!/bin/sh\n{body}\n")
    path.chmod(0o755)
    return path


@pytest.fixture
def start(
    modules: pathlib.Path,
    tmp_path: pathlib.Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    untouched_logging: None,
) -> Start:
    for name in [*os.environ]:
        if name not in {"PATH", "LANG", "TMPDIR"}:
            monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "kubeconfig").write_text(KUBECONFIG)
    defaults = {
        "--namespace": "addons",
        "--modules-dir": str(modules),
        "--helm-bin-path": str(executable(tmp_path / "helm", "echo v3.19.0")),
        "--kube-config": str(tmp_path / "kubeconfig"),
        "--tmp-dir": str(tmp_path / "tmp"),
        "--listen-address": "127.0.0.1",
        "--listen-port": "0",
        "--debug-unix-socket": str(tmp_path / "debug.socket"),
    }

    def run(**options: str | None) -> str:
        given = defaults | {f"--{name.replace('_', '-')}": value for name, value in options.items()}
        words = [word for name, value in given.items() if value is not None for word in (name, str(value))]
        with pytest.raises(SystemExit) as ended:
            main.main(["start", *words])
        assert ended.value.code == 1
        printed = capsys.readouterr().err
        assert "Traceback" not in printed
        # What is wrong before the log begins is said plainly, and all else in a record of it.
        told = (
            line for line in printed.splitlines() if line.startswith("Error: ") or " level=error " in line
        )
        sentences = [line.replace('\\"', '"') for line in told]
        assert len(sentences) == 1, printed
        return sentences[0]

    return run


def test_no_namespace(start: Start) -> None:
    sentence = start(namespace=None)
    assert "ADDON_OPERATOR_NAMESPACE" in sentence
    assert "--namespace" in sentence


def test_a_missing_modules_directory(start: Start, tmp_path: pathlib.Path) -> None:
    sentence = start(modules_dir=tmp_path / "mistyped")
    assert f"{tmp_path}/mistyped does not exist" in sentence
    assert "--modules-dir" in sentence


def test_a_missing_global_hooks_directory(start: Start, tmp_path: pathlib.Path) -> None:
    sentence = start(global_hooks_dir=tmp_path / "mistyped")
    assert f"{tmp_path}/mistyped does not exist" in sentence
    assert "--global-hooks-dir" in sentence


def test_a_file_in_the_place_of_the_global_hooks_directory(start: Start, tmp_path: pathlib.Path) -> None:
    (tmp_path / "file").write_text("")
    assert f"{tmp_path}/file is not a directory" in start(global_hooks_dir=tmp_path / "file")


def test_a_directory_for_temporary_files_that_everybody_may_write_in(
    modules: pathlib.Path, tmp_path: pathlib.Path
) -> None:
    shared = tmp_path / "shared"
    shared.mkdir()
    shared.chmod(0o777)
    chosen = settings.Settings(namespace="addons", modules_dirs=(modules,), tmp_dir=shared)
    with pytest.raises(errors.ConfigurationError, match=r"is not safe: .*TMP_DIR") as caught:
        preflight.remove_dead_workspaces(chosen)
    assert str(shared) in str(caught.value)
    shared.chmod(0o700)
    with preflight.workspace(chosen) as path:
        assert path.parent == shared
    assert list(shared.iterdir()) == []


def test_what_is_short_has_a_private_place_in_memory_that_goes(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kinds = {tmp_path / "memory": True}
    (tmp_path / "memory").mkdir(mode=0o700)
    monkeypatch.setattr(preflight, "MEMORY", tmp_path / "memory")
    monkeypatch.setattr(workspaces, "is_in_memory", lambda path: kinds.get(path, False))
    with preflight.memory_workspace(tmp_path) as place:
        assert place is not None
        assert (place.parent, place.stat().st_mode & 0o777) == (tmp_path / "memory", 0o700)
    assert list((tmp_path / "memory").iterdir()) == []
    kinds[tmp_path] = True
    with preflight.memory_workspace(tmp_path) as place:
        assert place == tmp_path / "short", "that of temporary files is in memory itself"


@pytest.mark.parametrize("spoil", ["not in memory", "not there", "everybody's"])
def test_where_memory_is_of_no_use_there_is_no_such_place(
    spoil: str, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    memory = tmp_path / "memory"
    monkeypatch.setattr(preflight, "MEMORY", memory)
    monkeypatch.setattr(workspaces, "is_in_memory", lambda path: path == memory and spoil != "not in memory")
    if spoil != "not there":
        memory.mkdir()
        memory.chmod(0o777 if spoil == "everybody's" else 0o700)
    with preflight.memory_workspace(tmp_path) as place:
        assert place is None


@pytest.fixture
def reading(modules: pathlib.Path) -> Callable[..., str]:
    """What the operator says of the modules when it reads them, which is before all that takes time.

    What is wrong with one module is no error but that module's problem.
    """

    def read(*more: pathlib.Path) -> str:
        chosen = settings.Settings(namespace="addons", modules_dirs=(modules, *more))
        try:
            found = preflight.load_modules(chosen).modules
        except errors.AddonOperatorError as error:
            return str(error)
        return "; ".join(files.module.problem for files in found if files.module.problem)

    return read


BROKEN_VALUES = {
    "not closed": ("web:\n  a: [1\n", ["line"]),
    "a key twice": ("web:\n  a: 1\n  a: 2\n", ["line 3", "a"]),
    "a key that is not a string": ("web:\n  ~: x\n", ["line 2", "string"]),
    "a section that is not a mapping": ("web: 5\n", ["line 1", "web", "mapping"]),
    "a switch": ("webEnabled: maybe\n", ["line 1", "webEnabled", "true or false"]),
}


@pytest.mark.parametrize("file", ["values.yaml", "010-web/values.yaml"])
def test_broken_values_files(reading: Callable[[], str], modules: pathlib.Path, file: str) -> None:
    missing: list[tuple[str, str]] = []
    for name, (text, words) in BROKEN_VALUES.items():
        (modules / file).write_text(text)
        sentence = reading()
        missing += [(name, word) for word in [str(modules / file), *words] if word not in sentence]
    assert missing == []


def test_a_module_that_sets_values_of_another_one(reading: Callable[[], str], modules: pathlib.Path) -> None:
    (modules / "010-web" / "values.yaml").write_text("api: {a: 1}\n")
    sentence = reading()
    assert str(modules / "010-web" / "values.yaml") in sentence
    assert "'api'" in sentence or "key api" in sentence


@pytest.mark.parametrize("directory", ["020-My_Web", "020-web-2", "020-web--api", "Web"])
def test_a_module_name_that_does_not_survive_the_way_to_its_values_key(
    reading: Callable[[], str], modules: pathlib.Path, directory: str
) -> None:
    (modules / directory / "hooks").mkdir(parents=True)
    sentence = reading()
    assert str(modules / directory) in sentence
    assert "rename" in sentence


def test_two_modules_of_one_name(
    reading: Callable[..., str], modules: pathlib.Path, tmp_path: pathlib.Path
) -> None:
    (tmp_path / "more" / "020-web").mkdir(parents=True)
    sentence = reading(tmp_path / "more")
    for word in ("'web'", str(modules / "010-web"), str(tmp_path / "more" / "020-web"), "rename"):
        assert word in sentence


def test_a_helm_that_is_too_old(start: Start, tmp_path: pathlib.Path) -> None:
    helm = executable(tmp_path / "other-helm", "echo v2.17.0")
    sentence = start(helm_bin_path=helm)
    for word in [str(helm), "HELM_BIN_PATH", "v2.17.0", "too old", "Helm 3.17"]:
        assert word in sentence


def test_a_helm_that_is_not_there(start: Start, tmp_path: pathlib.Path) -> None:
    sentence = start(helm_bin_path=tmp_path / "mistyped")
    assert f"{tmp_path}/mistyped" in sentence
    assert "does not exist" in sentence


def test_no_helm_in_path(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    sentence = start(helm_bin_path=None)
    assert "'helm'" in sentence
    assert "PATH" in sentence


def test_a_context_that_is_not_there(start: Start) -> None:
    sentence = start(kube_context="staging")
    assert "'staging'" in sentence
    assert "here" in sentence
