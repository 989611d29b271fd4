"""Tells a person what is going on: a progress bar on a terminal, a plain line now and then elsewhere."""

import contextlib
import dataclasses
from collections.abc import Callable, Iterator
from typing import Final, Protocol

import rich.console
import rich.markup
import rich.progress

from addon_operator.kernel import clock as clocks

PLAIN_INTERVAL: Final = 15.0
"""Seconds between two plain lines of one phase."""


class Phase(Protocol):
    """A piece of work whose progress can be counted."""

    def advance(self, count: int = 1) -> None:
        """That many units more are done."""
        ...

    def describe(self, activity: str) -> None:
        """From now on, this is what is being done."""
        ...

    def expect(self, activity: str, unit: str, total: int) -> None:
        """From now on, this is being done, and counted from nothing to ``total``."""
        ...


class Reporter(Protocol):
    """Where messages and progress go."""

    def say(self, text: str) -> None:
        """Print one line."""
        ...

    def phase(
        self, subject: str, activity: str, unit: str, total: int | None = None
    ) -> contextlib.AbstractContextManager[Phase]:
        """Begin work on ``subject``: ``total`` units of it, if known."""
        ...


class SilentReporter:
    """Says nothing: for programs that use a cluster rather than a person."""

    def say(self, text: str) -> None:
        """Drop the line."""

    @contextlib.contextmanager
    def phase(self, subject: str, activity: str, unit: str, total: int | None = None) -> Iterator[Phase]:
        """Count nothing."""
        del subject, activity, unit, total
        yield _SilentPhase()


class PlainReporter:
    """Writes lines; of a long phase, one when it begins and one every fifteen seconds."""

    def __init__(self, write: Callable[[str], None], clock: clocks.Clock | None = None) -> None:
        self._write = write
        self._clock = clock or clocks.SystemClock()

    def say(self, text: str) -> None:
        """Print one line."""
        self._write(text)

    @contextlib.contextmanager
    def phase(self, subject: str, activity: str, unit: str, total: int | None = None) -> Iterator[Phase]:
        """Print how the work goes on."""
        yield _PlainPhase(self._write, self._clock, subject, activity, _Amount(unit, total))


class BarReporter:
    """Draws a progress bar: what is worked on, units done of all, time so far and time left."""

    def __init__(self, console: rich.console.Console) -> None:
        self._console = console

    def say(self, text: str) -> None:
        """Print one line."""
        self._console.print(text, markup=False, highlight=False, soft_wrap=True)

    @contextlib.contextmanager
    def phase(self, subject: str, activity: str, unit: str, total: int | None = None) -> Iterator[Phase]:
        """Draw the bar until the phase ends."""
        columns = (
            rich.progress.TextColumn("[bold]{task.fields[subject]}[/bold] {task.description}"),
            rich.progress.BarColumn(bar_width=24),
            rich.progress.TextColumn("{task.fields[amount]}"),
            rich.progress.TimeElapsedColumn(),
            rich.progress.TextColumn("{task.fields[left]}", style="dim"),
        )
        with rich.progress.Progress(*columns, console=self._console, transient=True) as progress:
            yield _BarPhase(progress, subject, activity, _Amount(unit, total))


@dataclasses.dataclass(frozen=True, slots=True)
class _Amount:
    unit: str
    total: int | None

    def of(self, done: int) -> str:
        scale = 1024 * 1024 if self.unit == "MiB" else 1
        if self.total is None:
            return f"{done // scale} {self.unit}"
        return f"{done // scale} of {self.total // scale} {self.unit}"


class _SilentPhase:
    def advance(self, count: int = 1) -> None:
        pass

    def describe(self, activity: str) -> None:
        pass

    def expect(self, activity: str, unit: str, total: int) -> None:
        pass


class _PlainPhase:
    def __init__(
        self,
        write: Callable[[str], None],
        clock: clocks.Clock,
        subject: str,
        activity: str,
        amount: _Amount,
    ) -> None:
        self._write, self._clock = write, clock
        self._subject, self._activity, self._amount = subject, activity, amount
        self._done = 0
        self._begun = clock.monotonic()
        self._written = self._begun
        self._write(f"{subject}: {activity}")

    def advance(self, count: int = 1) -> None:
        self._done += count
        now = self._clock.monotonic()
        if now - self._written < PLAIN_INTERVAL:
            return
        self._written = now
        elapsed = now - self._begun
        parts = [
            self._amount.of(self._done),
            clock_time(elapsed),
            time_left(self._done, self._amount.total, elapsed),
        ]
        self._write(f"{self._subject}: {self._activity}: " + ", ".join(part for part in parts if part))

    def describe(self, activity: str) -> None:
        self._activity = activity

    def expect(self, activity: str, unit: str, total: int) -> None:
        self._activity, self._amount, self._done = activity, _Amount(unit, total), 0
        self._begun = self._clock.monotonic()
        self._write(f"{self._subject}: {activity}")


class _BarPhase:
    def __init__(
        self, progress: rich.progress.Progress, subject: str, activity: str, amount: _Amount
    ) -> None:
        self._progress, self._amount = progress, amount
        self._done = 0
        self._counted_from = 0.0
        self._task = progress.add_task(
            rich.markup.escape(activity),
            total=amount.total,
            subject=rich.markup.escape(subject),
            amount=amount.of(0),
            left="",
        )

    def advance(self, count: int = 1) -> None:
        self._done += count
        elapsed = (self._progress.tasks[0].elapsed or 0.0) - self._counted_from
        self._progress.update(
            self._task,
            completed=self._done,
            amount=self._amount.of(self._done),
            left=time_left(self._done, self._amount.total, elapsed),
        )

    def describe(self, activity: str) -> None:
        self._progress.update(self._task, description=rich.markup.escape(activity))

    def expect(self, activity: str, unit: str, total: int) -> None:
        self._amount, self._done = _Amount(unit, total), 0
        self._counted_from = self._progress.tasks[0].elapsed or 0.0
        self._progress.update(
            self._task,
            description=rich.markup.escape(activity),
            total=total,
            completed=0,
            amount=self._amount.of(0),
            left="",
        )


def clock_time(seconds: float) -> str:
    """Minutes and seconds, as in ``3:07``."""
    minutes, rest = divmod(int(seconds), 60)
    return f"{minutes}:{rest:02}"


def time_left(done: int, total: int | None, elapsed: float) -> str:
    """How long the rest takes at the speed so far, as in ``about 2:30 left``; empty if unknown."""
    if not total or not done or done > total:
        return ""
    return f"about {clock_time(elapsed * (total - done) / done)} left"
