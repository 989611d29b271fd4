"""How ``addon-operator dev`` looks: one screen on a terminal, lines elsewhere."""

import contextlib
import sys
import termios
from collections.abc import Iterator, Mapping
from typing import Any, Final

import click
import rich.console
import rich.live
import rich.panel
import rich.table
import rich.text

from addon_operator.commands.dev import dev_loop, dev_view
from addon_operator.kernel import shown_texts

_HINT: Final = "Save a file to see what it changes; Ctrl-C ends it."
_TOPIC_WIDTH: Final = 8
_ROWS_BESIDE: Final = 20
"""Rows for what is not a difference."""
_LEAST_DIFF: Final = 5
_UNDER_WAY: Final = frozenset({"Pending", "Running"})
_STYLES: Final = {"Failed": "bold red", "Ready": "green", "Disabled": "dim"}


@contextlib.contextmanager
def lines() -> Iterator[dev_loop.Screen]:
    """Give a screen of lines, one for each thing that happens."""
    seen: dict[str, tuple[str, ...]] = {}

    def tell(line: dev_view.Line) -> None:
        for text in shown_texts.shown(line.text).splitlines() or [""]:
            click.echo(f"{line.topic:<{_TOPIC_WIDTH}} {text}")
        sys.stdout.flush()

    def draw(view: dev_view.DevView) -> None:
        for row in view.rows:
            state = _state(row)
            if row["state"] not in _UNDER_WAY and seen.get(row["name"]) != state:
                seen[row["name"]] = state
                tell(dev_view.Line("module", f"{row['name']}: {', '.join(filter(None, state))}"))

    yield dev_loop.Screen(tell, draw)


@contextlib.contextmanager
def full(title: str, example: str) -> Iterator[dev_loop.Screen]:
    """Give the whole terminal, which is drawn anew only when something changed.

    ``example`` is a command that asks the operator.
    """
    console = rich.console.Console(highlight=False, markup=False)
    drawn: list[Any] = []
    with _without_echo(), rich.live.Live(console=console, screen=True, auto_refresh=False) as live:

        def draw(view: dev_view.DevView) -> None:
            picture = _picture(view)
            if drawn != [picture, console.size]:
                drawn[:] = [picture, console.size]
                live.update(rendered(title, example, view, console.height), refresh=True)

        yield dev_loop.Screen(lambda _: None, draw)


@contextlib.contextmanager
def _without_echo() -> Iterator[None]:
    """Keep what somebody types off the screen, and from the shell afterwards; Ctrl-C stays what it is."""
    if not sys.stdin.isatty():
        yield
        return
    before = termios.tcgetattr(sys.stdin)
    during = termios.tcgetattr(sys.stdin)
    during[3] &= ~termios.ECHO
    # Stopped with Ctrl-Z, it would leave its picture to the shell.
    during[6][termios.VSUSP] = b"\0"
    termios.tcsetattr(sys.stdin, termios.TCSANOW, during)
    try:
        yield
    finally:
        # A terminal that was closed has no attributes any more.
        with contextlib.suppress(termios.error):
            termios.tcsetattr(sys.stdin, termios.TCSAFLUSH, before)


def _picture(view: dev_view.DevView) -> tuple[Any, ...]:
    """Return what is shown, to be compared."""
    rows = tuple((row["name"], *_state(row)) for row in view.rows)
    return (
        view.is_ending,
        rows,
        tuple(view.errors),
        view.last,
        tuple(view.running),
        tuple((name, tuple(each)) for name, each in view.hooks.items()),
    )


def _state(row: Mapping[str, Any]) -> tuple[str, ...]:
    revision = row.get("revision")
    health = str(row.get("health") or "")
    message = str(row.get("healthMessage") or "") if health != "Healthy" else ""
    return str(row["state"]), health, "" if revision is None else f"revision {revision}", message


def rendered(title: str, example: str, view: dev_view.DevView, height: int) -> rich.console.Group:
    """Return the whole screen, of so many rows, where a long difference leaves some to the hooks."""
    parts: list[rich.console.RenderableType] = [
        rich.text.Text(f"addon-operator dev: {title}", style="bold", no_wrap=True, overflow="ellipsis"),
        rich.text.Text(dev_view.ENDING if view.is_ending else _HINT, style="dim"),
        rich.text.Text(f"In another shell: {example}", style="dim"),
    ]
    if view.errors:
        text = _text("\n".join(view.errors))
        parts.append(rich.panel.Panel(text, title="Errors", title_align="left", border_style="red"))
    parts.append(_modules(view))
    parts += [_text(each, style="yellow") for each in view.running]
    if view.last is not None:
        parts.append(_last(view.last, max(height - _ROWS_BESIDE, _LEAST_DIFF)))
    if view.hooks:
        written = [f"{name}: {line}" for name, each in reversed(view.hooks.items()) for line in each]
        text = _text("\n".join(written), no_wrap=True, overflow="ellipsis")
        parts.append(rich.panel.Panel(text, title="Output of hooks", title_align="left"))
    return rich.console.Group(*parts)


def _text(text: str, **style: Any) -> rich.text.Text:  # noqa: ANN401 - as rich takes it
    return rich.text.Text(shown_texts.shown(text), **style)


def _modules(view: dev_view.DevView) -> rich.table.Table:
    table = rich.table.Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    for name in ("MODULE", "STATE", "HEALTH", "REVISION", ""):
        table.add_column(name, no_wrap=True)
    for row in view.rows:
        state, *rest = _state(row)
        cells = [row["name"], state, *(each.removeprefix("revision ") for each in rest)]
        table.add_row(*map(_text, cells), style=_STYLES.get(state, ""))
    return table


def _last(change: dev_view.Change, most_diff: int) -> rich.panel.Panel:
    shown = shown_texts.shown
    # What a small terminal cuts is the end.
    text = rich.text.Text(shown(f"{change.summary}\n"))
    for file in change.files:
        text.append(shown(f"{file}\n"), style="bold")
    for value in change.values:
        text.append(shown(f"{value}\n"), style="cyan")
    for line in change.diff[:most_diff]:
        text.append(shown(f"{line}\n"), style={"+": "green", "-": "red"}.get(line[:1], ""))
    if len(change.diff) > most_diff:
        text.append(f"… {len(change.diff) - most_diff} lines more\n", style="dim")
    text.rstrip()
    return rich.panel.Panel(text, title=f"Last change of {change.module}", title_align="left")
