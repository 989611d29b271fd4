"""The releases of modules, watched: what they hold, what is absent, and what was restored."""

import dataclasses
from collections.abc import Callable, Coroutine
from typing import Any

from addon_operator.engine import events, intents
from addon_operator.engine.definitions import crd_guard, module_crds
from addon_operator.engine.drift import drift, followed_releases, restoring, watched_resources
from addon_operator.engine.modules import module_releases
from addon_operator.helm.releases import releases
from addon_operator.kernel import clock as clocks
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

    @property
    def parts(self) -> dict[str, Callable[[], Coroutine[Any, Any, None]]]:
        """What follows and restores until cancelled, each by itself."""
        return {
            "followed": self.followed.work,
            "drift": self.drift.work,
            "definitions": self.guard.work,
        }


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
    of_modules = module_releases.ModuleReleases(manager, values, restored, followed, tell, ignored=ignored)
    guard = crd_guard.CrdGuard(definitions, cluster.watches, followed, values, tell, clock)
    return ReleaseMonitor(restored, resources, followed, of_modules, guard)
