"""One watch of the health of a kind's objects, shared by all modules whose releases have such objects.

Helm labels all that it makes: the API server selects by that label, and objects of others never come here.
Of each object nothing is kept but the verdict about it.
"""

import abc
import asyncio
import dataclasses
import math
import time
from collections.abc import Callable, Iterable, Sequence
from typing import Final

import msgspec
import orjson

from addon_operator.aio import threads
from addon_operator.documents import json_documents
from addon_operator.engine.drift import kind_watch
from addon_operator.kernel import json_types, names
from addon_operator.kube.discovery import api_resources
from addon_operator.kube.informers import informers, object_changes, object_selections, projections
from addon_operator.modules.health import health_config, resource_health

_INLINE_BYTES: Final = 1 << 15
"""Below this much JSON a thread costs more than it spares the event loop."""
_HEALTHY: Final = projections.Reduced(b"[]", b"")
_SILENT: Final = projections.Reduced(b"[0]", b"0")
"""Of what has had no status for long, and counts as healthy."""


Judge = Callable[
    [health_config.HealthRule, Sequence[json_types.KubernetesObject]], list[resource_health.ResourceHealth]
]
"""Says how objects are by a rule; called in a thread."""


class Verdict(msgspec.Struct, frozen=True):
    """How an object was when it changed last."""

    health: resource_health.ResourceHealth
    moved: float
    """When its status last moved as it says itself, in seconds since the epoch."""


FINE: Final = Verdict(resource_health.HEALTHY, 0.0)
"""Of what is healthy."""
UNSEEN: Final = Verdict(
    resource_health.ResourceHealth(
        resource_health.HealthState.PROGRESSING,
        "has not been reported yet; that needs the label app.kubernetes.io/managed-by: Helm",
    ),
    0.0,
)
"""Of what no watch has reported yet."""


@dataclasses.dataclass(frozen=True, slots=True)
class Verdicts(projections.Projection):
    """Keeps the verdict about each object; a change is another verdict."""

    has_status: bool
    """Whether the kind has a status subresource."""
    rule: health_config.HealthRule | None = None
    """What says how its objects are, instead of the rules for all."""
    judge: Judge | None = dataclasses.field(default=None, compare=False, repr=False)

    async def reduce(self, objects: Sequence[bytes]) -> Sequence[projections.Reduced]:
        """See :class:`.Projection`."""
        if self.rule is None and sum(map(len, objects)) < _INLINE_BYTES:
            return self._all_reduced(objects)
        if self.rule is None:
            return await asyncio.to_thread(self._all_reduced, objects)
        return await threads.run(threads.RULES, self._all_reduced, objects)

    def _all_reduced(self, objects: Sequence[bytes]) -> list[projections.Reduced]:
        resources = [orjson.loads(data) for data in objects]
        healths = self._healths(resources)
        return [self._reduced(*pair) for pair in zip(resources, healths, strict=True)]

    def _healths(
        self, resources: Sequence[json_types.KubernetesObject]
    ) -> list[resource_health.ResourceHealth]:
        if self.rule is None or self.judge is None:
            now = time.time()
            return [resource_health.health_of(each, now, has_status=self.has_status) for each in resources]
        judged = self.judge(self.rule, resources)
        return [
            resource_health.in_passing(each) or health for each, health in zip(resources, judged, strict=True)
        ]

    def _reduced(
        self, resource: json_types.KubernetesObject, health: resource_health.ResourceHealth
    ) -> projections.Reduced:
        if health == resource_health.HEALTHY:
            return _SILENT if health.rule == resource_health.SILENT.rule else _HEALTHY
        entry = written(Verdict(health, resource_health.moved_at(resource)))
        digest = orjson.dumps(_parts(health))
        return projections.Reduced(json_documents.pack(entry), digest)


def written(verdict: Verdict) -> bytes:
    """Return the verdict as it is kept."""
    health = verdict.health
    if health == resource_health.HEALTHY:
        return _HEALTHY.entry
    return orjson.dumps([_parts(health), verdict.moved])


def _parts(health: resource_health.ResourceHealth) -> list[object]:
    return [health.state, health.message, health.fails_at, health.cause, health.heals_at]


def _read(entry: bytes) -> Verdict:
    parts = orjson.loads(entry)
    if len(parts) <= 1:
        return FINE
    (state, *rest), moved = parts
    return Verdict(resource_health.ResourceHealth(resource_health.HealthState(state), *rest), moved)


def is_watched(resource: api_resources.Resource) -> bool:
    """Say whether objects of the kind can be anything but healthy, so that it is worth a watch.

    These are kinds with rules of their own, and kinds with a status or of somebody's own API group.
    """
    group = resource.api_version.rpartition("/")[0]
    if (group, resource.kind) in resource_health.WITH_RULES:
        return (group, resource.kind) not in resource_health.ALWAYS_HEALTHY
    return resource.has_status or ("." in group and not group.endswith(".k8s.io"))


class HealthListener(abc.ABC):
    """Whoever sums up the health of modules."""

    @abc.abstractmethod
    def verdicts_changed(self, modules: Iterable[names.ModuleName]) -> None:
        """Take note of other verdicts about objects of these modules."""


class HealthWatch(object_changes.ObjectListener):
    """The verdicts about the objects of one scope that modules want."""

    def __init__(self, scope: kind_watch.KindScope, verdicts: Verdicts, listener: HealthListener) -> None:
        self.scope = scope
        self._verdicts = verdicts
        self._listener = listener
        self._subscription: informers.Subscription | None = None
        self._wanted: dict[kind_watch.ObjectKey, set[names.ModuleName]] = {}
        self._of_module: dict[names.ModuleName, set[kind_watch.ObjectKey]] = {}
        self.is_known = False
        """Whether all objects are known, or it is known that they cannot be followed."""
        self.reason: str | None = None
        """Why objects cannot be followed just now."""
        self._is_synced = False
        self._silent_from: float | None = None
        """When the kind counts as one without statuses; ``None`` until somebody asks after a change."""

    def open(self, watches: informers.Informers) -> None:
        """Begin to follow the objects."""
        scope = self.scope
        selection = object_selections.ObjectSelection(
            scope.resource.kind,
            scope.resource.api_version,
            label_selector=kind_watch.LABEL,
            namespaces=None if scope.namespace is None else (scope.namespace,),
        )
        self._subscription = watches.subscribe(selection, self._verdicts, self)

    def close(self) -> None:
        """Let go of the objects."""
        if self._subscription is not None:
            self._subscription.close()

    @property
    def is_idle(self) -> bool:
        """Whether no module wants an object any more."""
        return not self._wanted

    def want(self, module: names.ModuleName, keys: Iterable[kind_watch.ObjectKey]) -> None:
        """Follow these objects for the module, and none else."""
        now = set(keys)
        for key in self._of_module.pop(module, set()) - now:
            self._wanted[key].discard(module)
            if not self._wanted[key]:
                del self._wanted[key]
        for key in now:
            self._wanted.setdefault(key, set()).add(module)
        if now:
            self._of_module[module] = now

    def verdict(self, key: kind_watch.ObjectKey, now: float) -> Verdict | None:
        """Return the verdict about an object; ``None`` if none of that name has come."""
        if self._subscription is None or (entry := self._subscription.entry(key)) is None:
            return None
        found = _read(entry)
        if found.health.heals_at is None:
            return found
        if self._silent_from is None:
            self._silent_from = _silent_from(self._subscription.snapshot())
        return FINE if self._silent_from <= now else found

    def synced(self) -> None:
        """Take the first complete list."""
        self._silent_from = None
        self._is_synced = self.is_known = True
        self._listener.verdicts_changed(self._modules())

    def changed(self, changes: Sequence[object_changes.Change]) -> None:
        """Take other verdicts."""
        self._silent_from = None
        concerned = frozenset[names.ModuleName]().union(
            *(self._wanted.get(change.key, frozenset()) for change in changes)
        )
        if concerned:
            self._listener.verdicts_changed(concerned)

    def trouble(self, reason: str | None) -> None:
        """Take note that objects cannot be followed just now, or can be again."""
        self.reason = None if self._is_synced else reason
        self.is_known = self.is_known or reason is not None
        self._listener.verdicts_changed(self._modules())

    def _modules(self) -> frozenset[names.ModuleName]:
        return frozenset(self._of_module)


def _silent_from(entries: Iterable[bytes]) -> float:
    """Return when the first of these objects is a minute old; never, if one of them has a status."""
    first = math.inf
    for entry in entries:
        heals_at = 0.0 if entry == _SILENT.entry else _read(entry).health.heals_at
        if heals_at is None:
            return math.inf
        first = min(first, heals_at)
    return first
