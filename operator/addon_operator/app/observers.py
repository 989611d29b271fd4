"""Who listens to the engine: metrics, the log, Events, Module objects, and the modules' states."""

import dataclasses
from typing import Final

from addon_operator.app import event_log, event_metrics
from addon_operator.engine import events, state
from addon_operator.engine.queues import tasks
from addon_operator.kernel import clock, names
from addon_operator.kube.objects import events as kube_events
from addon_operator.telemetry import metrics

_OF_MODULES: Final = (
    tasks.TaskKind.MODULE_RUN,
    tasks.TaskKind.MODULE_DELETE,
    tasks.TaskKind.MODULE_ENSURE_CRDS,
)


def all_of(*listeners: events.Listener) -> events.Listener:
    """Pass each event on to all of them, in their order."""

    def tell(event: events.Event) -> None:
        for listener in listeners:
            listener(event)

    return tell


def shown(meters: metrics.Metrics, log: event_log.Logger) -> events.Listener:
    """Listen with metrics and the log."""
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


def module_states(states: state.ModuleStates, time: clock.Clock) -> events.Listener:
    """Let the modules' states know of retries and of maintenance."""

    def tell(event: events.Event) -> None:
        match event:
            case events.TaskFailed(task=task, delay=float(delay)) if task.kind in _OF_MODULES:
                states.will_retry(names.ModuleName(task.owner), time.time() + delay)
            case events.MaintenanceChanged():
                states.maintain(event.module, event.mode)

    return tell
