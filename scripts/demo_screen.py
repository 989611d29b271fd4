"""What the demo prints: numbered steps, the commands behind them, and the facts that were checked."""

import contextlib
import shlex
from collections.abc import Iterator, Sequence
from typing import Final

import rich.console

from addon_operator.kernel import errors

_INDENT: Final = "   "


class NotAsAnnouncedError(errors.AddonOperatorError):
    """Something that the demo had announced was not seen."""


class Screen:
    """A terminal, or a file that gets the same in plain text."""

    def __init__(self, console: rich.console.Console) -> None:
        self._console = console
        self._steps = 0
        self.checked = 0
        """How many facts were seen so far."""

    @property
    def is_interactive(self) -> bool:
        """Whether a person sits in front of it."""
        return self._console.is_terminal

    @property
    def console(self) -> rich.console.Console:
        """For progress bars of others."""
        return self._console

    def step(self, title: str) -> None:
        """Begin the next step."""
        self._steps += 1
        self._print(f"\n{self._steps}. {title}", style="bold")

    def note(self, text: str) -> None:
        """Say something in between."""
        self._print(f"{_INDENT}{text}")

    def command(self, argv: Sequence[str]) -> None:
        """Show a command as a person would type it."""
        self._print(f"{_INDENT}$ {shlex.join(argv)}", style="cyan")

    def output(self, text: str) -> None:
        """Show what a command printed."""
        for line in text.rstrip().splitlines():
            self._print(f"{_INDENT}{line}", style="dim")

    def seen(self, fact: str) -> None:
        """Show a fact that was checked and holds."""
        self.checked += 1
        self._print(f"{_INDENT}✓ {fact}", style="green")

    def check(self, fact: str, *, holds: bool, instead: object = "") -> None:
        """Show a fact if it holds.

        Raises :class:`NotAsAnnouncedError` if it does not; ``instead`` is what was seen.
        """
        if not holds:
            raise NotAsAnnouncedError(f"not as announced: {fact}; instead: {instead}")
        self.seen(fact)

    @contextlib.contextmanager
    def waiting(self, for_what: str) -> Iterator[None]:
        """Show on a terminal that something is being waited for."""
        with self._console.status(f"{for_what} …") if self.is_interactive else contextlib.nullcontext():
            yield

    def details(self, lines: Sequence[str]) -> None:
        """Show lines of a log."""
        self.output("\n".join(lines))

    def failed(self, text: str) -> None:
        """Show what went wrong, last."""
        self._print(f"✗ {text}", style="bold red")

    def _print(self, text: str, style: str = "") -> None:
        self._console.print(text, style=style, markup=False, highlight=False, soft_wrap=True)
