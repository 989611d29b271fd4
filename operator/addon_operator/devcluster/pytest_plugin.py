"""pytest fixtures that give tests a real control plane.

Use it with ``pytest_plugins = ["addon_operator.devcluster.pytest_plugin"]`` in the topmost ``conftest.py``,
or import the fixtures by name into any ``conftest.py``::

    from addon_operator.devcluster.pytest_plugin import devcluster, devcluster_options, namespace

One control plane serves the whole run and is removed at its end. Define ``devcluster_options`` anew to have
another version of Kubernetes.
"""

import contextlib
import os
import pathlib
import re
import secrets
from collections.abc import Callable, Iterator
from typing import Final

import msgspec
import pytest

from addon_operator.devcluster import (
    cluster,
    errors,
    handle,
    layout,
    locations,
    reporters,
)
from addon_operator.devcluster.binaries import binaries, components

__all__ = ["DevCluster", "DevClusterOptions", "devcluster", "devcluster_options", "namespace"]

DevCluster = handle.DevCluster

_RUN: Final = re.compile(r"pytest-(?P<pid>\d+)-[0-9a-f]+")


class DevClusterOptions(msgspec.Struct, frozen=True):
    """What the cluster of a test run is like."""

    version: str = components.DEFAULT_VERSION
    """Minor version of Kubernetes."""
    nodes: bool = True
    """Whether there is a node, so that pods of Deployments become ready."""


@pytest.fixture(scope="session")
def devcluster_options() -> DevClusterOptions:
    """Return the defaults; a fixture of this name in a ``conftest.py`` replaces them."""
    return DevClusterOptions()


@pytest.fixture(scope="session")
def devcluster(
    devcluster_options: DevClusterOptions, pytestconfig: pytest.Config
) -> Iterator[handle.DevCluster]:
    """Give this test run its own control plane; build its binaries if there are none yet."""
    with running(devcluster_options, pytestconfig) as started:
        yield started


@contextlib.contextmanager
def running(
    options: DevClusterOptions, config: pytest.Config, is_kept: Callable[[], bool] | None = None
) -> Iterator[handle.DevCluster]:
    """Run a control plane for a test run: what the fixture ``devcluster`` does.

    With ``is_kept``, which is asked at the end, it may stay, also when the next run clears up.
    """
    where = locations.locate(os.environ)
    manager = cluster.ClusterManager(where.state, reporters.Reporter())
    remove_abandoned(manager, pathlib.Path("/proc"))
    prefix = f"pytest-{os.getpid()}" if is_kept is None else "kept"
    name = layout.ClusterName(f"{prefix}-{secrets.token_hex(3)}")
    request = cluster.ClusterRequest(name, options.version, options.nodes)
    try:
        yield _started(manager, request, where, reporters.PlainReporter(_uncaptured(config)))
    finally:
        if is_kept is None or not is_kept():
            manager.down(name)


@pytest.fixture
def namespace(devcluster: handle.DevCluster) -> Iterator[str]:
    """Give a fresh namespace; its deletion begins when the test ends, and is not waited for."""
    name = devcluster.namespace()
    yield name
    devcluster.delete_namespace(name)


def remove_abandoned(manager: cluster.ClusterManager, proc: pathlib.Path) -> None:
    """Remove the clusters of test runs that were killed: nobody else would."""
    for status in manager.status():
        match = _RUN.fullmatch(status.name)
        if match and not (proc / match["pid"]).exists():
            manager.down(layout.ClusterName(status.name))


def _started(
    manager: cluster.ClusterManager,
    request: cluster.ClusterRequest,
    where: locations.Locations,
    reporter: reporters.Reporter,
) -> handle.DevCluster:
    try:
        with binaries.workshop(where, os.environ, reporter) as store:
            return manager.up(request, store)
    except errors.DevClusterError as error:
        pytest.fail(f"there is no control plane for this test: {error}", pytrace=False)


def _uncaptured(config: pytest.Config) -> Callable[[str], None]:
    """Write to the terminal although pytest captures: a first build takes minutes."""
    reporter = config.pluginmanager.get_plugin("terminalreporter")
    capture = config.pluginmanager.get_plugin("capturemanager")

    def write(text: str) -> None:
        if reporter is not None and capture is not None:
            with capture.global_and_fixture_disabled():
                reporter.write_line(text)

    return write
