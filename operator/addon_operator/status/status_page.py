"""The status page: modules and queues as plain HTML, for whoever can reach the HTTP site.

Nobody is asked who they are there, so no values are shown, and no messages that may hold some.
"""

import html
import types
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


def page(
    state: str, views: introspection.Introspection, shared_of: SharedOf = nothing_shared, *, is_ready: bool
) -> str:
    """Return the page about a running engine."""
    listed = views.queues()
    modules = views.modules()
    return render(
        state,
        is_ready=is_ready,
        modules=modules,
        errors=views.errors_without_values(),
        queues=[*listed["active"], *listed["empty"]],
        shared={name: shared_of(name) for row in modules if (name := names.ModuleName(row["name"]))},
    )


def render(
    state: str,
    *,
    is_ready: bool,
    modules: Sequence[introspection.ModuleRow] = (),
    errors: Mapping[names.ModuleName, str] = types.MappingProxyType({}),
    queues: Sequence[introspection.QueueRow] = (),
    shared: Mapping[names.ModuleName, SharedObjects] = types.MappingProxyType({}),
) -> str:
    """Return the page.

    ``state`` is that of the converge, in one word. ``errors`` are the last ones of modules, without values.
    ``shared`` has objects of modules' releases that other modules have, too.
    """
    readiness = "ready" if is_ready else "not ready"
    links = " · ".join(f'<a href="{link}">{link}</a>' for link in _LINKS)
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="refresh" content="{_REFRESH_SECONDS}">\n'
        f"<title>addon-operator: {readiness}</title>\n<style>{_STYLE}</style>\n</head>\n<body>\n"
        f"<h1>addon-operator {html.escape(addon_operator.__version__)}</h1>\n"
        f"<p>{readiness}, {html.escape(state)}</p>\n"
        f"{_modules(modules, errors)}{_shared(shared)}{_queues(queues)}<p>{links}</p>\n</body>\n</html>\n"
    )


def _modules(modules: Sequence[introspection.ModuleRow], errors: Mapping[names.ModuleName, str]) -> str:
    is_described = any(row["description"] for row in modules)
    has_needs = any(row["requires"] for row in modules)
    rows = (
        (
            row["name"] if row["release"] == row["name"] else f"{row['name']} (release {row['release']})",
            row["order"],
            row["state"],
            *([row["description"]] if is_described else []),
            *([", ".join(row["requires"])] if has_needs else []),
            row["reason"],
            row["lastRun"] or "",
            errors.get(names.ModuleName(row["name"]), ""),
        )
        for row in modules
    )
    said = (*(("description",) if is_described else ()), *(("requires",) if has_needs else ()))
    columns = ("module", "order", "state", *said, "reason", "last run", "last error")
    return _table("Modules", columns, rows)


def _shared(shared: Mapping[names.ModuleName, SharedObjects]) -> str:
    rows = [
        (module, resource, ", ".join(others))
        for module, objects in shared.items()
        for resource, others in objects.items()
    ]
    if not rows:
        return ""
    title = "Shared objects" + (
        f", the first {_MOST_SHARED} of {len(rows)}" if len(rows) > _MOST_SHARED else ""
    )
    return _table(title, ("module", "object", "also of"), rows[:_MOST_SHARED])


def _queues(queues: Sequence[introspection.QueueRow]) -> str:
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
