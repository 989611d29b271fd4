"""Links in a public chart's directory: Helm follows them, and a template could show what they lead to."""

import errno
import os
import pathlib
from collections.abc import Iterator


def problem(chart: pathlib.Path, root: pathlib.Path) -> str:
    """Return a sentence for the first link of a chart that leads out of ``root``; empty if none does."""
    try:
        real = _resolved(root)
        for link in _links(chart, real):
            return f"{link} is a link that leads out of {root}; put a copy of what it leads to in its place"
    except OSError as error:
        return f"{error.filename} cannot be read: {error.strerror}"
    return ""


def _resolved(path: pathlib.Path) -> pathlib.Path:
    try:
        return path.resolve()
    except RuntimeError:
        raise OSError(errno.ELOOP, "it is a link that leads back to itself", str(path)) from None


def _links(chart: pathlib.Path, root: pathlib.Path) -> Iterator[pathlib.Path]:
    """Yield links that lead out, also those behind links that do not."""
    if not _resolved(chart).is_relative_to(root):
        yield chart
        return
    pending, seen = [chart], {_resolved(chart)}
    while pending:
        with os.scandir(pending.pop()) as entries:
            for entry in entries:
                if entry.is_symlink():
                    path = pathlib.Path(entry.path)
                    target = _resolved(path)
                    if not target.is_relative_to(root):
                        yield path
                        continue
                    if target in seen or not target.is_dir():
                        continue
                    seen.add(target)
                    pending.append(path)
                elif entry.is_dir():
                    pending.append(pathlib.Path(entry.path))
