"""What lies where nobody looks for it: charts beside the one that counts, and names that are nearly right."""

import contextlib
import pathlib
from collections.abc import Collection, Iterator
from typing import Final

from addon_operator.helm.charts import chart_files, subcharts
from addon_operator.kernel import names
from addon_operator.loading import module_directories, named_files
from addon_operator.modules import crd_files, model, module_config

_CHART: Final = "Chart.yaml"
_TEMPLATES: Final = "templates"
_CHART_DIRECTORIES: Final = frozenset({_TEMPLATES, "charts", "crds"})
_DIRECTORIES: Final = _CHART_DIRECTORIES | {"chart", "hooks", "openapi", "tests", "examples"}
_FILES: Final = frozenset({_CHART, module_config.FILE, module_directories.VALUES_FILE})
_FILES_OF_CHART: Final = frozenset({_CHART, module_directories.VALUES_FILE})
_SCHEMAS: Final = frozenset({"config-values.yaml", module_directories.VALUES_FILE})
_OF_GLOBAL: Final = frozenset({"openapi", "tests"})
_ENDINGS: Final = (".yaml", ".yml", ".json")
_ALIKE: Final = 0.87
_MOST_ENTRIES: Final = 1000


def in_module(module: model.Module) -> Iterator[str]:
    """Yield a sentence for each thing in a module's directory that is most likely meant to count."""
    if module_directories.unreachable(module.path):
        return
    yield from _near_misses(module.path, _DIRECTORIES, _FILES)
    yield from _near_misses(module.path / module_directories.SCHEMAS_DIRECTORY, (), _SCHEMAS)
    own = module.path / module_config.CHART_DIRECTORY if module.stock is None else module.stock.directory
    if own.is_relative_to(module.path):
        yield from _near_misses(own, _CHART_DIRECTORIES, _FILES_OF_CHART, is_told=False)
    yield from _second_charts(module)
    yield from _definitions(module.path / crd_files.DIRECTORY)


def beside_modules(modules: pathlib.Path, global_hooks: pathlib.Path | None) -> Iterator[str]:
    """Yield a sentence for each thing in and around a directory of modules that is nearly called right."""
    yield from _near_misses(modules, (), {module_directories.VALUES_FILE})
    if global_hooks is not None:
        yield from _near_misses(global_hooks, _OF_GLOBAL, ())
    if modules.absolute().name == module_directories.MODULES_NAME:
        yield from _near_misses(modules.absolute().parent, {module_directories.GLOBAL_NAME}, ())


def _near_misses(
    directory: pathlib.Path, directories: Collection[str], files: Collection[str], *, is_told: bool = True
) -> Iterator[str]:
    """``is_told``: whether files whose names differ in capitals or ``.yml`` alone are errors already."""
    # What cannot be read is told by whoever needs it.
    with contextlib.suppress(OSError):
        for _, entry in zip(range(_MOST_ENTRIES), sorted(directory.iterdir()), strict=False):
            known = directories if entry.is_dir() else files
            if entry.name not in known and not entry.name.startswith("."):
                near = _near(entry.name, known)
                if near and not (is_told and named_files.is_other_spelling(entry, near)):
                    yield f"{entry} is not read; did you mean {near!r}? Rename it then"


def _near(name: str, known: Collection[str]) -> str | None:
    """Return what a name is nearly: but for capitals, ``-`` and ``_``, an ``s`` at the end, or a letter."""
    by_form = {_form(each): each for each in known}
    form = _form(name)
    near = form if form in by_form else names.nearest(form, by_form, _ALIKE)
    is_numbered = near is not None and any(map(str.isdigit, name))
    return None if near is None or is_numbered else by_form[near]


def _form(name: str) -> str:
    for ending in _ENDINGS:
        if name.lower().endswith(ending):
            return _form(name[: -len(ending)]) + ".yaml"
    return name.lower().replace("-", "").replace("_", "").removesuffix("s")


def _definitions(directory: pathlib.Path) -> Iterator[str]:
    """Yield the files that would count in the ``crds/`` of a chart, and do not in that of a module."""
    with contextlib.suppress(OSError):
        for _, file in zip(range(_MOST_ENTRIES), sorted(directory.rglob("*")), strict=False):
            if file.suffix != crd_files.SUFFIX and crd_files.is_selected(
                file.name, crd_files.FILTER_PREFIXES, crd_files.HELM_SUFFIXES
            ):
                yield f"{file} is not read: definitions of a module are in files *.yaml; rename it"


def _second_charts(module: model.Module) -> Iterator[str]:
    """Yield what is a chart, or a part of one, and is not the one that is installed."""
    if module.stock is not None:
        used = module.stock.reference or module.stock.directory
        for name in (_CHART, _TEMPLATES):
            if module.chart_directory != module.path and (module.path / name).exists():
                yield (
                    f"{module.path / name} is not used, and nothing of it is installed: the module's chart "
                    f"is {used}; move it there, or remove one of them"
                )
        return
    if module.has_chart:
        if chart_files.is_complete(module.path / module_config.CHART_DIRECTORY):
            yield (
                f"{module.path / module_config.CHART_DIRECTORY} is not used, and nothing of it is installed: "
                f"the module itself is a chart; add {module_config.FILE} if that one counts, or remove it"
            )
        return
    for name in (module_config.CHART_DIRECTORY, subcharts.DIRECTORY):
        for chart in sorted((module.path / name).glob(f"*/{_CHART}")):
            yield (
                f"{chart.parent} is not used, and nothing is installed: a chart has its Chart.yaml in "
                f"{module.path / module_config.CHART_DIRECTORY}; move it there, or name its directory with "
                f"chart.path in {module_config.FILE}"
            )
