"""Watches the modules directories by looking at them again and again.

There is no portable way to be told of changes: mounted volumes and network file systems tell nothing.
"""

import asyncio
import pathlib
import time
from collections.abc import Awaitable, Callable, Sequence
from typing import Final

from addon_operator.aio import waiting
from addon_operator.engine.modules import module_loader, module_scan

INTERVAL: Final = 1.0
"""Seconds between two looks; more when a look takes long."""
_SHARE: Final = 0.05
"""Of the time that looks may take."""


class ModuleWatch:
    """Finds changes that have come to rest, reads them and has them taken in."""

    def __init__(
        self,
        directories: Sequence[pathlib.Path],
        loader: module_loader.ModuleLoader,
        first: module_scan.Scan,
        *,
        take: Callable[[module_loader.Loading], Awaitable[None]],
        refused: Callable[[str], None],
        sleep: waiting.Sleep = asyncio.sleep,
    ) -> None:
        """``take`` takes in what was loaded; ``refused`` is told what is wrong with what was not."""
        self._directories = tuple(directories)
        self._loader = loader
        self._taken = self._seen = first
        self._take = take
        self._refused = refused
        self._sleep = sleep
        self._trouble = ""

    async def work(self) -> None:
        """Look again and again, until cancelled."""
        pause = INTERVAL
        while True:
            await self._sleep(pause)
            began = time.monotonic()
            await self.look()
            pause = max(INTERVAL, (time.monotonic() - began) / _SHARE)

    async def look(self) -> None:
        """Look once; a change is taken in when the look after it shows the same."""
        now = await self._scan()
        if now is None or now == self._taken:
            return
        if now != self._seen:
            self._seen = now
            return
        self._taken = now
        loading = await asyncio.to_thread(self._loader.load, now)
        for problem in loading.problems:
            self._refused(problem)
        await self._take(loading)

    async def _scan(self) -> module_scan.Scan | None:
        try:
            found = await asyncio.to_thread(module_scan.scan, self._directories)
        except OSError as error:
            self._tell(f"{error.filename} cannot be read: {error.strerror}")
            return None
        self._trouble = ""
        return found

    def _tell(self, trouble: str) -> None:
        if trouble != self._trouble:
            self._refused(trouble)
        self._trouble = trouble
