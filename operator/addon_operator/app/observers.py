"""Who listens to the engine: metrics, the log, Events, Module objects, and the modules' states."""

import asyncio
import contextlib
import dataclasses
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from typing import Any, Final

from addon_operator.aio import background, waiting
from addon_operator.app import event_log, event_metrics, tools
from addon_operator.engine import events, state, tasks
from addon_operator.kernel import clock, fencing, names
from addon_operator.kube.client import client, retries
from addon_operator.kube.objects import events as kube_events
from addon_operator.loading import module_files
from addon_operator.status import module_status_writer
from addon_operator.telemetry import metrics

_OF_MODULES: Final = (
    tasks.TaskKind.MODULE_RUN,
    tasks.TaskKind.MODULE_DELETE,
    tasks.TaskKind.MODULE_ENSURE_CRDS,
)
# A client of its own: reporting must not take requests away from the work.
_RATE: Final = retries.Rate(20.0, 40)
_PREPARE_SECONDS: Final = 5.0
_LAST_WRITES_SECONDS: Final = 1.0


def all_of(*listeners: events.Listener) -> events.Listener:
    """Pass each event on to all of them, in their order."""

    def tell(event: events.Event) -> None:
        for listener in listeners:
            listener(event)

    return tell


def shown(meters: metrics.Metrics, log: event_log.Logger) -> events.Listener:
    """Listen with metrics and the log."""
    return all_of(event_metrics.EventMetrics(meters), event_log.EventLog(log))


def config_events(
    recorder: kube_events.EventWriter,
    objects: Mapping[str, kube_events.ObjectReference],
    uid: Callable[[], str],
) -> events.Listener:
    """Show a wrong edit on the values ConfigMap or Secret, by its kind: where, never which values.

    What is removed shows on the ConfigMap, whose ``uid`` is asked for.
    """

    def tell(event: events.Event) -> None:
        if isinstance(event, events.RemovalDue):
            about = dataclasses.replace(objects["ConfigMap"], uid=uid())
            recorder.record(about, "Warning", "Removed", f"{event.text[0].upper()}{event.text[1:]}.")
            return
        if not isinstance(event, events.ConfigRefused):
            return
        places = "; ".join(violation.partition(": ")[0] for violation in event.error.violations)
        recorder.record(
            dataclasses.replace(objects[event.kind], uid=event.uid),
            "Warning",
            "InvalidValues",
            f"{event.follows[0].upper()}{event.follows[1:]}. Wrong: {places}. "
            "The log of the operator says more.",
        )

    return tell


def module_states(states: state.ModuleStates, time: clock.Clock) -> events.Listener:
    """Let the modules' states know of retries, of maintenance, and of definitions that are not in force."""

    def tell(event: events.Event) -> None:
        match event:
            case events.TaskFailed(task=task, delay=float(delay)) if task.kind in _OF_MODULES:
                states.will_retry(names.ModuleName(task.owner), time.time() + delay)
            case events.MaintenanceChanged():
                states.maintain(event.module, event.mode)
            case events.DefinitionsLeftOut():
                states.leave_out_definitions(event.module, event.text)

    return tell


def kept(part: str, work: Callable[[], Awaitable[None]], tell: events.Listener) -> asyncio.Task[None]:
    """Begin work that goes on until it is cancelled: a defect of it is told, and it begins again."""

    def failed(error: Exception, delay: float) -> None:
        tell(events.PartFailed(part, error, delay))

    return asyncio.create_task(background.kept(work, failed), name=part)


def stray_defects(
    meters: metrics.Metrics, log: event_log.Logger
) -> Callable[[asyncio.AbstractEventLoop, dict[str, Any]], None]:
    """Return what an event loop calls with defects that nobody waits for, of tasks and callbacks."""

    def report(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        error = context.get("exception")
        where = context.get("task") or context.get("future") or context.get("handle")
        if where is None or error is None:
            loop.default_exception_handler(context)
            return
        name = where.get_name() if isinstance(where, asyncio.Task) else "callback"
        meters.process.internal_errors_total.labels(part="background").inc()
        log.error(f"a part of the operator failed: {name}; report this bug with the log", exc_info=error)

    return report


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
            case events.ReleaseEnsured():
                self._writer.release_ensured(event.module, event.outcome)
            case events.ResourcesShared(modules=modules):
                text = f"Modules {' and '.join(modules)} both have {event_log.shown(event.resources)}."
                for module in modules:
                    self._writer.tell(module, "SharedObject", text)

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
        self._tasks.append(kept(part, work, self._tell))

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
            time=time,
        )
        objects = ModuleObjects(writer, recorder, shown(meters, parts.log))
        await objects.begin()
        try:
            yield objects
        finally:
            await objects.finish()
