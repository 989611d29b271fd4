"""How a module is, by how its resources are."""

import dataclasses
from collections.abc import Iterable, Sequence
from typing import Final

import msgspec
from msgspec import structs

from addon_operator.modules.health import pod_causes, resource_health

DEADLINE_SECONDS: Final = 600.0
"""How long a resource may be in progress if ``health.deadline`` says nothing."""
_NAMED: Final = 3
_HEALTHY: Final = resource_health.HealthState.HEALTHY
_WORST_FIRST: Final = (resource_health.HealthState.FAILED, resource_health.HealthState.PROGRESSING)


class ObservedHealth(msgspec.Struct, frozen=True):
    """How one resource of a module is, and since when."""

    resource: str
    """As people call it: ``Deployment web``."""
    health: resource_health.ResourceHealth
    since: float
    """When it got into this state, in seconds of the same clock as ``now``."""
    cause: pod_causes.Cause = pod_causes.UNKNOWN
    """Why, as the cluster writes of its pods or in an Event."""
    is_by_rule: bool = False
    """Whether a rule of the module says how it is: an Event may be about something else."""
    lasts: str = ""
    """For how long, if that is too long."""

    def __str__(self) -> str:
        """Say it: the cause, then the resource, then the rest, as tables and pages cut the end."""
        own, found = self.health, self.cause.text
        _, _, words = found.partition(": ")
        if not found or (words and words in own.message):
            first = own.cause or own.message
            rest = own.message.removesuffix(own.cause).rstrip(": ") if own.cause else ""
        elif self.is_by_rule and self.cause.is_event:
            first, rest = own.message, found
        else:
            first, rest = found, own.message
        return ", ".join(filter(None, (f"{first}: {self.resource}", rest, self.lasts)))


class ModuleHealth(msgspec.Struct, frozen=True):
    """How a module is."""

    state: resource_health.HealthState
    message: str = ""
    """The first three resources that are not healthy, failed ones first, and why; if all are, what somebody
    wishes of them, such as a pause."""
    next_deadline: float | None = None
    """When the first resource in progress will have been so for too long, if none changes before."""
    named: tuple[str, ...] = ()
    """The resources that the message names."""
    holds: bool = False
    """Whether what waits for it to be healthy waits: for a status that may never be written nothing does."""


def module_health(
    resources: Iterable[ObservedHealth], now: float, deadline: float = DEADLINE_SECONDS
) -> ModuleHealth:
    """Sum up how the resources of a module are at ``now``.

    What is in progress for ``deadline`` seconds or longer has failed. A module without resources is healthy.
    """
    observed = list(resources)
    wished = [
        one for one in observed if one.cause.is_wish or (one.health.message and one.health.state is _HEALTHY)
    ]
    troubled = [
        _after_deadline(one, now, deadline)
        for one in observed
        if one.health.state is not _HEALTHY
        and not one.cause.is_wish
        and (one.health.heals_at is None or one.health.heals_at > now)
    ]
    if not troubled:
        wished.sort(key=str)
        # Whether they still are wishes is read again.
        named = tuple(one.resource for one in wished[:_NAMED])
        return ModuleHealth(_HEALTHY, _told(wished), named=named)
    troubled.sort(key=lambda one: (_WORST_FIRST.index(one.health.state), one.resource))
    waiting = (
        _fails_at(one, deadline)
        for one in troubled
        if one.health.state is resource_health.HealthState.PROGRESSING
    )
    named = tuple(one.resource for one in troubled[:_NAMED])
    holds = any(one.health.heals_at is None for one in troubled)
    return ModuleHealth(troubled[0].health.state, _told(troubled), min(waiting, default=None), named, holds)


def _after_deadline(observed: ObservedHealth, now: float, deadline: float) -> ObservedHealth:
    if observed.health.state is not resource_health.HealthState.PROGRESSING:
        return observed
    if _fails_at(observed, deadline) > now:
        return observed
    is_late = now - observed.since >= deadline
    failed = dataclasses.replace(observed.health, state=resource_health.HealthState.FAILED, fails_at=None)
    return structs.replace(
        observed, health=failed, lasts=f"for more than {_duration(deadline)}" if is_late else ""
    )


def _fails_at(observed: ObservedHealth, deadline: float) -> float:
    moments = (observed.since + deadline, observed.health.fails_at, observed.health.heals_at)
    return min(moment for moment in moments if moment is not None)


def _duration(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min" if minutes and not rest else f"{round(seconds)} s"


def _told(troubled: Sequence[ObservedHealth]) -> str:
    named = [str(one) for one in troubled[:_NAMED]]
    if (rest := len(troubled) - _NAMED) > 0:
        named.append(f"and {rest} more")
    return "; ".join(named)
