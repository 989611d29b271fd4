"""``addon-operator notify``: who is told what becomes of modules."""

import urllib.parse
from typing import Final

import click

from addon_operator.cli import completion, debug, printing

_COLUMNS: Final = ("TARGET", "FORMAT", "HOST", "AFTER", "LAST SENT", "on", "modules", "problem")


@click.group(cls=printing.Group)
def notify() -> None:
    """Show and test the targets of notifications."""


@notify.command("list")
@printing.output_option("text", printing.LIST_FORMATS)
@debug.socket_option
def list_(output: str, socket: str | None) -> None:
    """List the targets, and whether messages reach them."""
    operator = debug.client(socket)
    rows = operator.get("/notify/list.json")
    _LISTED.show(rows, output)
    # In full: the table cuts it.
    click.echo(debug.text_of(rows, _problems), nl=False, err=True)
    if problem := debug.text_of(operator.get("/notify/source.json"), lambda source: str(source["problem"])):
        printing.note(problem, "Warning")


@notify.command()
@click.argument(
    "name",
    metavar="NAME",
    callback=printing.not_empty,
    shell_complete=completion.completing("/notify/list.json", lambda rows: [row["name"] for row in rows]),
)
@debug.socket_option
def test(name: str, socket: str | None) -> None:
    """Send a test message to the target NAME now.

    Exit code 1, and the reason, if the receiver does not take it.
    """
    path = f"/notify/{urllib.parse.quote(name, safe='')}/test"
    click.echo(debug.text_of(debug.client(socket, is_slow=True).post(path, {}), _sent))


def _sent(told: debug.Document) -> str:
    return f"target {told['name']} took the test; look whether it is shown at {told['host']}"


def _problems(rows: debug.Document) -> str:
    wrong = (row for row in rows if row["problem"])
    return "".join(f"Warning: target {row['name']}: {row['problem']}\n" for row in wrong)


def _targets(rows: debug.Document, wide: bool) -> str:
    if not rows:
        return "no targets: nobody is notified\n"
    return printing.listing(_COLUMNS, [_row(row) for row in rows], wide=wide)


def _row(row: debug.Document) -> tuple[str, ...]:
    return (
        row["name"],
        row["format"],
        row["host"],
        row["after"],
        printing.ago(row["lastSent"]),
        ",".join(row["on"]),
        ",".join(row["modules"]),
        printing.one_line(row["problem"]),
    )


_LISTED: Final = debug.Listed(_targets, "target", lambda rows: [row["name"] for row in rows])
