"""The charts within a chart, as far as their CustomResourceDefinitions are concerned.

Which of them are enabled is decided by conditions and tags over the values, as Helm does it. A packed
subchart is read without unpacking it to the disk. Source: "Chart Dependency" of the Helm documentation.
"""

import dataclasses
import io
import os
import pathlib
import re
import tarfile
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final, TypeAlias

from addon_operator.documents import manifest_diff
from addon_operator.helm import helm_errors
from addon_operator.kernel import json_types, names

MAX_UNPACKED: Final = 64 * 1024 * 1024
"""How many bytes of a packed subchart are looked at, those that are packed within it included."""
MAX_FILES: Final = 20_000
"""How many files such a subchart may have, counted in the same way."""
MAX_DEPTH: Final = 8
"""How many packed charts may lie within each other."""
ARCHIVES: Final = (".tgz", ".tar.gz")
DIRECTORY: Final = "charts"
_CRDS: Final = re.compile(r"(?:^|/)crds/.*\.(?:yaml|yml|json)$")
_OF_A_CHART: Final = frozenset({"Chart.yaml", "requirements.yaml", "values.yaml"})

Files: TypeAlias = Mapping[str, bytes]
"""Contents by path, from the directory of the chart on."""


@dataclasses.dataclass(frozen=True, slots=True)
class Subchart:
    """A chart with those within it."""

    name: str
    dependencies: tuple[json_types.JsonObject, ...]
    """What ``Chart.yaml`` says of the charts within it."""
    values: json_types.JsonObject
    crds: tuple[tuple[str, str], ...]
    """Files of definitions, each with its place for a person and its text."""
    charts: tuple["Subchart", ...] = ()


def read(module: names.ModuleName, directory: pathlib.Path) -> Subchart:
    """Return the chart of a module; its own ``crds/`` are left out.

    Raises :class:`helm_errors.ChartError` for a file that cannot be read.
    """
    try:
        found = {"Chart.yaml": (directory / "Chart.yaml").read_bytes()}
        if (requirements := directory / "requirements.yaml").is_file():
            found["requirements.yaml"] = requirements.read_bytes()
        return _chart(found | dict(_files(directory, DIRECTORY)), "", str(directory))
    except OSError as error:
        raise helm_errors.ChartError(module, f"cannot read {error.filename}: {error.strerror}") from error
    except (tarfile.TarError, ValueError, EOFError) as error:
        raise helm_errors.ChartError(module, f"cannot read the charts in {directory}: {error}") from error


def without_texts(chart: Subchart) -> Subchart:
    """Return the chart with the places of its definitions alone."""
    places = tuple((place, "") for place, _ in chart.crds)
    return dataclasses.replace(chart, crds=places, charts=tuple(map(without_texts, chart.charts)))


def definitions(chart: Subchart, values: json_types.JsonObject) -> Iterator[tuple[str, str]]:
    """Files of definitions of the charts within a chart that these values enable, with their texts."""
    level = _coalesced(chart, values)
    for each in chart.charts:
        for dependency in _uses(chart, each.name):
            if _is_enabled(dependency, level):
                yield from each.crds
                below = level.get(_key(dependency, each.name))
                yield from definitions(each, below if isinstance(below, dict) else {})


def members(archive: pathlib.Path) -> Iterator[tuple[str, bytes]]:
    """Yield the files of a packed chart, by their paths from its directory on.

    A chart that is packed within it is unpacked, too: its name stands in the paths like that of a directory.
    Raises :class:`ValueError` for one that unpacks to more than any chart can be, and what :mod:`tarfile`
    does.
    """
    yield from _unpacked(archive.read_bytes(), _Bounds(archive), 1)


@dataclasses.dataclass(slots=True)
class _Bounds:
    """What is left of what a packed chart may be, with all that is packed within it."""

    archive: pathlib.Path
    bytes_left: int = dataclasses.field(default_factory=lambda: MAX_UNPACKED)
    files_left: int = dataclasses.field(default_factory=lambda: MAX_FILES)

    def take(self, member: tarfile.TarInfo) -> None:
        self.bytes_left -= member.size + tarfile.BLOCKSIZE
        self.files_left -= 1
        if self.bytes_left < 0:
            raise ValueError(f"{self.archive} unpacks to more than {MAX_UNPACKED // 1024 // 1024} MiB")
        if self.files_left < 0:
            raise ValueError(f"{self.archive} unpacks to more than {MAX_FILES} files")


def _unpacked(content: bytes, bounds: _Bounds, depth: int) -> Iterator[tuple[str, bytes]]:
    if depth > MAX_DEPTH:
        raise ValueError(f"{bounds.archive} has more than {MAX_DEPTH} packed charts within each other")
    with tarfile.open(fileobj=io.BytesIO(content), mode="r:*") as packed:
        for member in packed:
            bounds.take(member)
            path = pathlib.PurePosixPath(member.name)
            file = packed.extractfile(member) if member.isfile() else None
            if file is None or path.is_absolute() or ".." in path.parts:
                continue
            inside = "/".join(path.parts[1:])
            if _is_packed_chart(inside):
                within = _unpacked(file.read(), bounds, depth + 1)
                yield from ((f"{inside}/{below}", text) for below, text in within)
            else:
                yield inside, file.read()


def of_its_chart(path: str) -> list[str]:
    """The parts of a path within a packed chart, from the directory on of the innermost chart that has it."""
    parts = path.split("/")
    while len(parts) > 2 and parts[0] == DIRECTORY:
        parts = parts[2:]
    return parts


def _is_packed_chart(path: str) -> bool:
    parts = of_its_chart(path)
    return len(parts) == 2 and parts[0] == DIRECTORY and path.endswith(ARCHIVES)


def _files(directory: pathlib.Path, below: str) -> Iterator[tuple[str, bytes]]:
    """Yield what counts of the charts in a directory, those that are packed included."""
    for path, _, found in os.walk(directory / below, followlinks=True):
        for name in sorted(found):
            file = pathlib.Path(path, name)
            relative = file.relative_to(directory).as_posix()
            if relative.endswith(ARCHIVES) and file.parent.name == DIRECTORY:
                for inside, content in members(file):
                    if _counts(inside):
                        yield f"{relative}/{inside}", content
            elif _counts(relative):
                yield relative, file.read_bytes()


def _counts(path: str) -> bool:
    return path.rpartition("/")[2] in _OF_A_CHART or _CRDS.search(path) is not None


def _chart(files: Files, prefix: str, source: str) -> Subchart:
    about = _mapping(files, f"{prefix}Chart.yaml")
    listed = about.get("dependencies") or _mapping(files, f"{prefix}requirements.yaml").get("dependencies")
    crds = [path for path in sorted(files) if path.startswith(f"{prefix}crds/") and prefix]
    return Subchart(
        str(about.get("name") or ""),
        tuple(each for each in listed if isinstance(each, dict)) if isinstance(listed, list) else (),
        _mapping(files, f"{prefix}values.yaml") if prefix else {},
        tuple((f"{source}/{path}", files[path].decode(errors="replace")) for path in crds),
        tuple(_chart(files, below, source) for below in _within(files, prefix)),
    )


def _within(files: Iterable[str], prefix: str) -> list[str]:
    pattern = re.compile(rf"{re.escape(prefix)}{DIRECTORY}/[^/]+/Chart\.yaml")
    return sorted(path.removesuffix("Chart.yaml") for path in files if pattern.fullmatch(path))


def _mapping(files: Files, path: str) -> json_types.JsonObject:
    text = files.get(path, b"").decode(errors="replace")
    # As leniently as Helm: of a key that occurs twice the last one counts.
    documents = manifest_diff.parse(text)
    return (documents[0].body if documents else None) or {}


def _uses(chart: Subchart, name: str) -> list[json_types.JsonObject]:
    """How a chart uses the one of that name: more than once with aliases, and always if it does not tell."""
    return [each for each in chart.dependencies if each.get("name") == name] or [{}]


def _key(dependency: json_types.JsonObject, name: str) -> str:
    return str(dependency.get("alias") or name)


def _is_enabled(dependency: json_types.JsonObject, values: json_types.JsonObject) -> bool:
    """Let the first condition that has a value decide, else the tags."""
    for path in str(dependency.get("condition") or "").split(","):
        found = _at(values, path.strip())
        if isinstance(found, bool):
            return found
    tags, switches = dependency.get("tags"), values.get("tags")
    if not isinstance(tags, list) or not isinstance(switches, dict):
        return True
    set_ones = [switches[tag] for tag in map(str, tags) if isinstance(switches.get(tag), bool)]
    return any(set_ones) or not set_ones


def _at(values: json_types.JsonValue, path: str) -> json_types.JsonValue:
    for part in path.split("."):
        if not isinstance(values, dict):
            return None
        values = values.get(part)
    return values


def _coalesced(chart: Subchart, values: json_types.JsonObject) -> json_types.JsonObject:
    """Return the values of a chart, with what the charts within it have of their own below their names."""
    level = dict(values)
    for each in chart.charts:
        for dependency in _uses(chart, each.name):
            key = _key(dependency, each.name)
            given = level.get(key)
            given = dict(given) if isinstance(given, dict) else {}
            level[key] = _merged(_with_globals(given, level), _coalesced(each, each.values))
    return level


def _with_globals(given: json_types.JsonObject, level: json_types.JsonObject) -> json_types.JsonObject:
    above = level.get("global")
    return _merged({"global": above}, given) if isinstance(above, dict) else given


def _merged(over: json_types.JsonObject, under: json_types.JsonObject) -> json_types.JsonObject:
    merged: dict[str, Any] = {**under, **over}
    for key, value in over.items():
        beneath = under.get(key)
        if isinstance(value, dict) and isinstance(beneath, dict):
            merged[key] = _merged(value, beneath)
    return {key: value for key, value in merged.items() if value is not None}
