"""The operator's metrics by subject.

Names, labels and meaning are those of "Addon-operator metrics" in the addon-operator documentation; where the
Go code renamed one, ours is the documented name.
"""

import dataclasses
import math
import platform
from collections.abc import Sequence
from typing import Final, TypeVar

from prometheus_client import Counter, Gauge, Histogram
from prometheus_client import metrics as library

import addon_operator
from addon_operator.telemetry import series

M = TypeVar("M", bound=library.MetricWrapperBase)

BUCKETS: Final = (
    0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50, 100, 200, 500,
)  # fmt: skip
"""Seconds of hooks, modules and Helm."""
SHORT_BUCKETS: Final = (
    0.0001, 0.0002, 0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5,
)  # fmt: skip
"""Seconds of single operations of a queue and of delays of the event loop."""
CPU_BUCKETS: Final = (0.1, 1, 10)
"""Seconds of processor time of hooks, beside those of time for each binding and activation."""
OPERATION_BUCKETS: Final = (1, 10, 60)
"""Seconds of Helm's single operations; there are series for each module, activation and operation."""
REQUEST_BUCKETS: Final = (0.025, 0.1, 0.5, 2, 8, 30)
"""Seconds of requests to the API server, some of client-go's; there are series for each verb and path."""
EVENT_BUCKETS: Final = (0.001, 0.01, 0.1, 0.5)
"""Seconds to put an event into its queue; there are series for each binding and kind."""
FILTER_BUCKETS: Final = (0.001, 0.01, 0.1, 1, 10)
"""Seconds of a jqFilter, likewise."""

_RUN: Final = ("hook", "binding", "activation", "queue")


@dataclasses.dataclass(frozen=True, slots=True)
class Description:
    """What a metric is, as the reference has it."""

    name: str
    """Without prefix, with the ``_total`` of counters."""
    labels: tuple[str, ...]
    type: str
    help: str


class Factory:
    """Makes metrics whose names have the prefix, and remembers them."""

    def __init__(self, prefix: str, registry: series.Registry) -> None:
        self._prefix = prefix
        self._registry = registry
        self.made: list[tuple[frozenset[str], library.MetricWrapperBase]] = []
        """Labels of each metric, and the metric; without plain counters."""
        self.descriptions: list[Description] = []

    def counter(self, name: str, text: str, *labels: str) -> Counter:
        """Make a counter; the name ends in ``_total``."""
        counter = Counter(self._prefix + name, text, labels, registry=self._registry)
        return self._keep(counter, Description(name, labels, "counter", text))

    def plain_counter(self, name: str, text: str, *labels: str) -> series.PlainCounter:
        """Make a counter whose name does not end in ``_total``."""
        self.descriptions.append(Description(name, labels, "counter", text))
        return series.PlainCounter(self._prefix + name, text, labels, self._registry)

    def gauge(self, name: str, text: str, *labels: str) -> Gauge:
        """Make a gauge."""
        gauge = Gauge(self._prefix + name, text, labels, registry=self._registry)
        return self._keep(gauge, Description(name, labels, "gauge", text))

    def histogram(self, name: str, text: str, *labels: str, buckets: Sequence[float] = BUCKETS) -> Histogram:
        """Make a histogram."""
        histogram = Histogram(self._prefix + name, text, labels, registry=self._registry, buckets=buckets)
        return self._keep(histogram, Description(name, labels, "histogram", text))

    def _keep(self, metric: M, description: Description) -> M:
        self.made.append((frozenset(description.labels), metric))
        self.descriptions.append(description)
        return metric


class HookRunMetrics:
    """Runs of hooks. Labels: ``hook``, ``binding``, ``activation``, ``queue``; module hooks: ``module``."""

    def __init__(self, make: Factory, owner: str, *extra: str) -> None:
        """Make the family ``<owner>_hook_run_…``."""
        labels = (*extra, *_RUN)
        name = f"{owner}_hook_run"
        self.seconds = make.histogram(f"{name}_seconds", f"Seconds that {owner} hooks ran.", *labels)
        self.user_cpu_seconds = make.histogram(
            f"{name}_user_cpu_seconds", f"User CPU seconds of {owner} hooks.", *labels, buckets=CPU_BUCKETS
        )
        self.sys_cpu_seconds = make.histogram(
            f"{name}_sys_cpu_seconds", f"System CPU seconds of {owner} hooks.", *labels, buckets=CPU_BUCKETS
        )
        self.max_rss_bytes = make.gauge(
            f"{name}_max_rss_bytes", f"Peak memory of {owner} hooks, in bytes.", *labels
        )
        self.success_total = make.counter(
            f"{name}_success_total", f"Runs of {owner} hooks that succeeded.", *labels
        )
        self.errors_total = make.counter(f"{name}_errors_total", f"Failed runs of {owner} hooks.", *labels)
        """Failures of hooks that may not fail."""
        self.allowed_errors_total = make.counter(
            f"{name}_allowed_errors_total", f"Failed runs of {owner} hooks that may fail.", *labels
        )
        """Failures under ``allowFailure: true``."""


class ModuleMetrics:
    """Modules."""

    def __init__(self, make: Factory) -> None:
        self.run_seconds = make.histogram("module_run_seconds", "Seconds of module runs.", "module")
        self.run_errors_total = make.counter("module_run_errors_total", "Module runs that failed.", "module")
        self.delete_errors_total = make.counter(
            "module_delete_errors_total", "Removals of modules that failed.", "module"
        )
        self.info = make.gauge("module_info", "The state of each module; always 1.", "module", "state")
        """``module``, ``state``; set through :meth:`.Metrics.module_state`."""
        self.health = make.gauge(
            "module_health", "How the resources of each module are; always 1.", "module", "state"
        )
        """``module``, ``state``: ``Healthy``, ``Progressing`` or ``Failed``; there only when it is known"""
        self.failure = make.gauge(
            "module_failure", "Why a module failed its last run; always 1.", "module", "reason"
        )
        """``module``, ``reason``: that of the condition ``Ready``; only while failed"""
        self.failed_tries = make.gauge(
            "module_failed_tries", "How often in a row a module has failed.", "module"
        )
        """``module``; there only while it is failed"""
        self.enabled = make.gauge("module_enabled", "1 if the module is enabled, else 0.", "module")
        self.held_back = make.gauge(
            "module_held_back", "When a change began to wait for its window, in Unix time.", "module"
        )
        """``module``; there only while something waits"""
        self.edit_waiting_seconds = make.gauge(
            "module_edit_waiting_seconds",
            "For how long an edit of a module's values is not applied, or is wrong.",
            "module",
        )
        """``module``; there only while one waits"""
        self.maintenance = make.gauge(
            "mm_module_maintenance", "Modules that Helm and healing leave alone; always 1.", "module", "state"
        )
        """``module``, ``state``: the maintenance mode; there only while the module is in maintenance"""
        self.suspended = make.gauge(
            "module_suspended", "When a module was suspended, in Unix time.", "module"
        )


class ReleaseMetrics:
    """Releases of modules, and Helm."""

    def __init__(self, make: Factory) -> None:
        run = ("module", "activation")
        self.helm_seconds = make.histogram("module_helm_seconds", "Seconds of Helm in module runs.", *run)
        self.helm_operation_seconds = make.histogram(
            "helm_operation_seconds",
            "Seconds that single operations of Helm took.",
            *run,
            "operation",
            buckets=OPERATION_BUCKETS,
        )
        """``module``, ``activation``, ``operation``: template, check-upgrade or upgrade"""
        self.helm_upgrades_skipped_total = make.counter(
            "helm_upgrades_skipped_total", "Runs in which Helm had nothing to do.", "module", "by"
        )
        """``module``, ``by``: inputs or manifest"""
        self.resources_healed_total = make.counter(
            "resources_healed_total", "Resources that were missing and were restored.", "module"
        )
        self.resources_corrected_total = make.counter(
            "resources_corrected_total", "Resources that others changed and that were put back.", "module"
        )
        self.corrections_given_up_total = make.counter(
            "corrections_given_up_total", "Changes that came back again and again, and were left.", "module"
        )
        self.drifted_resources = make.gauge(
            "module_drifted_resources", "Resources that somebody changed and that are not put back.", "module"
        )
        """``module``; there only when it is known"""


class ConvergeMetrics:
    """Converges, and what they depend on."""

    def __init__(self, make: Factory) -> None:
        self.discover_errors_total = make.counter(
            "module_discover_errors_total", "Failures to find out which modules are enabled."
        )
        self.convergence_seconds = make.plain_counter(
            "convergence_seconds", "Seconds that converges took.", "activation"
        )
        self.convergence_total = make.counter("convergence_total", "Converges that ended.", "activation")
        self.config_values_errors_total = make.counter(
            "config_values_errors_total", "Edits of the values ConfigMap or Secret that were refused."
        )
        self.config_values_invalid = make.gauge(
            "config_values_invalid",
            "1 if the values ConfigMap or Secret is invalid now, and older values, or none, are in force.",
        )


class QueueMetrics:
    """Queues of tasks. All but the last two have the label ``queue`` alone."""

    def __init__(self, make: Factory, *, actions: bool) -> None:
        self.length = make.gauge("tasks_queue_length", "Tasks in each queue.", "queue")
        self.head_age_seconds = make.gauge(
            "tasks_queue_head_age_seconds", "Age of the first task, in seconds.", "queue"
        )
        self.retries = make.gauge("tasks_queue_retries", "How often the first task has failed.", "queue")
        self.wait_seconds_total = make.counter(
            "task_wait_in_queue_seconds_total",
            "Seconds that tasks waited in queues.",
            "module",
            "hook",
            "binding",
            "queue",
        )
        self.action_seconds = (
            make.histogram(
                "tasks_queue_action_duration_seconds",
                "Seconds that single operations of queues took.",
                "queue_name",
                "queue_action",
                buckets=SHORT_BUCKETS,
            )
            if actions
            else None
        )
        """``queue_name``, ``queue_action``; ``None`` with ``QUEUE_ACTIONS_METRICS=no``"""


class BindingMetrics:
    """Bindings. Labels: ``module`` (may be empty), ``hook``; of objects ``binding`` and ``queue``, too."""

    def __init__(self, make: Factory) -> None:
        labels = ("module", "hook", "binding", "queue")
        self.count = make.gauge("binding_count", "Bindings of each hook.", "module", "hook")
        self.hook_timeouts_total = make.counter(
            "hook_timeouts_total", "Hooks that were stopped at their timeout."
        )
        self.hook_doubts_total = make.counter(
            "hook_doubts_total",
            "Runs that wrote what counts otherwise than it reads, such as a key twice in a patch of values.",
            "module",
            "hook",
        )
        self.snapshot_objects = make.gauge(
            "kube_snapshot_objects", "Objects in each binding's snapshot.", *labels
        )
        self.snapshot_bytes = make.gauge(
            "kube_snapshot_bytes", "Bytes of each binding's snapshot as JSON.", *labels
        )
        self.waiting = make.gauge(
            "kube_binding_waiting", "1 if a binding's objects cannot be watched.", *labels
        )
        self.event_seconds = make.histogram(
            "kube_event_duration_seconds", "Seconds to queue events.", *labels, "kind", buckets=EVENT_BUCKETS
        )
        """and ``kind``"""
        self.jq_filter_seconds = make.histogram(
            "kube_jq_filter_duration_seconds",
            "Seconds that a jqFilter took for an object.",
            *labels,
            "kind",
            buckets=FILTER_BUCKETS,
        )
        """and ``kind``"""


class WebhookHookMetrics:
    """Hooks that answer the API server. Labels: ``module`` (may be empty), ``hook``, ``binding``."""

    def __init__(self, make: Factory) -> None:
        labels = ("module", "hook", "binding")
        self.requests_total = make.counter(
            "webhook_hook_requests_total",
            "Requests of the API server that hooks answered.",
            *labels,
            "result",
        )
        """and ``result``: allowed, patched, denied, error, timeout or overload"""
        self.seconds = make.histogram(
            "webhook_hook_seconds",
            "Seconds from a request of the API server to the answer of a hook.",
            *labels,
            buckets=(*SHORT_BUCKETS, 1, 2, 5, 10, 30),
        )


class AdmissionMetrics:
    """Pods that are admitted with presets, and what is reported of them."""

    def __init__(self, make: Factory) -> None:
        self.podpreset_admissions_total = make.counter(
            "podpreset_admissions_total", "Pods that the webhook answered.", "namespace", "result"
        )
        """``namespace``, ``result``: injected, unchanged, conflict or error; see :class:`.BoundedLabels`"""
        self.podpreset_admission_errors_total = make.counter(
            "podpreset_admission_errors_total", "Pods created without their presets because of an error."
        )
        self.requests_refused_total = make.counter(
            "admission_requests_refused_total",
            "Requests that the admission server refused, as invalid or for lack of room.",
            "webhook",
            "status",
        )
        """``webhook``: its path, ``status``: that of HTTP"""
        self.podpreset_admission_seconds = make.histogram(
            "podpreset_admission_seconds", "Seconds to answer for a pod.", buckets=(*SHORT_BUCKETS, 1, 2, 5)
        )
        self.expansion_unresolved_total = make.counter(
            "expansion_unresolved_total", "References $(NAME) in pods that nothing defines."
        )
        self.pod_checks_dropped_total = make.counter(
            "pod_checks_dropped_total", "Pods not checked, as too many waited or took too much memory."
        )
        self.env_sources_dropped_total = make.counter(
            "env_sources_dropped_total", "Pods with too many, or too large, ConfigMaps and Secrets."
        )
        self.webhook_certificate_expiry_seconds = make.gauge(
            "webhook_certificate_expiry_seconds", "Seconds until the admission server's certificate expires."
        )
        """NaN as long as no admission server is served, which makes no alert."""
        self.webhook_certificate_expiry_seconds.set(math.nan)


class NotificationMetrics:
    """Messages to people."""

    def __init__(self, make: Factory) -> None:
        self.notifications_total = make.counter(
            "notifications_total", "Messages to targets of notifications.", "target", "result"
        )
        """``target``, ``result``: sent, retried (a try that failed) or given_up"""
        self.config_invalid = make.gauge(
            "notifications_config_invalid",
            "1 if notify.yaml is invalid now, so that an older one or none is in force.",
        )
        self.targets = make.gauge("notifications_targets", "Targets that are notified; 0 if nobody is.")
        self.unmatched_patterns = make.gauge(
            "notifications_unmatched_patterns", "Patterns of modules in notify.yaml that match no module."
        )


class ProcessMetrics:
    """The operator's process and its requests."""

    def __init__(self, make: Factory) -> None:
        self.live_ticks = make.plain_counter("live_ticks", "Grows by 1 every 10 seconds.")
        self.build_info = make.gauge(
            "build_info", "The versions of the operator and of Python; always 1.", "version", "python"
        )
        self.build_info.labels(version=addon_operator.__version__, python=platform.python_version()).set(1)
        self.leader = make.gauge("leader", "1 if this replica leads, 0 if it stands by.")
        self.loop_lag_seconds = make.histogram(
            "event_loop_lag_seconds",
            "Seconds by which the event loop wakes late.",
            buckets=(*SHORT_BUCKETS, 1, 2, 5),
        )
        self.request_result_total = make.counter(
            "kubernetes_client_request_result_total",
            "Requests to the API server, each try counted.",
            "code",
            "method",
        )
        self.request_latency_seconds = make.histogram(
            "kubernetes_client_request_latency_seconds",
            "Seconds that requests to the API server took.",
            "verb",
            "url",
            buckets=REQUEST_BUCKETS,
        )
        self.watch_errors_total = make.counter(
            "watch_errors_total", "Lists and watches that failed or broke off.", "kind", "reason"
        )
        self.internal_errors_total = make.counter(
            "internal_errors_total",
            "Parts of the operator that failed because of a bug and began again.",
            "part",
        )
        self.watch_up = make.gauge(
            "watch_up",
            "1 if a watch that the operator depends on is up; 0 if it never came up or is down for a minute.",
            "watch",
        )
        self.connections_closed_total = make.counter(
            "connections_closed_total",
            "Connections that the operator closed because of a limit, or whose handshake failed.",
            "site",
            "reason",
        )
        """``site``: admission or metrics, ``reason``; see :mod:`.connections`"""
