"""The loop of an author, with real programs: a new module, lint, ``dev`` on a pipe, and an edit."""

import os
import pathlib
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator

import pytest
import yaml

from addon_operator.devcluster import handle
from tests.integration import operator_process

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
        argv = [sys.executable, "-m", "addon_operator", *arguments]
        done = subprocess.run(
            argv, cwd=self.directory, env=self.environ, capture_output=True, text=True, check=False
        )
        assert done.returncode == code, done.stdout + done.stderr
        return done.stdout

    def start(self, *arguments: str) -> "subprocess.Popen[bytes]":
        argv = [sys.executable, "-m", "addon_operator", *arguments]
        with self.output.open("wb") as output:
            return subprocess.Popen(
                argv, cwd=self.directory, env=self.environ, stdout=output, stderr=subprocess.STDOUT
            )

    def wait_told(self, pattern: str, times: int = 1) -> re.Match[str]:
        def told() -> re.Match[str] | None:
            found = list(re.finditer(pattern, self.output.read_text(), re.MULTILINE))
            return found[times - 1] if len(found) >= times else None

        return operator_process.wait_until(told, pattern, explain=self.output.read_text)


@pytest.fixture
def author(tmp_path: pathlib.Path, devcluster: handle.DevCluster) -> Iterator[Author]:
    made = Author(tmp_path, devcluster)
    yield made
    devcluster.delete_namespace(made.namespace)


def hangs_and_is_refused(author: Author, hook: pathlib.Path) -> None:
    """A hook that hangs is told, and ended by a save; one that cannot be used is told once."""
    right = hook.read_text()
    hook.write_text(right.replace("kubectl config", "sleep 1000; kubectl config"))
    named = "modules/010-web-shop/hooks/kube.sh"
    author.wait_told(rf"^saved    web-shop: {named}$")
    author.wait_told(rf"^hook     {named} runs for 5 s$")
    hook.write_text(right)
    author.wait_told(rf"^saved    web-shop: {named}$", times=2)
    author.wait_told(rf"^hook     {named} is ended: its module was saved$")
    author.wait_told(r"^done     web-shop: revision 2, as before, ")

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

    dev = author.start("dev", "--context", author.context, "-n", author.namespace)
    try:
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

        hangs_and_is_refused(author, hook)

        template = module / "templates/configmap.yaml"
        before = template.read_text()
        template.write_text(before + "{{ oops }}\n")
        author.wait_told(r'^error    .*configmap.yaml:7\): function "oops" not defined')
        author.wait_told(r"^failed   web-shop: failed; revision 2 stays")
        template.write_text(before.replace("greeting:", "word:"))
        author.wait_told(r"^done     web-shop: revision 3, ")
    finally:
        dev.send_signal(signal.SIGINT)
        dev.wait(30)
    assert author.output.read_text().splitlines()[-1] == "ended    the operator is stopped"
    assert dev.returncode == 0
    live = author.cluster.run_kubectl(
        "get", "configmap", "web-shop", f"--namespace={author.namespace}", "--output=yaml"
    )
    assert yaml.safe_load(live.stdout)["data"] == {"word": "Good morning"}


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
