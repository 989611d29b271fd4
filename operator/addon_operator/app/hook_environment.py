"""The environment of hooks: what they inherit, and where they find the libraries for hooks."""

import fnmatch
import os
import pathlib
from collections.abc import Mapping, Sequence
from typing import Final

import addon_operator
from addon_operator.kernel import errors
from addon_operator.kube.access import auth
from addon_operator.settings import setting_resolution, settings

SHELL_VARIABLE: Final = "ADDON_OPERATOR_SHELL_LIBRARY"
"""Holds the path of the library for hooks in bash."""
FRAMEWORK_VARIABLE: Final = "FRAMEWORK_DIR"
"""Holds its directory, by which hooks of shell-operator find it."""
PYTHON_VARIABLE: Final = "PYTHONPATH"
_PACKAGE: Final = pathlib.Path(addon_operator.__file__).absolute().parent
SHELL_LIBRARY: Final = _PACKAGE / "shell" / "shell_lib.sh"
_LINKS: Final = "python"

_ALWAYS: Final = ("PATH",)
"""Without it no interpreter of a hook would be found."""
_PLACES_OF_CREDENTIALS: Final = ("debug_unix_socket", "admission_server_certs_dir")
"""Settings that say where something lies by which one becomes the operator: the socket, the private key."""
_OF_HELM: Final = ("HELM_KUBE*", "HELM_REGISTRY_CONFIG", "HELM_REPOSITORY_CONFIG")
"""Tokens, users and certificates for Helm's own way to the cluster, and to registries."""


def _credentials() -> frozenset[str]:
    own = [settings.TABLE[field] for field in _PLACES_OF_CREDENTIALS]
    names = frozenset(name for setting in own for name in setting.variables)
    return names | {setting_resolution.SHELL_PREFIX + setting.name for setting in own} | frozenset(_OF_HELM)


CREDENTIALS: Final = _credentials()
"""Names and patterns of variables that hooks get only when ``HOOK_ENV`` names them in full."""


def of_hooks(
    environ: Mapping[str, str], access: auth.ClusterAccess, workspace: pathlib.Path, wanted: Sequence[str]
) -> dict[str, str]:
    """Return what hooks get: what they may inherit, with kubectl pointed at the operator's cluster.

    ``wanted`` are the names and patterns of ``HOOK_ENV``. Hooks find their libraries, too, for which
    something is put into ``workspace``.

    Raises :class:`.ConfigurationError` when that cannot be done.
    """
    environment = inherited(environ, wanted)
    if access.kubeconfig:
        environment["KUBECONFIG"] = os.pathsep.join(str(path.absolute()) for path in access.kubeconfig)
    return offered(environment, workspace)


def inherited(environ: Mapping[str, str], wanted: Sequence[str]) -> dict[str, str]:
    """Return the variables that the names and patterns of ``HOOK_ENV`` allow."""
    names = frozenset((*wanted, *_ALWAYS))
    patterns = [name for name in wanted if "*" in name]
    return {
        name: value
        for name, value in environ.items()
        if name in names or (_is_like(name, patterns) and not _is_like(name, CREDENTIALS))
    }


def _is_like(name: str, patterns: Sequence[str] | frozenset[str]) -> bool:
    return any(fnmatch.fnmatchcase(name, pattern) for pattern in patterns)


def offered(environ: Mapping[str, str], directory: pathlib.Path) -> dict[str, str]:
    """Return ``environ`` with the variables by which hooks find the libraries.

    A link to the package is put below ``directory``, which lives as long as hooks are run: whichever Python
    runs a hook finds :mod:`.hook` there and, unlike in the place where the operator is
    installed, nothing else.

    Raises :class:`.ConfigurationError` when the link cannot be made.
    """
    paths = [*filter(None, [environ.get(PYTHON_VARIABLE)]), str(_linked(directory / _LINKS))]
    return {
        FRAMEWORK_VARIABLE: str(SHELL_LIBRARY.parent),
        **environ,
        PYTHON_VARIABLE: os.pathsep.join(paths),
        SHELL_VARIABLE: str(SHELL_LIBRARY),
    }


def _linked(directory: pathlib.Path) -> pathlib.Path:
    try:
        directory.mkdir(mode=0o700, exist_ok=True)
        link = directory / _PACKAGE.name
        if not link.is_symlink():
            link.symlink_to(_PACKAGE, target_is_directory=True)
    except OSError as error:
        raise errors.ConfigurationError(
            f"the libraries for hooks cannot be linked in {directory}: {error.strerror}; "
            "name another directory for temporary files with ADDON_OPERATOR_TMP_DIR or --tmp-dir"
        ) from None
    return directory
