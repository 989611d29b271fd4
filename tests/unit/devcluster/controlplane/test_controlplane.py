"""Names of clusters, and the command lines of their components."""

import pathlib

import pytest

from addon_operator.devcluster import errors, layout
from addon_operator.devcluster.binaries import components
from addon_operator.devcluster.controlplane import controlplane
from tests.support import rows

WHERE = layout.Layout(pathlib.Path("/state/one"))
NAMES = controlplane.component_names(nodes=True)
BINARIES = {name: pathlib.Path("/cache", name) for name in NAMES}


def arguments(name: str) -> dict[str, str]:
    _, *rest = controlplane.command(name, WHERE, 1001, BINARIES)
    return {key: value for key, _, value in (argument.partition("=") for argument in rest)}


@rows.each("name", ["a", "default", "my-cluster-2", "x" * 63])
def test_names_of_clusters_are_labels(name: str) -> None:
    assert layout.parse_name(name) == name


@rows.each("name", ["", "-a", "a-", "A", "a b", "../a", "a/b", ".", "x" * 64, "a\n"])
def test_other_names_are_refused(name: str) -> None:
    with pytest.raises(errors.DevClusterError, match="cannot be the name of a cluster; use"):
        layout.parse_name(name)


@rows.each("name", NAMES)
def test_nothing_of_a_cluster_is_outside_its_directory(name: str) -> None:
    paths = [value for value in arguments(name).values() if value.startswith("/")]
    assert paths
    assert all(value.startswith("/state/one/") for value in paths)


@rows.each("name", NAMES)
def test_nothing_listens_beyond_loopback(name: str) -> None:
    given = arguments(name)
    assert given.get("--bind-address", "127.0.0.1") == "127.0.0.1"
    if name in {components.KUBE_CONTROLLER_MANAGER, components.KUBE_SCHEDULER}:
        assert given["--secure-port"] == "0"


def test_etcd_listens_in_the_clusters_directory_only() -> None:
    given = arguments(components.ETCD)
    urls = {key: value for key, value in given.items() if key.startswith("--listen-")}
    assert urls == {
        "--listen-client-urls": "unix://etcd.sock",
        "--listen-peer-urls": "unix://etcd-peer.sock",
    }
