"""Parts of the operator that consist of several objects, put together."""

from addon_operator.engine import events, intents
from addon_operator.engine.bindings import hook_bindings, hook_tasks, schedules, triggers
from addon_operator.engine.definitions import crd_guard, module_crds
from addon_operator.engine.drift import drift, followed_releases, restoring, watched_resources
from addon_operator.engine.hooks import hook_run
from addon_operator.engine.modules import module_releases, module_windows, release_monitor
from addon_operator.engine.queues import queue_set
from addon_operator.helm import capabilities, command, release_types
from addon_operator.helm.releases import (
    live_objects,
    release_planning,
    release_records,
    releases,
    rendering,
)
from addon_operator.kernel import clock as clocks
from addon_operator.kube import cluster as cluster_module
from addon_operator.kube.client import client
from addon_operator.kube.discovery import discovery
from addon_operator.kube.informers import informers, projections
from addon_operator.values import store


def bindings(
    queues: queue_set.QueueSet,
    executor: hook_run.HookExecutor,
    inbox: intents.Inbox,
    watches: informers.Informers,
    jq: projections.JqRunner,
    clock: clocks.Clock,
    tell: events.Listener,
) -> hook_bindings.HookBindings:
    """Make the bindings of all hooks, which ``executor`` runs in ``queues``."""
    runs = hook_tasks.HookTasks(queues, executor, triggers.FollowedObjects(), inbox, clock)
    return hook_bindings.HookBindings(runs, watches, jq, schedules.Schedules(clock), tell)


def monitor(
    cluster: cluster_module.Cluster,
    manager: releases.ReleaseManager,
    definitions: module_crds.ModuleCrds,
    values: store.ValuesStore,
    tell: events.Listener,
    inbox: intents.Inbox,
    windows: module_windows.ModuleWindows,
    *,
    ignored: frozenset[str],
) -> release_monitor.ReleaseMonitor:
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
    of_modules = module_releases.ModuleReleases(
        manager, values, restored, followed, tell, windows, ignored=ignored
    )
    guard = crd_guard.CrdGuard(definitions, cluster.watches, followed, values, tell, clock)
    return release_monitor.ReleaseMonitor(restored, resources, followed, of_modules, guard)


def release_manager(
    helm: command.Helm,
    kube: client.KubeClient,
    kinds: discovery.Catalog,
    options: release_types.Options,
    driver: str = "secret",
) -> releases.ReleaseManager:
    """Make the manager of the releases of ``helm``'s namespace; ``driver`` is the setting ``HELM_DRIVER``."""
    clock = clocks.SystemClock()

    async def read_capabilities() -> capabilities.Capabilities:
        served = await kinds.look()
        return capabilities.Capabilities(served.version, served.api_versions)

    reader = capabilities.CapabilityReader(read_capabilities, clock)
    records = release_records.ReleaseRecords(kube, helm.places, driver)
    renderer = rendering.ChartRenderer(helm, reader, options.timeout, clock)
    live = live_objects.LiveObjects(kube, kinds, helm.places, options.go_operator_labels)
    planner = release_planning.ReleasePlanner(helm, records, renderer, live, options, clock)
    return releases.ReleaseManager(planner)
