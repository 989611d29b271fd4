"""Reads resources of releases from the API server, whole, and writes fields of them."""

import asyncio
import collections
import contextlib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

import msgspec

from addon_operator.engine.drift import kind_watch, watched_resources
from addon_operator.kube import api_errors
from addon_operator.kube.client import client
from addon_operator.modules import manifests
from addon_operator.modules.drift import corrections, field_drift, others_fields

_LABEL: Final = "app.kubernetes.io/managed-by=Helm"
_LIST_FROM: Final = 10
_LIST_SHARE: Final = 10
"""From so many objects of a kind on, and if they are at least one of so many, one list costs less than a
request for each: a list has those of all modules."""
_AT_ONCE: Final = 8
_FIELD_MANAGER: Final = "helm"
"""Helm's own name: the fields stay those of its next upgrade."""
_PASSING_MANAGER: Final = "addon-operator"
"""Of fields that Helm's own apply makes its own at once."""

Contents = dict[watched_resources.Watched, client.Object]


class Correction(msgspec.Struct, frozen=True):
    """What is put back of one object."""

    watched: watched_resources.Watched
    live: client.Object
    differences: Sequence[field_drift.Difference]
    others: Sequence[field_drift.Difference]
    """What others put beside, which goes if the API server names it as in the way."""


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
            if len(those) >= max(_LIST_FROM, self._resources.objects(scope) / _LIST_SHARE):
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
        self,
        watched: watched_resources.Watched,
        operations: Sequence[Mapping[str, Any]],
        *,
        dry_run: bool = False,
        manager: str = _FIELD_MANAGER,
    ) -> client.Object:
        """Change fields of an object, or return what it would be; raises what the client raises."""
        query = {"fieldManager": manager} | ({"dryRun": "All"} if dry_run else {})
        return await self._kube.patch(
            self._path(watched), list(operations), client.PatchType.JSON, query=query
        )

    async def apply(self, watched: watched_resources.Watched, body: manifests.Object) -> client.Object:
        """Apply an object by force, as Helm 4 does; raises what the client raises."""
        return await self._kube.apply(self._path(watched), body, field_manager=_FIELD_MANAGER, force=True)

    async def put_back(self, correction: Correction, applied: manifests.Object | None) -> client.Object:
        """Put fields back, and take away what is in the way of that; raises what the client raises.

        ``applied``: the object as Helm would apply it; ``None`` if Helm makes it with patches.
        """
        try:
            return await self._put(correction, correction.differences, applied)
        except api_errors.Invalid as error:
            known = {each.live_path for each in correction.differences}
            blamed = await asyncio.to_thread(others_fields.blamed, correction.others, error.message)
            more = [each for each in blamed if each.live_path not in known]
            if not more:
                raise
        return await self._put(correction, [*correction.differences, *more], applied)

    async def _put(
        self,
        correction: Correction,
        differences: Sequence[field_drift.Difference],
        applied: manifests.Object | None,
    ) -> client.Object:
        operations = corrections.json_patch(correction.live, differences)
        if applied is None:
            return await self.patch(correction.watched, operations)
        if any(each.expected is None for each in differences):
            # No apply takes away what others own.
            await self.patch(correction.watched, operations, manager=_PASSING_MANAGER)
            return await self._not_passing(correction.watched, await self.apply(correction.watched, applied))
        return await self.apply(correction.watched, applied)

    async def _not_passing(self, watched: watched_resources.Watched, found: client.Object) -> client.Object:
        """Have Helm alone own what was put back: two would hold on to what a later chart drops."""
        entries = (found.get("metadata") or {}).get("managedFields") or []
        operations: list[dict[str, Any]] = []
        for number, entry in reversed(list(enumerate(entries))):
            if entry.get("manager") == _PASSING_MANAGER:
                path = f"/metadata/managedFields/{number}"
                operations += [{"op": "test", "path": path, "value": entry}, {"op": "remove", "path": path}]
        return await self.patch(watched, operations) if operations else found

    def _path(self, watched: watched_resources.Watched) -> str:
        return watched.resource.path(namespace=watched.key.namespace or None, name=watched.key.name)


def _watched(scope: kind_watch.KindScope, body: client.Object) -> watched_resources.Watched:
    metadata = body.get("metadata") or {}
    key = kind_watch.ObjectKey(metadata.get("namespace") or "", metadata.get("name") or "")
    return watched_resources.Watched(scope.resource, key)
