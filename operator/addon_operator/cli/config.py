"""``addon-operator config``: parameters of a running operator that can be changed."""

from collections.abc import Callable, Sequence
from typing import Final

import click

from addon_operator.cli import debug, printing

_COLUMNS: Final = ("NAME", "VALUE", "DEFAULT", "FOR", "description")
_PARAMETERS: Final = ("log.level",)
_LEVELS: Final = ("debug", "info", "warn", "error")


def _complete(words: Sequence[str]) -> Callable[[click.Context, click.Parameter, str], list[str]]:
    return lambda _, __, incomplete: [word for word in words if word.startswith(incomplete)]


@click.group(cls=printing.Group)
def config() -> None:
    """Show and change parameters of a running operator."""


@config.command("list")
@printing.output_option("text", printing.LIST_FORMATS)
@debug.socket_option
def list_(output: str, socket: str | None) -> None:
    """List the parameters that can be changed."""
    _LISTED.show(debug.client(socket).get("/config/list.json"), output)


@config.command("set")
@click.argument("name", callback=printing.not_empty, shell_complete=_complete(_PARAMETERS))
@click.argument("value", callback=printing.not_empty, shell_complete=_complete(_LEVELS))
@click.argument("duration", type=debug.Seconds(), required=False)
@debug.socket_option
def set_(name: str, value: str, duration: float | None, socket: str | None) -> None:
    """Set the parameter NAME to VALUE, for DURATION (such as 10m) or until the operator ends.

    The level debug, without DURATION, lasts 30m.
    """
    form = {"name": name, "value": value}
    if duration is not None:
        form["duration"] = f"{duration}s"
    click.echo(debug.text_of(debug.client(socket).post("/config/set", form), _set))


def _set(row: debug.Document) -> str:
    return f"{row['name']} is {row['value']}{_until(row)}"


def _until(row: debug.Document) -> str:
    if row["expiresIn"] is None:
        return ""
    return f" for {printing.age(row['expiresIn'])}, then {row['default']}"


def _parameters(rows: debug.Document, wide: bool) -> str:
    return printing.listing(_COLUMNS, [_cells(row) for row in rows], wide=wide)


_LISTED: Final = debug.Listed(_parameters, "parameter", lambda rows: [row["name"] for row in rows])


def _cells(row: debug.Document) -> tuple[str, ...]:
    left = "-" if row["expiresIn"] is None else printing.age(row["expiresIn"])
    return (row["name"], row["value"], row["default"], left, row["description"])
