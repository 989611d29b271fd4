"""The states of all modules while the engine runs, and how they change."""

import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Final

from addon_operator.engine import state as engine_state
from addon_operator.helm.releases import left_objects
from addon_operator.kernel import errors, names
from addon_operator.kube.objects import suspension
from addon_operator.modules import findings, model, release, requirements, windows
from addon_operator.modules.drift import drift_report
from addon_operator.modules.health import module_health, resource_health

_WARNINGS: Final = 20
"""How many are kept of one module."""


class ModuleStates:
    """The state of all modules, in run order."""

    def __init__(
        self, modules: Sequence[model.Module], tell: Callable[[engine_state.ModuleChanged], None]
    ) -> None:
        self._states: Mapping[names.ModuleName, engine_state.ModuleState] = {
            module.name: engine_state.ModuleState(module) for module in requirements.in_run_order(modules)
        }
        self._tell = tell
        self._blamed: Mapping[str, str] = {}
        self._suspended: dict[names.ModuleName, suspension.Suspension] = {}
        self.enabled: tuple[names.ModuleName, ...] = ()
        """Enabled modules in run order, as the last discovery found them."""
        self.refused = ""
        """What is wrong with what changed on disk and is not taken in; empty if all is."""
        self.unreadable = ""
        """Why the modules directories cannot be looked at; empty if they can."""
        self.ignored: tuple[str, ...] = ()
        """Keys of values files on disk that mean nothing, one sentence each."""
        self.lacks = ""
        """What is not there of the modules directories, as :attr:`.LoadedModules.lacks` says."""
        self.strays: Mapping[str, str] = {}
        """As :attr:`.LoadedModules.strays` says."""
        self.undone: dict[int, str] = {}
        """Which intents have had no effect yet because of a defect, one sentence each, by their identity."""
        self.withholds = False
        """Whether the last discovery found releases to purge, and something on disk that is wrong."""

    def __getitem__(self, name: names.ModuleName) -> engine_state.ModuleState:
        return self._states[name]

    def get(self, name: names.ModuleName) -> engine_state.ModuleState | None:
        """Return the state of a module; ``None`` if there is none of that name."""
        return self._states.get(name)

    def __contains__(self, name: object) -> bool:
        return name in self._states

    def __iter__(self) -> Iterator[engine_state.ModuleState]:
        return iter(self._states.values())

    @property
    def modules(self) -> tuple[model.Module, ...]:
        """All modules in run order."""
        return tuple(state.module for state in self)

    def is_current(self, hook: engine_state.Hook) -> bool:
        """Say whether the module that the hook belongs to has this very hook; a global one is always there.

        A module that was removed, and perhaps enabled again, or whose hooks changed on disk, has other ones.
        """
        if hook.module is None:
            return True
        module = self._states.get(hook.module)
        return module is not None and any(current is hook for current in module.hooks or ())

    @property
    def started(self) -> frozenset[names.ModuleName]:
        """Modules whose hooks may have done something in this process."""
        return frozenset(state.module.name for state in self if state.hooks is not None)

    def mark(
        self,
        name: names.ModuleName,
        status: engine_state.ModuleStatus,
        error: errors.AddonOperatorError | str | None = None,
    ) -> None:
        """Set a module's status; ``error`` replaces the last error unless it is ``None``."""
        state = self._states[name]
        state.status, state.next_try, state.is_final = status, None, False
        if state.awaits_health or state.runs_hook:
            state.awaits_health, state.runs_hook = (), ""
            state.explain()
        self._find_waiting(state)
        if status in (engine_state.ModuleStatus.READY, engine_state.ModuleStatus.DISABLED):
            state.tries, state.cure = 0, ()
        if error is not None:
            state.failure = str(getattr(error, "reason", ""))
            _note_error(state, error)
        self._tell(engine_state.ModuleChanged(state))
        if status is engine_state.ModuleStatus.READY:
            for other in self:
                if name in other.waits_for:
                    self._find_waiting(other)
                    self._tell(engine_state.ModuleChanged(other))

    def edited(self, modules: Iterable[names.ModuleName]) -> None:
        """Note that an edit was accepted which concerns these modules, and is to be applied by a run."""
        for state in filter(None, map(self._states.get, modules)):
            state.edits += 1
            if state.edit_since is None:
                state.edit_since = time.time()
                self._tell(engine_state.ModuleChanged(state))

    def applied(self, name: names.ModuleName) -> None:
        """Note that a run has done all its steps: edits that came before it are applied."""
        state = self._states[name]
        if state.edits_seen == state.edits:
            state.edit_since = None

    def held_up(self, state: engine_state.ModuleState, awaited: Sequence[str]) -> list[str]:
        """Say for whom a removal waits, or a further run of a module that is Ready: what it shows is not up
        to date.

        ``awaited`` are owners of tasks that come before its own.
        """
        if state.status not in (engine_state.ModuleStatus.READY, engine_state.ModuleStatus.DELETING):
            return []
        others = (self._states.get(names.ModuleName(name)) for name in awaited)
        return [other.with_status for other in others if other is not None]

    def await_health(
        self, name: names.ModuleName, status: engine_state.ModuleStatus, others: Sequence[names.ModuleName]
    ) -> None:
        """Note that a run goes on when these modules are healthy, and what its status is until then."""
        state = self._states[name]
        if (state.status, state.awaits_health) != (status, tuple(others)):
            state.status, state.next_try, state.awaits_health = status, None, tuple(others)
            state.waits_for = ()
            state.explain()
            self._tell(engine_state.ModuleChanged(state))

    def _find_waiting(self, state: engine_state.ModuleState) -> None:
        """Find out for which modules it waits."""
        required = (
            requirements.required(state.module) if state.status is engine_state.ModuleStatus.PENDING else ()
        )
        others = (self._states.get(name) for name in required)
        waits_for = tuple(
            each.module.name for each in others if each and each.status is not engine_state.ModuleStatus.READY
        )
        if waits_for != state.waits_for:
            state.waits_for = waits_for
            state.explain()

    def await_config(self, modules: Sequence[names.ModuleName]) -> None:
        """Note that nothing is done with these modules before their configuration is known."""
        for name in modules:
            state = self._states[name]
            state.awaits_config = state.discovered = True
            self.mark(name, engine_state.ModuleStatus.PENDING)
            self._explain(state)

    def note_hook(self, name: names.ModuleName, told: str) -> None:
        """Note for which of its own hooks Helm waits; with an empty text, for none."""
        self._know(name, "helm_hook", told)

    def note_running(self, name: names.ModuleName, told: str) -> None:
        """Note which of its hooks its run has been at for a while; with an empty text, none."""
        self._know(name, "runs_hook", told)

    def note_leaving(self, name: names.ModuleName, leaving: str) -> None:
        """Note which objects of its release wait for finalizers; with an empty text, none do any more."""
        self._know(name, "leaving", leaving)

    def will_retry(self, name: names.ModuleName, at: float | None, tries: int = 1) -> None:
        """Note when what failed of the module so often is tried again, in seconds since the epoch.

        ``None``: the same is not tried again by itself, which :attr:`.ModuleState.last_error` says.
        """
        state = self._states.get(name)
        if state is not None and state.last_error:
            state.is_final = at is None
            state.next_try, state.tries, state.cure = at, 1 if at is None else tries, ()
            self._tell(engine_state.ModuleChanged(state))

    def replace(self, modules: Sequence[model.Module]) -> frozenset[names.ModuleName]:
        """Replace the modules on disk; those that stay keep their state. Returns the names of those gone."""
        before = self._states
        ordered = requirements.in_run_order(modules)
        self._states = {
            module.name: before.get(module.name) or engine_state.ModuleState(module) for module in ordered
        }
        for module in ordered:
            self._states[module.name].module = module
            self._states[module.name].suspended = self._suspended.get(module.name)
            if module.has_chart:
                # No discovery follows for a chart that is back.
                self.note(module.name, findings.CHART_LOST)
        self._spread_blame()
        self.enabled = tuple(name for name in self.enabled if name in self._states)
        return frozenset(before.keys() - self._states.keys())

    def maintain(self, name: names.ModuleName, mode: str) -> None:
        """Have Helm and healing leave the module alone; with an empty ``mode``, no longer."""
        state = self._states[name]
        state.maintenance = mode
        state.explain()
        self._tell(engine_state.ModuleChanged(state))

    def suspend(self, name: names.ModuleName, wanted: suspension.Suspension | None) -> None:
        """Note that somebody has the module left alone; with ``None``, no longer.

        A module of the name may only come later.
        """
        self._suspended.pop(name, None)
        if wanted is not None:
            self._suspended[name] = wanted
        if (state := self._states.get(name)) is not None:
            state.suspended = wanted
            self._explain(state)

    def handled(self, name: names.ModuleName, annotation: str, value: str) -> None:
        """Note that the run was done which this value of the annotation asked for."""
        if (state := self._states.get(name)) is not None:
            if annotation == suspension.NOW:
                state.handled_now = value
            else:
                state.handled_run = value
            self._tell(engine_state.ModuleChanged(state))

    def _explain(self, state: engine_state.ModuleState) -> None:
        state.explain()
        if state.discovered:
            self._tell(engine_state.ModuleChanged(state))

    def hold_back(self, name: names.ModuleName, held: windows.HeldBack | None) -> None:
        """Note what of a module waits for a window; of a release without a module, nobody looks here."""
        self._know(name, "held_back", held)

    def blame(self, wrong: Mapping[str, str]) -> None:
        """Note what is wrong with values that are not in force, by the key in ConfigMap or Secret."""
        self._blamed = wrong
        self._spread_blame()

    def _spread_blame(self) -> None:
        keys = {each.name: (names.GLOBAL_KEY, *names.keys_of(each.name)) for each in self.modules}
        wrong = {name: [self._blamed[key] for key in of if key in self._blamed] for name, of in keys.items()}
        self.note_each(findings.WRONG_VALUES, {name: "; ".join(each) for name, each in wrong.items()})

    @property
    def refuses(self) -> bool:
        """Whether something is on disk that is not in force because it is wrong."""
        return bool(self.refused) or any(findings.WRONG_HOOKS in state.noted for state in self)

    @property
    def refusals(self) -> list[str]:
        """What is on disk and not in force, one sentence each."""
        left = [f"{engine_state.REFUSED}: {text}" for text in (self.unreadable, self.refused) if text]
        hooks = [text for each in self for text in each.texts(findings.WRONG_HOOKS)]
        return [*left, *hooks, *self.ignored, *self.undone.values()]

    @property
    def troubles(self) -> list[str]:
        """Which modules are not as they should be, one sentence each, without values."""
        return [f"module {each.module.name} {text}" for each in self if (text := _trouble(each))]

    def note(
        self,
        name: names.ModuleName,
        kind: findings.FindingKind,
        *texts: str,
        since: float | None = None,
    ) -> None:
        """Note what there is to know of a module: see :meth:`.ModuleState.note`."""
        state = self._states.get(name)
        if state is not None and state.note(kind, *texts, since=since) and state.discovered:
            self._tell(engine_state.ModuleChanged(state))

    def note_each(self, kind: findings.FindingKind, texts: Mapping[names.ModuleName, str]) -> None:
        """Note what there is to know of all modules; of those that have no text, nothing any more."""
        for state in self:
            self.note(state.module.name, kind, texts.get(state.module.name, ""))

    def note_health(self, name: names.ModuleName, health: module_health.ModuleHealth | None) -> None:
        """Note how the resources of a module are; ``None`` if that is not known."""
        self._know(name, "health", health)

    def note_drift(self, name: names.ModuleName, report: drift_report.DriftReport | None) -> None:
        """Note what somebody changed of the resources of a module; ``None`` if that is not known."""
        self._know(name, "drift", report)

    def note_kept(self, name: names.ModuleName, kept: tuple[left_objects.Kept, ...]) -> None:
        """Note what stays of what the releases of a module had."""
        self._know(name, "kept", kept)

    def _know(self, name: names.ModuleName, field: str, value: object) -> None:
        """Set a field of a module's state; without a module, nobody looks there."""
        state = self._states.get(name)
        if state is not None and getattr(state, field) != value:
            setattr(state, field, value)
            if state.discovered:
                self._explain(state)

    def await_cure(self, name: names.ModuleName, cure: Sequence[str]) -> None:
        """Note what the next try of a module waits for besides its time."""
        state = self._states.get(name)
        if state is not None and state.cure != tuple(cure):
            state.cure = tuple(cure)
            self._tell(engine_state.ModuleChanged(state))

    def warned(self, name: names.ModuleName, text: str) -> None:
        """Take in what Helm or the API server warns of in a run of the module."""
        state = self._states.get(name)
        if state is not None and text not in state.warned and len(state.warned) < _WARNINGS:
            state.warned.append(text)

    def note_warnings(self, name: names.ModuleName, slips: Sequence[str], *, is_other: bool) -> None:
        """Note what the run has warned of: of another revision that is all there is, else what is new.

        ``slips`` are all that values and templates have now.
        """
        state = self._states[name]
        known = () if is_other else state.texts(findings.WARNED)
        before = [each for each in known if release.WILL_FAIL not in each]
        found = tuple(dict.fromkeys((*before, *state.warned)))[:_WARNINGS]
        state.warned.clear()
        self.note(name, findings.WARNED, *found)
        self.note(name, findings.MISSPELT, *slips)

    def discovered(
        self,
        verdicts: Mapping[names.ModuleName, model.Verdict],
        enabled: Sequence[names.ModuleName],
        deletes: Collection[names.ModuleName] = (),
    ) -> None:
        """Take in the result of a discovery, with the modules that are to be deleted."""
        self.enabled, going = tuple(enabled), frozenset(deletes)
        for state in self:
            self._take(state, verdicts[state.module.name], goes=state.module.name in going)

    def _take(self, state: engine_state.ModuleState, verdict: model.Verdict, *, goes: bool) -> None:
        said = (state.verdict, state.lacks)
        is_news = not state.discovered or state.undecided or said != (verdict.reason, verdict.lacks)
        if state.undecided and not verdict.error:
            state.last_error = state.last_error_without_values = ""
        state.undecided = verdict.error
        state.stays_off = verdict.error is not None and not verdict.enabled
        state.discovered, state.verdict, state.lacks = True, verdict.reason, verdict.lacks
        state.awaits_config = False
        if not verdict.enabled and not verdict.error:
            state.edit_since = None
        state.explain()
        off = (engine_state.ModuleStatus.DISABLED, engine_state.ModuleStatus.DELETING)
        if verdict.enabled and state.status in off:
            self.mark(state.module.name, engine_state.ModuleStatus.PENDING, "")
        elif goes or (state.leaving and state.status is engine_state.ModuleStatus.DISABLED):
            self.mark(state.module.name, engine_state.ModuleStatus.DELETING)
        elif (
            not verdict.enabled
            and not verdict.error
            and state.hooks is None
            and state.held_back is None
            and not state.leaving
            and state.status is not engine_state.ModuleStatus.DISABLED
        ):
            # None of its hooks ran: nothing of it is left to be deleted but, perhaps, an old release.
            state.reset()
            self.mark(state.module.name, engine_state.ModuleStatus.DISABLED)
        elif is_news:
            self._tell(engine_state.ModuleChanged(state))


def _trouble(state: engine_state.ModuleState) -> str:
    """Say what keeps a module from being as it should be; empty if nothing does."""
    if error := state.last_error_without_values:
        return f"failed{f' {state.tries} times' if state.tries > 1 else ''}: {error}"
    if waits := state.texts(findings.EDIT_WAITS):
        return f"is not as its values say: {waits[0]}"
    if state.module.stopped_by:
        return f"cannot run: {state.module.stopped_by}"
    if state.health is not None and state.health.state is resource_health.HealthState.FAILED:
        return f"is unhealthy: {state.health.message}"
    return state.lacks


def _note_error(state: engine_state.ModuleState, error: errors.AddonOperatorError | str) -> None:
    name = state.module.name
    state.last_error = errors.of_module(str(error), name)
    state.last_error_without_values = errors.of_module(errors.without_values(error), name)
