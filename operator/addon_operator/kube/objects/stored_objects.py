"""Custom resources are written once more, so that all of them are stored in one version.

Source: "Upgrade existing objects to a new stored version" of the Kubernetes documentation.
"""

import urllib.parse
from collections.abc import Mapping
from typing import Any

from addon_operator.kube import api_errors, paths
from addon_operator.kube.client import client
from addon_operator.modules import crd_files


async def move(kube: client.KubeClient, name: str, spec: Mapping[str, Any], version: str) -> None:
    """Write every object of a definition once more, and note that all are stored in ``version``.

    That is its storage version, and ``spec`` its specification. Raises a :class:`.KubernetesError`: then
    some may be stored in others still, and the definition says so.
    """
    plural = str((spec.get("names") or {}).get("plural"))
    collection = paths.of(f"{spec.get('group')}/{version}", plural)
    for stored in (await kube.list_all(collection)).items:
        await _rewrite(kube, collection, stored)
    definition = paths.of(crd_files.API_VERSION, crd_files.PLURAL, name=name)
    await kube.patch(f"{definition}/status", {"status": {"storedVersions": [version]}})


async def _rewrite(kube: client.KubeClient, collection: str, stored: client.Object) -> None:
    metadata = stored["metadata"]
    path = collection
    if namespace := metadata.get("namespace"):
        root, _, plural = collection.rpartition("/")
        path = f"{root}/namespaces/{urllib.parse.quote(namespace)}/{plural}"
    try:
        await kube.replace(f"{path}/{urllib.parse.quote(metadata['name'], safe=':')}", stored)
    except (api_errors.Conflict, api_errors.NotFound):
        # Whoever wrote it meanwhile stored it in the new version.
        return
