"""What is checked before anything is started: files, tools, and directories that settings name."""

import contextlib
import pathlib
from collections.abc import Iterator, Sequence
from typing import Final

from addon_operator.kernel import errors
from addon_operator.loading import hook_files, module_directories, module_files
from addon_operator.process import workspaces
from addon_operator.settings import settings as settings_module

WORKSPACE_PREFIX: Final = "run-"
"""How the directories of processes in ``TMP_DIR`` begin."""
MEMORY: Final = pathlib.Path("/dev/shm")  # noqa: S108 - only a directory with a sticky bit, or of ours, is used
"""Where Linux and container runtimes have a file system in memory."""
_MEMORY_PREFIX: Final = "addon-operator-run-"


def load_modules(settings: settings_module.Settings) -> module_files.LoadedModules:
    """Load the modules on disk; raises a :class:`ConfigurationError` for whatever is wrong with them."""
    if settings.strict_check_values_mode_enabled:
        _check_common_values(settings.modules_dirs)
    return module_files.load(
        settings.modules_dirs,
        settings.unnumbered_module_order,
        settings.global_hooks_dir,
        charts=settings.charts,
        namespace=settings.namespace,
    )


def _check_common_values(directories: Sequence[pathlib.Path]) -> None:
    missing = [path for path in directories if not (path / module_files.VALUES_FILE).is_file()]
    if missing:
        path = missing[0].absolute() / module_files.VALUES_FILE
        raise errors.ConfigurationError(
            f"{path} does not exist, and STRICT_CHECK_VALUES_MODE_ENABLED "
            "demands it; write the file, which may be empty, or leave that setting out"
        )


def check_global_hooks(settings: settings_module.Settings) -> None:
    """Raise a :class:`ConfigurationError` if a global hook can never run, or their directory is missing."""
    check_global_hooks_directory(settings)
    hooks = hook_files.discover(hook_files.global_hooks_root(settings.global_hooks_dir))
    if hooks.problem:
        raise hook_files.HookFilesError(hooks.problem)


def check_global_hooks_directory(settings: settings_module.Settings) -> None:
    """Raise if a directory that somebody named does not exist; the default one need not."""
    named = settings.origins.get("global_hooks_dir", "default") != "default"
    if named:
        module_directories.check_global(settings.global_hooks_dir)


@contextlib.contextmanager
def workspace(settings: settings_module.Settings, *, keep: bool = False) -> Iterator[pathlib.Path]:
    """Make a private directory for this process's temporary files; with ``keep`` it is left behind.

    Raises a :class:`ConfigurationError` when ``TMP_DIR`` cannot be used, or is not safe from other users.
    """
    try:
        temporary = workspaces.Workspace(_tmp_dir(settings), WORKSPACE_PREFIX)
    except OSError as error:
        raise _unusable(settings, f"cannot be used: {error.strerror}") from None
    try:
        yield temporary.path
    finally:
        temporary.close(keep=keep)


@contextlib.contextmanager
def memory_workspace(temporary: pathlib.Path) -> Iterator[pathlib.Path | None]:
    """Make a directory in memory, for what is short and waited for; ``None`` where that cannot be.

    ``temporary`` is that of :func:`workspace`: it is made in there if that is in memory itself.
    """
    with contextlib.ExitStack() as stack:
        made: pathlib.Path | None = None
        with contextlib.suppress(OSError, workspaces.UnsafeDirectoryError):
            if workspaces.is_in_memory(temporary):
                made = temporary / "short"
                made.mkdir(mode=0o700)
            elif workspaces.is_in_memory(MEMORY):
                workspaces.check_parent(MEMORY)
                own = workspaces.Workspace(MEMORY, _MEMORY_PREFIX)
                stack.callback(own.close)
                made = own.path
        yield made


def remove_dead_workspaces(settings: settings_module.Settings) -> list[pathlib.Path]:
    """Remove what killed operators left, which may hold values; raises as :func:`workspace` does."""
    try:
        removed = workspaces.remove_dead(_tmp_dir(settings), WORKSPACE_PREFIX)
    except OSError as error:
        raise _unusable(settings, f"cannot be used: {error.strerror}") from None
    return removed + workspaces.remove_dead(MEMORY, _MEMORY_PREFIX)


def _tmp_dir(settings: settings_module.Settings) -> pathlib.Path:
    # Children get its paths and run in directories of their own.
    tmp_dir = settings.tmp_dir.absolute()
    tmp_dir.mkdir(parents=True, exist_ok=True, mode=0o700)
    try:
        workspaces.check_parent(tmp_dir)
    except workspaces.UnsafeDirectoryError as error:
        raise _unusable(settings, f"is not safe: {error}") from None
    return tmp_dir


def _unusable(settings: settings_module.Settings, why: str) -> errors.ConfigurationError:
    return errors.ConfigurationError(
        f"the directory for temporary files, {settings.tmp_dir}, {why}; "
        "name another one with ADDON_OPERATOR_TMP_DIR or --tmp-dir"
    )
