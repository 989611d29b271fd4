"""The operator's metrics by subject: a row for each.

Names, labels and meaning are those of "Addon-operator metrics" in the addon-operator documentation; where the
Go code renamed one, ours is the documented name.
"""

from collections.abc import Callable
from typing import Final, cast

import msgspec
from prometheus_client import Counter, Gauge, Histogram
from prometheus_client import metrics as library

from addon_operator.telemetry import series

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


class Row(msgspec.Struct, frozen=True):
    """One metric, as the reference shows it."""

    name: str
    """Without prefix, with the ``_total`` of counters."""
    help: str
    labels: tuple[str, ...]
    type: str
    buckets: tuple[float, ...] = ()

    def make(self, prefix: str, registry: series.Registry) -> library.MetricWrapperBase:
        """Make the metric of the library; ``prefix`` goes before its name."""
        name = prefix + self.name
        match self.type:
            case "histogram":
                return Histogram(name, self.help, self.labels, registry=registry, buckets=self.buckets)
            case "gauge":
                return Gauge(name, self.help, self.labels, registry=registry)
            case _:
                if name.endswith("_total"):
                    return Counter(name, self.help, self.labels, registry=registry)
                registry.plain_counters.add(name)
                return series.PlainCounter(name, self.help, self.labels, registry=registry)


# A row stands for the metric that an object of its class has in its place.
def _counter(name: str, text: str, *labels: str) -> Counter:
    return cast("Counter", Row(name, text, labels, "counter"))


def _plain_counter(name: str, text: str, *labels: str) -> series.PlainCounter:
    return cast("series.PlainCounter", Row(name, text, labels, "counter"))


def _gauge(name: str, text: str, *labels: str) -> Gauge:
    return cast("Gauge", Row(name, text, labels, "gauge"))


def _histogram(name: str, text: str, *labels: str, buckets: tuple[float, ...] = BUCKETS) -> Histogram:
    return cast("Histogram", Row(name, text, labels, "histogram", buckets))


class Family:
    """The metrics of one subject: its class has a row for each, an object the metrics themselves."""

    def __init__(
        self, prefix: str, registry: series.Registry, adapt: Callable[[Row], Row] = lambda row: row
    ) -> None:
        """``adapt`` gives the row that is made of each row of the class."""
        self.made: dict[Row, library.MetricWrapperBase] = {}
        for attribute, each in vars(type(self)).items():
            if isinstance(each, Row):
                row = adapt(each)
                self.made[row] = row.make(prefix, registry)
                setattr(self, attribute, self.made[row])


class HookRunMetrics(Family):
    """Runs of the hooks of an owner, of which :func:`of_owner` makes the names."""

    _LABELS: Final = ("hook", "binding", "activation", "queue")
    seconds = _histogram("hook_run_seconds", "Seconds that {} hooks ran.", *_LABELS)
    user_cpu_seconds = _histogram(
        "hook_run_user_cpu_seconds", "User CPU seconds of {} hooks.", *_LABELS, buckets=CPU_BUCKETS
    )
    sys_cpu_seconds = _histogram(
        "hook_run_sys_cpu_seconds", "System CPU seconds of {} hooks.", *_LABELS, buckets=CPU_BUCKETS
    )
    max_rss_bytes = _gauge("hook_run_max_rss_bytes", "Peak memory of {} hooks, in bytes.", *_LABELS)
    success_total = _counter("hook_run_success_total", "Runs of {} hooks that succeeded.", *_LABELS)
    errors_total = _counter("hook_run_errors_total", "Failed runs of {} hooks.", *_LABELS)
    """Failures of hooks that may not fail."""
    allowed_errors_total = _counter(
        "hook_run_allowed_errors_total", "Failed runs of {} hooks that may fail.", *_LABELS
    )
    """Failures under ``allowFailure: true``."""


def of_owner(owner: str, *labels: str) -> Callable[[Row], Row]:
    """Return what adapts a row of :class:`HookRunMetrics` to an owner, with further labels."""
    return lambda row: msgspec.structs.replace(
        row, name=f"{owner}_{row.name}", help=row.help.format(owner), labels=(*labels, *row.labels)
    )


class ModuleMetrics(Family):
    """Modules."""

    run_seconds = _histogram("module_run_seconds", "Seconds of module runs.", "module")
    run_errors_total = _counter("module_run_errors_total", "Module runs that failed.", "module")
    delete_errors_total = _counter("module_delete_errors_total", "Removals of modules that failed.", "module")
    info = _gauge("module_info", "The state of each module; always 1.", "module", "state")
    """Set through :meth:`.Metrics.module_word`."""
    health = _gauge("module_health", "How the resources of each module are; always 1.", "module", "state")
    """``state``: ``Healthy``, ``Progressing`` or ``Failed``; there only when it is known."""
    failure = _gauge("module_failure", "Why a module failed its last run; always 1.", "module", "reason")
    """``reason``: that of the condition ``Ready``; only while failed."""
    failed_tries = _gauge("module_failed_tries", "How often in a row a module has failed.", "module")
    """There only while it is failed."""
    enabled = _gauge("module_enabled", "1 if the module is enabled, else 0.", "module")
    held_back = _gauge(
        "module_held_back", "When a change began to wait for its window, in Unix time.", "module"
    )
    """There only while something waits."""
    edit_waiting_seconds = _gauge(
        "module_edit_waiting_seconds",
        "For how long an edit of a module's values is not applied, or is wrong.",
        "module",
    )
    """There only while one waits."""
    maintenance = _gauge(
        "mm_module_maintenance", "Modules that Helm and healing leave alone; always 1.", "module", "state"
    )
    """``state``: the maintenance mode; there only while the module is in maintenance."""
    suspended = _gauge("module_suspended", "When a module was suspended, in Unix time.", "module")


class ReleaseMetrics(Family):
    """Releases of modules, and Helm."""

    helm_seconds = _histogram(
        "module_helm_seconds", "Seconds of Helm in module runs.", "module", "activation"
    )
    helm_operation_seconds = _histogram(
        "helm_operation_seconds",
        "Seconds that single operations of Helm took.",
        *("module", "activation", "operation"),
        buckets=OPERATION_BUCKETS,
    )
    """``operation``: template, check-upgrade or upgrade."""
    helm_upgrades_skipped_total = _counter(
        "helm_upgrades_skipped_total", "Runs in which Helm had nothing to do.", "module", "by"
    )
    """``by``: inputs or manifest."""
    resources_healed_total = _counter(
        "resources_healed_total", "Resources that were missing and were restored.", "module"
    )
    resources_corrected_total = _counter(
        "resources_corrected_total", "Resources that others changed and that were put back.", "module"
    )
    corrections_given_up_total = _counter(
        "corrections_given_up_total", "Changes that came back again and again, and were left.", "module"
    )
    drifted_resources = _gauge(
        "module_drifted_resources", "Resources that somebody changed and that are not put back.", "module"
    )
    """There only when it is known."""


class ConvergeMetrics(Family):
    """Converges, and what they depend on."""

    discover_errors_total = _counter(
        "module_discover_errors_total", "Failures to find out which modules are enabled."
    )
    convergence_seconds = _plain_counter("convergence_seconds", "Seconds that converges took.", "activation")
    convergence_total = _counter("convergence_total", "Converges that ended.", "activation")
    config_values_errors_total = _counter(
        "config_values_errors_total", "Edits of the values ConfigMap or Secret that were refused."
    )
    config_values_invalid = _gauge(
        "config_values_invalid",
        "1 if the values ConfigMap or Secret is invalid now, and older values, or none, are in force.",
    )


class QueueMetrics(Family):
    """Queues of tasks."""

    length = _gauge("tasks_queue_length", "Tasks in each queue.", "queue")
    head_age_seconds = _gauge("tasks_queue_head_age_seconds", "Age of the first task, in seconds.", "queue")
    retries = _gauge("tasks_queue_retries", "How often the first task has failed.", "queue")
    wait_seconds_total = _counter(
        "task_wait_in_queue_seconds_total",
        "Seconds that tasks waited in queues.",
        *("module", "hook", "binding", "queue"),
    )
    action_seconds = _histogram(
        "tasks_queue_action_duration_seconds",
        "Seconds that single operations of queues took.",
        *("queue_name", "queue_action"),
        buckets=SHORT_BUCKETS,
    )


class BindingMetrics(Family):
    """Bindings; ``module`` is empty for global hooks."""

    _LABELS: Final = ("module", "hook", "binding", "queue")
    count = _gauge("binding_count", "Bindings of each hook.", "module", "hook")
    hook_timeouts_total = _counter("hook_timeouts_total", "Hooks that were stopped at their timeout.")
    hook_doubts_total = _counter(
        "hook_doubts_total",
        "Runs that wrote what counts otherwise than it reads, such as a key twice in a patch of values.",
        *("module", "hook"),
    )
    snapshot_objects = _gauge("kube_snapshot_objects", "Objects in each binding's snapshot.", *_LABELS)
    snapshot_bytes = _gauge("kube_snapshot_bytes", "Bytes of each binding's snapshot as JSON.", *_LABELS)
    waiting = _gauge("kube_binding_waiting", "1 if a binding's objects cannot be watched.", *_LABELS)
    event_seconds = _histogram(
        "kube_event_duration_seconds", "Seconds to queue events.", *_LABELS, "kind", buckets=EVENT_BUCKETS
    )
    jq_filter_seconds = _histogram(
        "kube_jq_filter_duration_seconds",
        "Seconds that a jqFilter took for an object.",
        *(*_LABELS, "kind"),
        buckets=FILTER_BUCKETS,
    )


class WebhookHookMetrics(Family):
    """Hooks that answer the API server; ``module`` is empty for global hooks."""

    requests_total = _counter(
        "webhook_hook_requests_total",
        "Requests of the API server that hooks answered.",
        *("module", "hook", "binding", "result"),
    )
    """``result``: allowed, patched, denied, error, timeout or overload."""
    seconds = _histogram(
        "webhook_hook_seconds",
        "Seconds from a request of the API server to the answer of a hook.",
        *("module", "hook", "binding"),
        buckets=(*SHORT_BUCKETS, 1, 2, 5, 10, 30),
    )


class AdmissionMetrics(Family):
    """Pods that are admitted with presets, and what is reported of them."""

    podpreset_admissions_total = _counter(
        "podpreset_admissions_total", "Pods that the webhook answered.", "namespace", "result"
    )
    """``result``: injected, unchanged, conflict or error; see :class:`.BoundedLabels`."""
    podpreset_admission_errors_total = _counter(
        "podpreset_admission_errors_total", "Pods created without their presets because of an error."
    )
    requests_refused_total = _counter(
        "admission_requests_refused_total",
        "Requests that the admission server refused, as invalid or for lack of room.",
        *("webhook", "status"),
    )
    """``webhook``: its path, ``status``: that of HTTP."""
    podpreset_admission_seconds = _histogram(
        "podpreset_admission_seconds", "Seconds to answer for a pod.", buckets=(*SHORT_BUCKETS, 1, 2, 5)
    )
    expansion_unresolved_total = _counter(
        "expansion_unresolved_total", "References $(NAME) in pods that nothing defines."
    )
    pod_checks_dropped_total = _counter(
        "pod_checks_dropped_total", "Pods not checked, as too many waited or took too much memory."
    )
    env_sources_dropped_total = _counter(
        "env_sources_dropped_total", "Pods with too many, or too large, ConfigMaps and Secrets."
    )
    webhook_certificate_expiry_seconds = _gauge(
        "webhook_certificate_expiry_seconds", "Seconds until the admission server's certificate expires."
    )
    """NaN as long as no admission server is served, which makes no alert."""


class NotificationMetrics(Family):
    """Messages to people."""

    notifications_total = _counter(
        "notifications_total", "Messages to targets of notifications.", "target", "result"
    )
    """``result``: sent, retried (a try that failed) or given_up."""
    config_invalid = _gauge(
        "notifications_config_invalid",
        "1 if notify.yaml is invalid now, so that an older one or none is in force.",
    )
    targets = _gauge("notifications_targets", "Targets that are notified; 0 if nobody is.")
    unmatched_patterns = _gauge(
        "notifications_unmatched_patterns", "Patterns of modules in notify.yaml that match no module."
    )


class ProcessMetrics(Family):
    """The operator's process and its requests."""

    live_ticks = _plain_counter("live_ticks", "Grows by 1 every 10 seconds.")
    build_info = _gauge(
        "build_info", "The versions of the operator and of Python; always 1.", "version", "python"
    )
    leader = _gauge("leader", "1 if this replica leads, 0 if it stands by.")
    loop_lag_seconds = _histogram(
        "event_loop_lag_seconds",
        "Seconds by which the event loop wakes late.",
        buckets=(*SHORT_BUCKETS, 1, 2, 5),
    )
    request_result_total = _counter(
        "kubernetes_client_request_result_total",
        "Requests to the API server, each try counted.",
        *("code", "method"),
    )
    request_latency_seconds = _histogram(
        "kubernetes_client_request_latency_seconds",
        "Seconds that requests to the API server took.",
        *("verb", "url"),
        buckets=REQUEST_BUCKETS,
    )
    watch_errors_total = _counter(
        "watch_errors_total", "Lists and watches that failed or broke off.", "kind", "reason"
    )
    internal_errors_total = _counter(
        "internal_errors_total", "Parts of the operator that failed because of a bug and began again.", "part"
    )
    watch_up = _gauge(
        "watch_up",
        "1 if a watch that the operator depends on is up; 0 if it never came up or is down for a minute.",
        "watch",
    )
    connections_closed_total = _counter(
        "connections_closed_total",
        "Connections that the operator closed because of a limit, or whose handshake failed.",
        *("site", "reason"),
    )
    """``site``: admission or metrics, ``reason``; see :mod:`.connections`."""
