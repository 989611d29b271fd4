"""What happens in admission, as metrics, log records and the status of presets."""

from collections.abc import Sequence
from typing import Final

from addon_operator.admission import pod_handler, preset_status, reporting
from addon_operator.app import admission_webhooks
from addon_operator.podpreset import model
from addon_operator.telemetry import metrics

_UNKNOWN_NAMESPACE: Final = ""


class AdmissionObserver:
    """Implements the observers of the handlers and of the site."""

    def __init__(
        self, meters: metrics.Metrics, statuses: preset_status.PresetStatuses, log: reporting.Log
    ) -> None:
        self._meters = meters.admission
        self._statuses = statuses
        self._refusals = reporting.Trouble(log)
        self._failures = reporting.Trouble(log)

    def pod_admitted(self, namespace: str, result: pod_handler.Result, seconds: float) -> None:
        """Count and measure an answer."""
        self._meters.podpreset_admissions_total.labels(namespace=namespace, result=result).inc()
        self._meters.podpreset_admission_seconds.observe(seconds)

    def presets_injected(self, namespace: str, presets: Sequence[model.PresetName]) -> None:
        """Show it in the status of the presets."""
        self._statuses.presets_injected(namespace, presets)

    def presets_conflicted(self, namespace: str, presets: Sequence[model.PresetName]) -> None:
        """Show it in the status of the presets."""
        self._statuses.presets_conflicted(namespace, presets)

    def references_unresolved(self, count: int) -> None:
        """Count them."""
        self._meters.expansion_unresolved_total.inc(count)

    def check_dropped(self) -> None:
        """Count it."""
        self._meters.pod_checks_dropped_total.inc()

    def sources_dropped(self) -> None:
        """Count it."""
        self._meters.env_sources_dropped_total.inc()

    def answered(self, path: str, status: int, seconds: float) -> None:
        """Measured by the handlers."""

    def refused(self, path: str, status: int, reason: str) -> None:
        """Warn of requests that are no reviews."""
        self._refusals.report(f"a request to {path} of the admission server got {status}: {reason}")

    def failed(self, path: str, error: Exception) -> None:
        """Warn of a handler that raised or took too long."""
        if path == admission_webhooks.MUTATE_PODS:
            labels = {"namespace": _UNKNOWN_NAMESPACE, "result": "error"}
            self._meters.podpreset_admissions_total.labels(**labels).inc()
        text = "it took too long" if isinstance(error, TimeoutError) else f"{type(error).__name__}: {error}"
        self._failures.report(f"a review at {path} was answered without its handler: {text}")
