"""What is checked before anything is started: files, tools, and directories that settings name."""

import pathlib
import tempfile
from collections.abc import Sequence

from addon_operator.app import settings as settings_module
from addon_operator.engine import module_files
from addon_operator.kernel import errors


def load_modules(settings: settings_module.Settings) -> module_files.LoadedModules:
    """The modules on disk; raises a :class:`ConfigurationError` for whatever is wrong with them."""
    if settings.strict_check_values_mode_enabled:
        _check_common_values(settings.modules_dirs)
    return module_files.load(
        settings.modules_dirs, settings.unnumbered_module_order, settings.global_hooks_dir
    )


def _check_common_values(directories: Sequence[pathlib.Path]) -> None:
    missing = [path for path in directories if not (path / module_files.VALUES_FILE).is_file()]
    if missing:
        raise errors.ConfigurationError(
            f"{missing[0] / module_files.VALUES_FILE} does not exist, and STRICT_CHECK_VALUES_MODE_ENABLED "
            "demands it; write the file, which may be empty, or leave that setting out"
        )


def check_global_hooks_directory(settings: settings_module.Settings) -> None:
    """A directory that somebody named must exist; the default one need not."""
    named = settings.origins.get("global_hooks_dir", "default") != "default"
    if named and not settings.global_hooks_dir.is_dir():
        raise errors.ConfigurationError(
            f"global hooks directory {settings.global_hooks_dir} does not exist; "
            "name it with GLOBAL_HOOKS_DIR or --global-hooks-dir"
        )


def make_workspace(settings: settings_module.Settings) -> pathlib.Path:
    """A private directory for the temporary files of this process."""
    try:
        # Children get its paths and run in directories of their own.
        tmp_dir = settings.tmp_dir.absolute()
        tmp_dir.mkdir(parents=True, exist_ok=True, mode=0o700)
        return pathlib.Path(tempfile.mkdtemp(prefix="run-", dir=tmp_dir))
    except OSError as error:
        raise errors.ConfigurationError(
            f"the directory for temporary files, {settings.tmp_dir}, cannot be used: {error.strerror}; "
            "name another one with TMP_DIR or --tmp-dir"
        ) from None
