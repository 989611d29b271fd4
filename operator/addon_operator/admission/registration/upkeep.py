"""Keeps an object as it should be, whoever else changes it: when to look at it, how often to repair it."""

import asyncio
import dataclasses
from typing import Final

from addon_operator.aio import waiting
from addon_operator.kube import api_errors
from addon_operator.kube.client import client, connection
from addon_operator.kube.informers import wire

CHECK_SECONDS: Final = 30.0
"""Between two looks at an object that nobody touched."""
ERROR_SECONDS: Final = 5.0
"""Until the next look after an error."""

# Whoever undoes our repairs at once is a program: repairing ever slower leaves the cluster in peace.
_PAUSES: Final = waiting.Backoff(1.0, 60.0)
_AT_ONCE: Final = 2

_WATCH_SECONDS: Final = 270
# A stream without a word for so long is dead: the server ends it before.
_SILENCE_SECONDS: Final = _WATCH_SECONDS + 30.0
_RETRY: Final = waiting.Backoff(1.0, 30.0)
_NO_RIGHT_SECONDS: Final = 300.0


@dataclasses.dataclass(slots=True)
class Repairs:
    """Counts the repairs of one object, and knows when somebody undoes each of them."""

    has_conflict: bool = False
    _streak: int = 0
    _last: float = float("-inf")

    def may_repair(self, now: float) -> bool:
        """Say whether the next repair is due; ``now`` is a monotonic time."""
        return self._wait(now) <= 0

    def note(self, now: float) -> None:
        """Note a repair."""
        self._streak = self._streak + 1 if now - self._last < 2 * _PAUSES.longest else 1
        self._last = now

    def settled(self, now: float) -> None:
        """Note that nothing is to be repaired; that lasts if the others had time to change it again."""
        if self.may_repair(now):
            self.has_conflict = False

    def pause(self, now: float) -> float:
        """Return the seconds until the next look."""
        wait = self._wait(now)
        return min(CHECK_SECONDS, wait) if wait > 0 else CHECK_SECONDS

    def _wait(self, now: float) -> float:
        late = self._streak - _AT_ONCE
        return self._last + (_PAUSES.after(late) if late > 0 else 0.0) - now


def conflict(called: str, kind: str, name: str) -> str:
    """Say that somebody undoes repairs; ``kind`` is that of the object as kubectl takes it."""
    return (
        f"somebody changes {called} as often as it is restored; "
        f"'kubectl get {kind} {name} --show-managed-fields -o yaml' shows who"
    )


async def watch(
    kube: client.KubeClient,
    collection: str,
    name: str,
    changed: asyncio.Event,
    time: waiting.Time,
) -> None:
    """Set ``changed`` when that object of the collection may have changed, until cancelled.

    Without the right to watch, the regular look has to do.
    """
    failures = 0
    while True:
        try:
            await _watch(kube, collection, name, changed)
            failures = 0
        except api_errors.Forbidden:
            failures += 1
            await time.sleep(_NO_RIGHT_SECONDS)
            continue
        except api_errors.KubernetesError:
            failures += 1
        await time.sleep(_RETRY.after(failures + 1, time.jitter()))


async def _watch(kube: client.KubeClient, collection: str, name: str, changed: asyncio.Event) -> None:
    # Without a resourceVersion the present state comes first, so that nothing is missed between two watches.
    query = {
        "watch": "1",
        "fieldSelector": f"metadata.name={name}",
        "timeoutSeconds": str(_WATCH_SECONDS),
    }
    async with kube.stream(connection.Request("GET", collection, query, timeout=None)) as content:
        # It may have been removed while nobody watched, of which the watch says nothing.
        changed.set()
        async for _ in wire.batches(content.iter_any(), _SILENCE_SECONDS):
            changed.set()
