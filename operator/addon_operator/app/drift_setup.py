"""The objects that watch the resources of releases and bring them back."""

import asyncio
import dataclasses
from collections.abc import Callable, Mapping, Sequence

from addon_operator.engine import events, intents
from addon_operator.engine.drift import (
    crd_guard,
    drift,
    restoring,
    watched_releases,
    watched_resources,
)
from addon_operator.engine.modules import module_crds, module_releases
from addon_operator.kernel import clock as clocks
from addon_operator.kernel import json_types, names
from addon_operator.kube.client import client
from addon_operator.kube.discovery import discovery, presence
from addon_operator.kube.informers import informers, object_changes, object_selections, projections
from addon_operator.kube.objects import own_deletions
from addon_operator.values import store


@dataclasses.dataclass(frozen=True, slots=True)
class Cluster:
    """What is needed of the cluster."""

    kube: client.KubeClient
    kinds: discovery.Catalog
    informers: informers.Informers
    deletions: own_deletions.OwnDeletions
    namespace: str
    """That of the releases."""


@dataclasses.dataclass(frozen=True, slots=True)
class HealingParts:
    """What the rest of the operator sees of healing."""

    releases: watched_releases.WatchedReleases
    resources: watched_resources.WatchedResources
    """For ``module resource-monitor``."""
    heal: drift.Healing
    definitions: crd_guard.CrdGuard

    def resources_of(self, module: names.ModuleName) -> list[dict[str, json_types.JsonValue]] | None:
        """The resources of a module's release and their state, as ``module resource-monitor`` shows them.

        ``None`` if they are not watched: the module is in maintenance, or its release is not there yet.
        """
        rows = self.resources.view(module)
        return None if rows is None else [_shown(row) for row in rows]

    def shared_of(self, module: names.ModuleName) -> Mapping[str, Sequence[names.ModuleName]]:
        """The module's resources that other modules have, too, with these modules."""
        return self.resources.shared_of(module)

    def healed_of(self, module: names.ModuleName) -> Mapping[str, int]:
        """The module's resources that were brought back lately, and how often in a row."""
        return self.heal.recent(module)

    def revision(self, module: names.ModuleName) -> int | None:
        """Number of the last revision of the module's release; ``None`` without one."""
        return self.releases.revision(module)

    async def work(self) -> None:
        """Follow and heal, until cancelled."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self.releases.work(), name="follow resources")
            group.create_task(self.heal.work(), name="heal")
            group.create_task(self.definitions.work(), name="definitions")


def _shown(row: watched_resources.ResourceView) -> dict[str, json_types.JsonValue]:
    shown: dict[str, json_types.JsonValue] = {
        "resource": str(row),
        "apiVersion": row.api_version,
        "kind": row.kind,
        "namespace": row.namespace,
        "name": row.name,
        "state": row.state.value,
    }
    return shown | ({"reason": row.reason} if row.reason else {})


class _Watches:
    """Implements :class:`.Watches`."""

    def __init__(self, watches: informers.Informers) -> None:
        self._watches = watches

    def subscribe(
        self, selection: object_selections.ObjectSelection, listener: object_changes.Listener
    ) -> informers.Subscription:
        return self._watches.subscribe(selection, projections.Presence(), listener)


def heal(
    cluster: Cluster,
    releases: module_releases.ModuleReleases,
    definitions: module_crds.ModuleCrds,
    values: store.ValuesStore,
    tell: events.Listener,
    inbox: intents.Inbox,
    warn: Callable[[str], None],
    clock: clocks.Clock,
) -> HealingParts:
    """Make them."""
    probe = presence.ObjectProbe(cluster.kube)
    resources = watched_resources.WatchedResources(
        _Watches(cluster.informers), cluster.kinds, probe, tell, namespace=cluster.namespace
    )
    restorer = restoring.Restorer(
        releases,
        cluster.kube,
        namespace=cluster.namespace,
        is_brought=lambda crd: bool(definitions.owners(crd)) or resources.has_definition(crd),
    )
    healer = drift.Healing(resources, probe, restorer, cluster.deletions, tell, inbox, clock)
    watched = watched_releases.WatchedReleases(
        releases,
        resources,
        healer,
        tell,
        maintenance=values.maintenance,
        warn=warn,
        clock=clock,
    )
    guard = crd_guard.CrdGuard(
        definitions,
        _Watches(cluster.informers),
        maintenance=values.maintenance,
        warn=warn,
        clock=clock,
    )
    return HealingParts(watched, resources, healer, guard)
