"""What happens in the engine, as metrics and log records."""

import asyncio
import dataclasses
from collections.abc import Callable, Collection, Sequence
from typing import Final, Protocol

import structlog

from addon_operator.engine import reactions, state
from addon_operator.engine.hooks import hook_run
from addon_operator.engine.queues import task_queue, tasks
from addon_operator.helm.releases import release_types
from addon_operator.hook_contract.configuration import bindings
from addon_operator.kernel import errors, names
from addon_operator.kube.objects import events
from addon_operator.modules import model
from addon_operator.process.children import children
from addon_operator.telemetry import families, metrics
from addon_operator.values import sources, store

Logger = structlog.typing.FilteringBoundLogger

_OF_MODULES: Final = (
    tasks.TaskKind.MODULE_RUN,
    tasks.TaskKind.MODULE_DELETE,
    tasks.TaskKind.MODULE_ENSURE_CRDS,
)
AGES_SECONDS: Final = 5.0
"""Between two looks at the queues."""


class QueueObserver:
    """Implements :class:`.QueueObserver`."""

    def __init__(
        self,
        meters: metrics.Metrics,
        log: Logger,
        on_retry: Callable[[names.ModuleName, float], None] = lambda _module, _delay: None,
    ) -> None:
        """``on_retry`` gets the module whose run or delete waits, and for how many seconds."""
        self._meters = meters
        self._log = log
        self._on_retry = on_retry

    def changed(self, queue: task_queue.TaskQueue) -> None:
        """Count the tasks and the tries of the head."""
        pending = queue.tasks
        self._meters.queues.length.labels(queue=queue.name).set(len(pending))
        self._meters.queues.head_age_seconds.labels(queue=queue.name).set(queue.head_age)
        self._meters.queues.retries.labels(queue=queue.name).set(pending[0].attempts if pending else 0)

    async def keep_ages(self, queues: Callable[[], Sequence[task_queue.TaskQueue]]) -> None:
        """Keep the age of heads true while nothing happens, until cancelled."""
        while True:
            await asyncio.sleep(AGES_SECONDS)
            for queue in queues():
                self.changed(queue)

    def started(self, queue: task_queue.TaskQueue, task: tasks.Task, waited: float) -> None:
        """Add up how long tasks wait."""
        self._meters.queues.wait_seconds_total.labels(
            module=task.owner, hook=task.hook, binding=task.binding, queue=queue.name
        ).inc(max(0.0, waited))
        self._log.debug("task begins", queue=queue.name, **_fields(task))

    def failed(
        self, queue: task_queue.TaskQueue, task: tasks.Task, error: BaseException, delay: float | None
    ) -> None:
        """Log the failure; a traceback only for what is a defect of ours."""
        expected = isinstance(error, errors.AddonOperatorError)
        if delay is not None and task.kind in _OF_MODULES:
            self._on_retry(names.ModuleName(task.owner), delay)
        next_try = "failure is allowed" if delay is None else f"next try in {delay:.1f} s"
        self._log.error(
            f"{task.kind} failed: {error}; {next_try}",
            queue=queue.name,
            tries=task.attempts,
            exc_info=None if expected else error,
            **_fields(task),
        )


def _fields(task: tasks.Task) -> dict[str, str]:
    fields = {"task": str(task.kind), "module": task.owner, "hook": task.hook, "binding": task.binding}
    return {key: value for key, value in fields.items() if value}


class HookObserver:
    """Implements :class:`.HookObserver`."""

    def __init__(self, meters: metrics.Metrics, log: Logger) -> None:
        self._meters = meters
        self._log = log

    def hook_holds(self, labels: hook_run.HookLabels, seconds: float) -> None:
        """Log what a queue waits for."""
        self._log.info(
            f"queue {labels.queue} waits: the hook has been running for {seconds:.0f} s",
            **_hook_fields(labels),
        )

    def hook_succeeded(self, labels: hook_run.HookLabels, result: children.ChildResult) -> None:
        """Count a success and what it cost; log it. Failures are logged by their queues."""
        self._log.info("hook run done", seconds=round(result.wall_seconds, 3), **_hook_fields(labels))
        family, values = self._family(labels)
        _cost(family, values, result)
        family.success_total.labels(**values).inc()

    def hook_failed(
        self, labels: hook_run.HookLabels, result: children.ChildResult | None, *, allowed: bool
    ) -> None:
        """Count a failure and what it cost, if a process ran."""
        family, values = self._family(labels)
        if result is not None:
            _cost(family, values, result)
            if result.timed_out:
                self._meters.modules.hook_timeouts_total.inc()
        counter = family.allowed_errors_total if allowed else family.errors_total
        counter.labels(**values).inc()

    def _family(self, labels: hook_run.HookLabels) -> tuple[families.HookMetrics, dict[str, str]]:
        values = {
            "hook": labels.hook,
            "binding": labels.binding,
            "activation": labels.activation,
            "queue": labels.queue,
        }
        if labels.module is None:
            return self._meters.global_hooks, values
        return self._meters.module_hooks, {"module": str(labels.module), **values}


def _hook_fields(labels: hook_run.HookLabels) -> dict[str, str]:
    fields = {
        "hook": labels.hook,
        "module": labels.module or "",
        "binding": labels.binding,
        "queue": labels.queue,
        "activation": labels.activation,
    }
    return {key: str(value) for key, value in fields.items() if value}


def _cost(family: families.HookMetrics, values: dict[str, str], result: children.ChildResult) -> None:
    family.seconds.labels(**values).observe(result.wall_seconds)
    family.user_cpu_seconds.labels(**values).observe(result.user_cpu_seconds)
    family.sys_cpu_seconds.labels(**values).observe(result.system_cpu_seconds)
    family.max_rss_bytes.labels(**values).set(result.max_rss_bytes)


_OFF: Final = (state.ModuleStatus.DISABLED, state.ModuleStatus.DELETING)


class ModuleListener(Protocol):
    """Who else is told of modules: their objects in the cluster."""

    def module_changed(self, module: state.ModuleState) -> None:
        """The status of a module changed."""
        ...

    def release_ensured(self, module: names.ModuleName, outcome: release_types.ReleaseOutcome) -> None:
        """The release of a module is as it should be."""
        ...

    def module_gone(self, module: names.ModuleName) -> None:
        """The directory of a module is gone."""
        ...

    def tell(self, module: names.ModuleName, reason: str, text: str) -> None:
        """Write an Event of warning about a module."""
        ...


class ModuleObserver:
    """Implements the observers of states, runs, releases, and converges."""

    def __init__(self, meters: metrics.Metrics, log: Logger, listener: ModuleListener | None = None) -> None:
        self._meters = meters
        self._log = log
        self._listener = listener
        self._hooks: dict[str, set[str]] = {}
        self._found = ""

    def tell(self, module: names.ModuleName, reason: str, text: str) -> None:
        """Write an Event of warning about a module."""
        if self._listener is not None:
            self._listener.tell(module, reason, text)

    def module_changed(self, state_: state.ModuleState) -> None:
        """Show the module's status."""
        if self._listener is not None:
            self._listener.module_changed(state_)
        name = state_.module.name
        self._meters.module_known(name, runs=state_.status is not state.ModuleStatus.DISABLED)
        self._meters.module_state(name, state_.status)
        self._meters.modules.enabled.labels(module=name).set(0 if state_.status in _OFF else 1)
        if state_.status is state.ModuleStatus.DISABLED:
            self._meters.forget_hooks_of(name)

    def module_gone(self, module: names.ModuleName) -> None:
        """Show and log that there is no such module any more."""
        if self._listener is not None:
            self._listener.module_gone(module)
        self._meters.forget_module(module)
        self._log.info("the module's directory is gone", module=module)

    def modules_reloaded(self, touched: Collection[names.ModuleName], warnings: Sequence[str]) -> None:
        """Log which modules changed on disk, and what is strange in them."""
        for warning in warnings:
            self._log.warning(warning)
        self._log.info(f"changed on disk and taken in: {', '.join(touched)}")

    def reload_refused(self, problem: str) -> None:
        """Log what is wrong on disk."""
        self._log.error(f"a change on disk is not taken in, what was before stays in force: {problem}")

    def verdict(self, verdict: model.Verdict) -> None:
        """Log why a module is enabled or disabled."""
        self._log.debug(
            f"module {verdict.module} is {'enabled' if verdict.enabled else 'disabled'}: {verdict.reason}",
            module=verdict.module,
        )

    def module_ran(self, module: names.ModuleName, activation: str, seconds: float) -> None:
        """Measure a run."""
        self._meters.modules.run_seconds.labels(module=module).observe(seconds)
        self._log.info("module run ended", module=module, activation=activation, seconds=round(seconds, 3))

    def module_run_failed(self, module: names.ModuleName) -> None:
        """Count a failed run; the queue logs it."""
        self._meters.modules.run_errors_total.labels(module=module).inc()

    def module_delete_failed(self, module: names.ModuleName) -> None:
        """Count a failed delete; the queue logs it."""
        self._meters.modules.delete_errors_total.labels(module=module).inc()

    def modules_discovered(self, enabled: int, modules: int) -> None:
        """Log how much there is, at the start and when that changes."""
        found = f"{len(self._hooks.get('', ()))} global hooks, {modules} modules, {enabled} of them enabled"
        if found != self._found:
            self._log.info(f"found {found}")
        self._found = found

    def removal_due(self, what: str, reason: str) -> None:
        """Log what goes away, and why."""
        self._log.info(f"{what}: {reason}")

    def discovery_failed(self) -> None:
        """Count a failure in discovery; the queue logs it."""
        self._meters.modules.discover_errors_total.inc()

    def hooks_registered(self, module: names.ModuleName | None, hooks: tuple[state.Hook, ...]) -> None:
        """Count the bindings of each hook; the series of hooks that are no more go away."""
        owner = module or ""
        found = {hook.name for hook in hooks}
        for gone in self._hooks.get(owner, set()) - found:
            self._meters.forget_hook(gone, owner)
        self._hooks[owner] = found
        for hook in hooks:
            count = self._meters.modules.binding_count.labels(module=owner, hook=hook.name)
            count.set(_bindings(hook))

    def release_ensured(
        self, module: names.ModuleName, activation: str, outcome: release_types.ReleaseOutcome
    ) -> None:
        """Measure Helm, count what was skipped, and log every revision."""
        if self._listener is not None:
            self._listener.release_ensured(module, outcome)
        for operation, seconds in outcome.seconds.items():
            self._meters.modules.helm_operation_seconds.labels(
                module=module, activation=activation, operation=operation
            ).observe(seconds)
        self._meters.modules.helm_seconds.labels(module=module, activation=activation).observe(
            sum(outcome.seconds.values())
        )
        for repair in outcome.recovered:
            self._log.warning(f"release {module}: {repair}", module=module)
        if outcome.adopted:
            self._log.warning(
                f"release {module} took over objects that existed already: {', '.join(outcome.adopted)}",
                module=module,
            )
        if outcome.by is not None:
            self._meters.modules.helm_upgrades_skipped_total.labels(module=module, by=outcome.by).inc()
        skipped = outcome.action is release_types.Action.SKIPPED
        (self._log.debug if skipped else self._log.info)(
            f"release {outcome.action}: {outcome.reason}", module=module, revision=outcome.revision
        )

    def crd_applied(self, module: names.ModuleName, crd: str) -> None:
        """Log a written definition."""
        self._log.info(f"CustomResourceDefinition {crd} applied", module=module)

    def release_removed(self, release: str) -> None:
        """Log an uninstallation."""
        self._log.info("release uninstalled", module=release)

    def converge_started(self, activation: str) -> None:
        """Log the begin."""
        self._meters.modules.convergence_seconds.inc(0, activation=activation)
        self._meters.modules.convergence_total.labels(activation=activation)
        self._log.info("converge begins", activation=activation)

    def converge_ended(self, activation: str, seconds: float, *, superseded: bool) -> None:
        """Count and measure the converge."""
        if superseded:
            self._log.info("converge broken off: news came, or the operator stops", activation=activation)
            return
        self._meters.modules.convergence_seconds.inc(seconds, activation=activation)
        self._meters.modules.convergence_total.labels(activation=activation).inc()
        self._log.info("converge done", activation=activation, seconds=round(seconds, 3))

    def converge_unsettled(self, rounds: int, hooks: Sequence[str], delay: float) -> None:
        """Tell that ``afterAll`` hooks do not come to an end."""
        self._log.error(
            f"global values still change after {rounds} converges in a row, by the afterAll hooks "
            f"{', '.join(hooks)}: the next converge begins in {delay:.1f} s; "
            "let the hooks stop changing values once they are as wanted"
        )


class EditObserver:
    """Implements :class:`.EditObserver`: edits of the values ConfigMap."""

    def __init__(
        self,
        meters: metrics.Metrics,
        log: Logger,
        recorder: events.EventRecorder,
        config_map: events.ObjectReference,
    ) -> None:
        self._meters = meters
        self._log = log
        self._recorder = recorder
        self._config_map = config_map

    def config_taken(self, change: store.ConfigChange, reaction: reactions.Reaction) -> None:
        """Log an edit by what it touches and what follows."""
        touched = sorted(change.sections_changed | change.flags_changed | change.maintenance_changed)
        follows = "converge" if reaction.converge else f"runs of {', '.join(reaction.runs) or 'no module'}"
        self._log.info(
            "values ConfigMap changed",
            **{"global": change.global_changed, "modules": ", ".join(touched), "follows": follows},
        )

    def config_refused(self, error: sources.ConfigMapError, uid: str) -> None:
        """Count and log a wrong edit, and show it on the ConfigMap: where, never which values."""
        self._refuse(error, uid, "the last good values stay in force")

    def config_refused_at_start(self, error: sources.ConfigMapError, uid: str) -> None:
        """The same for a ConfigMap that was wrong when nothing had begun yet."""
        self._refuse(error, uid, "nothing is run before it is mended")

    def _refuse(self, error: sources.ConfigMapError, uid: str, follows: str) -> None:
        self._meters.modules.config_values_errors_total.inc()
        self._log.error(f"{error}; {follows}")
        places = "; ".join(violation.partition(": ")[0] for violation in error.violations)
        self._recorder.record(
            dataclasses.replace(self._config_map, uid=uid),
            "Warning",
            "InvalidValues",
            f"{follows[0].upper()}{follows[1:]}. Wrong: {places}. The log of the operator says more.",
        )


def _bindings(hook: state.Hook) -> int:
    lifecycle = sum(hook.config.order(binding) is not None for binding in bindings.LifecycleBinding)
    return lifecycle + len(hook.config.schedules) + len(hook.config.kubernetes)
