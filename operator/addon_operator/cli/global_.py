"""``addon-operator global``: global hooks and values of a running operator."""

from typing import Final

import click

from addon_operator.cli import debug, printing


@click.group("global")
def global_() -> None:
    """Show global hooks and values of a running operator."""


@global_.command("list")
@printing.output_option("text", printing.LIST_FORMATS)
@debug.socket_option
def list_(output: str, socket: str | None) -> None:
    """List the global hooks, which of their bindings wait, and what is registered."""
    _LISTED.show(debug.client(socket).get("/global/list.json"), output)


for _what, _default, _help in (
    ("values", "yaml", "Print the current global values."),
    ("config", "yaml", "Print the global values of the ConfigMap."),
    ("patches", "json", "Print the JSON patches of global hooks."),
    ("snapshots", "yaml", "Print the snapshots of global hooks: the objects of their bindings."),
):
    debug.add_dump(global_, _what, _default, _help)


def _hooks(document: debug.Document, _: bool) -> str:
    waiting = debug.waiting_texts(document.get("waitingBindings", ()))
    waiting += map(debug.answering_text, document.get("answering", ()))
    return debug.lines([*document["globalHooks"], *waiting], "no global hooks")


_LISTED: Final = debug.Listed(_hooks, "hook", lambda document: document["globalHooks"])
