"""What a chart may know of the cluster: versions of it and of its API."""

from collections.abc import Awaitable, Callable
from typing import Final, TypeAlias

import msgspec

from addon_operator.kernel import clock as clocks

_RECENT_SECONDS: Final = 60.0


class Capabilities(msgspec.Struct, frozen=True):
    """Versions of the cluster and of its API."""

    kube_version: str
    """Such as ``v1.36.3``."""
    api_versions: frozenset[str]
    """All ``group/version`` and ``group/version/Kind``, as Helm lists them."""


ReadCapabilities: TypeAlias = Callable[[], Awaitable[Capabilities]]
"""Asks the cluster."""


class CapabilityReader:
    """Asks the cluster as seldom as the charts allow: most of them only need to know its version."""

    def __init__(self, read: ReadCapabilities, clock: clocks.Clock) -> None:
        self._read = read
        self._clock = clock
        self._last: Capabilities | None = None
        self._read_at = 0.0

    async def now(self) -> Capabilities:
        """Return what is true now, custom resources included that were defined a moment ago."""
        self._last = await self._read()
        self._read_at = self._clock.monotonic()
        return self._last

    async def recent(self) -> Capabilities:
        """Return what was true within the last minute."""
        if self._last is not None and self._clock.monotonic() - self._read_at < _RECENT_SECONDS:
            return self._last
        return await self.now()
