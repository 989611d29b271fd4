"""What is the matter with a module, in words that hold no values."""

from collections.abc import Mapping
from typing import Final

import msgspec

from addon_operator.engine import state
from addon_operator.modules import findings
from addon_operator.modules.health import resource_health
from addon_operator.status import module_conditions
from addon_operator.status.notifications import notify_config

Kind = notify_config.Kind
_Status = state.ModuleStatus
_TEXT_MAX: Final = 300
_ROLLED_BACK: Final = "RolledBack"


class Problem(msgspec.Struct, frozen=True):
    """What is the matter with a module, for a person and without values, and what follows."""

    text: str = ""
    follows: str = ""
    at: float | None = None
    """When that happens, in seconds since the epoch."""
    sooner: str = ""
    """What stands behind that: for what it happens sooner."""
    rolled_back: bool = False


Observed = Mapping[Kind, Problem | None]
"""``None`` is for what is all right; what is not known now is not there."""


def observed(module: state.ModuleState) -> dict[Kind, Problem | None]:
    """Return what is known of a module now."""
    if module.status is _Status.DISABLED:
        return dict.fromkeys(notify_config.LASTING - {Kind.ROLLED_BACK})
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
    is_ready = module.status is _Status.READY
    if (held := _held_back(module)) is not None or is_ready:
        seen[Kind.HELD_BACK] = held
    if (hooks := _of_hooks(module)) is not None or (is_ready and module.hooks is not None):
        seen[Kind.HOOK_FAILS] = hooks
    if (lost := module.texts(findings.CHART_LOST)) or is_ready:
        seen[Kind.CHART_LOST] = Problem(_line(lost[0])) if lost else None
    return seen


def _held_back(module: state.ModuleState) -> Problem | None:
    if (held := module.held_back) is None:
        return None
    if held.confirm:
        return Problem(_line(held.what), f"it {held.waits}")
    return Problem(_line(held.what), "the window opens", held.until)


def _of_hooks(module: state.ModuleState) -> Problem | None:
    """Say which hooks fail beside runs, which are not asked, and which bindings wait."""
    kinds = (findings.HOOK_FAILS, findings.NOT_REGISTERED, findings.BINDING_WAITS)
    wrong = [message for each in module.found() if each.kind in kinds for message in each.messages]
    return Problem(_line("; ".join(wrong)), "it goes on by itself when that is mended") if wrong else None


def _line(text: str) -> str:
    return module_conditions.one_line(text, _TEXT_MAX)


def _failure(module: state.ModuleState, text: str, *, rolled_back: bool = False) -> Problem:
    if module.next_try is None:
        # The error says what has to change.
        return Problem(text, rolled_back=rolled_back)
    before, behind = state.next_try(module.cure)
    return Problem(text, before.rstrip(), module.next_try, _line(behind), rolled_back)
