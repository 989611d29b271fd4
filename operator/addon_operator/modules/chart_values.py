"""The values that a module's chart gets, arranged as the chart reads them."""

from collections.abc import Iterator, Mapping
from typing import Any

from addon_operator.kernel import json_types, names
from addon_operator.modules import model, module_config
from addon_operator.values import sources


def arranged(module: model.Module, values: json_types.JsonObject) -> json_types.JsonObject:
    """Arrange ``global`` and the module's section as the chart reads them.

    A chart with values at the root gets the section as ``helm install --values`` would hand it over: what it
    does not name keeps the chart's default, and ``null`` removes one. Charts have meanings of their own for
    ``global``, so they get of the shared one only what ``chart.global`` names, below the section's own.
    """
    stock = module.stock
    if stock is None or has_section(module):
        return values
    section: Any = values.get(module.key) or {}
    shared = _shared(values.get(names.GLOBAL_KEY), stock.global_keys)
    return sources.merge({names.GLOBAL_KEY: shared}, section) if shared else section


def has_section(module: model.Module) -> bool:
    """Say whether the chart gets ``global`` and the module's section below its key."""
    return module.stock is None or module.stock.values is module_config.ValuesScope.SECTION


def sections_of(
    module: model.Module, given: Mapping[str, Any]
) -> tuple[json_types.JsonObject, json_types.JsonObject]:
    """Return ``global`` and the module's section of values that its chart was given, see :func:`arranged`."""
    stock = module.stock
    at_root = stock is not None and stock.values is module_config.ValuesScope.ROOT
    own = given if at_root else given.get(module.key)
    shared = given.get(names.GLOBAL_KEY)
    return dict(shared) if isinstance(shared, dict) else {}, dict(own) if isinstance(own, Mapping) else {}


def misspelt(
    section: Mapping[str, Any], known: Mapping[str, Any], path: tuple[str, ...] = ()
) -> Iterator[tuple[tuple[str, ...], str]]:
    """Yield the path of each key that ``known`` does not have, with the key there that is probably meant.

    A key that is like one which is set, too, is most likely another one. An empty mapping may have any keys.
    """
    for key, value in section.items():
        below = known.get(key)
        if key not in known:
            if known and (near := names.misspelt(key, known.keys() - section.keys())):
                yield (*path, key), near
        elif isinstance(value, Mapping) and isinstance(below, Mapping):
            yield from misspelt(value, below, (*path, key))


def _shared(given: json_types.JsonValue, keys: tuple[str, ...] | None) -> json_types.JsonObject:
    if not isinstance(given, dict) or keys is None:
        return given if isinstance(given, dict) else {}
    return {key: given[key] for key in keys if key in given}
