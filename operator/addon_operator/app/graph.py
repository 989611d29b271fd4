"""The objects of a running operator, and how they know each other."""

import dataclasses
import functools
import pathlib
from collections.abc import Mapping

import structlog

from addon_operator.aio import waiting
from addon_operator.app import (
    drift_setup,
    hook_environment,
    observers,
)
from addon_operator.debug import debug_api, debug_render
from addon_operator.engine import engine, events, intents, introspection, state
from addon_operator.engine.bindings import hook_bindings, hook_tasks, schedules, triggers
from addon_operator.engine.converge import converge, module_discovery, task_factory
from addon_operator.engine.hooks import hook_files, hook_outputs, hook_run, hook_runner
from addon_operator.engine.modules import (
    module_crds,
    module_files,
    module_hooks,
    module_reload,
    module_run,
    module_watch,
)
from addon_operator.engine.queues import queue_set
from addon_operator.engine.sources import config_map_source, config_sync
from addon_operator.helm.releases import releases
from addon_operator.hook_contract.outputs import object_operations
from addon_operator.kube.client import client, config_maps
from addon_operator.kube.discovery import discovery as discovery_of_kinds
from addon_operator.kube.informers import informers
from addon_operator.kube.objects import crds, object_patches, own_deletions
from addon_operator.modules import plan
from addon_operator.process.children import children
from addon_operator.process.jq import jq_filters, jq_workers
from addon_operator.settings import settings as settings_module
from addon_operator.telemetry import hook_metrics, metrics
from addon_operator.values import inspection


@dataclasses.dataclass(frozen=True, slots=True)
class Parts:
    """What is made before the graph: everything that a user's mistake can keep from being made."""

    settings: settings_module.Settings
    modules: module_files.LoadedModules
    kube: client.KubeClient
    releases: releases.ReleaseManager
    ignored_releases: frozenset[str]
    """Those that are never removed."""
    workspace: pathlib.Path
    programs: children.Children
    jq: jq_workers.JqWorkers
    inspector: inspection.Inspector
    """Who reads and checks what users hand in."""
    load_outputs: object_operations.LoadDocuments
    """Who reads large outputs of hooks."""
    meters: metrics.Metrics
    log: structlog.typing.FilteringBoundLogger
    environ: Mapping[str, str]


@dataclasses.dataclass(frozen=True, slots=True)
class Operator:
    """The ends of the graph that the start and the stop work with."""

    engine: engine.Engine
    watches: informers.Informers
    config: config_sync.ConfigSync
    source: config_map_source.ConfigMapSource
    drift: drift_setup.DriftParts
    modules: module_watch.ModuleWatch | None
    """Who watches the modules directories, if somebody shall."""
    inspected: debug_api.Inspected

    def unhealthy_reason(self) -> str | None:
        """Why the operator should be restarted, or ``None``."""
        return None if self.watches.alive else "a watch of objects has broken down and starts again"


class Graph:
    """Builds an operator from its parts."""

    def __init__(self, parts: Parts, tell: events.Listener) -> None:
        self._parts = parts
        self._settings = parts.settings
        self._clock = waiting.SystemTime()
        self._kinds = discovery_of_kinds.Catalog(parts.kube, self._clock)
        self._watches = informers.Informers(parts.kube, self._kinds, self._clock, parts.meters.watch_failed)
        self._own_deletions = own_deletions.OwnDeletions()
        self._values = parts.modules.store(parts.inspector)
        self._states = state.ModuleStates([files.module for files in parts.modules.modules], tell)
        self._tell = observers.all_of(observers.module_states(self._states, self._clock), tell)
        self._runner = self._hook_runner()
        self._inbox = intents.Inbox()
        self._config = self._config_sync()
        self._executor = self._hook_executor()
        self._queues = queue_set.QueueSet(
            self._tell,
            clock=self._clock,
            parallelism=self._settings.modules_parallelism,
        )
        self._hook_tasks = hook_tasks.HookTasks(
            self._queues, self._executor, triggers.FollowedObjects(), self._inbox, self._clock
        )
        self._bindings = hook_bindings.HookBindings(
            self._hook_tasks,
            self._watches,
            jq_filters.JqFilters(parts.jq),
            schedules.Schedules(self._clock),
            self._tell,
        )
        self._definitions = self._module_crds()
        self._drift = self._drift_parts()
        self._releases = self._drift.releases
        self._module_hooks = module_hooks.ModuleHooks(self._states, self._values, self._runner, self._tell)
        self._module_runner = module_run.ModuleRunner(
            self._states,
            self._module_hooks,
            self._executor,
            self._bindings,
            self._releases,
            self._tell,
        )

    @property
    def config(self) -> config_sync.ConfigSync:
        """The state of the ConfigMap, which :meth:`build` may wait for."""
        return self._config

    async def build(self) -> Operator:
        """All objects; asks global hooks for their configuration and reads the ConfigMap.

        Nothing else of the engine begins before the ConfigMap can be used, however long that takes.

        Raises an :class:`.AddonOperatorError` when one of these is wrong.
        """
        files = hook_files.discover(hook_files.global_hooks_root(self._settings.global_hooks_dir))
        hooks = await self._runner.load(files, self._tell)
        self._tell(events.HooksRegistered(None, hooks))
        await self._config.load_when_valid()
        made_of = self._steps(hooks)
        on_failure = converge.OnFailure(self._settings.converge_on_failure)
        converger = converge.Converger(self._queues.main, made_of, self._tell, on_failure=on_failure)
        running = engine.Engine(
            self._inbox, self._queues, converger, self._bindings, self._states, self._tell
        )
        return Operator(
            running,
            self._watches,
            self._config,
            self._source(),
            self._drift,
            self._module_watch(running),
            self._inspected(running, hooks),
        )

    def _module_watch(self, running: engine.Engine) -> module_watch.ModuleWatch | None:
        reload = module_reload.ModuleReload(
            self._values, self._states, self._config, self._module_hooks, self._tell, end=running.forget
        )
        if not self._settings.watch_modules:
            return None
        directories = self._settings.modules_dirs
        first = module_watch.scan(directories)
        loader = module_watch.ModuleLoader(
            directories,
            self._settings.unnumbered_module_order,
            self._parts.modules,
            first,
            module_reload.config_check(self._values),
        )

        async def take(loading: module_watch.Loading) -> None:
            await running.reload(functools.partial(reload.take, loading))

        def refuse(problem: str) -> None:
            self._tell(events.ReloadRefused(problem))

        return module_watch.ModuleWatch(directories, loader, first, take=take, refused=refuse)

    def _inspected(self, running: engine.Engine, hooks: tuple[state.Hook, ...]) -> debug_api.Inspected:
        parts = self._parts
        renderer = debug_render.Renderer(
            parts.releases, self._values, parts.kube, self._kinds, self._settings.namespace
        )
        return debug_api.Inspected(
            introspection.Introspection(
                self._states, lambda: running.queues, hooks, self._clock, self._bindings.waiting
            ),
            self._values,
            state.ModulesByName(self._states),
            renderer,
            snapshots=self._bindings,
            monitor=self._drift,
        )

    def _hook_runner(self) -> hook_runner.HookRunner:
        return hook_runner.HookRunner(
            tmp_dir=self._parts.workspace,
            environment=hook_environment.of_hooks(
                self._parts.environ,
                self._parts.kube.access,
                self._parts.workspace,
                self._settings.hook_env,
            ),
            default_timeout=self._settings.hook_timeout,
            log=hook_runner.HookLog(self._parts.log, merge_json=self._settings.log_proxy_hook_json),
            keep_tmp_files=self._settings.debug_keep_tmp_files,
            programs=self._parts.programs,
        )

    def _config_sync(self) -> config_sync.ConfigSync:
        made = config_sync.ConfigSync(
            self._values,
            config_maps.ConfigMap(self._parts.kube, self._settings.namespace, self._settings.config_map),
            self._inbox,
            self._tell,
            source=f"ConfigMap {self._settings.namespace}/{self._settings.config_map}",
        )
        self._parts.meters.modules.config_values_invalid.set_function(lambda: made.is_refused)
        return made

    def _hook_executor(self) -> hook_run.HookExecutor:
        outputs = hook_outputs.HookOutputs(
            self._object_patcher(),
            self._config,
            self._values,
            hook_metrics.HookMetrics(self._parts.meters.registry),
            self._parts.load_outputs,
        )
        return hook_run.HookExecutor(self._runner, self._values, outputs, self._states, self._tell)

    def _object_patcher(self) -> object_patches.ObjectPatcher:
        return object_patches.ObjectPatcher(
            self._parts.kube, self._kinds, self._own_deletions, self._parts.jq, self._clock
        )

    def _steps(self, hooks: tuple[state.Hook, ...]) -> task_factory.TaskFactory:
        return task_factory.TaskFactory(
            self._values,
            task_factory.GlobalHooks(hooks, self._executor, self._bindings.snapshots),
            self._discovery(),
            self._module_runner,
            self._definitions,
            self._tell,
        )

    def _drift_parts(self) -> drift_setup.DriftParts:
        parts = self._parts
        cluster = drift_setup.ClusterParts(
            parts.kube,
            self._kinds,
            self._watches,
            self._own_deletions,
            parts.releases,
            self._settings.namespace,
            parts.ignored_releases,
        )
        return drift_setup.drift_parts(
            cluster,
            self._definitions,
            self._values,
            self._tell,
            self._inbox,
            self._clock,
        )

    def _module_crds(self) -> module_crds.ModuleCrds:
        installer = crds.CrdInstaller(
            self._parts.kube, self._kinds, self._settings.crd_extra_labels, self._clock
        )
        return module_crds.ModuleCrds(
            installer, self._tell, self._settings.crd_filter_prefixes, self._values.helm_values
        )

    def _discovery(self) -> module_discovery.Discovery:
        return module_discovery.Discovery(
            self._states,
            self._values,
            self._runner,
            plan.RemovalPolicy(
                plan.PurgePolicy(self._settings.helm_purge),
                self._parts.ignored_releases,
                self._settings.allow_empty_modules,
            ),
            self._tell,
        )

    def _source(self) -> config_map_source.ConfigMapSource:
        return config_map_source.ConfigMapSource(
            self._parts.kube,
            self._settings.namespace,
            self._settings.config_map,
            self._config,
            self._log_restart,
        )

    def _log_restart(self, reason: str, delay: float) -> None:
        self._parts.log.warning(
            f"the watch of the values ConfigMap is started again in {delay:.1f} s: {reason}"
        )
