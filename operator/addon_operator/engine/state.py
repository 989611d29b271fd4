"""What the engine knows of each module and hook while it runs."""

import enum
import hashlib
import pathlib
import time
from collections.abc import Iterable, Sequence
from typing import Final

import msgspec

from addon_operator.helm.releases import left_objects
from addon_operator.hook_contract.configuration import hook_config
from addon_operator.kernel import errors, names
from addon_operator.kube.objects import suspension
from addon_operator.modules import findings, model, windows
from addon_operator.modules.drift import drift_report
from addon_operator.modules.health import module_health, resource_health
from addon_operator.values import sources

REFUSED: Final = "a change on disk is refused, and what was loaded before stays in force"
AWAITS_CONFIG: Final = "waits until the values ConfigMap and the values Secret are back"
HOOKS_REFUSED: Final = "a change of hooks on disk is refused, and their bindings stay as they were"
_OF_HEALTH: Final = {
    resource_health.HealthState.FAILED: findings.UNHEALTHY,
    resource_health.HealthState.PROGRESSING: findings.PROGRESSING,
}
_MANAGER_PREFIX: Final = "addon-operator:"
_MANAGER_BYTES: Final = 128
"""How long the API server lets the name of a field manager be."""
_HASH_LENGTH: Final = 16


class Hook(msgspec.Struct, frozen=True):
    """One hook with its configuration: a file, or one of many that a program holds."""

    name: str
    """Path relative to the hooks directory, as metrics and logs show it; then its name in a program."""
    path: pathlib.Path
    config: hook_config.HookConfig
    module: names.ModuleName | None = None
    """The module it belongs to; ``None`` for a global hook."""
    arguments: tuple[str, ...] = ()
    """By which a program runs this one of its hooks."""

    @property
    def field_manager(self) -> str:
        """Who owns the fields that it applies: two hooks do not take each other's away."""
        manager = (
            f"{_MANAGER_PREFIX}{self.module}/{self.name}" if self.module else _MANAGER_PREFIX + self.name
        )
        if len(manager.encode()) <= _MANAGER_BYTES:
            return manager
        digest = hashlib.sha256(manager.encode()).hexdigest()[:_HASH_LENGTH]
        cut = manager.encode()[: _MANAGER_BYTES - _HASH_LENGTH - 1].decode(errors="ignore")
        return f"{cut}-{digest}"


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


class RunProgress(msgspec.Struct):
    """What succeeded in the tries of one task: a retry repeats the rest."""

    hooks: set[tuple[hook_config.LifecycleBinding, str]] = msgspec.field(default_factory=set)
    """Binding and name of each hook that succeeded."""
    values_changed: bool = False
    """Whether one of its ``afterHelm`` hooks changed values."""

    def repeat(self, binding: hook_config.LifecycleBinding) -> None:
        """Let the next try run all hooks of that binding."""
        self.hooks = {done for done in self.hooks if done[0] is not binding}


class ModuleState(msgspec.Struct):
    """The progress of one module in this process."""

    module: model.Module
    status: ModuleStatus = ModuleStatus.DISABLED
    reason: str = "not discovered yet"
    """Why it is enabled or disabled, and whether it is left alone."""
    verdict: str = ""
    """What the last discovery said of it."""
    lacks: str = ""
    """What it requires of the cluster that is not there, although it is enabled; empty if it has all."""
    edits: int = 0
    """How many accepted edits concerned it, in this process."""
    edits_seen: int = 0
    """How many of them its last run, or the one under way, began after."""
    edit_since: float | None = None
    """When the first of them came that no run has applied, in seconds since the epoch."""
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
    progress: RunProgress = msgspec.field(default_factory=RunProgress)
    """Of the task that runs or deletes the module."""
    last_error: str = ""
    last_error_without_values: str = ""
    """:attr:`last_error` for places where no values may be shown."""
    failure: str = ""
    """Why the last run failed, in one word; empty if there is no better one than that it failed."""
    noted: dict[findings.FindingKind, findings.Finding] = msgspec.field(default_factory=dict)
    """What rules have found, besides what other fields say: see :meth:`found`."""
    warned: list[str] = msgspec.field(default_factory=list)
    """What Helm and the API server have warned of in the run under way."""
    tries: int = 0
    """How often in a row it failed."""
    cure: tuple[str, ...] = ()
    """What the next try waits for besides its time, as a person calls it."""
    awaits_health: tuple[names.ModuleName, ...] = ()
    """Modules that have to be healthy before its run goes on; itself with ``health.wait``."""
    health: module_health.ModuleHealth | None = None
    """How its resources are; ``None`` if that is not known."""
    drift: drift_report.DriftReport | None = None
    """Which resources somebody changed; ``None`` if that is not known."""
    next_try: float | None = None
    """When a failed run or delete is tried again, in seconds since the epoch; ``None`` if none waits."""
    is_final: bool = False
    """Whether what failed is not tried again by itself as long as chart and values are the same."""
    discovered: bool = False
    """Whether a discovery has decided about it; until then nothing is said of it."""
    awaits_config: bool = False
    """Whether nothing is done with it because ConfigMap or Secret, which were there before, are missing."""
    helm_hook: str = ""
    """For which of its own hooks the call of Helm under way waits, and how its pod is; empty if for none."""
    runs_hook: str = ""
    """Which of its hooks its run has been at for a while; empty if none."""
    leaving: str = ""
    """That objects of its release, which is or was removed, wait for finalizers; empty if none do."""
    suspended: suspension.Suspension | None = None
    """Why, since when and until when somebody has it left alone; ``None`` if nobody has."""
    handled_now: str = ""
    """The last value of the annotation ``addon-operator.io/now`` that was served."""
    handled_run: str = ""
    """The last value of the annotation that asks for a run which was served, also before a restart."""
    stays_off: bool = False
    """Whether it is off although its status is that of a module that is on: nobody knows if it is to be."""
    undecided: errors.AddonOperatorError | None = None
    """Why the last discovery had no verdict of its ``enabled`` script, so that it stays as it was."""
    held_back: windows.HeldBack | None = None
    """What of it waits for a window."""
    kept: tuple[left_objects.Kept, ...] | None = None
    """What stays of what its releases had; ``None`` if that is not known yet."""
    last_run: float | None = None
    """When the last run ended, in seconds since the epoch."""
    runs: int = 0
    """How many runs have ended, in this process."""

    @property
    def is_off(self) -> bool:
        """Whether it is disabled, or is being removed."""
        return self.stays_off or self.status in (ModuleStatus.DISABLED, ModuleStatus.DELETING)

    @property
    def waiting_since(self) -> float | None:
        """When the first edit came that is not applied, for whatever reason; ``None`` if all are."""
        wrong = self.noted.get(findings.WRONG_VALUES)
        since = None if wrong is None else wrong.since
        return min(filter(None, (self.edit_since, since)), default=None)

    def note(self, kind: findings.FindingKind, *texts: str, since: float | None = None) -> bool:
        """Note what there is to know, without values; without texts, there is nothing any more.

        ``since`` is in seconds since the epoch, and now without it. Returns whether that is news.
        """
        before, said = self.noted.get(kind), tuple(filter(None, texts))
        if said == self.texts(kind):
            return False
        if said:
            since = since or (before.since if before else time.time())
            self.noted[kind] = findings.Finding(kind, said, since)
        else:
            del self.noted[kind]
        return True

    def texts(self, kind: findings.FindingKind) -> tuple[str, ...]:
        """Return what is noted of a kind."""
        return self.noted[kind].texts if kind in self.noted else ()

    def reset(self) -> None:
        """Forget the progress: the next run is a first run."""
        self.hooks = self.readiness = None
        self.started = self.settled = False
        self.progress = RunProgress()
        self.status = ModuleStatus.DISABLED
        self.last_error = self.last_error_without_values = ""
        for kind in (findings.WARNED, findings.MISSPELT, findings.WRONG_HOOKS):
            self.note(kind)

    def handled(self, annotation: str) -> str:
        """Return the last value of an annotation that was served; empty without one."""
        return self.handled_now if annotation == suspension.NOW else self.handled_run

    @property
    def health_state(self) -> resource_health.HealthState | None:
        """How it is; ``None`` if that is not known. One without a release is healthy when it is ready."""
        if self.health is not None:
            return self.health.state
        is_ready = self.status is ModuleStatus.READY and not self.maintenance
        return resource_health.HealthState.HEALTHY if is_ready and not self.module.has_chart else None

    def found(self, just_now: Iterable[findings.Finding] = ()) -> list[findings.Finding]:
        """Return all that there is to know beside its runs, the worst first.

        What was found ``just_now`` counts instead of what is noted of its kinds.
        """
        health, drift, held = self.health, self.drift, self.held_back
        found = self.noted | {each.kind: each for each in just_now}
        is_settled = self.status in (ModuleStatus.READY, ModuleStatus.FAILED)
        if not (is_settled or self.last_error_without_values):
            # A run that has not come that far is under way, and nothing is wrong yet.
            found.pop(findings.NOT_REGISTERED, None)
        told: list[tuple[findings.FindingKind, str, float | None]] = [
            (findings.REQUIRES_NOT_MET, f"It {self.lacks}; it stays as it is." if self.lacks else "", None),
            (findings.MAINTENANCE, self.shown_maintenance, None),
        ]
        if health is not None and (kind := _OF_HEALTH.get(health.state)) is not None:
            told.append((kind, health.message or "a resource is not healthy", None))
        if drift is not None:
            told.append((findings.LEFT_OVER if drift.is_left else findings.DRIFTED, drift.message, None))
        if held is not None:
            told.append((findings.HELD_BACK, str(held), held.since))
        if (now := self.suspended) is not None:
            told.append((findings.SUSPENDED, str(now).removeprefix("suspended: "), now.since))
        more = (findings.Finding(kind, (text,), since) for kind, text, since in told)
        return findings.worst_first([*found.values(), *more])

    @property
    def shown_maintenance(self) -> str:
        """The mode of its maintenance, but for a suspension, which is shown by itself."""
        return "" if self.maintenance == sources.SUSPENDED else self.maintenance

    @property
    def awaited(self) -> str:
        """For whose health it waits, with the verb: ``db and web are``."""
        names_of = ["it" if name == self.module.name else name for name in self.awaits_health]
        return " and ".join(names_of) + (" is" if len(names_of) == 1 else " are")

    @property
    def at_hook(self) -> str:
        """For which hook its run waits, of Helm or of ours; empty if for none."""
        return f"Helm waits for its hook {self.helm_hook}" if self.helm_hook else self.runs_hook

    @property
    def with_status(self) -> str:
        """Its name, and how it is: ``db (Failed)``."""
        return f"{self.module.name} ({self.status})"

    @property
    def holds_up(self) -> tuple[str, ...]:
        """Itself if those behind it may wait for it."""
        return (self.with_status,) if self.status in (ModuleStatus.RUNNING, ModuleStatus.FAILED) else ()

    def explain(self) -> None:
        """Update the reason."""
        waits = f"waits for {', '.join(self.waits_for)}" if self.waits_for else ""
        if self.awaits_health:
            waits = f"waits until {self.awaited} healthy"
        if self.awaits_config:
            waits = AWAITS_CONFIG
        if self.at_hook:
            waits = self.at_hook
        if self.leaving:
            waits = self.leaving
        if self.suspended is not None:
            # First, as tables cut what is long.
            parts = (str(self.suspended), self.verdict, self.lacks, waits)
        else:
            mode = self.shown_maintenance
            alone = findings.MAINTENANCE.sentence.format(mode) if mode else ""
            parts = (self.verdict, self.lacks, waits, alone)
        self.reason = "; ".join(filter(None, parts))


def next_try(cure: Sequence[str]) -> tuple[str, str]:
    """Return what stands before and behind the moment of a next try; ``cure``: what it is made sooner for."""
    return "next try ", f", or sooner: it waits for {', '.join(cure)}" if cure else ""


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
