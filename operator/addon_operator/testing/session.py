"""What the tests of one run of pytest share."""

import pathlib
from typing import TYPE_CHECKING, Final

import pytest

if TYPE_CHECKING:
    from addon_operator.testing.modules.module import GlobalHooks, Module, Modules
    from addon_operator.testing.modules.runtime import Runtime
    from addon_operator.testing.snapshots import Record, Snapshot

UPDATE: Final = "--snapshot-update"
"""The option that writes snapshots; another plugin for snapshots may have it, too."""
KEEP: Final = "--keep-namespace"
NEEDS_PYTEST: Final = "tests of modules need pytest 9.1 or later; install it: pip install 'pytest>=9.1'"
KEPT: Final = pytest.StashKey[list[str]]()
"""What is kept of operators whose tests failed, and where."""
FAILED: Final = pytest.StashKey[bool]()
"""Whether a test has failed."""
_RUNTIME: Final = pytest.StashKey["Runtime"]()
_RECORD: Final = pytest.StashKey["Record"]()


def close(config: pytest.Config) -> None:
    """End what ran for tests."""
    if (running := config.stash.get(_RUNTIME, None)) is not None:
        running.__exit__()


def runtime_of(config: pytest.Config) -> "Runtime":
    """Return what runs hooks and Helm in this test run; it starts when it is first needed."""
    from addon_operator.testing.modules import runtime

    if _RUNTIME not in config.stash:
        config.stash[_RUNTIME] = runtime.Runtime().__enter__()
    return config.stash[_RUNTIME]


def modules_around(config: pytest.Config, path: pathlib.Path) -> "Modules":
    """Return the modules beside a test file's module, or beside its global hooks."""
    from addon_operator.testing.modules import module, places

    if (found := places.module_around(path)) is not None:
        return module.Modules(runtime_of(config), places.of_module(found))
    if (hooks := places.global_hooks_around(path)) is not None:
        return module.Modules(runtime_of(config), places.of_global_hooks(hooks))
    pytest.fail(
        f"{path} is not in the directory 'tests' of a module or of global hooks, so there is nothing to test",
        False,
    )


def tested(path: pathlib.Path, modules: "Modules") -> "Module | None":
    """Return the module that a test file is of; ``None`` if it is of global hooks."""
    from addon_operator.testing.modules import places

    found = places.module_around(path)
    return None if found is None else modules(found.name)


def tested_module(path: pathlib.Path, modules: "Modules") -> "Module":
    """Return the module that a test file is of."""
    found = tested(path, modules)
    if found is None:
        pytest.fail(
            f"{path} is a test of global hooks, so there is no module to test; "
            "take the fixture global_hooks, or modules(NAME)",
            False,
        )
    return found


def global_hooks(modules: "Modules") -> "GlobalHooks":
    """Return the global hooks beside modules."""
    from addon_operator.testing.modules import module

    return module.GlobalHooks(modules)


def snapshot_of(config: pytest.Config, path: pathlib.Path, test: str) -> "Snapshot":
    """Return what compares the snapshots of a test."""
    from addon_operator.testing import snapshots

    update = bool(config.getoption(UPDATE, False))
    return snapshots.Snapshot(snapshots.directory_of(path), test, update=update, record=record_of(config))


def record_of(config: pytest.Config) -> "Record":
    """Return what is noted of the snapshots of this run."""
    from addon_operator.testing import snapshots

    return config.stash.setdefault(_RECORD, snapshots.Record())
