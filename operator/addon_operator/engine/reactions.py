"""What a change of values leads to: a pure decision.

Source: "Reaction to events" in "Steps of addon-operator lifecycle".
"""

from collections.abc import Sequence

import msgspec

from addon_operator.engine import state as engine_state
from addon_operator.kernel import names
from addon_operator.modules import model
from addon_operator.values import sources


class Reaction(msgspec.Struct, frozen=True):
    """Either a converge, or runs of single modules, or nothing."""

    converge: bool = False
    runs: tuple[names.ModuleName, ...] = ()


def to_hook_effects(
    owner: names.ModuleName | None,
    *,
    state: engine_state.ConvergeState,
    modules: Sequence[model.Module],
    enabled: Sequence[names.ModuleName],
) -> Reaction:
    """Return the reaction to a run of a hook for an event or a tick that changed values or flags.

    A global hook asks for a converge, and so does a module's hook if the module has an ``enabled`` script;
    otherwise the module is run. Before the first converge nothing is needed, and a disabled module is left
    alone.
    """
    if state is engine_state.ConvergeState.NOT_STARTED or (owner is not None and owner not in enabled):
        return Reaction()
    scripted = {module.name for module in modules if module.enabled_script is not None}
    if owner is None or owner in scripted:
        return Reaction(converge=True)
    return Reaction(runs=(owner,))


def to_config_change(
    change: sources.ConfigChange,
    *,
    state: engine_state.ConvergeState,
    modules: Sequence[model.Module],
    enabled: Sequence[names.ModuleName],
) -> Reaction:
    """Return the reaction to an edit of the ConfigMap.

    Before the first converge nothing is needed: it will see the new values. While a converge runs the newer
    intent starts it over. Otherwise global values, flags, and values that an ``enabled`` script may look at
    ask for a converge, and a module's own values for a run of that module.
    """
    if state is engine_state.ConvergeState.NOT_STARTED:
        return Reaction()
    touched = change.sections_changed | change.maintenance_changed
    scripted = {module.name for module in modules if module.enabled_script is not None}
    everything = change.global_changed or change.flags_changed or change.sections_changed & scripted
    if everything or state is engine_state.ConvergeState.RUNNING:
        return Reaction(converge=True)
    return Reaction(runs=tuple(name for name in enabled if name in touched))


def concerned(
    change: sources.ConfigChange, enabled: Sequence[names.ModuleName]
) -> frozenset[names.ModuleName]:
    """Return the modules that are to be run, enabled or disabled because of an edit."""
    touched = change.sections_changed | change.maintenance_changed
    return change.flags_changed | {name for name in enabled if change.global_changed or name in touched}
