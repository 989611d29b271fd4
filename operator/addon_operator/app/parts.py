"""Parts of the operator that consist of several objects, put together."""

from collections.abc import Callable

import msgspec
from msgspec import structs

from addon_operator.engine import events, intents, module_states
from addon_operator.engine.bindings import (
    hook_answers,
    hook_bindings,
    hook_tasks,
    process_slots,
    review_runs,
    schedules,
    triggers,
    webhooks,
)
from addon_operator.engine.definitions import crd_guard, module_crds
from addon_operator.engine.drift import (
    content_drift,
    drift,
    followed_releases,
    health_causes,
    health_watch,
    live_contents,
    module_healths,
    record_watch,
    restoring,
    watched_resources,
)
from addon_operator.engine.hooks import hook_run
from addon_operator.engine.modules import module_releases, module_windows, release_monitor
from addon_operator.engine.queues import queue_set
from addon_operator.helm import capabilities, command, memory, release_types
from addon_operator.helm.releases import (
    live_objects,
    release_planning,
    release_records,
    releases,
    rendering,
)
from addon_operator.hook_contract import hook_entries
from addon_operator.kernel import clock as clocks
from addon_operator.kernel import names
from addon_operator.kube import cluster as cluster_module
from addon_operator.kube.client import client
from addon_operator.kube.discovery import discovery
from addon_operator.kube.informers import informers, projections
from addon_operator.modules import findings, model
from addon_operator.modules.drift import drift_config
from addon_operator.modules.health import health_config
from addon_operator.modules.patching import manifest_changes
from addon_operator.values import store


class Asking(msgspec.Struct, frozen=True):
    """What requests of the API server that hooks answer go through."""

    slots: process_slots.ProcessSlots
    registry: webhooks.WebhookRegistry[hook_entries.WebhookEntry] = msgspec.field(
        default_factory=webhooks.NoRegistry
    )
    conversions: webhooks.WebhookRegistry[hook_entries.ConversionEntry] = msgspec.field(
        default_factory=webhooks.NoRegistry
    )


def bindings(
    queues: queue_set.QueueSet,
    executor: hook_run.HookExecutor,
    inbox: intents.Inbox,
    watches: informers.Informers,
    jq: projections.JqRunner,
    clock: clocks.Clock,
    tell: events.Listener,
    asking: Asking,
) -> hook_bindings.HookBindings:
    """Make the bindings of all hooks, which ``executor`` runs in ``queues``; ``asking`` for webhooks."""
    objects = triggers.FollowedObjects()
    runs = hook_tasks.HookTasks(queues, executor, objects, inbox, clock)
    reviews = review_runs.ReviewRuns(executor, asking.slots, review_runs.put_into(inbox))
    answers = hook_answers.WebhookAnswers(reviews, objects, tell)
    converting = hook_answers.ConversionAnswers(reviews, objects, tell)
    answering = (
        webhooks.Webhooks(answers, asking.registry),
        webhooks.Webhooks(converting, asking.conversions),
    )
    return hook_bindings.HookBindings(runs, watches, jq, schedules.Schedules(clock), tell, answering)


class Watching(msgspec.Struct, frozen=True):
    """What settings and tools say of the watch over releases."""

    ignored: frozenset[str]
    """Releases that are never removed."""
    judge: health_watch.Judge
    """Evaluates the rules of ``health.rules``."""
    drift_mode: drift_config.DriftMode
    windows: module_windows.ModuleWindows
    clock: clocks.Clock
    health_rules: tuple[health_config.HealthRule, ...] = ()
    """Rules of all modules; a module's own come first."""

    def health_of(self, module: model.Module) -> health_config.HealthConfig:
        """Return what counts for the health of a module."""
        config = module.config.health
        if not self.health_rules:
            return config
        return structs.replace(config, rules=(*config.rules, *self.health_rules))

    def drift_of(self, module: model.Module) -> drift_config.DriftConfig:
        """Return what is done about drift of a module."""
        config = module.config.drift
        return config if config.mode else structs.replace(config, mode=self.drift_mode)


def monitor(
    cluster: cluster_module.Cluster,
    manager: releases.ReleaseManager,
    definitions: module_crds.ModuleCrds,
    values: store.ValuesStore,
    states: module_states.ModuleStates,
    tell: events.Listener,
    inbox: intents.Inbox,
    watching: Watching,
) -> release_monitor.ReleaseMonitor:
    """Make it, and the releases that it looks after."""
    clock = watching.clock

    def judged(module: names.ModuleName, text: str, is_first: bool) -> None:
        to_do = (
            f"an edit or 'addon-operator module run {module}' makes a revision from chart and values; "
            f"'addon-operator module suspend {module}' leaves all as it is"
        )
        states.note(module, findings.CHANGED_BY_OTHERS, f"{text}; {to_do}" if text else "")
        if not text:
            return
        tell(events.Warned(f"module {module}: {text}"))
        # The run of this start may have been before that.
        if is_first or (module in states and content.may_put_right(module)):
            inbox.put_nowait(intents.RunWanted(module, "ChangedByOthers"))

    manager.judged = judged
    manager.report_kept(
        lambda module, kept: tell(events.ObjectsKept(module, kept, has_module=module in states))
    )
    resources = watched_resources.WatchedResources(
        cluster.watches, cluster.kinds, cluster.probe, tell, manager.places
    )
    restorer = restoring.Restorer(
        manager,
        cluster.kube,
        is_brought=lambda crd: bool(definitions.owners(crd)) or resources.has_definition(crd),
    )
    restored = drift.Drift(resources, restorer, cluster.deletions, tell, inbox, clock)
    content = content_drift.ContentDrift(
        resources,
        restored,
        manager,
        live_contents.LiveContents(cluster.kube, resources),
        lambda module: watching.drift_of(states[module].module),
        watching.windows.opening,
        tell,
        clock,
    )
    records = record_watch.RecordWatch(manager, cluster.watches, restored, tell, inbox, clock)
    followed = followed_releases.FollowedReleases(manager, resources, restored, content, records, tell, clock)
    healths = module_healths.ModuleHealths(
        cluster.watches,
        resources,
        health_causes.HealthCauses(cluster.kube),
        watching.judge,
        lambda module: watching.health_of(states[module].module),
        tell,
        inbox,
        clock,
    )
    of_modules = module_releases.ModuleReleases(
        manager, values, restored, followed, healths, tell, watching.windows, ignored=watching.ignored
    )
    guard = crd_guard.CrdGuard(definitions, cluster.watches, followed, values, tell, clock)
    return release_monitor.ReleaseMonitor(
        restored, resources, followed, of_modules, guard, healths, content, records
    )


def release_manager(
    helm: command.Helm,
    kube: client.KubeClient,
    kinds: discovery.Catalog,
    options: release_types.Options,
    remembered: memory.Memory,
    clock: clocks.Clock,
    driver: str = "secret",
    rework: Callable[[str], str] | None = None,
) -> releases.ReleaseManager:
    """Make the manager of the releases of ``helm``'s namespace; ``driver`` is the setting ``HELM_DRIVER``.

    ``rework``: see :class:`.BlindRenderer`, which renders then.
    """

    async def read_capabilities() -> capabilities.Capabilities:
        served = await kinds.look()
        return capabilities.Capabilities(served.version, served.api_versions)

    reader = capabilities.CapabilityReader(read_capabilities, clock)
    records = release_records.ReleaseRecords(kube, helm.places, remembered, driver)
    common = manifest_changes.ManifestChanges(options.common_labels, options.common_annotations)
    if rework is None:
        renderer = rendering.ChartRenderer(helm, reader, options.timeout, clock, common, options.absence)
    else:
        renderer = rendering.BlindRenderer(helm, reader, options.timeout, clock, common)
        renderer.rework = rework
    live = live_objects.LiveObjects(kube, kinds, helm.places, options.go_operator_labels)
    renderer.schema_of = live.schema_of
    planner = release_planning.ReleasePlanner(helm, records, renderer, live, options, clock)
    return releases.ReleaseManager(planner)
