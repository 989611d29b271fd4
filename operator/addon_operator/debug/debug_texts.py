"""Answers of the debug endpoint as plain text, for whoever asks it without our command line."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from addon_operator.debug import runtime_config
from addon_operator.engine import introspection


def modules(document: Mapping[str, Any]) -> str:
    """One line for each module: name and state."""
    return _joined(f"{row['name']}: {row['state']}" for row in document["modules"])


def queue(row: introspection.QueueRow) -> str:
    """A queue with all its tasks."""
    return _joined(_queue_lines(row))


def queues(document: introspection.QueueList) -> str:
    """All queues with their tasks, and how many there are."""
    return _joined(_all_lines(document))


def parameters(rows: Iterable[runtime_config.ParameterRow]) -> str:
    """One line for each parameter."""
    return _joined(f"{row['name']} = {row['value']}" for row in rows)


def _all_lines(document: introspection.QueueList) -> Iterator[str]:
    for row in document["active"]:
        yield from _queue_lines(row)
        yield ""
    if document["empty"]:
        yield f"Empty queues: {', '.join(row['name'] for row in document['empty'])}"
    yield f"Tasks in all queues: {document['summary']['totalTasks']}"


def _queue_lines(row: introspection.QueueRow) -> Iterator[str]:
    status = f", {row['status']}" if row["status"] else ""
    yield f"Queue '{row['name']}': length {row['tasksCount']}{status}"
    for task in row["tasks"]:
        error = f" - {task['lastError']}" if task["lastError"] else ""
        yield f"{task['index']:3}. {task['description']}{error}"


def _joined(lines: Iterable[str]) -> str:
    return "".join(f"{line}\n" for line in lines)
