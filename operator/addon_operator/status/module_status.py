"""What the cluster shows of a module: the status of its object, and the Events about it; no requests.

The conditions are read by kstatus, ``kubectl wait`` and most dashboards: ``Ready`` says whether the last run
succeeded, ``Reconciling`` that something is under way, ``Stalled`` that it failed and is tried again later.
``ConfigValid`` says whether the values that the ConfigMap or the Secret has for the module are in force,
``DefinitionsInForce`` whether its CustomResourceDefinitions are, or those of another module.
Nothing here holds values.
Source: "kstatus" of cli-utils, and the conventions for conditions of the Kubernetes API.
"""

import dataclasses
import enum
from collections.abc import Mapping, Sequence
from typing import Any, Final, Literal, NotRequired, TypedDict

from addon_operator.engine import state
from addon_operator.kernel import clock
from addon_operator.modules import model, windows

API_VERSION: Final = "addon-operator.io/v1alpha1"
KIND: Final = "Module"
PLURAL: Final = "modules"

_DESCRIPTION_MAX: Final = 300
_ERROR_MAX: Final = 1024
_MESSAGE_MAX: Final = 2048
_TYPES: Final = ("Enabled", "Ready", "Reconciling", "Stalled", "ConfigValid", "DefinitionsInForce")

ConditionStatus = Literal["True", "False", "Unknown"]


class Condition(TypedDict):
    """One condition as the API writes it."""

    type: str
    status: ConditionStatus
    reason: str
    message: str
    observedGeneration: int
    lastTransitionTime: str


class ShownRelease(TypedDict):
    """A Helm release."""

    revision: int
    checksum: str
    name: NotRequired[str]
    """If it is not that of the module."""
    namespace: NotRequired[str]
    """If it is not the operator's."""


class ModuleStatusDocument(TypedDict):
    """``status`` of the object."""

    observedGeneration: int
    state: str
    order: int
    hooks: list[str]
    conditions: list[Condition]
    description: NotRequired[str]
    release: NotRequired[ShownRelease]
    lastRun: NotRequired[str]
    lastError: NotRequired[str]


Stored = Mapping[str, Any]
"""``status`` as it stands in the cluster; others may have added to it."""


def document(
    module: state.ModuleState, release: ShownRelease | None, stored: Stored, generation: int, now: float
) -> ModuleStatusDocument:
    """Return the status of a module; a condition keeps its time while its status stays as stored."""
    made = ModuleStatusDocument(
        observedGeneration=generation,
        state=str(module.status),
        order=module.module.order,
        hooks=_hooks(module, stored),
        conditions=_conditions(module, stored, generation, now),
    )
    if module.module.config.description:
        made["description"] = one_line(module.module.config.description, _DESCRIPTION_MAX)
    if (installed := release or _left_by_another(module, stored, "release")) is not None:
        made["release"] = _placed(module.module, installed)
    last_run = clock.rfc3339(module.last_run) if module.last_run is not None else stored.get("lastRun")
    if last_run:
        made["lastRun"] = last_run
    if module.last_error_without_values:
        made["lastError"] = one_line(module.last_error_without_values, _ERROR_MAX)
    return made


def _placed(module: model.Module, release: ShownRelease) -> ShownRelease:
    shown = ShownRelease(revision=release["revision"], checksum=release["checksum"])
    if module.config.namespace:
        shown["namespace"] = module.config.namespace
    if module.config.namespace or module.release != module.name:
        shown["name"] = module.release
    return shown


def _hooks(module: state.ModuleState, stored: Stored) -> list[str]:
    if module.hooks is None:
        return list(_left_by_another(module, stored, "hooks") or ())
    return sorted(hook.name for hook in module.hooks)


def _left_by_another(module: state.ModuleState, stored: Stored, key: str) -> Any:  # noqa: ANN401 - JSON
    """Return what an operator before this one wrote, until this one knows; nothing of a disabled module."""
    return None if module.status is _Status.DISABLED else stored.get(key)


def is_stored(wanted: ModuleStatusDocument, stored: Stored) -> bool:
    """Return whether the cluster has this status already; conditions of others do not count."""
    ours = [each for each in stored.get("conditions") or () if each.get("type") in _TYPES]
    by_type = {each["type"]: each for each in ours}
    return by_type == {each["type"]: each for each in wanted["conditions"]} and all(
        stored.get(key) == wanted.get(key) for key in _COMPARED
    )


_COMPARED: Final = tuple(key for key in ModuleStatusDocument.__annotations__ if key != "conditions")


def one_line(text: str, longest: int) -> str:
    """Return the text without line breaks, cut to a length; what cannot be written in UTF-8 is replaced."""
    flat = " ".join(text.encode("utf-8", "replace").decode().split())
    return flat if len(flat) <= longest else flat[: longest - 1] + "…"


@dataclasses.dataclass(frozen=True, slots=True)
class _Said:
    """A condition before it has a time."""

    status: ConditionStatus
    reason: str
    message: str


def _conditions(module: state.ModuleState, stored: Stored, generation: int, now: float) -> list[Condition]:
    before = {each.get("type"): each for each in stored.get("conditions") or ()}
    said = (
        _enabled(module),
        _ready(module),
        _reconciling(module),
        _stalled(module),
        _config_valid(module),
        _definitions_in_force(module),
    )
    return [
        Condition(
            type=type_,
            status=each.status,
            reason=each.reason,
            message=one_line(each.message, _MESSAGE_MAX),
            observedGeneration=generation,
            lastTransitionTime=_since(before.get(type_, {}), each.status) or clock.rfc3339(now),
        )
        for type_, each in zip(_TYPES, said, strict=True)
    ]


def _since(before: Stored, status: ConditionStatus) -> str | None:
    return before.get("lastTransitionTime") if before.get("status") == status else None


_Status = state.ModuleStatus
_OFF: Final = (_Status.DISABLED, _Status.DELETING)
_RUN_FAILED: Final = "RunFailed"
_DELETE_FAILED: Final = "DeleteFailed"
_WAITS_FOR_WINDOW: Final = "WaitsForWindow"
_UNDER_WAY: Final = {
    _Status.PENDING: "The module has not run yet.",
    _Status.RUNNING: "The module is running.",
    _Status.DELETING: "The module is being removed.",
}


def _enabled(module: state.ModuleState) -> _Said:
    if module.status in _OFF:
        return _Said("False", "Disabled", module.reason)
    return _Said("True", "Enabled", module.reason)


def _ready(module: state.ModuleState) -> _Said:
    error = module.last_error_without_values
    if (held := module.held_back) is not None and _is_why(module, held):
        return _waits(module, held)
    if module.status is _Status.READY:
        return _Said(
            "True",
            "RunSucceeded",
            f"The last run succeeded{_left_alone(module)}{_left_out(module)}{_not_in_force(module)}.",
        )
    if module.status is _Status.DISABLED:
        return _Said("False", "Disabled", f"The module is disabled: {module.reason}")
    if module.status is _Status.DELETING:
        return _Said("False", _DELETE_FAILED if error else "Deleting", error or _UNDER_WAY[module.status])
    if error:
        # It is tried again: until that succeeds, it stays as unready as it was.
        return _Said("False", _RUN_FAILED, error)
    return _Said("Unknown", str(module.status), _UNDER_WAY.get(module.status, "The last run failed."))


def _is_why(module: state.ModuleState, held: windows.HeldBack) -> bool:
    """Say whether the module is as it is because something waits for a window."""
    match module.status:
        case _Status.READY:
            return True
        case _Status.FAILED:
            return held.is_broken and module.next_try is None
        case _Status.DELETING:
            return held.is_removal and not module.last_error_without_values
    return False


def _waits(module: state.ModuleState, held: windows.HeldBack) -> _Said:
    """Say what waits for a window; a module of which only an upgrade waits is as ready as it was."""
    if module.status is _Status.READY:
        waits = f"The last run succeeded{_left_out(module)}{_not_in_force(module)}; {held}."
        return _Said("True", _WAITS_FOR_WINDOW, waits)
    error = module.last_error_without_values
    return _Said("False", _WAITS_FOR_WINDOW, error or f"The module is disabled; {held}.")


def _left_alone(module: state.ModuleState) -> str:
    return f"; Helm and healing leave it alone: {module.maintenance}" if module.maintenance else ""


def _not_in_force(module: state.ModuleState) -> str:
    values = "; it had the last good values, and newer ones are wrong" if module.wrong_values else ""
    return values + ("; its files changed since and are wrong" if _wrong_files(module) else "")


def _wrong_files(module: state.ModuleState) -> str:
    return "; ".join(filter(None, (module.wrong_files, module.wrong_hooks)))


def _config_valid(module: state.ModuleState) -> _Said:
    if module.wrong_values:
        return _Said("False", "InvalidValues", module.not_in_force)
    if wrong := _wrong_files(module):
        return _Said("False", "InvalidFiles", f"{state.REFUSED}: {wrong}")
    return _Said("True", "ValuesInForce", "The values of ConfigMap and Secret are in force.")


def _definitions_in_force(module: state.ModuleState) -> _Said:
    if module.left_out_definitions:
        return _Said("False", "OfAnotherModule", module.left_out_definitions)
    return _Said("True", "DefinitionsInForce", "No other module has its CustomResourceDefinitions.")


def _left_out(module: state.ModuleState) -> str:
    if not module.go_hooks:
        return ""
    return f"; without its Go hooks, which never run here: {', '.join(module.go_hooks)}"


def _reconciling(module: state.ModuleState) -> _Said:
    if (
        module.status is _Status.DELETING
        and module.held_back is not None
        and _is_why(module, module.held_back)
    ):
        return _Said("False", _WAITS_FOR_WINDOW, f"Nothing is in progress; {module.held_back}.")
    if module.status in _UNDER_WAY and not _is_stuck_in_delete(module):
        return _Said("True", str(module.status), _UNDER_WAY[module.status])
    if module.next_try is not None:
        at = clock.rfc3339(module.next_try)
        return _Said("True", "ProgressingWithRetry", f"The last try failed; the next one starts at {at}.")
    return _Said("False", str(module.status), "Nothing is in progress.")


def _stalled(module: state.ModuleState) -> _Said:
    if module.status is _Status.FAILED:
        return _Said("True", _RUN_FAILED, module.last_error_without_values or "The last run failed.")
    if _is_stuck_in_delete(module):
        return _Said("True", _DELETE_FAILED, module.last_error_without_values)
    return _Said("False", str(module.status), "The last run did not fail, or is being retried.")


def _is_stuck_in_delete(module: state.ModuleState) -> bool:
    return module.status is _Status.DELETING and bool(module.last_error_without_values)


class ModulePhase(enum.Enum):
    """What Events distinguish; being run again is not news."""

    ENABLED = enum.auto()
    READY = enum.auto()
    FAILED = enum.auto()
    DELETE_FAILED = enum.auto()
    DISABLED = enum.auto()


@dataclasses.dataclass(frozen=True, slots=True)
class Moment:
    """A phase, and the error that it began with."""

    phase: ModulePhase
    error: str = ""


@dataclasses.dataclass(frozen=True, slots=True)
class Notice:
    """An Event about a module."""

    type: Literal["Normal", "Warning"]
    reason: str
    message: str


def moment(module: state.ModuleState) -> Moment | None:
    """Return the phase of a module now; ``None`` while something that decides about it is under way."""
    error = one_line(module.last_error_without_values, _ERROR_MAX)
    if module.status is _Status.DELETING:
        return Moment(ModulePhase.DELETE_FAILED, error) if error else None
    phase = _PHASES.get(module.status)
    return None if phase is None else Moment(phase, error if phase is ModulePhase.FAILED else "")


_PHASES: Final = {
    _Status.PENDING: ModulePhase.ENABLED,
    _Status.READY: ModulePhase.READY,
    _Status.FAILED: ModulePhase.FAILED,
    _Status.DISABLED: ModulePhase.DISABLED,
}


def stored_moment(stored: Stored) -> Moment | None:
    """Return the phase that the cluster shows, as an operator before this one left it."""
    conditions = {each.get("type"): each for each in stored.get("conditions") or ()}
    if not conditions:
        return None
    ready = conditions.get("Ready", {})
    if ready.get("status") == "True":
        return Moment(ModulePhase.READY)
    by_reason = {
        _RUN_FAILED: ModulePhase.FAILED,
        _DELETE_FAILED: ModulePhase.DELETE_FAILED,
        "Disabled": ModulePhase.DISABLED,
    }
    phase = by_reason.get(ready.get("reason", ""), ModulePhase.ENABLED)
    return Moment(phase, str(stored.get("lastError") or ""))


def notices(before: Moment | None, moments: Sequence[Moment]) -> tuple[list[Notice], Moment | None]:
    """Return the Events about these moments, and the phase at their end."""
    due: list[Notice] = []
    for each in moments:
        if before is not None and each.phase is ModulePhase.ENABLED and before.phase not in _BEGINNINGS:
            # Enabled all the time; only a run is still to come.
            continue
        if each != before and not (before is None and each.phase is ModulePhase.DISABLED):
            due.append(_notice(before, each))
        before = each
    return due, before


_BEGINNINGS: Final = (ModulePhase.DISABLED, ModulePhase.DELETE_FAILED)


def _notice(before: Moment | None, now: Moment) -> Notice:
    if now.phase is ModulePhase.READY:
        again = " again, after a failure" if before is not None and before.phase is ModulePhase.FAILED else ""
        return Notice("Normal", "Ready", f"The module is ready{again}.")
    return _NOTICES[now.phase]


# Errors may quote values, and Events never do.
_NOTICES: Final = {
    ModulePhase.ENABLED: Notice("Normal", "Enabled", "The module is enabled."),
    ModulePhase.DISABLED: Notice(
        "Normal", "Disabled", "The module is disabled, and what it had installed is removed."
    ),
    ModulePhase.FAILED: Notice(
        "Warning",
        "Failed",
        "A run of the module failed and is retried: see its status and the operator's log.",
    ),
    ModulePhase.DELETE_FAILED: Notice(
        "Warning",
        "DeleteFailed",
        "The removal of the module failed and is retried: see its status and the operator's log.",
    ),
}
