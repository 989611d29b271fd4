"""Where CustomResourceDefinitions of modules lie, and which APIs they bring.

They lie in ``crds/`` of the module, of its chart, and of the charts within that which its values enable.
"""

import os
import pathlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Final

from addon_operator.helm.charts import chart_files, chart_ignore, subcharts
from addon_operator.kernel import errors, json_types, names
from addon_operator.loading import named_files
from addon_operator.modules import chart_values, crd_files, model

MAX_FILE: Final = 64 * 1024 * 1024
"""How many bytes a file of definitions may have: some hold all those of a cloud."""


class CrdSources:
    """Finds the files that count."""

    def __init__(
        self, filter_prefixes: Sequence[str], values: Callable[[names.ModuleName], json_types.JsonObject]
    ) -> None:
        """``values`` gives those of a module: they enable the charts within its chart."""
        self._filter_prefixes = tuple(filter_prefixes)
        self._values = values

    def files(self, module: model.Module) -> Iterator[tuple[pathlib.Path, bool]]:
        """Yield the files of a module and of its chart, and whether they are the module's own.

        Raises :class:`.ConfigurationError` if it cannot be read what the chart leaves out.
        """
        for directory, is_own in _directories(module):
            yield from ((path, is_own) for path in self._below(directory, is_own=is_own))

    def of_subcharts(self, module: model.Module, chart: subcharts.Subchart) -> list[tuple[str, str]]:
        """Return places and texts of the files of the charts within ``chart``, that of the module."""
        return [
            (place, text)
            for place, text in subcharts.definitions(
                chart, chart_values.arranged(module, self._values(module.name))
            )
            if crd_files.is_selected(
                pathlib.PurePath(place).name, self._filter_prefixes, crd_files.HELM_SUFFIXES
            )
        ]

    def bringing(
        self, modules: Iterable[model.Module], apis: frozenset[str]
    ) -> Mapping[str, tuple[names.ModuleName, ...]]:
        """Find, by API, the modules whose files define it; what cannot be read defines nothing."""
        by_crd: dict[str, tuple[names.ModuleName, ...]] = {}
        groups = {api.rpartition("/")[0] for api in apis}
        for module in modules:
            for api in apis & self._brought(module, groups):
                by_crd[api] = (*by_crd.get(api, ()), module.name)
        return by_crd

    def _brought(self, module: model.Module, groups: set[str]) -> set[str]:
        try:
            # To read YAML takes long, and most files are of other groups.
            return {
                api
                for place, text, is_own in self.texts(module, self.chart_with_others(module))
                if any(group in text for group in groups)
                for crd in crd_files.parse(text, place, is_strict=is_own)
                for api in crd.apis
            }
        except Exception:  # noqa: BLE001 - the module's own run says what is wrong with them
            return set()

    def texts(
        self, module: model.Module, chart: subcharts.Subchart | None
    ) -> Iterator[tuple[str, str, bool]]:
        """Yield places and texts of all files that count, and whether they are the module's, which win.

        ``chart``: that of the module, if others within it may bring some.
        """
        for path, is_own in self.files(module):
            yield str(path), named_files.read_text(path, MAX_FILE), is_own
        if chart is not None:
            yield from ((place, text, False) for place, text in self.of_subcharts(module, chart))

    def chart_with_others(self, module: model.Module) -> subcharts.Subchart | None:
        """Read the module's chart with those within it, if there are some."""
        chart = module.chart_directory
        has_others = chart_files.is_complete(chart) and (chart / subcharts.DIRECTORY).is_dir()
        return chart_of(module) if has_others else None

    def _below(self, directory: pathlib.Path, *, is_own: bool) -> Iterator[pathlib.Path]:
        suffixes = (crd_files.SUFFIX,) if is_own else crd_files.HELM_SUFFIXES
        ignore = None if is_own else _left_out(directory.parent)
        for path, below, files in os.walk(directory):
            below[:] = sorted(name for name in below if not name.startswith("."))
            for name in sorted(files):
                file = pathlib.Path(path, name)
                if not crd_files.is_selected(name, self._filter_prefixes, suffixes):
                    continue
                if ignore is None or not ignore.leaves_out(file.relative_to(directory.parent)):
                    yield file


def chart_of(module: model.Module) -> subcharts.Subchart:
    """Read the module's chart with those within it."""
    return subcharts.read(module.name, module.chart_directory, is_stock=module.stock is not None)


def _left_out(chart: pathlib.Path) -> chart_ignore.ChartIgnore:
    try:
        return chart_ignore.read(chart)
    except OSError as error:
        raise errors.ConfigurationError(
            f"{chart / chart_ignore.FILE} cannot be read: {error.strerror}"
        ) from None


def _directories(module: model.Module) -> Iterator[tuple[pathlib.Path, bool]]:
    """Return where a module's and its chart's definitions lie, and whether they are the module's own."""
    yield module.path / crd_files.DIRECTORY, True
    if module.chart_directory != module.path:
        yield module.chart_directory / crd_files.DIRECTORY, False
