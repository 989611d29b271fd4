"""The Module objects of the operator that runs, kept as the engine tells."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from typing import Any, Final

from addon_operator.aio import waiting
from addon_operator.app import engine_listeners, event_log, kept_work, resource_notices, tools
from addon_operator.engine import events, state
from addon_operator.kernel import fencing, names
from addon_operator.kube.client import client, retries
from addon_operator.kube.objects import events as kube_events
from addon_operator.loading import module_files
from addon_operator.status import module_status, module_status_writer
from addon_operator.telemetry import metrics

# A client of its own: reporting must not take requests away from the work.
_RATE: Final = retries.Rate(20.0, 40)
_PREPARE_SECONDS: Final = 5.0
_LAST_WRITES_SECONDS: Final = 1.0


class ModuleObjects:
    """The Module objects, and the Events about them."""

    def __init__(
        self,
        writer: module_status_writer.ModuleStatusWriter,
        recorder: kube_events.EventWriter,
        tell: events.Listener,
    ) -> None:
        self._writer = writer
        self._tell = tell
        self._recorder = recorder
        self._tasks: list[asyncio.Task[None]] = []

    def show(self, event: events.Event) -> None:
        """Show what happens to modules; a :data:`.events.Listener`."""
        match event:
            case state.ModuleChanged():
                self._writer.module_changed(event.state)
            case events.ModuleGone():
                self._writer.module_gone(event.module)
            case state.SuspensionChanged():
                self._writer.suspended(event.module, event.now)
            case events.ReleaseEnsured() | events.RevisionSeen() | events.ModuleObjectLost():
                self._of_objects(event)
            case events.HeldBack() | events.ObjectsKept():
                self._of_removals(event)
            case events.ResourcesShared(modules=modules):
                text = f"Modules {' and '.join(modules)} both have {event_log.shown(event.resources)}"
                text += f", which belongs to {modules[-1]}."
                for module in modules:
                    self._writer.tell(module, "SharedObject", text)
            case events.ModuleEvent():
                if (notice := resource_notices.of(event)) is not None:
                    text = f"{notice.text[0].upper()}{notice.text[1:]}."
                    self._writer.tell(event.module, notice.reason, text, notice.type)

    def _of_objects(
        self, event: events.ReleaseEnsured | events.RevisionSeen | events.ModuleObjectLost
    ) -> None:
        match event:
            case events.ReleaseEnsured():
                self._writer.release_ensured(event.module, event.outcome)
            case events.RevisionSeen():
                self._writer.revision_seen(event.module, event.revision)
            case events.ModuleObjectLost():
                self._writer.object_lost(event.module)

    def _of_removals(self, event: events.HeldBack | events.ObjectsKept) -> None:
        match event:
            case events.HeldBack(has_module=False):
                self._writer.purge_held(event.module, event.held)
            case events.ObjectsKept(has_module=True):
                self._writer.tell(names.ModuleName(event.release), "Kept", f"{event.text}.")

    def shown(self, module: str) -> module_status.Shown | None:
        """Return what the cluster shows of a module; see :meth:`.ModuleStatusWriter.shown`."""
        return self._writer.shown(module)

    async def recall(self) -> None:
        """Read what operators before this one told of modules; see :meth:`.ToldEvents.recall`."""
        await self._writer.told.recall()

    def remember(self, name: str, told: Mapping[str, Any]) -> None:
        """Keep in the object of a module what targets of notifications were told; returns at once."""
        self._writer.notified(name, told)

    async def begin(self) -> None:
        """Have the definition applied, if it may be, and write from now on.

        The definition is a kind of the cluster: what charts see of the cluster should not change under their
        first runs.
        """
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_PREPARE_SECONDS):
                await self._writer.prepare()
        self._keep("module-events", self._recorder.run)
        self._keep("module-status", self._writer.run)

    def _keep(self, part: str, work: Callable[[], Awaitable[None]]) -> None:
        self._tasks.append(kept_work.kept(part, work, self._tell))

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
                await self._writer.finish()
                await self._recorder.flush()


@contextlib.asynccontextmanager
async def keeping(
    parts: tools.Tools, modules: module_files.LoadedModules, meters: metrics.Metrics, fence: fencing.Fence
) -> AsyncIterator[ModuleObjects]:
    """Keep the Module objects of these modules, until the context ends or it is asked to finish."""
    time = waiting.SystemTime()
    access = parts.kube.access
    async with client.KubeClient(access, rate=_RATE, done=meters.request_done, fence=fence) as kube:
        recorder = kube_events.EventWriter(kube, time, instance=parts.environ.get("HOSTNAME", ""))
        writer = module_status_writer.ModuleStatusWriter(
            kube,
            recorder,
            parts.settings.namespace,
            parts.log,
            known=lambda: [files.module.name for files in modules.modules],
            stays=lambda: parts.releases.to_confirm,
            time=time,
        )
        objects = ModuleObjects(writer, recorder, engine_listeners.shown(meters, parts.log))
        await objects.begin()
        try:
            yield objects
        finally:
            await objects.finish()
