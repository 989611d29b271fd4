"""Links in a chart's directory: Helm follows them, and a template could show what they lead to."""

import errno
import os
import pathlib
from collections.abc import Iterator

from addon_operator.helm.charts import chart_files


def problem(chart: pathlib.Path, root: pathlib.Path) -> str:
    """Return a sentence for the first link of a chart that leads out of ``root``; empty if none does."""
    try:
        real = _resolved(root)
        if not _resolved(chart).is_relative_to(real):
            return _leads_out(chart, root)
        for link, target in _links(chart, real):
            if not target.is_relative_to(real):
                return _leads_out(link, root)
    except OSError as error:
        return _unreadable(error)
    return ""


def nowhere(chart: pathlib.Path) -> str:
    """Return a sentence for the first link of a chart that leads nowhere; empty if none does.

    Helm takes no chart with such a link, wherever it lies.
    """
    try:
        for link, target in _links(chart):
            if not target.exists():
                gone = link.readlink()
                return (
                    f"{link} is a link to {gone}, which does not exist; Helm takes no such chart: remove it"
                )
    except OSError as error:
        return _unreadable(error)
    return ""


def _leads_out(link: pathlib.Path, root: pathlib.Path) -> str:
    return f"{link} is a link that leads out of {root}; put a copy of what it leads to in its place"


def _unreadable(error: OSError) -> str:
    return f"{error.filename} cannot be read: {error.strerror}"


def _resolved(path: pathlib.Path) -> pathlib.Path:
    try:
        return path.resolve()
    except RuntimeError:
        raise OSError(errno.ELOOP, "it is a link that leads back to itself", str(path)) from None


def _links(
    chart: pathlib.Path, root: pathlib.Path | None = None
) -> Iterator[tuple[pathlib.Path, pathlib.Path]]:
    """Yield links with what they lead to, also those behind links.

    With ``root``, nothing is looked for behind links that lead out of it.
    """
    venv = chart / chart_files.HOOKS / chart_files.VENV
    pending, seen = [chart], {_resolved(chart)}
    while pending:
        with os.scandir(pending.pop()) as entries:
            for entry in sorted(entries, key=lambda each: each.name):
                path = pathlib.Path(entry.path)
                if not entry.is_symlink():
                    if entry.is_dir() and path != venv:
                        pending.append(path)
                    continue
                target = _resolved(path)
                yield path, target
                is_within = root is None or target.is_relative_to(root)
                if is_within and target not in seen and target.is_dir():
                    seen.add(target)
                    pending.append(path)
