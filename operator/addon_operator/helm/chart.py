"""What of a module is a Helm chart, and a directory that Helm takes as one.

Source: "Module structure" of the addon-operator documentation; the chart of a module without ``Chart.yaml``
is that of the Go operator: named after the module, version 0.2.0.
"""

import pathlib
import shutil
from collections.abc import Callable
from typing import Final

from addon_operator.helm import chart_files, errors
from addon_operator.kernel import json_types, names
from addon_operator.values import yaml_reading

VIRTUAL_CHART_VERSION: Final = "0.2.0"


def is_chart(directory: pathlib.Path) -> bool:
    """Whether Helm has something to install for a module: ``Chart.yaml`` or ``templates/`` exists."""
    return chart_files.is_complete(directory) or (directory / "templates").is_dir()


def prepare(module: names.ModuleName, directory: pathlib.Path, private: pathlib.Path) -> pathlib.Path:
    """A directory to give to Helm: the module's own, or a copy below ``private`` with a ``Chart.yaml``.

    Raises :class:`errors.ChartError` when the files cannot be copied.
    """
    if chart_files.is_complete(directory):
        # Helm would look a relative path up in its repositories if it did not exist.
        return directory.absolute()
    return _virtual_chart(module, directory, private / "chart" / module)


def own_values(directory: pathlib.Path) -> json_types.JsonObject:
    """What Helm lays below the values that it is given: those in a complete chart's ``values.yaml``.

    Raises :class:`~addon_operator.values.yaml_reading.YamlError`, and :class:`OSError`.
    """
    path = directory / "values.yaml"
    if not chart_files.is_complete(directory) or not path.exists():
        return {}
    found = yaml_reading.load(path.read_text(encoding="utf-8"), str(path))
    return found if isinstance(found, dict) else {}


def _virtual_chart(module: names.ModuleName, directory: pathlib.Path, target: pathlib.Path) -> pathlib.Path:
    try:
        shutil.copytree(directory, target, ignore=_ignore_at(directory), ignore_dangling_symlinks=True)
    except (OSError, shutil.Error) as error:
        raise errors.ChartError(
            module, f"cannot copy the chart from {directory}: {error}; check the files' permissions"
        ) from error
    (target / "Chart.yaml").write_text(
        f"apiVersion: v2\nname: {module}\nversion: {VIRTUAL_CHART_VERSION}\n", encoding="utf-8"
    )
    return target


def _ignore_at(root: pathlib.Path) -> Callable[[str, list[str]], set[str]]:
    def ignore(directory: str, entries: list[str]) -> set[str]:
        return set(entries) & chart_files.NOT_IN_VIRTUAL_CHART if pathlib.Path(directory) == root else set()

    return ignore
