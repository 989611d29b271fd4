"""The fixtures for tests of modules; :mod:`.plugin` gives them to the tests of modules alone.

Name this module in ``pytest_plugins`` to have them in all tests.
"""

import inspect
import pathlib
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

import pytest

from addon_operator.testing import session

if TYPE_CHECKING:
    from addon_operator.devcluster.handle import DevCluster
    from addon_operator.testing.live.running_operator import OperatorMaker
    from addon_operator.testing.modules.module import GlobalHooks, Module, Modules
    from addon_operator.testing.snapshots import Snapshot

_CLUSTER: Final = pytest.StashKey["DevCluster"]()


@pytest.fixture
def modules(request: pytest.FixtureRequest) -> "Modules":
    """Give the modules beside the tested one: ``modules("020-other")`` is one of them."""
    return session.modules_around(request.config, request.path)


@pytest.fixture
def module(request: pytest.FixtureRequest, modules: "Modules") -> "Module":
    """Give the module in whose directory ``tests/`` the test lies."""
    return session.tested_module(request.path, modules)


@pytest.fixture
def global_hooks(modules: "Modules") -> "GlobalHooks":
    """Give the global hooks beside the modules: ``global_hooks.hook("x.py")`` is one of them."""
    return session.global_hooks(modules)


@pytest.fixture
def snapshot(request: pytest.FixtureRequest) -> "Snapshot":
    """``snapshot(obj)`` compares with a YAML file in ``snapshots/`` beside the test."""
    return session.snapshot_of(request.config, request.path, request.node.name)


@pytest.fixture(scope="session")
def cluster(request: pytest.FixtureRequest) -> "Iterator[DevCluster]":
    """Give a real control plane for the whole run: that of the fixture ``devcluster``, if there is one."""
    from addon_operator.devcluster import pytest_plugin

    # Each directory with tests of modules has this fixture, and all have one control plane.
    stash = request.config.stash
    try:
        shared = stash.get(_CLUSTER, None) or request.getfixturevalue("devcluster")
    except pytest.FixtureLookupError:
        shared = None
    if shared is not None:
        yield shared
        return
    kept = stash.setdefault(session.KEPT, [])
    is_kept = (lambda: bool(kept)) if request.config.getoption(session.KEEP, False) else None
    with pytest_plugin.running(pytest_plugin.DevClusterOptions(), request.config, is_kept) as started:
        stash[_CLUSTER] = started
        yield started
        if kept:
            kept.append(f"remove it all with: addon-operator devcluster down --name {started.name}")


@pytest.fixture
def operator(
    request: pytest.FixtureRequest,
    cluster: "DevCluster",
    modules: "Modules",
    tmp_path: pathlib.Path,
) -> "Iterator[OperatorMaker]":
    """``operator(modules=[…], values={…})`` starts an operator in a namespace of its own."""
    from addon_operator.testing.live import running_operator

    tested = session.tested(request.path, modules)
    maker = running_operator.OperatorMaker(cluster, modules, tested, tmp_path)
    try:
        yield maker
    finally:
        has_failed = request.node.stash.get(session.FAILED, False)
        if kept := maker.close(keep=has_failed and bool(request.config.getoption(session.KEEP, False))):
            request.config.stash.setdefault(session.KEPT, []).append(kept)


def provide(node: pytest.Collector) -> None:
    """Give the fixtures to the tests below a node."""
    if not hasattr(pytest, "register_fixture"):
        raise pytest.UsageError(session.NEEDS_PYTEST)
    for fixture in (modules, module, global_hooks, snapshot, operator):
        pytest.register_fixture(name=fixture.__name__, func=inspect.unwrap(fixture), node=node)
    pytest.register_fixture(name="cluster", func=inspect.unwrap(cluster), node=node, scope="session")
