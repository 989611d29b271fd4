"""Modules that change on disk: noticed by repeated scans, and read again when they have come to rest.

There is no portable way to be notified of changes: mounted volumes and network file systems send nothing.
What is wrong stays as it was.
"""

import asyncio
import contextlib
import time
from typing import Final

from addon_operator.aio import threads, waiting
from addon_operator.engine.reload import module_reload
from addon_operator.kernel import errors
from addon_operator.loading import module_loader, module_scan

INTERVAL: Final = 1.0
"""Seconds between two looks unless somebody says otherwise; more when a look takes long."""
_SHARE: Final = 0.05
"""Of the time that scans may take."""
GONE_LOOKS: Final = 5
"""Looks in a row that show that something is gone, before it counts as gone: it may be written anew."""


class ModuleWatch:
    """Finds changes that have come to rest, reads them and hands them over."""

    def __init__(
        self,
        loader: module_loader.ModuleLoader,
        first: module_scan.Scan,
        reload: module_reload.ModuleReload,
        *,
        interval: float = INTERVAL,
        sleep: waiting.Sleep = asyncio.sleep,
    ) -> None:
        """``first`` shows what ``loader`` has loaded; ``reload`` takes in what it loads from now on.

        ``interval`` is in seconds.
        """
        self._interval = interval
        self._loader = loader
        self._taken = self._seen = first
        self._reload = reload
        self._sleep = sleep
        self._trouble = ""
        self._looks = 0
        self._took = 0.0

    async def work(self) -> None:
        """Look again and again, until cancelled."""
        with contextlib.suppress(OSError, errors.ConfigurationError):
            await threads.run(threads.EDITS, self._loader.learn)
        pause = self._interval
        while True:
            await self._sleep(pause)
            await self.look()
            # What a change leads to is not counted: the next one would be found late.
            pause = max(self._interval, self._took / _SHARE)

    async def look(self) -> None:
        """Look once; hand a change over when the look after it shows the same.

        Something that goes has to be gone for longer.
        """
        now = await self._scan()
        if now is None or now == self._taken:
            self._seen = self._taken
            return
        if now != self._seen:
            self._seen, self._looks = now, 0
            return
        self._looks += 1
        if now.is_less_than(self._taken) and self._looks < GONE_LOOKS:
            return
        self._taken = now
        loading = await threads.run(threads.EDITS, self._loader.load, now)
        for problem in loading.problems:
            self._reload.refuse(problem)
        await self._reload.take_in(loading, self._loader)

    async def _scan(self) -> module_scan.Scan | None:
        began = time.monotonic()
        try:
            scan = await asyncio.to_thread(module_scan.scan, self._loader.directories)
        except OSError as error:
            self._report(
                f"{error.filename} cannot be read: {error.strerror}; put it back, or correct its permissions"
            )
            return None
        except errors.ConfigurationError as error:
            self._report(str(error))
            return None
        finally:
            self._took = time.monotonic() - began
        self._report("")
        return scan

    def _report(self, trouble: str) -> None:
        if trouble != self._trouble:
            self._reload.cannot_look(trouble)
        self._trouble = trouble
