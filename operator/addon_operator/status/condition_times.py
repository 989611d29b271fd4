"""Since when the conditions of a module are as they are, also over restarts and fail-over of the operator.

A new operator knows nothing of a module until its first run: what it has to call unknown for that while is no
news, and a condition that then says what it said before has the time that it had. What it said is kept in the
Module object, so that a second restart meanwhile does not lose it.
"""

from collections.abc import Mapping
from typing import Any, Final, TypedDict

import msgspec

from addon_operator.engine import state
from addon_operator.kernel import clock

_STALLED: Final = "Stalled"
_OTHERWISE: Final = frozenset(("Disabled", "Deleting", "DeleteFailed", "Maintenance"))
"""Reasons for which a condition is as it is on purpose: what it said before is of no interest then."""
_RETRIED: Final = (state.ModuleStatus.PENDING, state.ModuleStatus.RUNNING, state.ModuleStatus.FAILED)


class Earlier(TypedDict):
    """What a condition said that is unknown for now."""

    type: str
    status: str
    lastTransitionTime: str


class Time(msgspec.Struct, frozen=True):
    """What a condition says, and since when."""

    status: str
    reason: str
    at: str
    """RFC 3339, UTC."""
    earlier: "Time | None" = None
    """What it said before it became unknown for now."""


Times = Mapping[str, Time]
"""By type of condition."""


def stored(status: Mapping[str, Any]) -> dict[str, Time]:
    """Return what the status of a Module object says."""
    earlier = {each["type"]: _time(each) for each in status.get("earlier") or ()}
    timed = [each for each in status.get("conditions") or () if each.get("lastTransitionTime")]
    return {each["type"]: _time(each, earlier.get(each["type"])) for each in timed}


def _time(found: Mapping[str, Any], earlier: Time | None = None) -> Time:
    return Time(found["status"], found.get("reason", ""), found["lastTransitionTime"], earlier)


def after(module: state.ModuleState, before: Times, said: Mapping[str, tuple[str, str]], now: float) -> Times:
    """Return the times of conditions that say now these statuses, for these reasons."""
    at = clock.rfc3339(now)
    return {
        type_: _after(module, type_, before.get(type_), status, reason, at)
        for type_, (status, reason) in said.items()
    }


def _after(
    module: state.ModuleState, type_: str, before: Time | None, status: str, reason: str, now: str
) -> Time:
    earlier = None if before is None else before.earlier
    if not _is_passing(module, type_, status, reason):
        same = (each.at for each in (before, earlier) if each is not None and each.status == status)
        return Time(status, reason, next(same, now))
    if before is None:
        return Time(status, reason, now)
    begins = module.runs == 0 or (type_ == _STALLED and module.tries > 0)
    if earlier is None and begins and status != before.status and _is_settled(type_, before):
        earlier = before
    return Time(status, reason, before.at if before.status == status else now, earlier)


def _is_passing(module: state.ModuleState, type_: str, status: str, reason: str) -> bool:
    """Say whether a condition is as it is only until more is known."""
    if type_ == _STALLED:
        return status == "False" and module.status in _RETRIED
    return status == "Unknown" and reason not in _OTHERWISE


def _is_settled(type_: str, before: Time) -> bool:
    is_said = before.status == "True" if type_ == _STALLED else before.status != "Unknown"
    return is_said and before.reason not in _OTHERWISE


def earlier(times: Times) -> list[Earlier]:
    """Return what is kept of conditions that are unknown for now."""
    return [
        Earlier(type=type_, status=each.earlier.status, lastTransitionTime=each.earlier.at)
        for type_, each in times.items()
        if each.earlier is not None
    ]
