"""The conditions of a module, as its object shows them.

They are read by kstatus, ``kubectl wait`` and most dashboards: ``Ready`` says whether the last run succeeded,
``Healthy`` how its resources are, ``Drifted`` whether somebody changed them, ``Reconciling`` that something
is under way, ``Stalled`` that it failed several times. ``ConfigValid`` says whether the values that the
ConfigMap or the Secret has for the module are in force, ``DefinitionsInForce`` whether its
CustomResourceDefinitions are, or those of another module, ``WebhooksRegistered`` whether the API server asks
the hooks that are to answer it, ``Requires`` whether the cluster has what it requires, ``HooksWork`` whether
its hooks work on events, ``Warnings`` whether Helm or the API server warn of something in its release,
``Suspended`` whether somebody has it left alone.
Source: "kstatus" of cli-utils, and the conventions for conditions of the Kubernetes API.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, Literal, TypedDict

import msgspec

from addon_operator.engine import state
from addon_operator.kernel import clock, shown_texts
from addon_operator.modules import findings, windows
from addon_operator.modules.health import resource_health
from addon_operator.status import condition_times

MESSAGE_MAX: Final = 2048
TYPES: Final = (
    "Enabled",
    "Ready",
    "Healthy",
    "Drifted",
    "Reconciling",
    "Stalled",
    "ConfigValid",
    "DefinitionsInForce",
    "WebhooksRegistered",
    "Requires",
    "HooksWork",
    "Warnings",
    "Suspended",
)

ConditionStatus = Literal["True", "False", "Unknown"]


class Condition(TypedDict):
    """One condition as the API writes it."""

    type: str
    status: ConditionStatus
    reason: str
    message: str
    observedGeneration: int
    lastTransitionTime: str


Stored = Mapping[str, Any]
"""``status`` as it stands in the cluster; others may have added to it."""


def one_line(text: str, longest: int) -> str:
    """Return the text without line breaks, cut to a length; what a terminal would obey is replaced."""
    flat = " ".join(text.split())
    return shown_texts.shown(flat if len(flat) <= longest else flat[: longest - 1] + "…")


class _Said(msgspec.Struct, frozen=True):
    """A condition before it has a time."""

    status: ConditionStatus
    reason: str
    message: str


def _all_said(module: state.ModuleState) -> Iterator[tuple[str, _Said]]:
    found = module.found()
    by_condition: dict[str, list[findings.Finding]] = {type_: [] for type_ in ("", *TYPES)}
    for each in found:
        by_condition[each.kind.condition].append(each)
    said = {type_: _of_findings(module, type_, by_condition[type_]) for type_ in _WITHOUT_FINDINGS} | {
        "Enabled": _enabled(module),
        "Ready": _ready(module, found),
        "Healthy": _healthy(module),
        "Drifted": _drifted(module),
        "Reconciling": _reconciling(module),
        "Stalled": _stalled(module),
        "WebhooksRegistered": _webhooks_registered(module, by_condition["WebhooksRegistered"]),
        "Suspended": _left_to_people(module),
    }
    return ((type_, said[type_]) for type_ in TYPES)


def times(module: state.ModuleState, before: condition_times.Times, now: float) -> condition_times.Times:
    """Return since when each condition is as it is now; see :func:`.condition_times.after`."""
    said = {type_: (each.status, each.reason) for type_, each in _all_said(module)}
    return condition_times.after(module, before, said, now)


def conditions(module: state.ModuleState, since: condition_times.Times, generation: int) -> list[Condition]:
    """Return all conditions with the times that :func:`times` found."""
    return [
        Condition(
            type=type_,
            status=each.status,
            reason=each.reason,
            message=one_line(each.message, MESSAGE_MAX),
            observedGeneration=generation,
            lastTransitionTime=since[type_].at,
        )
        for type_, each in _all_said(module)
    ]


_Status = state.ModuleStatus
STALLED_TRIES: Final = 3
"""After so many tries in a row that failed, a module is stalled."""
RUN_FAILED: Final = "Failed"
DELETE_FAILED: Final = "DeleteFailed"
_WAITS_FOR_CONFIG: Final = "WaitsForConfigMap"
_UNDER_WAY: Final = {
    _Status.PENDING: "The module has not run yet.",
    _Status.RUNNING: "The module is running.",
    _Status.DELETING: "The module is being removed.",
}


def _enabled(module: state.ModuleState) -> _Said:
    if module.is_off:
        held = module.held_back
        is_held = held is not None and held.confirm and module.status is _Status.DELETING
        reason = "Removing" if module.status is _Status.DELETING else "Disabled"
        return _Said("False", held.reason if held is not None and is_held else reason, module.reason)
    return _Said("True", "Enabled", module.reason)


def _ready(module: state.ModuleState, found: Sequence[findings.Finding]) -> _Said:
    error = module.last_error_without_values
    if module.status is _Status.READY:
        told = findings.said([row for each in found for row in each.rows], module.module.name)
        return _Said(
            "False" if any(each.kind.is_unready for each in found) else "True",
            found[0].reason if found else "RunSucceeded",
            "; ".join(["The last run succeeded", *(text.removesuffix(".") for text in told)]) + ".",
        )
    if (held := module.held_back) is not None and _is_why(module, held):
        return _Said("False", held.reason, error or f"The module is disabled; {held}.")
    if module.status is _Status.DISABLED:
        return _Said("False", "Disabled", f"The module is disabled: {module.reason}")
    if module.status is _Status.DELETING:
        return _Said("False", DELETE_FAILED if error else "Deleting", error or _UNDER_WAY[module.status])
    return _not_ready(module)


def _not_ready(module: state.ModuleState) -> _Said:
    if error := module.last_error_without_values:
        # It is tried again: until that succeeds, it stays as unready as it was.
        told = f"{error}; it {_cure(module)}" if module.cure else error
        told += f"; it is tried again: {module.at_hook}" if module.at_hook else ""
        told += f"; the module is {module.suspended}" if module.suspended is not None else ""
        return _Said("False", module.failure or RUN_FAILED, told)
    if module.awaits_health:
        return _Said("Unknown", "WaitsForHealth", _awaited(module))
    return _waits_for_run(module)


def _waits_for_run(module: state.ModuleState) -> _Said:
    """Say what is under way; that it is left alone, or that an upgrade waits, is no less so meanwhile."""
    begin, reason = _UNDER_WAY.get(module.status, "The last run failed."), str(module.status)
    waiting = "".join(module.texts(findings.EDIT_WAITS))
    if module.at_hook and not waiting:
        begin = f"{begin.removesuffix('.')}; {module.at_hook}."
    if waiting and module.status is _Status.RUNNING:
        is_older = module.edits_seen != module.edits
        return _Said(
            "Unknown",
            findings.EDIT_WAITS.type if is_older else reason,
            f"{begin.removesuffix('.')}; {waiting}.",
        )
    if module.status is not _Status.PENDING:
        return _Said("Unknown", reason, begin)
    kept = {findings.SUSPENDED: module.suspended, findings.HELD_BACK: module.held_back}
    told = {kind.type: str(each) for kind, each in kept.items() if each is not None}
    if module.awaits_config:
        told = {_WAITS_FOR_CONFIG: f"it {state.AWAITS_CONFIG}"} | told
    if others := module.texts(findings.WAITS):
        told[findings.WAITS.type] = f"it waits for {', '.join(others)}"
    if waiting:
        told[findings.EDIT_WAITS.type] = waiting
    return _Said(
        "Unknown", next(iter(told), reason), "; ".join([begin.removesuffix("."), *told.values()]) + "."
    )


def _awaited(module: state.ModuleState) -> str:
    own = module.module.name in module.awaits_health and module.health is not None
    if own and module.health is not None and module.health.state is resource_health.HealthState.HEALTHY:
        return "The release is in place and healthy; the chart's tests run."
    because = f": {module.health.message}" if own and module.health is not None else ""
    begin = "The release is in place; the run" if module.status is _Status.RUNNING else "The module"
    return f"{begin} waits until {module.awaited} healthy{because}".removesuffix(".") + "."


HEALTH: Final[Mapping[resource_health.HealthState, tuple[ConditionStatus, str]]] = {
    resource_health.HealthState.HEALTHY: ("True", "Healthy"),
    resource_health.HealthState.PROGRESSING: ("Unknown", "Progressing"),
    resource_health.HealthState.FAILED: ("False", "Failed"),
}
"""What ``Healthy`` says of each state, and its reason."""


def _nothing_there(module: state.ModuleState) -> _Said:
    off = _Status.DISABLED if module.stays_off else module.status
    return _Said("Unknown", str(off), "Nothing of the module is to be there.")


def _healthy(module: state.ModuleState) -> _Said:
    if module.is_off:
        return _nothing_there(module)
    if module.health is not None:
        status, reason = HEALTH[module.health.state]
        return _Said(status, reason, module.health.message or "All its resources are healthy.")
    if module.maintenance:
        return _Said("Unknown", "Maintenance", "In maintenance, its resources are not watched.")
    if module.health_state is not None:
        return _Said("True", "NoResources", "The module has no release.")
    return _Said("Unknown", "NotKnown", "Nothing is known of its resources yet.")


def _drifted(module: state.ModuleState) -> _Said:
    if module.drift is None or module.is_off:
        return _Said("Unknown", "NotKnown", "Its resources are not compared with its chart.")
    if module.drift.resources:
        return _Said("True", module.drift.reason, module.drift.message)
    return _Said("False", "AsInstalled", "Nobody has changed its resources.")


def _is_why(module: state.ModuleState, held: windows.HeldBack) -> bool:
    """Say whether the module is as it is because something waits for a window."""
    match module.status:
        case _Status.FAILED:
            return held.is_broken and module.next_try is None
        case _Status.DELETING:
            return held.is_removal and not module.last_error_without_values
    return False


def _webhooks_registered(module: state.ModuleState, found: Sequence[findings.Finding]) -> _Said:
    if module.is_off:
        return _nothing_there(module)
    if texts := module.texts(findings.NOT_REGISTERED):
        return _Said("False" if found else "Unknown", findings.NOT_REGISTERED.type, f"{texts[0]}.")
    if module.hooks is None:
        return _Said("Unknown", "NotKnown", "Its hooks have not said yet what they answer.")
    if any(hook.config.answering for hook in module.hooks):
        return _Said("True", "Registered", "The API server asks all hooks that are to answer it.")
    return _Said("True", "NoWebhooks", "None of its hooks is to answer the API server.")


_WITHOUT_FINDINGS: Final = {
    "ConfigValid": _Said("True", "ValuesInForce", "The values of ConfigMap and Secret are in force."),
    "DefinitionsInForce": _Said(
        "True", "DefinitionsInForce", "No other module has its CustomResourceDefinitions."
    ),
    "Requires": _Said("True", "Met", "The cluster has all that it requires."),
    "HooksWork": _Said(
        "True", "HooksWork", "None of its hooks fails on events, and all objects are followed."
    ),
    "Warnings": _Said(
        "False",
        "NoWarnings",
        "Neither Helm nor the API server warns of anything, and nothing seems misspelt.",
    ),
}
_ALSO_IF_OFF: Final = ("ConfigValid", "DefinitionsInForce")


def _of_findings(module: state.ModuleState, type_: str, found: Sequence[findings.Finding]) -> _Said:
    """Return a condition that findings make, which says the contrary without any."""
    right = _WITHOUT_FINDINGS[type_]
    if module.is_off and type_ not in _ALSO_IF_OFF:
        return _nothing_there(module)
    if found:
        told = "; ".join(message for each in found for message in each.messages)
        status: ConditionStatus = "False" if right.status == "True" else "True"
        return _Said(status, found[0].kind.condition_reason or found[0].reason, told)
    if type_ == "HooksWork" and module.hooks is None:
        return _Said("Unknown", "NotKnown", "Its hooks have not begun to follow events.")
    return right


def _left_to_people(module: state.ModuleState) -> _Said:
    if module.suspended is not None:
        return _Said("True", "Annotated", f"The module is {module.suspended}.")
    return _Said("False", "NotAnnotated", "Nobody has suspended the module.")


def _reconciling(module: state.ModuleState) -> _Said:
    if (
        module.status is _Status.DELETING
        and module.held_back is not None
        and _is_why(module, module.held_back)
    ):
        return _Said("False", module.held_back.reason, f"Nothing is in progress; {module.held_back}.")
    if module.status in _UNDER_WAY and not _is_stuck_in_delete(module):
        return _Said("True", str(module.status), _UNDER_WAY[module.status])
    if module.next_try is not None:
        before, behind = state.next_try(module.cure)
        told = f"The last try failed; {before}at {clock.rfc3339(module.next_try)}{behind}."
        return _Said("True", "ProgressingWithRetry", told)
    waits = module.texts(findings.WAITS)
    until = f"; its next run waits for {', '.join(waits)}" if waits else ""
    return _Said("False", str(module.status), f"Nothing is in progress{until}.")


def _cure(module: state.ModuleState) -> str:
    return f"waits for {', '.join(module.cure)}"


def _stalled(module: state.ModuleState) -> _Said:
    if module.status is _Status.FAILED and (module.is_final or module.tries >= STALLED_TRIES):
        said = module.last_error_without_values or "The last run failed."
        waits = f", and {_cure(module)}" if module.cure else ""
        often = "failed" if module.is_final else f"failed {module.tries} times in a row"
        told = f"It {often}{waits}: {said}"
        return _Said("True", module.failure or RUN_FAILED, told)
    if _is_stuck_in_delete(module):
        return _Said("True", DELETE_FAILED, module.last_error_without_values)
    return _Said("False", str(module.status), "The last run did not fail, or is being retried.")


def _is_stuck_in_delete(module: state.ModuleState) -> bool:
    return module.status is _Status.DELETING and bool(module.last_error_without_values)
