"""How large ``/metrics`` is with many modules: the observers are told what happens in a cluster."""

import logging
import pathlib
import time
from typing import Final

import structlog
from typing_extensions import override

from addon_operator.app import engine_listeners, event_log
from addon_operator.engine import events, state, tasks
from addon_operator.engine.bindings import binding_events
from addon_operator.helm import release_types
from addon_operator.hook_contract.configuration import bindings, hook_config
from addon_operator.kernel import names
from addon_operator.modules import model, release
from addon_operator.process.children import children
from addon_operator.telemetry import metrics
from tests.benchmarks import measures

_MODULES: Final = 100
_FEW: Final = 10
_ACTIVATIONS: Final = ("OperatorStartup", "ConfigMapChanged")
"""What each module was run for."""
_STEP: Final = "beforeHelm"
_BINDING: Final = bindings.KubernetesBinding("Pod", name="pods")
_RESULT: Final = children.ChildResult(0, 0.05, 0.01, 0.1, 1 << 24, False, None, False, "")
_KIB: Final = 1024


async def run() -> list[measures.Row]:
    """All measurements, which take seconds; tasks want an event loop, and none is run."""
    few, many = filled(_FEW), filled(_MODULES)
    base, began = len(metrics.Metrics().render()), time.process_time()
    plain = many.render()
    seconds = time.process_time() - began
    small = many.render(metrics.Form.wanted("", "gzip"))
    case = f"{_MODULES} modules, a chart and a hook of two bindings each"
    linear = base + (len(few.render()) - base) * _MODULES / _FEW
    return [
        measures.Row("scrape", case, "KiB of /metrics", len(plain) / _KIB,
                     f"as {_FEW} modules", linear / _KIB),
        measures.Row("scrape", case, "KiB of /metrics, gzip", len(small) / _KIB, ""),
        measures.Row("scrape", case, "lines for each module", _lines(plain, "module-000"), ""),
        measures.Row("scrape", case, "processor time to write it (ms)", seconds * 1000, ""),
    ]  # fmt: skip


def filled(modules: int) -> metrics.Metrics:
    """The metrics of an operator whose modules have each been run for two reasons."""
    meters = metrics.Metrics()
    told = _Told(meters)
    for number in range(modules):
        told.module(names.ModuleName(f"module-{number:03}"))
    return meters


class _Told:
    """Those who are told what happens, as the operator has them."""

    def __init__(self, meters: metrics.Metrics) -> None:
        quiet = structlog.make_filtering_bound_logger(logging.CRITICAL)
        log: event_log.Logger = structlog.wrap_logger(None, wrapper_class=quiet)
        self._meters = meters
        self._tell = engine_listeners.shown(meters, log)

    def module(self, name: names.ModuleName) -> None:
        """A module is found, runs, and runs again; its hook's binding gets an event."""
        found = state.ModuleState(model.Module(name, 1, pathlib.Path(name), has_chart=True))
        found.status = state.ModuleStatus.READY
        self._tell(state.ModuleChanged(found))
        hook = state.Hook(
            "hooks/pods.sh", pathlib.Path("pods.sh"), hook_config.HookConfig(kubernetes=(_BINDING,)), name
        )
        self._tell(events.HooksRegistered(name, (hook,)))
        for activation, action in zip(_ACTIVATIONS, release_types.ReleaseAction, strict=False):
            self._run(name, activation, action)
        self._bound(hook)

    def _run(self, name: names.ModuleName, activation: str, action: release_types.ReleaseAction) -> None:
        self._task(_Task(tasks.TaskKind.MODULE_RUN, owner=name))
        self._hook(name, _STEP, activation)
        seconds = dict.fromkeys(release_types.Operation, 0.3)
        outcome = release_types.ReleaseOutcome(action, "", 1, release.Checksum("0"), seconds=seconds)
        self._tell(events.ReleaseEnsured(name, activation, outcome))
        self._tell(events.ModuleRan(name, activation, 0.5))

    def _bound(self, hook: state.Hook) -> None:
        self._tell(binding_events.BindingWaits(hook, _BINDING, None))
        self._tell(binding_events.SnapshotChanged(hook, _BINDING, 10, 1000))
        self._tell(binding_events.ChangesHandled(hook, _BINDING, 1, 0.001))
        self._tell(binding_events.ObjectsFiltered(hook, _BINDING, 1, 0.001))
        owner = hook.module or names.ModuleName("")
        run = _Task(tasks.TaskKind.MODULE_HOOK_RUN, owner=owner, hook=hook.name, binding=_BINDING.name)
        self._task(run)
        self._hook(owner, _BINDING.name, "Kubernetes")

    def _hook(self, name: names.ModuleName, binding: str, activation: str) -> None:
        labels = events.HookLabels("hooks/pods.sh", binding, "main", activation, name)
        self._tell(events.HookSucceeded(labels, _RESULT))

    def _task(self, task: tasks.Task) -> None:
        self._tell(events.TaskStarted("main", task, 0.1))


class _Task(tasks.Task):
    """A task that is only told of."""

    def __init__(self, kind: tasks.TaskKind, *, owner: str, hook: str = "", binding: str = "") -> None:
        super().__init__(owner=owner, hook=hook, binding=binding)
        self.kind = kind

    @override
    async def run(self) -> None:
        """Nothing runs here."""


def _lines(text: bytes, module: str) -> int:
    return sum(f'module="{module}"'.encode() in line for line in text.splitlines())
