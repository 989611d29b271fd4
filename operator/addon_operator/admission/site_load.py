"""How much the admission site takes at a time, so that a flood costs answers and not memory."""

import contextlib
import dataclasses
from collections.abc import Iterator


class OverloadedError(Exception):
    """There is no room for another request now."""


@dataclasses.dataclass(frozen=True, slots=True)
class Limits:
    """Bounds of what is in work at one moment."""

    requests: int = 2000
    body_bytes: int = 256 << 20
    """Sum of the bodies, each counted with the length that it is announced with."""


class Load:
    """Counts the requests in work."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._requests = 0
        self._bytes = 0

    @contextlib.contextmanager
    def taking(self, body_bytes: int) -> Iterator[None]:
        """Hold room for one request; raises :class:`OverloadedError` if there is none."""
        full = self._requests >= self._limits.requests
        if full or self._bytes + body_bytes > self._limits.body_bytes:
            raise OverloadedError
        self._requests += 1
        self._bytes += body_bytes
        try:
            yield
        finally:
            self._requests -= 1
            self._bytes -= body_bytes
