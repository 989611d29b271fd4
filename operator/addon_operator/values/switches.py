"""Which source switches a module on or off."""

import dataclasses
from collections.abc import Mapping

from addon_operator.kernel import names
from addon_operator.values import sources


@dataclasses.dataclass(frozen=True, slots=True)
class Flag:
    """The verdict of the values on a module, before its ``enabled`` script."""

    enabled: bool
    reason: str
    """Which source decided, e.g. ``enabled by someModuleEnabled in modules/values.yaml``."""


def decide(
    module: names.ModuleName,
    files: tuple[sources.ValuesFile, ...],
    hooks: Mapping[str, bool],
    config: sources.ConfigValues,
) -> Flag:
    """The verdict of the highest source that has one; without any, the module is disabled.

    ``files`` go from the lowest to the highest.
    Source: "Modules discovery" of the addon-operator documentation.
    """
    key = names.enabled_key(module)
    levels = [
        *((file.enabled, f"in {file.source}") for file in files),
        (hooks, "of a global hook"),
        (config.enabled, f"in {config.source}"),
    ]
    for switches, where in reversed(levels):
        if key in switches:
            enabled = switches[key]
            return Flag(enabled, f"{'enabled' if enabled else 'disabled'} by {key} {where}")
    return Flag(False, f"disabled by default: no source sets {key}")
