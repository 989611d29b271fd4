"""The charts that were pulled: each once, shared with other processes, and removed when nobody uses it.

A chart lies in a directory whose name follows from repository, name, version and digest. It appears there
complete, by renaming, or not at all.
"""

import asyncio
import collections
import contextlib
import hashlib
import json
import os
import pathlib
import re
import shutil
import tempfile
import time
from collections.abc import Callable, Iterable
from typing import Final

from addon_operator.helm import helm_errors
from addon_operator.helm.charts import chart_archives, chart_files
from addon_operator.helm.repositories import chart_pull
from addon_operator.kernel import errors, names
from addon_operator.modules import model, module_config

PATIENCE: Final = 5.0
"""Seconds that a module's run waits for a pull, which goes on without it: other modules have to run."""
NO_PATIENCE: Final = 0.1
"""The same in seconds for a repository that others wait for in vain."""
AT_ONCE: Final = 2
"""Pulls from one repository at a time: each is a process, and one that hangs holds up its own charts only."""
DAY: Final = 24 * 3600.0
KEPT: Final = 30 * DAY
"""How long a chart is kept that no operator uses."""
_PARTIAL: Final = ".pull-"
_PARTIAL_KEPT: Final = 3600.0
"""Seconds after which a pull that left something behind does not go on any more."""
_NAME_LENGTH: Final = 80
_UNUSUAL: Final = re.compile(r"[^A-Za-z0-9.+_-]+")


def place(charts: pathlib.Path, wanted: module_config.ChartReference) -> pathlib.Path:
    """Return where a chart lies, once it was pulled, in the directory of charts."""
    whole = json.dumps([wanted.repository, wanted.name, wanted.version, wanted.digest])
    name = _UNUSUAL.sub("-", f"{wanted.name}-{wanted.version}")[-_NAME_LENGTH:].lstrip(".")
    return charts / f"{name}-{hashlib.sha256(whole.encode()).hexdigest()[:16]}"


def is_there(module: model.Module) -> bool:
    """Return whether the module needs no pull: its chart lies there, or comes from no repository.

    In a cache that is closed, as somebody else's in ``/tmp`` is, nothing is there.
    """
    stock = module.stock
    if stock is None or stock.reference is None:
        return True
    try:
        return chart_files.is_complete(stock.directory)
    except PermissionError:
        return False


class StillPulledError(helm_errors.ChartError):
    """The pull of a chart goes on, and is not waited for any longer."""

    def __init__(
        self, module: names.ModuleName, wanted: module_config.ChartReference, pull: "asyncio.Task[None]"
    ) -> None:
        super().__init__(module, f"chart {wanted} is still being pulled; the module runs when it is there")
        self.pull = pull
        """Done when it has ended, however."""


class ChartCache:
    """Has charts pulled that are not there yet."""

    def __init__(
        self, directory: pathlib.Path, puller: chart_pull.ChartPuller, note: Callable[[str], None]
    ) -> None:
        """``directory`` is ``CHART_CACHE_DIR``, made when needed; ``note`` gets what changes there."""
        self._directory = directory
        self._puller = puller
        self._note = note
        self._pulls: dict[pathlib.Path, asyncio.Task[None]] = {}
        self._slow: set[str] = set()
        self._turns: dict[str, asyncio.Semaphore] = collections.defaultdict(
            lambda: asyncio.Semaphore(AT_ONCE)
        )

    async def ensure(self, module: model.Module, patience: float | None = PATIENCE) -> None:
        """Have the module's chart in its place; nothing is started when it is there.

        After ``patience`` seconds (``None``: without end) this gives up, and the next call goes on waiting.
        Raises :class:`.ChartError` that names repository, chart and version, and says what to do, and
        :class:`StillPulledError` when it gave up.
        """
        stock = module.stock
        if stock is None or stock.reference is None or is_there(module):
            return
        pull = self._pulls.get(stock.directory)
        if pull is None:
            pull = asyncio.create_task(
                self._pull(stock.reference, stock.directory), name=f"pull {stock.reference}"
            )
            pull.add_done_callback(_retrieve)
            self._pulls[stock.directory] = pull
        repository = stock.reference.repository
        if patience is not None and repository in self._slow:
            patience = min(patience, NO_PATIENCE)
        done, _ = await asyncio.wait([pull], timeout=patience)
        if not done:
            self._slow.add(repository)
            raise StillPulledError(module.name, stock.reference, pull)
        if self._pulls.get(stock.directory) is pull:
            del self._pulls[stock.directory]
        self._slow.discard(repository)
        try:
            pull.result()
        except errors.AddonOperatorError as error:
            raise helm_errors.ChartError(module.name, str(error)) from error

    async def close(self) -> None:
        """End all pulls."""
        for pull in self._pulls.values():
            pull.cancel()
        if self._pulls:
            await asyncio.wait(self._pulls.values())

    async def keep(self, modules: Callable[[], Iterable[model.Module]]) -> None:
        """Say each day which charts are used, and remove those that nobody used for long, until cancelled."""
        while True:
            used = [each.stock.directory for each in modules() if each.stock and each.stock.reference]
            for path in await asyncio.to_thread(tidy, self._directory, used):
                self._note(f"{path} removed: no operator has used it for long")
            await asyncio.sleep(DAY)

    async def _pull(self, wanted: module_config.ChartReference, directory: pathlib.Path) -> None:
        await asyncio.to_thread(self._make, wanted)
        async with self._turns[wanted.repository], self._puller.pulled(wanted) as archive:
            await asyncio.to_thread(self._take, wanted, archive, directory)
        self._note(f"chart {wanted} pulled")

    def _make(self, wanted: module_config.ChartReference) -> None:
        try:
            self._directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError as error:
            raise self._unusable(wanted, error) from error

    def _take(
        self, wanted: module_config.ChartReference, archive: pathlib.Path, directory: pathlib.Path
    ) -> None:
        try:
            with tempfile.TemporaryDirectory(
                prefix=_PARTIAL, dir=self._directory, ignore_cleanup_errors=True
            ) as partial:
                unpacked = pathlib.Path(partial, "chart")
                chart_archives.unpack(archive, unpacked)
                _put(unpacked, directory)
        except chart_archives.ChartArchiveError as error:
            raise chart_pull.PullError(f"the archive of chart {wanted} {error}; it is not used") from error
        except OSError as error:
            raise self._unusable(wanted, error) from error

    def _unusable(self, wanted: module_config.ChartReference, error: OSError) -> chart_pull.PullError:
        return chart_pull.PullError(
            f"cannot pull chart {wanted}: {self._directory} cannot be written: {error.strerror}; "
            "name another directory with CHART_CACHE_DIR"
        )


def tidy(
    directory: pathlib.Path, used: Iterable[pathlib.Path], now: float | None = None
) -> list[pathlib.Path]:
    """Mark charts as used, remove those unused for :data:`KEPT` seconds, and what killed pulls left."""
    now = time.time() if now is None else now
    used = set(used)
    removed = []
    for path in used:
        with contextlib.suppress(OSError):
            os.utime(path, (now, now))
    for path in directory.iterdir() if directory.is_dir() else ():
        with contextlib.suppress(OSError):
            age = now - path.lstat().st_mtime
            if path not in used and age > (_PARTIAL_KEPT if path.name.startswith(_PARTIAL) else KEPT):
                _remove(path)
                removed.append(path)
    return removed


def _remove(path: pathlib.Path) -> None:
    """Take a chart away at once, as far as others see it, then remove its files."""
    if not path.name.startswith(_PARTIAL):
        gone = path.with_name(f"{_PARTIAL}removed-{path.name}")
        path.rename(gone)
        path = gone
    shutil.rmtree(path)


def _put(unpacked: pathlib.Path, directory: pathlib.Path) -> None:
    """Move a chart to its place, unless another process was quicker."""
    try:
        unpacked.rename(directory)
    except OSError:
        if not chart_files.is_complete(directory):
            # Somebody took files away, or something else stands in the way.
            _remove(directory)
            unpacked.rename(directory)
    chart_archives.sync(directory.parent)


def _retrieve(pull: "asyncio.Task[None]") -> None:
    """Retrieve the error of a task: nobody may be waiting for it any more."""
    if not pull.cancelled():
        pull.exception()
