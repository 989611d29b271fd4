"""What happens in admission, for metrics, the log and the status of presets.

Whoever has something to report takes ``tell: Listener`` and calls it with one of these.
"""

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

from addon_operator.podpreset import model

Result = Literal["injected", "unchanged", "conflict", "error"]
Closing = Literal["no room", "made room", "slow", "handshake"]
Stored = Mapping[str, Any]
"""A PodPreset as the API server returns it."""
Parsed = model.Preset | model.InvalidPreset


@dataclasses.dataclass(frozen=True, slots=True)
class PodAdmitted:
    """A pod was answered; dry runs count, too."""

    namespace: str
    result: Result
    seconds: float


@dataclasses.dataclass(frozen=True, slots=True)
class PresetsInjected:
    """These presets are new in a pod that is not a dry run's."""

    namespace: str
    presets: Sequence[model.PresetName]


@dataclasses.dataclass(frozen=True, slots=True)
class PresetsConflicted:
    """These presets were not injected into a pod that is stored."""

    namespace: str
    presets: Sequence[model.PresetName]


@dataclasses.dataclass(frozen=True, slots=True)
class PresetStored:
    """A preset is new or was changed."""

    stored: Stored
    parsed: Parsed


@dataclasses.dataclass(frozen=True, slots=True)
class PresetGone:
    """A preset was deleted."""

    namespace: str
    name: model.PresetName


@dataclasses.dataclass(frozen=True, slots=True)
class ReferencesUnresolved:
    """A stored pod has references that nothing resolves."""

    count: int


@dataclasses.dataclass(frozen=True, slots=True)
class CheckDropped:
    """A pod was not checked: too many wait, or those that wait take too much memory."""


@dataclasses.dataclass(frozen=True, slots=True)
class SourcesDropped:
    """A pod has too much to read: what its containers take variables from counts as unreadable."""


@dataclasses.dataclass(frozen=True, slots=True)
class SourceUnreadable:
    """A ConfigMap or Secret that a container takes variables from cannot be read."""

    problem: str


@dataclasses.dataclass(frozen=True, slots=True)
class ReviewAnswered:
    """A request was answered; who measures the server asks for nothing else."""

    path: str
    """Of a route."""
    status: int
    """Of HTTP."""
    seconds: float


@dataclasses.dataclass(frozen=True, slots=True)
class ReviewRefused:
    """A request was not a proper review, or came at the wrong time."""

    path: str
    """Of a route."""
    status: int
    """Of HTTP."""
    reason: str
    """A sentence."""


@dataclasses.dataclass(frozen=True, slots=True)
class HandlerFailed:
    """The handler of a path raised, or took too long (``TimeoutError``)."""

    path: str
    error: Exception


@dataclasses.dataclass(frozen=True, slots=True)
class ConnectionClosed:
    """A connection was closed for one of the site's bounds, or its handshake failed."""

    reason: Closing
    details: str


Event = (
    PodAdmitted
    | PresetsInjected
    | PresetsConflicted
    | PresetStored
    | PresetGone
    | ReferencesUnresolved
    | CheckDropped
    | SourcesDropped
    | SourceUnreadable
    | ReviewAnswered
    | ReviewRefused
    | HandlerFailed
    | ConnectionClosed
)
Listener = Callable[[Event], None]
"""Is called with each event, at once and in the loop of the admission server."""
