"""The local control plane, as a person and as a test uses it."""

import concurrent.futures
import dataclasses
import json
import os
import pathlib
import signal
import socket
import stat
import sys
from collections.abc import Callable, Iterator

import msgspec
import pytest

from addon_operator.devcluster import (
    bootstrap,
    cluster,
    handle,
    layout,
    locations,
    reporters,
    state,
)
from addon_operator.devcluster.binaries import binaries, components
from addon_operator.devcluster.controlplane import controlplane
from addon_operator.process import commands, daemons

pytestmark = pytest.mark.integration

NAME = layout.ClusterName("one")
DEPLOYMENT = json.dumps(
    {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "web"},
        "spec": {
            "replicas": 2,
            "selector": {"matchLabels": {"app": "web"}},
            "template": {
                "metadata": {"labels": {"app": "web"}},
                "spec": {"containers": [{"name": "web", "image": "registry.example/web:1"}]},
            },
        },
    }
)


@dataclasses.dataclass(frozen=True, slots=True)
class Home:
    """A machine on which no cluster was ever started."""

    root: pathlib.Path
    manager: cluster.ClusterManager

    def up(self, request: cluster.ClusterRequest) -> handle.DevCluster:
        where = locations.locate(os.environ)
        with binaries.workshop(where, os.environ, reporters.Reporter()) as store:
            return self.manager.up(request, store)

    def state(self, name: str = NAME) -> state.ClusterState:
        found = state.load(self.root / name / "state.json")
        assert found is not None
        return found

    def processes(self) -> list[daemons.ProcessIdentity]:
        names = [path.name for path in self.root.iterdir()] if self.root.exists() else []
        table = daemons.ProcessTable()
        return [found for name in names for found in table.marked(bootstrap.MARK, str(self.root / name))]


@pytest.fixture
def home(tmp_path: pathlib.Path) -> Iterator[Home]:
    root = tmp_path / "clusters"
    manager = cluster.ClusterManager(root, reporters.Reporter())
    yield Home(root, manager)
    for status in manager.status():
        manager.down(layout.ClusterName(status.name))


@pytest.fixture
def command(home: Home) -> Callable[..., commands.Completed]:
    env = {**os.environ, locations.STATE_VARIABLE: str(home.root)}

    def run(*arguments: str) -> commands.Completed:
        argv = [sys.executable, "-m", "addon_operator", "devcluster", *arguments]
        return commands.run(argv, env=env, timeout=120, check=False)

    return run


def kubectl(started: handle.DevCluster, *arguments: str, stdin: str | None = None) -> str:
    argv = [str(started.kubectl), f"--kubeconfig={started.kubeconfig}", *arguments]
    return commands.run(argv, stdin=stdin, timeout=60).stdout


def pids(home: Home, name: str = NAME) -> dict[str, int]:
    return {part: known.process.pid for part, known in home.state(name).components.items()}


@pytest.mark.slow
def test_a_cluster_that_runs_is_used_as_it_is(
    home: Home, tmp_path: pathlib.Path, command: Callable[..., commands.Completed]
) -> None:
    request = cluster.ClusterRequest(NAME, export=tmp_path / "kubeconfig")
    first = home.up(request)
    before = pids(home)
    assert home.up(request) == first
    assert pids(home) == before

    # Only its owner may read what it has written.
    directory = home.root / NAME
    files = [directory, *(path for path in directory.rglob("*") if not path.is_symlink())]
    modes = {path: stat.S_IMODE(path.stat().st_mode) & 0o077 for path in [*files, tmp_path / "kubeconfig"]}
    # etcd chooses the modes of its sockets: what counts is the directory's.
    private = {
        path: mode for path, mode in modes.items() if "etcd" not in path.parts and not path.is_socket()
    }
    assert set(private.values()) == {0}

    script = command("env", "--name", NAME).stdout + "kubectl get namespaces -o name && helm list --short"
    assert "namespace/default" in commands.run(["sh", "-c", script], timeout=60).stdout

    refused = command("up", "--name", NAME, "--version", "1.35")
    assert refused.exit_code == 1
    assert "runs Kubernetes v1.37" in refused.stderr
    assert pids(home) == before


@pytest.mark.slow
def test_nodes_can_be_added_to_a_cluster_that_runs(home: Home) -> None:
    home.up(cluster.ClusterRequest(NAME))
    before = pids(home)
    started = home.up(cluster.ClusterRequest(NAME, nodes=True))
    assert before.items() < pids(home).items()
    assert "devcluster-node" in kubectl(started, "get", "nodes")


@pytest.mark.slow
def test_two_clusters_run_side_by_side(home: Home) -> None:
    one, two = (home.up(cluster.ClusterRequest(layout.ClusterName(name))) for name in ("one", "two"))
    kubectl(one, "create", "namespace", "only-here")
    assert "only-here" in kubectl(one, "get", "namespaces")
    assert "only-here" not in kubectl(two, "get", "namespaces")
    assert [status.condition for status in home.manager.status()] == ["running", "running"]


@pytest.mark.slow
def test_down_leaves_no_process_and_no_file(home: Home, tmp_path: pathlib.Path) -> None:
    export = tmp_path / "kubeconfig"
    home.up(cluster.ClusterRequest(NAME, export=export))
    assert export.exists()
    assert home.processes()
    assert home.manager.down(NAME)
    assert home.processes() == []
    assert list(home.root.iterdir()) == []
    assert not export.exists()


@pytest.mark.slow
def test_a_killed_up_is_not_an_obstacle_for_the_next(home: Home) -> None:
    home.up(cluster.ClusterRequest(NAME))
    killed = dataclasses.replace(home.state(), phase="starting", components={})
    state.save(home.root / NAME / "state.json", killed)
    left = home.processes()
    started = home.up(cluster.ClusterRequest(NAME))
    table = daemons.ProcessTable()
    assert [process for process in left if table.is_alive(process)] == []
    assert "default" in kubectl(started, "get", "namespaces")


@pytest.mark.slow
def test_an_up_that_was_killed_early_is_not_an_obstacle(home: Home) -> None:
    (home.root / NAME / "pki").mkdir(parents=True)
    (home.root / NAME / "pki/ca.key").write_text("half a key")
    assert "default" in kubectl(home.up(cluster.ClusterRequest(NAME)), "get", "namespaces")


@pytest.mark.slow
def test_a_cluster_whose_processes_are_all_gone_is_started_anew(home: Home, tmp_path: pathlib.Path) -> None:
    export = tmp_path / "kubeconfig"
    home.up(cluster.ClusterRequest(NAME, export=export))
    daemons.ProcessTable().kill(home.processes())
    assert [status.condition for status in home.manager.status()] == ["stopped"]
    started = home.up(cluster.ClusterRequest(NAME))
    assert started.url in export.read_text()


@pytest.mark.slow
def test_pids_that_belong_to_others_now_are_left_alone(home: Home) -> None:
    home.up(cluster.ClusterRequest(NAME))
    daemons.ProcessTable().kill(home.processes())
    own = daemons.ProcessTable().identify(os.getpid())
    assert own is not None
    other = state.StartedProgram(msgspec.structs.replace(own, started=own.started - 1), ("etcd",))
    reused = dataclasses.replace(home.state(), components={components.ETCD: other})
    state.save(home.root / NAME / "state.json", reused)
    assert home.manager.down(NAME)


@pytest.mark.slow
@pytest.mark.parametrize("component", [components.ETCD, components.KUBE_APISERVER, components.KWOK])
def test_a_component_that_has_ended_is_started_again_with_the_data_kept(home: Home, component: str) -> None:
    started = home.up(cluster.ClusterRequest(NAME, nodes=True))
    kubectl(started, "create", "namespace", "kept")
    daemons.ProcessTable().kill([home.state().components[component].process])
    again = home.up(cluster.ClusterRequest(NAME))
    assert [status.condition for status in home.manager.status()] == ["running"]
    assert "kept" in kubectl(again, "get", "namespaces")


@pytest.mark.slow
def test_an_api_server_that_is_just_ending_is_started_again(home: Home) -> None:
    started = home.up(cluster.ClusterRequest(NAME))
    kubectl(started, "create", "namespace", "kept")
    os.kill(pids(home)[components.KUBE_APISERVER], signal.SIGKILL)
    assert "kept" in kubectl(home.up(cluster.ClusterRequest(NAME)), "get", "namespaces")


@pytest.mark.slow
def test_a_port_that_someone_takes_meanwhile_is_replaced_by_another(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    with socket.create_server((controlplane.LOOPBACK, 0)) as taken:
        port: int = taken.getsockname()[1]
        answers = iter([[port], bootstrap.unused_ports(1)])
        monkeypatch.setattr(bootstrap, "unused_ports", lambda _: next(answers))
        started = home.up(cluster.ClusterRequest(NAME))
    assert home.state().port != port
    assert "default" in kubectl(started, "get", "namespaces")


@pytest.mark.slow
def test_two_that_start_the_same_cluster_at_once_share_it(
    home: Home, command: Callable[..., commands.Completed]
) -> None:
    with concurrent.futures.ThreadPoolExecutor() as pool:
        ups = [pool.submit(command, "up", "--name", NAME) for _ in range(2)]
    first, second = sorted((up.result() for up in ups), key=lambda ended: len(ended.stderr))
    assert (first.exit_code, second.exit_code) == (0, 0)
    assert first.stdout == second.stdout
    assert len(home.processes()) == len(home.state().components)


def test_a_component_that_cannot_start_is_reported_with_its_log(
    home: Home, tmp_path: pathlib.Path, command: Callable[..., commands.Completed]
) -> None:
    program = tmp_path / "assets" / "etcd"
    program.parent.mkdir()
    program.write_text("#!/bin/sh\necho the disk is on fire >&2\nexit 3\n")
    program.chmod(0o755)
    env = {**os.environ, locations.STATE_VARIABLE: str(home.root), "KUBEBUILDER_ASSETS": str(program.parent)}
    argv = [sys.executable, "-m", "addon_operator", "devcluster", "up", "--name", NAME]
    ended = commands.run(argv, env=env, timeout=120, check=False)
    assert ended.exit_code == 1
    assert "etcd ended: the disk is on fire; its log is " in ended.stderr
    assert "Traceback" not in ended.stderr
    assert (home.root / NAME / "logs/etcd.log").exists()
    assert home.processes() == []


@pytest.mark.slow
def test_a_killed_command_does_not_end_the_cluster(
    home: Home, command: Callable[..., commands.Completed]
) -> None:
    assert command("up", "--name", NAME).exit_code == 0
    shown = command("kubectl", "--name", NAME, "get", "namespaces", "-o", "name")
    assert "namespace/default" in shown.stdout
    assert json.loads(command("status", "-o", "json").stdout)[0]["condition"] == "running"
    assert command("down", "--name", NAME).exit_code == 0
    assert command("status", "-o", "json").stdout == "[]\n"


def test_a_deployment_becomes_ready_where_there_are_nodes(
    devcluster: handle.DevCluster, namespace: str
) -> None:
    devcluster.run_kubectl("apply", "-n", namespace, "-f", "-", stdin=DEPLOYMENT)
    devcluster.run_kubectl("rollout", "status", "-n", namespace, "deployment/web", "--timeout=60s")
    pods = devcluster.run_kubectl("get", "pods", "-n", namespace, "-o", "jsonpath={.items[*].status.phase}")
    assert pods.stdout == "Running Running"


def test_a_job_completes_and_a_deleted_pod_goes(devcluster: handle.DevCluster, namespace: str) -> None:
    devcluster.run_kubectl("create", "job", "once", "-n", namespace, "--image=example")
    devcluster.run_kubectl("wait", "-n", namespace, "--for=condition=Complete", "job/once", "--timeout=60s")
    devcluster.run_kubectl("delete", "pods", "-n", namespace, "--all", "--timeout=60s")
    assert devcluster.run_kubectl("get", "pods", "-n", namespace, "-o", "name").stdout == ""


def test_a_test_namespace_is_ready_for_pods(devcluster: handle.DevCluster, namespace: str) -> None:
    pod = json.loads(DEPLOYMENT)["spec"]["template"] | {"apiVersion": "v1", "kind": "Pod"}
    pod["metadata"]["name"] = "alone"
    created = devcluster.run_kubectl("create", "-n", namespace, "-f", "-", stdin=json.dumps(pod))
    assert created.stdout == "pod/alone created\n"


def test_helm_knows_the_version_of_the_cluster(devcluster: handle.DevCluster, namespace: str) -> None:
    assert devcluster.run_helm("version", "--short").stdout.startswith("v3.")
    assert devcluster.run_helm("list", "-n", namespace, "--short").stdout == ""
    assert devcluster.version.startswith(f"v{components.DEFAULT_VERSION}.")
