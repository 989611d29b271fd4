"""What happens to kubernetes bindings, as metrics and log records."""

import prometheus_client
import structlog

from addon_operator.engine import state
from addon_operator.hook_contract.configuration import bindings
from addon_operator.telemetry import metrics


class BindingObserver:
    """Implements :class:`.BindingObserver`."""

    def __init__(self, meters: metrics.Metrics, log: structlog.typing.FilteringBoundLogger) -> None:
        self._meters = meters
        self._log = log

    def binding_waits(self, hook: state.Hook, binding: bindings.KubernetesBinding, reason: str) -> None:
        """Log why its objects cannot be followed, and show that it is so."""
        told = f"binding {binding.name} ({binding.kind}) of hook {hook.name} waits: {reason}"
        self._log.warning(told, **_fields(hook))
        self._meters.bindings.waiting.labels(**_labels(hook, binding)).set(1)

    def binding_follows(self, hook: state.Hook, binding: bindings.KubernetesBinding) -> None:
        """Log that all is well again."""
        self._log.info(
            f"binding {binding.name} ({binding.kind}) of hook {hook.name} waits no more", **_fields(hook)
        )
        self._meters.bindings.waiting.labels(**_labels(hook, binding)).set(0)

    def objects_counted(self, hook: state.Hook, binding: bindings.KubernetesBinding, count: int) -> None:
        """Show the number of objects."""
        self._meters.bindings.snapshot_objects.labels(**_labels(hook, binding)).set(count)

    def snapshot_measured(self, hook: state.Hook, binding: bindings.KubernetesBinding, size: int) -> None:
        """Show the size of its snapshot."""
        self._meters.bindings.snapshot_bytes.labels(**_labels(hook, binding)).set(size)

    def objects_filtered(
        self, hook: state.Hook, binding: bindings.KubernetesBinding, count: int, seconds: float
    ) -> None:
        """Measure how long an object took on average."""
        family = self._meters.bindings.jq_filter_seconds.labels(**_labels(hook, binding), kind=binding.kind)
        _observe(family, count, seconds)

    def events_handled(
        self, hook: state.Hook, binding: bindings.KubernetesBinding, count: int, seconds: float
    ) -> None:
        """Measure how long an event took on average."""
        family = self._meters.bindings.event_seconds.labels(**_labels(hook, binding), kind=binding.kind)
        _observe(family, count, seconds)

    def binding_gone(self, hook: state.Hook, binding: bindings.KubernetesBinding) -> None:
        """Remove its series."""
        labels = _labels(hook, binding)
        family = self._meters.bindings
        for gauge in (family.waiting, family.snapshot_objects, family.snapshot_bytes):
            gauge.remove_by_labels(labels)
        for histogram in (family.event_seconds, family.jq_filter_seconds):
            histogram.remove_by_labels(labels)


def _observe(family: prometheus_client.Histogram, count: int, seconds: float) -> None:
    for _ in range(count):
        family.observe(seconds / count)


def _labels(hook: state.Hook, binding: bindings.KubernetesBinding) -> dict[str, str]:
    return {
        "module": hook.module or "",
        "hook": hook.name,
        "binding": binding.name,
        "queue": binding.queue,
    }


def _fields(hook: state.Hook) -> dict[str, str]:
    return {"hook": hook.name} | ({"module": hook.module} if hook.module else {})
