"""The schemas that a stock chart and the charts within it have of their own."""

import functools
import json
import logging

from addon_operator.documents import json_documents, yaml_loader
from addon_operator.helm import helm_errors
from addon_operator.helm.charts import chart_files, subcharts
from addon_operator.helm.repositories import chart_cache
from addon_operator.kernel import errors, json_types
from addon_operator.modules import chart_values, model
from addon_operator.values.schema import chart_schemas

_HOOKS = "hooks"
_log = logging.getLogger(__name__)


def chart_of(module: model.Module) -> chart_schemas.SectionChart | None:
    """Return what checks a module's values by the schemas of its chart; ``None`` where Helm alone does.

    Helm does not for a stock chart, and for any whose schemas refer to other files or addresses.
    """
    if module.stock is not None:
        return section_chart(module)
    found = read(module) if module.has_chart else None
    return section_chart(module) if found is not None and found.leads_outside else None


def section_chart(module: model.Module) -> chart_schemas.SectionChart:
    """Return what checks the values of a module by the schemas of its chart."""
    is_root = not chart_values.has_section(module)
    return chart_schemas.SectionChart(
        functools.partial(chart_values.arranged, module),
        _OnDisk(module),
        () if is_root else (module.key,),
        has_hooks=(module.path / _HOOKS).is_dir(),
    )


class _OnDisk:
    """Reads the schemas of a chart once it is there."""

    def __init__(self, module: model.Module) -> None:
        self._module = module
        self._found: chart_schemas.ChartSchemas | None = None

    def __call__(self) -> chart_schemas.ChartSchemas | None:
        if self._found is None and self._is_there():
            self._found = read(self._module)
        return self._found

    def _is_there(self) -> bool:
        return chart_cache.is_there(self._module) and chart_files.is_complete(self._module.chart_directory)


def read(module: model.Module) -> chart_schemas.ChartSchemas | None:
    """Read the schemas of a module's chart; ``None`` if it cannot be read: Helm, or the linter, says why."""
    try:
        if not subcharts.has_schemas(module.name, module.chart_directory):
            # Values of charts are long, and nobody asks for them.
            return chart_schemas.ChartSchemas(chart_schemas.CheckedChart(module.name))
        chart = subcharts.read(module.name, module.chart_directory, is_stock=True)
        read_schemas = chart_schemas.ChartSchemas(checked_chart(chart))
        # Numbers that no JSON reader takes cannot be handed to the process that checks.
        return read_schemas if read_schemas.digest else None
    except (helm_errors.ChartError, errors.ConfigurationError, TypeError):
        return None
    except Exception as error:  # noqa: BLE001 - nonsense in one chart is no other module's trouble
        _log.warning("the schemas of %s are not used", module.chart_directory, exc_info=error)
        return None


def checked_chart(chart: subcharts.Subchart) -> chart_schemas.CheckedChart:
    """Return the chart with its schemas as documents; one that is not JSON checks nothing."""
    source, text = chart.schema or ("", "")
    return chart_schemas.CheckedChart(
        chart.name,
        chart.dependencies,
        chart.values,
        charts=tuple(map(checked_chart, chart.charts)),
        schema=_document(text),
        source=source,
    )


def _document(text: str) -> json_types.JsonValue:
    try:
        document: json_types.JsonValue = json.loads(text) if text else None
    except (ValueError, RecursionError):
        return None
    return document if json_documents.is_within_depth(document, yaml_loader.MAX_DEPTH) else None
