"""Says whether a call of Helm waits for a hook of its own that gets nowhere: none of its containers runs.

An image that is mistyped, a pod that no node takes, or a crash loop is waited for as long as ``HELM_TIMEOUT``
allows, and the edit that mends it would wait as long. A hook that works, such as a migration, is let end.
"""

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any, Final

from addon_operator.helm import helm_errors
from addon_operator.helm.releases import release_records
from addon_operator.kernel import names
from addon_operator.kube import api_errors, paths
from addon_operator.kube.client import client, connection
from addon_operator.modules import manifests
from addon_operator.modules.health import pod_causes

_MOST_PODS: Final = 20
_MOST_BYTES: Final = 4 << 20
_OF_PODS: Final = {("batch/v1", "Job"): "jobs", ("v1", "Pod"): "pods"}
_ENDED: Final = ("Complete", "Failed", "SuccessCriteriaMet", "FailureTarget")


async def stuck(records: release_records.ReleaseRecords, module: names.ModuleName) -> str:
    """Return which hook of the call under way gets nowhere, and why; empty if none does, or nobody knows."""
    try:
        revision = (await records.history(module))[-1:]
        if not revision or not revision[0].revision.is_busy:
            return ""
        # It names objects to look at: whoever wrote it, nothing is done to them.
        content = await records.content(revision[0], whoever=True)
        hooks = await asyncio.to_thread(manifests.hooks, "\n---\n".join(content.hooks))
        for hook in hooks:
            if (hook.api_version, hook.kind) in _OF_PODS:
                namespace = hook.namespace or records.places.of(module).namespace
                pods = await _pods(records.kube, hook, namespace)
                if pods is not None:
                    why = pod_causes.cause_of_pods(pods) or "none of its containers runs"
                    return "" if any(map(_works, pods)) else f"{hook.kind} {hook.name}: {why}"
    except (helm_errors.ReleaseRecordError, api_errors.KubernetesError):
        pass
    return ""


async def _pods(
    kube: client.KubeClient, hook: manifests.ManifestResource, namespace: str
) -> Sequence[client.Object] | None:
    """Return the pods of a hook; ``None`` if it is not there, or has ended."""
    try:
        plural = _OF_PODS[hook.api_version, hook.kind]
        found = await kube.get(paths.of(hook.api_version, plural, namespace=namespace, name=hook.name))
    except api_errors.NotFound:
        return None
    if hook.kind == "Pod":
        return None if _phase(found) in ("Succeeded", "Failed") else [found]
    conditions = (found.get("status") or {}).get("conditions") or ()
    if any(each.get("type") in _ENDED and each.get("status") == "True" for each in conditions):
        return None
    query = {"labelSelector": f"job-name={hook.name}", "limit": str(_MOST_PODS)}
    path = paths.of("v1", "pods", namespace=namespace)
    listed = await kube.document(connection.Request("GET", path, query, most_bytes=_MOST_BYTES))
    items: Any = listed.get("items")
    return [each for each in items if isinstance(each, dict)] if isinstance(items, list) else []


def _phase(pod: Mapping[str, Any]) -> str:
    return str((pod.get("status") or {}).get("phase") or "")


def _works(pod: Mapping[str, Any]) -> bool:
    """Say whether one of the pod's containers runs, or all have done their work."""
    status = pod.get("status") or {}
    containers = (*(status.get("initContainerStatuses") or ()), *(status.get("containerStatuses") or ()))
    return _phase(pod) == "Succeeded" or any("running" in (each.get("state") or {}) for each in containers)
