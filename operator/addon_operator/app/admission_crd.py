"""The CustomResourceDefinition of PodPresets, applied when the operator starts."""

from addon_operator.aio import warn_once
from addon_operator.kube.client import api_errors, client
from addon_operator.kube.objects import crds


async def apply(kube: client.KubeClient, log: warn_once.Log) -> None:
    """Bring the definition to what this version needs; without the right to do so, warn.

    Raises :class:`.KubernetesError` for anything else that goes wrong.
    """
    try:
        await crds.apply_own(kube, crds.PODPRESETS)
    except api_errors.Forbidden as error:
        log.warning(f"the CustomResourceDefinition of PodPresets is not kept up to date: {error}")
