"""What of a module is a Helm chart, and a directory that Helm takes as one.

Source: "Module structure" of the addon-operator documentation; the chart of a module without ``Chart.yaml``
is that of the Go operator: named after the module, version 0.2.0.
"""

import contextlib
import os
import pathlib
import shutil
from collections.abc import Callable
from typing import Final

from addon_operator.documents import yaml_reading
from addon_operator.helm import helm_errors
from addon_operator.helm.charts import chart_files, plain_files, subcharts
from addon_operator.kernel import errors, json_types, names

VIRTUAL_CHART_VERSION: Final = "0.2.0"
_CRDS: Final = "crds"
_LARGEST_COPY: Final = 2 * 1024 * 1024
"""In bytes: no release has room for a larger file, so that Helm is told to pass it over."""


def is_chart(directory: pathlib.Path) -> bool:
    """Return whether Helm has something to install for a module: ``Chart.yaml`` or ``templates/`` exists."""
    return chart_files.is_complete(directory) or (directory / "templates").is_dir()


def prepare(module: names.ModuleName, directory: pathlib.Path, private: pathlib.Path) -> pathlib.Path:
    """Return a copy of a module's chart below ``private``, for Helm.

    What is rendered is what is installed then, whoever writes to the module meanwhile: what a chart lost in
    between would be deleted without a look at it. The copy has a ``Chart.yaml``, and nothing of ``crds/`` and
    of the hooks' virtual environment: Helm would keep all that in the record of the release, which has room
    for a megabyte. The operator applies the definitions itself.

    Raises :class:`helm_errors.ChartError` when the files cannot be copied.
    """
    target = private / "chart" / module
    try:
        if not chart_files.is_complete(directory):
            return _virtual_chart(module, directory, target)
        _copy_chart(directory.absolute(), target)
        if (directory / chart_files.HOOKS / chart_files.VENV).is_dir():
            _link_without_venv(directory.absolute() / chart_files.HOOKS, target / chart_files.HOOKS)
    except (OSError, shutil.Error, ValueError) as error:
        raise helm_errors.ChartError(module, _not_copied(directory, error)) from error
    return target


def _not_copied(directory: pathlib.Path, error: Exception) -> str:
    with contextlib.suppress(OSError):
        if irregular := plain_files.irregular(directory):
            return irregular
    said = str(error)
    if isinstance(error, shutil.Error):  # it has a list: source, copy, and text of each error
        source, _, why = error.args[0][0]
        said = str(why) if source in str(why) else f"{source}: {why}"
    elif isinstance(error, OSError) and error.filename:
        said = f"{error.filename}: {error.strerror}"
    return f"cannot copy the chart from {directory}: {said}; check the files' permissions"


def title(directory: pathlib.Path) -> str:
    """Return name and version of a chart, and of what it installs, as ``Chart.yaml`` says them; or empty."""
    try:
        about = yaml_reading.load(plain_files.read_text(directory / "Chart.yaml"), "Chart.yaml")
    except (OSError, ValueError, errors.AddonOperatorError):
        return ""
    if not isinstance(about, dict):
        return ""
    installs = f"(version {about['appVersion']} of the application)" if about.get("appVersion") else ""
    return " ".join(filter(None, (str(about.get("name", "")), str(about.get("version", "")), installs)))


def own_values(module: names.ModuleName, directory: pathlib.Path) -> json_types.JsonObject:
    """Return what Helm lays below the values that it is given: those in a complete chart's ``values.yaml``.

    Raises :class:`.YamlError`, and :class:`.ChartError` for a file that cannot be read.
    """
    path = directory / "values.yaml"
    if not chart_files.is_complete(directory) or not path.exists():
        return {}
    try:
        values = yaml_reading.load(plain_files.read_text(path), str(path))
    except UnicodeDecodeError as error:
        raise helm_errors.ChartError(module, f"{path} is not UTF-8 text; save it as UTF-8") from error
    except OSError as error:
        raise helm_errors.ChartError(module, f"cannot read {error.filename}: {error.strerror}") from error
    return values if isinstance(values, dict) else {}


def _virtual_chart(module: names.ModuleName, directory: pathlib.Path, target: pathlib.Path) -> pathlib.Path:
    shutil.copytree(directory, target, ignore=_ignore_at(directory), ignore_dangling_symlinks=True)
    (target / "Chart.yaml").write_text(
        f"apiVersion: v2\nname: {module}\nversion: {VIRTUAL_CHART_VERSION}\n", encoding="utf-8"
    )
    return target


def _ignore_at(root: pathlib.Path) -> Callable[[str, list[str]], set[str]]:
    def ignore(directory: str, entries: list[str]) -> set[str]:
        if pathlib.Path(directory) == root:
            return set(entries) & chart_files.NOT_IN_VIRTUAL_CHART
        return {_CRDS} & set(entries) if "Chart.yaml" in entries else set()

    return ignore


def _copy_chart(source: pathlib.Path, target: pathlib.Path) -> None:
    """Copy what a chart consists of, but for definitions; what is no part of it is linked."""
    target.mkdir(parents=True)
    for entry in source.iterdir():
        if entry.name == _CRDS and entry.is_dir():
            continue
        if entry.name == subcharts.DIRECTORY and entry.is_dir():
            (target / entry.name).mkdir()
            for chart in entry.iterdir():
                _put_without_crds(chart, target / entry.name / chart.name)
        elif entry.name in chart_files.NOT_TEMPLATES | chart_files.NEVER:
            (target / entry.name).symlink_to(entry)
        else:
            _copy(entry, target / entry.name)


def _copy(source: pathlib.Path, target: pathlib.Path) -> None:
    if source.is_dir() and not source.is_symlink() and os.access(source, os.R_OK | os.X_OK):
        target.mkdir()
        for entry in source.iterdir():
            _copy(entry, target / entry.name)
    elif source.is_file() and source.stat().st_size <= _LARGEST_COPY:
        shutil.copyfile(source, target)
    else:
        target.symlink_to(source)


def _link_without_venv(source: pathlib.Path, target: pathlib.Path) -> None:
    target.unlink()
    target.mkdir()
    for entry in source.iterdir():
        if entry.name != chart_files.VENV:
            (target / entry.name).symlink_to(entry)


def _put_without_crds(chart: pathlib.Path, target: pathlib.Path) -> None:
    if chart.is_dir():
        _copy_chart(chart, target)
    elif chart.name.endswith(subcharts.ARCHIVES):
        unpacked = target.with_name(_unpacked(target.name))
        for path, content in subcharts.members(chart):
            if not _is_definition(path):
                file = unpacked.joinpath(*map(_unpacked, path.split("/")[:-1]), path.rpartition("/")[2])
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_bytes(content)
    else:
        _copy(chart, target)


def _unpacked(name: str) -> str:
    """Return the name of the directory for what is unpacked: to Helm a name with the suffix is an archive."""
    if not name.endswith(subcharts.ARCHIVES):
        return name
    return f"{name.removesuffix('.gz').rpartition('.')[0]}-unpacked"


def _is_definition(path: str) -> bool:
    """Return whether it lies in the ``crds/`` of a packed chart, or of one within it."""
    parts = subcharts.of_its_chart(path)
    return len(parts) > 1 and parts[0] == _CRDS
