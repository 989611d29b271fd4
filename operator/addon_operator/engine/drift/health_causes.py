"""Reads why something is not healthy: from its pods, and from the Events that warn about it."""

import asyncio
from collections.abc import Mapping
from typing import Any, Final

from addon_operator.engine.drift import watched_resources
from addon_operator.kube import api_errors, paths
from addon_operator.kube.client import client, connection
from addon_operator.modules.health import pod_causes

_AT_ONCE: Final = 4
"""So many causes are read at the same time: a cluster in trouble has other things to do."""
_MOST_PODS: Final = 20
_MOST_RUNNING_PODS: Final = 200
"""Pods that crash run again and again: these have to be looked through."""
_NOT_RUNNING: Final = "status.phase!=Running,status.phase!=Succeeded"
_MOST_EVENTS: Final = 100
_MOST_BYTES: Final = 4 << 20
"""Whoever may write Events and pods decides how large they are, and the answer is read at once."""
_APPS: Final = ("Deployment", "StatefulSet", "DaemonSet", "ReplicaSet")
_WITH_PODS: Final = frozenset({("batch/v1", "Job"), *(("apps/v1", kind) for kind in _APPS)})


class HealthCauses:
    """Asks the API server; only about what is not healthy, and never for long."""

    def __init__(self, kube: client.KubeClient) -> None:
        self._kube = kube
        self._turns = asyncio.Semaphore(_AT_ONCE)

    async def cause(self, watched: watched_resources.Watched, since: float) -> pod_causes.Cause:
        """Return why the resource is not healthy; unknown if the cluster says nothing, or does not answer.

        ``since``: when it ceased to be healthy, in seconds since the epoch.
        """
        async with self._turns:
            try:
                if (watched.resource.api_version, watched.resource.kind) == ("v1", "Pod"):
                    found = pod_causes.cause_of_pod(await self._get(watched))
                    if found.startswith(pod_causes.PENDING):
                        # That no node takes it is how the pod is; the Events say no more.
                        return pod_causes.UNKNOWN
                else:
                    found = await self._of_pods(watched)
                if found:
                    return pod_causes.Cause(found)
                return await self._of_events(watched, since)
            except api_errors.KubernetesError:
                return pod_causes.UNKNOWN

    async def _of_pods(self, watched: watched_resources.Watched) -> str:
        # A kind of somebody else's may have the name, and anything as its selector.
        if (watched.resource.api_version, watched.resource.kind) not in _WITH_PODS:
            return ""
        selector = _selector(await self._get(watched))
        if not selector:
            return ""
        for query in (
            {"fieldSelector": _NOT_RUNNING, "limit": str(_MOST_PODS)},
            {"limit": str(_MOST_RUNNING_PODS)},
        ):
            pods = await self._list("pods", watched.key.namespace, {"labelSelector": selector, **query})
            if cause := pod_causes.cause_of_pods(pods):
                return cause
        return ""

    async def _of_events(self, watched: watched_resources.Watched, since: float) -> pod_causes.Cause:
        about = f"involvedObject.kind={watched.resource.kind},involvedObject.name={watched.key.name}"
        is_claim = (watched.resource.api_version, watched.resource.kind) == ("v1", "PersistentVolumeClaim")
        selected = about if is_claim else f"{about},type=Warning"
        query = {"fieldSelector": selected, "limit": str(_MOST_EVENTS)}
        found = await self._list("events", watched.key.namespace or "default", query)
        if is_claim and pod_causes.waits_for_consumer(found):
            return pod_causes.Cause("waits for its first consumer", is_event=True, is_wish=True)
        return pod_causes.Cause(pod_causes.newest_warning(found, since), is_event=True)

    async def _get(self, watched: watched_resources.Watched) -> client.Object:
        namespace = watched.key.namespace or None
        return await self._kube.get(watched.resource.path(namespace=namespace, name=watched.key.name))

    async def _list(self, plural: str, namespace: str, query: Mapping[str, str]) -> list[client.Object]:
        path = paths.of("v1", plural, namespace=namespace)
        found = await self._kube.document(
            connection.Request("GET", path, dict(query), most_bytes=_MOST_BYTES)
        )
        items: Any = found.get("items")
        return [each for each in items if isinstance(each, dict)] if isinstance(items, list) else []


def _selector(found: client.Object) -> str:
    selector: Any = (found.get("spec") or {}).get("selector") or {}
    labels: Any = selector.get("matchLabels") or {}
    terms = [f"{key}={value}" for key, value in labels.items()]
    terms += [_term(each) for each in selector.get("matchExpressions") or ()]
    return ",".join(terms)


def _term(expression: Mapping[str, Any]) -> str:
    """Write what the API server has accepted as it is asked for."""
    key, values = expression["key"], ",".join(expression.get("values") or ())
    match expression["operator"]:
        case "In":
            return f"{key} in ({values})"
        case "NotIn":
            return f"{key} notin ({values})"
        case "Exists":
            return f"{key}"
        case _:
            return f"!{key}"
