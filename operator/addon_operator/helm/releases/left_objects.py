"""What releases left in the cluster: objects that wait for finalizers, and those that are kept.

The memory names them, so that a restart forgets none.
"""

import collections
from collections.abc import Collection, Mapping
from typing import Final

import msgspec

from addon_operator.helm import helm_errors, memory, places, remembered
from addon_operator.helm.releases import live_objects, moves
from addon_operator.kernel import clock as clocks
from addon_operator.kernel import names
from addon_operator.modules import keeping, manifests

_NAMED: Final = 3

Kept = tuple[str, remembered.RememberedObject]
"""The name of a release, and an object that stayed when the release lost it."""


class LeftObjects:
    """The objects that releases left."""

    def __init__(
        self,
        remembering: memory.Memory,
        live: live_objects.LiveObjects,
        where: places.ReleaseLocations,
        clock: clocks.Clock,
    ) -> None:
        self._memory = remembering
        self._live = live
        self._places = where
        self._clock = clock
        self._seen: dict[places.ReleaseLocation, tuple[live_objects.Leaving, ...]] = {}
        self.news = remembering.left
        """Set when there are others than before."""
        self.moves = moves.Moves(where)
        """What calls of Helm that are under way move between releases."""

    @property
    def leaving(self) -> Mapping[names.ModuleName, str]:
        """Objects of removed releases that wait for finalizers, as a person calls them."""
        return {
            names.ModuleName(self._places.key(place)): names.listed([*map(str, left)], _NAMED)
            for place, left in self._seen.items()
        }

    @property
    def kept(self) -> Mapping[names.ModuleName, tuple[Kept, ...]]:
        """What stays of releases that modules have, or had before these moved, for ever or for now."""
        found: dict[names.ModuleName, list[Kept]] = collections.defaultdict(list)
        for place in self._memory.locations:
            known = self._memory.of(place)
            if kept := (*known.kept, *known.moving):
                key = self._places.key(place)
                module = key if self._places.is_of_module(key) else self._places.successor(key) or key
                found[names.ModuleName(module)] += [(place.name, each) for each in kept]
        return {module: tuple(each) for module, each in found.items()}

    def keep(self, module: names.ModuleName, kept: Mapping[manifests.ManifestResource, keeping.Kept]) -> None:
        """Remember what a release is about to lose and stays; what is known already stays so since then."""
        place = self._places.of(module)
        known = self._memory.of(place).kept
        uids = {each.uid for each in known}
        news = (
            remembered.RememberedObject(
                api_version=resource.api_version,
                kind=each.kind,
                name=each.name,
                namespace=each.namespace,
                uid=each.uid,
                since=self._clock.time(),
            )
            for resource, each in kept.items()
            if each.uid and each.uid not in uids
        )
        self._memory.change(place, kept=(*known, *news))

    def forget(self, uids: Collection[str]) -> None:
        """Forget objects that stayed and are gone, or a release has again, whichever it is."""
        for place in self._memory.locations:
            known = self._memory.of(place)
            kept, moving = (
                tuple(each for each in left if each.uid not in uids) for left in (known.kept, known.moving)
            )
            self._memory.change(place, kept=kept, moving=moving)

    @property
    def moving(self) -> Mapping[places.ReleaseLocation, tuple[remembered.RememberedObject, ...]]:
        """What left releases and goes, unless a module that has yet to run gains it."""
        return self._memory.moving

    def are_moving(self, namespace: str) -> manifests.Select:
        """Return what says whether an object is one of these; ``namespace`` is that of its release."""
        moving = {resource_of(each).identity("") for known in self.moving.values() for each in known}

        def is_moving(resource: manifests.ManifestResource) -> bool:
            group, kind, place, name = resource.identity(namespace)
            return not moving.isdisjoint({(group, kind, place, name), (group, kind, "", name)})

        return is_moving

    async def move(
        self, place: places.ReleaseLocation, objects: Collection[remembered.RememberedObject]
    ) -> None:
        """Remember what leaves a release and may be in another one soon; raises as :meth:`.Memory.write`."""
        uids, now = {each.uid for each in objects}, self._clock.time()
        known = [each for each in self._memory.of(place).moving if each.uid not in uids]
        news = [msgspec.structs.replace(each, since=now) for each in objects]
        self._memory.change(place, moving=(*known, *news))
        await self._memory.write()

    def note_leaving(self, module: names.ModuleName, leaving: tuple[live_objects.Leaving, ...]) -> None:
        """Remember which objects of a release wait for finalizers."""
        self._note(self._places.of(module), leaving)

    async def look(self) -> None:
        """Look which of the objects are still there; raises what the client raises."""
        for place in self._memory.locations:
            known, module = self._memory.of(place), names.ModuleName(self._places.key(place))
            if known.leaving:
                waiting = await self._live.leaving(module, list(map(resource_of, known.leaving)))
                self._note(place, waiting)
            if known.kept:
                live = await self._live.metadata(module, list(map(resource_of, known.kept)))
                self.forget({each.uid for each in known.kept if _is_over(each, live[resource_of(each)])})

    def check(self, module: names.ModuleName, manifest: str) -> None:
        """Raise :class:`.LeavingError` if an object of the manifest is being deleted."""
        own = self._places.of(module).namespace
        wanted = {each.identity(own) for each in manifests.resources(manifest)}
        for place, leaving in self._seen.items():
            for each in leaving:
                if each.resource.identity(place.namespace) in wanted:
                    raise helm_errors.LeavingError(module, helm_errors.leaving_text(str(each)))

    def _note(self, place: places.ReleaseLocation, leaving: tuple[live_objects.Leaving, ...]) -> None:
        self._seen.pop(place, None)
        if leaving:
            self._seen[place] = leaving
        self._memory.change(place, leaving=tuple(_remembered(each.resource) for each in leaving))


def _is_over(kept: remembered.RememberedObject, live: manifests.Object | None) -> bool:
    """Say whether an object is gone, or has no mark any more; one that may not be read is as before."""
    if not live:
        return live is None
    return live["metadata"].get("uid") != kept.uid or not keeping.is_marked(live)


def resource_of(each: remembered.RememberedObject) -> manifests.ManifestResource:
    """Return what manifests call a remembered object."""
    return manifests.ManifestResource(each.api_version, each.kind, each.namespace or None, each.name)


def _remembered(each: manifests.ManifestResource) -> remembered.RememberedObject:
    return remembered.RememberedObject(
        api_version=each.api_version, kind=each.kind, name=each.name, namespace=each.namespace or ""
    )
