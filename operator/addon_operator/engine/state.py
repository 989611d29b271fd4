"""What the engine knows of each module and hook while it runs."""

import dataclasses
import enum
import pathlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Final

import msgspec

from addon_operator.hook_contract.configuration import hook_config
from addon_operator.kernel import errors, names
from addon_operator.kube.objects import suspension
from addon_operator.modules import model, requirements, windows
from addon_operator.modules.drift import drift_report
from addon_operator.modules.health import module_health

REFUSED: Final = "a change on disk is refused, and what was loaded before stays in force"


@dataclasses.dataclass(frozen=True, slots=True)
class Hook:
    """One hook with its configuration: a file, or one of many that a program holds."""

    name: str
    """Path relative to the hooks directory, as metrics and logs show it; then its name in a program."""
    path: pathlib.Path
    config: hook_config.HookConfig
    module: names.ModuleName | None = None
    """The module it belongs to; ``None`` for a global hook."""
    arguments: tuple[str, ...] = ()
    """By which a program runs this one of its hooks."""


def bound(hooks: Iterable[Hook], binding: hook_config.LifecycleBinding) -> list[Hook]:
    """Return the hooks with that binding, by ORDER and then by name."""
    ordered = [(order, hook) for hook in hooks if (order := hook.config.order(binding)) is not None]
    return [hook for _, hook in sorted(ordered, key=lambda pair: (pair[0], pair[1].name))]


class ModuleStatus(enum.StrEnum):
    """Where a module is on its way, as users see it."""

    DISABLED = "Disabled"
    """Nothing of it runs."""
    PENDING = "Pending"
    """Enabled, and its first run has not begun."""
    RUNNING = "Running"
    """A run is under way."""
    READY = "Ready"
    """Its last run succeeded."""
    FAILED = "Failed"
    """Its last run failed; it is tried again with a backoff."""
    DELETING = "Deleting"
    """Disabled, and being removed."""


@dataclasses.dataclass(slots=True)
class RunProgress:
    """What succeeded in the tries of one task: a retry repeats the rest."""

    hooks: set[tuple[hook_config.LifecycleBinding, str]] = dataclasses.field(default_factory=set)
    """Binding and name of each hook that succeeded."""
    values_changed: bool = False
    """Whether one of its ``afterHelm`` hooks changed values."""

    def repeat(self, binding: hook_config.LifecycleBinding) -> None:
        """Let the next try run all hooks of that binding."""
        self.hooks = {done for done in self.hooks if done[0] is not binding}


@dataclasses.dataclass(slots=True)
class ModuleState:
    """The progress of one module in this process."""

    module: model.Module
    status: ModuleStatus = ModuleStatus.DISABLED
    reason: str = "not discovered yet"
    """Why it is enabled or disabled, and whether it is left alone."""
    verdict: str = ""
    """What the last discovery said of it."""
    waits_for: tuple[names.ModuleName, ...] = ()
    """Modules that it requires and that are not ready, as long as its first run has not begun."""
    maintenance: str = ""
    """The mode in which Helm and healing leave it alone; empty if it is managed as usual."""
    hooks: tuple[Hook, ...] | None = None
    """``None`` until its hooks printed their configuration."""
    readiness: Hook | None = None
    """What one of its programs is asked with if the module is ready; ``None`` if none can be asked."""
    started: bool = False
    """Whether the ``onStartup`` hooks succeeded since it was enabled."""
    settled: bool = False
    """Whether one run went through to the end of ``afterHelm`` since it was enabled."""
    progress: RunProgress = dataclasses.field(default_factory=RunProgress)
    """Of the task that runs or deletes the module."""
    last_error: str = ""
    last_error_without_values: str = ""
    """:attr:`last_error` for places where no values may be shown."""
    failure: str = ""
    """Why the last run failed, in one word; empty if there is no better one than that it failed."""
    tries: int = 0
    """How often in a row it failed."""
    cure: tuple[str, ...] = ()
    """What the next try waits for besides its time, as a person calls it."""
    wrong_values: str = ""
    """What is wrong with newer values of ConfigMap or Secret, which are not in force; without values."""
    wrong_files: str = ""
    """What is wrong with files that changed on disk, so that what was loaded before stays in force."""
    wrong_hooks: str = ""
    """The same of its hooks."""
    awaits_health: tuple[names.ModuleName, ...] = ()
    """Modules that have to be healthy before its run goes on; itself with ``health.wait``."""
    health: module_health.ModuleHealth | None = None
    """How its resources are; ``None`` if that is not known."""
    drift: drift_report.DriftReport | None = None
    """Which resources somebody changed; ``None`` if that is not known."""
    left_out_definitions: str = ""
    """Which of its CustomResourceDefinitions are not in force, because other modules have them, too."""
    go_hooks: tuple[str, ...] = ()
    """Files of hooks that only the Go operator could run."""
    next_try: float | None = None
    """When a failed run or delete is tried again, in seconds since the epoch; ``None`` if none waits."""
    discovered: bool = False
    """Whether a discovery has decided about it; until then nothing is said of it."""
    suspended: suspension.Suspension | None = None
    """Why, since when and until when somebody has it left alone; ``None`` if nobody has."""
    handled_now: str = ""
    """The last value of the annotation ``addon-operator.io/now`` that was served."""
    handled_run: str = ""
    """The last value of the annotation that asks for a run which was served, also before a restart."""
    undecided: bool = False
    """Whether the last error is that the last discovery failed at this module."""
    held_back: windows.HeldBack | None = None
    """What of it waits for a window."""
    last_run: float | None = None
    """When the last run ended, in seconds since the epoch."""
    runs: int = 0
    """How many runs have ended, in this process."""

    def reset(self) -> None:
        """Forget the progress: the next run is a first run."""
        self.hooks = self.readiness = None
        self.started = self.settled = False
        self.progress = RunProgress()
        self.status = ModuleStatus.DISABLED
        self.last_error = self.last_error_without_values = self.wrong_hooks = ""

    def handled(self, annotation: str) -> str:
        """Return the last value of an annotation that was served; empty without one."""
        return self.handled_now if annotation == suspension.NOW else self.handled_run

    @property
    def not_in_force(self) -> str:
        """What changed and is wrong, so that an older state of it is in force; without values."""
        return "; ".join(filter(None, (self.wrong_values, self.wrong_files, self.wrong_hooks)))

    @property
    def awaited(self) -> str:
        """For whose health it waits, with the verb: ``db and web are``."""
        names_of = ["it" if name == self.module.name else name for name in self.awaits_health]
        return " and ".join(names_of) + (" is" if len(names_of) == 1 else " are")

    def explain(self) -> None:
        """Update the reason."""
        waits = f"waits for {', '.join(self.waits_for)}" if self.waits_for else ""
        if self.awaits_health:
            waits = f"waits until {self.awaited} healthy"
        left_alone = f"in maintenance ({self.maintenance}): Helm and healing leave it alone"
        if self.suspended is not None:
            # First, as tables cut what is long.
            parts = (str(self.suspended), self.verdict, waits)
        else:
            parts = (self.verdict, waits, left_alone if self.maintenance else "")
        self.reason = "; ".join(filter(None, parts))


class ConvergeState(enum.Enum):
    """Where the engine is with its first converge and those after it."""

    NOT_STARTED = "not started"
    RUNNING = "running"
    IDLE = "idle"


class EngineEvent(msgspec.Struct, frozen=True):
    """Something that happened in the engine; all but the next are in :mod:`.events`."""


class ModuleChanged(EngineEvent, frozen=True):
    """The status of a module changed, or why it is enabled or disabled."""

    state: ModuleState


class SuspensionChanged(EngineEvent, frozen=True):
    """Somebody suspended a module, or something of that changed; ``None`` if it is looked after again."""

    module: names.ModuleName
    now: suspension.Suspension | None


class ModuleStates:
    """The state of all modules, in run order."""

    def __init__(self, modules: Sequence[model.Module], tell: Callable[[ModuleChanged], None]) -> None:
        self._states: Mapping[names.ModuleName, ModuleState] = {
            module.name: ModuleState(module) for module in requirements.in_run_order(modules)
        }
        self._tell = tell
        self._blamed: Mapping[str, str] = {}
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
        self.withholds = False
        """Whether the last discovery found releases to purge, and something on disk that is wrong."""

    def __getitem__(self, name: names.ModuleName) -> ModuleState:
        return self._states[name]

    def get(self, name: names.ModuleName) -> ModuleState | None:
        """Return the state of a module; ``None`` if there is none of that name."""
        return self._states.get(name)

    def __contains__(self, name: object) -> bool:
        return name in self._states

    def __iter__(self) -> Iterator[ModuleState]:
        return iter(self._states.values())

    @property
    def modules(self) -> tuple[model.Module, ...]:
        """All modules in run order."""
        return tuple(state.module for state in self)

    def is_current(self, hook: Hook) -> bool:
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
        status: ModuleStatus,
        error: errors.AddonOperatorError | str | None = None,
    ) -> None:
        """Set a module's status; ``error`` replaces the last error unless it is ``None``."""
        state = self._states[name]
        state.status, state.next_try = status, None
        if state.awaits_health:
            state.awaits_health = ()
            state.explain()
        self._find_waiting(state)
        if status in (ModuleStatus.READY, ModuleStatus.DISABLED):
            state.tries, state.cure = 0, ()
        if error is not None:
            state.failure = str(getattr(error, "reason", ""))
            state.last_error = str(error)
            state.last_error_without_values = errors.without_values(error)
        self._tell(ModuleChanged(state))
        if status is ModuleStatus.READY:
            for other in self:
                if name in other.waits_for:
                    self._find_waiting(other)
                    self._tell(ModuleChanged(other))

    def await_health(
        self, name: names.ModuleName, status: ModuleStatus, others: Sequence[names.ModuleName]
    ) -> None:
        """Note that a run goes on when these modules are healthy, and what its status is until then."""
        state = self._states[name]
        if (state.status, state.awaits_health) != (status, tuple(others)):
            state.status, state.next_try, state.awaits_health = status, None, tuple(others)
            state.waits_for = ()
            state.explain()
            self._tell(ModuleChanged(state))

    def _find_waiting(self, state: ModuleState) -> None:
        """Find out for which modules it waits."""
        required = requirements.required(state.module) if state.status is ModuleStatus.PENDING else ()
        others = (self._states.get(name) for name in required)
        waits_for = tuple(
            each.module.name for each in others if each and each.status is not ModuleStatus.READY
        )
        if waits_for != state.waits_for:
            state.waits_for = waits_for
            state.explain()

    def will_retry(self, name: names.ModuleName, at: float, tries: int = 1) -> None:
        """Note when what failed of the module so often is tried again, in seconds since the epoch."""
        state = self._states.get(name)
        if state is not None and state.last_error:
            state.next_try, state.tries, state.cure = at, tries, ()
            self._tell(ModuleChanged(state))

    def replace(self, modules: Sequence[model.Module]) -> frozenset[names.ModuleName]:
        """Replace the modules on disk; those that stay keep their state. Returns the names of those gone."""
        before = self._states
        ordered = requirements.in_run_order(modules)
        self._states = {module.name: before.get(module.name) or ModuleState(module) for module in ordered}
        for module in ordered:
            self._states[module.name].module = module
        self._spread_blame()
        self.enabled = tuple(name for name in self.enabled if name in self._states)
        return frozenset(before.keys() - self._states.keys())

    def maintain(self, name: names.ModuleName, mode: str) -> None:
        """Have Helm and healing leave the module alone; with an empty ``mode``, no longer."""
        state = self._states[name]
        state.maintenance = mode
        state.explain()
        self._tell(ModuleChanged(state))

    def suspend(self, name: names.ModuleName, wanted: suspension.Suspension | None) -> None:
        """Note that somebody has the module left alone; with ``None``, no longer."""
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
            self._tell(ModuleChanged(state))

    def _explain(self, state: ModuleState) -> None:
        state.explain()
        if state.discovered:
            self._tell(ModuleChanged(state))

    def hold_back(self, name: names.ModuleName, held: windows.HeldBack | None) -> None:
        """Note what of a module waits for a window; of a release without a module, nobody looks here."""
        if (state := self._states.get(name)) is not None:
            state.held_back = held
            if state.discovered:
                self._tell(ModuleChanged(state))

    def blame(self, wrong: Mapping[str, str]) -> None:
        """Note what is wrong with values that are not in force, by the key in ConfigMap or Secret."""
        self._blamed = wrong
        self._spread_blame()

    def _spread_blame(self) -> None:
        for state in self:
            keys = (names.GLOBAL_KEY, *names.keys_of(state.module.name))
            reasons = "; ".join(self._blamed[key] for key in keys if key in self._blamed)
            if reasons != state.wrong_values:
                state.wrong_values = reasons
                if state.discovered:
                    self._tell(ModuleChanged(state))

    @property
    def refusals(self) -> list[str]:
        """What is on disk and not in force, one sentence each."""
        hooks = (state.wrong_hooks for state in self)
        left = [f"{REFUSED}: {text}" for text in (self.unreadable, self.refused, *hooks) if text]
        return [*left, *self.ignored]

    def leave(self, wrong: Mapping[names.ModuleName, str]) -> None:
        """Note which modules stay as they were, because their files changed and are wrong."""
        for state in self:
            self._leave(state, "wrong_files", wrong.get(state.module.name, ""))

    def leave_hooks(self, name: names.ModuleName, wrong: str) -> None:
        """Note that a module keeps its hooks as those on disk are wrong; with an empty text, no longer."""
        self._leave(self._states[name], "wrong_hooks", wrong)

    def note_health(self, name: names.ModuleName, health: module_health.ModuleHealth | None) -> None:
        """Note how the resources of a module are; ``None`` if that is not known."""
        state = self._states.get(name)
        if state is not None and state.health != health:
            state.health = health
            if state.discovered:
                self._tell(ModuleChanged(state))

    def note_drift(self, name: names.ModuleName, report: drift_report.DriftReport | None) -> None:
        """Note what somebody changed of the resources of a module; ``None`` if that is not known."""
        state = self._states.get(name)
        if state is not None and state.drift != report:
            state.drift = report
            if state.discovered:
                self._tell(ModuleChanged(state))

    def await_cure(self, name: names.ModuleName, cure: Sequence[str]) -> None:
        """Note what the next try of a module waits for besides its time."""
        state = self._states.get(name)
        if state is not None and state.cure != tuple(cure):
            state.cure = tuple(cure)
            self._tell(ModuleChanged(state))

    def leave_out_definitions(self, name: names.ModuleName, text: str) -> None:
        """Note which definitions of a module are not in force; with an empty text, all are."""
        if (state := self._states.get(name)) is not None:
            self._leave(state, "left_out_definitions", text)

    def _leave(self, state: ModuleState, attribute: str, wrong: str) -> None:
        if wrong != getattr(state, attribute):
            setattr(state, attribute, wrong)
            if state.discovered:
                self._tell(ModuleChanged(state))

    def undecided(self, name: names.ModuleName, error: errors.AddonOperatorError) -> None:
        """Note that a discovery failed at this module."""
        state = self._states.get(name)
        if state is None:
            return
        state.undecided = True
        state.last_error, state.last_error_without_values = str(error), errors.without_values(error)
        if state.discovered:
            self._tell(ModuleChanged(state))

    def discovered(
        self, verdicts: Mapping[names.ModuleName, model.Verdict], enabled: Sequence[names.ModuleName]
    ) -> None:
        """Take in the result of a discovery."""
        self.enabled = tuple(enabled)
        for state in self:
            self._take(state, verdicts[state.module.name])

    def _take(self, state: ModuleState, verdict: model.Verdict) -> None:
        is_news = not state.discovered or state.undecided or state.verdict != verdict.reason
        if state.undecided:
            state.undecided = False
            state.last_error = state.last_error_without_values = ""
        state.discovered, state.verdict = True, verdict.reason
        state.explain()
        if verdict.enabled and state.status is ModuleStatus.DISABLED:
            self.mark(state.module.name, ModuleStatus.PENDING)
        elif (
            not verdict.enabled
            and state.hooks is None
            and state.held_back is None
            and state.status is not ModuleStatus.DISABLED
        ):
            # None of its hooks ran: nothing of it is left to be deleted but, perhaps, an old release.
            state.reset()
            self.mark(state.module.name, ModuleStatus.DISABLED)
        elif is_news:
            self._tell(ModuleChanged(state))
