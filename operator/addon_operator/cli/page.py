"""``addon-operator page``: the status page with values and differences, in the user's browser."""

import asyncio
import contextlib
import signal
from typing import TYPE_CHECKING

import click

from addon_operator.cli import debug

if TYPE_CHECKING:
    from addon_operator.debug import debug_client


@click.command()
@click.option(
    "--port", type=click.IntRange(0, 65535), default=0, help="Port on 127.0.0.1; any free one if 0."
)
@debug.socket_option
def page(port: int, socket: str | None) -> None:
    """Open the page of an operator with what only you may see.

    It shows what the page at / shows, and of each module its values, what others changed, how revisions
    differ, and the last output of its hooks. Sensitive values are masked. The page is served on this machine
    until you press Ctrl-C, and your rights in the cluster decide what it may read.
    """
    asyncio.run(_serve(debug.client(socket, is_slow=True), port))


async def _serve(client: "debug_client.DebugClient", port: int) -> None:
    from addon_operator.debug import page_server

    loop, end = asyncio.get_running_loop(), asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, end.set)
    # What cannot be asked is said now, and not in the browser.
    await asyncio.to_thread(client.get, "/page.json")
    async with page_server.serving(client, port) as link:
        click.echo(f"The page of the operator {client.place} is at\n\n  {link}\n\nPress Ctrl-C to end it.")
        with contextlib.suppress(asyncio.CancelledError):
            await end.wait()
