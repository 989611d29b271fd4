"""What the shell is offered: names of the operator here, or of modules of a cluster."""

import pathlib
from collections.abc import Callable, Sequence
from typing import Final

import click

from addon_operator.cli import debug, printing
from addon_operator.kernel import errors

_SECONDS: Final = 1.0
"""Who presses Tab does not wait longer."""


def completing(
    path: str, names: Callable[[debug.Document], Sequence[str]]
) -> Callable[[click.Context, click.Parameter, str], list[str]]:
    """Return what completes names of the answer at a path for the shell; none if nobody answers at once."""

    def complete(ctx: click.Context, _: click.Parameter, incomplete: str) -> list[str]:
        from addon_operator.debug import debug_client

        try:
            # While the shell completes, no command is current.
            with ctx:
                socket = debug.place_or_socket(ctx.params.get("socket"))
            if not isinstance(socket, pathlib.Path):
                return []
            document = debug_client.DebugClient(socket, _SECONDS).get(path)
            found = [str(name) for name in names(document)]
        except (errors.AddonOperatorError, click.ClickException, OSError, KeyError, TypeError):
            return []
        return [name for name in found if name.startswith(incomplete)]

    return complete


def complete_module(ctx: click.Context, parameter: click.Parameter, incomplete: str) -> list[str]:
    """Return the names of modules for the shell: of the operator here, or else of the cluster, if quick."""
    here = _complete_here(ctx, parameter, incomplete)
    return here or [name for name in _modules_of_cluster(ctx) if name.startswith(incomplete)]


_complete_here: Final = completing(
    "/module/list.json", lambda document: [row["name"] for row in document["modules"]]
)


def _modules_of_cluster(ctx: click.Context) -> Sequence[str]:
    """Return the names of Module objects; none if there is no way to a cluster, or it takes long."""
    try:
        with ctx:
            place = debug.place_or_socket(ctx.params.get("socket"))
        if isinstance(place, pathlib.Path):
            return ()
        from addon_operator.commands.outside import module_requests

        return module_requests.listed(place, _SECONDS)
    except (errors.AddonOperatorError, click.ClickException, OSError):
        return ()


def module_argument(name: str) -> Callable[[debug.Command], debug.Command]:
    """Return the argument of a command that asks an operator about a module: its name, completed."""
    return click.argument(name, metavar="MODULE", callback=printing.not_empty, shell_complete=complete_module)
