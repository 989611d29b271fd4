"""The environment of the operator's children."""

import fnmatch
import os
import pathlib
from collections.abc import Mapping, Sequence
from typing import Final

from addon_operator.app import hook_libraries
from addon_operator.kube.access import auth
from addon_operator.settings import setting_resolution, settings

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
    """What hooks get: what they may inherit, with kubectl pointed at the operator's cluster.

    ``wanted`` are the names and patterns of ``HOOK_ENV``. Hooks find their libraries, too, for which
    something is put into ``workspace``.

    Raises :class:`.ConfigurationError` when that cannot be done.
    """
    environment = inherited(environ, wanted)
    if access.kubeconfig:
        environment["KUBECONFIG"] = os.pathsep.join(str(path.absolute()) for path in access.kubeconfig)
    return hook_libraries.offered(environment, workspace)


def inherited(environ: Mapping[str, str], wanted: Sequence[str]) -> dict[str, str]:
    """The variables that the names and patterns of ``HOOK_ENV`` allow."""
    names = frozenset((*wanted, *_ALWAYS))
    patterns = [name for name in wanted if "*" in name]
    return {
        name: value
        for name, value in environ.items()
        if name in names or (_is_like(name, patterns) and not _is_like(name, CREDENTIALS))
    }


def _is_like(name: str, patterns: Sequence[str] | frozenset[str]) -> bool:
    return any(fnmatch.fnmatchcase(name, pattern) for pattern in patterns)
