"""``addon-operator global``: global hooks and values of a running operator."""

import click

from addon_operator.cli import debug


@click.group("global")
def global_() -> None:
    """Show global hooks and values of a running operator."""


@global_.command("list")
@debug.output_option("text")
@debug.socket_option
def list_(output: str, socket: str | None) -> None:
    """List the global hooks, and which of their bindings wait for their objects."""
    debug.show(debug.client(socket).get("/global/list.json"), output, _hooks)


@global_.command()
@debug.output_option("yaml")
@debug.sensitive_option
@debug.socket_option
def values(output: str, *, show_sensitive: bool, socket: str | None) -> None:
    """Print the current global values."""
    _dump("values", output, socket, show_sensitive=show_sensitive)


@global_.command()
@debug.output_option("yaml")
@debug.sensitive_option
@debug.socket_option
def config(output: str, *, show_sensitive: bool, socket: str | None) -> None:
    """Print the global values of the ConfigMap."""
    _dump("config", output, socket, show_sensitive=show_sensitive)


@global_.command()
@debug.output_option("json")
@debug.sensitive_option
@debug.socket_option
def patches(output: str, *, show_sensitive: bool, socket: str | None) -> None:
    """Print the JSON patches of global hooks."""
    _dump("patches", output, socket, show_sensitive=show_sensitive)


@global_.command()
@debug.output_option("yaml")
@debug.sensitive_option
@debug.socket_option
def snapshots(output: str, *, show_sensitive: bool, socket: str | None) -> None:
    """Print the snapshots of global hooks: the objects of their bindings."""
    _dump("snapshots", output, socket, show_sensitive=show_sensitive)


def _hooks(document: debug.Document) -> str:
    waiting = debug.waiting_texts(document.get("waitingBindings", ()))
    return debug.lines([*document["globalHooks"], *waiting], "no global hooks")


def _dump(what: str, output: str, socket: str | None, *, show_sensitive: bool) -> None:
    query = debug.query(**{debug.SHOW_SENSITIVE: show_sensitive})
    debug.show(debug.client(socket).get(f"/global/{what}.json", query), output)
