"""The fixtures for authors of modules; the cluster itself is left to the integration tests."""

import os
import pathlib

from addon_operator.devcluster import cluster, layout, pytest_plugin, reporters


def make(root: pathlib.Path, *names: str) -> cluster.ClusterManager:
    for name in names:
        (root / name).mkdir(parents=True)
    return cluster.ClusterManager(root, reporters.Reporter())


def test_clusters_of_killed_test_runs_are_removed(tmp_path: pathlib.Path) -> None:
    (tmp_path / "proc/12").mkdir(parents=True)
    manager = make(tmp_path / "clusters", "pytest-11-abc123", "pytest-12-abc123", "pytest-mine", "default")
    pytest_plugin.remove_abandoned(manager, tmp_path / "proc")
    assert [status.name for status in manager.status()] == ["default", "pytest-12-abc123", "pytest-mine"]


def test_names_of_test_runs_are_names_of_clusters() -> None:
    name = f"pytest-{os.getpid()}-0a1b2c"
    assert layout.parse_name(name) == name
    assert pytest_plugin._RUN.fullmatch(name)
