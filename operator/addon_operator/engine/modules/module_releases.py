"""The releases of modules: made, removed, and remembered; nothing is done for a module in maintenance."""

import asyncio
import contextlib
import functools
import math
import pathlib
from collections.abc import Awaitable, Callable, Collection, Coroutine, Iterable, Mapping
from typing import Any, Final, TypeVar

from msgspec import structs

from addon_operator.aio import threads, waiting
from addon_operator.documents import json_pointers
from addon_operator.engine import events, module_requests, tasks
from addon_operator.engine.drift import drift, followed_releases, module_healths
from addon_operator.engine.modules import module_slips, module_windows
from addon_operator.helm import helm_errors, places, release_types, remembered
from addon_operator.helm.releases import releases
from addon_operator.kernel import errors, names
from addon_operator.modules import chart_values, model, module_config, release
from addon_operator.modules import windows as windows_module
from addon_operator.values import checks, redaction, store
from addon_operator.values.patches import hook_values

_T = TypeVar("_T")
_NAMED: Final = 3
LONG_SECONDS: Final = 10.0
"""Between two looks at what a call of Helm waits for."""
STUCK_SECONDS: Final = 1.5
"""Between two looks at the pods of Helm's own hook; if both show none that runs, the call gets nowhere."""


def request_of(
    values: store.ValuesStore, module: model.Module, before: release_types.RevisionInputs | None = None
) -> release_types.ReleaseRequest:
    """Return the release that the module's values ask for; messages do not show what is sensitive.

    ``values``: a snapshot, as this is for a thread. ``before``: see :func:`redactor_of`.
    """
    given = values.values(module.name)
    return release_types.ReleaseRequest(
        module.name,
        module.chart_directory,
        chart_values.arranged(module, given),
        has_own_values=module.chart_directory == module.path,
        create_namespace=module.config.create_namespace,
        changes=module.config.changes,
        removal=remembered.Removal(data=module.config.removal_data, confirm=module.config.removal_confirm),
        is_stock=module.stock is not None or bool(module.config.release_name),
        redact=redactor_of(values, module, before),
        hook_places=values.hook_places(module.name).text(),
        skips_schemas=values.section_of(module.name).chart_leads_outside,
        enabled_modules=values.enabled_modules() if chart_values.has_section(module) else None,
    )


def redactor_of(
    values: store.ValuesStore, module: model.Module, before: release_types.RevisionInputs | None = None
) -> Callable[[str], str]:
    """Return what hides the module's sensitive values in texts.

    ``before``: what its chart was given once; what stands in the same places is hidden, too, and what stands
    where the values Secret set something then.
    """
    now = redaction.sensitive_texts(values.values(module.name), values.masked_values(module.name))
    if before is None:
        return redaction.redactor(now)
    shared, own = chart_values.sections_of(module, before.values)
    once = (
        redaction.sensitive_texts(section, values.frozen(owner).masked(section))
        for owner, section in ((None, shared), (module.name, own))
    )
    places = hook_values.read_places(before.hook_places)
    hidden = () if places is None else places.hidden
    if places is None and before.hook_places:
        # What was hidden then cannot be read any more.
        hidden = hook_values.EVERYWHERE
    sections = {names.GLOBAL_KEY: shared, module.key: own}
    of_secret = (
        redaction.leaves(json_pointers.find(sections, json_pointers.parse(place))) for place in hidden
    )
    return redaction.redactor(now.union(*once, *of_secret))


def check_release_name(module: model.Module, ignored: frozenset[str]) -> None:
    """Raise :class:`.ModuleError` if ``releaseName`` is that of a release that modules must not touch."""
    if module.config.release_name and module.name in ignored:
        raise errors.ModuleError(
            module.name,
            f"{module.path / module_config.FILE}, releaseName: {module.release!r} is the operator's own "
            "release, or HELM_IGNORE_RELEASE names it; choose another name",
        )


class ModuleReleases:
    """Gives modules' values to Helm, and remembers which releases there are."""

    def __init__(
        self,
        manager: releases.ReleaseManager,
        values: store.ValuesStore,
        restoring: drift.Drift,
        followed: followed_releases.FollowedReleases,
        healths: module_healths.ModuleHealths,
        tell: events.Listener,
        windows: module_windows.ModuleWindows,
        *,
        ignored: frozenset[str] = frozenset(),
    ) -> None:
        """``ignored``: releases that are never removed."""
        self._manager = manager
        self._values = values
        self.slips = module_slips.ModuleSlips(values)
        """What of values and templates is probably misspelt."""
        self._drift = restoring
        self._followed = followed
        followed.known_again = self.let_go
        self.healths = healths
        """How the modules' resources are."""
        self._tell = tell
        self.windows = windows
        """When releases may be changed, and what waits for that."""
        self._ignored = ignored
        self._unreadable: frozenset[str] = frozenset()
        self._modes: dict[names.ModuleName, str] = {}
        self._known: dict[str, int] = {}
        self._half_removed: set[str] = set()
        self._unremembered: frozenset[str] = frozenset()
        self._gone: set[str] = set()  # since the last look began
        self._working: dict[names.ModuleName, asyncio.Task[Any]] = {}
        self._letting_go = asyncio.Lock()
        self._waiting: dict[places.ReleaseLocation, tuple[str, str]] = {}
        self.coming_runs: Callable[[], Iterable[tuple[model.Module, bool]]] = tuple
        """Gives the enabled modules, and of each whether a run that changes its release is on its way."""
        self.unread: Callable[[], Awaitable[str]] = _nothing
        """Names a directory whose changes have yet to be read; empty if there is none."""

    async def observe_all(self, modules: Collection[model.Module]) -> Mapping[str, bool]:
        """Return what each release goes by, and whether an addon-operator made it.

        ``modules`` are all there are. Releases whose removal was interrupted count, too, although they do
        not exist.
        """
        known = [each.name for each in modules]
        for moved in self._manager.assign(modules):
            self._leave(names.ModuleName(moved))
        self._gone.clear()
        revisions = await self._manager.observe_all()
        for gone in self._gone & revisions.keys():
            del revisions[gone]
        self._known = {name: revision.number for name, revision in revisions.items() if revision.exists}
        half_removed = set(revisions) - set(self._known)
        self._half_removed = {release for release in half_removed if not self._is_ignored(release)}
        self._tell_unreadable(await self._manager.remember())
        self._followed.doubt(
            [each for each in known if self._manager.places.of(each).namespace in self._unreadable]
        )
        return {name: self._manager.is_ours(revision) for name, revision in revisions.items()}

    @property
    def ignored(self) -> frozenset[str]:
        """What releases go by that are never removed."""
        return self._manager.places.ignored(self._ignored)

    @property
    def taken_over(self) -> frozenset[str]:
        """Releases that were taken over, as nothing was remembered of them, and stay for this converge."""
        return self._manager.taken_over

    def converged(self) -> None:
        """Note that a converge is through: what was taken over before is like other releases now."""
        self._manager.converged()

    def exists(self, release: str) -> bool:
        """Say whether the release was there when it was last looked at, and may be removed."""
        return release in self._known and not self._is_ignored(release)

    def is_left(self, release: str) -> bool:
        """Say whether there is something of the release to remove, and be it its record."""
        return self.exists(release) or release in self._half_removed

    def successor(self, release: str) -> names.ModuleName | None:
        """Return the module whose release probably moved away from there; ``None`` if none has."""
        module = self._manager.places.successor(release)
        return None if module is None else names.ModuleName(module)

    def moved(self, releases: Iterable[str]) -> frozenset[str]:
        """Return those of the releases whose modules have another one now."""
        return frozenset(each for each in releases if self._manager.places.successor(each) is not None)

    def warn_of_unremembered(self, enabled: Collection[names.ModuleName]) -> None:
        """Say once of which disabled modules a release stays that others may have made."""
        unremembered = self._manager.unremembered - {*enabled}
        for name in sorted(unremembered - self._unremembered):
            place = self._manager.places.of(name)
            text = (
                f"release {place} of the disabled module {name} stays: nothing is remembered of it, so "
                f"others may have made it; remove it with 'helm uninstall {place.name} --namespace "
                f"{place.namespace}'"
            )
            self._tell(events.Warned(text))
        self._unremembered = unremembered

    def keep_data(self, releases: Iterable[str]) -> None:
        """Let data stay when these are removed, as their modules may only be called otherwise now."""
        for each in releases:
            self._manager.keep_data(each)

    def revision(self, release: str) -> int | None:
        """Return the number of the last revision when it was last looked at; ``None`` without a release."""
        return self._known.get(release)

    def last_revision(self, release: names.ModuleName) -> int | None:
        """Return the same as the record says that was read last, which others may have made."""
        known = self._known.get(release)
        return known and (self._manager.last_revision(release) or known)

    def follow(self, modules: Iterable[names.ModuleName]) -> None:
        """Watch over the releases that these enabled modules have already, whatever becomes of their runs."""
        for module in modules:
            revision = self._known.get(module)
            if self._values.maintenance(module):
                self.leave_alone([module])
            elif revision is not None:
                self._followed.begin(module, revision)

    def leave_alone(self, modules: Iterable[names.ModuleName]) -> None:
        """Watch over the releases of those of the modules no longer that are in maintenance.

        They go on having what they have. A run would do it, too, but others may be before it.
        """
        for module in modules:
            if self._values.maintenance(module):
                if (revision := self._known.get(module)) is None:
                    self._followed.leave(module)
                else:
                    self._followed.rest(module, revision)
                self._drift.forget(module)

    async def ensure(
        self, module: model.Module, activation: str, *, fresh: bool, insists: bool = False
    ) -> None:
        """Install or upgrade the module's release if that is needed or resources of it are absent.

        ``fresh``: look at the release in the cluster first, instead of trusting the last discovery.
        ``insists``: do so although the same was taken back the last time.
        Raises :class:`.InvalidValuesError` for values that the schemas do not allow, and what
        :meth:`.ReleaseManager.ensure` raises. While no window is open, a revision of a release that is there
        is held back.
        """
        name = module.name
        if self._note_maintenance(name):
            self.leave_alone([name])
            self.windows.done(name)
            return
        check_release_name(module, self.ignored)
        opens = self.windows.opening(name)
        async with self._drift.helm_at_work(name):
            absent = await self._drift.restore(name)
            # What is checked is what is asked for, whatever hooks change meanwhile.
            check = checks.Checks(self._values).checking_helm_values(name)
            asked = await asyncio.to_thread(request_of, self._values.snapshot(name), module)
            request = structs.replace(
                self._guarded(asked),
                absent=absent,
                fresh=fresh or bool(absent),
                insists=insists,
                waits=opens is not None,
            )
            await threads.run(threads.EDITS, check)
            try:
                outcome = await self._interruptible(name, self._manager.ensure(request))
            except helm_errors.HelmError as error:
                raise await self._rolled_back(module, request, error) from error.__cause__
        self._known[name] = outcome.revision
        self._gone.discard(name)
        if opens is not None and outcome.held_back:
            held = windows_module.HeldBack(outcome.held_back, opens, is_broken=outcome.is_broken)
            self.windows.hold(name, held)
        else:
            self.windows.done(name)
        self._tell(events.ReleaseEnsured(name, activation, outcome))
        if absent and not outcome.held_back:
            self._drift.restored_by_helm(name, absent)
        if self._followed.is_followed(name, outcome.revision):
            self.healths.configured(name)
        else:
            self.healths.expect(name)
        self._followed.follow(name, outcome.revision)
        is_asked = insists and activation == module_requests.ACTIVATION_COMMAND
        self._followed.compare_again(name, corrects=is_asked)
        if not outcome.held_back:
            await self.let_go(name)

    async def let_go(self, done: names.ModuleName | None = None) -> None:
        """Delete what left releases and is in no other one, unless a module is left that may gain it.

        ``done``: a module whose run is through.
        """
        if not self._manager.has_moving:
            return
        async with self._letting_go:
            try:
                if not (gaining := await self._gaining(done, looks=True)):
                    await self._manager.let_go(self._others_of)
                elif done is None:
                    self._tell_waiting(gaining)
            except errors.AddonOperatorError as error:
                text = f"objects that releases have no more could not be deleted, and are later: {error}"
                self._tell(events.Warned(text))

    def _others_of(self, module: names.ModuleName) -> release_types.Others:
        return self._followed.others_of(module, functools.partial(self._gaining, module))

    def _tell_waiting(self, gaining: str) -> None:
        """Report once which objects wait for a module to run before they are deleted, as it may have them."""
        left = self._manager.left.moving
        told = {place: f"{names.listed([*map(str, left[place])], _NAMED)} left it" for place in left}
        for place, text in told.items():
            if self._waiting.get(place) != (text, gaining):
                waits = f"and go when {gaining} has run, unless it has them then"
                self._tell(events.Noted(f"release {place}: {text}, {waits}", place.name))
        self._waiting = {place: (text, gaining) for place, text in told.items()}

    async def _gaining(self, beside: names.ModuleName | None, *, looks: bool = False) -> str:
        """Name a module but this one that is new or changed and has yet to run; empty if there is none.

        So counts one of whose release nobody knows what it has, also the one that has just run, and one in
        maintenance; and one whose files are newer than its last run, although nobody has read that yet. With
        ``looks``, one that fails, that has no run on its way, that is in maintenance, or whose release is not
        known for long counts only if its chart has something of what left releases. As long as a directory is
        written, its module may have anything.
        """
        await self._followed.follow_new()
        unread = dict.fromkeys(self._followed.at_rest, True) | self._followed.unread
        unread = {name: lasts for name, lasts in unread.items() if looks or name != beside}
        if soon := next((name for name, lasts in unread.items() if not lasts), ""):
            return f"module {soon}"
        for module, is_coming in self.coming_runs():
            name, lasts = module.name, module.name in unread
            is_there = name != beside and module.has_chart and not self._values.maintenance(name)
            if is_there or lasts:
                try:
                    asked = await asyncio.to_thread(request_of, self._values.snapshot(name), module)
                    by_chart = looks and (lasts or not is_coming)
                    if (lasts or await self._manager.is_due(asked)) and not (
                        by_chart and not await self._manager.may_gain(asked)
                    ):
                        return f"module {name}"
                except errors.AddonOperatorError:
                    # What it will be is not known.
                    return f"module {name}"
        # Last, as all files are looked at.
        changing = await self.unread()
        return f"what changes in {changing}" if changing else ""

    def _guarded(self, request: release_types.ReleaseRequest) -> release_types.ReleaseRequest:
        """Have absent objects restored before a change, and others keep what an upgrade drops."""
        return structs.replace(
            request,
            before_change=functools.partial(self._restore_before_change, request.module),
            others=self._others_of(request.module),
        )

    async def _rolled_back(
        self, module: model.Module, request: release_types.ReleaseRequest, error: helm_errors.HelmError
    ) -> helm_errors.HelmError:
        """Take back what failed, if ``remediation.rollback`` says so; return what to tell."""
        is_none = isinstance(error, helm_errors.RolledBackError | helm_errors.NotCalledError)
        if not module.config.rollback or is_none:
            return error
        return await self._manager.roll_back(request, error, unhealthy=False) or error

    async def roll_back_unhealthy(
        self, module: model.Module, error: errors.ModuleError
    ) -> errors.ModuleError:
        """Take back a revision that did not become healthy, if that is wanted; return what to tell.

        Raises the errors of the API client.
        """
        name = module.name
        if not module.config.rollback:
            return error
        async with self._drift.helm_at_work(name):
            asked = await asyncio.to_thread(request_of, self._values.snapshot(name), module)
            told = await self._manager.roll_back(self._guarded(asked), error, unhealthy=True)
        await self._look_again(name)
        return told or error

    async def _look_again(self, module: names.ModuleName) -> None:
        """Follow the revision that a rollback made."""
        deployed = await self._manager.deployed(module)
        if deployed is not None:
            self._known[module] = deployed.revision
            self.healths.expect(module)
            self._followed.follow(module, deployed.revision)

    async def mark_healthy(self, module: names.ModuleName) -> None:
        """Save that the module was healthy with its last revision: a rollback may come back to it.

        Raises the errors of the API client.
        """
        await self._manager.mark(module, release.HEALTHY_LABEL)

    async def is_tested(self, module: names.ModuleName) -> bool:
        """Say whether the tests of the chart succeeded with the last revision; raises as :meth:`test`."""
        return await self._manager.is_marked(module, release.TESTED_LABEL)

    async def test(self, module: model.Module) -> None:
        """Run the tests of the module's chart.

        Raises :class:`.HelmError` when one fails, and the errors of the API client.
        """
        asked = await asyncio.to_thread(request_of, self._values.snapshot(module.name), module)
        async with self._drift.helm_at_work(module.name):
            await self._manager.test(asked)
            await self._manager.mark(module.name, release.TESTED_LABEL)

    def stop(self, module: names.ModuleName, why: str = "") -> None:
        """End a running :meth:`ensure` or :meth:`remove` of the module: Helm's processes are ended, and then
        it raises :class:`.SupersededError`.
        """
        if (work := self._working.get(module)) is not None:
            if why:
                self._tell(events.Warned(f"module {module}: the call of Helm is ended for {why}"))
            work.cancel()

    async def watch_hook(
        self, module: names.ModuleName, newer: asyncio.Event, note: Callable[[str], object]
    ) -> None:
        """Note which of its hooks a running :meth:`ensure` waits for.

        Once something ``newer`` is wanted, it is ended, as by :meth:`stop`, if that hook gets nowhere.
        """
        was_stuck = False
        while True:
            if not newer.is_set():
                await waiting.wait_within(newer, LONG_SECONDS)
            told, is_stuck = await self._manager.hook_at_work(module)
            note(told)
            if newer.is_set() and was_stuck and is_stuck:
                self.stop(module, f"a newer wish: {told}")
                return
            was_stuck = newer.is_set() and is_stuck
            if newer.is_set():
                await asyncio.sleep(STUCK_SECONDS)

    def hold_removal(
        self,
        release: str,
        owner: names.ModuleName,
        why: str,
        dependants: Iterable[names.ModuleName] = (),
        required: Iterable[str] = (),
    ) -> bool:
        """Hold the removal of the release back while no window of ``owner`` is open, or as long as nobody has
        confirmed it or that of one that it goes with; whether it is held.

        What waits of ``dependants`` is done before; ``required`` are removed afterwards, and with it or not
        at all. What is to be removed is not restored meanwhile.
        """
        before = [held for each in dependants if (held := self.windows.held(each)) is not None]
        own = next((each for each in (release, *required) if self._unconfirmed(each)), "")
        confirm = next((held.confirm for held in before if held.confirm), own)
        opens = (self.windows.opening(owner), *(held.until for held in before), math.inf if confirm else None)
        until = max((moment for moment in opens if moment is not None), default=None)
        if until is None or not self.exists(release):
            return False
        name = names.ModuleName(release)
        self._leave(name)
        what = f"removal of the release: {why}"
        held = windows_module.HeldBack(what, until, is_removal=True, confirm=confirm)
        self.windows.hold(name, held)
        return True

    def _unconfirmed(self, release: str) -> bool:
        """Say whether somebody has to confirm the removal of a release first; what moved is not removed."""
        revision = self.revision(release)
        return (
            revision is not None
            and self.successor(release) is None
            and self._manager.is_unconfirmed(release, revision)
        )

    def confirm(self, release: names.ModuleName) -> None:
        """Note that somebody has confirmed a removal that waits for that.

        Raises :class:`.CannotRunError` for one that does not wait, or waits for that of another module.
        """
        held = self.windows.held(release)
        if held is None or not held.confirm:
            raise module_requests.CannotRunError(f"no removal of {release} waits for a confirmation")
        if held.confirm != release:
            raise module_requests.CannotRunError(f"the removal of {release} {held.waits}")
        self._manager.confirm(release, self._known.get(release, 0))

    async def remove(
        self, release: str, *, keep_record: bool = False, directory: pathlib.Path | None = None
    ) -> None:
        """Uninstall the release; one that is not there is fine, and one that is ignored stays.

        ``directory`` is that of its module's chart, if there is one. With ``keep_record`` its record stays
        until :meth:`forget`: however this process ends, the next one will know that hooks have yet to run.
        """
        name = names.ModuleName(release)
        self._leave(name)
        if self._is_ignored(release):
            return
        async with self._drift.helm_at_work(name):
            others = self._others_of(name)
            removing = self._manager.remove(name, keep_record=keep_record, others=others, directory=directory)
            if await self._interruptible(name, removing):
                self._tell(events.Noted("release uninstalled", release))
        self._known.pop(release, None)
        self.windows.done(name)
        if keep_record:
            self._half_removed.add(release)
        else:
            self._gone.add(release)
        await self.let_go(name)

    async def forget(self, release: str) -> None:
        """Remove the record that a removal kept, if there is one: the removal is finished."""
        if release in self._half_removed:
            await self._manager.remove(names.ModuleName(release))
            self._half_removed.discard(release)
            self._gone.add(release)

    async def _restore_before_change(self, module: names.ModuleName) -> None:
        self.follow([module])
        await self._followed.restore_all(module)

    async def _interruptible(self, release: names.ModuleName, doing: Coroutine[Any, Any, _T]) -> _T:
        work = asyncio.create_task(doing, name=f"release {release}")
        self._working[release] = work
        try:
            await asyncio.wait([work])
        except asyncio.CancelledError:
            await _end(work)
            raise
        finally:
            del self._working[release]
        if work.cancelled():
            raise tasks.SupersededError(f"the work on release {release} was stopped for a newer intent")
        return work.result()

    def _is_ignored(self, release: str) -> bool:
        return release in self.ignored

    def _tell_unreadable(self, namespaces: frozenset[str]) -> None:
        for namespace in sorted(namespaces - self._unreadable):
            self._tell(
                events.Warned(
                    f"releases in namespace {namespace} are neither made nor removed: they may not be read; "
                    "give the operator a Role there, as releaseNamespaces of its chart does"
                )
            )
        self._unreadable = namespaces

    def gone(self, module: names.ModuleName) -> None:
        """Forget a module whose directory is gone; if it comes back, all is told of it as of a new one."""
        self._leave(module)
        self._modes.pop(module, None)

    def _leave(self, module: names.ModuleName) -> None:
        self._followed.leave(module)
        self._drift.forget(module)

    def _note_maintenance(self, module: names.ModuleName) -> bool:
        """Report a mode that changed, and return whether the module is left alone."""
        mode = self._values.maintenance(module)
        if mode != self._modes.get(module, ""):
            self._modes[module] = mode
            self._tell(events.MaintenanceChanged(module, mode))
        return bool(mode)


async def _nothing() -> str:
    """Name nothing."""
    return ""


async def _end(work: "asyncio.Task[Any]") -> None:
    """End Helm: its processes are gone when this returns, however often it is cancelled."""
    while not work.done():
        work.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.wait([work])
    if not work.cancelled():
        work.exception()
