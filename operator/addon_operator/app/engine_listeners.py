"""Who listens to the engine: metrics, the log, Events of the ConfigMap, and the modules' states."""

from collections.abc import Callable, Mapping
from typing import Final

from msgspec import structs

from addon_operator.app import event_log, event_metrics
from addon_operator.engine import config_events, events, module_states, state, tasks
from addon_operator.kernel import clock, names
from addon_operator.kube.objects import events as kube_events
from addon_operator.modules import findings
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


def config_listener(
    recorder: kube_events.EventWriter,
    objects: Mapping[str, kube_events.ObjectReference],
    uid: Callable[[], str],
) -> events.Listener:
    """Show a wrong edit on the values ConfigMap or Secret, by its kind: where, never which values.

    What is removed shows on the ConfigMap, whose ``uid`` is asked for.
    """

    def tell(event: events.Event) -> None:
        about = structs.replace(objects["ConfigMap"], uid=uid())
        match event:
            case events.RemovalDue():
                recorder.record(about, "Warning", "Removed", f"{event.text[0].upper()}{event.text[1:]}.")
            case events.ObjectsKept(has_module=False):
                recorder.record(about, "Warning", "Kept", f"Of release {event.release}: {event.text}.")
            case config_events.ConfigMissing():
                about = structs.replace(objects[event.kind], uid=event.uid)
                recorder.record(about, "Warning", "Missing", f"{event.source} is missing: {event.follows}.")
            case config_events.ConfigFound(lost=lost) if lost:
                about = structs.replace(objects[event.kind], uid=event.uid)
                recorder.record(about, "Warning", "HookValuesLost", f"{event.loss}.")
            case config_events.ConfigRefused():
                places = "; ".join(violation.partition(": ")[0] for violation in event.error.violations)
                recorder.record(
                    structs.replace(objects[event.kind], uid=event.uid),
                    "Warning",
                    "InvalidValues",
                    f"{event.follows[0].upper()}{event.follows[1:]}. Wrong: {places}. "
                    "The log of the operator says more.",
                )

    return tell


def states_listener(states: module_states.ModuleStates, time: clock.Clock) -> events.Listener:
    """Let the modules' states know of retries, maintenance, health, drift, definitions and webhooks."""

    def tell(event: events.Event) -> None:
        match event:
            case events.TaskFailed(task=task, delay=float(delay)) if task.kind in _OF_MODULES:
                at = None if event.is_final else time.time() + delay
                states.will_retry(names.ModuleName(task.owner), at, task.attempts)
            case events.MaintenanceChanged():
                states.maintain(event.module, event.mode)
            case events.HealthChanged():
                states.note_health(event.module, event.health)
            case events.DriftChanged():
                states.note_drift(event.module, event.report)
            case events.CureAwaited():
                states.await_cure(event.module, event.cure)
            case state.SuspensionChanged():
                states.suspend(event.module, event.now)
            case events.DefinitionsLeftOut():
                states.note(event.module, findings.DEFINITIONS_LEFT_OUT, event.text)
            case events.RegistrationsChanged() if event.owner:
                states.note(names.ModuleName(event.owner), findings.NOT_REGISTERED, event.text)

    return tell
