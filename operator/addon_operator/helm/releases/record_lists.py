"""Lists of the records that Helm keeps of its releases: one request for all, or one by namespace."""

import asyncio
import itertools
from collections.abc import Sequence
from typing import Final

from addon_operator.helm import helm_errors, places
from addon_operator.helm.releases import release_namespaces
from addon_operator.kernel import json_types
from addon_operator.kube import api_errors
from addon_operator.kube.client import client

_OWNED_BY_HELM: Final = "owner=helm"


class RecordLists:
    """Lists metadata of records in the namespaces where releases are."""

    def __init__(self, api: client.KubeClient, where: places.ReleaseLocations, resource: str) -> None:
        """``resource``: ``secrets`` or ``configmaps``."""
        self._api = api
        self._places = where
        self._resource = resource
        self.unreadable: frozenset[str] = frozenset()
        """Namespaces whose releases may not be read."""

    def path(self, namespace: str) -> str:
        """Return where the records of a namespace are in the API."""
        return f"/api/v1/namespaces/{namespace}/{self._resource}"

    async def of_all(self) -> Sequence[json_types.KubernetesObject]:
        """Ask once, for the whole cluster if need be; by namespace where that is not allowed."""
        self.unreadable = frozenset()
        own, selector = self.path(self._places.own_namespace), release_namespaces.SELECTOR
        objects: Sequence[json_types.KubernetesObject] = ()
        if len(self._places.namespaces) == 1:
            objects = self._recalled(await self._list(own, selector))
            if len(self._places.namespaces) == 1:
                return objects
        try:
            return self._recalled(await self._list(f"/api/v1/{self._resource}", selector))
        except api_errors.Forbidden:
            objects = objects or self._recalled(await self._list(own, selector))
        others = sorted(self._places.namespaces - {self._places.own_namespace})
        return [
            *objects,
            *itertools.chain.from_iterable(await asyncio.gather(*map(self._list_other, others))),
        ]

    async def of(self, name: str) -> Sequence[json_types.KubernetesObject]:
        """List the revisions of one release; raises :class:`.HelmError` if its namespace may not be read."""
        place = self._places.of(name)
        try:
            return await self._list(self.path(place.namespace), f"{_OWNED_BY_HELM},name={place.name}")
        except api_errors.Forbidden as error:
            if place.namespace == self._places.own_namespace:
                raise
            raise helm_errors.HelmError(
                name,
                f"the releases of namespace {place.namespace} may not be read ({error}); give the operator "
                "a Role there, as releaseNamespaces of its chart does",
            ) from error

    async def _list_other(self, namespace: str) -> Sequence[json_types.KubernetesObject]:
        try:
            return await self._list(self.path(namespace), _OWNED_BY_HELM)
        except api_errors.Forbidden:
            self.unreadable |= {namespace}
            return ()

    def _recalled(
        self, objects: Sequence[json_types.KubernetesObject]
    ) -> Sequence[json_types.KubernetesObject]:
        self._places.remembered = release_namespaces.find(objects, self._places.own_namespace)
        return objects

    async def _list(self, path: str, selector: str) -> Sequence[json_types.KubernetesObject]:
        return (await self._api.list_all(path, label_selector=selector, metadata_only=True)).items
