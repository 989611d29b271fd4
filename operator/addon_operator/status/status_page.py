"""The status page: modules and queues as plain HTML, for whoever can reach the HTTP site.

Nobody is asked who they are there, so no values are shown, and no messages that may hold some.
"""

import dataclasses
import html
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final, TypeAlias

import addon_operator
from addon_operator.engine import introspection
from addon_operator.kernel import names

_REFRESH_SECONDS: Final = 10
_MOST_SHARED: Final = 200
_STYLE: Final = """
body { font: 14px/1.5 system-ui, sans-serif; margin: 2rem; color: #222; background: #fff; }
table { border-collapse: collapse; margin-bottom: 2rem; }
th, td { text-align: left; vertical-align: top; padding: .2rem 1.5rem .2rem 0; }
th, td { border-bottom: 1px solid #ddd; }
"""
_LINKS: Final = ("/healthz", "/readyz", "/status/converge", "/metrics", "/discovery")

SharedObjects: TypeAlias = Mapping[str, Sequence[names.ModuleName]]
"""Objects of a module, as a person calls them, with the other modules that have them."""
SharedOf: TypeAlias = Callable[[names.ModuleName], SharedObjects]


def nothing_shared(_: names.ModuleName) -> SharedObjects:
    """Return what modules share as long as nobody knows their objects."""
    return {}


@dataclasses.dataclass(frozen=True, slots=True)
class Overview:
    """What the page shows."""

    state: str
    """Of the converge, in one word."""
    is_ready: bool
    modules: Sequence[introspection.ModuleRow] = ()
    errors: Mapping[names.ModuleName, str] = dataclasses.field(default_factory=dict)
    """Last errors of modules, without values."""
    queues: Sequence[introspection.QueueRow] = ()
    shared: Mapping[names.ModuleName, SharedObjects] = dataclasses.field(default_factory=dict)
    """Objects of modules' releases that other modules have, too."""


def overview(
    state: str, views: introspection.Introspection, shared_of: SharedOf = nothing_shared, *, is_ready: bool
) -> Overview:
    """Return an overview of a running engine."""
    listed = views.queues()
    queues = [*listed["active"], *listed["empty"]]
    modules = views.modules()
    shared = {name: shared_of(name) for row in modules if (name := names.ModuleName(row["name"]))}
    return Overview(state, is_ready, modules, views.errors_without_values(), queues, shared)


def render(shown: Overview) -> str:
    """Return the page."""
    readiness = "ready" if shown.is_ready else "not ready"
    links = " · ".join(f'<a href="{link}">{link}</a>' for link in _LINKS)
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="refresh" content="{_REFRESH_SECONDS}">\n'
        f"<title>addon-operator: {readiness}</title>\n<style>{_STYLE}</style>\n</head>\n<body>\n"
        f"<h1>addon-operator {html.escape(addon_operator.__version__)}</h1>\n"
        f"<p>{readiness}, {html.escape(shown.state)}</p>\n"
        f"{_modules(shown)}{_shared(shown)}{_queues(shown)}<p>{links}</p>\n</body>\n</html>\n"
    )


def _modules(shown: Overview) -> str:
    rows = (
        (
            row["name"],
            row["order"],
            row["state"],
            row["reason"],
            row["lastRun"] or "",
            shown.errors.get(names.ModuleName(row["name"]), ""),
        )
        for row in shown.modules
    )
    return _table("Modules", ("module", "order", "state", "reason", "last run", "last error"), rows)


def _shared(shown: Overview) -> str:
    rows = [
        (module, resource, ", ".join(others))
        for module, objects in shown.shared.items()
        for resource, others in objects.items()
    ]
    if not rows:
        return ""
    title = "Shared objects" + (
        f", the first {_MOST_SHARED} of {len(rows)}" if len(rows) > _MOST_SHARED else ""
    )
    return _table(title, ("module", "object", "also of"), rows[:_MOST_SHARED])


def _queues(shown: Overview) -> str:
    rows = (
        (row["name"], row["tasksCount"], row["status"], f"{row['headAge']:.0f} s", row["headTries"])
        for row in shown.queues
    )
    return _table("Queues", ("queue", "tasks", "head", "age of the head", "failed tries of the head"), rows)


def _table(title: str, columns: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    head = "".join(f"<th>{html.escape(column)}</th>" for column in columns)
    lines = "".join(f"<tr>{_cells(row)}</tr>\n" for row in rows)
    return f"<h2>{html.escape(title)}</h2>\n<table>\n<tr>{head}</tr>\n{lines}</table>\n"


def _cells(row: Sequence[object]) -> str:
    return "".join(f"<td>{html.escape(str(cell))}</td>" for cell in row)
