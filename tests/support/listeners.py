"""Somebody who subscribes to objects and remembers what was told."""

import asyncio
from collections.abc import Callable, Sequence

import orjson

from addon_operator.kube.informers import object_changes


class Recorder:
    """Implements :class:`.Listener`."""

    def __init__(self) -> None:
        self.calls: list[str] = []
        self.changes: list[object_changes.Change] = []
        self.troubles: list[str | None] = []
        self._news = asyncio.Event()

    def synced(self) -> None:
        self.calls.append("synced")
        self._news.set()

    def changed(self, changes: Sequence[object_changes.Change]) -> None:
        self.calls.append("changed")
        self.changes += changes
        self._news.set()

    def trouble(self, reason: str | None) -> None:
        self.calls.append("trouble")
        self.troubles.append(reason)
        self._news.set()

    @property
    def is_synced(self) -> bool:
        return "synced" in self.calls

    @property
    def reported(self) -> list[str]:
        """``Added a/x`` for each change."""
        return [f"{change.type} {'/'.join(filter(None, change.key))}" for change in self.changes]

    async def until(self, condition: Callable[[], bool], seconds: float = 30.0) -> None:
        async with asyncio.timeout(seconds):
            while not condition():
                self._news.clear()
                await self._news.wait()

    async def until_synced(self) -> None:
        await self.until(lambda: self.is_synced)

    async def until_told(self, count: int) -> None:
        await self.until(lambda: len(self.changes) >= count)


class Failures:
    """Counts lists and watches that failed."""

    def __init__(self) -> None:
        self.counted: list[str] = []

    def watch_failed(self, kind: str, reason: str) -> None:
        self.counted.append(f"{kind} {reason}")


def names(entries: Sequence[bytes]) -> list[str]:
    """Of whole objects in a snapshot."""
    return [orjson.loads(entry)["object"]["metadata"]["name"] for entry in entries]
