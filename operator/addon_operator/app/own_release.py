"""The release that installed the operator.

It is never removed. Helm writes its name into annotations of what it
makes; the operator's pod is made from a Deployment that carries them. ``HELM_IGNORE_RELEASE`` names the
release where this cannot be read.
"""

from collections.abc import Mapping
from typing import Any, Final

from addon_operator.kube.client import api_errors, client, paths
from addon_operator.settings import settings as settings_module

_NAME: Final = "meta.helm.sh/release-name"
_NAMESPACE: Final = "meta.helm.sh/release-namespace"
_INSTANCE: Final = "app.kubernetes.io/instance"
_MANAGED_BY: Final = "app.kubernetes.io/managed-by"
_LEVELS: Final = 4
"""Pod, ReplicaSet, Deployment, and whatever may own that."""


async def ignored_releases(
    kube: client.KubeClient, settings: settings_module.Settings, environ: Mapping[str, str]
) -> frozenset[str]:
    """Return the releases that are never removed: those that a setting names, and the operator's own."""
    pod = settings.pod or environ.get("HOSTNAME", "")
    return frozenset(settings.helm_ignore_release) | await find_own(kube, settings.namespace, pod)


async def find_own(kube: client.KubeClient, namespace: str, pod: str) -> frozenset[str]:
    """Return the releases of ``namespace`` that a pod belongs to; none if there is no such pod."""
    found: set[str] = set()
    try:
        path: str | None = paths.of("v1", "pods", namespace=namespace, name=pod)
        for _ in range(_LEVELS):
            if path is None:
                break
            metadata: Mapping[str, Any] = (await kube.get(path, metadata_only=True)).get("metadata") or {}
            found |= _releases_of(metadata, namespace)
            path = _controller(metadata, namespace)
    except (api_errors.KubernetesError, ValueError):
        # Not in a pod, or without the right to look: what is known until here counts.
        return frozenset(found)
    return frozenset(found)


def _releases_of(metadata: Mapping[str, Any], namespace: str) -> set[str]:
    annotations: Mapping[str, str] = metadata.get("annotations") or {}
    labels: Mapping[str, str] = metadata.get("labels") or {}
    found = set()
    if annotations.get(_NAMESPACE) == namespace and _NAME in annotations:
        found.add(annotations[_NAME])
    if labels.get(_MANAGED_BY) == "Helm" and _INSTANCE in labels:
        # A pod has labels of its template only: charts put the release there by convention.
        found.add(labels[_INSTANCE])
    return found


def _controller(metadata: Mapping[str, Any], namespace: str) -> str | None:
    for owner in metadata.get("ownerReferences") or ():
        if owner.get("controller"):
            plural = f"{str(owner['kind']).lower()}s"
            return paths.of(owner["apiVersion"], plural, namespace=namespace, name=owner["name"])
    return None
