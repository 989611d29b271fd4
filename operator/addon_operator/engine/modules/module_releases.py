"""The releases of modules, as the engine sees them."""

import asyncio
import contextlib
import dataclasses
from collections.abc import Awaitable, Callable, Collection, Mapping
from typing import Protocol

from addon_operator.engine import events
from addon_operator.engine.queues import tasks
from addon_operator.helm.releases import release_types
from addon_operator.kernel import names
from addon_operator.modules import manifests, model, release
from addon_operator.values import redaction, store


class HelmReleases(Protocol):
    """Helm, one release at a time; see :class:`.ReleaseManager`."""

    async def observe_all(self) -> Mapping[str, release.Revision]:
        """The last revision of every release that there is or whose removal is unfinished, by name."""
        ...

    async def ensure(self, request: release_types.ReleaseRequest) -> release_types.ReleaseOutcome:
        """Install or upgrade the module's release if that is necessary; cancelling it ends Helm first."""
        ...

    async def deployed(self, module: names.ModuleName) -> release_types.Deployed | None:
        """What the deployed revision consists of; ``None`` if there is none."""
        ...

    async def remove(
        self,
        module: names.ModuleName,
        *,
        keep_record: bool = False,
        sparing: Collection[manifests.ManifestResource] = (),
    ) -> bool:
        """Uninstall the release but for some objects; ``False`` if there is none."""
        ...


def request_of(
    values: store.ValuesStore,
    module: model.Module,
    *,
    fresh: bool = False,
    absent: tuple[str, ...] = (),
    give_up: release_types.GiveUp = release_types.give_up_nothing,
) -> release_types.ReleaseRequest:
    """The module's release as its values ask for it; what schemas call sensitive stays out of messages."""
    given = values.helm_values(module.name)
    hidden = redaction.sensitive_texts(given, values.masked_values(module.name))
    return release_types.ReleaseRequest(
        module.name,
        module.path,
        given,
        absent=absent,
        fresh=fresh,
        redact=redaction.redactor(hidden),
        give_up=give_up,
    )


class ModuleReleases:
    """Gives modules' values to Helm, and remembers which releases there are."""

    def __init__(
        self,
        manager: HelmReleases,
        values: store.ValuesStore,
        tell: events.Listener,
        *,
        ignored: frozenset[str] = frozenset(),
    ) -> None:
        """``ignored``: releases that are never removed."""
        self._manager = manager
        self._values = values
        self._tell = tell
        self._ignored = ignored
        self._known: dict[str, int] = {}
        self._half_removed: set[str] = set()
        self._working: dict[names.ModuleName, asyncio.Task[release_types.ReleaseOutcome]] = {}

    async def observe_all(self) -> Mapping[str, bool]:
        """Name of each release in the operator's namespace, and whether an addon-operator made it.

        Those whose removal was interrupted count, too, although they do not exist.
        """
        revisions = await self._manager.observe_all()
        self._known = {name: revision.number for name, revision in revisions.items() if revision.exists}
        self._half_removed = set(revisions) - set(self._known) - self._ignored
        return {name: revision.ours for name, revision in revisions.items()}

    def exists(self, release: str) -> bool:
        """Whether the release was there when it was last looked at, and may be removed."""
        return release in self._known and release not in self._ignored

    def revision(self, release: str) -> int | None:
        """Number of the last revision when it was last looked at; ``None`` without a release."""
        return self._known.get(release)

    async def renew(
        self,
        module: model.Module,
        activation: str,
        *,
        fresh: bool,
        absent: tuple[str, ...] = (),
        before_change: Callable[[], Awaitable[None]] = release_types.nothing,
        give_up: release_types.GiveUp = release_types.give_up_nothing,
    ) -> release_types.ReleaseOutcome:
        """Install or upgrade the module's release if that is needed, as it is when resources are ``absent``.

        ``before_change`` is called before Helm has anything to do with a release that is there;
        ``give_up`` says what of the release is left to others that have it, too.
        Raises :class:`.InvalidValuesError` for values that the schemas do not
        allow, and what :meth:`.ReleaseManager.ensure` raises.
        """
        # What is checked is what is asked for, whatever hooks change meanwhile.
        request = request_of(self._values, module, fresh=fresh, absent=absent, give_up=give_up)
        request = dataclasses.replace(request, before_change=before_change)
        await asyncio.to_thread(self._values.checking_helm_values(module.name))
        outcome = await self._interruptible(request)
        self._known[module.name] = outcome.revision
        self._tell(events.ReleaseEnsured(module.name, activation, outcome))
        return outcome

    async def deployed(self, release: names.ModuleName) -> release_types.Deployed | None:
        """What the deployed revision consists of; ``None`` if there is none.

        Raises what :meth:`.ReleaseManager.deployed` raises.
        """
        return await self._manager.deployed(release)

    def stop(self, module: names.ModuleName) -> None:
        """End a running :meth:`ensure` of the module: Helm's processes are ended, and then it raises
        :class:`.SupersededError`.
        """
        if (work := self._working.get(module)) is not None:
            work.cancel()

    async def _interruptible(self, request: release_types.ReleaseRequest) -> release_types.ReleaseOutcome:
        work = asyncio.create_task(self._manager.ensure(request), name=f"release {request.module}")
        self._working[request.module] = work
        try:
            await asyncio.wait([work])
        except asyncio.CancelledError:
            await _end(work)
            raise
        finally:
            del self._working[request.module]
        if work.cancelled():
            raise tasks.SupersededError(f"the work on release {request.module} was ended: it is disabled")
        return work.result()

    async def remove(
        self,
        release: str,
        *,
        keep_record: bool = False,
        sparing: Collection[manifests.ManifestResource] = (),
    ) -> None:
        """Uninstall the release; one that is not there is fine, and one that is ignored stays.

        With ``keep_record`` its record stays until :meth:`forget`: however this process ends, the next
        one will know that hooks have yet to run.
        """
        if release in self._ignored:
            return
        name = names.ModuleName(release)
        if await self._manager.remove(name, keep_record=keep_record, sparing=sparing):
            self._tell(events.ReleaseRemoved(release))
        self._known.pop(release, None)
        if keep_record:
            self._half_removed.add(release)

    async def forget(self, release: str) -> None:
        """Remove the record that a removal kept, if there is one."""
        if release in self._half_removed:
            await self._manager.remove(names.ModuleName(release))
            self._half_removed.discard(release)


async def _end(work: "asyncio.Task[release_types.ReleaseOutcome]") -> None:
    """However often this is cancelled: Helm's processes are gone when it returns."""
    while not work.done():
        work.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.wait([work])
    if not work.cancelled():
        work.exception()
