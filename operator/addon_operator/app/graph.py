"""The objects of a running operator, and how they know each other."""

import asyncio
import dataclasses
from collections.abc import Callable, Collection, Coroutine, Mapping, Sequence
from typing import Any

from addon_operator.app import engine_listeners, parts
from addon_operator.app import tools as tools_module
from addon_operator.debug import debug_render, engine_api
from addon_operator.engine import engine, events, intents, introspection, module_states, state, tasks
from addon_operator.engine.bindings import hook_bindings
from addon_operator.engine.converge import (
    api_watch,
    cluster_requirements,
    converge,
    global_hooks,
    module_discovery,
)
from addon_operator.engine.definitions import beside_definitions, module_charts, module_crds
from addon_operator.engine.drift import run_causes
from addon_operator.engine.hooks import enabled_scripts, hook_run
from addon_operator.engine.modules import (
    left_watch,
    module_hooks,
    module_run,
    module_windows,
    readiness_checks,
    release_monitor,
)
from addon_operator.engine.queues import queue_set
from addon_operator.engine.reload import module_reload, module_watch
from addon_operator.engine.sources import config_sync, kopf_sources, module_annotations, refused_config
from addon_operator.kube import cluster
from addon_operator.loading import module_directories, module_files, module_loader, module_scan
from addon_operator.modules import plan
from addon_operator.modules.drift import drift_config
from addon_operator.status import health
from addon_operator.telemetry import metrics


@dataclasses.dataclass(frozen=True, slots=True)
class Operator(health.Part):
    """The engine, its sources, and what is watched for it."""

    engine: engine.Engine
    config: config_sync.ConfigSync
    source: kopf_sources.ValuesSource
    monitor: release_monitor.ReleaseMonitor
    cluster: cluster.Cluster
    answers: engine_api.EngineApi
    beside: Mapping[str, Callable[[], Coroutine[Any, Any, None]]]
    """What has to run beside the engine until the end, by name."""

    def report_to(self, meters: metrics.Metrics) -> None:
        """Have metrics show the state from now on."""
        meters.show_watch("config_map", lambda: self.source.health.is_up)
        if self.source.watches_secret:
            meters.show_watch("values_secret", lambda: self.source.secret_health.is_up)
        meters.show_watch("releases", lambda: self.monitor.resources.trouble() is None)

    def unhealthy_reason(self) -> str | None:
        """See :class:`.Part`."""
        if not self.source.alive:
            return "the watch of the values ConfigMap has ended"
        alive = self.cluster.watches.alive
        return None if alive else "a watch of objects has broken down and starts again"

    def trouble(self) -> str | None:
        """See :class:`.Part`."""
        source = self.source
        return (
            self.config.lacks
            or source.health.trouble
            or source.secret_trouble()
            or self.monitor.resources.trouble()
        )


class Graph(health.Beginning):
    """Builds an operator."""

    def __init__(
        self,
        tools: tools_module.Tools,
        modules: module_files.LoadedModules,
        meters: metrics.Metrics,
        tell: events.Listener,
        asking: parts.Asking,
    ) -> None:
        self._tools = tools
        self._settings = tools.settings
        self._modules = modules
        self._clock = tools.time
        self._cluster = cluster.Cluster(
            tools.kube, tools.kinds, tools.settings.namespace, self._clock, meters.watch_failed
        )
        self._values = modules.store(
            tools.inspector, tools.settings_programs, crd_names=tools.settings.enabled_modules_crd_names
        )
        self._crd_sources = tools.crd_sources(self._values)
        self.states = module_states.ModuleStates([files.module for files in modules.modules], tell)
        """What is known of each module."""
        self.states.lacks, self.states.ignored = modules.lacks, modules.strangers
        self.states.strays = modules.strays
        self._refused = refused_config.RefusedConfig(self.states, self._clock)
        self._inbox = intents.Inbox()
        self._tell = self._listeners(tell)
        self._runner = tools.hook_processes()
        self._windows = module_windows.ModuleWindows(
            self.states, self._inbox, self._tell, self._clock, default=self._settings.windows
        )
        self._apis = api_watch.ApiWatch(
            self._cluster.kinds, self._cluster.probe, self._cluster.watches, self._inbox, self._tell
        )
        tools.warned = self.states.warned
        self.config = tools.config_sync(self._values, self._inbox, self._tell)
        """The state of the ConfigMap, which :meth:`build` may wait for."""
        meters.converges.config_values_invalid.set_function(lambda: self.config.is_refused)
        outputs = tools.hook_outputs(self._cluster, self.config, self._values, meters)
        self._executor = hook_run.HookExecutor(self._runner, self._values, outputs, self.states, self._tell)
        self._queues = queue_set.QueueSet(
            self._tell, clock=self._clock, parallelism=tools.settings.modules_parallelism
        )
        self._annotations = module_annotations.ModuleAnnotations(
            self._cluster,
            self.states,
            self._values,
            self._inbox,
            self._tell,
            self._clock,
            tools.releases,
        )
        self._bindings = self._hook_bindings(asking)

    @property
    def waits_for(self) -> str | None:
        """What :class:`.ConfigSync` waits for: see :class:`.Beginning`."""
        return self.config.waits_for

    def refusals(self) -> list[str]:
        """Return what is not in force of ConfigMap, Secret and files as they are: see :class:`.Beginning`."""
        return [
            *self._refused.sentences,
            *self.states.refusals,
            *self.config.warnings,
            *self._windows.sentences,
        ]

    def troubles(self) -> list[str]:
        """Return which modules are not as they should be: see :class:`.Beginning`."""
        return self.states.troubles

    async def build(self) -> Operator:
        """Make all objects; asks global hooks for their configuration and reads the ConfigMap.

        Nothing else of the engine begins before the ConfigMap can be used, however long that takes.

        Raises an :class:`.AddonOperatorError` when one of these is wrong.
        """
        ignored = await tools_module.ignored_releases(self._tools.kube, self._settings, self._tools.environ)
        hooks = await self._runner.load_global(self._settings.global_hooks_dir, self._tell)
        self._tell(events.HooksRegistered(None, hooks))
        await self.config.load_when_valid()
        await self._annotations.begin()
        self._windows.go_on()
        definitions = self._module_crds()
        monitor = self._monitor(definitions, ignored)
        readiness = readiness_checks.ReadinessChecks(
            self.states, monitor.healths, self._runner, self._values, self._tell, self._clock
        )
        hooks_of_modules = module_hooks.ModuleHooks(
            self.states, self._values, self._executor, self._bindings, self._tell, readiness
        )
        left = left_watch.LeftWatch(self._tools.releases.left, self.states)
        discovery = self._discovery()

        async def ask_again(task: tasks.Task) -> None:
            await discovery.ask_again(task)
            self._inbox.put_nowait(intents.ConvergeWanted(engine.ACTIVATION_SCRIPT))

        runner = module_run.ModuleRunner(
            self.states,
            hooks_of_modules,
            self._bindings,
            monitor.releases,
            definitions,
            left,
            self._tell,
            ask_again,
        )
        converger = converge.Converger(
            self._queues,
            global_hooks.GlobalHooks(hooks, self._executor, self._bindings, self._values),
            discovery,
            runner,
            self._tell,
            on_failure=converge.OnFailure(self._settings.converge_on_failure),
        )
        monitor.releases.coming_runs = converger.coming_runs
        running = engine.Engine(
            self._inbox,
            self._queues,
            converger,
            runner,
            self._bindings,
            self._tell,
            may_begin=self.config.is_known,
        )
        answers = self._answers(hooks, monitor)
        looks = {"readiness": readiness.work, "looks": answers.views.looks.work}
        return Operator(
            running,
            self.config,
            self._source(),
            monitor,
            self._cluster,
            answers,
            {**await self._beside(running, monitor, runner), **looks, "left": left.work},
        )

    def _listeners(self, tell: events.Listener) -> events.Listener:
        return engine_listeners.all_of(
            engine_listeners.states_listener(self.states, self._clock),
            self._refused,
            tell,
            self._run_causes().listen,
        )

    def _hook_bindings(self, asking: parts.Asking) -> hook_bindings.HookBindings:
        return parts.bindings(
            self._queues,
            self._executor,
            self._inbox,
            self._cluster.watches,
            self._tools.jq_filters,
            self._clock,
            self._tell,
            asking,
        )

    def _monitor(
        self, definitions: module_crds.ModuleCrds, ignored: frozenset[str]
    ) -> release_monitor.ReleaseMonitor:
        """``ignored``: releases that are never removed."""
        watching = parts.Watching(
            ignored,
            self._tools.healths.judge_health,
            drift_config.DriftMode(self._settings.drift_mode),
            self._windows,
            self._clock,
            self._settings.health_rules,
        )
        return parts.monitor(
            self._cluster,
            self._tools.releases,
            definitions,
            self._values,
            self.states,
            self._tell,
            self._inbox,
            watching,
        )

    def _pass_on(self, event: events.Event) -> None:
        self._tell(event)

    def _run_causes(self) -> run_causes.RunCauses:
        return run_causes.RunCauses(
            self._cluster.watches,
            lambda module: self._tools.releases.places.of(module).namespace,
            self._inbox,
            self._pass_on,
            self._clock,
        )

    def _module_crds(self) -> module_crds.ModuleCrds:
        installer = self._cluster.crd_installer(self._settings.crd_extra_labels)
        charts = module_charts.ModuleCharts(self._tools.charts, self._inbox)
        patcher = self._cluster.object_patcher(self._tools.jq)
        beside = beside_definitions.BesideDefinitions(self._tools.releases, self._cluster.kinds, patcher)
        return module_crds.ModuleCrds(installer, self._tell, self._crd_sources, charts, beside.create)

    def _discovery(self) -> module_discovery.Discovery:
        settings, seen = self._settings, self._cluster
        removals = plan.RemovalPolicy(
            plan.PurgePolicy(settings.helm_purge), allow_empty=settings.allow_empty_modules
        )
        required = cluster_requirements.ClusterRequirements(
            seen.kinds, seen.probe, self._crd_sources, self._apis
        )
        second_look = module_discovery.SecondLook(self._clock, settings.absence, self._unread)
        return module_discovery.Discovery(
            self.states,
            self._values,
            self._runner,
            removals,
            required,
            self._tell,
            second_look,
            enabled_scripts.PATIENCE,
        )

    async def _unread(self, modules: Collection[str]) -> str:
        return await asyncio.to_thread(module_directories.unread, self._settings.modules_dirs, modules)

    def _source(self) -> kopf_sources.ValuesSource:
        def log_restart(reason: str, delay: float) -> None:
            self._tools.log.warning(
                f"the watch of the values ConfigMap is started again in {delay:.1f} s: {reason}"
            )

        return kopf_sources.ValuesSource(
            self._tools.kube,
            self._settings.namespace,
            self._settings.config_map,
            self.config,
            log_restart,
            secret=tools_module.secret_of(self._settings, self._tools.kube),
        )

    async def _beside(
        self,
        running: engine.Engine,
        monitor: release_monitor.ReleaseMonitor,
        runner: module_run.ModuleRunner,
    ) -> dict[str, Callable[[], Coroutine[Any, Any, None]]]:
        beside = {
            "ages": running.keep_ages,
            "config": self.config.keep_in_step,
            **monitor.parts,
            "charts": lambda: self._tools.charts.keep(lambda: self.states.modules),
            "apis": self._apis.work,
            "annotations": self._annotations.work,
            "memory": self._tools.memory.keep,
        }
        if self._settings.watch_modules:
            directories, order = self._settings.modules_dirs, self._settings.unnumbered_module_order
            first = await asyncio.to_thread(module_scan.scan, directories)
            reload = module_reload.ModuleReload(
                self._values,
                self.states,
                self.config,
                runner.hooks,
                running,
                self._tell,
                first,
                runner.releases.let_go,
            )
            runner.releases.unread = reload.unread
            check = module_reload.config_check(self._values)
            loader = module_loader.ModuleLoader(directories, order, self._modules, first, check)
            interval = self._settings.watch_modules_interval
            beside["modules"] = module_watch.ModuleWatch(
                loader,
                first,
                reload,
                time_of=self._clock,
                absence=self._settings.absence,
                interval=interval,
            ).work
        return beside

    def _answers(
        self,
        hooks: Sequence[state.Hook],
        monitor: release_monitor.ReleaseMonitor,
    ) -> engine_api.EngineApi:
        views = introspection.Introspection(
            self.states,
            self._queues,
            self._bindings,
            hooks,
            self._clock,
            self.refusals,
            lambda: self._tools.running_hooks.rows,
        )
        renderer = debug_render.Renderer(
            self._tools.releases, self._values, self._cluster.kube, self._cluster.kinds, self._tools.charts
        )
        return engine_api.EngineApi(
            views,
            self._values,
            self.states,
            renderer,
            self._bindings,
            monitor,
            self._annotations.requests,
            self._runner.last,
        )
