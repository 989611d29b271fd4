"""``addon-operator devcluster`` as far as it goes without a cluster."""

import contextlib
import dataclasses
import json
import os
import pathlib
import signal
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NoReturn

import pytest

from addon_operator.cli import main
from addon_operator.devcluster import layout, locations, state
from addon_operator.process import commands, daemons
from tests.unit.devcluster import fakes


@dataclasses.dataclass(frozen=True, slots=True)
class Outcome:
    code: int | str | None
    out: str
    err: str


class Terminal:
    """Runs the command line in this process."""

    def __init__(self, capsys: pytest.CaptureFixture[str], root: pathlib.Path) -> None:
        self._capsys = capsys
        self.root = root

    def run(self, *arguments: str) -> Outcome:
        with pytest.raises(SystemExit) as ended:
            main.main(["devcluster", *arguments])
        captured = self._capsys.readouterr()
        return Outcome(ended.value.code, captured.out, captured.err)

    def pretend(self, name: str) -> layout.Layout:
        """A cluster whose only process is this one; it must not be ended."""
        where = layout.Layout(self.root / name)
        where.root.mkdir(parents=True)
        where.make()
        own = daemons.ProcessTable().identify(os.getpid())
        assert own is not None
        parts = {"etcd": state.StartedProgram(own, ("etcd",))}
        state.save(where.state, state.ClusterState("v1.36.3", "ready", 6443, parts))
        return where


@pytest.fixture
def terminal(
    capsys: pytest.CaptureFixture[str], tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> Terminal:
    monkeypatch.setenv(locations.STATE_VARIABLE, str(tmp_path / "clusters"))
    monkeypatch.setenv(locations.CACHE_VARIABLE, str(tmp_path / "cache"))
    monkeypatch.setenv("COLUMNS", "160")
    return Terminal(capsys, tmp_path / "clusters")


def test_without_a_cluster_status_says_how_to_start_one(terminal: Terminal) -> None:
    ended = terminal.run("status")
    assert (ended.code, ended.out) == (
        0,
        "There is no cluster; start one with 'addon-operator devcluster up'\n",
    )
    assert terminal.run("status", "-o", "json").out == "[]\n"


def test_status_shows_each_cluster_with_its_processes(terminal: Terminal) -> None:
    terminal.pretend("one")
    (terminal.root / "two").mkdir()
    heading, one, two = terminal.run("status").out.splitlines()
    assert heading.split() == ["NAME", "VERSION", "STATE", "URL", "COMPONENTS"]
    assert one.split() == ["one", "v1.36.3", "running", "https://127.0.0.1:6443", "etcd", f"({os.getpid()})"]
    assert two.split() == ["two", "-", "interrupted", "-", "-"]
    assert terminal.run("status", "-o", "name").out == "devcluster/one\ndevcluster/two\n"


def test_status_is_json_for_programs(terminal: Terminal) -> None:
    where = terminal.pretend("one")
    assert json.loads(terminal.run("status", "-o", "json").out) == [
        {
            "name": "one",
            "condition": "running",
            "version": "v1.36.3",
            "url": "https://127.0.0.1:6443",
            "kubeconfig": str(where.kubeconfig),
            "components": {"etcd": os.getpid()},
        }
    ]


def test_env_prints_lines_for_a_shell(terminal: Terminal) -> None:
    where = terminal.pretend("one")
    assert terminal.run("env", "--name", "one").out.splitlines() == [
        f"export KUBECONFIG={where.kubeconfig}",
        f"export KUBEBUILDER_ASSETS={where.bin}",
        f'export PATH={where.bin}:"$PATH"',
    ]


@pytest.mark.parametrize(
    "verb", [["env"], ["kubectl", "get", "pods"], ["helm", "list"]], ids=lambda verb: verb[0]
)
def test_a_cluster_that_does_not_run_is_reported_in_one_sentence(terminal: Terminal, verb: list[str]) -> None:
    ended = terminal.run(*verb)
    sentence = "the cluster default does not run; start it with 'addon-operator devcluster up'"
    assert (ended.code, ended.out, ended.err) == (1, "", f"Error: {sentence}\n")


@pytest.mark.parametrize("verb", ["up", "down", "env", "kubectl", "helm"])
def test_a_bad_name_is_reported_in_one_sentence(terminal: Terminal, verb: str) -> None:
    ended = terminal.run(verb, "--name", "../etc")
    assert ended.code == 2
    assert "'../etc' cannot be the name of a cluster" in ended.err
    assert not terminal.root.exists()


def test_down_of_nothing_says_so(terminal: Terminal) -> None:
    ended = terminal.run("down")
    assert (ended.code, ended.out) == (0, "There is no cluster default\n")


def test_down_removes_what_an_interrupted_up_left(terminal: Terminal) -> None:
    (terminal.root / "default/pki").mkdir(parents=True)
    assert terminal.run("down").out == "The cluster default is removed\n"
    assert list(terminal.root.iterdir()) == []


def test_an_unknown_version_is_reported_with_those_there_are(terminal: Terminal) -> None:
    ended = terminal.run("up", "--version", "1.20")
    assert ended.code == 2
    assert "'1.20' is not one of '1.37', '1.36', '1.35'" in ended.err


def test_an_unknown_component_is_reported_with_those_there_are(terminal: Terminal) -> None:
    ended = terminal.run("build", "helm4", "docker")
    assert ended.code == 1
    assert "there is no component 'docker'; there are control-plane, helm4" in ended.err


def test_a_cache_that_cannot_be_written_is_reported_in_one_sentence(terminal: Terminal) -> None:
    (terminal.root.parent / "cache").write_text("a file")
    ended = terminal.run("build", "helm4")
    assert ended.code == 1
    assert f"set {locations.CACHE_VARIABLE} to one that can" in ended.err


@pytest.mark.parametrize("verb", ["kubectl", "helm"])
def test_kubectl_and_helm_become_those_programs(
    terminal: Terminal, monkeypatch: pytest.MonkeyPatch, verb: str
) -> None:
    where = terminal.pretend("one")
    become: list[tuple[Sequence[str], Mapping[str, str]]] = []

    def replace(argv: Sequence[str], env: Mapping[str, str]) -> NoReturn:
        become.append((argv, env))
        sys.exit(7)

    monkeypatch.setattr(commands, "replace", replace)
    monkeypatch.setenv("HELM_KUBETOKEN", "of-another-cluster")
    assert terminal.run(verb, "--name", "one", "get", "-o", "name", "--help").code == 7
    ((argv, env),) = become
    assert argv == [str(where.bin / verb), "get", "-o", "name", "--help"]
    assert (env["KUBECONFIG"], env["PATH"]) == (str(where.kubeconfig), os.environ["PATH"])
    assert "HELM_KUBETOKEN" not in env


@pytest.mark.parametrize(
    "number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT], ids=lambda number: number.name
)
def test_an_ended_build_leaves_nothing_half_made(
    terminal: Terminal, monkeypatch: pytest.MonkeyPatch, number: signal.Signals
) -> None:
    root = terminal.root.parent
    # More than a pipe holds: the signal comes when somebody reads, and so knows of this process.
    builds = f"echo $$ > {root}/pid; printf %100000s; kill -{number} $PPID; exec sleep 60"
    go = fakes.write_program(
        root / "bin/go", f"case $1 in version) echo go version go1.26.8;; build) {builds};; esac"
    )
    monkeypatch.setenv("PATH", f"{go.parent}:/usr/bin:/bin")
    # Nobody listens there, so that no release page is asked.
    monkeypatch.setenv("HTTPS_PROXY", "http://127.0.0.1:9")
    with handled_by(lambda *_: pytest.fail("the command did not handle the signal"), number):
        ended = terminal.run("build", "helm4")
    assert ended.code == 128 + number
    assert ended.err.rstrip("\n").endswith("compiling")
    assert daemons.ProcessTable().identify(int((root / "pid").read_text())) is None
    assert [path.name for path in (root / "cache").iterdir() if path.name.startswith(".")] == []


@contextlib.contextmanager
def handled_by(handler: Callable[..., object], number: signal.Signals) -> Iterator[None]:
    """Handle a signal that would end the tests, and that of Ctrl-C as Python does.

    A job in the background of a script begins with that one ignored.
    """
    before = signal.getsignal(number)
    signal.signal(number, signal.default_int_handler if number == signal.SIGINT else handler)
    try:
        yield
    finally:
        signal.signal(number, before)
