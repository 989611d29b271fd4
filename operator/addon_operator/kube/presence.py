"""Asks the API server itself about single objects and rights, where what a watch tells is not enough."""

from typing import Final

from addon_operator.kube import api_resources, client, connection, errors

_METADATA_LIST: Final = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json"


class ObjectProbe:
    """Small questions, each one request."""

    def __init__(self, kube: client.KubeClient) -> None:
        self._kube = kube

    async def exists(self, resource: api_resources.Resource, namespace: str, name: str) -> bool | None:
        """Whether the object is there; ``None`` without the right to ask.

        ``namespace`` is empty for an object of the cluster. Raises what the client raises otherwise.
        """
        try:
            await self._kube.get(resource.path(namespace=namespace or None, name=name), metadata_only=True)
        except errors.NotFound:
            return False
        except errors.Forbidden:
            return None
        return True

    async def may_list_everywhere(self, resource: api_resources.Resource) -> bool:
        """Whether the operator has the right to list the objects of all namespaces.

        Raises what the client raises when there is no answer to that.
        """
        request = connection.Request("GET", resource.path(), {"limit": "1"}, {"Accept": _METADATA_LIST})
        try:
            await self._kube.request(request)
        except errors.Forbidden:
            return False
        return True
