"""Commands from outside the cluster: through the user's kubeconfig, and with no right but the user's."""

import json
import pathlib
import subprocess
import sys
from collections.abc import Iterator

import pytest

from tests.integration import charts, kubelet, operator_forks, operator_process, operator_site
from tests.support import pod_server

pytestmark = pytest.mark.integration

POD = "ao-0"


class User:
    """Somebody on another machine, who has a kubeconfig and no socket."""

    def __init__(self, site: operator_site.Site, kubeconfig: pathlib.Path) -> None:
        self.site = site
        self.variables = {"HOME": str(site.root / "home"), "PATH": str(site.root)}
        self.kubeconfig = kubeconfig

    def run(self, *arguments: str) -> "subprocess.CompletedProcess[str]":
        flags = ("--kubeconfig", str(self.kubeconfig), "-n", self.site.namespace)
        return operator_forks.run((*arguments, *flags), self.variables, self.site.root)

    def text(self, *arguments: str) -> str:
        done = self.run(*arguments)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def error(self, *arguments: str) -> str:
        done = self.run(*arguments)
        assert done.returncode == 1, done.stdout
        assert done.stderr.startswith("Error: ")
        assert done.stderr.count("\n") == 1
        return done.stderr.removeprefix("Error: ").rstrip()


def user(site: operator_site.Site, name: str, *rules: str) -> User:
    """A user who may do what the rules say: ``get,list leases.coordination.k8s.io``."""
    site.account(name, *rules)
    return User(site, charts.kubeconfig_with_token(site.cluster, site, name))


@pytest.fixture
def operator(site: operator_site.Site) -> Iterator[operator_process.OperatorProcess]:
    """An operator with two modules, one of which fails, in a pod."""
    site.module("010-web", {"size": '"{{ .Values.web.size }}"'}, values="webEnabled: true\nweb: {size: 1}")
    broken = site.module("020-broken", values="brokenEnabled: true")
    site.hook(broken, "break.sh", {"beforeHelm": 1}, 'echo "no luck" >&2; exit 1')
    site.module("030-off", values="offEnabled: false")

    def run(command: list[str]) -> pod_server.Ran:
        done = site.command(*command[1:])
        return pod_server.Ran(done.stdout, done.stderr, "exit code 1" if done.returncode else "")

    with kubelet.serving(site.root, run) as port:
        kubelet.add_pod(site, POD, port, app="ao")
        yield site.start(ADDON_OPERATOR_POD=POD, CONVERGE_ON_FAILURE="continue").wait_ready()


EXEC = ("get leases.coordination.k8s.io", "get pods", "get,create pods/exec")


def test_commands_reach_the_leader_in_its_pod(
    site: operator_site.Site, operator: operator_process.OperatorProcess
) -> None:
    alice = user(site, "alice", *EXEC)
    rows = json.loads(alice.text("module", "list", "-o", "json"))["modules"]
    assert [row["name"] for row in rows] == ["web", "broken", "off"]
    assert alice.text("module", "list").splitlines()[0].startswith("MODULE ")
    assert "no luck" in alice.text("module", "describe", "broken")
    assert alice.text("module", "values", "web") == "size: 1\n"
    assert "ModuleRun broken" in alice.text("queue", "list")
    assert alice.text("module", "retry", "broken").startswith("module broken runs as soon as")
    assert alice.text("config", "set", "log.level", "debug", "1m").startswith("log.level is debug for ")
    assert alice.error("module", "values", "wbe") == "there is no module 'wbe'; did you mean 'web'?"
    assert "nothing of it waits for another try" in alice.error("module", "retry", "web")
    assert "POST /module" in alice.text("raw", "/discovery")
    operator.stop()
    assert "nobody holds the Lease addon-operator-leader-election" in alice.error("module", "list")


@pytest.mark.slow
def test_modules_are_suspended_resumed_and_run_without_a_shell_in_the_pod(
    site: operator_site.Site, operator: operator_process.OperatorProcess
) -> None:
    bob = user(site, "bob", "get,list,patch modules.addon-operator.io")
    operator.wait_until(
        lambda: "RunSucceeded" in str(site.find("module", "web")), "the Module object is there"
    )
    told = bob.text("module", "suspend", "web", "--reason", "new disks", "--for", "2h")
    who = f"system:serviceaccount:{site.namespace}:bob"
    assert told.startswith(f"module web is suspended: new disks (by {who}, since ")
    assert ", until " in told
    operator.wait_metric(1, "mm_module_maintenance", module="web", state="Suspended")
    refused = bob.error("module", "suspend", "web", "--reason", "newer disks")
    assert refused.startswith(f"module web is already suspended: new disks (by {who}, since ")
    again = bob.text("module", "suspend", "web", "--reason", "newer disks", "--replace")
    assert ", until " not in again
    assert "suspended: newer disks" in bob.text("module", "run", "web", "--wait")
    assert bob.text("module", "resume", "web") == "module web is looked after again\n"
    assert bob.error("module", "resume", "web") == "module web is not suspended"
    assert bob.text("module", "run", "web", "--wait") == "module web is Ready\n"
    assert bob.text("module", "run", "web").startswith("module web is asked to run; --wait waits")
    assert "the run of module broken failed: hook break.sh" in bob.error("module", "run", "broken", "--wait")
    assert bob.error("module", "run", "off") == "module off is disabled: enable it, and it runs"
    assert bob.error("module", "run", "wbe").endswith("did you mean 'web'?")
    operator.wait_until(
        lambda: completed(bob, "module", "describe", "b") == "broken\n:4\n", "a name is completed"
    )
    assert site.revisions() == {"web": 1}


def completed(somebody: User, *words: str) -> str:
    """What kubectl offers for the last word after ``kubectl addon-operator``."""
    programs = somebody.site.root / "plugin"
    programs.mkdir(exist_ok=True)
    for name, function in (
        ("kubectl-addon_operator", "main"),
        ("kubectl_complete-addon_operator", "complete_for_kubectl"),
    ):
        # On a busy machine, an answer may take longer than somebody at a keyboard waits.
        patient = "from addon_operator.cli import completion, main\ncompletion._SECONDS = 30"
        text = f"#!{sys.executable}\n{patient}\nmain.{function}()\n"
        (programs / name).write_text(text)
        (programs / name).chmod(0o755)
    flags = ("--kubeconfig", str(somebody.kubeconfig), "-n", somebody.site.namespace)
    *before, last = words
    asked = [str(somebody.site.cluster.kubectl), "__complete", "addon-operator", *before, *flags, last]
    variables = somebody.variables | {"PATH": f"{programs}:/usr/bin:/bin"}
    return subprocess.run(asked, env=variables, capture_output=True, text=True, check=True).stdout


@pytest.mark.slow
def test_what_is_missing_is_said_in_one_sentence(
    site: operator_site.Site, operator: operator_process.OperatorProcess
) -> None:
    poor = user(site, "poor")
    assert 'resources: ["leases"], verbs: ["get"]' in poor.error("queue", "list")
    assert 'resources: ["modules"], verbs: ["get"]' in poor.error("module", "run", "web")
    podless = user(site, "podless", EXEC[0])
    assert 'resources: ["pods"], verbs: ["get"]' in podless.error("queue", "list")
    reader = user(site, "reader", *EXEC[:2], "get,list modules.addon-operator.io")
    assert 'resources: ["pods/exec"]' in reader.error("queue", "list")
    operator.wait_until(
        lambda: "RunSucceeded" in str(site.find("module", "web")), "the Module object is there"
    )
    assert 'resources: ["modules"], verbs: ["patch"]' in reader.error("module", "run", "web")
    alice = user(site, "alice", *EXEC, "list leases.coordination.k8s.io")
    site.delete("pod", POD)
    place = ("-n", site.namespace, "--kubeconfig", str(alice.kubeconfig))
    assert "module/web" in site.command("module", "list", "-o", "name", *place).stdout, (
        "it is on this machine"
    )
    gone = alice.error("queue", "list")
    assert gone.startswith("the leader is gone: the Lease addon-operator-leader-election")
    assert f"names {POD}, and there is no such pod" in gone
    operator.stop()
    site.delete("lease", "addon-operator-leader-election")
    assert alice.error("queue", "list").startswith(f"no operator is found in namespace {site.namespace} of ")
    (site.root / "home").mkdir()
    nowhere = operator_forks.run(("queue", "list"), alice.variables, site.root)
    assert "no operator runs: there is no socket /var/run/addon-operator/debug.socket" in nowhere.stderr
    assert "--kubeconfig" in nowhere.stderr
    lost = ("queue", "list", "--kubeconfig", str(alice.kubeconfig), "--context", "nowhere")
    contextless = operator_forks.run(lost, alice.variables, site.root)
    assert "nowhere" in contextless.stderr
    assert contextless.stderr.count("\n") == 1
