"""Follows the resources of modules' releases: reads the manifest of each revision, watches what it holds."""

import asyncio
import collections
from collections.abc import Awaitable, Callable, Collection, Sequence
from typing import Final

from addon_operator.aio import waiting
from addon_operator.engine import events
from addon_operator.engine.drift import content_drift, drift, record_watch, watched_resources
from addon_operator.helm import helm_errors, places, release_types
from addon_operator.helm.releases import releases
from addon_operator.kernel import clock as clocks
from addon_operator.kernel import errors, names
from addon_operator.modules import manifests

RETRY: Final = 10.0
"""Seconds until a manifest that could not be read is read again."""
SETTLE: Final = 5.0
"""Seconds that the first lists have before single objects are asked for."""
_AT_ONCE: Final = 8
"""So many records are read at the same time: after a start, there is one for each module."""
UNKNOWN_KIND_RETRY: Final = 60.0
"""Seconds until kinds that the API server does not have are looked up again."""


class FollowedReleases:
    """Knows which revision of each release is followed, and which is to be."""

    def __init__(
        self,
        manager: releases.ReleaseManager,
        resources: watched_resources.WatchedResources,
        restoring: drift.Drift,
        content: content_drift.ContentDrift,
        records: record_watch.RecordWatch,
        tell: events.Listener,
        clock: clocks.Clock,
    ) -> None:
        self._manager = manager
        self._resources = resources
        self._drift = restoring
        self._content = content
        self._records = records
        self._tell = tell
        self._clock = clock
        self._wanted: dict[names.ModuleName, int] = {}
        self._modules: set[names.ModuleName] = set()
        """Whose records are watched: also of releases of which nothing can be followed just now."""
        self._followed: dict[names.ModuleName, int] = {}
        self.at_rest: set[names.ModuleName] = set()
        """Whose releases have what they have, while nobody looks after it: those in maintenance."""
        self._not_before: dict[names.ModuleName, float] = {}
        self.unread: dict[names.ModuleName, bool] = {}
        """Releases of which nobody knows what they have, and whether that will not change by itself."""
        self._doubted: Sequence[names.ModuleName] = ()
        self.known_again: Callable[[], Awaitable[None]] = _nothing
        """Is called when it is known again what a release has."""
        self._is_known_again = False
        self._wake = asyncio.Event()
        records.looked = self._look_again_at

    def begin(self, module: names.ModuleName, revision: int) -> None:
        """Follow the resources of this revision, unless one of the release is followed already."""
        self._look_after(module)
        self._wanted.setdefault(module, revision)
        self._wake.set()

    def follow(self, module: names.ModuleName, revision: int) -> None:
        """Follow the resources of this revision from now on, also if the one before could not be read."""
        self._look_after(module)
        self._wanted[module] = revision
        if not self.is_followed(module, revision):
            self._not_before.pop(module, None)
        self._wake.set()

    def is_followed(self, module: names.ModuleName, revision: int) -> bool:
        """Say whether the resources of this revision are followed."""
        return self._followed.get(module) == revision

    def compare_again(self, module: names.ModuleName, *, corrects: bool) -> None:
        """See :meth:`.ContentDrift.compare_again`."""
        self._content.compare_again(module, corrects=corrects)

    def _look_after(self, module: names.ModuleName) -> None:
        self._modules.add(module)
        if module in self.at_rest:
            self.at_rest.discard(module)
            self._followed.pop(module, None)

    def leave(self, module: names.ModuleName) -> None:
        """Follow nothing of the module's release any more."""
        self._modules.discard(module)
        self.at_rest.discard(module)
        self._wanted.pop(module, None)
        self._followed.pop(module, None)
        self._not_before.pop(module, None)
        self.unread.pop(module, None)
        self._resources.unfollow(module)
        self._wake.set()

    def rest(self, module: names.ModuleName, revision: int) -> None:
        """Look after nothing of the module's release, which goes on having what this revision has."""
        if module in self.at_rest and self._wanted.get(module) == revision:
            return
        self.leave(module)
        # Until its record is read, it may have anything.
        self.unread[module] = False
        self.at_rest.add(module)
        self._wanted[module] = revision

    def doubt(self, modules: Collection[names.ModuleName]) -> None:
        """Note of which modules nobody may look whether they have a release; what is followed is known."""
        for module in self._doubted:
            self.unread.pop(module, None)
        self._doubted = [each for each in modules if each not in self._followed]
        self.unread |= dict.fromkeys(self._doubted, True)

    async def restore_all(self, module: names.ModuleName) -> None:
        """Restore what of a release is absent, whether a watch has reported it yet or not.

        After a start nothing is known: Helm would make a Secret anew, with another password.
        Raises what the client raises when the API server does not answer.
        """
        if self._wanted.get(module) == self._followed.get(module) and self._resources.is_settled(module):
            # Watches may have reported it after the run looked, and before Helm renders.
            await self._drift.restore(module)
            return
        try:
            await self._follow(module)
        except helm_errors.ReleaseRecordError as error:
            text = f"module {module}: missing objects cannot be restored before Helm runs: {error}"
            self._tell(events.Warned(text))
            return
        unknown = await self._resources.settle(module, SETTLE)
        await self._drift.restore(module, unknown)

    def others_of(
        self, module: names.ModuleName, gaining: Callable[[], Awaitable[str]]
    ) -> release_types.Others:
        """Return the releases beside that of the module; ``gaining`` names what :meth:`.Others.may_gain`."""
        return _Others(self, module, gaining)

    def is_known(self, place: places.ReleaseLocation) -> bool:
        """Say whether it is known what the release of a module has; one that goes has nothing any more."""
        key = self._manager.places.key(place)
        is_unknown = key in self.unread or key in self._pending()
        return self._manager.places.is_of_module(key) and not is_unknown

    async def give_up(
        self, module: names.ModuleName, dropped: Sequence[manifests.ManifestResource]
    ) -> tuple[manifests.ManifestResource, ...]:
        """Return what is not deleted of what a release drops, in an upgrade or as a whole.

        That is what other modules have, too, and objects of kinds that are gone: Helm removes nothing at all
        of a manifest with a kind that it does not find.
        Raises what the client raises: what others have is not removed because nobody could ask.
        """
        # After a start not everything is followed yet.
        await self.follow_new()
        gone = await self._resources.of_gone_kinds(dropped)
        if gone:
            kinds = ", ".join(sorted({f"{each.kind} ({each.api_version})" for each in gone}))
            self._tell(events.Noted(f"removed without objects of kinds that are gone: {kinds}", module))
        others = self._resources.give_up(module, dropped)
        if homes := [str(each) for each in others if each.kind == "Namespace"]:
            kept = f"removed without {', '.join(homes)}: the operator or another module is there"
            self._tell(events.Noted(kept, module))
        return (*others, *gone)

    def written(self, module: names.ModuleName) -> frozenset[manifests.Identity]:
        """Return which objects of the module's release others are known to have written."""
        return frozenset(self._resources.by_others(module))

    async def later(
        self, module: names.ModuleName, resources: Sequence[manifests.ManifestResource]
    ) -> frozenset[manifests.ManifestResource]:
        """Return which of the objects belong to a module that runs after this one."""
        await self.follow_new()
        turn = self._manager.places.turn
        owners = self._resources.owners(module, resources)
        return frozenset(each for each, owner in owners.items() if turn(owner) > turn(module))

    async def bodies(
        self, module: names.ModuleName, wanted: Collection[manifests.ManifestResource]
    ) -> dict[manifests.ManifestResource, manifests.Object]:
        """Return what releases say of objects, as this module's manifest calls them; the last one counts.

        Raises what the client raises.
        """
        await self.follow_new()
        found: dict[manifests.ManifestResource, manifests.Object] = {}
        by_owner: dict[names.ModuleName, list[manifests.ManifestResource]] = collections.defaultdict(list)
        for resource, owner in self._resources.owners(module, wanted).items():
            by_owner[owner].append(resource)
        for owner, resources in by_owner.items():
            deployed = await self._manager.deployed(owner)
            spaces = [self._manager.places.of(each).namespace for each in (module, owner)]
            manifest = deployed.manifest if deployed else ""
            found |= await asyncio.to_thread(_found, manifest, resources, *spaces)
        return found

    def look_again(self) -> None:
        """Look at once for kinds that were not there: some have come."""
        self._not_before.clear()
        self._wake.set()

    def _look_again_at(self, module: names.ModuleName) -> None:
        """Read at once what a release has: others have changed its record, or put it right."""
        if module in self._modules:
            self._wanted.setdefault(module, 0)
            self._not_before.pop(module, None)
            self._wake.set()

    async def work(self) -> None:
        """Read the manifests of new revisions and follow their resources, until cancelled."""
        while True:
            self._wake.clear()
            self._records.follow(self._modules)
            await self.follow_new()
            if self._is_known_again:
                self._is_known_again = False
                await self.known_again()
            await self._sleep()

    async def follow_new(self) -> None:
        """Follow the resources of every release whose revision is another one than before."""
        now, turns = self._clock.monotonic(), asyncio.Semaphore(_AT_ONCE)
        due = [name for name in self._pending() if self._not_before.get(name, now) <= now]
        await asyncio.gather(*(self._try(module, turns) for module in due))

    async def _try(self, module: names.ModuleName, turns: asyncio.Semaphore) -> None:
        async with turns:
            later = RETRY
            try:
                await self._follow(module)
                return
            except helm_errors.ForeignRecordError as error:
                # The manager has told it.
                problem: Exception = error
                later = UNKNOWN_KIND_RETRY
            except errors.AddonOperatorError as error:
                problem = error
                self._tell(events.Warned(f"module {module}: resources are not watched yet: {error}"))
            except Exception as error:  # noqa: BLE001 - a defect at one must not hold up others
                problem = error
                self._tell(events.PartFailed("followed", error, RETRY))
            if module in self._wanted:
                self.unread[module] = isinstance(problem, helm_errors.ReleaseRecordError)
                self._not_before[module] = self._clock.monotonic() + later

    async def _follow(self, module: names.ModuleName) -> None:
        revision = self._wanted.get(module)
        deployed = await self._manager.deployed(module)
        resources = await _resources(deployed)
        if self.unread.pop(module, None) is not None:
            self._is_known_again = True
            self._wake.set()
        if module not in self._wanted:
            return
        rests = module in self.at_rest
        complete = await self._resources.follow(module, resources, rests=rests)
        self._content.begin(module, deployed)
        if module not in self._wanted:
            self._resources.unfollow(module)
        elif rests is not (module in self.at_rest):
            # Maintenance began, or ended, meanwhile.
            self._wake.set()
        elif deployed is None:
            # It is followed when a revision is deployed.
            self._wanted.pop(module, None)
        elif complete and revision is not None:
            self._followed[module] = revision
            self._not_before.pop(module, None)
        else:
            self._not_before[module] = self._clock.monotonic() + UNKNOWN_KIND_RETRY

    def _pending(self) -> list[names.ModuleName]:
        return [name for name, number in self._wanted.items() if self._followed.get(name) != number]

    async def _sleep(self) -> None:
        soonest = min((self._not_before.get(name, 0.0) for name in self._pending()), default=None)
        await waiting.wait_until(self._wake, soonest, self._clock)


class _Others(release_types.Others):
    """See :class:`.Others`: what is followed of the others says what they have."""

    def __init__(
        self,
        followed: FollowedReleases,
        module: names.ModuleName,
        gaining: Callable[[], Awaitable[str]],
    ) -> None:
        self._followed = followed
        self._module = module
        self._gaining = gaining

    async def give_up(
        self, dropped: Sequence[manifests.ManifestResource]
    ) -> tuple[manifests.ManifestResource, ...]:
        return await self._followed.give_up(self._module, dropped)

    def made(self, revision: int) -> None:
        self._followed.follow(self._module, revision)

    def written(self) -> frozenset[manifests.Identity]:
        return self._followed.written(self._module)

    def is_known(self, place: places.ReleaseLocation) -> bool:
        return self._followed.is_known(place)

    async def may_gain(self) -> bool:
        return bool(await self._gaining())

    async def later(
        self, resources: Sequence[manifests.ManifestResource]
    ) -> frozenset[manifests.ManifestResource]:
        return await self._followed.later(self._module, resources)

    async def bodies(
        self, resources: Collection[manifests.ManifestResource]
    ) -> dict[manifests.ManifestResource, manifests.Object]:
        return await self._followed.bodies(self._module, resources)


async def _nothing() -> None:
    """Do nothing."""


def _found(
    manifest: str, wanted: Sequence[manifests.ManifestResource], namespace: str, of_manifest: str
) -> dict[manifests.ManifestResource, manifests.Object]:
    """Return the objects of another release's manifest, whose namespace is ``of_manifest``."""
    by_identity = {each.identity(namespace): each for each in wanted}
    # Of what is in no namespace, each release says its own.
    by_identity |= {each.identity(of_manifest): each for each in wanted if each.namespace is None}
    found = manifests.find_objects(manifest, lambda each: each.identity(of_manifest) in by_identity)
    return {by_identity[each.identity(of_manifest)]: body for each, body in found}


async def _resources(deployed: release_types.Deployed | None) -> tuple[manifests.ManifestResource, ...]:
    return await asyncio.to_thread(manifests.resources, deployed.manifest if deployed else "")
