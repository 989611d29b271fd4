"""``addon-operator module``: the modules of a running operator."""

import urllib.parse
from collections.abc import Iterator, Sequence
from typing import Final

import click

from addon_operator.cli import debug, module_describe, tables

_COLUMNS: Final = ("MODULE", "ORDER", "STATE", "LAST RUN", "reason", "last error")
_WIDE_COLUMNS: Final = (*_COLUMNS[:-1], "shared objects", _COLUMNS[-1])
_SHARED_SHOWN: Final = 5
_STYLES: Final = {"Ready": "green", "Failed": "red", "Running": "cyan", "Disabled": "dim"}
_RESOURCE_COLUMNS: Final = ("MODULE", "STATE", "resource", "reason")

_module: Final = click.argument("module", shell_complete=debug.complete_module)
_global: Final = click.option("-g", "--global", "with_global", is_flag=True, help="Show global ones, too.")


@click.group()
def module() -> None:
    """Look at the modules of a running operator."""


module.add_command(module_describe.describe)


@module.command("list")
@debug.output_option("text", debug.WIDE)
@debug.watch_options
@debug.socket_option
def list_(output: str, *, watch: bool, interval: float, socket: str | None) -> None:
    """List the modules with state, reason, order, last run and last error.

    -o wide has all of long errors, and the objects that several modules have.
    """
    asked = debug.client(socket)
    table = _all_of_modules if output == debug.WIDE else _modules

    def look() -> str:
        return debug.rendered(asked.get("/module/list.json"), output, table)

    debug.look_or_watch(look, watch=watch, interval=interval)


@module.command()
@_module
@_global
@debug.output_option("yaml")
@debug.sensitive_option
@debug.socket_option
def values(module: str, output: str, *, with_global: bool, show_sensitive: bool, socket: str | None) -> None:
    """Dump the values of MODULE."""
    _dump(module, "values", output, socket, **{"global": with_global, debug.SHOW_SENSITIVE: show_sensitive})


@module.command()
@_module
@_global
@debug.output_option("yaml")
@debug.sensitive_option
@debug.socket_option
def config(module: str, output: str, *, with_global: bool, show_sensitive: bool, socket: str | None) -> None:
    """Dump what the ConfigMap says of MODULE."""
    _dump(module, "config", output, socket, **{"global": with_global, debug.SHOW_SENSITIVE: show_sensitive})


@module.command()
@_module
@debug.output_option("json")
@debug.sensitive_option
@debug.socket_option
def patches(module: str, output: str, *, show_sensitive: bool, socket: str | None) -> None:
    """Dump the JSON patches of MODULE's hooks."""
    _dump(module, "patches", output, socket, **{debug.SHOW_SENSITIVE: show_sensitive})


@module.command()
@_module
@debug.output_option("yaml")
@debug.sensitive_option
@debug.socket_option
def snapshots(module: str, output: str, *, show_sensitive: bool, socket: str | None) -> None:
    """Dump the objects that bindings of MODULE's hooks hold."""
    _dump(module, "snapshots", output, socket, **{debug.SHOW_SENSITIVE: show_sensitive})


@module.command("resource-monitor")
@debug.output_option("text")
@debug.socket_option
def resource_monitor(output: str, socket: str | None) -> None:
    """Dump the resources of releases that are watched."""
    debug.show(debug.client(socket).get("/module/resource-monitor.json"), output, _resources)


@module.command()
@_module
@click.option("--diff", is_flag=True, help="Show how the cluster would change, by a dry run.")
@click.option("--debug", is_flag=True, hidden=True, expose_value=False, help="Understood for old scripts.")
@debug.sensitive_option
@debug.socket_option
def render(
    module: str,
    *,
    diff: bool,
    show_sensitive: bool,
    socket: str | None,
) -> None:
    """Print the manifest that the chart of MODULE renders to with the current values."""
    query = debug.query(**{"diff": diff, debug.SHOW_SENSITIVE: show_sensitive})
    click.echo(debug.client(socket, is_slow=True).get_text(_path(module, "render"), query), nl=False)


def _dump(module: str, what: str, output: str, socket: str | None, **flags: bool) -> None:
    document = debug.client(socket).get(_path(module, f"{what}.json"), debug.query(**flags))
    debug.show(document, output)


def _path(module: str, rest: str) -> str:
    return f"/module/{urllib.parse.quote(module, safe='')}/{rest}"


def _modules(document: debug.Document) -> str:
    rows = [_row(found) for found in document["modules"]]
    return tables.table(_COLUMNS, tables.one_line_each(_COLUMNS, rows), _style) if rows else "no modules\n"


def _all_of_modules(document: debug.Document) -> str:
    rows = [_wide_row(found) for found in document["modules"]]
    return tables.table(_WIDE_COLUMNS, rows, _style) if rows else "no modules\n"


def _row(found: debug.Document) -> tuple[str, ...]:
    waiting = debug.waiting_texts(found.get("waitingBindings", ()))
    return (
        found["name"],
        str(found["order"]),
        found["state"],
        debug.ago(found["lastRun"]),
        found["reason"],
        debug.one_line("; ".join(filter(None, [found["lastError"], *waiting]))),
    )


def _wide_row(found: debug.Document) -> tuple[str, ...]:
    *first, last = _row(found)
    shared = [debug.shared_text(each) for each in found.get("sharedObjects", ())]
    more = len(shared) - _SHARED_SHOWN
    told = ", ".join(shared[:_SHARED_SHOWN]) + (f" and {more} more" if more > 0 else "")
    return (*first, told or "-", last)


def _style(row: Sequence[str]) -> str:
    return _STYLES.get(row[2], "")


def _resources(document: debug.Document) -> str:
    rows = [line for module, found in document.items() for line in _resource_rows(module, found)]
    return tables.table(_RESOURCE_COLUMNS, rows) if rows else "no enabled modules\n"


def _resource_rows(module: str, found: debug.Document) -> Iterator[tuple[str, ...]]:
    if isinstance(found, str):
        yield (module, found, "-", "-")
        return
    for resource in found:
        yield (module, resource["state"], resource["resource"], resource.get("reason") or "-")
