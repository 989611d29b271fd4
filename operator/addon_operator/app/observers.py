"""Who listens to the engine: metrics, the log, Events, Module objects, and the modules' states."""

import asyncio
import dataclasses
from collections.abc import Callable, Sequence
from typing import Final

from addon_operator.app import event_log, event_metrics
from addon_operator.engine import events, state
from addon_operator.engine.queues import task_queue, tasks
from addon_operator.kernel import clock, names
from addon_operator.kube.objects import events as kube_events
from addon_operator.status import module_status_writer
from addon_operator.telemetry import metrics

_OF_MODULES: Final = (
    tasks.TaskKind.MODULE_RUN,
    tasks.TaskKind.MODULE_DELETE,
    tasks.TaskKind.MODULE_ENSURE_CRDS,
)
AGES_SECONDS: Final = 5.0
"""Between two looks at the queues."""


def all_of(*listeners: events.Listener) -> events.Listener:
    """Pass each event on to all of them, in their order."""

    def tell(event: events.Event) -> None:
        for listener in listeners:
            listener(event)

    return tell


def shown(meters: metrics.Metrics, log: event_log.Logger) -> events.Listener:
    """Metrics and the log."""
    return all_of(event_metrics.EventMetrics(meters), event_log.EventLog(log))


def config_map_events(
    recorder: kube_events.EventRecorder, config_map: kube_events.ObjectReference
) -> events.Listener:
    """Show a wrong edit on the values ConfigMap: where, never which values."""

    def tell(event: events.Event) -> None:
        if not isinstance(event, events.ConfigRefused):
            return
        places = "; ".join(violation.partition(": ")[0] for violation in event.error.violations)
        recorder.record(
            dataclasses.replace(config_map, uid=event.uid),
            "Warning",
            "InvalidValues",
            f"{event.follows[0].upper()}{event.follows[1:]}. Wrong: {places}. "
            "The log of the operator says more.",
        )

    return tell


def module_objects(writer: module_status_writer.ModuleStatusWriter) -> events.Listener:
    """Show what happens to modules in their objects, and in Events about these."""

    def tell(event: events.Event) -> None:
        match event:
            case state.ModuleChanged():
                writer.module_changed(event.state)
            case events.ModuleGone():
                writer.module_gone(event.module)
            case events.ReleaseEnsured():
                writer.release_ensured(event.module, event.outcome)
            case events.ResourcesShared(modules=modules):
                text = f"Modules {' and '.join(modules)} both have {event_log.shown(event.resources)}."
                for module in modules:
                    writer.tell(module, "SharedObject", text)

    return tell


def module_states(states: state.ModuleStates, time: clock.Clock) -> events.Listener:
    """Let the modules' states know of retries and of maintenance."""

    def tell(event: events.Event) -> None:
        match event:
            case events.TaskFailed(task=task, delay=float(delay)) if task.kind in _OF_MODULES:
                states.will_retry(names.ModuleName(task.owner), time.time() + delay)
            case events.MaintenanceChanged():
                states.maintain(event.module, event.mode)

    return tell


async def keep_ages(queues: Callable[[], Sequence[task_queue.TaskQueue]]) -> None:
    """Keep the reported age of heads true while nothing happens, until cancelled."""
    while True:
        await asyncio.sleep(AGES_SECONDS)
        for queue in queues():
            queue.report()
