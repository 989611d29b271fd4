"""What people are told of a module's resources: how they are, and what others do to them.

The same sentences stand in the log and in Events on the Module object.
"""

from typing import Final, NamedTuple

from addon_operator.engine import events
from addon_operator.kernel import names
from addon_operator.kube.objects import events as kube_events
from addon_operator.modules.health import module_health, resource_health

_SHOWN: Final = 5


class ResourceNotice(NamedTuple):
    """A sentence about a module."""

    type: kube_events.EventType
    reason: str
    """In one word, as Events have it."""
    text: str


def of(event: events.Event) -> ResourceNotice | None:
    """Return what is told of an event; ``None`` if nothing is."""
    match event:
        case events.HealthStands(health=health):
            notice = _of_health(health)
        case events.DriftChanged(report=report) if report is not None and report.resources:
            notice = ResourceNotice(
                "Warning",
                "Drifted",
                report.message if report.is_left else f"changed by others: {report.message}",
            )
        case events.ResourcesCorrected():
            text = f"changed by others, put back as the chart says: {names.listed(event.resources, _SHOWN)}"
            notice = ResourceNotice("Normal", "Corrected", text)
        case events.CorrectionsGivenUp():
            text = (
                f"{event.resource} is changed again and again by {event.manager or 'somebody'}; it stays as "
                "it is for some minutes. Find out who that is, or name the fields in drift.ignore"
            )
            notice = ResourceNotice("Warning", "CorrectionsGivenUp", text)
        case events.CureAwaited():
            notice = ResourceNotice("Normal", "Waits", f"waits for {', '.join(event.cure)}")
        case _:
            return None
    return notice


def _of_health(health: module_health.ModuleHealth) -> ResourceNotice:
    if health.state is resource_health.HealthState.HEALTHY:
        return ResourceNotice("Normal", "Healthy", "all resources are healthy again")
    return ResourceNotice("Warning", "Unhealthy", health.message)
