"""``module.yaml``: what a module's directory says of itself; every key is optional.

The models are Flux's HelmRelease (where charts come from, dependencies) and ``module.yaml`` of Deckhouse
(requirements).
"""

import dataclasses
import enum
import functools
import pathlib
import re
import urllib.parse
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final, cast

import msgspec

from addon_operator.documents import json_pointers, yaml_reading
from addon_operator.hook_contract import violations
from addon_operator.kernel import errors, json_types, names
from addon_operator.modules import deckhouse_config, module_schema
from addon_operator.modules import windows as windows_module
from addon_operator.modules.drift import drift_config
from addon_operator.modules.health import health_config, health_rules
from addon_operator.modules.patching import manifest_changes
from addon_operator.values.schema import cel_rules

FILE: Final = "module.yaml"
CHART_DIRECTORY: Final = "chart"
"""Where a stock chart lies in its module's directory unless ``chart.path`` says something else."""


class ModuleConfigError(errors.MistakesError):
    """A ``module.yaml`` is wrong; the sentences name file, line and key of all that is."""


class ValuesScope(enum.StrEnum):
    """Where a chart finds the values of its module."""

    ROOT = "root"
    """The module's section is ``.Values``, as the charts that upstream publishes want it."""
    SECTION = "section"
    """``.Values`` has ``global`` and the module's section below its key, as with the Go operator."""


class ChartReference(msgspec.Struct, frozen=True):
    """A chart in a repository."""

    repository: str
    """``oci://…``, or the address of an ``index.yaml`` without that name."""
    name: str
    version: str
    digest: str = ""
    """What the chart must be, if somebody said so: ``sha256:…``."""

    def __str__(self) -> str:
        return f"{self.name} {self.version} of {self.repository}"


class ChartConfig(msgspec.Struct, frozen=True):
    """Key ``chart``."""

    reference: ChartReference | None = None
    path: str | None = None
    """Of the chart's directory, from the module's on."""
    values: ValuesScope | None = None
    global_keys: tuple[str, ...] | None = ()
    """Keys of the shared ``global`` that a chart with values at the root gets; ``None`` for all."""


@dataclasses.dataclass(frozen=True, slots=True)
class Requirements:
    """Key ``requires``."""

    kubernetes: str = ""
    """A range of versions, such as ``>= 1.30``."""
    modules: tuple[names.ModuleName, ...] = ()
    apis: tuple[str, ...] = ()
    """Such as ``monitoring.coreos.com/v1``."""
    places: tuple[str, ...] = dataclasses.field(default=(), compare=False)
    """File, line and column of each of the modules."""
    until_ready: frozenset[names.ModuleName] = frozenset()
    """Those of the modules that need not be healthy: a run that succeeded will do."""


@dataclasses.dataclass(frozen=True, slots=True)
class ModuleConfig:
    """All that a ``module.yaml`` says."""

    description: str = ""
    namespace: str = ""
    """Where the release and its record live; empty for the operator's own namespace."""
    create_namespace: bool = False
    chart: ChartConfig = dataclasses.field(default_factory=ChartConfig)
    release_name: str = ""
    sensitive: tuple[str, ...] = ()
    """Paths of the section that are hidden everywhere; ``*`` is any key."""
    sensitive_places: tuple[str, ...] = dataclasses.field(default=(), compare=False)
    """File, line and column of each of these paths."""
    requires: Requirements = dataclasses.field(default_factory=Requirements)
    health: health_config.HealthConfig = dataclasses.field(default_factory=health_config.HealthConfig)
    drift: drift_config.DriftConfig = dataclasses.field(default_factory=drift_config.DriftConfig)
    changes: manifest_changes.ManifestChanges = manifest_changes.NOTHING
    """What is changed of what the chart renders."""
    rollback: bool = False
    """Whether the release goes back to the last revision that worked when an upgrade fails."""
    removal_data: str = ""
    """What becomes of data when the module is disabled or purged, ``keep`` or ``delete``; empty if the
    setting counts.
    """
    removal_confirm: bool = False
    """Whether somebody has to confirm that the module is disabled or purged."""
    windows: windows_module.Windows | None = None
    """``None`` if those of the setting count."""
    warnings: tuple[str, ...] = ()
    """What is right and has no effect, one sentence each."""
    notes: tuple[str, ...] = ()
    """What only the author wants to know, one sentence each."""


NOTHING: Final = ModuleConfig()
"""What a module without the file says of itself."""

_CHECKER: Final = violations.Checker(module_schema.SCHEMA)
_EXACT: Final = re.compile(module_schema.EXACT_VERSION)
_SCHEMES: Final = ("oci://", "https://", "http://")
_CHART_NAME: Final = re.compile(module_schema.CHART_NAME)
_ADDRESS: Final = re.compile(module_schema.ADDRESS)
_INDEX: Final = "/index.yaml"
_OTHER_PATH: Final = re.compile(r"\A[/$]|\[")
"""How JSON pointers, JSONPath and jq write paths."""
_MOST_MISTAKES: Final = 20
"""How many mistakes of a file are shown."""
MAX_BYTES: Final = 256 * 1024
"""How large a ``module.yaml`` may be."""
_LOOPBACK: Final = frozenset({"localhost", "127.0.0.1", "::1"})
_KEYS: Final = frozenset(cast("Mapping[str, object]", module_schema.SCHEMA["properties"]))


def parse(module: names.ModuleName, text: str, source: str) -> ModuleConfig:
    """Read the file of a module.

    Raises :class:`ModuleConfigError` with all that is wrong, and :class:`.YamlError`.
    """
    if len(text) > MAX_BYTES:
        raise ModuleConfigError(
            f"{source}: it has more than {MAX_BYTES // 1024} KiB; values belong in values.yaml"
        )
    document = yaml_reading.load_document(text, source)
    found = {} if document.value is None else document.value
    if isinstance(found, dict) and deckhouse_config.is_deckhouse(found, _KEYS):
        return _of_deckhouse(module, document, found)
    problems = _CHECKER.problems(found)
    if not problems and isinstance(found, dict):
        problems = list(_contradictions(module, found))
    if problems or not isinstance(found, dict):
        raise _refusal(document, problems)
    doubts = tuple(_sentence(document, *doubt) for doubt in _doubts(module, found))
    return dataclasses.replace(_config(document, found), warnings=doubts)


def _of_deckhouse(
    module: names.ModuleName, document: yaml_reading.Document, found: json_types.JsonObject
) -> ModuleConfig:
    place = functools.partial(deckhouse_config.place_in_file, found)
    problems = list(deckhouse_config.misshapen(found))
    ours = deckhouse_config.converted(found)
    problems = problems or [(place(path), said) for path, said in _CHECKER.problems(ours)]
    problems = problems or [(place(path), said) for path, said in _contradictions(module, ours)]
    if problems:
        raise _refusal(document, problems)
    return dataclasses.replace(
        _config(document, ours, place),
        warnings=(f"{document.source}: {deckhouse_config.summary(found)}",),
        notes=tuple(_sentence(document, *note) for note in deckhouse_config.notes(found)),
    )


def _refusal(document: yaml_reading.Document, problems: Sequence["_Problem"]) -> ModuleConfigError:
    shown = [_sentence(document, *problem) for problem in problems[:_MOST_MISTAKES]]
    if more := len(problems) - len(shown):
        shown.append(f"{more} more mistakes")
    return ModuleConfigError(*shown)


def is_loopback(repository: str) -> bool:
    """Return whether a repository is on this machine, where plain HTTP is allowed."""
    return urllib.parse.urlsplit(repository).hostname in _LOOPBACK


def _sentence(document: yaml_reading.Document, path: json_pointers.Path, mistake: str) -> str:
    key = f", {json_pointers.format_path(path)}" if path else ""
    return f"{document.where(path)}{key}: {mistake}"


def _config(
    document: yaml_reading.Document, found: json_types.JsonObject, place: "_Place" = lambda path: path
) -> ModuleConfig:
    """Read a document that is right; ``place`` says where in the file something stands."""
    read: Mapping[str, Any] = found
    return ModuleConfig(
        description=" ".join(read.get("description", "").split()),
        namespace=read.get("namespace", ""),
        create_namespace=read.get("createNamespace", False),
        chart=_chart(read.get("chart", {})),
        release_name=read.get("releaseName", ""),
        sensitive=tuple(read.get("sensitive", ())),
        sensitive_places=tuple(_places(document, ("sensitive",), len(read.get("sensitive", ())), place)),
        requires=_requirements(document, read.get("requires", {}), place),
        health=health_config.read(read.get("health", {})),
        drift=drift_config.read(read.get("drift", {})),
        changes=_changes(read),
        rollback=read.get("remediation", {}).get("rollback", False),
        removal_data=read.get("removal", {}).get("data", ""),
        removal_confirm=read.get("removal", {}).get("confirm", False),
        windows=windows_module.parse(read["windows"]) if "windows" in read else None,
    )


def _changes(read: Mapping[str, Any]) -> manifest_changes.ManifestChanges:
    patches = tuple(
        manifest_changes.Patch(_target(each["target"]), each["patch"]) for each in read.get("patches", ())
    )
    return manifest_changes.ManifestChanges(read.get("labels", {}), read.get("annotations", {}), patches)


def _target(read: Mapping[str, str]) -> manifest_changes.Target:
    words = {"labelSelector": "label_selector", "annotationSelector": "annotation_selector"}
    return manifest_changes.Target(**{words.get(key, key): text for key, text in read.items()})


def _chart(read: Mapping[str, Any]) -> ChartConfig:
    keys = read.get("global", ())
    return ChartConfig(
        reference=_reference(read) if "repository" in read else None,
        path=read.get("path"),
        values=ValuesScope(read["values"]) if "values" in read else None,
        global_keys=None if keys == "all" else tuple(keys),
    )


def _reference(read: Mapping[str, Any]) -> ChartReference:
    repository = read["repository"].rstrip("/").removesuffix(_INDEX)
    return ChartReference(repository, read["name"], read["version"], read.get("digest", ""))


def _requirements(document: yaml_reading.Document, read: Mapping[str, Any], place: "_Place") -> Requirements:
    required = [{"name": each} if isinstance(each, str) else each for each in read.get("modules", ())]
    modules = tuple(names.ModuleName(each["name"]) for each in required)
    return Requirements(
        kubernetes=read.get("kubernetes", ""),
        modules=modules,
        apis=tuple(read.get("apis", ())),
        until_ready=frozenset(
            names.ModuleName(each["name"]) for each in required if each.get("until") == "ready"
        ),
        places=tuple(_places(document, ("requires", "modules"), len(modules), place)),
    )


def _places(
    document: yaml_reading.Document, path: json_pointers.Path, count: int, place: "_Place"
) -> Iterator[str]:
    """Yield where in the file each item of a list stands."""
    for index in range(count):
        item = place((*path, index))
        yield f"{document.where(item)}, {json_pointers.format_path(item)}"


_Problem = tuple[json_pointers.Path, str]
_Place = Callable[[json_pointers.Path], json_pointers.Path]


def _contradictions(module: names.ModuleName, found: json_types.JsonObject) -> Iterator[_Problem]:
    """Yield what each key allows by itself and the keys together do not."""
    read: Mapping[str, Any] = found
    yield from _of_chart(read.get("chart", {}))
    for index, required in enumerate(read.get("requires", {}).get("modules", ())):
        if module == (required if isinstance(required, str) else required["name"]):
            yield ("requires", "modules", index), "a module cannot require itself; remove it"
    if (count := len(read.get("sensitive", ()))) > module_schema.MOST_PATHS:
        yield (
            ("sensitive",),
            f"there are {count} paths, and {module_schema.MOST_PATHS} may be; use * for any key",
        )
    for index, path in enumerate(read.get("sensitive", ())):
        if problem := _of_sensitive(path):
            yield ("sensitive", index), problem
    yield from _of_changes(read)
    for place in (("health", "rules"), ("health", "ignore"), ("drift", "ignore")):
        if (count := len(read.get(place[0], {}).get(place[1], ()))) > health_config.MOST_ENTRIES:
            yield place, f"there are {count} entries, and {health_config.MOST_ENTRIES} may be"
    yield from _of_health(read.get("health", {}))
    for number, problem in windows_module.problems(read.get("windows", ())):
        yield ("windows",) if number is None else ("windows", number), problem
    if read.get("createNamespace") and "namespace" not in read:
        yield ("createNamespace",), "say which namespace with the key namespace, or remove this one"


def _of_changes(read: Mapping[str, Any]) -> Iterator[_Problem]:
    for key in ("labels", "annotations"):
        for name, text in read.get(key, {}).items():
            if not names.is_free_label_key(name):
                yield (key, name), f"{name!r} is not a name that you can give; write one such as team"
            elif key == "labels" and not names.is_label_value(text):
                yield (key, name), f"{text!r} is not a label value of Kubernetes"
    if (count := len(read.get("patches", ()))) > manifest_changes.MOST_PATCHES:
        yield ("patches",), f"there are {count} patches, and {manifest_changes.MOST_PATCHES} may be"
    for index, patch in enumerate(read.get("patches", ())):
        for place, said in manifest_changes.problems(patch):
            yield ("patches", index, *place), said


def _of_health(health: Mapping[str, Any]) -> Iterator[_Problem]:
    evaluator = cel_rules.CelEvaluator()
    for index, rule in enumerate(health.get("rules", ())[: health_config.MOST_ENTRIES]):
        for key in ("healthy", "failed"):
            if key in rule and (said := health_rules.problem(rule[key], evaluator)):
                yield ("health", "rules", index, key), said


def _of_sensitive(path: str) -> str:
    if _OTHER_PATH.search(path):
        return f"{path!r} is another kind of path; write keys with dots between, such as auth.password"
    try:
        json_pointers.of_path(path)
    except ValueError:
        return f"{path!r} has a part that is empty; write a path such as auth.password"
    return ""


def _doubts(module: names.ModuleName, found: json_types.JsonObject) -> Iterator[_Problem]:
    """Yield what is allowed and probably not meant."""
    read: Mapping[str, Any] = found
    key = names.values_key(module)
    for index, path in enumerate(read.get("sensitive", ())):
        first = json_pointers.of_path(path)[0]
        if first == key:
            yield (
                ("sensitive", index),
                f"paths begin below the section {key!r}; remove {key!r} unless the chart has such a key, too",
            )
        elif "/" in first:
            yield ("sensitive", index), f"{path!r} is one key with '/' in its name; for two keys, write a dot"


def _of_chart(chart: Mapping[str, Any]) -> Iterator[_Problem]:
    if "repository" in chart:
        yield from _of_reference(chart)
        return
    for key in ("name", "version", "digest"):
        if key in chart:
            yield (
                ("chart", key),
                "this is of a chart in a repository; add the key repository, or remove this one",
            )
    path = pathlib.PurePosixPath(chart.get("path", "."))
    if path.is_absolute() or ".." in path.parts:
        yield ("chart", "path"), "the path must lead into the module's directory; copy the chart into it"


def _of_reference(chart: Mapping[str, Any]) -> Iterator[_Problem]:
    for key in ("name", "version"):
        if key not in chart:
            yield ("chart",), f"the key {key!r} is missing; a chart in a repository needs it"
    if "path" in chart:
        yield ("chart", "path"), "the chart comes from the repository; remove path or repository"
    if "version" in chart and not _EXACT.fullmatch(chart["version"]):
        yield ("chart", "version"), f"{chart['version']!r} is not an exact version; write one such as 4.12.1"
    if "name" in chart and not _CHART_NAME.fullmatch(chart["name"]):
        yield (
            ("chart", "name"),
            f"{chart['name']!r} is not the name of a chart; a path before the name belongs in repository",
        )
    problems = list(_of_address(chart["repository"]))
    if not problems and not _ADDRESS.fullmatch(chart["repository"]):
        problems = [
            "this is not an address: it has characters that none can have; write one such as oci://host/path"
        ]
    yield from ((("chart", "repository"), problem) for problem in problems)


def _of_address(address: str) -> Iterator[str]:
    """Yield what is wrong with the address of a repository; the address may have a password in it."""
    try:
        place = urllib.parse.urlsplit(address)
        is_address = address.startswith(_SCHEMES) and bool(place.hostname) and place.port != 0
    except ValueError:
        yield "this is not an address: its host or port cannot be read; write one such as oci://host:5000/path"
        return
    if not is_address:
        yield (
            "this is not an address; write oci://… for a registry, or https://… for a repository with an "
            "index.yaml"
        )
    elif place.scheme == "http" and not is_loopback(address):
        yield "plain HTTP is only for this machine itself; write https://"
    if place.username or place.password:
        yield "credentials do not belong in the address; mount a Docker configuration (CHART_CREDENTIALS)"
    if place.query or place.fragment:
        yield "an address ends before '?' and '#'; remove them and what follows"
    if place.scheme == "oci" and (":" in place.path or "@" in place.path):
        yield "tag and digest do not belong in the address; use chart.version and chart.digest"
