"""What is the matter with a module, in words that hold no values."""

import dataclasses
from collections.abc import Mapping
from typing import Final

from addon_operator.engine import state
from addon_operator.modules.health import resource_health
from addon_operator.status import module_conditions
from addon_operator.status.notifications import notify_config

Kind = notify_config.Kind
_Status = state.ModuleStatus
_TEXT_MAX: Final = 300
_ROLLED_BACK: Final = "RolledBack"


@dataclasses.dataclass(frozen=True, slots=True)
class Problem:
    """What is the matter with a module, for a person and without values, and what follows."""

    text: str = ""
    follows: str = ""
    at: float | None = None
    """When that happens, in seconds since the epoch; sooner if it waits for something."""
    sooner: str = ""
    rolled_back: bool = False


Observed = Mapping[Kind, Problem | None]
"""``None`` is for what is all right; what is not known now is not there."""


def observed(module: state.ModuleState) -> dict[Kind, Problem | None]:
    """Return what is known of a module now."""
    if module.status is _Status.DISABLED:
        return dict.fromkeys((Kind.FAILED, Kind.UNHEALTHY, Kind.DRIFTED, Kind.HELD_BACK))
    seen: dict[Kind, Problem | None] = {}
    error = _line(module.last_error_without_values)
    if module.status is _Status.READY:
        seen[Kind.FAILED] = None
    elif module.status is _Status.FAILED:
        seen[Kind.FAILED] = _failure(module, error, rolled_back=module.failure == _ROLLED_BACK)
    elif module.status is _Status.DELETING and error:
        seen[Kind.FAILED] = _failure(module, f"its removal failed: {error}")
    if module.health is not None and module.health.state is not resource_health.HealthState.PROGRESSING:
        is_failed = module.health.state is resource_health.HealthState.FAILED
        seen[Kind.UNHEALTHY] = Problem(_line(module.health.message)) if is_failed else None
    if module.drift is not None:
        seen[Kind.DRIFTED] = Problem(_line(module.drift.message)) if module.drift.resources else None
    if module.held_back is not None:
        until = module.held_back.until
        seen[Kind.HELD_BACK] = Problem(_line(module.held_back.what), "the window opens", until)
    elif module.status is _Status.READY:
        seen[Kind.HELD_BACK] = None
    return seen


def _line(text: str) -> str:
    return module_conditions.one_line(text, _TEXT_MAX)


def _failure(module: state.ModuleState, text: str, *, rolled_back: bool = False) -> Problem:
    if module.next_try is None:
        return Problem(text, "it is tried again when its values or files change", rolled_back=rolled_back)
    return Problem(text, "it is tried again", module.next_try, _line(", ".join(module.cure)), rolled_back)
