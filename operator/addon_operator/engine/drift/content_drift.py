"""Drift of content: what somebody changed of resources is told, or put back, as ``drift.mode`` says.

The watches of metadata say which objects were written. These are read and compared with the record of the
release; what the API server would not keep otherwise does not count. Modules in maintenance are not followed.
"""

import asyncio
import collections
import functools
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final

import msgspec

from addon_operator.aio import waiting
from addon_operator.engine import events
from addon_operator.engine.drift import (
    content_differences,
    drift,
    drift_backoff,
    live_contents,
    restoring,
    watched_resources,
)
from addon_operator.helm import places, release_types
from addon_operator.helm.releases import releases
from addon_operator.kernel import clock as clocks
from addon_operator.kernel import errors, names
from addon_operator.kube import api_errors
from addon_operator.modules import keeping, manifests
from addon_operator.modules.drift import (
    corrections,
    drift_config,
    drift_report,
    field_drift,
    not_ours,
    others_fields,
)

GATHER: Final = 0.2
"""Seconds in which further changes of a module join the first."""
JOINS: Final = 0.5
"""Seconds in which further modules that are new here join the first: one list is for all of them."""
MOST_JOINS: Final = 5.0
"""Seconds after which those that came are looked at, although more come."""
RETRY: Final = 1.0
"""Seconds until what could not be read, or what Helm is at work on, is looked at again."""
_MODULES_AT_ONCE: Final = 100
"""So many modules share the lists of kinds after a start; all their objects are in memory then."""


class _Refused(msgspec.Struct):
    """Differences that the API server did not let be put back."""

    differences: list[field_drift.Difference]
    is_told: bool = False


class _Followed(msgspec.Struct):
    """One module."""

    pending: set[watched_resources.Watched] = msgspec.field(default_factory=set)
    """Yet to be looked at."""
    found: content_differences.Found = msgspec.field(default_factory=dict)
    deployed: release_types.Deployed | None = None
    """What the release consists of, if that has just been read."""
    mode: drift_config.DriftMode | None = None
    """As of the last look at all of it."""
    is_corrected: bool = False
    """Whether what differs is put back this once, whatever the mode is."""
    told: drift_report.DriftReport | None = None
    not_kept: set[tuple[watched_resources.Watched, field_drift.Path]] = msgspec.field(default_factory=set)
    """What the API server or an admission webhook writes otherwise each time."""
    refused: dict[watched_resources.Watched, _Refused] = msgspec.field(default_factory=dict)
    """What the API server did not let be put back."""
    shared: set[watched_resources.Watched] = msgspec.field(default_factory=set)
    """What another module had, too: it may have to be taken over."""


class ContentDrift(watched_resources.ResourceListener):
    """Finds what somebody changed, tells it, and puts it back."""

    def __init__(
        self,
        resources: watched_resources.WatchedResources,
        absences: drift.Drift,
        manager: releases.ReleaseManager,
        contents: live_contents.LiveContents,
        config_of: Callable[[names.ModuleName], drift_config.DriftConfig],
        opening: Callable[[names.ModuleName], float | None],
        tell: events.Listener,
        clock: clocks.Clock,
    ) -> None:
        """``config_of`` gives what a module says of drift, with its mode.

        ``opening``: when corrections may be made, in seconds since the epoch; ``None`` for now.
        """
        self._resources = resources
        self._absences = absences
        self._manager = manager
        self._contents = contents
        self._config_of = config_of
        self._opening = opening
        self._tell = tell
        self._clock = clock
        self._modules: dict[names.ModuleName, _Followed] = {}
        self._due: dict[names.ModuleName, float] = {}
        self._new: set[names.ModuleName] = set()
        self._new_since = self._new_due = 0.0
        self._corrected: dict[object, drift_backoff.Corrections] = collections.defaultdict(
            drift_backoff.Corrections
        )
        """Of resources, and of the revisions of modules."""
        self._given_up: set[watched_resources.Watched] = set()
        self._wake = asyncio.Event()
        resources.subscribe(self)

    def begin(self, module: names.ModuleName, deployed: release_types.Deployed | None) -> None:
        """Compare all resources of the module with this revision, which has just been read."""
        if (followed := self._modules.get(module)) is not None:
            followed.deployed = deployed

    def followed(self, module: names.ModuleName) -> None:
        """See :class:`.ResourceListener`: look at all that is followed now."""
        resources = self._resources.watched_of(module)
        if resources is None:
            self._due.pop(module, None)
            self._new.discard(module)
            if (gone := self._modules.pop(module, None)) is not None and gone.told is not None:
                self._tell(events.DriftChanged(module, None))
            return
        followed = self._modules.setdefault(module, _Followed())
        followed.mode = self._config_of(module).mode
        followed.pending.update(resources)
        followed.not_kept.clear()
        for watched in followed.found.keys() - set(resources):
            del followed.found[watched]
        self._join(module)

    def compare_again(self, module: names.ModuleName, *, corrects: bool) -> None:
        """Compare all again after a run if the module's mode is another one, or somebody asked for the run.

        ``corrects``: then what differs is put back, but not in the mode ``ignore``.
        """
        if (followed := self._modules.get(module)) is None:
            return
        mode = self._config_of(module).mode
        if corrects or mode is not followed.mode:
            followed.mode, followed.is_corrected = mode, corrects
            followed.pending.update(self._resources.watched_of(module) or ())
            self._look_in(module, 0.0)

    def may_put_right(self, module: names.ModuleName) -> bool:
        """Say whether a run is to put a revision of others right at once; count it, and warn of too many."""
        if self._config_of(module).mode is not drift_config.DriftMode.CORRECT:
            return False
        made, now = self._corrected[module], self._clock.monotonic()
        if made.wait(now):
            text = "others insist on their revisions, so that they are left until an edit or a run"
            self._tell(events.Warned(f"module {module}: {text}"))
            return False
        made.made(now)
        return True

    def missing(self, modules: Iterable[names.ModuleName]) -> None:
        """See :class:`.ResourceListener`: what is absent comes back as it was."""
        for module in modules:
            if (followed := self._modules.get(module)) is not None:
                followed.pending.update(followed.found)
                self._look_in(module, GATHER)

    def touched(self, resource: watched_resources.Watched) -> None:
        """See :class:`.ResourceListener`."""
        modules = self._resources.modules_of(resource)
        for module in modules:
            if (followed := self._modules.get(module)) is not None:
                followed.pending.add(resource)
                if len(modules) > 1:
                    followed.shared.add(resource)
                self._look_in(module, GATHER)

    def found(self, module: names.ModuleName) -> drift_report.Found:
        """Return what is otherwise than the module's chart says."""
        followed = self._modules.get(module)
        return {} if followed is None else self._titled(module, followed.found)

    async def work(self) -> None:
        """Compare what was written, until cancelled."""
        while True:
            self._wake.clear()
            await self.look()
            due = [*self._due.values(), *([self._new_due] if self._new else [])]
            await waiting.wait_until(self._wake, min(due, default=None), self._clock)

    async def look(self) -> None:
        """Look at every module for which it is time."""
        now = self._clock.monotonic()
        if self._new_due <= now:
            self._due |= dict.fromkeys(self._new, now)
            self._new.clear()
        due = [module for module, due in self._due.items() if due <= now]
        for start in range(0, len(due), _MODULES_AT_ONCE):
            part = due[start : start + _MODULES_AT_ONCE]
            for module in part:
                self._due.pop(module, None)
            await self._look_at([each for each in part if self._may_look(each)])

    def _may_look(self, module: names.ModuleName) -> bool:
        followed = self._modules.get(module)
        if followed is None:
            return False
        if self._config_of(module).mode is drift_config.DriftMode.IGNORE:
            followed.pending &= followed.shared
            followed.found.clear()
            followed.deployed = None
            self._show(module, followed)
            if not followed.pending:
                return False
        if self._absences.is_at_work(module):
            self._look_in(module, RETRY)
            return False
        return True

    async def _look_at(self, modules: Sequence[names.ModuleName]) -> None:
        pending = {module: self._modules[module].pending for module in modules}
        for module in modules:
            self._modules[module].pending = set()
        try:
            contents = await self._contents.read(set().union(*pending.values()))
        except api_errors.KubernetesError:
            self._put_back(pending)
            return
        for module, resources in pending.items():
            try:
                await self._compare(module, resources, contents)
            except errors.AddonOperatorError:
                # No answer, or a record that cannot be read: others tell about that.
                self._put_back({module: resources})
            except Exception as error:  # noqa: BLE001 - a defect at one must not hold up others
                self._tell(events.PartFailed("content", error, RETRY))
                self._put_back({module: resources})

    def _put_back(self, pending: Mapping[names.ModuleName, set[watched_resources.Watched]]) -> None:
        for module, resources in pending.items():
            if (followed := self._modules.get(module)) is not None:
                followed.pending |= resources
                self._look_in(module, RETRY)

    async def _compare(
        self,
        module: names.ModuleName,
        resources: set[watched_resources.Watched],
        contents: live_contents.Contents,
    ) -> None:
        followed = self._modules.get(module)
        if followed is None:
            return
        deployed, followed.deployed = followed.deployed, None
        if deployed is None:
            deployed = await self._manager.deployed(module)
        if deployed is None or deployed.is_busy or self._absences.is_at_work(module):
            self._put_back({module: resources})
            return
        own = {each for each in resources if self._resources.owner(each) == module}
        for watched in resources - own:
            followed.found.pop(watched, None)
        resources = await self._without_taken(module, own, contents, deployed)
        config, namespace = self._config_of(module), self._resources.namespace_of(module)
        if config.mode is drift_config.DriftMode.IGNORE:
            return
        find = functools.partial(content_differences.find, config, deployed, namespace, resources, contents)
        expected, found, around = await self._found(find)
        for watched in resources:
            if self._modules.get(module) is not followed:
                # It went, or is to go, while somebody answered.
                return
            differences = [
                each for each in found.get(watched, ()) if (watched, each.path) not in followed.not_kept
            ]
            if differences and watched in contents:
                differences = await self._judged(
                    module,
                    followed,
                    watched,
                    expected[watched],
                    contents[watched],
                    differences,
                    deployed,
                    around,
                )
            if differences:
                followed.found[watched] = differences
            else:
                followed.found.pop(watched, None)
                followed.refused.pop(watched, None)
                self._given_up.discard(watched)
        followed.is_corrected = False
        self._show(module, followed)

    async def _found(self, find: Callable[..., content_differences.Outcome]) -> content_differences.Outcome:
        """Compare; where replicas differ, once more: an autoscaler need not be in the release."""
        outcome = await asyncio.to_thread(find)
        places = {
            watched.key.namespace
            for watched, differences in outcome[1].items()
            if any(each.path == not_ours.REPLICAS for each in differences)
        }
        if not places:
            return outcome
        return await asyncio.to_thread(find, await self._manager.scaled(places))

    async def _without_taken(
        self,
        module: names.ModuleName,
        resources: set[watched_resources.Watched],
        contents: live_contents.Contents,
        deployed: release_types.Deployed,
    ) -> set[watched_resources.Watched]:
        """Take over what another release had last, and belongs to this one; gives the others."""
        taken: list[watched_resources.Watched] = []
        for watched in resources & contents.keys():
            name, namespace = keeping.owner(contents[watched])
            place = places.ReleaseLocation(str(namespace), str(name))
            if name and place != self._manager.places.of(module) and await self._manager.gives_way(place):
                taken.append(watched)
        if not taken:
            return resources
        namespace = self._resources.namespace_of(module)
        for watched, body in await asyncio.to_thread(restoring.find, deployed.manifest, taken, namespace):
            if self._is_at_work(contents[watched]):
                self._put_back({module: {watched}})
                continue
            try:
                await self._manager.take_over(module, body)
            except api_errors.Unreachable:
                raise
            except api_errors.KubernetesError as error:
                title = self._resources.title(module, watched)
                self._tell(events.Warned(f"module {module}: {title} cannot be taken over: {error}"))
            else:
                title = self._resources.title(module, watched)
                self._tell(events.Noted(f"{title} is the module's now, as its release has it", module))
        return resources.difference(taken)

    def _is_at_work(self, live: manifests.Object) -> bool:
        """Say whether the release that an object says it is of may be about to have it."""
        name, namespace = keeping.owner(live)
        key = self._manager.places.key(places.ReleaseLocation(str(namespace), str(name)))
        module = names.ModuleName(key)
        return self._absences.is_at_work(module) and not self._manager.is_going(module)

    async def _judged(
        self,
        module: names.ModuleName,
        followed: _Followed,
        watched: watched_resources.Watched,
        expected: manifests.Object,
        live: manifests.Object,
        differences: list[field_drift.Difference],
        deployed: release_types.Deployed,
        around: not_ours.Surroundings,
    ) -> list[field_drift.Difference]:
        """Put the differences back if that is wanted; return those that are left and count."""
        is_corrected = self._may_correct(module, followed, watched, differences)
        try:
            if is_corrected:
                applied = None
                if deployed.is_server_side:
                    applied = self._owned(module, corrections.kept_to(expected, live, differences, around))
                others = await asyncio.to_thread(others_fields.beside, expected, live, with_applied=False)
                correction = live_contents.Correction(watched, live, differences, others)
                after = await self._contents.put_back(correction, applied)
            else:
                operations = corrections.json_patch(live, differences)
                after = await self._contents.patch(watched, operations, dry_run=True)
        except api_errors.Unreachable:
            raise
        except api_errors.KubernetesError as error:
            self._note_refused(module, followed, watched, differences, error, is_corrected=is_corrected)
            return differences
        still = await asyncio.to_thread(_still, expected, after, around)
        kept = [each for each in differences if each.path not in still]
        self._note_not_kept(module, followed, watched, [each for each in differences if each.path in still])
        if is_corrected and kept:
            self._corrected[watched].made(self._clock.monotonic())
            self._tell(events.ResourcesCorrected(module, (self._resources.title(module, watched),)))
        return [] if is_corrected else kept

    def _note_refused(
        self,
        module: names.ModuleName,
        followed: _Followed,
        watched: watched_resources.Watched,
        differences: list[field_drift.Difference],
        error: api_errors.KubernetesError,
        *,
        is_corrected: bool,
    ) -> None:
        """Look once more at what may have changed meanwhile; tell once what cannot be corrected."""
        refused = followed.refused
        before = refused.get(watched)
        if before is None or before.differences != differences:
            before = refused[watched] = _Refused(differences)
            if isinstance(error, api_errors.Invalid):
                self._put_back({module: {watched}})
                return
        if is_corrected and not before.is_told:
            before.is_told = True
            self._tell(events.Warned(f"module {module}: {watched} cannot be corrected: {error}"))

    def _owned(self, module: names.ModuleName, body: manifests.Object) -> manifests.Object:
        place = self._manager.places.of(module)
        return manifests.owned(body, place.name, place.namespace)

    def _note_not_kept(
        self,
        module: names.ModuleName,
        followed: _Followed,
        watched: watched_resources.Watched,
        differences: Sequence[field_drift.Difference],
    ) -> None:
        """Tell once what the API server does not keep as the chart has it."""
        followed.not_kept.update((watched, each.path) for each in differences)
        title = self._resources.title(module, watched)
        for is_left_out, what in (
            (True, "leaves {} out, as it knows no such field, or an admission webhook removes it"),
            (False, "or an admission webhook changes {} at each write"),
        ):
            found = [each.pointer for each in differences if (each.live is None) is is_left_out]
            if found:
                said = what.format(", ".join(found[:3]))
                text = f"{title}: the API server {said}; that does not count as drift"
                self._tell(events.Noted(text, module))

    def _may_correct(
        self,
        module: names.ModuleName,
        followed: _Followed,
        watched: watched_resources.Watched,
        differences: Sequence[field_drift.Difference],
    ) -> bool:
        is_mode = self._config_of(module).mode is drift_config.DriftMode.CORRECT
        if not (is_mode or followed.is_corrected):
            return False
        if (opens := self._opening(module)) is not None:
            followed.pending.add(watched)
            self._look_in(module, opens - self._clock.time())
            return False
        if not (wait := self._corrected[watched].wait(self._clock.monotonic())):
            return True
        followed.pending.add(watched)
        self._look_in(module, wait)
        if watched not in self._given_up:
            self._given_up.add(watched)
            manager = next((each.manager for each in differences if each.manager), "")
            self._tell(events.CorrectionsGivenUp(module, self._resources.title(module, watched), manager))
        return False

    def _show(self, module: names.ModuleName, followed: _Followed) -> None:
        if self._modules.get(module) is not followed:
            return
        reason = drift_report.CHANGED
        if any(len(self._resources.modules_of(watched)) > 1 for watched in followed.found):
            reason = drift_report.SHARED
        if not self._given_up.isdisjoint(followed.found):
            reason = drift_report.GIVEN_UP
        report = drift_report.report(self._titled(module, followed.found), reason)
        if report != followed.told:
            followed.told = report
            self._tell(events.DriftChanged(module, report))

    def _titled(self, module: names.ModuleName, found: content_differences.Found) -> drift_report.Found:
        return {self._resources.title(module, watched): differences for watched, differences in found.items()}

    def _join(self, module: names.ModuleName) -> None:
        """Look at all of a module soon, together with others that come now: after a start, these are many."""
        now = self._clock.monotonic()
        if not self._new:
            self._new_since = now
        self._new.add(module)
        self._new_due = min(now + JOINS, self._new_since + MOST_JOINS)
        self._wake.set()

    def _look_in(self, module: names.ModuleName, seconds: float) -> None:
        due = self._clock.monotonic() + max(0.0, seconds)
        self._due[module] = min(due, self._due.get(module, due))
        self._wake.set()


def _still(
    expected: manifests.Object, live: manifests.Object, around: not_ours.Surroundings
) -> set[field_drift.Path]:
    """Return where an object is otherwise than its chart says, whoever wrote that, and not as it is to be."""
    found = field_drift.differences(expected, live, whoever=True)
    still = [each for each in found if corrections.kept_value(expected, each, around) != each.live]
    return {each.path for each in (*still, *others_fields.beside(expected, live))}
