"""Why the pods of something do not run, from what the cluster writes of them, in the words of its users."""

import datetime as dt
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

import msgspec

from addon_operator.kernel.json_types import KubernetesObject

PENDING: Final = "Pending: "
"""How the cause begins of a pod that no node takes."""
_USUAL: Final = frozenset({"ContainerCreating", "PodInitializing"})
"""Reasons to wait that every pod has for a moment."""
_LONGEST: Final = 300
_WITH_MESSAGE: Final = frozenset({"CreateContainerConfigError", "CreateContainerError", "RunContainerError"})
"""Reasons that say nothing without their message."""
_BEFORE: Final = 30.0
"""Seconds that an Event may be earlier than what it is the cause of."""
_INT64: Final = range(-(2**63), 2**63)


class Cause(msgspec.Struct, frozen=True):
    """Why something is not healthy, as the cluster writes."""

    text: str = ""
    """Empty if it says nothing."""
    is_event: bool = False
    """Whether an Event says so."""
    is_wish: bool = False
    """Whether it is as somebody wants it, and no trouble."""


UNKNOWN: Final = Cause()


def cause_of_pods(pods: Iterable[KubernetesObject]) -> str:
    """Return why the first pod that says so does not run: ``ImagePullBackOff "web:1.2" (pod web-7d9-x)``.

    The newest pods are asked first, as they are those of the last change. Empty if none says anything.
    """
    for pod in sorted(
        pods, key=lambda each: _text(_part(each, "metadata"), "creationTimestamp"), reverse=True
    ):
        if cause := cause_of_pod(pod):
            return f"{cause} (pod {_text(_part(pod, 'metadata'), 'name')})"
    return ""


def waits_for_consumer(found: Iterable[KubernetesObject]) -> bool:
    """Say whether the newest Event about a claim is that it gets its volume with its first consumer."""
    newest = max(found, key=_seen, default=None)
    return newest is not None and newest.get("reason") == "WaitForFirstConsumer"


def newest_warning(found: Iterable[KubernetesObject], since: float = 0.0) -> str:
    """Return the reason and message of the newest Event that warns; empty without one.

    ``since``: when the trouble began, in seconds since the epoch. What was seen last before, is about
    something else.
    """
    warnings = [each for each in found if each.get("type") == "Warning" and not _is_older(each, since)]
    if not warnings:
        return ""
    newest = max(warnings, key=_seen)
    return _short(f"{_text(newest, 'reason')}: {_text(newest, 'message')}")


def _seen(event: KubernetesObject) -> str:
    series = _text(_part(event, "series"), "lastObservedTime")
    times = (_text(event, key) for key in ("lastTimestamp", "eventTime", "firstTimestamp"))
    return next(filter(None, (series, *times)), "")


def _is_older(event: KubernetesObject, since: float) -> bool:
    try:
        seen = dt.datetime.fromisoformat(_seen(event)).timestamp()
    except (ValueError, OverflowError):
        return False
    return seen < since - _BEFORE


def cause_of_pod(pod: KubernetesObject) -> str:
    """Return why a pod does not run; empty if it does not say."""
    status = _part(pod, "status")
    for container in (*_items(status, "initContainerStatuses"), *_items(status, "containerStatuses")):
        if cause := _of_container(container):
            return cause
    for condition in _items(status, "conditions"):
        if condition.get("type") == "PodScheduled" and condition.get("status") == "False":
            return _short(f"{PENDING}{_text(condition, 'message')}")
    if _text(status, "phase") == "Failed":
        told = ": ".join(filter(None, (_text(status, "reason"), _text(status, "message"))))
        return _short(told) or _ended_badly(status)
    if any(one.get("ready") is False and _running(one) for one in _items(status, "containerStatuses")):
        return "runs, and its readiness probe does not succeed"
    return ""


def _running(container: Mapping[str, Any]) -> bool:
    return bool(_part(_part(container, "state"), "running"))


def _ended_badly(status: Mapping[str, Any]) -> str:
    for container in _items(status, "containerStatuses"):
        ended = _part(_part(container, "state"), "terminated")
        if told := _exit(ended):
            return f"failed, {told}"
    return "failed"


def _of_container(container: Mapping[str, Any]) -> str:
    waiting = _part(_part(container, "state"), "waiting")
    reason = _text(waiting, "reason")
    if not reason or reason in _USUAL:
        return ""
    if "Image" in reason:
        return _short(f'{reason} "{_text(container, "image")}"')
    if reason in _WITH_MESSAGE:
        return _short(f"{reason}: {_text(waiting, 'message')}")
    ended = _exit(_part(_part(container, "lastState"), "terminated"))
    return _short(f"{reason}, {ended}" if ended else reason)


def _exit(ended: Mapping[str, Any]) -> str:
    code, reason = ended.get("exitCode"), _text(ended, "reason")
    # What is no number of the API counts as missing; True is a number for Python.
    if not isinstance(code, int) or isinstance(code, bool) or code not in _INT64:
        return ""
    return f"exit code {code}" + (f" ({reason})" if reason not in ("", "Error", "Completed") else "")


def _short(text: str) -> str:
    flat = " ".join(text[: 2 * _LONGEST].split()).rstrip(":.")
    return flat if len(flat) <= _LONGEST else f"{flat[: _LONGEST - 1]}…"


def _part(found: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    value = found.get(key)
    return value if isinstance(value, dict) else {}


def _text(found: Mapping[str, Any], key: str) -> str:
    value = found.get(key)
    return value if isinstance(value, str) else ""


def _items(found: Mapping[str, Any], key: str) -> Iterator[Mapping[str, Any]]:
    value = found.get(key)
    for item in value if isinstance(value, list) else ():
        if isinstance(item, dict):
            yield item
