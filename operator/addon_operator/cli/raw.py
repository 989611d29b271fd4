"""``addon-operator raw``: any request to the debug endpoint of a running operator."""

import click

from addon_operator.cli import debug


@click.command()
@click.argument("urlpath")
@debug.socket_option
def raw(urlpath: str, socket: str | None) -> None:
    """Print what the debug endpoint answers at URLPATH, such as /queue/list.yaml; /discovery lists all."""
    path = urlpath if urlpath.startswith("/") else f"/{urlpath}"
    text = debug.client(socket, is_slow=True).get_text(path)
    click.echo(text, nl=not text.endswith("\n"))
