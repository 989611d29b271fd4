"""What happens in admission, for metrics, the log and the status of presets.

Whoever has something to report takes ``tell: Listener`` and calls it with one of these.
They are msgspec Structs, because making that many dataclasses is felt at each start.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

import msgspec

from addon_operator.podpreset import model

Result = Literal["injected", "unchanged", "conflict", "error"]
Closing = Literal["no room", "made room", "slow", "handshake"]
Stored = Mapping[str, Any]
"""A PodPreset as the API server returns it."""
Parsed = model.Preset | model.InvalidPreset


class PodAdmitted(msgspec.Struct, frozen=True):
    """A pod was answered; dry runs count, too."""

    namespace: str
    result: Result
    seconds: float


class PresetsAnswered(msgspec.Struct, frozen=True):
    """These presets are new in a stored pod, or in conflict about it; dry runs do not count."""

    namespace: str
    presets: Sequence[model.PresetName]
    outcome: Literal["injected", "conflicts"]


class PresetStored(msgspec.Struct, frozen=True):
    """A preset is new or was changed."""

    stored: Stored
    parsed: Parsed


class PresetGone(msgspec.Struct, frozen=True):
    """A preset was deleted."""

    namespace: str
    name: model.PresetName


class ReferencesUnresolved(msgspec.Struct, frozen=True):
    """A stored pod has references that nothing resolves."""

    count: int


class Dropped(msgspec.Struct, frozen=True):
    """A pod is not checked, as too many wait or take too much, or has too many sources to read."""

    what: Literal["check", "sources"]


class SourceUnreadable(msgspec.Struct, frozen=True):
    """A ConfigMap or Secret that a container takes variables from cannot be read."""

    problem: str


class ReviewAnswered(msgspec.Struct, frozen=True):
    """A request was answered; who measures the server asks for nothing else."""

    path: str
    """Of a route."""
    status: int
    """Of HTTP."""
    seconds: float


class ReviewRefused(msgspec.Struct, frozen=True):
    """A request was not a proper review, or came at the wrong time."""

    path: str
    """Of a route."""
    status: int
    """Of HTTP."""
    reason: str
    """A sentence."""


class HandlerFailed(msgspec.Struct, frozen=True):
    """The handler of a path raised, or took too long (``TimeoutError``)."""

    path: str
    error: Exception
    is_allowed: bool = True
    """Whether what was asked is allowed all the same."""


class ConnectionClosed(msgspec.Struct, frozen=True):
    """A connection was closed for one of the site's bounds, or its handshake failed."""

    reason: Closing
    details: str


Event = (
    PodAdmitted
    | PresetsAnswered
    | PresetStored
    | PresetGone
    | ReferencesUnresolved
    | Dropped
    | SourceUnreadable
    | ReviewAnswered
    | ReviewRefused
    | HandlerFailed
    | ConnectionClosed
)
Listener = Callable[[Event], None]
"""Is called with each event, at once and in the loop of the admission server."""
