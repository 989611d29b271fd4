"""Module objects as a part of the operator: made ready before the engine, ended after it."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Mapping
from typing import Final

import structlog

from addon_operator.app import module_status_writer
from addon_operator.app import settings as settings_module
from addon_operator.engine import module_files
from addon_operator.kernel import clock
from addon_operator.kube import auth, client, events
from addon_operator.telemetry import metrics

# A client of its own: what is told must not take requests away from what is done.
_QPS: Final = 20.0
_BURST: Final = 40
_PREPARE_SECONDS: Final = 5.0
_LAST_WRITES_SECONDS: Final = 2.0

Logger = structlog.typing.FilteringBoundLogger


@contextlib.asynccontextmanager
async def keeping(
    settings: settings_module.Settings,
    access: auth.ClusterAccess,
    modules: module_files.LoadedModules,
    meters: metrics.Metrics,
    log: Logger,
    environ: Mapping[str, str],
) -> AsyncIterator[module_status_writer.ModuleStatusWriter]:
    """Keep the Module objects of these modules, until the context ends; nothing is raised.

    The definition is there, if it may be applied, before the context begins: it is a kind of the cluster, and
    what charts see of the cluster should not change under their first runs.
    """
    time = clock.SystemClock()
    async with client.KubeClient(access, qps=_QPS, burst=_BURST, observer=meters) as kube:
        recorder = events.EventRecorder(kube, time, instance=environ.get("HOSTNAME", ""))
        writer = module_status_writer.ModuleStatusWriter(
            kube,
            recorder,
            settings.namespace,
            log,
            known=lambda: [files.module.name for files in modules.modules],
            time=time,
        )
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_PREPARE_SECONDS):
                await writer.prepare()
        tasks = [
            asyncio.create_task(recorder.run(), name="module-events"),
            asyncio.create_task(writer.run(), name="module-status"),
        ]
        try:
            yield writer
        finally:
            await _end(tasks, writer, recorder)


async def _end(
    tasks: "list[asyncio.Task[None]]",
    writer: module_status_writer.ModuleStatusWriter,
    recorder: events.EventRecorder,
) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(_LAST_WRITES_SECONDS):
            await writer.finish()
            await recorder.flush()
