"""Where a module under test lies, and what belongs to it: the modules beside it, and the global hooks."""

import dataclasses
import pathlib
from typing import Final

from addon_operator.commands.checks import hook_places, values_files
from addon_operator.kernel import names
from addon_operator.loading import module_files
from addon_operator.modules import module_config

TESTS: Final = "tests"
_OWN_PARTS: Final = (module_config.FILE, "hooks", "openapi", "enabled")


@dataclasses.dataclass(frozen=True, slots=True)
class Place:
    """A directory of modules, and the global hooks beside it."""

    modules: pathlib.Path
    global_hooks: pathlib.Path

    def load(self) -> module_files.LoadedModules:
        """Load them as the operator does.

        Raises a :class:`.ConfigurationError` for what it would not start with.
        """
        found = values_files.places(
            {"modules_dirs": str(self.modules), "global_hooks_dir": str(self.global_hooks)}
        )
        return found.load()


def of_module(module: pathlib.Path) -> Place:
    """Return the place of a module's directory."""
    modules = module.absolute().parent
    return Place(modules, modules.parent / hook_places.GLOBAL_NAME)


def module_around(path: pathlib.Path) -> pathlib.Path | None:
    """Return the module whose ``tests/`` hold a file; ``None`` if there is none."""
    for above in path.absolute().parents:
        if above.name == TESTS and is_module(above.parent):
            return above.parent
    return None


def is_module(directory: pathlib.Path) -> bool:
    """Say whether a directory is a module for sure: a chart alone is not, whatever tests it has."""
    if not values_files.is_module(directory):
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
