"""How an operator is asked to end: by signals, by the loss of its Lease, or by a defect of its own."""

import asyncio
import signal
from collections.abc import Callable, Coroutine, Iterable
from typing import Any, Final, TypeVar

import structlog

from addon_operator.kernel import clock, errors

SIGNALS: Final = (signal.SIGTERM, signal.SIGINT)
HURRY_AFTER: Final = 1.0
"""Seconds after which a further signal is a wish of its own: Ctrl-C may come twice, through a wrapper."""

T = TypeVar("T")
Logger = structlog.typing.FilteringBoundLogger


class DefectError(errors.AddonOperatorError):
    """A part of the operator ended that should not end."""


class StopRequest:
    """SIGTERM and SIGINT: the first asks to stop, a later one not to wait for what runs."""

    def __init__(self, time: clock.Clock) -> None:
        self._clock = time
        self._asked_at: float | None = None
        self._on_first: Callable[[], object] | None = None
        self.asked = asyncio.Event()
        self.hurried = asyncio.Event()

    def listen(self, on_first: Callable[[], object]) -> None:
        """Take the signals in the running loop; the first one also calls ``on_first``.

        That lasts until :meth:`started`.
        """
        self._on_first = on_first
        loop = asyncio.get_running_loop()
        for number in SIGNALS:
            loop.add_signal_handler(number, self.ask)

    def started(self) -> None:
        """Look at :attr:`asked` from now on."""
        self._on_first = None

    def ask(self) -> None:
        """Stop: a signal came."""
        now = self._clock.monotonic()
        if self._asked_at is not None:
            if now - self._asked_at >= HURRY_AFTER:
                self.hurried.set()
            return
        self._asked_at = now
        self.asked.set()
        if self._on_first is not None:
            self._on_first()


async def unless(work: Coroutine[Any, Any, T], ended: Coroutine[Any, Any, None]) -> T:
    """Return what ``work`` gives; if ``ended`` raises first, cancel the work and raise that error."""
    working, ending = asyncio.create_task(work), asyncio.create_task(ended)
    try:
        await asyncio.wait({working, ending}, return_when=asyncio.FIRST_COMPLETED)
        if not working.done():
            await ending
        return await working
    finally:
        await end({working, ending})


async def end(tasks: Iterable["asyncio.Task[Any]"]) -> None:
    """Cancel the tasks and wait until they have ended, however they do."""
    ending = list(tasks)
    for task in ending:
        task.cancel()
    await asyncio.gather(*ending, return_exceptions=True)


def defect_of(
    task: "asyncio.Task[Any]", log: structlog.typing.FilteringBoundLogger
) -> errors.AddonOperatorError:
    """Return the error for a task that ended by itself; the log gets what a developer needs."""
    cause = None if task.cancelled() else task.exception()
    while isinstance(cause, BaseExceptionGroup) and len(cause.exceptions) == 1:
        cause = cause.exceptions[0]
    if isinstance(cause, errors.AddonOperatorError):
        return cause
    said = f"{type(cause).__name__}: {cause}" if cause is not None else "it ended"
    log.error(f"a part of the operator failed: {task.get_name()}", exc_info=cause)
    return DefectError(
        f"the operator stops because of a bug in its part {task.get_name()} ({' '.join(said.split())}); "
        "report it with the log"
    )
