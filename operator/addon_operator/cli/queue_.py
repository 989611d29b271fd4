"""``addon-operator queue``: what the operator has to do."""

from collections.abc import Iterator, Sequence
from typing import Final

import click

from addon_operator.cli import debug, printing

SHOWN_TASKS: Final = 50
"""Of each queue, in a table; the other formats show all."""
_COLUMNS: Final = ("QUEUE", "#", "TASK", "AGE", "TRIES", "STATE", "last error")


@click.group(cls=printing.Group)
def queue() -> None:
    """Show the tasks of a running operator."""


@queue.command("list")
@printing.output_option("text", printing.LIST_FORMATS)
@click.option("-e", "--show-empty", is_flag=True, help="Also show empty queues.")
@debug.watch_options
@debug.socket_option
def list_(output: str, *, show_empty: bool, watch: bool, interval: float, socket: str | None) -> None:
    """List the tasks in all queues."""
    path = "/queue/list.json"
    debug.look_or_watch(socket, path, output, _LISTED, watch=watch, interval=interval, showEmpty=show_empty)


@queue.command()
@printing.output_option("text", printing.LIST_FORMATS)
@debug.watch_options
@debug.socket_option
def main(output: str, *, watch: bool, interval: float, socket: str | None) -> None:
    """List the tasks in the main queue."""
    path = "/queue/main.json"
    debug.look_or_watch(socket, path, output, _MAIN, watch=watch, interval=interval)


def _queues(document: debug.Document, wide: bool) -> str:
    table = _table(document["active"], wide=wide) if document["active"] else ""
    empty = ", ".join(row["name"] for row in document["empty"])
    empty = f"Empty queues: {empty}\n" if empty else ""
    return "\n".join(part for part in (table, empty, _summary(document["summary"])) if part)


def _main(row: debug.Document, wide: bool) -> str:
    return _table([row], wide=wide) if row["tasks"] else f"queue {row['name']} is empty\n"


_LISTED: Final = debug.Listed(
    _queues, "queue", lambda document: [row["name"] for row in (*document["active"], *document["empty"])]
)
_MAIN: Final = debug.Listed(_main, "queue", lambda row: [row["name"]])


def _table(rows: list[debug.Document], *, wide: bool) -> str:
    lines = [line for row in rows for line in _lines(row)]
    table = printing.listing(_COLUMNS, lines, _style, wide=wide)
    hidden = {row["name"]: len(row["tasks"]) - SHOWN_TASKS for row in rows}
    more = [f"{count} more in {name}\n" for name, count in hidden.items() if count > 0]
    return table + "".join(more)


def _lines(row: debug.Document) -> Iterator[tuple[str, ...]]:
    for task in row["tasks"][:SHOWN_TASKS]:
        yield (
            row["name"],
            str(task["index"]),
            _subject(task),
            printing.age(task["age"]),
            str(task["tries"]),
            _state(task),
            printing.one_line(task["lastError"]),
        )


def _style(row: Sequence[str]) -> str:
    tries, state = row[4], row[5]
    return "green" if state == "running" else "yellow" if tries != "0" else ""


def _subject(task: debug.Document) -> str:
    owner = "/".join(part for part in (task["module"], task["hook"]) if part)
    return " ".join(part for part in (task["kind"], owner, task["binding"]) if part)


def _state(task: debug.Document) -> str:
    if task["nextTryIn"] > 0:
        return f"next try in {printing.age(task['nextTryIn'])}"
    return str(task["state"])


def _summary(summary: debug.Document) -> str:
    others = summary["otherQueues"]
    count = others["active"] + others["empty"]
    text = f"main: {_tasks(summary['mainQueueTasks'])}"
    if count:
        noun = "queue" if count == 1 else "queues"
        empty = f", {others['empty']} of them empty" if others["empty"] else ""
        text += f"; {count} other {noun}{empty}: {_tasks(others['tasks'])}"
    return text + "\n"


def _tasks(count: int) -> str:
    return "no tasks" if count == 0 else "1 task" if count == 1 else f"{count} tasks"
