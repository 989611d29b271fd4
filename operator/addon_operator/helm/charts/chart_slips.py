"""Slips of the keyboard that no schema finds: in values for a chart, and in what its templates read of them.

All of it is found by texts alone, and fit for the bounded worker: arguments and results are plain.
"""

import pathlib
from collections.abc import Mapping
from typing import Any

from addon_operator.documents import json_pointers
from addon_operator.helm.charts import chart, template_paths
from addon_operator.kernel import errors, names
from addon_operator.modules import chart_values
from addon_operator.values import sources


def in_values(
    module: names.ModuleName, directory: pathlib.Path, given: Mapping[str, Mapping[str, Any]], below: bool
) -> list[str]:
    """Say which keys of a module's section, by their sources, a public chart does not have, but one like it.

    ``below``: whether the chart has its own values below the section's key. What cannot be read has none.
    """
    try:
        defaults: Any = chart.own_values(module, directory)
    except errors.AddonOperatorError:
        return []
    key = names.values_key(module)
    known = defaults.get(key) if below else defaults
    slips = [
        (source, path, near)
        for source, section in given.items()
        for path, near in chart_values.misspelt(section, known if isinstance(known, dict) else {})
    ]
    read = [each.keys for _, each in template_paths.of_chart(directory)] if slips else []
    return [
        f"{source}: the chart has no value {json_pointers.format_path((key, *path))}; did you mean {near!r}?"
        for source, path, near in slips
        if not any(keys[: len(path)] == path for keys in read)
    ]


def in_templates(module: names.ModuleName, directory: pathlib.Path, known: Mapping[str, Any]) -> list[str]:
    """Say what templates read of a module's section that nothing sets, but something like it.

    ``known`` is what files and hooks set. What cannot be read has none.
    """
    try:
        defaults: Any = chart.own_values(module, directory)
    except errors.AddonOperatorError:
        return []
    key = names.values_key(module)
    own = defaults.get(key)
    known = {key: sources.merge(own if isinstance(own, dict) else {}, dict(known))}
    found = (
        (f"{path.relative_to(directory)}:{each.line} reads {each}", nearest(each, known))
        for path, each in template_paths.of_chart(directory)
    )
    told = (f"{place}, which nothing sets; did you mean {near!r}?" for place, near in found if near)
    return list(dict.fromkeys(told))


def nearest(path: template_paths.ValuesPath, known: Mapping[Any, Any]) -> str:
    """Return what the first key of a path that is not known probably means; empty without such a one."""
    values: Any = known
    for key in path.keys:
        if not isinstance(values, Mapping):
            return ""
        if key not in values:
            return (names.misspelt(key, values) or "") if values is not known else ""
        values = values[key]
    return ""
