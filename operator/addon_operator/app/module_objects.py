"""Module objects as a part of the operator: made ready before the engine, ended after it."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from typing import Final

from addon_operator.app import graph
from addon_operator.kernel import clock, fencing
from addon_operator.kube.client import client, retries
from addon_operator.kube.objects import events
from addon_operator.status import module_status_writer

# A client of its own: reporting must not take requests away from the work.
_RATE: Final = retries.Rate(20.0, 40)
_PREPARE_SECONDS: Final = 5.0
_LAST_WRITES_SECONDS: Final = 1.0


class ModuleObjects:
    """The writer of Module objects and the recorder of Events about them."""

    def __init__(
        self, writer: module_status_writer.ModuleStatusWriter, recorder: events.EventRecorder
    ) -> None:
        self.writer = writer
        self._recorder = recorder
        self._tasks: list[asyncio.Task[None]] = []

    async def begin(self) -> None:
        """Have the definition applied, if it may be, and write from now on.

        The definition is a kind of the cluster: what charts see of the cluster should not change under their
        first runs.
        """
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_PREPARE_SECONDS):
                await self.writer.prepare()
        self._tasks = [
            asyncio.create_task(self._recorder.run(), name="module-events"),
            asyncio.create_task(self.writer.run(), name="module-status"),
        ]

    async def finish(self) -> None:
        """Write what waits, as far as that is quick, and stop writing."""
        if not self._tasks:
            return
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._tasks = []
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_LAST_WRITES_SECONDS):
                await self.writer.finish()
                await self._recorder.flush()


@contextlib.asynccontextmanager
async def keeping(parts: graph.Parts, fence: fencing.Fence = fencing.OPEN) -> AsyncIterator[ModuleObjects]:
    """Keep the Module objects of these modules, until the context ends or it is asked to finish."""
    time = clock.SystemClock()
    access, meters = parts.kube.access, parts.meters
    async with client.KubeClient(access, rate=_RATE, done=meters.request_done, fence=fence) as kube:
        recorder = events.EventRecorder(kube, time, instance=parts.environ.get("HOSTNAME", ""))
        writer = module_status_writer.ModuleStatusWriter(
            kube,
            recorder,
            parts.settings.namespace,
            parts.log,
            known=lambda: [files.module.name for files in parts.modules.modules],
            time=time,
        )
        objects = ModuleObjects(writer, recorder)
        await objects.begin()
        try:
            yield objects
        finally:
            await objects.finish()
