"""Clusters as commands find them; small scripts play the components, and none of them ever gets ready."""

import os
import pathlib
from collections.abc import Iterator, Sequence
from typing import Final, Literal

import msgspec
import pytest
from msgspec import structs
from typing_extensions import override

from addon_operator.devcluster import (
    bootstrap,
    cluster,
    errors,
    handle,
    layout,
    locations,
    locks,
    state,
)
from addon_operator.devcluster.binaries import binaries, components
from addon_operator.process import daemons

from . import fakes

ONE = layout.ClusterName("one")
SLEEPS = "exec sleep 60"


class Source(binaries.BinaryStore):
    """Gives out scripts as binaries."""

    def __init__(self, directory: pathlib.Path) -> None:
        self.programs = directory
        self.asked: list[set[str]] = []
        self.components: list[dict[str, set[str]]] = []
        self.scripts: dict[str, str] = {}
        self.error: BaseException | None = None

    @override
    def ensure(self, requests: Sequence[binaries.Wanted]) -> dict[str, pathlib.Path]:
        if self.error is not None:
            raise self.error
        names = {binary.name for wanted in requests for binary in wanted.binaries()}
        self.asked.append(names)
        self.components.append(
            {wanted.component.name: {one.name for one in wanted.binaries()} for wanted in requests}
        )
        return {
            name: fakes.write_program(self.programs / name, self.scripts.get(name, SLEEPS)) for name in names
        }


class Bench:
    """A directory of clusters on a machine whose clock goes on when someone sleeps."""

    def __init__(self, root: pathlib.Path) -> None:
        self.root = root / "clusters"
        self.source = Source(root / "bin")
        self.reporter = fakes.Recorder()
        self.clock = fakes.Clock()
        self.table = daemons.ProcessTable()
        self.manager = cluster.ClusterManager(self.root, self.reporter, self.clock, self.clock.sleep)

    def where(self) -> layout.Layout:
        return layout.Layout(self.root / ONE)

    def up(self, **options: object) -> handle.DevCluster:
        request = structs.replace(cluster.ClusterRequest(ONE), **options)
        return self.manager.up(request, self.source)

    def processes(self) -> list[daemons.ProcessIdentity]:
        return self.table.marked(bootstrap.MARK, str(self.root / ONE))

    def run(self, name: str) -> state.StartedProgram:
        """A component that really runs."""
        program = fakes.write_program(self.source.programs / name, SLEEPS)
        env = {bootstrap.MARK: str(self.root / ONE), "PATH": os.environ["PATH"]}
        log = self.root / ONE / "log"
        return state.StartedProgram(
            daemons.start([str(program)], log=log, env=env, table=self.table), (str(program),)
        )

    def ended(self) -> state.StartedProgram:
        """A component whose pid belongs to someone else by now."""
        own = self.table.identify(os.getpid())
        assert own is not None
        return state.StartedProgram(msgspec.structs.replace(own, started=own.started + 1), ("etcd",))

    def write(self, phase: Literal["starting", "ready"] = "ready", **parts: state.StartedProgram) -> None:
        self.root.joinpath(ONE).mkdir(parents=True, exist_ok=True)
        state.save(self.where().state, state.ClusterState("v1.36.3", phase, 1, parts))


@pytest.fixture
def bench(tmp_path: pathlib.Path) -> Iterator[Bench]:
    found = Bench(tmp_path)
    (found.root / ONE).mkdir(parents=True)
    yield found
    found.table.kill(found.processes())


def test_a_component_that_ends_is_reported_with_what_it_said(bench: Bench) -> None:
    bench.source.scripts["etcd"] = "echo 'the disk is on fire' >&2; exit 3"
    with pytest.raises(errors.ComponentError) as caught:
        bench.up()
    log = bench.where().log("etcd")
    assert str(caught.value) == f"etcd ended: the disk is on fire; its log is {log}"
    assert caught.value.component == "etcd"
    assert log.exists()
    assert bench.processes() == []


def test_programs_collect_garbage_seldom_and_within_bounds(bench: Bench) -> None:
    bench.source.scripts["etcd"] = 'echo "$GOGC percent, $GOMEMLIMIT"; exit 3'
    with pytest.raises(errors.ComponentError, match="ended: 400 percent, 1536MiB;"):
        bench.up()


def test_an_api_server_that_never_answers_is_reported_with_its_log(bench: Bench) -> None:
    manager = cluster.ClusterManager(bench.root, bench.reporter, bench.clock, lambda _: bench.clock.sleep(20))
    with pytest.raises(errors.ComponentError, match=r"kube-apiserver was not ready within 90 s \(/readyz: "):
        manager.up(cluster.ClusterRequest(ONE), bench.source)
    assert bench.processes() == []


def test_a_taken_port_is_tried_again_with_others_a_few_times(bench: Bench) -> None:
    record = bench.root.parent / "ports"
    taken = "bind: address already in use"
    bench.source.scripts["kube-apiserver"] = f'echo "$4" >> {record}; echo "{taken}"; exit 1'
    with pytest.raises(errors.PortTakenError):
        bench.up()
    tried = record.read_text().splitlines()
    assert len(set(tried)) == len(tried) == 4


def test_nothing_is_left_when_binaries_are_not_available(bench: Bench) -> None:
    bench.source.error = errors.BuildError("there is no Go")
    with pytest.raises(errors.BuildError):
        bench.up()
    assert list(bench.root.iterdir()) == []


def test_nothing_is_left_of_an_interrupted_start(bench: Bench) -> None:
    def interrupt(_: float) -> None:
        raise KeyboardInterrupt

    manager = cluster.ClusterManager(bench.root, bench.reporter, bench.clock, interrupt)
    with pytest.raises(KeyboardInterrupt):
        manager.up(cluster.ClusterRequest(ONE), bench.source)
    assert list(bench.root.iterdir()) == []
    assert bench.processes() == []


EVERYTHING: Final = {binary.name for binary in components.CONTROL_PLANE.binaries}


@pytest.mark.parametrize("version", [None, "1.36"])
@pytest.mark.parametrize("nodes", [False, True], ids=["without nodes", "with nodes"])
def test_all_binaries_that_are_built_together_are_asked_for_together(
    bench: Bench, nodes: bool, version: str | None
) -> None:
    bench.source.scripts["etcd"] = "exit 1"
    with pytest.raises(errors.ComponentError):
        bench.up(nodes=nodes, version=version)
    assert bench.source.asked == [EVERYTHING]


def test_another_version_builds_no_kubernetes_of_the_default_one(bench: Bench) -> None:
    bench.source.scripts["etcd"] = "exit 1"
    with pytest.raises(errors.ComponentError):
        bench.up(version="1.36")
    (asked,) = bench.source.components
    assert asked == {
        "control-plane": {"etcd", "helm", "kwok"},
        "kubernetes-1.36": {"kube-apiserver", "kube-controller-manager", "kubectl", "kube-scheduler"},
    }


@pytest.mark.parametrize("phase", ["starting", "ready"])
def test_what_still_runs_of_an_earlier_cluster_is_ended_first(
    bench: Bench, phase: Literal["starting", "ready"]
) -> None:
    left = bench.run("kwok").process
    bench.write(phase, etcd=bench.ended())
    bench.source.scripts["etcd"] = "exit 1"
    with pytest.raises(errors.ComponentError):
        bench.up()
    assert not bench.table.is_alive(left)
    assert bench.reporter.said[0] == "The cluster one has ended, or never came up: starting over"


def test_another_version_is_refused_while_a_cluster_runs(bench: Bench) -> None:
    etcd = bench.run("etcd")
    bench.write(etcd=etcd)
    with pytest.raises(errors.DevClusterError, match=r"runs Kubernetes v1\.36\.3, not 1\.34; end it with"):
        bench.up(version="1.34")
    assert bench.table.is_alive(etcd.process)


def test_a_kubeconfig_of_the_user_stops_up_before_anything_is_done(
    bench: Bench, tmp_path: pathlib.Path
) -> None:
    mine = tmp_path / "config"
    mine.write_text("contexts: [{name: production}]")
    with pytest.raises(errors.DevClusterError, match="is not a kubeconfig of the cluster one"):
        bench.up(export=mine)
    assert bench.source.asked == []


@pytest.mark.parametrize(
    ("phase", "alive", "dead", "condition"),
    [
        ("ready", 2, 0, "running"),
        ("ready", 1, 1, "degraded"),
        ("ready", 0, 2, "stopped"),
        ("starting", 1, 0, "interrupted"),
        ("starting", 0, 1, "interrupted"),
    ],
)
def test_the_condition_of_a_cluster_that_nobody_works_on_is_that_of_its_processes(
    bench: Bench, phase: Literal["starting", "ready"], alive: int, dead: int, condition: str
) -> None:
    parts = [bench.run(f"part{number}") for number in range(alive)] + [bench.ended()] * dead
    bench.write(phase, **{f"component{number}": part for number, part in enumerate(parts)})
    (found,) = bench.manager.status()
    assert found.condition == condition
    assert [pid for pid in found.components.values() if pid] == [part.process.pid for part in parts[:alive]]
    assert (found.name, found.version, found.url) == ("one", "v1.36.3", "https://127.0.0.1:1")


def test_a_directory_without_a_state_is_an_interrupted_cluster(bench: Bench) -> None:
    assert bench.manager.status() == [cluster.Status("one", "interrupted")]


@pytest.mark.parametrize("has_state", [True, False], ids=["programs run", "binaries are built"])
def test_a_cluster_is_starting_as_long_as_an_up_works_on_it(bench: Bench, has_state: bool) -> None:
    if has_state:
        bench.write("starting", etcd=bench.run("etcd"))
    with locks.directory(bench.root / ONE, lambda _: None):
        (found,) = bench.manager.status()
        with pytest.raises(errors.DevClusterError, match="the cluster one is still starting; try again when"):
            bench.manager.get(ONE)
    (afterwards,) = bench.manager.status()
    assert (found.condition, afterwards.condition) == ("starting", "interrupted")


def test_there_is_no_cluster_before_the_first(tmp_path: pathlib.Path) -> None:
    assert Bench(tmp_path).manager.status() == []


def test_down_ends_what_runs_even_if_nobody_wrote_it_down(bench: Bench) -> None:
    left = bench.run("etcd").process
    assert bench.manager.down(ONE)
    assert not bench.table.is_alive(left)
    assert list(bench.root.iterdir()) == []


def test_down_leaves_alone_who_has_a_pid_by_now(bench: Bench) -> None:
    bench.write(etcd=bench.ended())
    assert bench.manager.down(ONE)


def test_down_of_nothing_is_not_an_error(bench: Bench) -> None:
    assert not bench.manager.down(layout.ClusterName("two"))


def test_a_cluster_that_runs_is_given_out(bench: Bench) -> None:
    bench.write(etcd=bench.run("etcd"))
    found = bench.manager.get(ONE)
    root = bench.where().root
    assert (found.kubeconfig, found.kubectl, found.helm) == (
        root / "kubeconfig",
        root / "bin/kubectl",
        root / "bin/helm",
    )


@pytest.mark.parametrize("name", ["default", "one"])
def test_a_cluster_that_does_not_run_is_reported_with_how_to_start_it(bench: Bench, name: str) -> None:
    bench.write(etcd=bench.ended())
    option = "" if name == "default" else " --name one"
    with pytest.raises(
        errors.DevClusterError, match=f"start it with 'addon-operator devcluster up{option}'$"
    ):
        bench.manager.get(layout.ClusterName(name))


def test_a_state_directory_that_cannot_be_made_is_reported(tmp_path: pathlib.Path) -> None:
    (tmp_path / "clusters").write_text("a file")
    with pytest.raises(errors.DevClusterError, match=f"set {locations.STATE_VARIABLE} to one that can"):
        Bench(tmp_path).up()


def test_links_in_the_directory_of_binaries_may_be_made_again(bench: Bench) -> None:
    bench.where().make()
    program = fakes.write_program(bench.source.programs / "kubectl", SLEEPS)
    cluster._link(bench.where(), {components.KUBECTL: program})
    link = bench.where().bin / "kubectl"
    cluster._link(bench.where(), {components.KUBECTL: link})
    assert link.resolve() == program
