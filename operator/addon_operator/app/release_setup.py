"""The releases of the operator's namespace: who manages them, and which of them are never removed.

The release that installed the operator is never removed. Helm writes its name into annotations of what it
makes; the operator's pod is made from a Deployment that carries them. ``HELM_IGNORE_RELEASE`` names the
release where this cannot be read.
"""

import contextlib
import pathlib
import tempfile
from collections.abc import AsyncIterator, Mapping
from typing import Any, Final

import structlog

from addon_operator.helm import binary, command
from addon_operator.helm.releases import release_types, releases
from addon_operator.kernel import names
from addon_operator.kube.client import api_errors, client, paths
from addon_operator.process.children import children
from addon_operator.settings import settings as settings_module

_NAME: Final = "meta.helm.sh/release-name"
_NAMESPACE: Final = "meta.helm.sh/release-namespace"
_INSTANCE: Final = "app.kubernetes.io/instance"
_MANAGED_BY: Final = "app.kubernetes.io/managed-by"
_LEVELS: Final = 4
"""Pod, ReplicaSet, Deployment, and whatever may own that."""


@contextlib.asynccontextmanager
async def release_manager(
    settings: settings_module.Settings,
    helm: binary.HelmBinary,
    kube: client.KubeClient,
    tmp_dir: pathlib.Path,
    environ: Mapping[str, str],
    programs: children.Children,
    log: structlog.typing.FilteringBoundLogger,
) -> AsyncIterator[releases.ReleaseManager]:
    """Manage the releases of the operator's namespace; Helm has a workspace in ``tmp_dir``."""

    def warn(module: names.ModuleName, text: str) -> None:
        log.warning(text, module=module, source="helm")

    access = kube.access
    target = command.HelmTarget(settings.namespace, access.kubeconfig, access.context, access.server_override)
    environment = {**environ, "HELM_DRIVER": settings.helm_driver}
    options = release_types.Options(
        settings.helm_history_max,
        settings.helm_timeout,
        settings.crd_extra_labels,
        release_types.TakeOwnership(settings.take_ownership),
    )
    with tempfile.TemporaryDirectory(prefix="helm-", dir=tmp_dir, ignore_cleanup_errors=True) as workspace:
        running = command.Helm(helm, target, environment, pathlib.Path(workspace), programs, warn)
        yield releases.release_manager(running, kube, options, settings.helm_driver)


async def ignored_releases(
    kube: client.KubeClient, settings: settings_module.Settings, environ: Mapping[str, str]
) -> frozenset[str]:
    """All releases that are never removed: those that a setting names, and the operator's own."""
    pod = settings.pod or environ.get("HOSTNAME", "")
    return frozenset(settings.helm_ignore_release) | await find_own(kube, settings.namespace, pod)


async def find_own(kube: client.KubeClient, namespace: str, pod: str) -> frozenset[str]:
    """The releases of ``namespace`` that a pod belongs to; none if there is no such pod."""
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
