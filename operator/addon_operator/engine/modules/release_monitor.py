"""The releases of modules, watched: what they hold, what is absent, and what was restored."""

import asyncio
import dataclasses
from collections.abc import Mapping, Sequence

from addon_operator.engine import events, intents
from addon_operator.engine.drift import drift, followed_releases, restoring, watched_resources
from addon_operator.engine.modules import crd_guard, module_crds, module_releases
from addon_operator.helm.releases import releases
from addon_operator.kernel import clock as clocks
from addon_operator.kernel import names
from addon_operator.kube import cluster as cluster_module
from addon_operator.values import store


@dataclasses.dataclass(frozen=True, slots=True)
class ReleaseMonitor:
    """Watches the resources of releases, and has those restored that disappear."""

    drift: drift.Drift
    resources: watched_resources.WatchedResources
    followed: followed_releases.FollowedReleases
    releases: module_releases.ModuleReleases
    guard: crd_guard.CrdGuard

    def resources_of(self, module: names.ModuleName) -> list[watched_resources.Row] | None:
        """Return the resources of a module's release, as ``module resource-monitor`` shows them.

        ``None`` if they are not watched: the module is in maintenance, or its release is not there yet.
        """
        return self.resources.view(module)

    def shared_of(self, module: names.ModuleName) -> Mapping[str, Sequence[names.ModuleName]]:
        """Return the module's resources that other modules have, too, with these modules."""
        return self.resources.shared_of(module)

    def restored_of(self, module: names.ModuleName) -> Mapping[str, int]:
        """Return the module's resources that were brought back lately, and how often in a row."""
        return self.drift.recent(module)

    def revision(self, module: names.ModuleName) -> int | None:
        """Return the number of the last revision of the module's release; ``None`` without one."""
        return self.releases.revision(module)

    async def work(self) -> None:
        """Follow and restore, until cancelled."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self.followed.work(), name="follow resources")
            group.create_task(self.drift.work(), name="drift")
            group.create_task(self.guard.work(), name="definitions")


def release_monitor(
    cluster: cluster_module.Cluster,
    manager: releases.ReleaseManager,
    definitions: module_crds.ModuleCrds,
    values: store.ValuesStore,
    tell: events.Listener,
    inbox: intents.Inbox,
    *,
    ignored: frozenset[str],
) -> ReleaseMonitor:
    """Make it, and the releases that it looks after; those in ``ignored`` are never removed."""
    clock = clocks.SystemClock()
    resources = watched_resources.WatchedResources(
        cluster.watches, cluster.kinds, cluster.probe, tell, manager.places
    )
    restorer = restoring.Restorer(
        manager,
        cluster.kube,
        is_brought=lambda crd: bool(definitions.owners(crd)) or resources.has_definition(crd),
    )

    restored = drift.Drift(resources, restorer, cluster.deletions, tell, inbox, clock)
    followed = followed_releases.FollowedReleases(manager, resources, restored, tell, clock)
    definitions.on_applied = followed.look_again
    made = module_releases.ModuleReleases(manager, values, restored, followed, tell, ignored=ignored)
    guard = crd_guard.CrdGuard(definitions, cluster.watches, values.maintenance, tell, clock)
    return ReleaseMonitor(restored, resources, followed, made, guard)
