"""What happens to bindings of hooks to objects; see :mod:`addon_operator.engine.events`."""

from addon_operator.engine import events, state
from addon_operator.hook_contract.configuration import bindings


class BindingEvent(events.Event, frozen=True):
    """Something that happened to a binding of a hook."""

    hook: state.Hook
    binding: bindings.KubernetesBinding


class BindingWaits(BindingEvent, frozen=True):
    """The objects of a binding cannot be followed, or can be again; reported once for each reason."""

    reason: str | None
    """``None`` when they are followed again."""


class SnapshotChanged(BindingEvent, frozen=True):
    """A snapshot holds so many objects."""

    objects: int
    size: int | None
    """Bytes of JSON, if they are known."""


class ObjectsFiltered(BindingEvent, frozen=True):
    """The jqFilter of a binding was applied to so many objects."""

    count: int
    seconds: float
    """For all of them."""


class ChangesHandled(BindingEvent, frozen=True):
    """So many changes of objects were put where they belong."""

    count: int
    seconds: float
    """For all of them."""


class BindingGone(BindingEvent, frozen=True):
    """A binding was ended."""
