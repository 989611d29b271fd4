"""Healing: a resource of a release that disappears makes a run of its module.

The resources of all releases are followed by their metadata, with one watch for each kind, which all modules
share. A deletion is no reason when the module's own hook asked for it, and while Helm works on the release.
Sources: "Release auto-healing" of the addon-operator documentation, whose event is called
``DetectAbsentHelmResources``.
"""

import asyncio
import collections
import contextlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final, Protocol

from addon_operator.engine import heal_backoff, watched_resources
from addon_operator.kernel import clock as clocks
from addon_operator.kernel import errors, names
from addon_operator.kube import api_resources, own_deletions

ACTIVATION: Final = "DetectAbsentHelmResources"
SETTLE: Final = 0.3
"""Seconds in which further deletions join the first: a burst makes one run."""
RECHECK: Final = 15.0
"""Seconds after which a resource that is still absent is looked at again."""
LAG: Final = 1.0
"""Seconds that a watch may be behind what Helm did."""
_CONFIRMED: Final = 5
"""So many absent resources are asked for one by one; if these are absent, the others are believed to be."""


class Probe(Protocol):
    """Asks for single objects; see :mod:`addon_operator.kube.presence`."""

    async def exists(self, resource: api_resources.Resource, namespace: str, name: str) -> bool | None:
        """Whether the object is there; ``None`` without the right to ask."""
        ...


class HealObserver(Protocol):
    """Who is told of healing: the log and metrics."""

    def absent_found(self, module: names.ModuleName, resources: Sequence[str]) -> None:
        """Resources of the module are absent; a run is on its way."""
        ...

    def healed(self, module: names.ModuleName, resources: Sequence[str]) -> None:
        """Helm was made to bring back these resources."""
        ...

    def heal_postponed(self, module: names.ModuleName, resources: Sequence[str], seconds: float) -> None:
        """Somebody removes resources of the module again and again; the next healing is so far away."""
        ...


class Healing:
    """Finds out which modules have to be healed, and when."""

    def __init__(
        self,
        resources: watched_resources.WatchedResources,
        probe: Probe,
        deletions: own_deletions.OwnDeletions,
        observer: HealObserver,
        request_run: Callable[[names.ModuleName, str], None],
        clock: clocks.Clock,
    ) -> None:
        self._resources = resources
        self._probe = probe
        self._deletions = deletions
        self._observer = observer
        self._request_run = request_run
        self._clock = clock
        self._at_work: collections.Counter[names.ModuleName] = collections.Counter()
        self._on_purpose: set[tuple[names.ModuleName, watched_resources.Watched]] = set()
        self._backoffs: dict[names.ModuleName, heal_backoff.HealBackoff] = {}
        self._due: dict[names.ModuleName, float] = {}
        self._told_postponed: set[names.ModuleName] = set()
        self._wake = asyncio.Event()
        resources.listen(self)

    def missing(self, modules: Iterable[names.ModuleName]) -> None:
        """A watch tells that resources of these modules are not there."""
        for module in modules:
            self._look_in(module, SETTLE)

    def returned(self, resource: watched_resources.Watched) -> None:
        """A watch tells that a resource is there (again): its next end is another matter."""
        self._on_purpose = {pair for pair in self._on_purpose if pair[1] != resource}

    def forget(self, module: names.ModuleName) -> None:
        """The module is gone: nothing of it is absent any more."""
        self._due.pop(module, None)
        self._backoffs.pop(module, None)
        self._told_postponed.discard(module)
        self._on_purpose = {pair for pair in self._on_purpose if pair[0] != module}

    @contextlib.contextmanager
    def helm_at_work(self, module: names.ModuleName) -> Iterator[None]:
        """While the context lasts, deletions are Helm's; afterwards it is looked what is absent then."""
        self._at_work[module] += 1
        try:
            yield
        finally:
            self._at_work[module] -= 1
            if any(self._candidates(module)):
                self._look_in(module, LAG)

    async def absent(self, module: names.ModuleName) -> tuple[str, ...]:
        """The resources of the module that are absent now and should not be, as a person calls them.

        The API server itself is asked for the first ones, since a watch may be behind.
        """
        found: list[watched_resources.Watched] = []
        for number, resource in enumerate(self._candidates(module)):
            if number >= _CONFIRMED and len(found) < _CONFIRMED:
                break
            if number >= _CONFIRMED or await self._is_confirmed(module, resource):
                found.append(resource)
        return tuple(map(str, found))

    def healed(self, module: names.ModuleName, resources: Sequence[str]) -> None:
        """A run brought back these resources."""
        self._backoffs.setdefault(module, heal_backoff.HealBackoff()).healed(self._clock.monotonic())
        self._told_postponed.discard(module)
        self._observer.healed(module, resources)

    async def work(self) -> None:
        """Ask for runs of modules whose resources are absent, until cancelled."""
        while True:
            self._wake.clear()
            await self.look()
            await self._sleep()

    async def look(self) -> None:
        """Look at every module for which it is time."""
        now = self._clock.monotonic()
        for module in [module for module, due in self._due.items() if due <= now]:
            self._due.pop(module, None)
            if not self._at_work[module]:
                await self._look_at(module)

    async def _sleep(self) -> None:
        soonest = min(self._due.values(), default=None)
        timeout = None if soonest is None else max(0.0, soonest - self._clock.monotonic())
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(timeout):
                await self._wake.wait()

    async def _look_at(self, module: names.ModuleName) -> None:
        absent = await self.absent(module)
        if not absent:
            return
        wait = self._backoffs.setdefault(module, heal_backoff.HealBackoff()).wait(self._clock.monotonic())
        if wait > 0:
            self._postpone(module, absent, wait)
            return
        self._observer.absent_found(module, absent)
        self._request_run(module, ACTIVATION)
        # The run may be dropped for a newer intent, or end before it came to Helm.
        self._look_in(module, RECHECK)

    def _postpone(self, module: names.ModuleName, absent: Sequence[str], wait: float) -> None:
        if module not in self._told_postponed:
            self._told_postponed.add(module)
            self._observer.heal_postponed(module, absent, wait)
        self._look_in(module, wait)

    def _look_in(self, module: names.ModuleName, seconds: float) -> None:
        """Look at the module so many seconds from now, or earlier if that is planned already."""
        due = self._clock.monotonic() + seconds
        self._due[module] = min(due, self._due.get(module, due))
        self._wake.set()

    def _candidates(self, module: names.ModuleName) -> Iterator[watched_resources.Watched]:
        for resource in self._resources.missing_of(module):
            if not self._is_on_purpose(module, resource):
                yield resource

    def _is_on_purpose(self, module: names.ModuleName, resource: watched_resources.Watched) -> bool:
        """Whether the module's own hook deleted it. A note of that counts for one deletion."""
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
