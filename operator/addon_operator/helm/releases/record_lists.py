"""Lists of the records that Helm keeps of its releases: one request for all, or one by namespace.

Where releases are of modules that are gone, only the operator's memory says. Builds before there was one kept
an object for that beside the records: it is read as long as nothing has been taken over.
"""

import asyncio
import contextlib
import itertools
from collections.abc import Sequence
from typing import Final

from addon_operator.helm import helm_errors, memory, places
from addon_operator.kernel import json_types
from addon_operator.kube import api_errors
from addon_operator.kube.client import client

OWNED_BY_HELM: Final = "owner=helm"
"""Selects Helm's records."""
NAMESPACES: Final = "addon-operator-release-namespaces"
"""What earlier builds remembered the namespaces of releases in."""
NAMESPACES_ANNOTATION: Final = "addon-operator.io/release-namespaces"


class RecordLists:
    """Lists metadata of records in the namespaces where releases are."""

    def __init__(
        self,
        api: client.KubeClient,
        where: places.ReleaseLocations,
        resource: str,
        remembered: memory.Memory,
    ) -> None:
        """``resource``: ``secrets`` or ``configmaps``."""
        self._api = api
        self._places = where
        self._memory = remembered
        self._resource = resource
        self.unreadable: frozenset[str] = frozenset()
        """Namespaces whose releases may not be read."""

    def path(self, namespace: str) -> str:
        """Return where the records of a namespace are in the API."""
        return f"/api/v1/namespaces/{namespace}/{self._resource}"

    async def of_all(self) -> Sequence[json_types.KubernetesObject]:
        """Ask once, for the whole cluster if need be; by namespace where that is not allowed."""
        self.unreadable = frozenset()
        own = self.path(self._places.own_namespace)
        others = await self._others()
        if not others:
            return await self._list(own, OWNED_BY_HELM)
        try:
            return await self._list(f"/api/v1/{self._resource}", OWNED_BY_HELM)
        except api_errors.Forbidden:
            objects = await self._list(own, OWNED_BY_HELM)
        return [
            *objects,
            *itertools.chain.from_iterable(await asyncio.gather(*map(self._list_other, sorted(others)))),
        ]

    async def _others(self) -> frozenset[str]:
        """Return the namespaces, beside the operator's, where releases may be."""
        others = self._places.of_modules | {place.namespace for place in self._memory.locations}
        if not self._memory.taken_over:
            others |= await self._from_before()
        return others - {self._places.own_namespace}

    async def _from_before(self) -> frozenset[str]:
        """Return the namespaces that a build without a memory remembered."""
        path = f"{self.path(self._places.own_namespace)}/{NAMESPACES}"
        with contextlib.suppress(api_errors.NotFound, api_errors.Forbidden):
            metadata = (await self._api.get(path, metadata_only=True))["metadata"]
            text = (metadata.get("annotations") or {}).get(NAMESPACES_ANNOTATION, "")
            return frozenset(filter(None, text.split(",")))
        return frozenset()

    async def forget_namespaces(self) -> None:
        """Delete what a build without a memory remembered."""
        with contextlib.suppress(api_errors.NotFound, api_errors.Forbidden):
            await self._api.delete(f"{self.path(self._places.own_namespace)}/{NAMESPACES}")

    async def of(self, name: str) -> Sequence[json_types.KubernetesObject]:
        """List the revisions of one release; raises :class:`.HelmError` if its namespace may not be read."""
        place = self._places.of(name)
        try:
            return await self._list(self.path(place.namespace), f"{OWNED_BY_HELM},name={place.name}")
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
            return await self._list(self.path(namespace), OWNED_BY_HELM)
        except api_errors.Forbidden:
            self.unreadable |= {namespace}
            return ()

    async def _list(self, path: str, selector: str) -> Sequence[json_types.KubernetesObject]:
        return (await self._api.list_all(path, label_selector=selector, metadata_only=True)).items
