"""What a failed list or watch means for those that come after it, as a pure decision."""

import dataclasses
from typing import Final

from addon_operator.kube.client import api_errors
from addon_operator.kube.informers import watch_lines

_BY_CLASS: Final[tuple[tuple[type[Exception], str], ...]] = (
    (watch_lines.SilentStream, "silent"),
    (api_errors.Unreachable, "unreachable"),
    (api_errors.Unauthorized, "unauthorized"),
    (api_errors.Forbidden, "forbidden"),
    (api_errors.NotFound, "not_found"),
    (api_errors.Gone, "expired"),
    (api_errors.TooManyRequests, "too_many_requests"),
    (api_errors.BrokenAnswer, "broken_answer"),
)
_LASTING: Final = frozenset({"forbidden", "not_found", "unauthorized", "refused"})
_REFUSED: Final = frozenset({400, 422})
"""How API servers answer to parameters that they do not know."""
_GONE: Final = 410
_SERVER_ERRORS: Final = 500


@dataclasses.dataclass(frozen=True, slots=True)
class Failure:
    """The consequences of an error."""

    reason: str
    """One word for metrics."""
    starts_anew: bool
    """Whether the watch cannot go on from where it was."""
    is_lasting: bool
    """Whether somebody has to do something about it, so that it is told at once."""
    is_refusal: bool = False
    """Whether the API server did not understand the request."""


def assess(error: api_errors.KubernetesError) -> Failure:
    """What follows from an error."""
    reason = _reason(error)
    return Failure(
        reason,
        starts_anew=reason in ("expired", "broken_answer", "refused"),
        is_lasting=reason in _LASTING,
        is_refusal=reason == "refused",
    )


def _reason(error: api_errors.KubernetesError) -> str:
    if isinstance(error, watch_lines.WatchFailed):
        return "expired" if error.code == _GONE else "error_event"
    for class_, reason in _BY_CLASS:
        if isinstance(error, class_):
            return reason
    if isinstance(error, api_errors.ApiError):
        return (
            "refused"
            if error.status in _REFUSED
            else "server_error"
            if error.status >= _SERVER_ERRORS
            else "error"
        )
    return "error"
