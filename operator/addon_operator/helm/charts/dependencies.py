"""What keeps Helm from taking a chart, found without Helm: its ``Chart.yaml``, and missing dependencies."""

import os
import pathlib
import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from addon_operator.documents import yaml_reading
from addon_operator.helm.charts import plain_files, subcharts
from addon_operator.kernel import errors, names

_CHART: Final = "Chart.yaml"
_VERSION: Final = re.compile(r"v?[0-9]+(\.[0-9]+){0,2}(-[0-9A-Za-z.-]+)?(\+[0-9A-Za-z.-]+)?")
_TYPES: Final = (None, "", "application")
_OLD_LIST: Final = "requirements.yaml"
_NOT_NAMES: Final = (".", "..")


def problem(directory: pathlib.Path) -> str:
    """Return what is wrong with a chart, with what to do; empty if nothing is."""
    path = directory / _CHART
    try:
        about = _mapping(path)
    except errors.ConfigurationError as error:
        return str(error)
    if refused := _refused(about):
        return f"{path}: {refused}"
    if about.get("type") not in (*_TYPES, "library"):
        return f"{path}: the type {about['type']!r} is not known to Helm; write application, or remove it"
    if about.get("type") == "library":
        return f"{path}: this is a library chart, which cannot be installed; name a chart that uses it"
    return _missing(directory, about)


def _refused(about: Mapping[str, Any]) -> str:
    for key in ("name", "version"):
        if not isinstance(about.get(key), str) or not about[key]:
            said = "it must be a text" if key in about else "it is missing"
            hint = names.did_you_mean(key, set(about) - {"name", "version"}, "write it")
            return f"the key {key!r} is wrong, as {said}; {hint}"
    if not _VERSION.fullmatch(about["version"]):
        return f"the version {about['version']!r} is not one such as 1.2.3; Helm refuses it"
    return refused_name(about["name"])


def refused_name(name: str) -> str:
    """Return why Helm refuses a chart of this name, also within another; empty if it does not."""
    if name in _NOT_NAMES or "/" in name:
        return f"the name {name!r} is none that a directory can have; Helm refuses it"
    return ""


def _missing(directory: pathlib.Path, about: dict[str, Any]) -> str:
    try:
        source = _CHART if about.get("dependencies") else _OLD_LIST
        listed = about.get("dependencies") or _mapping(directory / _OLD_LIST).get("dependencies") or []
        if not isinstance(listed, list) or not all(isinstance(each, dict) for each in listed):
            return f"{directory / source}: dependencies must be a list of mappings; Helm takes nothing else"
        wanted = [each["name"] for each in listed if each.get("name")]
        # Helm wants those that are disabled, too, and goes by their names, not by their aliases.
        missing = (
            sorted(set(map(str, wanted)) - set(_there(directory / subcharts.DIRECTORY))) if wanted else []
        )
    except errors.ConfigurationError as error:
        return str(error)
    except (OSError, ValueError) as error:
        return f"the charts in {directory / subcharts.DIRECTORY} cannot be read: {error}"
    if not missing:
        return ""
    listed_names, is_are = ", ".join(missing), "is" if len(missing) == 1 else "are"
    charts = directory / subcharts.DIRECTORY
    return (
        f"{directory / source}: of its dependencies, {listed_names} {is_are} missing in {charts}; "
        f"run 'helm dependency build {directory}'"
    )


def _there(directory: pathlib.Path) -> Iterator[str]:
    """Yield the names of the charts in ``charts/``, packed or not."""
    for entry in sorted(directory.iterdir()) if directory.is_dir() else ():
        if entry.is_dir() and (entry / _CHART).is_file():
            yield str(_mapping(entry / _CHART).get("name"))
        elif entry.name.endswith(subcharts.ARCHIVES):
            contents = (content for path, content in subcharts.members(entry) if path == _CHART)
            text = next(contents, b"").decode(errors="replace")
            yield str(_of_text(text, f"{entry}/{_CHART}").get("name"))


def _mapping(path: pathlib.Path) -> dict[str, Any]:
    try:
        text = plain_files.read_text(path) if os.path.lexists(path) else ""
    except OSError as error:
        raise errors.ConfigurationError(f"{path} cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise errors.ConfigurationError(f"{path} is not UTF-8 text; save it as UTF-8") from None
    return _of_text(text, str(path))


def _of_text(text: str, source: str) -> dict[str, Any]:
    if len(text) > subcharts.MAX_TEXT:
        raise errors.ConfigurationError(
            f"{source}: it has more than {subcharts.MAX_TEXT // 1024 // 1024} MiB; "
            "take the chart as upstream publishes it"
        )
    document = yaml_reading.load_document(text, source, last_wins=True).value
    if document is None:
        return {}
    if not isinstance(document, dict):
        raise errors.ConfigurationError(
            f"{source}: this must be a mapping; correct it, or take the chart as upstream publishes it"
        )
    return document
