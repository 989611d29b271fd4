"""What the engine knows of each module and hook while it runs."""

import dataclasses
import enum
import pathlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Protocol

from addon_operator.hooks import config
from addon_operator.kernel import names
from addon_operator.modules import model


@dataclasses.dataclass(frozen=True, slots=True)
class Hook:
    """One hook file with its configuration."""

    name: str
    """Path relative to the hooks directory, as metrics and logs show it."""
    path: pathlib.Path
    config: config.HookConfig
    module: names.ModuleName | None = None
    """The module it belongs to; ``None`` for a global hook."""


def bound(hooks: Iterable[Hook], binding: config.LifecycleBinding) -> list[Hook]:
    """The hooks with that binding, by ORDER and then by name."""
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
class ModuleState:
    """The progress of one module in this process."""

    module: model.Module
    status: ModuleStatus = ModuleStatus.DISABLED
    reason: str = "not discovered yet"
    """Why it is enabled or disabled."""
    hooks: tuple[Hook, ...] | None = None
    """``None`` until its hooks told their configuration."""
    started: bool = False
    """Whether the ``onStartup`` hooks succeeded since it was enabled."""
    settled: bool = False
    """Whether one run went through to the end of ``afterHelm`` since it was enabled."""
    last_error: str = ""
    last_run: float | None = None
    """When the last run ended, in seconds since the epoch."""

    def reset(self) -> None:
        """Forget the progress: the next run is a first run."""
        self.hooks = None
        self.started = self.settled = False
        self.status = ModuleStatus.DISABLED
        self.last_error = ""


class StateObserver(Protocol):
    """Who is told of a module's new status: metrics and status objects."""

    def module_changed(self, state: ModuleState) -> None:
        """The status of ``state`` changed."""
        ...


class ModuleStates:
    """The state of all modules, in run order."""

    def __init__(self, modules: Sequence[model.Module], observer: StateObserver) -> None:
        self._states: Mapping[names.ModuleName, ModuleState] = {
            module.name: ModuleState(module)
            for module in sorted(modules, key=lambda module: module.run_order)
        }
        self._observer = observer
        self.enabled: tuple[names.ModuleName, ...] = ()
        """Enabled modules in run order, as the last discovery found them."""

    def __getitem__(self, name: names.ModuleName) -> ModuleState:
        return self._states[name]

    def __iter__(self) -> Iterator[ModuleState]:
        return iter(self._states.values())

    @property
    def modules(self) -> tuple[model.Module, ...]:
        """All modules in run order."""
        return tuple(state.module for state in self)

    @property
    def started(self) -> frozenset[names.ModuleName]:
        """Modules whose hooks may have done something in this process."""
        return frozenset(state.module.name for state in self if state.hooks is not None)

    def mark(self, name: names.ModuleName, status: ModuleStatus, error: str | None = None) -> None:
        """Set a module's status; ``error`` replaces the last error unless it is ``None``."""
        state = self._states[name]
        state.status = status
        if error is not None:
            state.last_error = error
        self._observer.module_changed(state)

    def discovered(
        self, verdicts: Mapping[names.ModuleName, model.Verdict], enabled: Sequence[names.ModuleName]
    ) -> None:
        """Take in the result of a discovery."""
        self.enabled = tuple(enabled)
        for state in self:
            verdict = verdicts[state.module.name]
            state.reason = verdict.reason
            if verdict.enabled and state.status is ModuleStatus.DISABLED:
                self.mark(state.module.name, ModuleStatus.PENDING)
