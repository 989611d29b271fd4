"""``addon-operator module why``: where a field of a rendered object comes from."""

from collections.abc import Iterator
from typing import Any

import click

from addon_operator.cli import debug, printing

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
