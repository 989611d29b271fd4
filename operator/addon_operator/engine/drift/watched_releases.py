"""Releases whose resources are watched and healed, but for those of modules in maintenance."""

import asyncio
import functools
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from typing import Final, Protocol

from addon_operator.aio import waiting
from addon_operator.engine import events
from addon_operator.engine.drift import drift, watched_resources
from addon_operator.helm import helm_errors
from addon_operator.helm.releases import release_types
from addon_operator.kernel import clock as clocks
from addon_operator.kernel import errors, names
from addon_operator.modules import manifests, model

RETRY: Final = 10.0
"""Seconds until a manifest that could not be read is read again."""
SETTLE: Final = 5.0
"""Seconds that the first lists have before single objects are asked for."""
UNKNOWN_KIND_RETRY: Final = 60.0
"""Seconds until kinds that the API server does not have are looked up again."""


class Releases(Protocol):
    """The releases below; see :class:`.ModuleReleases`."""

    async def observe_all(self) -> Mapping[str, bool]:
        """Name of each release in the operator's namespace, and whether an addon-operator made it."""
        ...

    def exists(self, release: str) -> bool:
        """Whether the release was there when it was last looked at."""
        ...

    def revision(self, release: str) -> int | None:
        """Number of the last revision when it was last looked at; ``None`` without a release."""
        ...

    def stop(self, module: names.ModuleName) -> None:
        """End a running :meth:`renew` of the module."""
        ...

    async def renew(
        self,
        module: model.Module,
        activation: str,
        *,
        fresh: bool,
        absent: tuple[str, ...] = (),
        before_change: Callable[[], Awaitable[None]],
        give_up: release_types.GiveUp,
    ) -> release_types.ReleaseOutcome:
        """Install or upgrade the module's release if needed, as it is when resources are ``absent``.

        ``before_change`` is called before Helm has anything to do with a release that is there.
        """
        ...

    async def deployed(self, release: names.ModuleName) -> release_types.Deployed | None:
        """What the deployed revision consists of; ``None`` if there is none."""
        ...

    async def remove(
        self,
        release: str,
        *,
        keep_record: bool = False,
        sparing: Collection[manifests.ManifestResource] = (),
    ) -> None:
        """Uninstall the release but for some objects; one that is not there is fine."""
        ...

    async def forget(self, release: str) -> None:
        """Remove the record that a removal kept, if there is one."""
        ...


class WatchedReleases:
    """Implements the releases of :mod:`.module_run`, with healing."""

    def __init__(
        self,
        releases: Releases,
        resources: watched_resources.WatchedResources,
        heal: drift.Healing,
        tell: events.Listener,
        *,
        maintenance: Callable[[names.ModuleName], str],
        warn: Callable[[str], None],
        clock: clocks.Clock,
    ) -> None:
        """``maintenance`` gives a module's maintenance mode; empty if it is managed as usual."""
        self._releases = releases
        self._resources = resources
        self._healing = heal
        self._tell = tell
        self._maintenance = maintenance
        self._warn = warn
        self._clock = clock
        self._modes: dict[names.ModuleName, str] = {}
        self._wanted: dict[names.ModuleName, int] = {}
        self._followed: dict[names.ModuleName, int] = {}
        self._not_before: dict[names.ModuleName, float] = {}
        self._wake = asyncio.Event()

    async def observe_all(self) -> Mapping[str, bool]:
        """Name of each release in the operator's namespace, and whether an addon-operator made it."""
        return await self._releases.observe_all()

    def exists(self, release: str) -> bool:
        """Whether the release was there when it was last looked at."""
        return self._releases.exists(release)

    def revision(self, release: str) -> int | None:
        """Number of the last revision when it was last looked at; ``None`` without a release."""
        return self._releases.revision(release)

    def stop(self, module: names.ModuleName) -> None:
        """End a running :meth:`ensure` of the module; see :class:`Releases`."""
        self._releases.stop(module)

    async def ensure(self, module: model.Module, activation: str, *, fresh: bool) -> None:
        """Install or upgrade the module's release if that is needed or resources of it are absent.

        Nothing is done for a module in maintenance. Raises what
        :meth:`.ModuleReleases.renew` raises.
        """
        name = module.name
        if self._is_in_maintenance(name):
            self._leave(name)
            return
        async with self._healing.helm_at_work(name):
            absent = await self._healing.restore(name)
            outcome = await self._releases.renew(
                module,
                activation,
                fresh=fresh or bool(absent),
                absent=absent,
                before_change=functools.partial(self._complete, name),
                give_up=functools.partial(self._give_up, name),
            )
        if absent:
            self._healing.healed(name, absent)
        self._wanted[name] = outcome.revision
        self._wake.set()

    async def _complete(self, module: names.ModuleName) -> None:
        """Restore what of a release is absent, whether a watch has told of it yet or not.

        After a start nothing is known: Helm would make a Secret anew, with another password.
        """
        self.follow([module])
        if self._wanted.get(module) == self._followed.get(module) and self._resources.is_settled(module):
            return
        try:
            await self._follow(module)
        except helm_errors.ReleaseRecordError as error:
            self._warn(f"module {module}: what is absent cannot be restored before Helm begins: {error}")
            return
        unknown = await self._resources.settle(module, SETTLE)
        await self._healing.restore(module, unknown)

    def follow(self, modules: Iterable[names.ModuleName]) -> None:
        """Watch over the releases that these enabled modules have already, whatever becomes of their runs."""
        for module in modules:
            revision = self._releases.revision(module)
            if revision is not None and not self._maintenance(module):
                self._wanted.setdefault(module, revision)
                self._wake.set()

    async def remove(self, release: str, *, keep_record: bool = False) -> None:
        """Uninstall the release; see :class:`Releases`."""
        name = names.ModuleName(release)
        self._leave(name)
        async with self._healing.helm_at_work(name):
            sparing = await self._of_others(name)
            await self._releases.remove(release, keep_record=keep_record, sparing=sparing)

    async def _give_up(
        self, name: names.ModuleName, dropped: Sequence[manifests.ManifestResource]
    ) -> tuple[manifests.ManifestResource, ...]:
        # After a start not everything is followed yet.
        await self.follow_new()
        return self._resources.give_up(name, dropped)

    async def _of_others(self, name: names.ModuleName) -> tuple[manifests.ManifestResource, ...]:
        """What of a release other modules have, too: it stays when this one goes."""
        # After a start not everything is followed yet.
        await self.follow_new()
        try:
            deployed = await self._releases.deployed(name)
        except errors.AddonOperatorError as error:
            self._warn(f"what release {name} shares with other modules is not known: {error}")
            return ()
        found = await asyncio.to_thread(manifests.resources, deployed.manifest if deployed else "")
        return self._resources.of_others(name, found)

    async def forget(self, release: str) -> None:
        """Remove the record that a removal kept, if there is one."""
        await self._releases.forget(release)

    async def work(self) -> None:
        """Read the manifests of new revisions and follow their resources, until cancelled."""
        while True:
            self._wake.clear()
            await self.follow_new()
            await self._sleep()

    async def follow_new(self) -> None:
        """Follow the resources of every release whose revision is another one than before."""
        for module in self._to_follow(self._clock.monotonic()):
            try:
                await self._follow(module)
            except errors.AddonOperatorError as error:
                self._warn(f"module {module}: resources are not watched yet: {error}")
                self._not_before[module] = self._clock.monotonic() + RETRY

    async def _follow(self, module: names.ModuleName) -> None:
        revision = self._wanted.get(module)
        deployed = await self._releases.deployed(module)
        resources = await asyncio.to_thread(manifests.resources, deployed.manifest if deployed else "")
        if module not in self._wanted:
            return
        complete = await self._resources.follow(module, resources)
        if module not in self._wanted:
            self._resources.unfollow(module)
        elif complete and revision is not None:
            self._followed[module] = revision
            self._not_before.pop(module, None)
        else:
            self._not_before[module] = self._clock.monotonic() + UNKNOWN_KIND_RETRY

    def _to_follow(self, now: float) -> list[names.ModuleName]:
        return [name for name in self._pending() if self._not_before.get(name, now) <= now]

    def _pending(self) -> list[names.ModuleName]:
        return [name for name, number in self._wanted.items() if self._followed.get(name) != number]

    async def _sleep(self) -> None:
        soonest = min((self._not_before.get(name, 0.0) for name in self._pending()), default=None)
        timeout = None if soonest is None else max(0.0, soonest - self._clock.monotonic())
        await waiting.wait_within(self._wake, timeout)

    def _leave(self, module: names.ModuleName) -> None:
        self._wanted.pop(module, None)
        self._followed.pop(module, None)
        self._not_before.pop(module, None)
        self._resources.unfollow(module)
        self._healing.forget(module)

    def _is_in_maintenance(self, module: names.ModuleName) -> bool:
        mode = self._maintenance(module)
        if mode != self._modes.get(module, ""):
            self._modes[module] = mode
            self._tell(events.MaintenanceChanged(module, mode))
        return bool(mode)
