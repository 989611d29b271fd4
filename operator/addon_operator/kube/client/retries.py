"""When a request is sent again, as a pure decision.

A request that was refused for load (429) was not carried out and may always go again; after a 5xx or a broken
connection only reads may, since a write could have been carried out.
"""

import dataclasses
from typing import Final

MAX_ATTEMPTS: Final = 5
_FIRST_DELAY: Final = 0.2
_MAX_DELAY: Final = 10.0
_TRANSIENT: Final = frozenset({500, 502, 503, 504})
_READS: Final = frozenset({"GET", "HEAD"})


@dataclasses.dataclass(frozen=True, slots=True)
class Attempt:
    """A try that did not succeed."""

    number: int
    """1 for the first."""
    method: str
    status: int | None
    """HTTP status; ``None`` if no answer came."""
    retry_after: float | None
    """Seconds that the server asked to wait."""


def delay(attempt: Attempt, jitter: float) -> float | None:
    """Seconds until the next try, or ``None`` to give up; ``jitter`` is from 0 to 1."""
    if attempt.number >= MAX_ATTEMPTS or not _may_repeat(attempt):
        return None
    backoff = min(_MAX_DELAY, _FIRST_DELAY * 2.0 ** (attempt.number - 1)) * (0.5 + jitter)
    if attempt.retry_after is None:
        return backoff
    return min(_MAX_DELAY, attempt.retry_after) + _FIRST_DELAY * jitter


def _may_repeat(attempt: Attempt) -> bool:
    if attempt.status == 429:
        return True
    return attempt.method in _READS and (attempt.status is None or attempt.status in _TRANSIENT)


def parse_retry_after(header: str | None) -> float | None:
    """Seconds of a ``Retry-After`` header; the API server writes whole seconds, never dates."""
    if header is None or not header.isascii() or not header.isdigit():
        return None
    return float(header[:9])
