"""The life of an operator process: start in order, serve, stop in the reverse order."""

import asyncio
import contextlib
import functools
import os
import shutil
import signal
from collections.abc import AsyncIterator, Mapping
from typing import Final

import structlog

import addon_operator
from addon_operator.app import admission, graph, http_site, observers, preflight, release_setup
from addon_operator.app import settings as settings_module
from addon_operator.app import status as status_module
from addon_operator.helm import binary
from addon_operator.kernel import clock, errors
from addon_operator.kube import auth, client, events, paths
from addon_operator.kube import errors as kube_errors
from addon_operator.process import children, launcher
from addon_operator.telemetry import heartbeat, logs, metrics

_LAST_EVENTS_SECONDS: Final = 2.0


def run(settings: settings_module.Settings, environ: Mapping[str, str]) -> None:
    """Run the operator until it gets SIGTERM or SIGINT.

    Raises an :class:`~addon_operator.kernel.errors.AddonOperatorError` when it cannot start.
    """
    logs.configure(settings.log_level, settings.log_type, no_time=settings.log_no_time)
    asyncio.run(_Process(settings, environ).live())


class _Process:
    def __init__(self, settings: settings_module.Settings, environ: Mapping[str, str]) -> None:
        self._settings = settings
        self._environ = environ
        self._log: structlog.typing.FilteringBoundLogger = structlog.get_logger("addon-operator")
        self._meters = metrics.Metrics(
            settings.prometheus_metrics_prefix, queue_actions=settings.queue_actions_metrics
        )
        self._status = status_module.Status()
        self._stop = asyncio.Event()
        self._background: list[asyncio.Task[None]] = []
        self._recorder: events.EventRecorder | None = None
        self._starting: asyncio.Task[None] | None = None

    async def live(self) -> None:
        self._handle_signals()
        try:
            await self._live()
        except asyncio.CancelledError:
            if not self._stop.is_set():
                raise
        self._log.info("addon-operator stopped")

    async def _live(self) -> None:
        self._log.info(f"addon-operator {addon_operator.__version__} starts", pid=os.getpid())
        for warning in self._settings.warnings:
            self._log.warning(warning)
        async with contextlib.AsyncExitStack() as stack:
            parts = await self._parts(stack)
            await stack.enter_async_context(http_site.serving(self._settings, self._meters, self._status))
            stack.push_async_callback(self._end_background)
            await self._admit(stack, parts.kube.access)
            operator = await self._build(parts)
            self._starting = None
            await self._serve(operator)

    async def _admit(self, stack: contextlib.AsyncExitStack, access: auth.ClusterAccess) -> None:
        part = admission.serving(self._settings, access, self._meters, self._log, self._environ)
        served = await stack.enter_async_context(part)
        if served is not None:
            self._status.require(served.unready_reason)
        self._status.admit()

    async def _end_background(self) -> None:
        if self._recorder is not None:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._recorder.flush(), _LAST_EVENTS_SECONDS)
        for task in self._background:
            task.cancel()
        await asyncio.gather(*self._background, return_exceptions=True)

    def _handle_signals(self) -> None:
        self._starting = asyncio.current_task()
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self._asked_to_stop)

    def _asked_to_stop(self) -> None:
        self._stop.set()
        if self._starting is not None:
            self._starting.cancel()
            self._starting = None

    async def _parts(self, stack: contextlib.AsyncExitStack) -> graph.Parts:
        settings = self._settings
        preflight.check_global_hooks_directory(settings)
        modules = preflight.load_modules(settings)
        for warning in modules.warnings:
            self._log.warning(warning)
        configured = str(settings.helm_bin_path) if settings.helm_bin_path else None
        spawner = stack.enter_context(launcher.Launcher())
        run_child = functools.partial(children.run_child, spawner=spawner)
        helm = await binary.find(configured, self._environ, run_child)
        kube = await stack.enter_async_context(self._client())
        await check_namespace(kube, settings.namespace)
        workspace = preflight.make_workspace(settings)
        if not settings.debug_keep_tmp_files:
            stack.callback(shutil.rmtree, workspace, ignore_errors=True)
        manager = release_setup.release_manager(
            settings, helm, kube, workspace, self._environ, run_child, self._log
        )
        return graph.Parts(
            settings=settings,
            modules=modules,
            kube=kube,
            releases=await stack.enter_async_context(manager),
            workspace=workspace,
            run_child=run_child,
            meters=self._meters,
            log=self._log,
            environ=self._environ,
        )

    @contextlib.asynccontextmanager
    async def _client(self) -> AsyncIterator[client.KubeClient]:
        settings = self._settings
        access = auth.load_access(
            settings.kube_config, settings.kube_context, settings.kube_server, self._environ
        )
        self._log.info(f"API server {access.server}", credentials=access.description)
        kube = client.KubeClient(
            access, qps=settings.kube_client_qps, burst=settings.kube_client_burst, observer=self._meters
        )
        async with kube:
            yield kube

    async def _build(self, parts: graph.Parts) -> graph.Operator:
        recorder = events.EventRecorder(
            parts.kube, clock.SystemClock(), instance=self._environ.get("HOSTNAME", "")
        )
        self._recorder = recorder
        self._background.append(asyncio.create_task(recorder.run(), name="events"))
        config_map = events.ObjectReference(
            "v1", "ConfigMap", self._settings.config_map, self._settings.namespace
        )
        edits = observers.EditObserver(self._meters, self._log, recorder, config_map)
        return await graph.Graph(parts, edits, observers.ModuleObserver(self._meters, self._log)).build()

    async def _serve(self, operator: graph.Operator) -> None:
        self._status.serve(operator.engine, lambda: operator.source.alive)
        self._background += [
            asyncio.create_task(heartbeat.tick(self._meters), name="ticks"),
            asyncio.create_task(heartbeat.watch_lag(self._meters, clock.SystemClock()), name="lag"),
            asyncio.create_task(operator.queue_observer.keep_ages(operator.engine.queues), name="ages"),
            asyncio.create_task(operator.config.keep_in_step(), name="config"),
        ]
        work = asyncio.create_task(operator.engine.work(), name="engine")
        operator.source.start()
        stopped = asyncio.create_task(self._stop.wait(), name="stop")
        await asyncio.wait({work, stopped}, return_when=asyncio.FIRST_COMPLETED)
        stopped.cancel()
        await self._shut_down(operator, work)

    async def _shut_down(self, operator: graph.Operator, work: asyncio.Task[None]) -> None:
        self._status.stop()
        grace = self._settings.shutdown_grace
        self._log.info("stopping: running hooks and Helm calls get their time", seconds=grace)
        try:
            if not work.done():
                await operator.engine.drain(grace)
                work.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await work
        finally:
            await operator.source.stop()


async def check_namespace(kube: client.KubeClient, namespace: str) -> None:
    """Ask for the operator's namespace, which also shows whether the API server can be reached.

    Raises a :class:`ConfigurationError` when the namespace does not exist.
    """
    try:
        await kube.get(paths.of("v1", "namespaces", name=namespace), metadata_only=True)
    except kube_errors.NotFound:
        raise errors.ConfigurationError(
            f"namespace {namespace} does not exist; create it with 'kubectl create namespace {namespace}' "
            "or name another one with ADDON_OPERATOR_NAMESPACE or --namespace"
        ) from None
    except kube_errors.Unreachable as error:
        raise errors.ConfigurationError(
            f"{error}; check that the cluster runs, and name its kubeconfig with KUBE_CONFIG or --kube-config"
        ) from None
    except kube_errors.Forbidden:
        # A namespaced role is enough for the operator; whether the namespace is there shows in what follows.
        return
