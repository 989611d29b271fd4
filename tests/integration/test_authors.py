"""The loop of an author, with real programs: a new module, lint, ``dev`` on a pipe, and an edit."""

import contextlib
import os
import pathlib
import re
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from typing import Final

import pytest
import yaml

from addon_operator.devcluster import handle, locations
from tests.integration import operator_forks, operator_process, terminals

pytestmark = pytest.mark.integration


class Author:
    """Somebody in a directory with an operator on the command line."""

    def __init__(self, directory: pathlib.Path, cluster: handle.DevCluster) -> None:
        self.directory = directory
        self.cluster = cluster
        self.namespace = cluster.namespace("dev")
        self.output = directory / "output.txt"
        config = yaml.safe_load(cluster.kubeconfig.read_text())
        self.context = config["current-context"]
        # What is current here leads nowhere: only the named context counts.
        elsewhere = {"name": "elsewhere", "context": {"cluster": "gone", "user": "gone"}}
        config |= {"current-context": "elsewhere", "contexts": [*config["contexts"], elsewhere]}
        config["clusters"].append({"name": "gone", "cluster": {"server": "https://127.0.0.1:1"}})
        config["users"].append({"name": "gone", "user": {"token": "none"}})
        self.kubeconfig = directory / "kubeconfig"
        self.kubeconfig.write_text(yaml.safe_dump(config))
        self.environ = {
            **os.environ,
            "PATH": f"{cluster.bin}:{os.environ['PATH']}",
            "KUBECONFIG": str(self.kubeconfig),
            "HELM_BIN_PATH": str(cluster.helm),
        }

    def run(self, *arguments: str, code: int = 0) -> str:
        done = operator_forks.run(arguments, self.environ, self.directory)
        assert done.returncode == code, done.stdout + done.stderr
        return done.stdout or done.stderr

    @contextlib.contextmanager
    def dev(self, *arguments: str) -> Iterator[None]:
        """Have the loop run on a pipe, until somebody ends it as with Ctrl-C."""
        argv = [sys.executable, "-m", "addon_operator", "dev", *arguments]
        with (
            self.output.open("wb") as output,
            subprocess.Popen(
                argv, cwd=self.directory, env=self.environ, stdout=output, stderr=subprocess.STDOUT
            ) as running,
        ):
            try:
                yield
            finally:
                running.send_signal(signal.SIGINT)
        lines = self.output.read_text().splitlines()
        assert (running.returncode, lines[-1]) == (0, "ended    the operator is stopped"), lines

    def wait_told(
        self, pattern: str, times: int = 1, deadline: float = operator_process.READY_DEADLINE
    ) -> re.Match[str]:
        def told() -> re.Match[str] | None:
            found = list(re.finditer(pattern, self.output.read_text(), re.MULTILINE))
            return found[times - 1] if len(found) >= times else None

        return operator_process.wait_until(told, pattern, deadline=deadline, explain=self.output.read_text)


@pytest.fixture
def author(tmp_path: pathlib.Path, devcluster: handle.DevCluster) -> Iterator[Author]:
    made = Author(tmp_path, devcluster)
    yield made
    devcluster.delete_namespace(made.namespace)


@pytest.mark.slow
def test_a_hook_that_hangs_is_ended_by_a_save_and_one_that_cannot_be_used_is_told_once(
    author: Author,
) -> None:
    author.run("new", "module", "web-shop", "--schema")
    author.run("new", "hook", "web-shop/kube.sh", "--on", "afterHelm")
    hook = author.directory / "modules/010-web-shop/hooks/kube.sh"
    with author.dev("--context", author.context, "-n", author.namespace):
        author.wait_told(r"^done     web-shop: revision 1 ")
        hangs_and_is_refused(author, hook)


def hangs_and_is_refused(author: Author, hook: pathlib.Path) -> None:
    right = hook.read_text()
    hook.write_text(right.replace('echo "', 'sleep 1000; echo "'))
    named = "modules/010-web-shop/hooks/kube.sh"
    author.wait_told(rf"^saved    web-shop: {named}$")
    author.wait_told(rf"^hook     {named} runs for 5 s$")
    hook.write_text(right)
    author.wait_told(rf"^saved    web-shop: {named}$", times=2)
    author.wait_told(rf"^hook     {named} is ended: its module was saved$")
    author.wait_told(r"^done     web-shop: revision 1, as before, ")

    hook.chmod(0o644)
    author.wait_told(r"^error    a change of hooks on disk is refused, .*kube.sh is not executable")
    hook.chmod(0o755)
    author.wait_told(r"^right    nothing that changed on disk is refused any more$")
    told = [line.split()[0] for line in author.output.read_text().splitlines() if "not executable" in line]
    assert told == ["error", "error"], "that it is refused, and that the module's run fails for it"


def test_from_a_new_module_to_an_edit_that_is_deployed(
    author: Author, record_property: Callable[[str, object], None]
) -> None:
    author.run("new", "module", "web-shop", "--schema")
    author.run("new", "hook", "web-shop/nodes.py", "--on", "kubernetes")
    author.run("new", "hook", "web-shop/kube.sh", "--on", "afterHelm")
    assert "1 module checked: nothing is wrong" in author.run("module", "lint", "modules/010-web-shop")
    module = author.directory / "modules/010-web-shop"
    hook = module / "hooks/kube.sh"
    hook.write_text(hook.read_text().replace('echo "', 'kubectl config current-context; echo "'))

    with author.dev("--context", author.context, "-n", author.namespace):
        author.wait_told(r"^done     web-shop: revision 1 ")
        author.wait_told(rf"^hook     web-shop/kube.sh: {re.escape(author.context)}$")
        there = ("--context", author.context, "-n", author.namespace)
        assert f"ask      addon-operator module list {' '.join(there)}" in author.output.read_text()
        assert "greeting" in author.run("module", "values", "web-shop", *there)

        values = module / "values.yaml"
        values.write_text(values.read_text().replace("greeting: Hello", "greeting: Good morning"))
        took = author.wait_told(r"^done     web-shop: revision 2, (\S+) s after the save \(run (\S+) s\)$")
        record_property("seconds from save to run", float(took[1]) - float(took[2]))
        told = author.output.read_text()
        for line in (
            "saved    web-shop: modules/010-web-shop/values.yaml",
            "values   web-shop: greeting: Hello -> Good morning",
            "diff     -  greeting: Hello",
            "diff     +  greeting: Good morning",
        ):
            assert line in told.splitlines()

        template = module / "templates/configmap.yaml"
        before = template.read_text()
        template.write_text(before + "{{ oops }}\n")
        author.wait_told(r'^error    .*configmap.yaml:7\): function "oops" not defined')
        author.wait_told(r"^failed   web-shop: failed; revision 2 stays")
        template.write_text(before.replace("greeting:", "word:"))
        author.wait_told(r"^done     web-shop: revision 3, ")
    live = author.cluster.run_kubectl(
        "get", "configmap", "web-shop", f"--namespace={author.namespace}", "--output=yaml"
    )
    assert yaml.safe_load(live.stdout)["data"] == {"word": "Good morning"}


@pytest.mark.slow
def test_the_loop_stays_when_a_global_hook_hangs_at_the_start(author: Author) -> None:
    """It is named soon, and a save ends it; the operator, which cannot start without it, starts again."""
    author.run("new", "module", "web-shop")
    hook = author.directory / "global-hooks/hooks/all.sh"
    hook.parent.mkdir(parents=True)
    hook.write_text("#!/bin/sh\nsleep 1000\n")
    hook.chmod(0o755)
    named = "global-hooks/hooks/all.sh"
    with author.dev("--context", author.context, "-n", author.namespace):
        author.wait_told(rf"^hook     {named} --config runs for \d+ s$", deadline=120.0)
        hook.write_text("#!/bin/sh\necho '{configVersion: v1'\n")
        author.wait_told(rf"^hook     {named} --config is ended: global hooks were saved$")
        author.wait_told(rf"^error    .*{named}: invalid configuration", deadline=120.0)
        author.wait_told(r"^ended    the operator cannot start", times=2)
        hook.write_text("#!/bin/sh\necho '{configVersion: v1, onStartup: 1}'\n")
        author.wait_told(r"^start    ", times=2)
        author.wait_told(r"^hook     all.sh: ", deadline=120.0)


def test_examples_are_rendered_and_what_is_rendered_is_checked(author: Author) -> None:
    author.run("new", "module", "web-shop", "--schema")
    module = author.directory / "modules/010-web-shop"
    (module / "examples").mkdir()
    (module / "examples/broken.yaml").write_text("webShop: {greeting: broken}\n")
    (module / "examples/wrong.yaml").write_text('webShop: {greeting: ""}\n')
    with (module / "templates/configmap.yaml").open("a") as file:
        file.write('{{- if eq .Values.webShop.greeting "broken" }}\nimmutable: perhaps\n{{- end }}\n')
    text = author.run("module", "lint", "-o", "json", code=1)
    found = {row["rule"]: row["problem"] for row in yaml.safe_load(text)}
    assert set(found) == {"object", "example"}, found
    assert "modules/010-web-shop/examples/broken.yaml" in found["object"]
    assert "modules/010-web-shop/examples/wrong.yaml" in found["example"]


@pytest.mark.slow
def test_what_a_new_module_says_to_do_next_passes_on_a_pipe_and_on_a_terminal(author: Author) -> None:
    printed = author.run("new", "module", "web-shop", "--hook", "python", "--schema")
    named = [shlex.split(line)[1:] for line in printed.partition("Next:\n")[2].splitlines()]
    assert [each[:-1] for each in named] == [["module", "lint"], ["module", "test"], ["dev"]]
    for arguments, told in zip(named, (r"nothing is wrong", r"^010-web-shop +3 +0 +0\s*$"), strict=False):
        piped = author.run(*arguments)
        assert "\x1b" not in piped
        argv = [sys.executable, "-m", "addon_operator", *arguments]
        with terminals.Terminal(argv, author.directory, author.environ) as terminal:
            assert terminal.ended() == 0
        for text in (piped, terminal.afterwards()):
            assert re.search(told, text, re.MULTILINE), text


HANGS: Final = """#!/bin/sh
if [ "$1" = --config ]; then echo '{configVersion: v1, afterHelm: 1}'; exit; fi
if [ -e "$(dirname "$0")/../hang" ]; then sleep 1000; fi
echo "the hook speaks"
"""


def started_by(author: Author) -> list[str]:
    """What still runs of all that its commands started: nobody else has this kubeconfig."""
    found = []
    for process in pathlib.Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if bytes(author.directory) in (process / "environ").read_bytes():
                found.append((process / "cmdline").read_text().replace("\0", " "))
    return found


@pytest.mark.slow
def test_on_a_terminal_it_is_one_screen_until_ctrl_c_which_leaves_nothing_behind(author: Author) -> None:
    author.run("new", "module", "web-shop")
    module = author.directory / "modules/010-web-shop"
    hook = module / "hooks/say.sh"
    hook.parent.mkdir()
    hook.write_text(HANGS)
    hook.chmod(0o755)
    dev = [sys.executable, "-m", "addon_operator", "dev", "--context", author.context, "-n", author.namespace]
    with terminals.Terminal(dev, author.directory, author.environ) as terminal:
        terminal.wait_shown("web-shop  Ready  Healthy  1", "web-shop/say.sh: the hook speaks")
        terminal.resize(rows=18, columns=70)
        values = module / "values.yaml"
        values.write_text(values.read_text().replace("greeting: Hello", "greeting: Good morning"))
        terminal.wait_shown("web-shop  Ready  Healthy  2", "revision 2, ", "greeting: Hello -> Good morning")
        # Nothing moves while nothing happens, and what somebody types is not shown.
        time.sleep(1)
        before = len(terminal.written)
        terminal.type("jq\n\x1a")
        time.sleep(1)
        assert len(terminal.written) == before
        assert b"\x1b[2J" not in terminal.written, "the screen is drawn over and never cleared"

        template = module / "templates/configmap.yaml"
        right = template.read_text()
        template.write_text(right + "{{ oops }}\n")
        terminal.wait_shown("web-shop  Failed", 'function "oops" not defined', "failed; revision 2 stays")
        lines = terminal.wait_filled(rows=18, columns=70)
        assert next(n for n, line in enumerate(lines) if "oops" in line) < lines.index(
            next(line for line in lines if line.startswith("MODULE"))
        ), "what is wrong stands above the modules"

        (module / "hang").touch()
        template.write_text(right)
        terminal.wait_shown("say.sh runs for ")
        terminal.type("\x03")
        terminal.wait_shown("is being stopped")
        terminal.type("\x03\x03")
        assert terminal.ended() == 0
    assert terminal.afterwards() == "ended    the operator is stopped"
    assert started_by(author) == []


@pytest.mark.slow
def test_a_cluster_that_is_kept_is_taken_by_the_next_one_which_removes_it(author: Author) -> None:
    state = author.directory / "state"
    author.environ[locations.STATE_VARIABLE] = str(state)
    author.run("new", "module", "web-shop")
    kubeconfig = state / "dev/kubeconfig"

    def kubectl(*arguments: str) -> str:
        return author.cluster.run_kubectl(
            f"--kubeconfig={kubeconfig}", "--namespace=addon-operator-dev", *arguments
        ).stdout

    try:
        with author.dev("--keep"):
            author.wait_told(r"^done     web-shop: revision 1 ")
        assert kubectl("get", "configmap", "web-shop", "--output=jsonpath={.data.greeting}") == "Hello"
        kubectl("create", "configmap", "mine")
        (running,) = yaml.safe_load(author.run("devcluster", "status", "-o", "yaml"))
        assert (running["name"], running["condition"]) == ("dev", "running")

        with author.dev():
            author.wait_told(r"^module   web-shop: Ready, .*revision 1")
            assert kubectl("get", "configmap", "mine", "--output=name") == "configmap/mine\n"
            assert "end that one first" in author.run("dev", code=1)
        assert not (state / "dev").exists()
        assert started_by(author) == []
    finally:
        author.run("devcluster", "down", "--name", "dev")
