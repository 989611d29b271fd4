"""Events of Kubernetes that nobody writes."""

from typing_extensions import override

from addon_operator.kube.objects import events


class Recorder(events.EventWriter):
    """Takes down what it is told."""

    def __init__(self) -> None:
        self.told: list[tuple[events.ObjectReference, events.EventType, str, str]] = []

    @override
    def record(
        self,
        about: events.ObjectReference,
        type_: events.EventType,
        reason: str,
        message: str,
        *,
        component: str = events.COMPONENT,
    ) -> None:
        self.told.append((about, type_, reason, message))
