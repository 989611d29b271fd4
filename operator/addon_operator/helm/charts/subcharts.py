"""The charts within a chart, with their CustomResourceDefinitions, values and schemas.

A packed subchart is read without unpacking it to the disk. Source: "Chart Dependency" of the Helm
documentation.
"""

import dataclasses
import io
import pathlib
from collections.abc import Iterator, Mapping
from typing import Final, TypeAlias

from addon_operator.documents import manifest_diff
from addon_operator.helm import helm_errors
from addon_operator.helm.charts import packed_files, plain_files
from addon_operator.kernel import json_types, names
from addon_operator.values import coalescing

MAX_ARCHIVE: Final = packed_files.MAX_UNPACKED
"""How many bytes a packed chart may have: nothing packed is larger than what it unpacks to."""
MAX_DEPTH: Final = 8
"""How many packed charts may lie within each other."""
MAX_TEXT: Final = 1024 * 1024
"""How many bytes a file in YAML may have that is parsed: that takes some hundred times as much memory."""
MAX_TEXTS: Final = 4 * MAX_TEXT
"""The same of all such files of a chart and of those within it."""
MAX_SCHEMA: Final = 5 * 1024 * 1024
"""How many bytes a schema may have: no file of a chart may have more for Helm."""
ARCHIVES: Final = (".tgz", ".tar.gz")
DIRECTORY: Final = "charts"
_CRDS: Final = "/crds/"
_SUFFIXES: Final = (".yaml", ".yml", ".json")
SCHEMA: Final = "values.schema.json"
_ABOUT: Final = ("Chart.yaml", "requirements.yaml", "values.yaml", SCHEMA)
_OF_A_CHART: Final = frozenset(_ABOUT)

Files: TypeAlias = Mapping[str, bytes]
"""Contents by path, from the directory of the chart on."""


@dataclasses.dataclass(frozen=True, slots=True)
class Subchart(coalescing.Chart):
    """A chart with those within it, as its files are."""

    crds: tuple[tuple[str, str], ...] = ()
    """Files of definitions, each with its place for a person and its text."""
    schema: tuple[str, str] | None = None
    """Place and text of its ``values.schema.json``, if there is one."""
    charts: tuple["Subchart", ...] = ()


def read(module: names.ModuleName, directory: pathlib.Path, *, is_stock: bool = False) -> Subchart:
    """Return the chart of a module; its own ``crds/`` are left out.

    ``is_stock``: its ``values.yaml`` and ``values.schema.json`` are its own, and no sources of the module's.
    Raises :class:`helm_errors.ChartError` for a file that cannot be read.
    """
    own = _ABOUT if is_stock else _ABOUT[:2]
    try:
        charts = {
            name: plain_files.read_bytes(directory / name)
            for name in own
            if name == "Chart.yaml" or (directory / name).is_file()
        }
        charts |= dict(_files(directory, DIRECTORY))
        if is_stock:
            _check_sizes(charts)
        chart = _chart(charts, str(directory))
        coalescing.check_size(chart)
        return chart
    except OSError as error:
        raise helm_errors.ChartError(module, f"cannot read {error.filename}: {error.strerror}") from error
    except ValueError as error:
        raise helm_errors.ChartError(module, f"cannot read the charts in {directory}: {error}") from error


def _check_sizes(files: Files) -> None:
    total = 0
    for path, content in files.items():
        name = path.rpartition("/")[2]
        most = MAX_SCHEMA if name == SCHEMA else MAX_TEXT
        if name in _OF_A_CHART and len(content) > most:
            raise ValueError(f"{path} has more than {most // MAX_TEXT} MiB")
        total += len(content) if name in _ABOUT[:3] else 0
    if total > MAX_TEXTS:
        names_of = ", ".join(_ABOUT[:3])
        raise ValueError(f"all {names_of} together have more than {MAX_TEXTS // MAX_TEXT} MiB")


def has_schemas(module: names.ModuleName, directory: pathlib.Path) -> bool:
    """Return whether a chart, or one within it, has a ``values.schema.json``: found without reading values.

    Raises :class:`helm_errors.ChartError` for a file that cannot be read.
    """
    try:
        return (directory / SCHEMA).is_file() or any(
            path.rpartition("/")[2] == SCHEMA for path in _names(directory)
        )
    except (OSError, ValueError) as error:
        raise helm_errors.ChartError(module, f"cannot read the charts in {directory}: {error}") from error


def deciding_files(directory: pathlib.Path) -> list[str]:
    """Return the files that decide which definitions the charts within a chart bring; empty if none can.

    They are found by their names; a packed chart may bring some.
    """
    found = [
        f"{path}/{name}"
        for path, files in plain_files.walk(directory / DIRECTORY)
        for name in files
        if name.endswith(ARCHIVES) or _counts(f"{path}/{name}")
    ]
    if any(file.endswith(ARCHIVES) or _is_definition(file) for file in found):
        return found
    return []


def without_texts(chart: Subchart) -> Subchart:
    """Return the chart with the places of its definitions alone."""
    places = tuple((place, "") for place, _ in chart.crds)
    charts = tuple(map(without_texts, chart.charts))
    return dataclasses.replace(chart, crds=places, schema=None, charts=charts)


def definitions(chart: Subchart, values: json_types.JsonObject) -> Iterator[tuple[str, str]]:
    """Yield files of definitions of the charts within a chart that these values enable, with texts."""
    level = coalescing.coalesced(chart, values)
    yield from _enabled(chart, level)


def _enabled(chart: Subchart, level: json_types.JsonObject) -> Iterator[tuple[str, str]]:
    for key, each in coalescing.enabled(chart, level):
        if isinstance(each, Subchart):
            yield from each.crds
            below = level.get(key)
            yield from _enabled(each, below if isinstance(below, dict) else {})


def members(archive: pathlib.Path) -> Iterator[tuple[str, bytes]]:
    """Yield the files of a packed chart, by their paths from its directory on.

    A chart that is packed within it is unpacked, too: its name stands in the paths like that of a directory.
    Raises :class:`ValueError` for one that cannot be read or is larger than any chart can be.
    """
    try:
        yield from unpacked(plain_files.read_bytes(archive, MAX_ARCHIVE))
    except packed_files.PackedFilesError as error:
        raise ValueError(f"{archive} {error}") from error


def unpacked(archive: bytes) -> Iterator[tuple[str, bytes]]:
    """Do as :func:`members` with the content of a packed chart; raises :class:`.PackedFilesError`."""
    return _unpacked(archive, packed_files.Room(), 1)


def _unpacked(content: bytes, room: packed_files.Room, depth: int) -> Iterator[tuple[str, bytes]]:
    if depth > MAX_DEPTH:
        raise packed_files.PackedFilesError(f"has more than {MAX_DEPTH} packed charts within each other")
    for member, text in packed_files.members(io.BytesIO(content), room):
        path = pathlib.PurePosixPath(member.name)
        if text is None or path.is_absolute() or ".." in path.parts:
            continue
        inside = "/".join(path.parts[1:])
        if _is_packed_chart(inside):
            within = _unpacked(text, room, depth + 1)
            yield from ((f"{inside}/{below}", found) for below, found in within)
        else:
            yield inside, text


def of_its_chart(path: str) -> list[str]:
    """Return the parts of a path within a packed chart, from the innermost chart's directory on."""
    parts, start = path.split("/"), 0
    while len(parts) > start + 2 and parts[start] == DIRECTORY:
        start += 2
    return parts[start:]


def _is_packed_chart(path: str) -> bool:
    parts = of_its_chart(path)
    return len(parts) == 2 and parts[0] == DIRECTORY and path.endswith(ARCHIVES)


def _files(directory: pathlib.Path, below: str) -> Iterator[tuple[str, bytes]]:
    """Yield what counts of the charts in a directory, those that are packed included."""
    for path, entry in plain_files.walk(directory / below):
        for name in sorted(entry):
            file = path / name
            relative = file.relative_to(directory).as_posix()
            if relative.endswith(ARCHIVES) and file.parent.name == DIRECTORY:
                for inside, content in members(file):
                    if _counts(inside):
                        yield f"{relative}/{inside}", content
            elif _counts(relative):
                yield relative, plain_files.read_bytes(file, MAX_ARCHIVE)


def _names(directory: pathlib.Path) -> Iterator[str]:
    """Yield the files of the charts within a chart; those that are packed are read for it."""
    for path, entry in plain_files.walk(directory / DIRECTORY):
        for name in entry:
            if name.endswith(ARCHIVES) and path.name == DIRECTORY:
                yield from (inside for inside, _ in members(path / name))
            else:
                yield name


def _counts(path: str) -> bool:
    return path.rpartition("/")[2] in _OF_A_CHART or _is_definition(path)


def _is_definition(path: str) -> bool:
    return path.endswith(_SUFFIXES) and _CRDS in f"/{path}"


def _chart(files: Files, source: str) -> Subchart:
    within: dict[str, list[str]] = {}
    definitions: dict[str, list[str]] = {}
    for path in sorted(files):
        prefix, inside = _place(path)
        if inside == ["Chart.yaml"] and prefix:
            within.setdefault(_parent(prefix), []).append(prefix)
        elif inside[0] == "crds" and prefix:
            definitions.setdefault(prefix, []).append(path)
    if sum(map(len, within.values())) > coalescing.MAX_CHARTS:
        raise coalescing.TooManyChartsError(
            f"there are more than {coalescing.MAX_CHARTS} charts within the chart; remove some"
        )

    def made(prefix: str, levels: int) -> Subchart:
        if not levels:
            raise coalescing.TooManyChartsError(
                f"charts lie more than {coalescing.MAX_LEVELS} levels deep within each other"
            )
        about = _mapping(files, f"{prefix}Chart.yaml")
        listed = about.get("dependencies") or _mapping(files, f"{prefix}requirements.yaml").get(
            "dependencies"
        )
        return Subchart(
            str(about.get("name") or ""),
            tuple(each for each in listed if isinstance(each, dict)) if isinstance(listed, list) else (),
            _mapping(files, f"{prefix}values.yaml"),
            crds=tuple(
                (f"{source}/{path}", files[path].decode(errors="replace"))
                for path in definitions.get(prefix, ())
            ),
            schema=_schema(files, f"{prefix}{SCHEMA}", source),
            charts=tuple(made(below, levels - 1) for below in within.get(prefix, ())),
        )

    return made("", coalescing.MAX_LEVELS)


def _place(path: str) -> tuple[str, list[str]]:
    """Return the directory of the chart that a file belongs to, with a slash, and its path from there on."""
    parts = of_its_chart(path)
    return path[: len(path) - len("/".join(parts))], parts


def _parent(prefix: str) -> str:
    """Return the directory of the chart around another one."""
    return "".join(f"{part}/" for part in prefix.split("/")[:-3])


def _schema(files: Files, path: str, source: str) -> tuple[str, str] | None:
    return (f"{source}/{path}", files[path].decode(errors="replace")) if path in files else None


def _mapping(files: Files, path: str) -> json_types.JsonObject:
    text = files.get(path, b"").decode(errors="replace")
    # As leniently as Helm: of a key that occurs twice the last one counts.
    documents = manifest_diff.parse(text)
    return (documents[0].body if documents else None) or {}
