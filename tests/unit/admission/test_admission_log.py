"""What metrics and the log show of admission."""

import pytest

from addon_operator.admission import admission_log, events
from addon_operator.admission.pods import pod_handler
from addon_operator.admission.server import site
from addon_operator.telemetry import metrics
from tests.support import api_server, logs


@pytest.fixture
def meters() -> metrics.Metrics:
    return metrics.Metrics()


@pytest.fixture
def pauses() -> api_server.Pauses:
    return api_server.Pauses()


@pytest.fixture
def log() -> logs.Lines:
    return logs.Lines()


@pytest.fixture
async def observer(
    meters: metrics.Metrics, log: logs.Lines, pauses: api_server.Pauses
) -> admission_log.AdmissionLog:
    return admission_log.AdmissionLog(meters, log, pauses)


def series(meters: metrics.Metrics) -> list[str]:
    lines = meters.render().decode().splitlines()
    return [line.removeprefix("addon_operator_") for line in lines if line.startswith("addon_operator_")]


@pytest.mark.parametrize("result", ["injected", "unchanged", "conflict", "error"])
async def test_each_answer_is_counted_and_measured(
    observer: admission_log.AdmissionLog, meters: metrics.Metrics, result: events.Result
) -> None:
    observer(events.PodAdmitted("shop", result, 0.002))
    found = series(meters)
    assert f'podpreset_admissions_total{{namespace="shop",result="{result}"}} 1.0' in found
    assert f"podpreset_admission_errors_total {float(result == 'error')}" in found
    assert "podpreset_admission_seconds_sum 0.002" in found


async def test_findings_are_counted(observer: admission_log.AdmissionLog, meters: metrics.Metrics) -> None:
    observer(events.ReferencesUnresolved(3))
    observer(events.Dropped("check"))
    observer(events.Dropped("sources"))
    assert {
        "expansion_unresolved_total 3.0",
        "pod_checks_dropped_total 1.0",
        "env_sources_dropped_total 1.0",
    } <= set(series(meters))


@pytest.mark.parametrize(("path", "counted"), [(pod_handler.PATH, True), ("/check-pods", False)])
async def test_a_pod_that_took_too_long_counts_as_an_error(
    observer: admission_log.AdmissionLog,
    meters: metrics.Metrics,
    log: logs.Lines,
    path: str,
    counted: bool,
) -> None:
    observer(events.HandlerFailed(path, TimeoutError()))
    assert ('podpreset_admissions_total{namespace="",result="error"} 1.0' in series(meters)) is counted
    assert f"podpreset_admission_errors_total {float(counted)}" in series(meters)
    assert "took too long" in log.warnings[0]


async def test_requests_that_are_no_reviews_are_counted_and_warned_of_once_a_minute(
    observer: admission_log.AdmissionLog,
    meters: metrics.Metrics,
    log: logs.Lines,
    pauses: api_server.Pauses,
) -> None:
    for number in range(100):
        observer(events.ReviewRefused("/mutate-pods", 415, f"the {number}. is not JSON"))
    assert len(log.warnings) == 1
    assert 'admission_requests_refused_total{status="415",webhook="/mutate-pods"} 100.0' in series(meters)
    pauses.now += admission_log.REFUSALS_SECONDS
    observer(events.ReviewRefused("/mutate-pods", 415, "it is not JSON"))
    assert len(log.warnings) == 2


async def test_what_others_wrote_is_cut_and_cleaned_before_it_is_logged(
    observer: admission_log.AdmissionLog, log: logs.Lines
) -> None:
    observer(events.ReviewRefused("/mutate-pods", 400, "a\n\x1b[31mforged line\u202e" + "x" * 10_000))
    (line,) = log.warnings
    assert line.isprintable()
    assert "a\N{REPLACEMENT CHARACTER}\N{REPLACEMENT CHARACTER}[31mforged line" in line
    assert len(line) < 600


async def test_namespaces_of_requests_make_a_bounded_number_of_series(
    observer: admission_log.AdmissionLog, meters: metrics.Metrics, pauses: api_server.Pauses
) -> None:
    most = admission_log.NAMESPACES_MAX
    for number in range(most + 2):
        observer(events.PodAdmitted(f"n{number}", "unchanged", 0.0))
    found = [line for line in series(meters) if line.startswith("podpreset_admissions_total")]
    assert len(found) == most + 1
    assert 'podpreset_admissions_total{namespace="(others)",result="unchanged"} 2.0' in found
    pauses.now += admission_log.NAMESPACE_SECONDS + 1
    observer(events.PodAdmitted("new", "unchanged", 0.0))
    found = [line for line in series(meters) if line.startswith("podpreset_admissions_total")]
    assert found == [
        'podpreset_admissions_total{namespace="(others)",result="unchanged"} 2.0',
        'podpreset_admissions_total{namespace="new",result="unchanged"} 1.0',
    ]


async def test_a_client_without_a_certificate_is_reported_once_with_what_to_do(
    observer: admission_log.AdmissionLog, meters: metrics.Metrics, log: logs.Lines
) -> None:
    for _ in range(3):
        observer(events.ConnectionClosed("handshake", "PEER_DID_NOT_RETURN_A_CERTIFICATE"))
    observer(events.ConnectionClosed("handshake", "HTTP_REQUEST"))
    (line,) = log.warnings
    assert "WEBHOOK_CLIENT_CA" in line
    assert 'connections_closed_total{reason="handshake",site="admission"} 4.0' in series(meters)


async def test_reviews_that_come_too_early_are_reported_once_and_not_as_a_warning(
    observer: admission_log.AdmissionLog, log: logs.Lines
) -> None:
    for _ in range(15):
        observer(events.ReviewRefused("/mutate-pods", 503, site.NOT_READY))
    assert [level for level, _ in log.lines] == ["info"]
    observer(events.ReviewRefused("/mutate-pods", 503, "too many reviews are being answered"))
    assert len(log.warnings) == 1
