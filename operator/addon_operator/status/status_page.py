"""The status page: modules and queues as plain HTML, for whoever can reach the HTTP site.

Nobody is asked who they are there, so no values are shown, and no messages that may hold some.
"""

import dataclasses
import html
from collections.abc import Iterable, Mapping, Sequence
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

Shared: TypeAlias = Mapping[tuple[names.ModuleName, ...], Sequence[str]]
"""Objects, as a person calls them, by the modules that both have them."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Content:
    """What the page shows, at one moment."""

    state: str
    """That of the converge, in one word."""
    unready: str | None = None
    """Why the operator is not ready, without values; ``None`` if it is."""
    refusals: Sequence[str] = ()
    """What is wrong with the values ConfigMap or Secret as it is now, without values."""
    modules: Sequence[introspection.ModuleRow] = ()
    errors: Mapping[names.ModuleName, str] = dataclasses.field(default_factory=dict)
    """The last ones of modules, without values."""
    queues: Sequence[introspection.QueueHead] = ()
    shared: Shared = dataclasses.field(default_factory=dict)


def render(content: Content) -> str:
    """Return the page; slow enough to be run in a thread."""
    readiness = "ready" if content.unready is None else "not ready"
    why = f": {html.escape(content.unready)}" if content.unready else ""
    links = " · ".join(f'<a href="{link}">{link}</a>' for link in _LINKS)
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="refresh" content="{_REFRESH_SECONDS}">\n'
        f"<title>addon-operator: {readiness}</title>\n<style>{_STYLE}</style>\n</head>\n<body>\n"
        f"<h1>addon-operator {html.escape(addon_operator.__version__)}</h1>\n"
        f"<p>{readiness}, {html.escape(content.state)}{why}</p>\n{_refused(content.refusals)}"
        f"{_modules(content.modules, content.errors)}{_shared(content.shared)}{_queues(content.queues)}"
        f"<p>{links}</p>\n</body>\n</html>\n"
    )


def _refused(refusals: Sequence[str]) -> str:
    if not refusals:
        return ""
    lines = "".join(f"<li>{html.escape(text)}</li>\n" for text in refusals)
    return f"<h2>Not in force</h2>\n<ul>\n{lines}</ul>\n"


def _modules(modules: Sequence[introspection.ModuleRow], errors: Mapping[names.ModuleName, str]) -> str:
    is_described = any(row["description"] for row in modules)
    has_needs = any(row["requires"] for row in modules)
    rows = (
        (
            row["name"] if row["release"] == row["name"] else f"{row['name']} (release {row['release']})",
            row["order"],
            row["state"],
            _health(row),
            *([row["description"]] if is_described else []),
            *([", ".join(row["requires"])] if has_needs else []),
            row["reason"],
            row["lastRun"] or "",
            errors.get(names.ModuleName(row["name"]), "")
            or introspection.waiting_text([*row["waitsFor"], *row["cure"]])
            or introspection.held_back_text(row["heldBack"]),
        )
        for row in modules
    )
    said = (*(("description",) if is_described else ()), *(("requires",) if has_needs else ()))
    columns = ("module", "order", "state", "health", *said, "reason", "last run", "last error")
    return _table("Modules", columns, rows)


def _health(row: introspection.ModuleRow) -> str:
    health = ": ".join(filter(None, (row["health"], row["healthMessage"])))
    return "; ".join(filter(None, (health, row["drift"] and f"drifted: {row['drift']}")))


def _shared(shared: Shared) -> str:
    rows = [
        (" and ".join(modules), resource)
        for modules, resources in sorted(shared.items())
        for resource in resources
    ]
    if not rows:
        return ""
    title = "Shared objects" + (
        f", the first {_MOST_SHARED} of {len(rows)}" if len(rows) > _MOST_SHARED else ""
    )
    return _table(title, ("modules", "object"), rows[:_MOST_SHARED])


def _queues(queues: Sequence[introspection.QueueHead]) -> str:
    rows = (
        (row["name"], row["tasksCount"], row["status"], f"{row['headAge']:.0f} s", row["headTries"])
        for row in queues
    )
    return _table("Queues", ("queue", "tasks", "head", "age of the head", "failed tries of the head"), rows)


def _table(title: str, columns: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    head = "".join(f"<th>{html.escape(column)}</th>" for column in columns)
    lines = "".join(f"<tr>{_cells(row)}</tr>\n" for row in rows)
    return f"<h2>{html.escape(title)}</h2>\n<table>\n<tr>{head}</tr>\n{lines}</table>\n"


def _cells(row: Sequence[object]) -> str:
    return "".join(f"<td>{html.escape(str(cell))}</td>" for cell in row)
