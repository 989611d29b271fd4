"""``enabled`` scripts: a discovery asks them, and does not wait for one that hangs."""

import asyncio
import collections
import time
from collections.abc import Collection, Mapping, Sequence
from typing import Any, Final

import msgspec

from addon_operator.aio import threads, waiting
from addon_operator.engine.hooks import hook_exchange, hook_processes
from addon_operator.kernel import clock, errors, names
from addon_operator.modules import model
from addon_operator.values import store

PATIENCE: Final = 3.0
"""Seconds after which a discovery goes on without the verdict of a script."""


class StillRunsError(errors.ModuleError):
    """A script has been running for so long that nobody else is to wait for it."""

    def __init__(self, module: names.ModuleName, since: float) -> None:
        super().__init__(
            module,
            f"its enabled script has been running since {clock.rfc3339(since)}; "
            "'addon-operator hooks running' shows it, and 'hooks end ID' ends it",
        )


class _Run(msgspec.Struct, frozen=True):
    files: Mapping[str, bytes]
    changed: int
    """When the script was written."""
    since: float
    task: asyncio.Task[model.Verdict]


class EnabledScripts:
    """Asks scripts; one that hangs goes on beside all else, and a later question gets its answer."""

    def __init__(
        self, runner: hook_processes.HookProcesses, values: store.ValuesStore, patience: float | None = None
    ) -> None:
        """Without ``patience`` each script is waited for to its end."""
        self._runner = runner
        self._values = values
        self._patience = patience
        self._runs: dict[names.ModuleName, _Run] = {}
        self._alone: dict[names.ModuleName, asyncio.Lock] = collections.defaultdict(asyncio.Lock)

    async def ask(self, module: model.Module, enabled: Sequence[names.ModuleName]) -> model.Verdict:
        """Return the verdict of a module's script, if ``enabled`` are the modules that are so far.

        A script that runs with other values, or that was written anew, is ended and asked again.

        Raises :class:`StillRunsError`, and what :meth:`.HookProcesses.enabled` raises.
        """
        async with self._alone[module.name]:
            run = await self._run(module, enabled)
        if not run.task.done():
            raise StillRunsError(module.name, run.since)
        self._runs.pop(module.name, None)
        if run.task.cancelled():
            raise errors.ModuleError(module.name, "its enabled script was ended: it is of no use any more")
        return run.task.result()

    async def _run(self, module: model.Module, enabled: Sequence[names.ModuleName]) -> _Run:
        name, script = module.name, module.enabled_script
        if script is None:
            raise AssertionError(f"module {name} has no enabled script")
        made = hook_exchange.values_now(self._values, name, list(enabled))
        files = await waiting.in_thread(threads.FILES, made)
        changed = script.stat().st_mtime_ns
        run = self._runs.get(name)
        if run is None or (run.files, run.changed) != (files, changed):
            self.end([name])
            asked = self._runner.enabled(script, name, lambda: files)
            run = _Run(files, changed, time.time(), asyncio.create_task(asked, name=f"script of {name}"))
            run.task.add_done_callback(lambda task: task.cancelled() or task.exception())
            self._runs[name] = run
            await self._wait(name, [run.task], self._patience)
        return run

    async def wait(self, name: names.ModuleName, stopping: asyncio.Event) -> bool:
        """Wait until a script that hangs ends, or for ``stopping``; say whether one hung."""
        if (run := self._runs.get(name)) is None:
            return False
        stop = asyncio.create_task(stopping.wait())
        try:
            await self._wait(name, [run.task, stop])
        finally:
            stop.cancel()
        return True

    async def _wait(
        self,
        name: names.ModuleName,
        awaited: "Collection[asyncio.Task[Any]]",
        seconds: float | None = None,
    ) -> None:
        try:
            await asyncio.wait(awaited, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
        except asyncio.CancelledError:
            self.end([name])
            raise

    def end(self, modules: Collection[names.ModuleName] | None = None) -> None:
        """End the scripts of these modules, by default all: nobody asks for their verdicts any more."""
        for name in list(self._runs) if modules is None else self._runs.keys() & set(modules):
            self._runs.pop(name).task.cancel()

    def keep_only(self, modules: Collection[names.ModuleName]) -> None:
        """End the scripts of all other modules."""
        self.end(self._runs.keys() - set(modules))
