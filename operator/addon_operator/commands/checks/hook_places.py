"""Where hooks are: in the configured directories, or below one that somebody names."""

import contextlib
import os
import pathlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import msgspec
from msgspec import structs

from addon_operator.hook_contract.configuration import hook_config
from addon_operator.kernel import errors, names
from addon_operator.loading import hook_files, module_directories
from addon_operator.settings import setting_resolution, settings_loading

_FIELDS: Final = ("modules_dirs", "global_hooks_dir", "hook_env")
_ENABLED: Final = "enabled"
_BOTH: Final = (module_directories.GLOBAL_NAME, module_directories.MODULES_NAME)


class HookRoot(msgspec.Struct, frozen=True):
    """A directory of hooks."""

    root: pathlib.Path
    """It need not exist."""
    owner: str
    """Name of the module, or ``global``."""
    kind: hook_config.HookKind | None
    """Whose hooks they are; ``None`` if only their configurations can tell."""
    script: pathlib.Path | None = None
    """The module's ``enabled`` script, if it has one."""
    only: pathlib.Path | None = None
    """The one file that matters; ``None``: all."""
    problem: str = ""
    """What is wrong with the directory itself."""


class Configured(msgspec.Struct, frozen=True):
    """The directories of the settings."""

    modules_dirs: tuple[pathlib.Path, ...]
    global_hooks_dir: pathlib.Path
    global_is_named: bool
    """Whether somebody named that one; a default need not exist."""
    hook_env: tuple[str, ...] = ("*",)
    """The variables that hooks inherit."""

    def places(self) -> Iterator[HookRoot]:
        """Yield all directories of hooks.

        Raises a :class:`.ConfigurationError` for one that does not exist.
        """
        if self.global_is_named:
            module_directories.check_global(self.global_hooks_dir)
        yield of_global(self.global_hooks_dir)
        for directory in self.modules_dirs:
            yield from in_modules(directory)

    def below(self, path: pathlib.Path) -> Sequence[HookRoot]:
        """Return the directories of hooks in a modules directory, a module or a directory of hooks.

        Raises a :class:`.ConfigurationError` like :meth:`places`.
        """
        with contextlib.suppress(OSError):  # What cannot be looked at is told below.
            if path.is_file():
                return [self._of_file(path)]
        if problem := module_directories.why_no_directory(path):
            raise errors.ConfigurationError(
                f"{path.absolute()} {problem}; name a directory with hooks or modules"
            )
        both = [path / name for name in _BOTH if (path / name).is_dir()]
        if both and not module_directories.is_module(path):
            return [place for directory in both for place in self.below(directory)]
        known = self._of_owner(path)
        return list(self._of_several(path)) if known is None else [known]

    def _of_owner(self, path: pathlib.Path) -> HookRoot | None:
        """Return the place of a directory that belongs to one module, or to global hooks."""
        if self.is_global(path):
            return of_global(path)
        if path.absolute().name == hook_files.HOOKS_DIRECTORY:
            return self._of_root(path)
        if module_directories.is_module(path):
            return _of_module(path)
        root = path / hook_files.HOOKS_DIRECTORY
        return self._of_root(root) if root.is_dir() else None

    def _of_several(self, path: pathlib.Path) -> Iterator[HookRoot]:
        """Yield the places in a directory of modules, or one with hooks and nothing else."""
        if path.resolve() in map(pathlib.Path.resolve, self.modules_dirs) or _holds_modules(path):
            yield from in_modules(path)
        else:
            yield HookRoot(path, path.absolute().name, None)

    def _of_file(self, path: pathlib.Path) -> HookRoot:
        if path.name == _ENABLED:
            return structs.replace(_of_module(path.absolute().parent), script=path, only=path)
        roots = (above for above in path.absolute().parents if above.name == hook_files.HOOKS_DIRECTORY)
        root = next(roots, None)
        place = HookRoot(path.parent, path.parent.name, None) if root is None else self._of_root(root)
        return structs.replace(place, script=None, only=path)

    def _of_root(self, root: pathlib.Path) -> HookRoot:
        """Return the place of a directory called ``hooks``."""
        above = root.absolute().parent
        if self.is_global(above):
            return HookRoot(root, names.GLOBAL_KEY, hook_config.HookKind.GLOBAL)
        if module_directories.is_module(above):
            return structs.replace(_of_module(above), root=root)
        return HookRoot(root, above.name, None)

    def is_global(self, path: pathlib.Path) -> bool:
        """Say whether global hooks lie in a directory."""
        return (
            path.resolve() == self.global_hooks_dir.resolve()
            or path.resolve().name == module_directories.GLOBAL_NAME
        )


def configured(flags: Mapping[str, str | None], environ: Mapping[str, str] = os.environ) -> Configured:
    """Return the directories by flags, variables and defaults, as for ``start``; no other setting is needed.

    Raises :class:`.SettingsError`.
    """
    resolution = settings_loading.some(_FIELDS, flags, environ)
    values: Mapping[str, Any] = resolution.values
    is_named = resolution.origins["global_hooks_dir"] != setting_resolution.DEFAULT_ORIGIN
    return Configured(**values, global_is_named=is_named)


def of_global(directory: pathlib.Path) -> HookRoot:
    """Return the place of the global hooks, which need not exist."""
    return HookRoot(hook_files.global_hooks_root(directory), names.GLOBAL_KEY, hook_config.HookKind.GLOBAL)


def in_modules(directory: pathlib.Path) -> Iterator[HookRoot]:
    """Yield the place of hooks of each module in a directory.

    Raises a :class:`.ConfigurationError` for one that is not a directory of modules.
    """
    return map(_of_module, module_directories.listed(directory))


def _of_module(path: pathlib.Path) -> HookRoot:
    root, script, directory = path / hook_files.HOOKS_DIRECTORY, path / _ENABLED, path.absolute().name
    if closed := module_directories.unreachable(path):
        return HookRoot(root, directory, hook_config.HookKind.MODULE, problem=closed)
    place = HookRoot(root, directory, hook_config.HookKind.MODULE, script if script.is_file() else None)
    try:
        return structs.replace(place, owner=names.parse_module_directory(directory)[1])
    except names.ModuleNameError as error:
        return structs.replace(place, problem=str(error))


def _directories(path: pathlib.Path) -> list[pathlib.Path]:
    return sorted(entry for entry in path.iterdir() if entry.is_dir() and not entry.name.startswith("."))


def _holds_modules(path: pathlib.Path) -> bool:
    inside = _directories(path)
    return any(
        module_directories.is_module(entry) or (entry / hook_files.HOOKS_DIRECTORY).is_dir()
        for entry in inside
    )
