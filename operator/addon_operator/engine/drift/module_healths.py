"""How modules are, at any moment: the health of the resources of their releases, summed up.

The rules are pure (:mod:`.resource_health`, :mod:`.module_health`). Here is what is followed for them, and
when a module is looked at again. Why something is not healthy is read from the cluster only while it is so.
"""

import asyncio
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final

import msgspec

from addon_operator.aio import waiting
from addon_operator.engine import events, intents
from addon_operator.engine.drift import health_causes, health_watch, kind_watch, watched_resources
from addon_operator.kernel import clock as clocks
from addon_operator.kernel import names
from addon_operator.kube.informers import informers
from addon_operator.modules.health import (
    health_config,
    health_rules,
    module_health,
    pod_causes,
    resource_health,
)

GATHER: Final = 0.1
"""Seconds in which further changes of a module join the first."""
LAG: Final = 0.5
"""Seconds that a watch may be behind what Helm did."""
STANDS: Final = 60.0
"""Seconds after which a change is worth an Event."""
CAUSES: Final = waiting.Backoff(1.0, 30.0)
"""Seconds between two looks at why something is not healthy."""
_EVEN: Final = 0.5
_RETRY: Final = 10.0
_HEALTHY: Final = resource_health.HealthState.HEALTHY
READINESS: Final = "Readiness"
"""Stands in the place of a kind for what a program says of its module."""
_UNASKED: Final = resource_health.ResourceHealth(
    resource_health.HealthState.PROGRESSING, "has not been asked yet since the last change"
)
_ABSENT: Final = resource_health.ResourceHealth(resource_health.HealthState.PROGRESSING, "does not exist")


class _Cause(msgspec.Struct):
    """Why a resource is not healthy."""

    due: float
    found: pod_causes.Cause = pod_causes.UNKNOWN
    reads: int = 0


class _Readiness(msgspec.Struct):
    """What a program says of its module; times are seconds since the epoch."""

    name: str
    """As people call the program."""
    health: resource_health.ResourceHealth = _UNASKED
    asked_at: float = 0.0
    since: float | None = None
    """When it ceased to be healthy."""

    def observed(self, revised_at: float, now: float) -> module_health.ObservedHealth:
        """Return what counts: no answer to a question from before the last revision."""
        health = self.health if self.asked_at >= revised_at else _UNASKED
        if health.state is _HEALTHY:
            self.since = None
        elif self.since is None:
            self.since = now
        return module_health.ObservedHealth(f"{READINESS} {self.name}", health, self.since or now)


class _Observed(msgspec.Struct):
    """One module; times are seconds since the epoch."""

    counts_from: float
    """From then on it may count as healthy since its last revision."""
    shown: module_health.ModuleHealth | None = None
    reached: bool = False
    """Whether it was healthy once since its last revision."""
    changed_at: float = 0.0
    """When it got into the state that is shown."""
    told: resource_health.HealthState | None = None
    """The last state that stood for a while."""
    since: dict[watched_resources.Watched, float] = msgspec.field(default_factory=dict)
    """When resources ceased to be healthy."""
    causes: dict[watched_resources.Watched, _Cause] = msgspec.field(default_factory=dict)
    revised_at: float = 0.0
    """When its resources became those that are followed."""


_Key = tuple[kind_watch.KindScope, health_config.HealthRule | None]
"""Of a watch: modules may have rules of their own for a kind."""


class ModuleHealths(watched_resources.ResourceListener, health_watch.HealthListener):
    """Follows what the health of modules depends on, and tells when it changes."""

    def __init__(
        self,
        watches: informers.Informers,
        resources: watched_resources.WatchedResources,
        causes: health_causes.HealthCauses,
        judge: health_watch.Judge,
        config_of: Callable[[names.ModuleName], health_config.HealthConfig],
        tell: events.Listener,
        inbox: intents.Inbox,
        clock: clocks.Clock,
    ) -> None:
        """``judge`` evaluates rules, and ``config_of`` gives what a module says of its health."""
        self._watches = watches
        self._resources = resources
        self._causes = causes
        self._judge = judge
        self._config_of = config_of
        self._tell = tell
        self.inbox = inbox
        """Where it is told that somebody has news."""
        self._clock = clock
        self._observed: dict[names.ModuleName, _Observed] = {}
        self._readiness: dict[names.ModuleName, _Readiness] = {}
        self._expected: set[names.ModuleName] = set()
        self._open: dict[_Key, health_watch.HealthWatch] = {}
        self._due: dict[names.ModuleName, float] = {}
        self._reading: set[asyncio.Task[None]] = set()
        self._wake = asyncio.Event()
        resources.subscribe(self)

    def expect(self, module: names.ModuleName) -> None:
        """Note a new revision of the module: what was healthy before it does not count any more."""
        self._expected.add(module)

    def has_been_healthy(self, module: names.ModuleName) -> bool:
        """Say whether the module was healthy once since its last revision; so is one without resources."""
        if module in self._expected:
            return False
        observed = self._observed.get(module)
        return observed is None or observed.reached

    def is_fresh(self, module: names.ModuleName) -> bool:
        """Say whether what is known of the module is about its last revision."""
        observed = self._observed.get(module)
        return module not in self._expected and (
            observed is None or (observed.shown is not None and self._clock.time() >= observed.counts_from)
        )

    def health_of(self, module: names.ModuleName) -> module_health.ModuleHealth | None:
        """Return how the module is; ``None`` if that is not known."""
        observed = self._observed.get(module)
        return None if observed is None else observed.shown

    def followed(self, module: names.ModuleName) -> None:
        """See :class:`.ResourceListener`: begin anew with the resources that are followed now."""
        resources = self._resources.watched_of(module)
        now, before = self._clock.time(), self._observed.get(module)
        self._expected.discard(module)
        self._want(module, resources or ())
        if resources is None and module not in self._readiness:
            self._leave(module)
            return
        if before is None:
            self._observed[module] = _Observed(now, revised_at=now)
        else:
            before.counts_from, before.revised_at, before.reached = now + LAG, now, False
            # Each revision has the whole time until the deadline.
            before.since.clear()
            before.causes.clear()
        self._look_in(module, GATHER)

    def configured(self, module: names.ModuleName) -> None:
        """Look anew by what ``module.yaml`` says now, of the resources that are followed already."""
        if module in self._observed:
            self._want(module, self._resources.watched_of(module) or ())
            self._look_in(module, GATHER)

    def ask_readiness(self, module: names.ModuleName, program: str | None) -> None:
        """Note that a program is asked whether the module is ready; ``None``: none is any more."""
        self._readiness.pop(module, None)
        if program is not None:
            self._readiness[module] = _Readiness(program)
            self._observed.setdefault(module, _Observed(self._clock.time()))
        elif self._resources.watched_of(module) is None:
            self._leave(module)
        self.verdicts_changed((module,))

    def note_readiness(
        self, module: names.ModuleName, health: resource_health.ResourceHealth, asked_at: float
    ) -> None:
        """Note what the program says that was asked at this time."""
        if (readiness := self._readiness.get(module)) is not None:
            readiness.health, readiness.asked_at = health, asked_at
            self.verdicts_changed((module,))

    def knows_readiness(self, module: names.ModuleName) -> bool:
        """Say whether the last answer is about the last revision of the module."""
        readiness, observed = self._readiness.get(module), self._observed.get(module)
        return readiness is None or observed is None or readiness.asked_at >= observed.revised_at

    def _leave(self, module: names.ModuleName) -> None:
        before = self._observed.pop(module, None)
        self._due.pop(module, None)
        if before is not None and before.shown is not None:
            self._tell(events.HealthChanged(module, None))

    def missing(self, modules: Iterable[names.ModuleName]) -> None:
        """See :class:`.ResourceListener`."""
        self.verdicts_changed(modules)

    def touched(self, resource: watched_resources.Watched) -> None:
        """See :class:`.ResourceListener`."""
        self.verdicts_changed(self._resources.modules_of(resource))

    def verdicts_changed(self, modules: Iterable[names.ModuleName]) -> None:
        """See :class:`.HealthListener`."""
        for module in modules:
            if module in self._observed:
                self._look_in(module, GATHER)

    async def work(self) -> None:
        """Sum up and tell, until cancelled."""
        try:
            while True:
                self._wake.clear()
                await self.look()
                soonest = min(self._due.values(), default=None)
                await waiting.wait_until(self._wake, soonest, self._clock)
        finally:
            for task in self._reading:
                task.cancel()

    async def look(self) -> None:
        """Look at every module for which it is time; others have their turn meanwhile."""
        now = self._clock.monotonic()
        for module in [module for module, due in self._due.items() if due <= now]:
            self._due.pop(module, None)
            if (observed := self._observed.get(module)) is not None:
                try:
                    self._look_at(module, observed)
                except Exception as error:  # noqa: BLE001 - a defect at one must not hold up others
                    self._tell(events.PartFailed("health", error, _RETRY))
                    self._look_in(module, _RETRY)
            await asyncio.sleep(0)

    def _look_at(self, module: names.ModuleName, observed: _Observed) -> None:
        resources = self._resources.watched_of(module) or ()
        if not all(watch.is_known for watch in self._watches_of(module, resources)):
            return
        now = self._clock.time()
        found = list(self._judged(module, observed, resources, now))
        health = module_health.module_health(found, now, self._config_of(module).deadline)
        self._show(module, observed, health, now)
        self._reach(module, observed, now)
        self._stand(module, observed, now)
        if health.next_deadline is not None:
            self._look_in(module, health.next_deadline - now)
        self._read_causes(module, observed, resources)

    def _judged(
        self,
        module: names.ModuleName,
        observed: _Observed,
        resources: Sequence[watched_resources.Watched],
        now: float,
    ) -> Iterator[module_health.ObservedHealth]:
        config, is_first = self._config_of(module), observed.shown is None
        readiness = self._readiness.get(module)
        if readiness is not None and config.counts(READINESS, readiness.name):
            yield readiness.observed(observed.revised_at, now)
        for watched in resources:
            if not config.counts(watched.resource.kind, watched.key.name):
                continue
            verdict = self._verdict(module, watched)
            if verdict.health.state is _HEALTHY:
                observed.since.pop(watched, None)
                observed.causes.pop(watched, None)
                if verdict.health.message:
                    yield module_health.ObservedHealth(
                        self._resources.title(module, watched), verdict.health, now
                    )
                continue
            # After a start, what is in trouble has been so for as long as its status says.
            began = verdict.moved if is_first and verdict.moved else now
            since = observed.since.setdefault(watched, min(began, now))
            cause = observed.causes.setdefault(watched, _Cause(self._clock.monotonic() + GATHER))
            title = self._resources.title(module, watched)
            is_by_rule = self._key(module, watched)[1] is not None
            yield module_health.ObservedHealth(title, verdict.health, since, cause.found, is_by_rule)

    def _verdict(self, module: names.ModuleName, watched: watched_resources.Watched) -> health_watch.Verdict:
        if self._resources.is_missing(watched):
            return health_watch.Verdict(_ABSENT, 0.0)
        if self._resources.has_ended(watched):
            return health_watch.FINE
        watch = self._open.get(self._key(module, watched))
        if watch is None or watch.reason is not None:
            return health_watch.FINE
        return watch.verdict(watched.key, self._clock.time()) or health_watch.UNSEEN

    def _show(
        self, module: names.ModuleName, observed: _Observed, health: module_health.ModuleHealth, now: float
    ) -> None:
        before, observed.shown = observed.shown, health
        if before is None or before.state is not health.state:
            observed.changed_at = now
        if before is None or (before.state, before.message) != (health.state, health.message):
            self._tell(events.HealthChanged(module, health))
            self.inbox.put_nowait(intents.HealthChanged(module))

    def _reach(self, module: names.ModuleName, observed: _Observed, now: float) -> None:
        if observed.reached or observed.shown is None or observed.shown.holds:
            return
        if now < observed.counts_from:
            self._look_in(module, observed.counts_from - now)
            return
        observed.reached = True
        self.inbox.put_nowait(intents.HealthChanged(module))

    def _stand(self, module: names.ModuleName, observed: _Observed, now: float) -> None:
        health = observed.shown
        if health is None or health.state is observed.told:
            return
        is_new = observed.told is None and health.state is _HEALTHY
        if not is_new and now < observed.changed_at + STANDS:
            self._look_in(module, observed.changed_at + STANDS - now)
            return
        observed.told = health.state
        if not is_new:
            self._tell(events.HealthStands(module, health))

    def _read_causes(
        self,
        module: names.ModuleName,
        observed: _Observed,
        resources: Sequence[watched_resources.Watched],
    ) -> None:
        """Have read what is due of the resources that are named, and look again when the next is."""
        named = () if observed.shown is None else observed.shown.named
        now = self._clock.monotonic()
        for watched in [
            each
            for each in resources
            if each in observed.causes and self._resources.title(module, each) in named
        ]:
            cause = observed.causes[watched]
            if cause.due <= now:
                cause.reads += 1
                cause.due = now + CAUSES.after(cause.reads, _EVEN)
                task = asyncio.create_task(self._read(module, watched, cause), name=f"cause {watched}")
                self._reading.add(task)
                task.add_done_callback(self._reading.discard)
            self._look_in(module, cause.due - now)

    async def _read(
        self, module: names.ModuleName, watched: watched_resources.Watched, cause: _Cause
    ) -> None:
        observed = self._observed.get(module)
        since = 0.0 if observed is None else observed.since.get(watched, 0.0)
        found = await self._causes.cause(watched, since)
        if found != cause.found:
            cause.found = found
            self.verdicts_changed((module,))

    def _want(self, module: names.ModuleName, resources: Iterable[watched_resources.Watched]) -> None:
        wanted: dict[_Key, list[kind_watch.ObjectKey]] = {}
        for watched in resources:
            scope, rule = key = self._key(module, watched)
            if rule is not None or health_watch.is_watched(scope.resource):
                wanted.setdefault(key, []).append(watched.key)
        for key in wanted.keys() - self._open.keys():
            scope, rule = key
            verdicts = health_watch.Verdicts(scope.resource.has_status, rule, self._judge)
            watch = self._open[key] = health_watch.HealthWatch(scope, verdicts, self)
            watch.open(self._watches)
        for key, watch in list(self._open.items()):
            watch.want(module, wanted.get(key, ()))
            if watch.is_idle:
                watch.close()
                del self._open[key]

    def _key(self, module: names.ModuleName, watched: watched_resources.Watched) -> _Key:
        of_kind = (watched.resource.api_version, watched.resource.kind)
        rule = self._config_of(module).rule_of(*of_kind) or health_rules.of_kind(*of_kind)
        return self._resources.scope_of(watched), rule

    def _watches_of(
        self, module: names.ModuleName, resources: Iterable[watched_resources.Watched]
    ) -> Iterator[health_watch.HealthWatch]:
        keys = {self._key(module, each) for each in resources}
        return (self._open[key] for key in keys if key in self._open)

    def _look_in(self, module: names.ModuleName, seconds: float) -> None:
        due = self._clock.monotonic() + max(0.0, seconds)
        self._due[module] = min(due, self._due.get(module, due))
        self._wake.set()
