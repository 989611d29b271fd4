"""Whether the resources of a release are in the cluster, asked once: for plans, which watch nothing."""

import asyncio
import collections
from collections.abc import Callable, Mapping, Sequence
from typing import Final, Protocol

from addon_operator.helm.releases import release_records
from addon_operator.kernel import json_types
from addon_operator.kube.client import api_errors
from addon_operator.kube.discovery import api_resources
from addon_operator.modules import manifests

_SINGLE_REQUESTS: Final = 4
"""Up to so many objects of a kind are asked for one by one; for more of them the kind is listed."""
_AT_ONCE: Final = 8


class Cluster(Protocol):
    """What is needed of :class:`.KubeClient`."""

    async def get(self, path: str, *, metadata_only: bool) -> json_types.KubernetesObject:
        """One object."""
        ...

    async def list_all(self, path: str, *, metadata_only: bool) -> release_records.Listed:
        """All objects of a collection."""
        ...


class Kinds(Protocol):
    """What is needed of :class:`.Catalog`."""

    async def find(self, kind: str, api_version: str | None = None) -> api_resources.Resource:
        """The resource of a kind."""
        ...


class Presence:
    """Looks for resources; ``namespace`` is that of the releases."""

    def __init__(self, cluster: Cluster, kinds: Kinds, namespace: str, note: Callable[[str], None]) -> None:
        self._cluster = cluster
        self._kinds = kinds
        self._namespace = namespace
        self._note = note
        self._turns = asyncio.Semaphore(_AT_ONCE)

    async def absent(self, manifest: str) -> tuple[str, ...]:
        """Resources of the manifest that are not in the cluster, as a person would name them.

        What may not be read counts as present, and is noted.
        """
        wanted = await asyncio.to_thread(manifests.resources, manifest)
        groups: Mapping[tuple[str, str, str], list[manifests.ManifestResource]] = collections.defaultdict(
            list
        )
        for resource in wanted:
            key = (resource.api_version, resource.kind, resource.namespace or self._namespace)
            groups[key].append(resource)
        missing = await asyncio.gather(*(self._missing(*key, group) for key, group in groups.items()))
        gone = {resource for group in missing for resource in group}
        return tuple(str(resource) for resource in wanted if resource in gone)

    async def _missing(
        self, api_version: str, kind: str, namespace: str, wanted: Sequence[manifests.ManifestResource]
    ) -> Sequence[manifests.ManifestResource]:
        async with self._turns:
            try:
                found = await self._kinds.find(kind, api_version)
                place = namespace if found.namespaced else None
                present = await self._present(found, place, [resource.name for resource in wanted])
            except api_errors.NotFound:
                return wanted
            except api_errors.KubernetesError as error:
                self._note(f"whether {kind} {wanted[0].name} is there cannot be told: {error}")
                return ()
        return [resource for resource in wanted if resource.name not in present]

    async def _present(
        self, resource: api_resources.Resource, namespace: str | None, wanted: Sequence[str]
    ) -> set[str]:
        if len(wanted) <= _SINGLE_REQUESTS:
            return {name for name in wanted if await self._exists(resource, namespace, name)}
        listed = await self._cluster.list_all(resource.path(namespace=namespace), metadata_only=True)
        return {str(item["metadata"]["name"]) for item in listed.items}

    async def _exists(self, resource: api_resources.Resource, namespace: str | None, name: str) -> bool:
        try:
            await self._cluster.get(resource.path(namespace=namespace, name=name), metadata_only=True)
        except api_errors.NotFound:
            return False
        return True
