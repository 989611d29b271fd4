"""The objects that watch the resources of releases and bring them back."""

import asyncio
import dataclasses
from collections.abc import Mapping, Sequence

from addon_operator.engine import events, intents
from addon_operator.engine.drift import drift, followed_releases, restoring, watched_resources
from addon_operator.engine.modules import crd_guard, module_crds, module_releases
from addon_operator.helm.releases import releases
from addon_operator.kernel import clock as clocks
from addon_operator.kernel import json_types, names
from addon_operator.kube.client import client
from addon_operator.kube.discovery import discovery, presence
from addon_operator.kube.informers import informers
from addon_operator.kube.objects import own_deletions
from addon_operator.values import store


@dataclasses.dataclass(frozen=True, slots=True)
class ClusterParts:
    """The cluster as drift sees it."""

    kube: client.KubeClient
    kinds: discovery.Catalog
    informers: informers.Informers
    deletions: own_deletions.OwnDeletions
    manager: releases.ReleaseManager
    namespace: str
    """That of the releases."""
    ignored: frozenset[str]
    """Releases that are never removed."""


@dataclasses.dataclass(frozen=True, slots=True)
class DriftParts:
    """What the rest of the operator sees of drift."""

    drift: drift.Drift
    resources: watched_resources.WatchedResources
    followed: followed_releases.FollowedReleases
    releases: module_releases.ModuleReleases
    guard: crd_guard.CrdGuard

    def resources_of(self, module: names.ModuleName) -> list[dict[str, json_types.JsonValue]] | None:
        """The resources of a module's release and their state, as ``module resource-monitor`` shows them.

        ``None`` if they are not watched: the module is in maintenance, or its release is not there yet.
        """
        rows = self.resources.view(module)
        return None if rows is None else [_shown(row) for row in rows]

    def shared_of(self, module: names.ModuleName) -> Mapping[str, Sequence[names.ModuleName]]:
        """The module's resources that other modules have, too, with these modules."""
        return self.resources.shared_of(module)

    def restored_of(self, module: names.ModuleName) -> Mapping[str, int]:
        """The module's resources that were brought back lately, and how often in a row."""
        return self.drift.recent(module)

    def revision(self, module: names.ModuleName) -> int | None:
        """Number of the last revision of the module's release; ``None`` without one."""
        return self.releases.revision(module)

    async def work(self) -> None:
        """Follow and restore, until cancelled."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self.followed.work(), name="follow resources")
            group.create_task(self.drift.work(), name="drift")
            group.create_task(self.guard.work(), name="definitions")


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


def drift_parts(
    cluster: ClusterParts,
    definitions: module_crds.ModuleCrds,
    values: store.ValuesStore,
    tell: events.Listener,
    inbox: intents.Inbox,
    clock: clocks.Clock,
) -> DriftParts:
    """Make them, and the releases that they look after."""
    probe, manager = presence.ObjectProbe(cluster.kube), cluster.manager
    resources = watched_resources.WatchedResources(
        cluster.informers, cluster.kinds, probe, tell, namespace=cluster.namespace
    )
    restorer = restoring.Restorer(
        manager,
        cluster.kube,
        namespace=cluster.namespace,
        is_brought=lambda crd: bool(definitions.owners(crd)) or resources.has_definition(crd),
    )
    restored = drift.Drift(resources, restorer, cluster.deletions, tell, inbox, clock)
    followed = followed_releases.FollowedReleases(manager, resources, restored, tell, clock)
    made = module_releases.ModuleReleases(manager, values, restored, followed, tell, ignored=cluster.ignored)
    guard = crd_guard.CrdGuard(definitions, cluster.informers, values.maintenance, tell, clock)
    return DriftParts(restored, resources, followed, made, guard)
