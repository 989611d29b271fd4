"""Which of the charts within a chart are enabled, and the values of each, as Helm works them out.

Source: "Chart Dependency" and "Values" of the Helm documentation, and its package ``chart/common/util``.
"""

import copy
import dataclasses
from collections.abc import Iterator

from addon_operator.kernel import json_types, names


@dataclasses.dataclass(frozen=True, slots=True)
class Chart:
    """A chart with those within it."""

    name: str
    dependencies: tuple[json_types.JsonObject, ...] = ()
    """What ``Chart.yaml`` says of the charts within it."""
    values: json_types.JsonObject = dataclasses.field(default_factory=dict)
    """Its own ``values.yaml``."""
    charts: tuple["Chart", ...] = ()


def uses(chart: Chart, name: str) -> list[json_types.JsonObject]:
    """Return how a chart uses the one of that name: once per alias, and always if it does not say when."""
    return [each for each in chart.dependencies if each.get("name") == name] or [{}]


def key_of(dependency: json_types.JsonObject, name: str) -> str:
    """Return the key below which the chart of that name finds its values."""
    return str(dependency.get("alias") or name)


def enabled(chart: Chart, values: json_types.JsonObject) -> Iterator[tuple[str, Chart]]:
    """Yield charts directly within a chart that its coalesced values enable, with their values' keys."""
    for each in chart.charts:
        for dependency in uses(chart, each.name):
            if is_enabled(dependency, values):
                yield key_of(dependency, each.name), each


def remaining(chart: Chart, values: json_types.JsonObject) -> Chart:
    """Return the chart with those that the values enable, each under the key of its values."""
    return _remaining(chart, coalesced(chart, values))


def _remaining(chart: Chart, level: json_types.JsonObject) -> Chart:
    charts, dependencies = [], []
    for each in chart.charts:
        for dependency in uses(chart, each.name):
            if is_enabled(dependency, level):
                key = key_of(dependency, each.name)
                below = level.get(key)
                rest = _remaining(each, below if isinstance(below, dict) else {})
                charts.append(dataclasses.replace(rest, name=key))
                dependencies.append({"name": key, "import-values": dependency.get("import-values")})
    return dataclasses.replace(chart, dependencies=tuple(dependencies), charts=tuple(charts))


def is_enabled(dependency: json_types.JsonObject, values: json_types.JsonObject) -> bool:
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


def coalesced(chart: Chart, values: json_types.JsonObject) -> json_types.JsonObject:
    """Lay values over those of a chart and of the charts within it; what they set to ``null`` is gone.

    A ``null`` of a chart's own stays, like one for a key that the chart does not know.
    """
    level = copy.deepcopy(values)
    _coalesce(chart, level)
    return level


def _coalesce(chart: Chart, level: json_types.JsonObject) -> None:
    for key, own in _own_values(chart).items():
        if key not in level:
            level[key] = copy.deepcopy(own)
        elif level[key] is None:
            del level[key]
        else:
            _lay_over(level[key], own)
    for each in chart.charts:
        for dependency in uses(chart, each.name):
            below = level.setdefault(key_of(dependency, each.name), {})
            if isinstance(below, dict):
                _pass_globals_on(level, below)
                _coalesce(each, below)


def _lay_over(over: json_types.JsonValue, under: json_types.JsonValue) -> None:
    """Fill a mapping from the one below it, in place."""
    if not isinstance(over, dict) or not isinstance(under, dict):
        return
    for key, value in under.items():
        if key not in over:
            over[key] = copy.deepcopy(value)
        elif over[key] is None:
            del over[key]
        else:
            _lay_over(over[key], value)


def _pass_globals_on(level: json_types.JsonObject, below: json_types.JsonObject) -> None:
    own, above = below.get(names.GLOBAL_KEY) or {}, level.get(names.GLOBAL_KEY) or {}
    if not isinstance(own, dict) or not isinstance(above, dict):
        return
    for key, value in copy.deepcopy(above).items():
        if isinstance(value, dict) and isinstance(own.get(key), dict):
            _lay_over(value, own[key])
        elif isinstance(own.get(key), dict):
            continue
        own[key] = value
    below[names.GLOBAL_KEY] = own


def _own_values(chart: Chart) -> json_types.JsonObject:
    """Return a chart's own values, with those that it imports from the charts within it."""
    imports = [
        (each, dependency, wanted)
        for each in chart.charts
        for dependency in uses(chart, each.name)
        for wanted in _list(dependency.get("import-values"))
    ]
    if not imports:
        return chart.values
    own = copy.deepcopy(chart.values)
    for each, dependency, wanted in imports:
        given = own.get(key_of(dependency, each.name))
        found = coalesced(each, given if isinstance(given, dict) else {})
        _lay_over(own, _imported(found, wanted))
    return own


def _imported(found: json_types.JsonObject, wanted: json_types.JsonValue) -> json_types.JsonObject:
    if isinstance(wanted, str):
        taken = _at(found, f"exports.{wanted}")
        return taken if isinstance(taken, dict) else {}
    if not isinstance(wanted, dict):
        return {}
    taken, parent = _at(found, str(wanted.get("child"))), str(wanted.get("parent") or ".")
    for part in reversed([part for part in parent.split(".") if part]):
        taken = {part: taken}
    return taken if isinstance(taken, dict) else {}


def _list(value: json_types.JsonValue) -> list[json_types.JsonValue]:
    return value if isinstance(value, list) else []
