"""All commands of the command line, by their words."""

from collections.abc import Iterator
from typing import Final

import click

from addon_operator.cli import main


def _commands(command: click.Command, path: tuple[str, ...] = ()) -> Iterator[tuple[str, click.Command]]:
    yield " ".join(path), command
    if isinstance(command, click.Group):
        context = click.Context(command)
        for name in command.list_commands(context):
            inner = command.get_command(context, name)
            assert inner is not None
            yield from _commands(inner, (*path, name))


COMMANDS: Final = dict(_commands(main.cli))
LEAVES: Final = {name: each for name, each in COMMANDS.items() if not isinstance(each, click.Group)}
GROUPS: Final = [name for name, each in COMMANDS.items() if isinstance(each, click.Group)]
