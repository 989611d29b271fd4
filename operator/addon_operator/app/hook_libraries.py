"""The libraries for hooks that come with the operator: where hooks find them."""

import os
import pathlib
from collections.abc import Mapping
from typing import Final

import addon_operator
from addon_operator.kernel import errors

SHELL_VARIABLE: Final = "ADDON_OPERATOR_SHELL_LIBRARY"
"""Holds the path of the library for hooks in bash."""
PYTHON_VARIABLE: Final = "PYTHONPATH"
_PACKAGE: Final = pathlib.Path(addon_operator.__file__).absolute().parent
SHELL_LIBRARY: Final = _PACKAGE / "shell" / "shell_lib.sh"
_LINKS: Final = "python"


def offered(environ: Mapping[str, str], directory: pathlib.Path) -> dict[str, str]:
    """``environ`` with the variables by which hooks find the libraries.

    A link to the package is put below ``directory``, which lives as long as hooks are run: whichever Python
    runs a hook finds :mod:`.hook` there and, unlike in the place where the operator is
    installed, nothing else.

    Raises :class:`.ConfigurationError` when the link cannot be made.
    """
    paths = [*filter(None, [environ.get(PYTHON_VARIABLE)]), str(_linked(directory / _LINKS))]
    return {**environ, PYTHON_VARIABLE: os.pathsep.join(paths), SHELL_VARIABLE: str(SHELL_LIBRARY)}


def _linked(directory: pathlib.Path) -> pathlib.Path:
    try:
        directory.mkdir(mode=0o700, exist_ok=True)
        link = directory / _PACKAGE.name
        if not link.is_symlink():
            link.symlink_to(_PACKAGE, target_is_directory=True)
    except OSError as error:
        raise errors.ConfigurationError(
            f"the libraries for hooks cannot be linked in {directory}: {error.strerror}; "
            "name another directory for temporary files with TMP_DIR or --tmp-dir"
        ) from None
    return directory
