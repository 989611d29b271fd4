"""What happens in the engine, for metrics, the log, Kubernetes Events and Module objects.

Whoever has something to report takes ``tell: Listener`` and calls it with one of these.
"""

import dataclasses
from collections.abc import Callable, Sequence

from addon_operator.engine import reactions, state
from addon_operator.engine.queues import tasks
from addon_operator.helm.releases import release_types
from addon_operator.hook_contract.configuration import bindings
from addon_operator.kernel import names
from addon_operator.modules import model
from addon_operator.process.children import children
from addon_operator.values import sources, store


@dataclasses.dataclass(frozen=True, slots=True)
class QueueChanged:
    """A task came, went or was tried."""

    queue: str
    length: int
    head_age: float
    """Seconds since the first task was queued."""
    head_tries: int
    """Failed tries of the first task."""


@dataclasses.dataclass(frozen=True, slots=True)
class QueueGone:
    """A named queue is not used any more."""

    queue: str


@dataclasses.dataclass(frozen=True, slots=True)
class QueueOperation:
    """A single operation of a queue took so long; the names are those of the original."""

    queue: str
    operation: str
    seconds: float


@dataclasses.dataclass(frozen=True, slots=True)
class TaskStarted:
    """A try of a task begins."""

    queue: str
    task: tasks.Task
    waited: float
    """Seconds since it was queued or last tried."""


@dataclasses.dataclass(frozen=True, slots=True)
class TaskFailed:
    """A try of a task failed."""

    queue: str
    task: tasks.Task
    error: BaseException
    delay: float | None
    """Seconds until the next try; ``None`` where failure is allowed."""


@dataclasses.dataclass(frozen=True, slots=True)
class HookLabels:
    """The labels of a run in metrics and logs."""

    hook: str
    binding: str
    queue: str
    activation: str
    module: names.ModuleName | None = None


@dataclasses.dataclass(frozen=True, slots=True)
class HookHolds:
    """The hook has run for so long, and what waits in its queue waits for it."""

    labels: HookLabels
    seconds: float


@dataclasses.dataclass(frozen=True, slots=True)
class HookSucceeded:
    """The hook exited with 0 and its outputs were applied."""

    labels: HookLabels
    result: children.ChildResult


@dataclasses.dataclass(frozen=True, slots=True)
class HookFailed:
    """The hook or one of its outputs failed."""

    labels: HookLabels
    result: children.ChildResult | None
    """There if a process ended."""
    allowed: bool


@dataclasses.dataclass(frozen=True, slots=True)
class HooksRegistered:
    """The hooks of a module, or the global ones, printed their configuration."""

    module: names.ModuleName | None
    hooks: tuple[state.Hook, ...]


@dataclasses.dataclass(frozen=True, slots=True)
class Warned:
    """Something is odd, in a sentence for the log."""

    text: str


@dataclasses.dataclass(frozen=True, slots=True)
class ModuleEvent:
    """Something that happened to a module."""

    module: names.ModuleName


@dataclasses.dataclass(frozen=True, slots=True)
class ModuleDecided:
    """A discovery found a module enabled or disabled."""

    verdict: model.Verdict


@dataclasses.dataclass(frozen=True, slots=True)
class ModuleRan(ModuleEvent):
    """A run of a module, or its failed try, ended."""

    activation: str
    seconds: float


@dataclasses.dataclass(frozen=True, slots=True)
class ModuleFailed(ModuleEvent):
    """A try of a run failed, or of a delete."""

    deleting: bool = False


@dataclasses.dataclass(frozen=True, slots=True)
class ModuleGone(ModuleEvent):
    """The directory of a module is gone."""


@dataclasses.dataclass(frozen=True, slots=True)
class ModulesDiscovered:
    """A discovery found so many modules."""

    enabled: int
    modules: int


@dataclasses.dataclass(frozen=True, slots=True)
class ModulesReloaded:
    """Modules changed on disk and were reloaded."""

    touched: Sequence[names.ModuleName]
    warnings: Sequence[str]
    """What is strange in them."""


@dataclasses.dataclass(frozen=True, slots=True)
class ReloadRefused:
    """Something that changed on disk is wrong; what was before stays in force."""

    problem: str


@dataclasses.dataclass(frozen=True, slots=True)
class DiscoveryFailed:
    """A discovery failed, or a hook of an enabled module printed no valid configuration."""


@dataclasses.dataclass(frozen=True, slots=True)
class RemovalDue:
    """A module will be deleted or a release purged: the beginning of a sentence, and why."""

    what: str
    reason: str


@dataclasses.dataclass(frozen=True, slots=True)
class ReleaseEnsured(ModuleEvent):
    """The release of a module is as it should be."""

    activation: str
    outcome: release_types.ReleaseOutcome


@dataclasses.dataclass(frozen=True, slots=True)
class ReleaseRemoved:
    """A release was uninstalled."""

    release: str


@dataclasses.dataclass(frozen=True, slots=True)
class CrdApplied(ModuleEvent):
    """A CustomResourceDefinition of a module was written."""

    crd: str


@dataclasses.dataclass(frozen=True, slots=True)
class ConvergeStarted:
    """A converge begins."""

    activation: str


@dataclasses.dataclass(frozen=True, slots=True)
class ConvergeEnded:
    """A converge ended."""

    activation: str
    seconds: float
    superseded: bool
    """It gave way to a newer intent."""


@dataclasses.dataclass(frozen=True, slots=True)
class ConvergeUnsettled:
    """``afterAll`` hooks changed global values in so many converges in a row; the next converge waits."""

    rounds: int
    hooks: Sequence[str]
    delay: float


@dataclasses.dataclass(frozen=True, slots=True)
class ConfigTaken:
    """An edit of the values ConfigMap was accepted."""

    change: store.ConfigChange
    reaction: reactions.Reaction


@dataclasses.dataclass(frozen=True, slots=True)
class ConfigRefused:
    """The values ConfigMap is wrong; reported once for each edit."""

    error: sources.ConfigMapError
    uid: str
    at_start: bool = False
    """Nothing has begun yet; otherwise the last good values stay in force."""

    @property
    def follows(self) -> str:
        """What that means, as a part of a sentence."""
        if self.at_start:
            return "nothing runs until it is fixed"
        return "the last good values stay in force"


@dataclasses.dataclass(frozen=True, slots=True)
class BindingEvent:
    """Something that happened to a binding of a hook."""

    hook: state.Hook
    binding: bindings.KubernetesBinding


@dataclasses.dataclass(frozen=True, slots=True)
class BindingWaits(BindingEvent):
    """The objects of a binding cannot be followed; reported once for each reason."""

    reason: str


@dataclasses.dataclass(frozen=True, slots=True)
class BindingFollows(BindingEvent):
    """The objects of a binding that waited are followed again."""


@dataclasses.dataclass(frozen=True, slots=True)
class SnapshotChanged(BindingEvent):
    """A snapshot holds so many objects."""

    objects: int
    size: int | None
    """Bytes of JSON, if they are known."""


@dataclasses.dataclass(frozen=True, slots=True)
class ObjectsFiltered(BindingEvent):
    """The jqFilter of a binding was applied to so many objects."""

    count: int
    seconds: float
    """For all of them."""


@dataclasses.dataclass(frozen=True, slots=True)
class ChangesHandled(BindingEvent):
    """So many changes of objects were put where they belong."""

    count: int
    seconds: float
    """For all of them."""


@dataclasses.dataclass(frozen=True, slots=True)
class BindingGone(BindingEvent):
    """A binding was ended."""


@dataclasses.dataclass(frozen=True, slots=True)
class AbsentFound(ModuleEvent):
    """Resources of a module are absent and cannot be restored; a run is on its way."""

    resources: Sequence[str]
    reason: str


@dataclasses.dataclass(frozen=True, slots=True)
class ResourcesHealed(ModuleEvent):
    """Absent resources are back."""

    resources: Sequence[str]
    by_helm: bool
    """By Helm, and not restored from the record of the release."""


@dataclasses.dataclass(frozen=True, slots=True)
class HealPostponed(ModuleEvent):
    """Something removes resources again and again; the next healing is so far away."""

    resources: Sequence[str]
    seconds: float


@dataclasses.dataclass(frozen=True, slots=True)
class KindNotWatched:
    """Resources of the kind cannot be watched; reported once."""

    modules: Sequence[names.ModuleName]
    kind: str
    reason: str


@dataclasses.dataclass(frozen=True, slots=True)
class ResourcesShared:
    """Two modules have the same resources; reported when that changes."""

    modules: Sequence[names.ModuleName]
    resources: Sequence[str]


@dataclasses.dataclass(frozen=True, slots=True)
class MaintenanceChanged(ModuleEvent):
    """Helm and healing leave the module alone from now on; with an empty mode no longer."""

    mode: str


Event = (
    QueueChanged
    | QueueGone
    | QueueOperation
    | TaskStarted
    | TaskFailed
    | HookHolds
    | HookSucceeded
    | HookFailed
    | HooksRegistered
    | state.ModuleChanged
    | ModuleDecided
    | ModuleEvent
    | Warned
    | ModulesDiscovered
    | ModulesReloaded
    | ReloadRefused
    | DiscoveryFailed
    | RemovalDue
    | ReleaseRemoved
    | ConvergeStarted
    | ConvergeEnded
    | ConvergeUnsettled
    | ConfigTaken
    | ConfigRefused
    | BindingEvent
    | KindNotWatched
    | ResourcesShared
)
"""Everything that is reported."""

Listener = Callable[[Event], None]
"""Is called with each event, at once and in the engine's loop."""
