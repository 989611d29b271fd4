"""Where a module under test lies, and what belongs to it: the modules beside it, and the global hooks."""

import pathlib
from typing import Final

import msgspec
from msgspec import structs

from addon_operator.commands import values_files
from addon_operator.kernel import names
from addon_operator.loading import module_directories, module_files
from addon_operator.modules import module_config

TESTS: Final = "tests"
_OWN_PARTS: Final = (module_config.FILE, "hooks", "openapi", "enabled")


class Place(msgspec.Struct, frozen=True):
    """A directory of modules, and the global hooks beside it."""

    modules: pathlib.Path
    global_hooks: pathlib.Path

    def load(self) -> module_files.LoadedModules:
        """Load them as the operator does; global hooks are tested without modules, too.

        Raises a :class:`.ConfigurationError` for what it would not start with.
        """
        found = values_files.places(
            {"modules_dirs": str(self.modules), "global_hooks_dir": str(self.global_hooks)},
            may_lack_global=True,
        )
        return (found if self.modules.is_dir() else structs.replace(found, modules_dirs=())).load()


def of_module(module: pathlib.Path) -> Place:
    """Return the place of a module's directory."""
    modules = module.absolute().parent
    return Place(modules, modules.parent / module_directories.GLOBAL_NAME)


def of_global_hooks(directory: pathlib.Path) -> Place:
    """Return the place of a directory of global hooks, with the modules beside it, or else its settings'."""
    beside, configured = (
        directory.absolute().parent / module_directories.MODULES_NAME,
        values_files.places({}),
    )
    is_own = directory.absolute() == configured.global_hooks_dir.absolute()
    modules = configured.modules_dirs[0] if is_own and not beside.is_dir() else beside
    return Place(modules.absolute(), directory.absolute())


def is_global_hooks(directory: pathlib.Path) -> bool:
    """Say whether a directory is that of global hooks: by its name, or by the settings."""
    if directory.name == module_directories.GLOBAL_NAME:
        return True
    return directory.absolute() == values_files.places({}).global_hooks_dir.absolute()


def global_hooks_around(path: pathlib.Path) -> pathlib.Path | None:
    """Return the directory of global hooks whose ``tests/`` hold a file; ``None`` if there is none."""
    for above in path.absolute().parents:
        if above.name == TESTS and is_global_hooks(above.parent):
            return above.parent
    return None


def module_around(path: pathlib.Path) -> pathlib.Path | None:
    """Return the module whose ``tests/`` hold a file; ``None`` if there is none."""
    for above in path.absolute().parents:
        if above.name == TESTS and is_module(above.parent):
            return above.parent
    return None


def is_module(directory: pathlib.Path) -> bool:
    """Say whether a directory is a module for sure: a chart alone is not, whatever tests it has."""
    if not module_directories.is_module(directory):
        return False
    try:
        order, _ = names.parse_module_directory(directory.name)
    except names.ModuleNameError:
        return False
    return order is not None or any((directory / part).exists() for part in _OWN_PARTS)


def shown(path: pathlib.Path) -> str:
    """Return a path as a person would type it."""
    here = pathlib.Path.cwd()
    return str(path.relative_to(here) if path.is_relative_to(here) else path)
