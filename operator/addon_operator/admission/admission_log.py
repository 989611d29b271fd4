"""What happens in admission, as metrics and log records."""

from typing import Final

from addon_operator.admission import events
from addon_operator.admission.pods import pod_handler
from addon_operator.admission.server import site
from addon_operator.aio import warn_once
from addon_operator.kernel import clock
from addon_operator.telemetry import metrics

NAMESPACES_MAX: Final = 500
"""How many namespaces have series of their own."""
NAMESPACE_SECONDS: Final = 24 * 3600.0
"""How long a namespace without new pods keeps its series."""
REFUSALS_SECONDS: Final = 60.0
"""How often the log reports refused requests; all of them are counted."""
_SHOWN_MAX: Final = 300
_UNKNOWN_NAMESPACE: Final = ""
_NO_CERTIFICATE: Final = frozenset({"PEER_DID_NOT_RETURN_A_CERTIFICATE", "CERTIFICATE_VERIFY_FAILED"})


class AdmissionLog:
    """Shows what happens in admission as metrics and log records."""

    def __init__(self, meters: metrics.Metrics, log: warn_once.Log, time: clock.Clock) -> None:
        self._all_meters = meters
        self._meters = meters.admission
        self._log = log
        self._clock = time
        self._refusal_logged: float | None = None
        self._early_logged = False
        self._strangers = warn_once.WarnOnce(log)
        self._failures = warn_once.WarnOnce(log)
        self._sources = warn_once.WarnOnce(log)
        self._namespaces = metrics.BoundedLabels(
            NAMESPACES_MAX, NAMESPACE_SECONDS, self._forget_namespace, time.monotonic
        )

    def __call__(self, event: events.Event) -> None:
        """Show the event."""
        match event:
            case events.PodAdmitted():
                self._answered(self._namespaces.label(event.namespace), event.result)
                self._meters.podpreset_admission_seconds.observe(event.seconds)
            case events.ReferencesUnresolved():
                self._meters.expansion_unresolved_total.inc(event.count)
            case events.Dropped("check"):
                self._meters.pod_checks_dropped_total.inc()
            case events.Dropped("sources"):
                self._meters.env_sources_dropped_total.inc()
            case events.SourceUnreadable():
                self._sources.warn(
                    f"a source of variables cannot be read and counts as empty: {event.problem}"
                )
            case events.ReviewRefused():
                self._refused(event)
            case events.HandlerFailed():
                self._failed(event)
            case events.ConnectionClosed():
                self._connection_closed(event)

    def _answered(self, namespace: str, result: events.Result) -> None:
        self._meters.podpreset_admissions_total.labels(namespace=namespace, result=result).inc()
        if result == "error":
            self._meters.podpreset_admission_errors_total.inc()

    def _refused(self, event: events.ReviewRefused) -> None:
        """Count requests that are not reviews, and warn of one now and then: anybody may send any number."""
        path, status = event.path, str(event.status)
        self._meters.requests_refused_total.labels(webhook=path, status=status).inc()
        if event.reason == site.NOT_READY:
            self._refused_early()
            return
        now = self._clock.monotonic()
        if self._refusal_logged is None or now - self._refusal_logged >= REFUSALS_SECONDS:
            self._refusal_logged = now
            text = f"a request to {path} of the admission server got {status}: {shown(event.reason)}"
            self._log.warning(f"{text} (logged once a minute; admission_requests_refused_total counts all)")

    def _refused_early(self) -> None:
        if not self._early_logged:
            self._early_logged = True
            self._log.info(
                "reviews that come before the PodPresets are read get 503, and WEBHOOK_FAILURE_POLICY decides"
            )

    def _connection_closed(self, event: events.ConnectionClosed) -> None:
        """Count it, and warn whoever may have forgotten to give the API server a certificate."""
        self._all_meters.connection_closed("admission", event.reason)
        if event.details in _NO_CERTIFICATE:
            self._strangers.warn(
                "a client without a certificate of WEBHOOK_CLIENT_CA was refused; if that was the API "
                "server, its webhooks fail: configure it to present one (docs/explanation/admission.md)"
            )

    def _failed(self, event: events.HandlerFailed) -> None:
        """Warn of a handler that raised or took too long."""
        path, error = event.path, event.error
        if path == pod_handler.PATH:
            self._answered(_UNKNOWN_NAMESPACE, "error")
        text = "it took too long" if isinstance(error, TimeoutError) else f"{type(error).__name__}: {error}"
        how = "answered without its handler" if event.is_allowed else "not answered"
        self._failures.warn(f"a review at {path} was {how}: {text}")

    def _forget_namespace(self, namespace: str) -> None:
        self._meters.podpreset_admissions_total.remove_by_labels({"namespace": namespace})


def shown(text: str) -> str:
    """Return what somebody else has written, on one line of the log."""
    clean = "".join(
        letter if letter.isprintable() else "\N{REPLACEMENT CHARACTER}" for letter in text[:_SHOWN_MAX]
    )
    return clean if len(text) <= _SHOWN_MAX else f"{clean}…"
