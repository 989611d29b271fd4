"""Which of the charts within a chart are enabled, and the values of each, as Helm works them out.

Source: "Chart Dependency" and "Values" of the Helm documentation, and its package ``chart/common/util``.
"""

import dataclasses
from collections.abc import Iterator
from typing import Final

from addon_operator.kernel import json_types, names

MAX_CHARTS: Final = 1000
"""How many charts there may be within a chart, once for each alias of them and of those around them."""
MAX_BYTES: Final = 32 << 20
"""How many characters values and ``dependencies`` of all these may have, once more for each import."""
MAX_LEVELS: Final = 32
"""How deep charts may lie within each other."""


class TooManyChartsError(ValueError):
    """A chart that Helm would make something endless of; the sentence says which bound it exceeds."""


@dataclasses.dataclass(frozen=True, slots=True)
class Chart:
    """A chart with those within it."""

    name: str
    dependencies: tuple[json_types.JsonObject, ...] = ()
    """What ``Chart.yaml`` says of the charts within it."""
    values: json_types.JsonObject = dataclasses.field(default_factory=dict)
    """Its own ``values.yaml``."""
    charts: tuple["Chart", ...] = ()


def check_size(chart: Chart) -> None:
    """Raise :class:`TooManyChartsError` if it takes too long to work out the values of the charts within."""
    count, size = _expanded(chart, MAX_LEVELS)
    if count > MAX_CHARTS:
        raise TooManyChartsError(
            f"with all aliases there are more than {MAX_CHARTS} charts within the chart; remove some"
        )
    if size > MAX_BYTES:
        raise TooManyChartsError(
            f"with all aliases and import-values, the values of the charts within the chart have more than "
            f"{MAX_BYTES >> 20} MiB; remove some"
        )


def _expanded(chart: Chart, levels: int) -> tuple[int, int]:
    if not levels:
        raise TooManyChartsError(f"charts lie more than {MAX_LEVELS} levels deep within each other")
    imports = sum(len(_list(each.get("import-values"))) for each in chart.dependencies)
    count, size = 1, len(repr((chart.values, chart.dependencies))) * (1 + imports)
    below = {id(each): _expanded(each, levels - 1) for each in chart.charts}
    for each, _ in uses(chart):
        inner_count, inner_size = below[id(each)]
        count, size = count + inner_count, size + inner_size
    return count, size


def uses(chart: Chart) -> Iterator[tuple["Chart", json_types.JsonObject]]:
    """Yield charts directly within a chart: once per alias, and always if it does not say when."""
    said: dict[str, list[json_types.JsonObject]] = {}
    for dependency in chart.dependencies:
        if isinstance(name := dependency.get("name"), str):
            said.setdefault(name, []).append(dependency)
    for each in chart.charts:
        for dependency in said.get(each.name) or [{}]:
            yield each, dependency


def key_of(dependency: json_types.JsonObject, name: str) -> str:
    """Return the key below which the chart of that name finds its values."""
    return str(dependency.get("alias") or name)


def enabled(chart: Chart, values: json_types.JsonObject) -> Iterator[tuple[str, Chart]]:
    """Yield charts directly within a chart that its coalesced values enable, with their values' keys."""
    for each, dependency in uses(chart):
        if is_enabled(dependency, values):
            yield key_of(dependency, each.name), each


def remaining(chart: Chart, values: json_types.JsonObject) -> Chart:
    """Return the chart with those that the values enable, each under the key of its values."""
    return _remaining(chart, coalesced(chart, values))


def _remaining(chart: Chart, level: json_types.JsonObject) -> Chart:
    charts, dependencies = [], []
    for each, dependency in uses(chart):
        if is_enabled(dependency, level):
            key = key_of(dependency, each.name)
            below = level.get(key)
            rest = _remaining(each, below if isinstance(below, dict) else {})
            charts.append(dataclasses.replace(rest, name=key))
            dependencies.append({"name": key, "import-values": dependency.get("import-values")})
    return dataclasses.replace(chart, dependencies=tuple(dependencies), charts=tuple(charts))


def is_enabled(dependency: json_types.JsonObject, values: json_types.JsonObject) -> bool:
    """Let the first condition that has a value decide, else the tags."""
    condition = dependency.get("condition")
    for path in condition.split(",") if isinstance(condition, str) else ():
        switch = _at(values, path.strip())
        if isinstance(switch, bool):
            return switch
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


def coalesced(chart: Chart, values: json_types.JsonObject) -> json_types.JsonObject:
    """Lay values over those of a chart and of the charts within it; what they set to ``null`` is gone.

    A ``null`` of a chart's own stays, like one for a key that the chart does not know. The result shares what
    is the same with ``values`` and the charts: it must not be changed.
    """
    return _coalesced(_with_imports(chart), values)


def _coalesced(chart: Chart, values: json_types.JsonObject) -> json_types.JsonObject:
    """Do it for a chart whose own values hold all that it imports."""
    level = _laid_over(values, chart.values)
    for each, dependency in uses(chart):
        key = key_of(dependency, each.name)
        below = level.get(key, {})
        if isinstance(below, dict):
            level[key] = _coalesced(each, _with_globals(level, below))
    return level


def _laid_over(over: json_types.JsonObject, under: json_types.JsonObject) -> json_types.JsonObject:
    """Return a mapping filled from the one below it; its ``null`` removes what is there."""
    filled = {key: value for key, value in over.items() if value is not None or key not in under}
    for key, value in under.items():
        if key not in over:
            filled[key] = value
        elif isinstance(inner := over[key], dict) and isinstance(value, dict):
            filled[key] = _laid_over(inner, value)
    return filled


def _with_globals(level: json_types.JsonObject, below: json_types.JsonObject) -> json_types.JsonObject:
    """Return the values of a chart within another one, with the ``global`` values of that."""
    own, above = below.get(names.GLOBAL_KEY) or {}, level.get(names.GLOBAL_KEY) or {}
    if not isinstance(own, dict) or not isinstance(above, dict):
        return below
    if not own:
        return {**below, names.GLOBAL_KEY: above}
    passed = {**own}
    for key, value in above.items():
        inner = own.get(key)
        if isinstance(value, dict) and isinstance(inner, dict):
            passed[key] = _laid_over(value, inner)
        elif inner is None or isinstance(value, dict) is isinstance(inner, dict):
            # A mapping never takes the place of anything else, nor the other way round.
            passed[key] = value
    return {**below, names.GLOBAL_KEY: passed}


def _with_imports(chart: Chart) -> Chart:
    """Return the chart with its own values as its templates find them: with those that it imports.

    Like Helm, it begins with the innermost charts, so that each import is worked out once.
    """
    resolved = dataclasses.replace(chart, charts=tuple(map(_with_imports, chart.charts)))
    values = chart.values
    for each, dependency in uses(resolved):
        if wanted := _list(dependency.get("import-values")):
            below = values.get(key_of(dependency, each.name))
            coalesced = _coalesced(each, below if isinstance(below, dict) else {})
            for one in wanted:
                values = _laid_over(values, _imported(coalesced, one))
    return dataclasses.replace(resolved, values=values)


def _imported(exported: json_types.JsonObject, wanted: json_types.JsonValue) -> json_types.JsonObject:
    if isinstance(wanted, str):
        taken = _at(exported, f"exports.{wanted}")
        return taken if isinstance(taken, dict) else {}
    if not isinstance(wanted, dict):
        return {}
    taken, parent = _at(exported, str(wanted.get("child"))), str(wanted.get("parent") or ".")
    for part in reversed([part for part in parent.split(".") if part]):
        taken = {part: taken}
    return taken if isinstance(taken, dict) else {}


def _list(value: json_types.JsonValue) -> list[json_types.JsonValue]:
    return value if isinstance(value, list) else []
