"""What is the matter with a module, in words that hold no values."""

from collections.abc import Mapping
from typing import Final

import msgspec

from addon_operator.engine import state
from addon_operator.modules import findings, news
from addon_operator.modules.health import resource_health
from addon_operator.status import module_conditions
from addon_operator.status.notifications import notify_config

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


Observed = Mapping[news.NewsKind, Problem | None]
"""``None`` is for what is all right; what is not known now is not there."""


def observed(module: state.ModuleState) -> dict[news.NewsKind, Problem | None]:
    """Return what is known of a module now."""
    if module.status is _Status.DISABLED:
        return dict.fromkeys(notify_config.LASTING - {news.ROLLED_BACK})
    seen: dict[news.NewsKind, Problem | None] = {}
    error = _line(module.last_error_without_values)
    if module.status is _Status.READY:
        seen[news.FAILED] = None
    elif module.status is _Status.FAILED:
        seen[news.FAILED] = _failure(module, error, rolled_back=module.failure == _ROLLED_BACK)
    elif module.status is _Status.DELETING and error:
        seen[news.FAILED] = _failure(module, f"its removal failed: {error}")
    seen |= {kind.news: None for kind in findings.TABLE if kind.news is not None and _is_right(module, kind)}
    texts: dict[news.NewsKind, list[str]] = {}
    for each in module.found():
        if each.kind.news is not None:
            texts.setdefault(each.kind.news, []).extend(each.messages)
    seen |= {kind: Problem(_line("; ".join(each))) for kind, each in texts.items()}
    if (held := module.held_back) is not None and findings.HELD_BACK.news is not None:
        seen[findings.HELD_BACK.news] = (
            Problem(_line(held.what), f"it {held.waits}")
            if held.confirm
            else Problem(_line(held.what), "the window opens", held.until)
        )
    return seen


def _is_right(module: state.ModuleState, kind: findings.FindingKind) -> bool:
    """Say whether a module of which this is not found is known to be right."""
    health = module.health
    if kind is findings.UNHEALTHY:
        return health is not None and health.state is not resource_health.HealthState.PROGRESSING
    if kind.condition == findings.DRIFTED.condition:
        return module.drift is not None
    return module.status is _Status.READY and module.hooks is not None


def _line(text: str) -> str:
    return module_conditions.one_line(text, _TEXT_MAX)


def _failure(module: state.ModuleState, text: str, *, rolled_back: bool = False) -> Problem:
    if module.next_try is None:
        # The error says what has to change.
        return Problem(text, rolled_back=rolled_back)
    before, behind = state.next_try(module.cure)
    return Problem(text, before.rstrip(), module.next_try, _line(behind), rolled_back)
