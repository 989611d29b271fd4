"""``addon-operator module suspend`` and ``resume``: leave a module alone for a while."""

import socket as sockets

import click

from addon_operator.cli import debug


class _Text(click.ParamType[str]):
    """A text that says something."""

    name = "text"

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> str:
        if not value.strip():
            self.fail("it is empty: say why, for everybody who looks at the module", param, ctx)
        return value


@click.command()
@click.argument("name", metavar="MODULE", shell_complete=debug.complete_module)
@click.option(
    "--reason",
    metavar="TEXT",
    type=_Text(),
    required=True,
    help="Why, for everybody who looks at the module.",
)
@click.option(
    "--for", "duration", metavar="DURATION", type=debug.Seconds(), help="End it by itself after this time."
)
@debug.socket_option
def suspend(name: str, reason: str, duration: float | None, socket: str | None) -> None:
    """Have Helm and healing leave MODULE alone, also after a restart; its hooks continue.

    This is the maintenance of the values ConfigMap, kept in annotations of the Module object.
    """
    if (asked := debug.outside_requests(socket)) is not None:
        told = asked.suspend(name, reason, duration)
    else:
        form = {"reason": reason, "by": f"somebody on {sockets.gethostname()}"}
        form |= {} if duration is None else {"for": f"{duration}s"}
        told = debug.client(socket).post(debug.module_path(name, "suspend"), form)
    click.echo(debug.text_of(told, _suspended))


@click.command()
@click.argument("name", metavar="MODULE", shell_complete=debug.complete_module)
@debug.socket_option
def resume(name: str, socket: str | None) -> None:
    """Look after MODULE again that was suspended: what changed meanwhile is applied."""
    if (asked := debug.outside_requests(socket)) is not None:
        told = asked.resume(name)
    else:
        told = debug.client(socket).post(debug.module_path(name, "resume"), {})
    click.echo(debug.text_of(told, _resumed))


def _suspended(told: debug.Document) -> str:
    return f"module {told['name']} is {told['suspended']}"


def _resumed(told: debug.Document) -> str:
    return f"module {told['name']} is looked after again"
