"""The life of an operator process: start in order, serve, stop in the reverse order."""

import asyncio
import contextlib
import os
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Final

import structlog

import addon_operator
from addon_operator.aio import threads, waiting
from addon_operator.app import (
    admission_part,
    engine_listeners,
    graph,
    kept_work,
    leadership,
    module_objects,
    notifications,
    parts,
    stopping,
    tools,
)
from addon_operator.debug import debug_api, debug_site, runtime_config
from addon_operator.engine.bindings import process_slots
from addon_operator.helm import binary, memory
from addon_operator.inspection import values_worker
from addon_operator.kernel import clock, errors
from addon_operator.kube.access import auth
from addon_operator.kube.client import client, retries
from addon_operator.kube.informers import informers
from addon_operator.kube.objects import events
from addon_operator.loading import module_files, preflight
from addon_operator.modules import requirements
from addon_operator.process.children import children, groups, launcher
from addon_operator.settings import settings as settings_module
from addon_operator.status import health, http_site, page_content, stored_modules, told_events
from addon_operator.telemetry import heartbeat, logs, metrics

if TYPE_CHECKING:
    from addon_operator.app import admission

_LAST_EVENTS_SECONDS: Final = 1.0
_LAST_WRITE_SECONDS: Final = 2.0
_LOOK_SECONDS: Final = 5.0
_EVENTS_SECONDS: Final = 30.0
"""Between two looks of a replica that stands by at what the leader told of modules, if somebody looks."""


def run(settings: settings_module.Settings, environ: Mapping[str, str]) -> None:
    """Run the operator until it gets SIGTERM or SIGINT.

    Raises an :class:`.AddonOperatorError` when it cannot start, loses its Lease
    (:class:`.LeaseLostError`) or ends because of a defect.
    """
    logs.configure(settings.log_level, settings.log_type, no_time=settings.log_no_time)
    asyncio.run(_Process(settings, environ).live())


class _EventLoop(health.Part):
    """The event loop, as probes see it."""

    def __init__(self, beat: heartbeat.Heartbeat) -> None:
        self._beat = beat

    def unhealthy_reason(self) -> str | None:
        return self._beat.unhealthy_reason()


class _Process:
    def __init__(self, settings: settings_module.Settings, environ: Mapping[str, str]) -> None:
        self._settings = settings
        self._environ = environ
        self._log: structlog.typing.FilteringBoundLogger = structlog.get_logger("addon-operator")
        self._meters = metrics.Metrics(
            settings.prometheus_metrics_prefix, queue_actions=settings.queue_actions_metrics
        )
        self._status = health.OperatorStatus(only_admits=settings.admission_only)
        self._page = page_content.PageContent(self._status, settings.namespace, settings.listen_port)
        self._stop = stopping.StopRequest(clock.SystemClock())
        self._leadership = leadership.Leadership(self._meters)
        self._background: list[asyncio.Task[None]] = []
        self._recorder: events.EventWriter | None = None
        self._objects: module_objects.ModuleObjects | None = None
        self._notifications: notifications.Notifications | None = None
        self._debug: debug_api.DebugApi | None = None
        self._memory: memory.Memory | None = None
        self._lineage = groups.Lineage()
        self._admission: admission.Admission | None = None
        self._slots = process_slots.ProcessSlots(settings.webhook_hooks_parallelism)

    async def live(self) -> None:
        starting = asyncio.current_task()
        asyncio.get_running_loop().set_exception_handler(kept_work.stray_defects(self._meters, self._log))
        self._stop.listen(lambda: starting and starting.cancel())
        try:
            await self._live()
        except asyncio.CancelledError:
            if not self._stop.asked.is_set():
                raise
        self._log.info("addon-operator stopped")

    async def _live(self) -> None:
        self._log.info(f"addon-operator {addon_operator.__version__} starts", pid=os.getpid())
        for warning in self._settings.warnings:
            self._log.warning(warning)
        async with contextlib.AsyncExitStack() as stack:
            schedule = asyncio.get_running_loop().call_later
            runtime = runtime_config.RuntimeConfig(
                self._settings.log_level, schedule, clock=clock.SystemClock()
            )
            self._debug = debug_api.DebugApi(runtime, self._status.absent_reason, self._page)
            served = debug_site.serving(self._settings, self._debug, self._log, self._lineage.includes)
            await stack.enter_async_context(served)
            if self._settings.admission_only:
                await self._only_admit(stack)
                return
            modules = await self._load_modules()
            made = await self._tools(stack)
            await self._be_seen(stack)
            checks = admission_part.ConfigChecks(
                modules, self._settings, made.inspector, made.settings_programs
            )
            # What hooks answer with stays until nobody asks them any more.
            answering = await stack.enter_async_context(contextlib.AsyncExitStack())
            await self._admit(stack, made.kube.access, checks)
            await self._answer_meanwhile(answering, made, modules)
            self._show_meanwhile(stack, made, modules)
            if await self._leadership.acquire():
                # It took its time.
                modules = await threads.run_apart(preflight.load_modules, self._settings)
            self._memory = made.memory
            await stopping.unless(made.memory.load(), self._part_ended())
            objects = module_objects.keeping(made, modules, self._meters, self._leadership.fence)
            self._objects = await stack.enter_async_context(objects)
            building = self._build(made, modules)
            operator = await stopping.unless(building, self._part_ended())
            checks.serve(operator.config)
            self._stop.started()
            await self._serve(operator)

    async def _be_seen(self, stack: contextlib.AsyncExitStack) -> None:
        """Serve probes and metrics, and watch over the event loop."""
        await stack.enter_async_context(
            http_site.serving(self._settings, self._meters, self._status, self._page)
        )
        stack.push_async_callback(self._end_background)
        beat = heartbeat.Heartbeat(clock.SystemClock())
        self._status.add(_EventLoop(beat))
        self._begin("heartbeat", beat.keep)
        self._begin("ticks", lambda: heartbeat.tick(self._meters))
        self._begin("lag", lambda: heartbeat.watch_lag(self._meters, clock.SystemClock()))

    async def _only_admit(self, stack: contextlib.AsyncExitStack) -> None:
        """Serve admission until the end, without anything that needs Helm, hooks or the Lease."""
        modules = module_files.LoadedModules((), ())
        if self._settings.config_validation:
            preflight.check_global_hooks_directory(self._settings)
            modules = await threads.run_apart(preflight.load_modules, self._settings)
        access = self._access()
        async with self._client(access) as kube:
            await tools.check_namespace(kube, self._settings.namespace)
        await self._be_seen(stack)
        inspector = stack.enter_context(values_worker.ValuesWorker())
        await self._admit(stack, access, admission_part.ConfigChecks(modules, self._settings, inspector))
        self._stop.started()
        await self._end_of(self._background)
        self._check(self._background)

    async def _end_of(self, vital: Sequence[asyncio.Task[None]]) -> None:
        """Wait until somebody asks for the end, or a part ends by itself."""
        asked = asyncio.create_task(self._stop.asked.wait(), name="stop")
        await asyncio.wait({asked, *vital}, return_when=asyncio.FIRST_COMPLETED)
        self._status.stop()
        await stopping.end({asked})

    def _check(self, vital: Sequence[asyncio.Task[None]]) -> None:
        for task in vital:
            if task.done():
                raise stopping.defect_of(task, self._log)

    async def _admit(
        self,
        stack: contextlib.AsyncExitStack,
        access: auth.ClusterAccess,
        checks: admission_part.ConfigChecks,
    ) -> None:
        part = admission_part.serving(self._settings, access, checks, self._meters, self._log, self._environ)
        self._admission = served = await stack.enter_async_context(part)
        if served is not None:
            self._status.add(served)
        self._status.admit()

    async def _load_modules(self) -> module_files.LoadedModules:
        await threads.run_apart(preflight.check_global_hooks, self._settings)
        modules = await threads.run_apart(preflight.load_modules, self._settings)
        for warning in (*modules.warnings, *modules.strangers):
            self._log.warning(warning)
        return modules

    async def _part_ended(self) -> None:
        """Raise when the Lease is lost, or when something in the background ends by itself."""
        lost = asyncio.create_task(self._leadership.lost(), name="lease")
        try:
            while not lost.done():
                # More begins meanwhile.
                watched = {lost, *self._background}
                await asyncio.wait(watched, timeout=_LOOK_SECONDS, return_when=asyncio.FIRST_COMPLETED)
                self._check(self._background)
            await lost
        finally:
            await stopping.end({lost})

    def _begin(self, name: str, work: Callable[[], Awaitable[None]]) -> None:
        self._background.append(kept_work.kept(name, work, engine_listeners.shown(self._meters, self._log)))

    async def _end_background(self) -> None:
        await self._tell_last_events()
        await stopping.end(self._background)

    async def _tell_last_events(self) -> None:
        if self._notifications is not None:
            # First: what was told is written down below.
            await self._notifications.close()
            self._notifications = None
        if self._objects is not None:
            await self._objects.finish()
        if self._recorder is not None:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(_LAST_EVENTS_SECONDS):
                    await self._recorder.flush()

    async def _save_memory(self) -> None:
        if self._memory is not None:
            with contextlib.suppress(TimeoutError, errors.AddonOperatorError):
                async with asyncio.timeout(_LAST_WRITE_SECONDS):
                    await self._memory.write()

    async def _tools(self, stack: contextlib.AsyncExitStack) -> tools.Tools:
        settings = self._settings
        configured = str(settings.helm_bin_path) if settings.helm_bin_path else None
        spawner = stack.enter_context(launcher.Launcher(self._lineage.started))
        helm = await binary.find(configured, self._environ, children.Children(spawner))
        if helm.danger:
            raise binary.HelmBinaryError(helm.danger)
        access = self._access()
        part = leadership.standing(
            settings, access, spawner, self._status, self._meters, self._log, self._environ
        )
        self._leadership = await stack.enter_async_context(part)
        programs = children.Children(spawner, self._leadership.fence)
        kube = await stack.enter_async_context(self._client(access))
        if not settings.debug_keep_tmp_files:
            for path in await asyncio.to_thread(preflight.remove_dead_workspaces, settings):
                self._log.info(f"removed {path}, which an operator that was killed had left")
        # Hooks that answer the API server do so in every replica.
        alone = children.Children(spawner)
        return await tools.Tools.open(stack, settings, self._environ, helm, kube, programs, alone)

    def _access(self) -> auth.ClusterAccess:
        settings = self._settings
        access = auth.load_access(
            settings.kube_config, settings.kube_context, settings.kube_server, self._environ
        )
        self._log.info(f"API server {access.server}", credentials=access.description)
        return access

    def _client(self, access: auth.ClusterAccess) -> client.KubeClient:
        return client.KubeClient(
            access,
            rate=retries.Rate(self._settings.kube_client_qps, self._settings.kube_client_burst),
            done=self._meters.request_done,
            fence=self._leadership.fence,
        )

    async def _build(self, made: tools.Tools, modules: module_files.LoadedModules) -> graph.Operator:
        if self._debug is not None:
            self._debug.show_running(made.running_hooks)
        recorder = events.EventWriter(
            made.kube, clock.SystemClock(), instance=self._environ.get("HOSTNAME", "")
        )
        self._recorder = recorder
        self._begin("events", recorder.run)
        names = {"ConfigMap": self._settings.config_map}
        names["Secret"] = self._settings.values_secret or self._settings.config_map
        configured = {
            kind: events.ObjectReference("v1", kind, name, self._settings.namespace)
            for kind, name in names.items()
        }
        listeners = [
            engine_listeners.shown(self._meters, self._log),
            engine_listeners.config_listener(recorder, configured, lambda: built.config.uid),
        ]
        if self._objects is not None:
            listeners.append(self._objects.show)
            self._notifications = notifications.of_settings(
                self._settings,
                self._objects.remember,
                recorder,
                self._meters,
                self._leadership.fence,
                self._log,
            )
        if self._notifications is not None:
            listeners.append(self._notifications.listen)
        asking = self._asking(made)
        built = graph.Graph(made, modules, self._meters, engine_listeners.all_of(*listeners), asking)
        self._status.begin(built)
        return await built.build()

    async def _answer_meanwhile(
        self, stack: contextlib.AsyncExitStack, made: tools.Tools, modules: module_files.LoadedModules
    ) -> None:
        """Let hooks answer what is registered, as long as no engine of this replica does."""
        if self._admission is None:
            return
        from addon_operator.app import admission_webhooks, standby_hooks

        surroundings = standby_hooks.Surroundings(
            self._slots, engine_listeners.shown(self._meters, self._log), self._admission.answers_for
        )
        template = admission_webhooks.hooks_template(self._settings)
        standing_in = standby_hooks.StandbyHooks(
            made, modules, self._admission.kube, template, self._meters, surroundings
        )
        stack.push_async_callback(standing_in.close)
        self._begin("standby hooks", standing_in.keep)
        self._admission.hooks.fallback = standing_in.find
        self._admission.conversions.fallback = standing_in.find_conversions

    def _show_meanwhile(
        self, stack: contextlib.AsyncExitStack, made: tools.Tools, modules: module_files.LoadedModules
    ) -> None:
        """Show on the page what the leader writes of modules, as long as this replica stands by."""
        if not self._settings.page:
            return
        time, namespace = waiting.SystemTime(), self._settings.namespace
        watches = informers.Informers(made.kube, made.kinds, time, self._meters.watch_failed)
        stack.push_async_callback(watches.close)
        followed = stored_modules.FollowedModules(watches, namespace, time)
        told = told_events.ToldEvents(made.kube, namespace, time, again=_EVENTS_SECONDS)
        requires = {str(each.module.name): requirements.summary(each.module) for each in modules.modules}
        self._page.stand_in(page_content.OfLeader(followed, told, requires))

    def _asking(self, made: tools.Tools) -> parts.Asking:
        if self._admission is None:
            return parts.Asking(self._slots)
        return parts.Asking(
            self._slots, self._admission.lead(made.kube), self._admission.lead_conversions(made.kube)
        )

    async def _serve(self, operator: graph.Operator) -> None:
        """Run the engine until something ends it, then give up the Lease, which others may wait for."""
        self._status.serve(operator.engine)
        self._status.add(operator)
        shows = self._objects
        objects = None if shows is None else page_content.Objects(shows.shown, shows.recall)
        self._page.show(operator.answers.views, operator.monitor.resources, objects)
        operator.report_to(self._meters)
        if self._debug is not None:
            notifier = None if self._notifications is None else self._notifications.notifier
            self._debug.serve(operator.answers, notifier)
        for name, work_beside in operator.beside.items():
            self._begin(name, work_beside)
        if self._notifications is not None:
            shown = engine_listeners.shown(self._meters, self._log)
            self._notifications.begin(operator.cluster.kube, operator.cluster.watches, shown)
        work = asyncio.create_task(operator.engine.work(), name="engine")
        lost = asyncio.create_task(self._leadership.lost(), name="lease")
        operator.source.start()
        vital = [lost, work, *self._background]
        try:
            await self._end_of(vital)
            if self._stop.asked.is_set():
                await self._drain(operator, vital)
            self._check(vital)
        finally:
            await stopping.end({work, lost})
            if self._admission is not None:
                # Its hooks need their snapshots, and the Lease for what they write.
                await self._admission.stop()
            await operator.cluster.watches.close()
            await self._tell_last_events()
            await self._save_memory()
            await self._leadership.release()
            await operator.source.stop()

    async def _drain(self, operator: graph.Operator, vital: Sequence[asyncio.Task[None]]) -> None:
        """Give what runs its time, unless a second signal or a loss of the Lease cuts it short."""
        grace = self._settings.shutdown_grace
        self._log.info("stopping: running hooks and Helm calls get their time", seconds=grace)
        draining = asyncio.create_task(operator.engine.drain(grace), name="drain")
        hurried = asyncio.create_task(self._stop.hurried.wait(), name="hurry")
        await asyncio.wait({draining, hurried, *vital}, return_when=asyncio.FIRST_COMPLETED)
        if self._stop.hurried.is_set():
            self._log.info("stopping at once: second signal")
        await stopping.end({draining, hurried})
