"""What the cluster shows of a module: the status of its object, and the Events about it; no requests.

Nothing here holds values. The conditions are those of :mod:`.module_conditions`.
"""

import enum
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, Literal, NotRequired, TypedDict, cast

import msgspec

from addon_operator.engine import state
from addon_operator.helm.releases import left_objects
from addon_operator.kernel import clock
from addon_operator.kube.objects import module_objects, suspension
from addon_operator.modules import findings, model, windows
from addon_operator.status import condition_times, module_conditions

API_VERSION: Final = module_objects.API_VERSION
KIND: Final = module_objects.KIND
PLURAL: Final = module_objects.PLURAL
LABELS: Final = {"app.kubernetes.io/managed-by": "addon-operator"}
"""Labels of a Module that an operator keeps."""

_DESCRIPTION_MAX: Final = 300
_ERROR_MAX: Final = 1024


class ShownRelease(TypedDict):
    """A Helm release."""

    revision: int
    checksum: str
    name: NotRequired[str]
    """If it is not that of the module."""
    namespace: NotRequired[str]
    """If it is not the operator's."""


class ShownSuspension(TypedDict):
    """That somebody has the module left alone."""

    reason: str
    since: str
    by: NotRequired[str]
    until: NotRequired[str]


class ShownHeldBack(TypedDict):
    """What waits for a window."""

    what: str
    since: str
    until: NotRequired[str]
    confirm: NotRequired[str]
    isRemoval: NotRequired[bool]
    isBroken: NotRequired[bool]


class ShownKept(TypedDict):
    """An object that stayed when a release lost it."""

    kind: str
    name: str
    release: str
    since: str
    namespace: NotRequired[str]


class ShownNextTry(TypedDict):
    """When a run or removal that failed is tried again."""

    at: str
    failed: int
    waitsFor: NotRequired[list[str]]


class ShownFinding(TypedDict):
    """Something that there is to know beside runs."""

    type: str
    message: str
    since: NotRequired[str]


class ModuleStatusDocument(TypedDict):
    """``status`` of the object."""

    observedGeneration: int
    state: str
    order: int
    hooks: list[str]
    conditions: list[module_conditions.Condition]
    earlier: NotRequired[list[condition_times.Earlier]]
    """What conditions said that are unknown for now, since the operator has begun anew."""
    description: NotRequired[str]
    release: NotRequired[ShownRelease]
    lastRun: NotRequired[str]
    lastError: NotRequired[str]
    suspended: NotRequired[ShownSuspension]
    heldBack: NotRequired[ShownHeldBack]
    nextTry: NotRequired[ShownNextTry]
    kept: NotRequired[list[ShownKept]]
    findings: NotRequired[list[ShownFinding]]
    """What there is to know beside its runs, the worst first; some texts are below ``stored`` of their kinds,
    too."""
    lastHandledRun: NotRequired[str]
    lastHandledNow: NotRequired[str]
    """The last value of the annotation that asks for a run which was served."""
    notifications: NotRequired[Mapping[str, Any]]
    """What targets of notifications were told and is not over; see :mod:`.transitions`."""


def document(
    module: state.ModuleState,
    release: ShownRelease | None,
    stored: module_conditions.Stored,
    generation: int,
    since: condition_times.Times,
    notifications: Mapping[str, Any] | None = None,
) -> ModuleStatusDocument:
    """Return the status of a module; ``since`` are the times of its conditions.

    Without ``notifications``, what is stored of them stays.
    """
    found = module.found()
    made = ModuleStatusDocument(
        observedGeneration=generation,
        state=str(module.status),
        order=module.module.order,
        hooks=_hooks(module, stored),
        conditions=module_conditions.conditions(module, since, generation),
    )
    if found:
        made["findings"] = [shown for each in found for shown in _finding(each, since)]
    if earlier := condition_times.earlier(since):
        made["earlier"] = earlier
    if module.module.config.description:
        made["description"] = module_conditions.one_line(module.module.config.description, _DESCRIPTION_MAX)
    if (installed := release or _left_by_another(module, stored, "release")) is not None:
        made["release"] = _placed(module.module, installed)
    last_run = clock.rfc3339(module.last_run) if module.last_run is not None else stored.get("lastRun")
    if last_run:
        made["lastRun"] = last_run
    _add_troubles(made, module)
    if kept := stored.get("kept") if module.kept is None else list(map(_kept, module.kept)):
        made["kept"] = kept
    if handled := module.handled_run or stored.get("lastHandledRun"):
        made["lastHandledRun"] = handled
    if handled := module.handled_now or stored.get("lastHandledNow"):
        made["lastHandledNow"] = handled
    if told := stored.get("notifications") if notifications is None else notifications:
        made["notifications"] = told
    texts = {
        each.kind.stored: [module_conditions.one_line(text, _ERROR_MAX) for text in each.texts]
        for each in found
        if each.kind.stored
    }
    are_lists = {kind.stored: kind.is_list for kind in findings.TABLE}
    more = {key: each if are_lists[key] else each[0] for key, each in texts.items()}
    return cast("ModuleStatusDocument", made | more)


def _add_troubles(made: ModuleStatusDocument, module: state.ModuleState) -> None:
    if module.last_error_without_values:
        made["lastError"] = module_conditions.one_line(module.last_error_without_values, _ERROR_MAX)
    if module.suspended is not None:
        made["suspended"] = _suspended(module.suspended)
    if module.held_back is not None:
        made["heldBack"] = _held_back(module.held_back)
    if module.next_try is not None:
        made["nextTry"] = _next_try(module, module.next_try)


def _finding(found: findings.Finding, since: condition_times.Times) -> Iterator[ShownFinding]:
    condition = found.kind.condition
    for row in found.rows:
        message = module_conditions.one_line(row["message"], module_conditions.MESSAGE_MAX)
        shown = ShownFinding(type=row["type"], message=message)
        if at := since[condition].at if condition else row["since"]:
            shown["since"] = at
        yield shown


def _next_try(module: state.ModuleState, at: float) -> ShownNextTry:
    shown = ShownNextTry(at=clock.rfc3339(at), failed=module.tries)
    if module.cure:
        shown["waitsFor"] = [module_conditions.one_line(each, _ERROR_MAX) for each in module.cure]
    return shown


def _suspended(now: suspension.Suspension) -> ShownSuspension:
    shown = ShownSuspension(reason=now.reason, since=clock.rfc3339(now.since))
    if now.by:
        shown["by"] = now.by
    if now.until is not None:
        shown["until"] = clock.rfc3339(now.until)
    return shown


def _held_back(held: windows.HeldBack) -> ShownHeldBack:
    what = module_conditions.one_line(held.what, _ERROR_MAX)
    shown = ShownHeldBack(what=what, since=clock.rfc3339(held.since))
    if held.confirm:
        shown["confirm"] = held.confirm
    else:
        shown["until"] = clock.rfc3339(held.until)
    if held.is_removal:
        shown["isRemoval"] = True
    if held.is_broken:
        shown["isBroken"] = True
    return shown


def _kept(found: left_objects.Kept) -> ShownKept:
    release, each = found
    shown = ShownKept(kind=each.kind, name=each.name, release=release, since=clock.rfc3339(each.since))
    if each.namespace:
        shown["namespace"] = each.namespace
    return shown


def _placed(module: model.Module, release: ShownRelease) -> ShownRelease:
    shown = ShownRelease(revision=release["revision"], checksum=release["checksum"])
    if module.config.namespace:
        shown["namespace"] = module.config.namespace
    if module.config.namespace or module.release != module.name:
        shown["name"] = module.release
    return shown


def _hooks(module: state.ModuleState, stored: module_conditions.Stored) -> list[str]:
    if module.hooks is None:
        return list(_left_by_another(module, stored, "hooks") or ())
    return sorted(hook.name for hook in module.hooks)


def _left_by_another(module: state.ModuleState, stored: module_conditions.Stored, key: str) -> Any:  # noqa: ANN401 - JSON
    """Return what an operator before this one wrote, until this one knows; nothing of a disabled module."""
    return None if module.status is _Status.DISABLED else stored.get(key)


def is_stored(wanted: ModuleStatusDocument, stored: module_conditions.Stored) -> bool:
    """Return whether the cluster has this status already; conditions of others do not count."""
    ours = [each for each in stored.get("conditions") or () if each.get("type") in module_conditions.TYPES]
    by_type = {each["type"]: each for each in ours}
    return by_type == {each["type"]: each for each in wanted["conditions"]} and all(
        stored.get(key) == wanted.get(key) for key in _COMPARED
    )


_COMPARED: Final = (
    *(key for key in ModuleStatusDocument.__annotations__ if key != "conditions"),
    *(kind.stored for kind in findings.TABLE if kind.stored),
)


_Status = state.ModuleStatus


class ModulePhase(enum.Enum):
    """What Events distinguish; being run again is not news."""

    ENABLED = enum.auto()
    READY = enum.auto()
    FAILED = enum.auto()
    DELETE_FAILED = enum.auto()
    DISABLED = enum.auto()


class Moment(msgspec.Struct, frozen=True):
    """A phase, and the error that it began with."""

    phase: ModulePhase
    error: str = ""


class Notice(msgspec.Struct, frozen=True):
    """An Event about a module."""

    type: Literal["Normal", "Warning"]
    reason: str
    message: str


class ToldEvent(TypedDict):
    """An Event about a module that an operator wrote."""

    time: str
    """RFC 3339, UTC."""
    type: str
    reason: str
    message: str


class Shown(TypedDict):
    """What the cluster shows of a module, as far as the page repeats it."""

    since: dict[str, str]
    """Of each condition: when it got its status; RFC 3339, UTC."""
    revision: int | None
    events: list[ToldEvent]
    """The last ones, newest first."""


def shown(
    stored: module_conditions.Stored, since: condition_times.Times, events: Iterable[ToldEvent]
) -> Shown:
    """Return what a stored status, the times of the conditions now, and the last Events show."""
    return {
        "since": {type_: since[type_].at for type_ in module_conditions.TYPES if type_ in since},
        "revision": (stored.get("release") or {}).get("revision"),
        "events": list(events),
    }


def told(notice: Notice, now: float) -> ToldEvent:
    """Return an Event as it is remembered."""
    return {
        "time": clock.rfc3339(now),
        "type": notice.type,
        "reason": notice.reason,
        "message": notice.message,
    }


def moment(module: state.ModuleState) -> Moment | None:
    """Return the phase of a module now; ``None`` while something that decides about it is under way."""
    error = module_conditions.one_line(module.last_error_without_values, _ERROR_MAX)
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


def stored_moment(stored: module_conditions.Stored) -> Moment | None:
    """Return the phase that the cluster shows, as an operator before this one left it."""
    conditions = {each.get("type"): each for each in stored.get("conditions") or ()}
    if not conditions:
        return None
    ready = conditions.get("Ready", {})
    if ready.get("status") == "True":
        return Moment(ModulePhase.READY)
    by_reason = {
        **dict.fromkeys((module_conditions.RUN_FAILED, "RunFailed", "WrongValues"), ModulePhase.FAILED),
        **{kind.type: ModulePhase.READY for kind in findings.TABLE if kind.is_unready},
        "RolledBack": ModulePhase.FAILED,
        "RollbackRefused": ModulePhase.FAILED,
        module_conditions.DELETE_FAILED: ModulePhase.DELETE_FAILED,
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
