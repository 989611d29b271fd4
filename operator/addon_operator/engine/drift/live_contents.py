"""Reads resources of releases from the API server, whole, and writes fields of them."""

import asyncio
import collections
import contextlib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from addon_operator.engine.drift import kind_watch, watched_resources
from addon_operator.kube import api_errors
from addon_operator.kube.client import client
from addon_operator.modules import manifests

_LABEL: Final = "app.kubernetes.io/managed-by=Helm"
_LIST_FROM: Final = 10
"""From so many objects of a kind on, one list costs less than a request for each."""
_AT_ONCE: Final = 8
_FIELD_MANAGER: Final = "helm"
"""Helm's own name: the fields stay those of its next upgrade."""

Contents = dict[watched_resources.Watched, client.Object]


class LiveContents:
    """Asks the API server for whole objects."""

    def __init__(self, kube: client.KubeClient, resources: watched_resources.WatchedResources) -> None:
        self._kube = kube
        self._resources = resources

    async def read(self, wanted: Iterable[watched_resources.Watched]) -> Contents:
        """Return the objects that are there.

        Raises what the client raises when there is no answer.
        """
        by_scope: dict[kind_watch.KindScope, list[watched_resources.Watched]] = collections.defaultdict(list)
        for watched in wanted:
            by_scope[self._resources.scope_of(watched)].append(watched)
        found: Contents = {}
        for scope, those in by_scope.items():
            if len(those) >= _LIST_FROM:
                found |= await self._listed(scope, set(those))
        turns = asyncio.Semaphore(_AT_ONCE)
        single = [each for those in by_scope.values() for each in those if each not in found]
        found.update(
            each for each in await asyncio.gather(*(self._one(one, turns) for one in single)) if each
        )
        return found

    async def _listed(self, scope: kind_watch.KindScope, wanted: set[watched_resources.Watched]) -> Contents:
        path = scope.resource.path(namespace=scope.namespace)
        found: Contents = {}
        # One of the objects may be unreadable, and all may take too long: what is left is asked for singly.
        with contextlib.suppress(api_errors.BrokenAnswer, api_errors.Gone):
            async for page in self._kube.pages(path, label_selector=_LABEL):
                # Others may have objects with the label, too: these are let go of at once.
                found |= {key: body for body in page if (key := _watched(scope, body)) in wanted}
        return found

    async def _one(
        self, watched: watched_resources.Watched, turns: asyncio.Semaphore
    ) -> tuple[watched_resources.Watched, client.Object] | None:
        async with turns:
            try:
                return watched, await self._kube.get(self._path(watched))
            except (api_errors.NotFound, api_errors.Forbidden, api_errors.BrokenAnswer):
                # What somebody made unreadable is not compared; all others are.
                return None

    async def patch(
        self, watched: watched_resources.Watched, operations: Sequence[Mapping[str, Any]], *, dry_run: bool
    ) -> client.Object:
        """Change fields of an object, or return what it would be; raises what the client raises."""
        query = {"fieldManager": _FIELD_MANAGER} | ({"dryRun": "All"} if dry_run else {})
        return await self._kube.patch(
            self._path(watched), list(operations), client.PatchType.JSON, query=query
        )

    async def apply(self, watched: watched_resources.Watched, body: manifests.Object) -> client.Object:
        """Apply an object by force, as Helm 4 does; raises what the client raises."""
        return await self._kube.apply(self._path(watched), body, field_manager=_FIELD_MANAGER, force=True)

    def _path(self, watched: watched_resources.Watched) -> str:
        return watched.resource.path(namespace=watched.key.namespace or None, name=watched.key.name)


def _watched(scope: kind_watch.KindScope, body: client.Object) -> watched_resources.Watched:
    metadata = body.get("metadata") or {}
    key = kind_watch.ObjectKey(metadata.get("namespace") or "", metadata.get("name") or "")
    return watched_resources.Watched(scope.resource, key)
