"""What the tests of one run of pytest share."""

import pathlib
from typing import TYPE_CHECKING, Final

import pytest

if TYPE_CHECKING:
    from addon_operator.testing.modules.module import Module, Modules
    from addon_operator.testing.modules.runtime import Runtime
    from addon_operator.testing.snapshots import Snapshot

UPDATE: Final = "--snapshot-update"
"""The option that writes snapshots."""
_RUNTIME: Final = pytest.StashKey["Runtime"]()


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


def modules_around(config: pytest.Config, path: pathlib.Path) -> "tuple[Modules, Module]":
    """Return the modules beside a test file's module, and that one."""
    from addon_operator.testing.modules import module, places

    found = _directory(path)
    modules = module.Modules(runtime_of(config), places.of_module(found))
    return modules, modules(found.name)


def module_of(modules: "Modules", path: pathlib.Path) -> "Module":
    """Return the module of a test file."""
    return modules(_directory(path).name)


def _directory(path: pathlib.Path) -> pathlib.Path:
    from addon_operator.testing.modules import places

    found = places.module_around(path)
    if found is None:
        pytest.fail(
            f"{path} is not in the directory 'tests' of a module, so there is no module to test", False
        )
    return found


def snapshot_of(config: pytest.Config, path: pathlib.Path, test: str) -> "Snapshot":
    """Return what compares the snapshots of a test."""
    from addon_operator.testing import snapshots

    directory = path.parent / snapshots.DIRECTORY / path.stem
    return snapshots.Snapshot(directory, test, update=bool(config.getoption(UPDATE)))
