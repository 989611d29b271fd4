"""What happens in the engine, for metrics, the log, Kubernetes Events and Module objects.

They are msgspec Structs, because making that many dataclasses is felt at each start.
Whoever has something to report takes ``tell: Listener`` and calls it with one of these.
"""

import pathlib
from collections.abc import Callable, Sequence
from typing import Final, Literal

import msgspec

from addon_operator.engine import reactions, state, tasks
from addon_operator.helm import helm_errors, release_types
from addon_operator.kernel import names
from addon_operator.modules import keeping, model, windows
from addon_operator.modules.drift import drift_report
from addon_operator.modules.health import module_health
from addon_operator.process.children import children
from addon_operator.values import sources

_KEPT_SHOWN: Final = 5
Event = state.EngineEvent
"""Everything that is reported."""


class QueueChanged(Event, frozen=True):
    """A task came, went or was tried."""

    queue: str
    length: int
    head_age: float
    """Seconds since the first task was queued."""
    head_tries: int
    """Failed tries of the first task."""


class QueueGone(Event, frozen=True):
    """A named queue is not used any more."""

    queue: str


class QueueOperation(Event, frozen=True):
    """A single operation of a queue took so long; the names are those of the original."""

    queue: str
    operation: str
    seconds: float


class TaskStarted(Event, frozen=True):
    """A try of a task begins."""

    queue: str
    task: tasks.Task
    waited: float
    """Seconds since it was queued or last tried."""


class TaskFailed(Event, frozen=True):
    """A try of a task failed."""

    queue: str
    task: tasks.Task
    error: BaseException
    delay: float | None
    """Seconds until the next try; ``None`` where failure is allowed."""

    @property
    def is_final(self) -> bool:
        """Whether that try only looks whether chart and values are other ones, as the error says."""
        return isinstance(self.error, helm_errors.HelmError) and self.error.is_final


class HookLabels(msgspec.Struct, frozen=True):
    """The labels of a run in metrics and logs."""

    hook: str
    binding: str
    queue: str
    activation: str
    module: names.ModuleName | None = None


class HookHolds(Event, frozen=True):
    """The hook has run for so long, and what waits in its queue waits for it."""

    labels: HookLabels
    seconds: float


class HookSucceeded(Event, frozen=True):
    """The hook exited with 0 and its outputs were applied."""

    labels: HookLabels
    result: children.ChildResult


class HookFailed(Event, frozen=True):
    """The hook or one of its outputs failed."""

    labels: HookLabels
    result: children.ChildResult | None
    """There if a process ended."""
    allowed: bool


ReviewResult = Literal["allowed", "patched", "converted", "denied", "error", "timeout", "overload"]


class ReviewAnswered(Event, frozen=True):
    """A hook was asked by the API server."""

    labels: HookLabels
    result: ReviewResult
    seconds: float
    """From the arrival of the question to its answer."""
    details: str = ""
    """What went wrong, if something did."""


class HookDoubted(Event, frozen=True):
    """A run of a hook wrote what its author may not have meant."""

    labels: HookLabels
    text: str
    """What it did: the sentence after its name."""
    is_new: bool
    """Whether this was not told before."""


class HooksRegistered(Event, frozen=True):
    """The hooks of a module, or the global ones, printed their configuration."""

    module: names.ModuleName | None
    hooks: tuple[state.Hook, ...]


class Warned(Event, frozen=True):
    """Something is odd, in a sentence for the log."""

    text: str


class Noted(Event, frozen=True):
    """Something was done, or will be, in a sentence for the log."""

    text: str
    module: str = ""
    """Name of the module or release, as a field of the record."""


class ObjectsKept(Event, frozen=True):
    """Objects stay that a release loses, as they hold data or somebody keeps them."""

    release: str
    """The name of its module, or what it goes by without one."""
    kept: Sequence[keeping.Kept]
    has_module: bool

    @property
    def text(self) -> str:
        """What stays, and what to do, in a sentence of bounded length."""
        shown, more = self.kept[:_KEPT_SHOWN], len(self.kept) - _KEPT_SHOWN
        rest = f"; {more} more: kubectl get {keeping.LISTED} -A -l {keeping.KEPT_FROM}" if more > 0 else ""
        return f"{keeping.told(shown)}{rest}"


class RemovalDue(Event, frozen=True):
    """A module is about to be deleted, or a release purged: a sentence with the reason."""

    text: str


class ModuleEvent(Event, frozen=True):
    """Something that happened to a module."""

    module: names.ModuleName


class DefinitionsLeftOut(ModuleEvent, frozen=True):
    """Which CustomResourceDefinitions of a module are not in force, and why; empty if all are."""

    text: str


class RegistrationsChanged(Event, frozen=True):
    """Which webhooks and conversions of hooks are not registered, and why; empty if all are."""

    owner: str
    """The module; empty for the global hooks."""
    text: str
    is_due: bool = False
    """Whether that is only because the run that registers them has not come that far."""


class ModuleDecided(Event, frozen=True):
    """A discovery found a module enabled or disabled."""

    verdict: model.Verdict


class ModuleRan(ModuleEvent, frozen=True):
    """A run of a module, or its failed try, ended."""

    activation: str
    seconds: float


class ModuleFailed(ModuleEvent, frozen=True):
    """A try of a run failed, or of a delete."""

    deleting: bool = False


class ModuleGone(ModuleEvent, frozen=True):
    """The directory of a module is gone."""

    path: pathlib.Path


class ModuleObjectLost(ModuleEvent, frozen=True):
    """Somebody deleted the Module object."""


class RevisionSeen(ModuleEvent, frozen=True):
    """The release has this last revision now, whoever made it."""

    revision: int


class ModulesDiscovered(Event, frozen=True):
    """A discovery found so many modules."""

    enabled: int
    modules: int


class ModulesReloaded(Event, frozen=True):
    """Modules changed on disk and were reloaded."""

    touched: Sequence[names.ModuleName]
    warnings: Sequence[str]
    """What is strange in them."""


class ReloadRefused(Event, frozen=True):
    """Something that changed on disk is wrong."""

    problem: str
    is_of_hooks: bool = False
    """Whether it is a hook, whose file is not as it was; of anything else, what was before is in force."""


class NothingRefused(Event, frozen=True):
    """Nothing that changed on disk is refused any more."""


class DiscoveryFailed(Event, frozen=True):
    """A discovery failed, or a hook of an enabled module printed no valid configuration."""


class ReleaseEnsured(ModuleEvent, frozen=True):
    """The release of a module is as it should be."""

    activation: str
    outcome: release_types.ReleaseOutcome


class ConvergeStarted(Event, frozen=True):
    """A converge begins."""

    activation: str


class ConvergeEnded(Event, frozen=True):
    """A converge ended."""

    activation: str
    seconds: float
    superseded: bool
    """It gave way to a newer intent."""


class ConvergeUnsettled(Event, frozen=True):
    """``afterAll`` hooks changed global values in so many converges in a row; the next converge waits."""

    rounds: int
    hooks: Sequence[str]
    delay: float


class ConfigTaken(Event, frozen=True):
    """An edit of the values ConfigMap or the values Secret was accepted."""

    change: sources.ConfigChange
    reaction: reactions.Reaction
    kind: str = "ConfigMap"


class PartFailed(Event, frozen=True):
    """A part that works in the background ended by a defect, and begins again."""

    part: str
    error: Exception
    delay: float
    """Seconds until it begins again."""


class AbsentFound(ModuleEvent, frozen=True):
    """Resources of a module are absent and cannot be restored; a run is on its way."""

    resources: Sequence[str]
    reason: str


class ResourcesHealed(ModuleEvent, frozen=True):
    """Absent resources are back."""

    resources: Sequence[str]
    by_helm: bool
    """By Helm, and not restored from the record of the release."""


class HealPostponed(ModuleEvent, frozen=True):
    """Something removes resources again and again; the next healing is so far away."""

    resources: Sequence[str]
    seconds: float


class KindNotWatched(Event, frozen=True):
    """Resources of the kind cannot be watched; reported once."""

    modules: Sequence[names.ModuleName]
    kind: str
    reason: str


class ResourcesShared(Event, frozen=True):
    """Two modules have the same resources; reported when that changes."""

    modules: Sequence[names.ModuleName]
    """The one that runs first, and the other one, to which they belong."""
    resources: Sequence[str]


class HealthChanged(ModuleEvent, frozen=True):
    """How the resources of a module are has changed, or the text that says why; ``None``: it is not known."""

    health: module_health.ModuleHealth | None


class HealthStands(ModuleEvent, frozen=True):
    """A module has been healthy, or not, for a while, and was otherwise before."""

    health: module_health.ModuleHealth


class DriftChanged(ModuleEvent, frozen=True):
    """Other resources or fields of a module are otherwise than its chart says; ``None``: it is not known."""

    report: drift_report.DriftReport | None


class ResourcesCorrected(ModuleEvent, frozen=True):
    """What somebody changed of resources is as the chart says again."""

    resources: Sequence[str]


class CorrectionsGivenUp(ModuleEvent, frozen=True):
    """Somebody changes a resource again and again; it is left alone for a while."""

    resource: str
    manager: str
    """Who does that, as far as that is known."""


class CureAwaited(ModuleEvent, frozen=True):
    """The next try of a failed run begins as soon as one of these changes, as a person calls them."""

    cure: Sequence[str]


class HeldBack(ModuleEvent, frozen=True):
    """What waits for a window of a module, or of a release without one; ``None`` if nothing does any more."""

    held: windows.HeldBack | None
    has_module: bool = True


class MaintenanceChanged(ModuleEvent, frozen=True):
    """Helm and healing leave the module alone from now on; with an empty mode no longer."""

    mode: str


Listener = Callable[[Event], None]
"""Is called with each event, at once and in the engine's loop."""
