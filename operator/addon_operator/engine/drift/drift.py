"""Drift: a resource of a release that disappears is restored from the record of the release.

The resources of all releases are followed by their metadata, with one watch for each kind, which all modules
share. A deletion does not count when the module's own hook asked for it, and while Helm works on the release.
What cannot be restored makes a run of its module.
Sources: "Release auto-healing" of the addon-operator documentation, whose event is called
``DetectAbsentHelmResources``.
"""

import asyncio
import collections
import contextlib
from collections.abc import AsyncIterator, Iterable, Iterator, Sequence
from typing import Final

from addon_operator.aio import waiting
from addon_operator.engine import events, intents
from addon_operator.engine.drift import drift_backoff, restoring, watched_resources
from addon_operator.kernel import clock as clocks
from addon_operator.kernel import errors, names
from addon_operator.kube.objects import own_deletions

ACTIVATION: Final = "DetectAbsentHelmResources"
SETTLE: Final = 0.1
"""Seconds in which further deletions join the first."""
RECHECK: Final = 15.0
"""Seconds after which a resource that is still absent is looked at again."""
LAG: Final = 1.0
"""Seconds that a watch may be behind what Helm did."""
_TRIES: Final = 3
"""So often in a row what may pass is waited for, before the module is run."""
_BLOCKED_TRIES: Final = 60
"""The same while a definition is on its way out: the API server removes all objects of it first."""
PATIENCE: Final = 60.0
"""Seconds that Helm has to make an object that it has to make anew; after that it comes back as it was."""
_UNCHANGEABLE: Final = "the last upgrade failed because it is immutable; Helm creates it again"
_CONFIRMED: Final = 5
"""So many absent resources are asked for one by one; if these are absent, the others are believed to be."""


class Drift(watched_resources.ResourceListener):
    """Finds out what has to be restored, and when."""

    def __init__(
        self,
        resources: watched_resources.WatchedResources,
        restorer: restoring.Restorer,
        deletions: own_deletions.OwnDeletions,
        tell: events.Listener,
        inbox: intents.Inbox,
        clock: clocks.Clock,
    ) -> None:
        self._resources = resources
        self._probe = resources.probe
        self._restorer = restorer
        self._deletions = deletions
        self._tell = tell
        self._inbox = inbox
        self._clock = clock
        self._at_work: collections.Counter[names.ModuleName] = collections.Counter()
        self._alone: dict[names.ModuleName, asyncio.Lock] = collections.defaultdict(asyncio.Lock)
        self._on_purpose: set[tuple[names.ModuleName, watched_resources.Watched]] = set()
        self._backoffs: dict[names.ModuleName, drift_backoff.DriftBackoffs] = {}
        self._due: dict[names.ModuleName, float] = {}
        self._tries: collections.Counter[names.ModuleName] = collections.Counter()
        self._blocked: collections.Counter[names.ModuleName] = collections.Counter()
        self._known_postponed: set[names.ModuleName] = set()
        self._for_helm: dict[names.ModuleName, dict[watched_resources.Watched, float]] = {}
        self._unreported: dict[watched_resources.Watched, float] = {}
        """What was restored and no watch has reported yet, and until when one has time to."""
        self._wake = asyncio.Event()
        resources.subscribe(self)

    def followed(self, module: names.ModuleName) -> None:
        """Look for what is absent already of resources that are followed from now on."""
        if any(self._resources.missing_of(module)):
            self.missing((module,))

    def missing(self, modules: Iterable[names.ModuleName]) -> None:
        """Take note that resources of these modules are not there."""
        for module in modules:
            self._look_in(module, SETTLE)

    def touched(self, resource: watched_resources.Watched) -> None:
        """Take note that a resource is there: its next end is another matter."""
        if self._on_purpose:
            self._on_purpose = {pair for pair in self._on_purpose if pair[1] != resource}
        self._unreported.pop(resource, None)
        for until in self._for_helm.values():
            until.pop(resource, None)

    def forget(self, module: names.ModuleName) -> None:
        """Forget a module that is gone: nothing of it is absent any more."""
        self._due.pop(module, None)
        self._backoffs.pop(module, None)
        self._for_helm.pop(module, None)
        self._stop_counting(module)
        self._known_postponed.discard(module)
        self._on_purpose = {pair for pair in self._on_purpose if pair[0] != module}

    @contextlib.asynccontextmanager
    async def helm_at_work(self, module: names.ModuleName) -> AsyncIterator[None]:
        """Let Helm delete while the context lasts; afterwards look at what is absent then."""
        self._at_work[module] += 1
        try:
            async with self._alone[module]:
                yield
        finally:
            self._at_work[module] -= 1
            # After Helm's turn: what it did not make comes back as it was.
            for each in (waiting := self._for_helm.get(module, {})):
                waiting[each] = self._clock.monotonic()
            if any(self._candidates(module)):
                self._look_in(module, LAG)

    def is_at_work(self, module: names.ModuleName) -> bool:
        """Say whether Helm is at work on the module's release."""
        return self._at_work[module] > 0

    async def restore(
        self, module: names.ModuleName, unknown: Sequence[watched_resources.Watched] = ()
    ) -> tuple[str, ...]:
        """Restore what is absent before Helm begins; what stays absent, as a person calls it.

        No watch has reported ``unknown`` resources yet: the API server is asked for each of them.
        Raises what the client raises when there is no answer.
        """
        absent = await self._absent(module) + await self._absent_of(unknown)
        if not absent:
            return ()
        outcome = await self._restorer.restore(module, absent)
        self._note_restored(module, outcome.done)
        self._leave_to_helm(module, outcome.for_helm)
        return tuple(map(str, outcome.left + outcome.for_helm))

    def restored_by_helm(self, module: names.ModuleName, resources: Sequence[str]) -> None:
        """Note that a run brought back these resources."""
        self._note_back(module, resources, by_helm=True)

    def recent(self, module: names.ModuleName) -> dict[str, int]:
        """Return the module's resources that were brought back lately, and how often in a row."""
        backoffs = self._backoffs.get(module)
        return {} if backoffs is None else backoffs.recent(self._clock.monotonic())

    async def work(self) -> None:
        """Bring back what is absent, until cancelled."""
        while True:
            self._wake.clear()
            await self.look()
            await self._sleep()

    async def look(self) -> None:
        """Look at every module for which it is time."""
        now = self._clock.monotonic()
        due = [module for module, due in self._due.items() if due <= now]
        for module in due:
            self._due.pop(module, None)
        await asyncio.gather(*(self._try_at(module) for module in due if not self._at_work[module]))

    async def _sleep(self) -> None:
        soonest = min(self._due.values(), default=None)
        await waiting.wait_until(self._wake, soonest, self._clock)

    async def _try_at(self, module: names.ModuleName) -> None:
        try:
            await self._look_at(module)
        except Exception as error:  # noqa: BLE001 - a defect at one must not hold up others
            self._tell(events.PartFailed("drift", error, RECHECK))
            self._look_in(module, RECHECK)

    async def _look_at(self, module: names.ModuleName) -> None:
        async with self._alone[module]:
            absent = await self._absent(module)
            ready = self._ready(module, absent)
            if ready:
                await self._restore(module, ready)

    def _ready(
        self, module: names.ModuleName, absent: Sequence[watched_resources.Watched]
    ) -> list[watched_resources.Watched]:
        """Return those that may be brought back at once; the others are looked at again."""
        now, backoffs = self._clock.monotonic(), self._backoffs_of(module)
        waits = {watched: backoffs.wait(str(watched), now) for watched in absent}
        late = [watched for watched, seconds in waits.items() if seconds > 0]
        if late:
            self._postpone(module, tuple(map(str, late)), min(waits[watched] for watched in late))
        return [watched for watched, seconds in waits.items() if seconds <= 0]

    async def _restore(self, module: names.ModuleName, absent: Sequence[watched_resources.Watched]) -> None:
        waiting, now = self._for_helm.get(module, {}), self._clock.monotonic()
        tried = [each for each in absent if waiting.get(each, now) <= now]
        if len(tried) < len(absent):
            self._look_in(module, min(until for until in waiting.values() if until > now) - now)
        if not tried:
            return
        outcome = await self._restorer.restore(module, tried, insist_on=waiting)
        self._note_restored(module, outcome.done)
        if outcome.for_helm:
            self._leave_to_helm(module, outcome.for_helm)
            for_helm = tuple(map(str, outcome.for_helm))
            self._tell(events.AbsentFound(module, for_helm, _UNCHANGEABLE))
            self._inbox.put_nowait(intents.RunWanted(module, ACTIVATION, at_once=True))
            self._look_in(module, PATIENCE)
        if outcome.left:
            self._wait_or_run(module, outcome)
        else:
            self._stop_counting(module)

    def _leave_to_helm(
        self, module: names.ModuleName, resources: Sequence[watched_resources.Watched]
    ) -> None:
        waiting = self._for_helm.setdefault(module, {})
        for each in resources:
            waiting.setdefault(each, self._clock.monotonic() + PATIENCE)

    def _wait_or_run(self, module: names.ModuleName, outcome: restoring.Restored) -> None:
        # Once its definition was on its way out, it is so until the objects are back.
        is_blocked = outcome.is_blocked or (outcome.is_passing and self._blocked[module] > 0)
        tries, most = (self._blocked, _BLOCKED_TRIES) if is_blocked else (self._tries, _TRIES)
        tries[module] += 1
        if outcome.is_passing and tries[module] < most:
            self._look_in(module, LAG)
            return
        self._stop_counting(module)
        self._tell(events.AbsentFound(module, tuple(map(str, outcome.left)), outcome.reason))
        self._inbox.put_nowait(intents.RunWanted(module, ACTIVATION))
        # The run may be dropped for a newer intent, or end before it came to Helm.
        self._look_in(module, RECHECK)

    def _stop_counting(self, module: names.ModuleName) -> None:
        self._tries.pop(module, None)
        self._blocked.pop(module, None)

    def _note_restored(
        self, module: names.ModuleName, resources: Sequence[watched_resources.Watched]
    ) -> None:
        self._note_back(module, tuple(map(str, resources)), by_helm=False)
        if unreported := set(resources).intersection(self._resources.missing_of(module)):
            self._unreported.update(dict.fromkeys(unreported, self._clock.monotonic() + LAG))
            self._look_in(module, LAG)

    def _note_back(self, module: names.ModuleName, resources: Sequence[str], *, by_helm: bool) -> None:
        if resources:
            self._tell(events.ResourcesHealed(module, resources, by_helm))
            self._backoffs_of(module).restored(resources, self._clock.monotonic())
            self._known_postponed.discard(module)

    def _backoffs_of(self, module: names.ModuleName) -> drift_backoff.DriftBackoffs:
        return self._backoffs.setdefault(module, drift_backoff.DriftBackoffs())

    def _postpone(self, module: names.ModuleName, absent: Sequence[str], wait: float) -> None:
        if module not in self._known_postponed:
            self._known_postponed.add(module)
            self._tell(events.HealPostponed(module, absent, wait))
        self._look_in(module, wait)

    def _look_in(self, module: names.ModuleName, seconds: float) -> None:
        """Look at the module so many seconds from now, or earlier if that is planned already."""
        due = self._clock.monotonic() + seconds
        self._due[module] = min(due, self._due.get(module, due))
        self._wake.set()

    async def _absent(self, module: names.ModuleName) -> list[watched_resources.Watched]:
        """Return the resources of the module that are absent now and should not be.

        The API server itself is asked for the first ones, since a watch may be behind.
        """
        candidates = list(self._candidates(module))
        asked = candidates[:_CONFIRMED]
        answers = await asyncio.gather(*(self._is_confirmed(module, each) for each in asked))
        confirmed = [each for each, is_absent in zip(asked, answers, strict=True) if is_absent]
        return confirmed + candidates[_CONFIRMED:] if len(confirmed) == _CONFIRMED else confirmed

    async def _absent_of(
        self, unknown: Sequence[watched_resources.Watched]
    ) -> list[watched_resources.Watched]:
        turns = asyncio.Semaphore(restoring.AT_ONCE)

        async def is_absent(each: watched_resources.Watched) -> bool:
            if self._resources.scope_of(each).is_work:
                return False
            async with turns:
                return await self._probe.exists(each.resource, *each.key) is False

        answers = await asyncio.gather(*map(is_absent, unknown))
        return [each for each, absent in zip(unknown, answers, strict=True) if absent]

    def _candidates(self, module: names.ModuleName) -> Iterator[watched_resources.Watched]:
        # What was just restored is not asked for: it would stand for others that are absent.
        now = self._clock.monotonic()
        self._unreported = {resource: until for resource, until in self._unreported.items() if until > now}
        for resource in self._resources.missing_of(module):
            if resource not in self._unreported and not self._note_purpose(module, resource):
                yield resource

    def _note_purpose(self, module: names.ModuleName, resource: watched_resources.Watched) -> bool:
        """Return whether the module's own hook deleted it, and use up what says so: it counts once."""
        key = resource.deletion_key
        if self._deletions.deleted_by(key) == own_deletions.Owner(module):
            self._deletions.forget(key)
            self._on_purpose.add((module, resource))
        return (module, resource) in self._on_purpose

    async def _is_confirmed(self, module: names.ModuleName, resource: watched_resources.Watched) -> bool:
        try:
            exists = await self._probe.exists(resource.resource, resource.key.namespace, resource.key.name)
        except errors.AddonOperatorError:
            # No answer came: neither way is it certain.
            self._look_in(module, RECHECK)
            return False
        if exists:
            self._look_in(module, LAG)
        return not exists
