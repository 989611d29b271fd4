"""The last Events about modules, for whoever looks: what this process told, and those before it."""

import asyncio
import collections
from collections.abc import Iterator, Mapping
from typing import Any, Final

from addon_operator.aio import waiting
from addon_operator.kube import api_errors, paths
from addon_operator.kube.client import client
from addon_operator.kube.objects import events
from addon_operator.status import module_status

MOST: Final = 5
"""How many of the last Events about a module are remembered."""
READ_MOST: Final = 5000
"""How many Events are read: the API server gives them in no order that would help."""
AGAIN_SECONDS: Final = 60.0
"""After an answer that was none, until the API server is asked again."""
_WITHIN_SECONDS: Final = 2.0
_SELECTOR: Final = (
    f"involvedObject.apiVersion={module_status.API_VERSION},involvedObject.kind={module_status.KIND}"
)
_TEXT_MAX: Final = 1024

_Told = collections.deque[module_status.ToldEvent]


class ToldEvents:
    """Remembers what this process told, and reads once what operators before it did.

    Events live in the cluster for an hour, here until the process ends. A replica that stands by tells
    nothing, and reads what the leader tells, again and again.
    """

    def __init__(
        self, kube: client.KubeClient, namespace: str, time: waiting.Time, again: float | None = None
    ) -> None:
        """``again``: after how many seconds what the leader told is read anew; ``None`` for the leader."""
        self._again = again
        self.is_known = False
        """Whether the cluster has answered the last time that it was asked."""
        self._kube = kube
        self._path = paths.of("v1", "events", namespace=namespace)
        self._time = time
        self._told: dict[str, _Told] = {}
        self._ask_at: float | None = 0.0
        """When the cluster is asked; ``None`` if that is done."""

    def add(self, module: str, event: module_status.ToldEvent) -> None:
        """Remember an Event that was just told."""
        self._told.setdefault(module, collections.deque(maxlen=MOST)).appendleft(event)

    def of(self, module: str) -> list[module_status.ToldEvent]:
        """Return the last Events about a module, newest first."""
        return list(self._told.get(module, ()))

    def forget(self, module: str) -> None:
        """Forget a module that is gone."""
        self._told.pop(module, None)

    async def recall(self) -> None:
        """Read what other operators told, unless that was done; returns soon, and never raises.

        To be called when somebody looks. Without the right to list Events, or while the API server is away,
        only those of this process are there.
        """
        now = self._time.monotonic()
        if self._ask_at is None or now < self._ask_at:
            return
        self._ask_at = now + AGAIN_SECONDS
        try:
            async with asyncio.timeout(_WITHIN_SECONDS):
                found = await self._read()
        except (api_errors.KubernetesError, TimeoutError):
            self.is_known = False
            return
        self.is_known = True
        if self._again is not None:
            self._ask_at, self._told = now + self._again, found
            return
        self._ask_at = None
        for module, earlier in found.items():
            self._told[module] = _merged(self.of(module), earlier)

    async def _read(self) -> dict[str, _Told]:
        """Return the last Events of each module that stand in the cluster, newest first."""
        found: dict[str, list[module_status.ToldEvent]] = {}
        number = 0
        async for page in self._kube.pages(self._path, field_selector=_SELECTOR):
            number += len(page)
            for module, event in _ours(page):
                known = [*found.get(module, ()), event]
                found[module] = sorted(known, key=lambda each: each["time"], reverse=True)[:MOST]
            if number >= READ_MOST:
                break
        return {module: collections.deque(known) for module, known in found.items()}


def _ours(page: list[dict[str, Any]]) -> Iterator[tuple[str, module_status.ToldEvent]]:
    """Yield what operators told: what others tell of a module may hold anything."""
    for body in page:
        source: Mapping[str, Any] = body.get("source") or {}
        about: Mapping[str, Any] = body.get("involvedObject") or {}
        at = body.get("lastTimestamp") or body.get("firstTimestamp")
        if source.get("component") != events.COMPONENT or not at:
            continue
        type_, reason, message = (
            str(body.get(key) or "")[:_TEXT_MAX] for key in ("type", "reason", "message")
        )
        yield (
            str(about.get("name") or ""),
            {"time": str(at), "type": type_, "reason": reason, "message": message},
        )


def _merged(told: list[module_status.ToldEvent], earlier: _Told) -> _Told:
    """Return Events of this process, then those before it; the same Event again is one in the cluster."""
    known = {(each["reason"], each["message"]) for each in told}
    before = [each for each in earlier if (each["reason"], each["message"]) not in known]
    return collections.deque([*told, *before][:MOST], maxlen=MOST)
