"""Asks the API server whether Helm could merge an upgrade with what others wrote: nothing is changed."""

import asyncio
import functools
from collections.abc import Iterator
from typing import Any, Final, NamedTuple

from addon_operator.helm import release_types
from addon_operator.helm.releases import merge_conflicts
from addon_operator.kube import api_errors
from addon_operator.kube.client import client
from addon_operator.kube.discovery import discovery
from addon_operator.modules import manifests
from addon_operator.modules.drift import corrections, field_drift, others_fields

_AT_ONCE: Final = 8
_MOST: Final = 200
"""How many objects of a release are looked at."""
_MOST_TOLD: Final = 3
_HELM_4: Final = 4


class _Kept(NamedTuple):
    """An object that the release has and keeps."""

    resource: manifests.ManifestResource
    before: manifests.Object
    after: manifests.Object


class MergeCheck:
    """Tries what Helm makes of objects that others wrote to, also of those that the chart does not change."""

    def __init__(self, cluster: client.KubeClient, kinds: discovery.Catalog, helm_major: int) -> None:
        """``helm_major``: from 4 on, Helm applies objects on the server's side."""
        self._cluster = cluster
        self._applies = helm_major >= _HELM_4
        self._kinds = kinds
        self._query = {"fieldManager": "helm", "dryRun": "All"}
        self._turns = asyncio.Semaphore(_AT_ONCE)

    async def refused(self, namespace: str, preview: release_types.ReleasePreview) -> str:
        """Say what others wrote that is in the way of an upgrade, and how to remove it; empty if nothing is.

        ``namespace`` is that of the release. What cannot be asked is left to the upgrade.
        """
        kept = await asyncio.to_thread(lambda: list(_kept(preview, namespace)))
        told = await asyncio.gather(*(self._refusal(each, namespace) for each in kept))
        return "; ".join(list(filter(None, told))[:_MOST_TOLD])

    async def _refusal(self, kept: _Kept, namespace: str) -> str:
        async with self._turns:
            try:
                kind = await self._kinds.find(kept.resource.kind, kept.resource.api_version)
                place = (kept.resource.namespace or namespace) if kind.namespaced else ""
                path = kind.path(namespace=place or None, name=kept.resource.name)
                live = await self._cluster.get(path)
                if not (others := others_fields.beside(kept.after, live)):
                    return ""
                if (error := await self._merge_error(path, kept, live)) is None:
                    return ""
                blamed = others_fields.blamed(others, error.message)
                would_take = functools.partial(self._would_take, path)
                return await merge_conflicts.told(kept.resource, place, live, blamed, would_take)
            except api_errors.KubernetesError:
                return ""

    async def _merge_error(self, path: str, kept: _Kept, live: manifests.Object) -> api_errors.Invalid | None:
        if not self._applies:
            return await self._error(path, corrections.json_patch(live, _merge(kept, live)))
        try:
            query = {**self._query, "force": "true"}
            await self._cluster.patch(path, kept.after, client.PatchType.APPLY, query=query)
        except api_errors.Invalid as error:
            return error
        return None

    async def _would_take(self, path: str, operations: list[dict[str, Any]]) -> bool:
        return await self._error(path, operations) is None

    async def _error(self, path: str, operations: list[dict[str, Any]]) -> api_errors.Invalid | None:
        try:
            await self._cluster.patch(path, operations, client.PatchType.JSON, query=self._query)
        except api_errors.Invalid as error:
            return error
        return None


def _kept(preview: release_types.ReleasePreview, namespace: str) -> Iterator[_Kept]:
    def identity(resource: manifests.ManifestResource) -> tuple[str, str, str, str]:
        return (resource.api_version, resource.kind, resource.namespace or namespace, resource.name)

    had = {identity(each): body for each, body in manifests.find_objects(preview.before, lambda _: True)}
    found = manifests.find_objects(preview.manifest, lambda _: True)
    kept = ((each, had[identity(each)], body) for each, body in found if identity(each) in had)
    for number, each in enumerate(kept):
        if number == _MOST:
            return
        yield _Kept(*each)


def _merge(kept: _Kept, live: manifests.Object) -> list[field_drift.Difference]:
    """Return what Helm changes of an object: all that the chart says, and what left the chart."""
    changed = field_drift.differences(kept.after, live, whoever=True)
    return [*changed, *others_fields.dropped(kept.before, kept.after, live)]
