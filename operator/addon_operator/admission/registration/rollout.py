"""Which of several replicas that want different things of one object writes it, as during a rollout.

The one that started last wins: the older will be gone soon. What it replaces is noted in an annotation, so
that an old replica that is restarted knows for some minutes that it is not the newest, and a new one does not
take it for that.
"""

from collections.abc import Mapping
from typing import Any, Final

from addon_operator.kernel import clock

DIGEST: Final = "admission.addon-operator.io/specification"
"""Annotation: digest of what the replica that wrote last wants."""
REPLACED: Final = "admission.addon-operator.io/replaced"
"""Annotation: digests of what was wanted before, each with ``@`` and the seconds since 1970 of its end."""
_WAIT_SECONDS: Final = 300.0
"""How long what another replica wrote stays, if it is not known to be an old one."""
_ROLLOUT_SECONDS: Final = 600.0
"""How long a rollout may last, as with Deployments: what was replaced by then is that of an old replica."""


class Rollout:
    """The part of this replica in that, for one object."""

    def __init__(self, digest: str, time: clock.Clock) -> None:
        """``digest`` is that of what this replica wants."""
        self._digest = digest
        self._clock = time
        self._is_first = True
        self._waits_for: tuple[str, float] | None = None

    def want(self, digest: str) -> None:
        """Want something else from now on, which no old replica wants."""
        self._digest, self._is_first, self._waits_for = digest, False, None

    def is_replaced(self, live: Mapping[str, Any]) -> bool:
        """Say whether a newer replica wrote the object."""
        return self._is_first and self._digest in self._replaced(live)

    def may_write(self, live: Mapping[str, Any]) -> bool:
        """Say whether this replica may write what it wrote before: not while another one has its turn."""
        written = annotation(live, DIGEST) or self._digest
        if written == self._digest:
            self._waits_for = None
            return True
        now = self._clock.monotonic()
        if self._waits_for is None or self._waits_for[0] != written:
            # Its turn begins when that is seen.
            self._waits_for = (written, now)
        return now >= self._waits_for[1] + _WAIT_SECONDS or written in self._replaced(live)

    @property
    def waits(self) -> bool:
        """Whether another replica has its turn."""
        return self._waits_for is not None

    def settled(self) -> None:
        """Note that the object is as this replica wants it."""
        self._waits_for = None

    def annotations(self, live: Mapping[str, Any]) -> dict[str, str]:
        """Return the annotations with which this replica writes the object."""
        replaced = {annotation(live, DIGEST): self._clock.time(), **self._replaced(live)}
        noted = [f"{each}@{end:.0f}" for each, end in replaced.items() if each not in ("", self._digest)]
        return {DIGEST: self._digest} | ({REPLACED: " ".join(noted)} if noted and self._is_first else {})

    def _replaced(self, live: Mapping[str, Any]) -> dict[str, float]:
        """Return what replicas wanted that are old ones, and when that was replaced."""
        noted = (entry.partition("@") for entry in annotation(live, REPLACED).split())
        since = {digest: float(end) for digest, _, end in noted if end.isdigit()}
        began = self._clock.time() - _ROLLOUT_SECONDS
        return {digest: end for digest, end in since.items() if end > began}


def annotation(live: Mapping[str, Any], name: str) -> str:
    """Return an annotation of an object; empty if it has none of that name."""
    return str(((live.get("metadata") or {}).get("annotations") or {}).get(name) or "")
