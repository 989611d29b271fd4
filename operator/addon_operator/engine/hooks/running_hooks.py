"""Which programs of hooks run, and which Helm, for people who wonder what takes so long, and end it."""

import asyncio
import copy
import itertools
import pathlib
import time
from collections.abc import Callable, Sequence
from typing import Any, TypedDict

import msgspec

from addon_operator.kernel import clock
from addon_operator.process.children import children


class RunningHook(TypedDict):
    """A program of a hook, an ``enabled`` script, or Helm, that runs."""

    id: int
    module: str
    """Empty for a global hook, and for Helm."""
    hook: str
    """Its name, ``enabled`` for that script; empty for Helm."""
    command: list[str]
    """The words with which it was started, the interpreter of a virtual environment among them."""
    seconds: float
    """For how long it runs."""
    since: str
    """RFC 3339, UTC."""


class _Run(msgspec.Struct):
    module: str
    hook: str
    words: list[str]
    began: float
    since: float
    work: asyncio.Future[children.ChildResult]
    is_ended: bool = False


class RunningHooks(children.Children):
    """Runs programs as others do, and knows which run."""

    def __init__(self, programs: children.Children, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._programs = programs
        self._monotonic = monotonic
        self._numbers = itertools.count(1)
        self._runs: dict[int, _Run] = {}
        self._module = self._hook = ""

    @property
    def unfenced(self) -> "RunningHooks":
        """The same for what hooks answer: a replica that does not lead may ask them, too."""
        other = copy.copy(self)
        other._programs = self._programs.unfenced  # noqa: SLF001 - it is one of these
        return other

    def known_as(self, module: str, hook: str) -> "RunningHooks":
        """Return the same for a hook of a module, or a global one."""
        other = copy.copy(self)
        other._module, other._hook = module, hook  # noqa: SLF001 - it is one of these
        return other

    async def run(
        self,
        argv: Sequence[str | pathlib.Path],
        **how: Any,  # noqa: ANN401 - what Children takes
    ) -> children.ChildResult:
        """Run a program to its end; raises :class:`.ChildEndedError` if somebody ended it."""
        run = _Run(
            self._module,
            self._hook,
            [str(word) for word in argv],
            self._monotonic(),
            time.time(),
            asyncio.ensure_future(self._programs.run(argv, **how)),
        )
        number = next(self._numbers)
        self._runs[number] = run
        try:
            return await run.work
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if not run.is_ended or (task is not None and task.cancelling()):
                raise
            seconds = self._monotonic() - run.began
            raise children.ChildEndedError(" ".join(run.words), seconds) from None
        finally:
            del self._runs[number]

    @property
    def rows(self) -> list[RunningHook]:
        """What runs, the one that runs longest first."""
        now = self._monotonic()
        return [
            {
                "id": number,
                "module": run.module,
                "hook": run.hook,
                "command": run.words,
                "seconds": round(now - run.began, 1),
                "since": clock.rfc3339(run.since),
            }
            for number, run in self._runs.items()
        ]

    def end(self, number: int) -> bool:
        """End a program as its timeout does; say whether it still ran."""
        run = self._runs.get(number)
        if run is None:
            return False
        run.is_ended = True
        run.work.cancel()
        return True
