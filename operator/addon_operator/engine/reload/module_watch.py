"""Modules that change on disk: noticed by repeated scans, and read again when they have come to rest.

There is no portable way to be notified of changes: mounted volumes and network file systems send nothing.
What is wrong stays as it was.
"""

import asyncio
import contextlib
import pathlib
import time
from typing import Final

from addon_operator.aio import absences, threads, waiting
from addon_operator.engine.reload import module_reload
from addon_operator.kernel import clock, errors
from addon_operator.loading import module_loader, module_scan

INTERVAL: Final = 1.0
"""Seconds between two looks unless somebody says otherwise; more when a look takes long."""
_SHARE: Final = 0.05
"""Of the time that scans may take."""


class ModuleWatch:
    """Finds changes that have come to rest, reads them and hands them over."""

    def __init__(
        self,
        loader: module_loader.ModuleLoader,
        first: module_scan.Scan,
        reload: module_reload.ModuleReload,
        *,
        time_of: clock.Clock,
        absence: float = absences.SECONDS,
        interval: float = INTERVAL,
        sleep: waiting.Sleep = asyncio.sleep,
    ) -> None:
        """``first`` shows what ``loader`` has loaded; ``reload`` takes in what it loads from now on.

        What is gone for ``absence`` seconds is gone; ``interval``: see :data:`INTERVAL`.
        """
        self._interval = interval
        self._loader = loader
        self._taken = self._seen = first
        self._reload = reload
        self._sleep = sleep
        self._trouble = ""
        self._absences = absences.Absences[pathlib.Path](time_of, absence)
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
        if now is None:
            self._seen = self._taken
            return
        lacks, before = now.lacks(self._taken), self._seen
        gone, self._seen = self._absences.look(lacks), now
        if now == self._taken or now != before or lacks - gone:
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
