"""Tells a person what is going on: a progress bar on a terminal, a plain line now and then elsewhere."""

import contextlib
from collections.abc import Callable, Iterator
from typing import Final, TypeAlias

import rich.console
import rich.markup
import rich.progress

from addon_operator.kernel import clock as clocks

PLAIN_INTERVAL: Final = 15.0
"""Seconds between two plain lines of one phase."""

Show: TypeAlias = "Callable[[Phase, bool], None]"
"""Shows how far a phase is, and whether its count has just begun."""


class Phase:
    """A piece of work whose progress is counted."""

    def __init__(self, show: Show, clock: clocks.Clock) -> None:
        self.activity, self.unit = "", ""
        self.done = 0
        self.total: int | None = None
        self._show = show
        self._clock = clock
        self._begun = clock.monotonic()

    def expect(self, activity: str, unit: str, total: int | None) -> None:
        """Say what is done from now on, and count from nothing to ``total`` units of it, if that is known."""
        self.activity, self.unit, self.done, self.total = activity, unit, 0, total
        self._begun = self._clock.monotonic()
        self._show(self, True)

    def describe(self, activity: str) -> None:
        """Say what is done from now on, and go on counting."""
        self.activity = activity
        self._show(self, False)

    def advance(self, count: int = 1) -> None:
        """Count that many units more as done."""
        self.done += count
        self._show(self, False)

    @property
    def elapsed(self) -> float:
        """Seconds since the count began."""
        return self._clock.monotonic() - self._begun

    @property
    def amount(self) -> str:
        """What is done, as in ``5 of 20 MiB``."""
        scale = 1024 * 1024 if self.unit == "MiB" else 1
        of_all = "" if self.total is None else f" of {self.total // scale}"
        return f"{self.done // scale}{of_all} {self.unit}"

    @property
    def left(self) -> str:
        """How long the rest takes at the speed so far; empty if unknown."""
        return time_left(self.done, self.total, self.elapsed)


class Reporter:
    """Where messages and progress go. This one drops them: for programs that use a cluster."""

    def __init__(self, clock: clocks.Clock | None = None) -> None:
        self._clock = clock or clocks.SystemClock()

    def say(self, text: str) -> None:
        """Print one line."""

    @contextlib.contextmanager
    def phase(self, subject: str, activity: str, unit: str, total: int | None = None) -> Iterator[Phase]:
        """Begin work on ``subject``: ``total`` units of it, if known."""
        with self._showing(subject) as show:
            phase = Phase(show, self._clock)
            phase.expect(activity, unit, total)
            yield phase

    @contextlib.contextmanager
    def _showing(self, subject: str) -> Iterator[Show]:
        del subject
        yield lambda *_: None


class PlainReporter(Reporter):
    """Writes lines; of a long phase, one when it begins and one every fifteen seconds."""

    def __init__(self, write: Callable[[str], None], clock: clocks.Clock | None = None) -> None:
        super().__init__(clock)
        self._write = write

    def say(self, text: str) -> None:
        """Print one line."""
        self._write(text)

    @contextlib.contextmanager
    def _showing(self, subject: str) -> Iterator[Show]:
        written = self._clock.monotonic()

        def show(phase: Phase, is_begun: bool) -> None:
            nonlocal written
            now = self._clock.monotonic()
            if is_begun:
                self._write(f"{subject}: {phase.activity}")
            elif now - written >= PLAIN_INTERVAL:
                written = now
                parts = (phase.amount, clock_time(phase.elapsed), phase.left)
                self._write(f"{subject}: {phase.activity}: {', '.join(filter(None, parts))}")

        yield show


class BarReporter(Reporter):
    """Draws a progress bar: what is worked on, units done of all, time so far and time left."""

    def __init__(self, console: rich.console.Console) -> None:
        super().__init__()
        self._console = console

    def say(self, text: str) -> None:
        """Print one line."""
        self._console.print(text, markup=False, highlight=False, soft_wrap=True)

    @contextlib.contextmanager
    def _showing(self, subject: str) -> Iterator[Show]:
        columns = (
            rich.progress.TextColumn("[bold]{task.fields[subject]}[/bold] {task.description}"),
            rich.progress.BarColumn(bar_width=24),
            rich.progress.TextColumn("{task.fields[amount]}"),
            rich.progress.TimeElapsedColumn(),
            rich.progress.TextColumn("{task.fields[left]}", style="dim"),
        )
        with rich.progress.Progress(*columns, console=self._console, transient=True) as progress:
            task = progress.add_task("", total=None, subject=rich.markup.escape(subject), amount="", left="")
            yield lambda phase, _: progress.update(
                task,
                description=rich.markup.escape(phase.activity),
                total=phase.total,
                completed=phase.done,
                amount=phase.amount,
                left=phase.left,
            )


def clock_time(seconds: float) -> str:
    """Return minutes and seconds, as in ``3:07``."""
    minutes, rest = divmod(int(seconds), 60)
    return f"{minutes}:{rest:02}"


def time_left(done: int, total: int | None, elapsed: float) -> str:
    """Return how long the rest takes at the speed so far, as in ``about 2:30 left``; empty if unknown."""
    if not total or not done or done > total:
        return ""
    return f"about {clock_time(elapsed * (total - done) / done)} left"
