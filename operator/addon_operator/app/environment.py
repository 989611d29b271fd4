"""The environment of the operator's children."""

import os
from collections.abc import Mapping

from addon_operator.kube import auth


def of_children(environ: Mapping[str, str], access: auth.ClusterAccess) -> dict[str, str]:
    """What hooks inherit: the operator's environment, with kubectl pointed at the operator's cluster."""
    environment = dict(environ)
    if access.kubeconfig:
        environment["KUBECONFIG"] = os.pathsep.join(str(path.absolute()) for path in access.kubeconfig)
    return environment
