"""What happens in the engine, as metrics."""

import time

import prometheus_client

from addon_operator.engine import config_events, events, state
from addon_operator.engine.bindings import binding_events
from addon_operator.hook_contract.configuration import hook_config
from addon_operator.process.children import children
from addon_operator.telemetry import families, metrics


class EventMetrics:
    """Counts and measures events; a :data:`.events.Listener`."""

    def __init__(self, meters: metrics.Metrics) -> None:
        self._meters = meters
        self._hooks: dict[str, set[str]] = {}

    def __call__(self, event: events.Event) -> None:
        """Find out what the event belongs to."""
        if isinstance(event, binding_events.BindingEvent):
            self._of_bindings(event)
            return
        self._of_queues(event)
        self._of_hooks(event)
        self._of_modules(event)
        self._of_releases(event)
        self._of_resources(event)
        self._of_converges(event)

    def _of_queues(self, event: events.Event) -> None:
        queues = self._meters.queues
        match event:
            case events.QueueChanged(queue=name):
                queues.length.labels(queue=name).set(event.length)
                queues.head_age_seconds.labels(queue=name).set(event.head_age)
                queues.retries.labels(queue=name).set(event.head_tries)
            case events.QueueGone(queue=name):
                self._meters.forget_queue(name)
            case events.QueueOperation(queue=name):
                self._meters.queue_action(name, event.operation, event.seconds)
            case events.TaskStarted(queue=name, task=task):
                queues.wait_seconds_total.labels(
                    module=task.owner, hook=task.hook, binding=task.binding, queue=name
                ).inc(max(0.0, event.waited))

    def _of_hooks(self, event: events.Event) -> None:
        match event:
            case events.HookSucceeded():
                family, values = self._family(event.labels)
                _cost(family, values, event.result)
                family.success_total.labels(**values).inc()
            case events.HookFailed():
                self._hook_failed(event)
            case events.HookDoubted(labels=labels):
                self._meters.bindings.hook_doubts_total.labels(
                    module=labels.module or "", hook=labels.hook
                ).inc()
            case events.ReviewAnswered():
                self._review_answered(event)
            case events.HooksRegistered():
                self._hooks_registered(event)

    def _review_answered(self, event: events.ReviewAnswered) -> None:
        about, family = event.labels, self._meters.webhook_hooks
        values = {"module": about.module or "", "hook": about.hook, "binding": about.binding}
        family.requests_total.labels(**values, result=event.result).inc()
        family.seconds.labels(**values).observe(event.seconds)

    def _hook_failed(self, event: events.HookFailed) -> None:
        family, values = self._family(event.labels)
        if event.result is not None:
            _cost(family, values, event.result)
            if event.result.timed_out:
                self._meters.bindings.hook_timeouts_total.inc()
        counter = family.allowed_errors_total if event.allowed else family.errors_total
        counter.labels(**values).inc()

    def _family(self, labels: events.HookLabels) -> tuple[families.HookRunMetrics, dict[str, str]]:
        values = {
            "hook": labels.hook,
            "binding": labels.binding,
            "activation": labels.activation,
            "queue": labels.queue,
        }
        if labels.module is None:
            return self._meters.global_hooks, values
        return self._meters.module_hooks, {"module": str(labels.module), **values}

    def _hooks_registered(self, event: events.HooksRegistered) -> None:
        """Count the bindings of each hook; the series of hooks that are gone go away."""
        owner = event.module or ""
        hooks = {hook.name for hook in event.hooks}
        for gone in self._hooks.get(owner, set()) - hooks:
            self._meters.forget_hook(gone, owner)
        self._hooks[owner] = hooks
        for hook in event.hooks:
            count = self._meters.bindings.count.labels(module=owner, hook=hook.name)
            count.set(sum(1 for _ in hook_config.rows(hook.config)))

    def _of_modules(self, event: events.Event) -> None:
        modules = self._meters.modules
        match event:
            case state.ModuleChanged():
                self._module_changed(event.state)
            case events.ModuleGone():
                self._meters.forget_module(event.module)
            case events.ModuleRan():
                modules.run_seconds.labels(module=event.module).observe(event.seconds)
            case events.ModuleFailed():
                counter = modules.delete_errors_total if event.deleting else modules.run_errors_total
                counter.labels(module=event.module).inc()
            case events.DiscoveryFailed():
                self._meters.converges.discover_errors_total.inc()
            case config_events.ConfigRefused():
                self._meters.converges.config_values_errors_total.inc()
            case config_events.ConfigNotRead():
                self._meters.process.internal_errors_total.labels(part="config").inc()
            case events.PartFailed(part=part):
                self._meters.process.internal_errors_total.labels(part=part).inc()

    def _of_releases(self, event: events.Event) -> None:
        modules = self._meters.modules
        match event:
            case events.ReleaseEnsured():
                self._release_ensured(event)
            case events.ResourcesHealed():
                self._meters.releases.resources_healed_total.labels(module=event.module).inc(
                    len(event.resources)
                )
            case events.HeldBack(module=name, held=held):
                if held is not None:
                    modules.held_back.labels(module=name).set(held.since)
                else:
                    modules.held_back.remove(name)
            case events.MaintenanceChanged(module=name, mode=mode):
                self._meters.module_word(modules.maintenance, name, mode)

    def _of_resources(self, event: events.Event) -> None:
        modules = self._meters.modules
        match event:
            case events.DriftChanged(module=name, report=report):
                drifted = self._meters.releases.drifted_resources
                if report is None:
                    drifted.remove(name)
                else:
                    drifted.labels(module=name).set(report.resources)
            case events.ResourcesCorrected():
                self._meters.releases.resources_corrected_total.labels(module=event.module).inc(
                    len(event.resources)
                )
            case events.CorrectionsGivenUp(module=name):
                self._meters.releases.corrections_given_up_total.labels(module=name).inc()
            case events.HealthChanged(module=name, health=health):
                self._meters.module_word(modules.health, name, "" if health is None else str(health.state))

    def _module_changed(self, module: state.ModuleState) -> None:
        name, modules = module.module.name, self._meters.modules
        is_disabled = module.status is state.ModuleStatus.DISABLED
        self._meters.module_known(name, runs=not is_disabled)
        if self._meters.module_word(modules.info, name, module.status) and is_disabled:
            self._meters.forget_hooks_of(name)
        modules.enabled.labels(module=name).set(0 if module.is_off else 1)
        self._module_failed(module)
        if (since := module.waiting_since) is not None:
            modules.edit_waiting_seconds.labels(module=name).set_function(lambda: time.time() - since)
        else:
            modules.edit_waiting_seconds.remove(name)
        # Somebody may have suspended an object without a module.
        if module.suspended is not None:
            modules.suspended.labels(module=name).set(module.suspended.since)
        else:
            modules.suspended.remove(name)

    def _module_failed(self, module: state.ModuleState) -> None:
        """Show why and how often it failed, until a run of it ends otherwise."""
        if module.status is state.ModuleStatus.RUNNING:
            return
        name, modules = module.module.name, self._meters.modules
        has_failed = module.status is state.ModuleStatus.FAILED
        self._meters.module_word(modules.failure, name, (module.failure or "Failed") if has_failed else "")
        if has_failed:
            modules.failed_tries.labels(module=name).set(module.tries)
        else:
            modules.failed_tries.remove(name)

    def _release_ensured(self, event: events.ReleaseEnsured) -> None:
        """Measure Helm, and count what was skipped."""
        labels, outcome = {"module": event.module, "activation": event.activation}, event.outcome
        meters = self._meters.releases
        for operation, seconds in outcome.seconds.items():
            meters.helm_operation_seconds.labels(**labels, operation=operation).observe(seconds)
        if outcome.seconds:
            meters.helm_seconds.labels(**labels).observe(sum(outcome.seconds.values()))
        if outcome.by is not None:
            meters.helm_upgrades_skipped_total.labels(module=event.module, by=outcome.by).inc()

    def _of_converges(self, event: events.Event) -> None:
        seconds, total = self._meters.converges.convergence_seconds, self._meters.converges.convergence_total
        match event:
            case events.ConvergeStarted():
                seconds.labels(activation=event.activation)
                total.labels(activation=event.activation)
            case events.ConvergeEnded(superseded=False):
                seconds.labels(activation=event.activation).inc(event.seconds)
                total.labels(activation=event.activation).inc()

    def _of_bindings(self, event: binding_events.BindingEvent) -> None:
        family, labels = self._meters.bindings, _labels(event)
        match event:
            case binding_events.BindingWaits(reason=reason):
                family.waiting.labels(**labels).set(0 if reason is None else 1)
            case binding_events.SnapshotChanged():
                family.snapshot_objects.labels(**labels).set(event.objects)
                if event.size is not None:
                    family.snapshot_bytes.labels(**labels).set(event.size)
            case binding_events.ObjectsFiltered():
                histogram = family.jq_filter_seconds.labels(**labels, kind=event.binding.kind)
                _observe_mean(histogram, event.count, event.seconds)
            case binding_events.ChangesHandled():
                histogram = family.event_seconds.labels(**labels, kind=event.binding.kind)
                _observe_mean(histogram, event.count, event.seconds)
            case binding_events.BindingGone():
                for gauge in (family.waiting, family.snapshot_objects, family.snapshot_bytes):
                    gauge.remove_by_labels(labels)
                for series in (family.event_seconds, family.jq_filter_seconds):
                    series.remove_by_labels(labels)


def _observe_mean(histogram: prometheus_client.Histogram, count: int, seconds: float) -> None:
    for _ in range(count):
        histogram.observe(seconds / count)


def _labels(event: binding_events.BindingEvent) -> dict[str, str]:
    hook, binding = event.hook, event.binding
    return {"module": hook.module or "", "hook": hook.name, "binding": binding.name, "queue": binding.queue}


def _cost(family: families.HookRunMetrics, values: dict[str, str], result: children.ChildResult) -> None:
    family.seconds.labels(**values).observe(result.wall_seconds)
    family.user_cpu_seconds.labels(**values).observe(result.user_cpu_seconds)
    family.sys_cpu_seconds.labels(**values).observe(result.system_cpu_seconds)
    family.max_rss_bytes.labels(**values).set(result.max_rss_bytes)
