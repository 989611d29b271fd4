"""The environment of the operator's children."""

import os
import pathlib
from collections.abc import Mapping

from addon_operator.app import hook_libraries
from addon_operator.kube import auth


def of_hooks(
    environ: Mapping[str, str], access: auth.ClusterAccess, workspace: pathlib.Path
) -> dict[str, str]:
    """What hooks inherit: the operator's environment, with kubectl pointed at the operator's cluster.

    They find their libraries, too, for which something is put into ``workspace``.

    Raises :class:`~addon_operator.kernel.errors.ConfigurationError` when that cannot be done.
    """
    return hook_libraries.offered(_of_children(environ, access), workspace)


def _of_children(environ: Mapping[str, str], access: auth.ClusterAccess) -> dict[str, str]:
    environment = dict(environ)
    if access.kubeconfig:
        environment["KUBECONFIG"] = os.pathsep.join(str(path.absolute()) for path in access.kubeconfig)
    return environment
