"""What makes a chart too large for the record of a release."""

import os
import pathlib
from typing import Final

from addon_operator.helm.charts import chart_files

_SHOWN: Final = 5
_MIB: Final = 1024 * 1024
_KIB: Final = 1024


def described(directory: pathlib.Path) -> str:
    """Return a phrase with the largest files of a chart and their sizes; empty if none can be read."""
    sizes = _sizes(directory)
    if not sizes:
        return ""
    largest = sorted(sizes, key=lambda name: (-sizes[name], name))[:_SHOWN]
    named = ", ".join(f"{name} ({_size(sizes[name])})" for name in largest)
    return f"the largest of its files, {_size(sum(sizes.values()))} in all: {named}"


def _sizes(directory: pathlib.Path) -> dict[str, int]:
    left_out = {"crds"} if chart_files.is_complete(directory) else chart_files.NOT_IN_VIRTUAL_CHART
    sizes = {}
    for path, below, files in os.walk(directory, followlinks=False):
        if pathlib.Path(path) == directory:
            below[:] = [name for name in below if name not in left_out]
        for name in files:
            file = pathlib.Path(path, name)
            if file.is_file():
                sizes[file.relative_to(directory).as_posix()] = file.stat().st_size
    return sizes


def _size(count: int) -> str:
    return f"{count / _MIB:.1f} MiB" if count >= _MIB / 10 else f"{count / _KIB:.1f} KiB"
