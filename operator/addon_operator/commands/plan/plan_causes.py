"""Which values a planned upgrade comes from, as far as the record of the last revision tells."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import msgspec

from addon_operator.helm.releases import render_inputs
from addon_operator.kernel import json_types, names
from addon_operator.modules import release

_NAMED: Final = 3
"""So many keys are named, and the others counted."""


class Given(msgspec.Struct, frozen=True):
    """What a chart renders with."""

    values: Mapping[str, Any]
    defaults: Mapping[str, Any]
    """Those of its own ``values.yaml``, which lie below the values."""


def is_of_inputs(reason: str) -> bool:
    """Say whether a release changes because what it is rendered from did."""
    return reason in (release.CHART_CHANGED, release.VALUES_CHANGED)


def named(reason: str, before: Given, now: Given) -> str:
    """Return the reason of an upgrade with the keys that changed, if it is that the inputs did.

    Keys are no secret, and nothing is said of what stands there.
    """
    if not is_of_inputs(reason) or not before.values:
        return reason
    if values := list(_changed(before.values, now.values)):
        return f"values changed: {names.listed(values, _NAMED)}"
    if defaults := list(_changed(before.defaults, now.defaults)) if before.defaults else []:
        return f"values.yaml of the chart changed: {names.listed(defaults, _NAMED)}"
    is_chart = reason == release.CHART_CHANGED
    return "templates or other files of the chart changed" if is_chart else "Helm or the cluster changed"


def with_enabled(
    values: json_types.JsonObject,
    enabled: Sequence[json_types.JsonValue] | None,
    before: Mapping[str, Any],
) -> json_types.JsonObject:
    """Return the values with ``global.enabledModules``, which charts get that read it, if this one did."""
    is_read = names.ENABLED_MODULES in before.get(names.GLOBAL_KEY, {})
    return render_inputs.with_enabled_modules(values, enabled or ()) if is_read else values


def _changed(before: object, now: object, path: str = "") -> Iterator[str]:
    if isinstance(before, Mapping) and isinstance(now, Mapping):
        for key in sorted({*before, *now}, key=str):
            yield from _changed(before.get(key), now.get(key), f"{path}.{key}" if path else str(key))
    elif before != now or isinstance(before, bool) is not isinstance(now, bool):
        yield path
