"""More commands of ``addon-operator module``: ``suspend``, ``resume`` and ``why``."""

import socket as sockets
from collections.abc import Iterator
from typing import Any

import click

from addon_operator.cli import debug, printing


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


Document = dict[str, Any]


@click.command()
@click.argument("name", metavar="MODULE", shell_complete=debug.complete_module)
@click.argument("wanted", metavar="[KIND/NAME]", required=False, default="")
@click.argument("path", metavar="[PATH]", required=False, default="")
@printing.output_option("text")
@debug.socket_option
def why(name: str, wanted: str, path: str, output: str, socket: str | None) -> None:
    """Show where a field of an object of MODULE comes from: values, their sources, the template's line.

    PATH is that of the field, as /spec/replicas or spec.replicas. Without it, all fields are shown; without
    KIND/NAME, all objects. The chart is rendered with other values to find it out, a few times and for two
    seconds at most; what is not found then is said to be unknown. Values that are sensitive are not shown.
    """
    query = {key: text for key, text in (("object", wanted), ("path", path)) if text}
    found = debug.client(socket, is_slow=True).get(debug.module_path(name, "why.json"), query)
    debug.show(found, output, _text)


def _text(document: Document) -> str:
    if "objects" in document:
        rows = [(each["object"], each["template"]) for each in document["objects"]]
        return printing.table(("OBJECT", "template"), rows) if rows else "no objects\n"
    lines = [f"{document['object']} ({document['template']})"]
    for field in document["fields"]:
        lines += _field(field)
    return "".join(f"{line}\n" for line in lines)


def _field(field: Document) -> Iterator[str]:
    line = "" if field["line"] is None else f", line {field['line']} of the template"
    yield f"{field['path']}: {debug.one_line(field['value'])}"
    if not field["values"]:
        yield f"  {field['cause']}{line}"
        return
    yield f"  {field['cause']} {', '.join(each['key'] for each in field['values'])}{line}"
    yield from (f"    {each['key']}: {each['origin']}" for each in field["values"])
