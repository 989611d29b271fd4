"""Objects that a release took over: what they were before, until a revision of it is deployed.

Nothing that undoes a failed try deletes them. They get back what they were, from copies in a Secret of the
operator's namespace: one for each release, as long as it has such objects.
"""

import base64
import contextlib
import gzip
import hashlib
import math
from collections.abc import Collection
from typing import Any, Final

import orjson

from addon_operator.helm import remembered
from addon_operator.helm.releases import live_objects, release_calls, release_records
from addon_operator.kernel import clock as clocks
from addon_operator.kernel import names
from addon_operator.kube import api_errors, paths
from addon_operator.modules import keeping, manifests

_LONGEST: Final = 1000
"""Characters of an error that are remembered."""
_MAX_COPY: Final = 256 * 1024
"""How many bytes of JSON an object may have of which a copy is made."""


class Adoptions:
    """The adopted objects of all releases."""

    def __init__(
        self,
        records: release_records.ReleaseRecords,
        live: live_objects.LiveObjects,
        warn: release_calls.Warn,
        clock: clocks.Clock,
    ) -> None:
        self._kube = records.kube
        self._memory = records.memory
        self._places = records.places
        self._live = live
        self._warn = warn
        self._clock = clock

    def covers(self, module: names.ModuleName, live: manifests.Object) -> bool:
        """Say whether the release adopted an object, of which the metadata is given.

        Until a revision is deployed, all that is older than the first one was there before, whatever marks
        it bears; but not what an earlier installation left for other modules to gain.
        """
        uid, known = (live.get("metadata") or {}).get("uid"), self._memory.of(self._places.of(module))
        if any(each.uid == uid for each in known.adopted):
            return True
        if any(each.uid == uid for each in known.moving):
            return False
        return not known.deployed and 0 < keeping.made_at(live) < math.floor(known.first)

    async def begin(
        self, module: names.ModuleName, resources: Collection[manifests.ManifestResource]
    ) -> None:
        """Remember objects that are about to be taken over, with copies of them.

        Raises what the client and :meth:`.Memory.write` raise.
        """
        known = list(self._of(module))
        copies: dict[str, str] = {}
        for resource in resources:
            found, namespace = await self._live.get(module, resource)
            uid = str(found["metadata"]["uid"])
            if any(each.uid == uid for each in known):
                continue
            known.append(
                remembered.RememberedObject(
                    api_version=resource.api_version,
                    kind=resource.kind,
                    name=resource.name,
                    namespace=namespace,
                    uid=uid,
                    since=self._clock.time(),
                )
            )
            text = orjson.dumps(found)
            if len(text) > _MAX_COPY:
                self._warn(
                    module,
                    f"{resource} is taken over, and too large for a copy: if this fails, it stays as "
                    "the revision made it",
                )
            else:
                copies[uid] = base64.b64encode(gzip.compress(text)).decode()
        self._memory.change(self._places.of(module), adopted=tuple(known))
        await self._memory.write()
        if copies:
            await self._save(module, copies)

    async def give_back(self, module: names.ModuleName, resource: manifests.ManifestResource) -> None:
        """Have an adopted object be what it was, and no longer the release's; one that is gone is fine.

        Raises what the client raises.
        """
        live, _ = await self._live.get(module, resource)
        uid = str(live["metadata"]["uid"])
        copy = (await self._copies(module)).get(uid)
        place = self._places.of(module)
        told = "stays as the release made it, without a copy of what it was"
        if copy is not None:
            before: dict[str, Any] = orjson.loads(gzip.decompress(base64.b64decode(copy)))
            before["metadata"]["resourceVersion"] = live["metadata"]["resourceVersion"]
            await self._live.replace(module, resource, before)
            live, told = before, "is again what it was"
        if keeping.is_own(live, place.name, place.namespace):
            await self._live.patch(module, resource, keeping.disown())
        left = tuple(each for each in self._of(module) if each.uid != uid)
        self._memory.change(place, adopted=left)
        self._warn(module, f"{resource} was there before the release, and {told}")
        if not left:
            await self._drop_copies(module)

    async def settle(self, module: names.ModuleName) -> None:
        """Forget what was adopted: a revision is deployed, and it is the release's own."""
        has_copies = self.has(module)
        self._memory.change(self._places.of(module), adopted=(), rejected=remembered.Rejected())
        if has_copies:
            await self._drop_copies(module)

    async def _drop_copies(self, module: names.ModuleName) -> None:
        with contextlib.suppress(api_errors.NotFound, api_errors.Forbidden):
            await self._kube.delete(self._path(module))

    def has(self, module: names.ModuleName) -> bool:
        """Say whether the release has adopted objects."""
        return bool(self._of(module))

    def reject(self, module: names.ModuleName, inputs: str, because: str) -> None:
        """Remember that a first install failed after it had taken objects over."""
        rejected = remembered.Rejected(inputs=inputs, because=because[:_LONGEST])
        self._memory.change(self._places.of(module), rejected=rejected)

    def rejected(self, module: names.ModuleName) -> remembered.Rejected:
        """Return the first install that is not tried again by itself."""
        return self._memory.of(self._places.of(module)).rejected

    def _of(self, module: names.ModuleName) -> tuple[remembered.RememberedObject, ...]:
        return self._memory.of(self._places.of(module)).adopted

    async def _save(self, module: names.ModuleName, copies: dict[str, str]) -> None:
        path = self._path(module)
        collection, _, name = path.rpartition("/")
        try:
            try:
                await self._kube.patch(path, {"data": copies})
            except api_errors.NotFound:
                body = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name}, "data": copies}
                await self._kube.create(collection, body)
        except api_errors.ApiError as error:
            text = f"what is taken over cannot be copied, and stays as it is made if this fails: {error}"
            self._warn(module, text)

    async def _copies(self, module: names.ModuleName) -> dict[str, str]:
        try:
            return dict((await self._kube.get(self._path(module))).get("data") or {})
        except (api_errors.NotFound, api_errors.Forbidden):
            return {}

    def _path(self, module: names.ModuleName) -> str:
        place = str(self._places.of(module))
        name = f"{self._memory.owner}-adopted-{hashlib.sha256(place.encode()).hexdigest()[:16]}"
        return paths.of("v1", "secrets", namespace=self._places.own_namespace, name=name)
