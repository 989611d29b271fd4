"""Charts of a trial: found in directories and archives, packed, and what one can set wrong in each."""

import dataclasses
import enum
import functools
import os
import pathlib
import subprocess
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

import yaml

_LABELS: Final = frozenset(
    {"podLabels", "commonLabels", "customLabels", "extraLabels", "additionalLabels", "labels"}
    | {"podAnnotations", "commonAnnotations", "annotations", "extraAnnotations"}
)
_MARK: Final = "trial.example.com/edit"
_TOO_HIGH: Final = 99999
_TRIES: Final = 24


class Edit(enum.StrEnum):
    """What somebody sets."""

    USED = "edit"
    """Something that the chart uses."""
    SCHEMA = "schema"
    """What the chart's schema refuses."""
    RENDER = "render"
    """What the templates cannot be rendered with."""
    API = "api"
    """What the API server refuses."""


@dataclasses.dataclass(frozen=True, slots=True)
class Chart:
    """One chart, packed."""

    name: str
    version: str
    archive: pathlib.Path
    values: Mapping[str, Any]
    """What it needs."""


def find(
    paths: Iterable[pathlib.Path], helm: pathlib.Path, to: pathlib.Path, values: Mapping[str, Any]
) -> list[Chart]:
    """Return the charts that are there: each path is a chart, an archive, or a directory of those."""
    found = []
    for path in paths:
        several = path.is_dir() and not (path / "Chart.yaml").is_file()
        for each in sorted(path.iterdir()) if several else [path]:
            archive = _pack(each, helm, to) if each.is_dir() else each
            about = yaml.safe_load(_helm(helm, "show", "chart", str(archive)))
            name = about["name"]
            found.append(Chart(name, about["version"], archive, values.get(name) or {}))
    return found


def _pack(chart: pathlib.Path, helm: pathlib.Path, to: pathlib.Path) -> pathlib.Path:
    said = _helm(helm, "package", str(chart), "--destination", str(to))
    return pathlib.Path(said.rpartition("to: ")[2].strip())


def edits(chart: Chart, helm: pathlib.Path) -> dict[Edit, dict[str, Any]]:
    """Return values for each edit that the chart knows, found by rendering it with candidates."""
    defaults = yaml.safe_load(_helm(helm, "show", "values", str(chart.archive))) or {}
    render = functools.partial(_render, chart, helm)
    found = {}
    for candidate, proof in list(_harmless(defaults))[:_TRIES]:
        if proof in render(candidate)[0]:
            found[Edit.USED] = candidate
            break
    for candidate in list(_broken(defaults))[:_TRIES]:
        error = render(candidate)[1]
        if error:
            found.setdefault(Edit.SCHEMA if "schema" in error else Edit.RENDER, candidate)
        if Edit.RENDER in found:
            break
    for candidate, proof in list(_refused(defaults))[:_TRIES]:
        text, error = render(candidate)
        if not error and proof in text:
            found[Edit.API] = candidate
            break
    return found


def _render(chart: Chart, helm: pathlib.Path, values: Mapping[str, Any]) -> tuple[str, str]:
    """Return what the chart renders to, and the error."""
    with tempfile.NamedTemporaryFile("w", suffix=".yaml") as file:
        yaml.safe_dump(merged(chart.values, values), file)
        file.flush()
        argv = [str(helm), "template", chart.name, str(chart.archive), "--values", file.name]
        done = subprocess.run(argv, capture_output=True, text=True, check=False)
    return done.stdout, done.stderr if done.returncode else ""


def _harmless(defaults: Mapping[str, Any]) -> Iterator[tuple[dict[str, Any], str]]:
    labels = [path for path, value in _paths(defaults) if path[-1] in _LABELS and isinstance(value, dict)]
    # Those of pods may change; those of everything are in fields that may not, too.
    for path in sorted(labels, key=lambda path: not path[-1].startswith("pod")):
        yield _at(path, {_MARK: "made"}), _MARK
    for path, value in _paths(defaults):
        if path[-1] in ("replicaCount", "replicas") and isinstance(value, int):
            yield _at(path, value + 6), f"replicas: {value + 6}\n"


def _broken(defaults: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    for path, value in _paths(defaults):
        if isinstance(value, dict) and value:
            yield _at(path, "text")


def _refused(defaults: Mapping[str, Any]) -> Iterator[tuple[dict[str, Any], str]]:
    for path, value in _paths(defaults):
        number = isinstance(value, int) and not isinstance(value, bool)
        name = ".".join(path[-2:]).lower()
        if number and "port" in name and "node" not in name:
            yield _at(path, _TOO_HIGH), f": {_TOO_HIGH}"
    for path, value in _paths(defaults):
        if path[-1] in ("replicaCount", "replicas") and isinstance(value, int):
            yield _at(path, -1), "replicas: -1\n"


def _paths(values: Mapping[str, Any], above: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Yield all paths of mappings, the short ones first."""
    waiting = [(above, values)]
    while waiting:
        at, mapping = waiting.pop(0)
        for key, value in mapping.items():
            yield (*at, str(key)), value
            if isinstance(value, dict):
                waiting.append(((*at, str(key)), value))


def _at(path: tuple[str, ...], value: object) -> dict[str, Any]:
    """Return ``value`` within mappings."""
    made: Any = value
    for key in reversed(path):
        made = {key: made}
    return dict(made)


def merged(one: Mapping[str, Any], other: Mapping[str, Any]) -> dict[str, Any]:
    """Return both; the other one lies over the first."""
    both = dict(one)
    for key, value in other.items():
        under = both.get(key)
        both[key] = merged(under, value) if isinstance(value, dict) and isinstance(under, dict) else value
    return both


def _helm(helm: pathlib.Path, *arguments: str) -> str:
    environ = {"PATH": os.environ["PATH"], "HOME": tempfile.gettempdir()}
    done = subprocess.run([helm, *arguments], env=environ, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"helm {' '.join(arguments)}: {done.stderr.strip()}")
    return done.stdout
