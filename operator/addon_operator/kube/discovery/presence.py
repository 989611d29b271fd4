"""Ask the API server itself about single objects and rights, where what a watch reports is not enough."""

from typing import Final

from addon_operator.kube import api_errors, paths
from addon_operator.kube.client import client, connection
from addon_operator.kube.discovery import api_resources

_METADATA_LIST: Final = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json"
_ACCESS_REVIEWS: Final = paths.of("authorization.k8s.io/v1", "selfsubjectaccessreviews")


class ObjectProbe:
    """Small questions, each one request."""

    def __init__(self, kube: client.KubeClient) -> None:
        self._kube = kube

    async def exists(self, resource: api_resources.Resource, namespace: str, name: str) -> bool | None:
        """Say whether the object is there; ``None`` without the right to ask.

        ``namespace`` is empty for an object of the cluster. Raises what the client raises otherwise.
        """
        try:
            await self._kube.get(resource.path(namespace=namespace or None, name=name), metadata_only=True)
        except api_errors.NotFound:
            return False
        except api_errors.Forbidden:
            return None
        return True

    async def may_follow_everywhere(self, resource: api_resources.Resource) -> bool:
        """Say whether the operator has the rights to list and to watch the objects of all namespaces.

        A role may well have only one of the two. Raises what the client raises when there is no answer.
        """
        request = connection.Request("GET", resource.path(), {"limit": "1"}, {"Accept": _METADATA_LIST})
        try:
            await self._kube.request(request)
        except api_errors.Forbidden:
            return False
        return await self._may_watch_everywhere(resource)

    async def _may_watch_everywhere(self, resource: api_resources.Resource) -> bool:
        group, _, version = resource.api_version.rpartition("/")
        asked = {"verb": "watch", "group": group, "version": version, "resource": resource.plural}
        review = {
            "apiVersion": "authorization.k8s.io/v1",
            "kind": "SelfSubjectAccessReview",
            "spec": {"resourceAttributes": asked},
        }
        try:
            answer = await self._kube.create(_ACCESS_REVIEWS, review)
        except (api_errors.Forbidden, api_errors.NotServed):
            # A cluster that lets nobody ask: the watch itself will show.
            return True
        return bool(answer.get("status", {}).get("allowed"))
