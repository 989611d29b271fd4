"""Whether admission is served, what is registered for it, and its definition."""

import pathlib

import pytest

from addon_operator.admission import events as admission_events
from addon_operator.admission import reviews
from addon_operator.admission.registration import registration_specs
from addon_operator.admission.server import site
from addon_operator.app import (
    admission,
    admission_observers,
    admission_part,
    admission_webhooks,
)
from addon_operator.kernel import errors
from addon_operator.kube.access import auth, credentials
from addon_operator.kube.client import api_errors
from addon_operator.settings import settings
from addon_operator.telemetry import metrics
from tests.fakes import api_server, logs

CRD = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/podpresets.settings.k8s.io"


def load(**environ: str) -> settings.Settings:
    return settings.load({}, {"ADDON_OPERATOR_NAMESPACE": "addons", **environ})


def in_cluster(directory: pathlib.Path) -> auth.ClusterAccess:
    for name in ("token", "ca.crt"):
        (directory / name).write_text("x")
    environ = {"KUBERNETES_SERVICE_HOST": "10.0.0.1", "KUBERNETES_SERVICE_PORT": "443"}
    source = credentials.ServiceAccountSource(directory, None, environ)
    return auth.ClusterAccess("the pod's service account", source.server, source)


@pytest.mark.parametrize(
    ("environ", "pod", "enabled"),
    [
        ({}, True, True),
        ({}, False, False),
        ({"WEBHOOK_URL": "https://10.0.0.1:9651"}, False, True),
        ({"ADMISSION_SERVER_ENABLED": "no"}, True, False),
        ({"ADMISSION_SERVER_ENABLED": "false", "WEBHOOK_URL": "https://10.0.0.1:9651"}, False, False),
        ({"ADMISSION_SERVER_ENABLED": "true"}, False, True),
    ],
    ids=["in a cluster", "outside", "with a URL", "switched off", "off in spite of a URL", "switched on"],
)
def test_admission_is_served_where_the_api_server_can_call_it(
    tmp_path: pathlib.Path, environ: dict[str, str], pod: bool, enabled: bool
) -> None:
    access = in_cluster(tmp_path) if pod else api_server.access_to("http://127.0.0.1:1")
    assert admission_part.is_enabled(load(**environ), access) is enabled


@pytest.mark.parametrize(
    "environ", [{}, {"ADMISSION_SERVER_ENABLED": "no", "WEBHOOK_URL": "https://h:1"}], ids=["outside", "off"]
)
def test_a_process_that_only_admits_needs_to_be_called(environ: dict[str, str]) -> None:
    access = api_server.access_to("http://127.0.0.1:1")
    with pytest.raises(errors.ConfigurationError, match=r"ADMISSION_ONLY is set.*WEBHOOK_URL"):
        admission_part.is_enabled(load(ADMISSION_ONLY="yes", **environ), access)


@pytest.mark.parametrize(
    ("environ", "address"),
    [
        ({}, registration_specs.ServiceAddress("addons", "addon-operator")),
        ({"WEBHOOK_SERVICE": "hooks"}, registration_specs.ServiceAddress("addons", "hooks")),
        ({"WEBHOOK_URL": "https://h:1/x/"}, registration_specs.UrlAddress("https://h:1/x")),
    ],
    ids=["Service", "another Service", "URL"],
)
def test_webhooks_are_called_by_service_or_by_url(environ: dict[str, str], address: object) -> None:
    assert admission_webhooks.client_address(load(**environ)) == address


@pytest.mark.parametrize("url", ["http://h:1", "https://me@h:1", "https://h?x=1", "https://h#x", "h:port"])
def test_a_url_that_the_api_server_would_not_call_is_refused(url: str) -> None:
    with pytest.raises(errors.ConfigurationError, match="WEBHOOK_URL"):
        load(WEBHOOK_URL=url)


def webhooks(**environ: str) -> dict[str, registration_specs.WebhookSpec]:
    return {
        webhook.path: webhook
        for configuration in admission_webhooks.configurations(load(**environ))
        for webhook in configuration.webhooks
    }


def test_configurations_that_the_chart_makes_are_filled_and_not_made() -> None:
    found = admission_webhooks.configurations(load(WEBHOOK_CONFIGURATION="addons-webhooks"))
    assert {(each.name, each.made_by_others) for each in found} == {("addons-webhooks", True)}
    found = admission_webhooks.configurations(load())
    assert {(each.name, each.made_by_others) for each in found} == {("addon-operator-addons", False)}
    assert {each.namespace for each in found} == {"addons"}


def test_pods_are_changed_on_creation_alone_and_never_held_up() -> None:
    webhook = webhooks()[admission_webhooks.MUTATE_PODS]
    assert (webhook.operations, webhook.resource) == (("CREATE",), "pods")
    assert (webhook.failure_policy, webhook.timeout_seconds) == ("Ignore", 5)
    assert (webhook.reinvocation_policy, webhook.side_effects) == ("IfNeeded", "NoneOnDryRun")


def test_the_failure_policy_is_that_of_the_setting_for_what_changes_pods_alone() -> None:
    found = webhooks(WEBHOOK_FAILURE_POLICY="Fail")
    assert {path: webhook.failure_policy for path, webhook in found.items()} == {
        admission_webhooks.MUTATE_PODS: "Fail",
        admission_webhooks.CHECK_PODS: "Ignore",
        admission_webhooks.NOTICE_PRESETS: "Ignore",
        admission_webhooks.CHECK_CONFIG: "Ignore",
    }


@pytest.mark.parametrize("path", [admission_webhooks.MUTATE_PODS, admission_webhooks.CHECK_PODS])
def test_the_namespaces_of_the_system_and_of_the_operator_are_exempt(path: str) -> None:
    (expression,) = webhooks()[path].namespace_selector["matchExpressions"]
    assert (expression["operator"], expression["values"]) == ("NotIn", ["addons", "kube-system"])


@pytest.mark.parametrize(
    ("path", "events_wanted", "conditions"),
    [
        (admission_webhooks.MUTATE_PODS, "yes", ["not-a-mirror-pod", "not-excluded"]),
        (admission_webhooks.CHECK_PODS, "yes", ["not-a-mirror-pod"]),
        (admission_webhooks.CHECK_PODS, "no", ["not-a-mirror-pod", "not-excluded"]),
    ],
)
def test_references_of_excluded_pods_are_checked_unless_switched_off(
    path: str, events_wanted: str, conditions: list[str]
) -> None:
    webhook = webhooks(EXPANSION_EVENTS=events_wanted)[path]
    assert list(webhook.match_conditions) == conditions


def test_of_all_config_maps_only_that_with_values_is_checked() -> None:
    webhook = webhooks(CONFIG_MAP="settings")[admission_webhooks.CHECK_CONFIG]
    assert webhook.namespace_selector == {"matchLabels": {"kubernetes.io/metadata.name": "addons"}}
    assert list(webhook.match_conditions) == ["values-config-map"]
    assert "== 'settings'" in webhook.match_conditions["values-config-map"]
    assert (webhook.operations, webhook.side_effects) == (("CREATE", "UPDATE"), "None")


def test_edits_of_values_are_not_checked_if_that_is_not_wanted() -> None:
    assert admission_webhooks.CHECK_CONFIG not in webhooks(CONFIG_VALIDATION="no")


@pytest.mark.parametrize(
    "environ",
    [{}, {"CONFIG_VALIDATION": "no"}, {"EXPANSION_EVENTS": "no"}],
    ids=["all", "no check", "no Events"],
)
def test_the_site_answers_the_webhooks_that_are_registered_and_no_others(environ: dict[str, str]) -> None:
    async def allowing(review: reviews.Review) -> reviews.ReviewVerdict:
        return reviews.ALLOWED

    served = admission_webhooks.routes(
        load(**environ),
        mutate_pods=allowing,
        check_pods=allowing,
        notice_presets=allowing,
        check_config=allowing,
    )
    assert served.keys() == webhooks(**environ).keys()


def test_operators_in_different_namespaces_have_configurations_of_their_own() -> None:
    names = {each.name for each in admission_webhooks.configurations(load())}
    others = admission_webhooks.configurations(settings.load({}, {"NAMESPACE": "other"}))
    assert names.isdisjoint(each.name for each in others)


async def test_the_definition_is_applied_with_force() -> None:
    server = api_server.ApiServer()
    kube = api_server.client_of(server, api_server.Pauses())
    server.on("PATCH", CRD, {})
    await admission.apply_definition(kube, logs.Lines())
    (asked,) = server.asked
    assert asked.query == {"fieldManager": "addon-operator", "force": "true"}
    assert asked.body["kind"] == "CustomResourceDefinition"


async def test_without_the_right_to_apply_the_definition_there_is_a_warning() -> None:
    log = logs.Lines()
    server = api_server.ApiServer()
    kube = api_server.client_of(server, api_server.Pauses())
    server.on("PATCH", CRD, api_server.status(403, "Forbidden"))
    await admission.apply_definition(kube, log)
    (warning,) = log.warnings
    assert "podpresets.settings.k8s.io" in warning


async def test_other_errors_of_the_definition_are_left_to_the_caller() -> None:
    server = api_server.ApiServer()
    kube = api_server.client_of(server, api_server.Pauses())
    server.on("PATCH", CRD, api_server.status(422, "Invalid"))
    with pytest.raises(api_errors.Invalid):
        await admission.apply_definition(kube, logs.Lines())


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
) -> admission_observers.AdmissionLog:
    return admission_observers.AdmissionLog(meters, log, pauses)


def series(meters: metrics.Metrics) -> list[str]:
    lines = meters.render().body.decode().splitlines()
    return [line.removeprefix("addon_operator_") for line in lines if line.startswith("addon_operator_")]


@pytest.mark.parametrize("result", ["injected", "unchanged", "conflict", "error"])
async def test_each_answer_is_counted_and_measured(
    observer: admission_observers.AdmissionLog, meters: metrics.Metrics, result: admission_events.Result
) -> None:
    observer(admission_events.PodAdmitted("shop", result, 0.002))
    found = series(meters)
    assert f'podpreset_admissions_total{{namespace="shop",result="{result}"}} 1.0' in found
    assert "podpreset_admission_seconds_sum 0.002" in found


async def test_findings_are_counted(
    observer: admission_observers.AdmissionLog, meters: metrics.Metrics
) -> None:
    observer(admission_events.ReferencesUnresolved(3))
    observer(admission_events.Dropped("check"))
    observer(admission_events.Dropped("sources"))
    assert {
        "expansion_unresolved_total 3.0",
        "pod_checks_dropped_total 1.0",
        "env_sources_dropped_total 1.0",
    } <= set(series(meters))


@pytest.mark.parametrize(
    ("path", "counted"), [(admission_webhooks.MUTATE_PODS, True), (admission_webhooks.CHECK_PODS, False)]
)
async def test_a_pod_that_took_too_long_counts_as_an_error(
    observer: admission_observers.AdmissionLog,
    meters: metrics.Metrics,
    log: logs.Lines,
    path: str,
    counted: bool,
) -> None:
    observer(admission_events.HandlerFailed(path, TimeoutError()))
    assert ('podpreset_admissions_total{namespace="",result="error"} 1.0' in series(meters)) is counted
    assert "took too long" in log.warnings[0]


async def test_requests_that_are_no_reviews_are_counted_and_warned_of_once_a_minute(
    observer: admission_observers.AdmissionLog,
    meters: metrics.Metrics,
    log: logs.Lines,
    pauses: api_server.Pauses,
) -> None:
    for number in range(100):
        observer(admission_events.ReviewRefused("/mutate-pods", 415, f"the {number}. is not JSON"))
    assert len(log.warnings) == 1
    assert 'admission_requests_refused_total{status="415",webhook="/mutate-pods"} 100.0' in series(meters)
    pauses.now += admission_observers.REFUSALS_SECONDS
    observer(admission_events.ReviewRefused("/mutate-pods", 415, "it is not JSON"))
    assert len(log.warnings) == 2


async def test_what_others_wrote_is_cut_and_cleaned_before_it_is_logged(
    observer: admission_observers.AdmissionLog, log: logs.Lines
) -> None:
    observer(
        admission_events.ReviewRefused("/mutate-pods", 400, "a\n\x1b[31mforged line\u202e" + "x" * 10_000)
    )
    (line,) = log.warnings
    assert line.isprintable()
    assert "a\N{REPLACEMENT CHARACTER}\N{REPLACEMENT CHARACTER}[31mforged line" in line
    assert len(line) < 600


async def test_namespaces_of_requests_make_a_bounded_number_of_series(
    observer: admission_observers.AdmissionLog, meters: metrics.Metrics, pauses: api_server.Pauses
) -> None:
    most = admission_observers.NAMESPACES_MAX
    for number in range(most + 2):
        observer(admission_events.PodAdmitted(f"n{number}", "unchanged", 0.0))
    found = [line for line in series(meters) if line.startswith("podpreset_admissions_total")]
    assert len(found) == most + 1
    assert 'podpreset_admissions_total{namespace="(others)",result="unchanged"} 2.0' in found
    pauses.now += admission_observers.NAMESPACE_SECONDS + 1
    observer(admission_events.PodAdmitted("new", "unchanged", 0.0))
    found = [line for line in series(meters) if line.startswith("podpreset_admissions_total")]
    assert found == [
        'podpreset_admissions_total{namespace="(others)",result="unchanged"} 2.0',
        'podpreset_admissions_total{namespace="new",result="unchanged"} 1.0',
    ]


async def test_a_client_without_a_certificate_is_reported_once_with_what_to_do(
    observer: admission_observers.AdmissionLog, meters: metrics.Metrics, log: logs.Lines
) -> None:
    for _ in range(3):
        observer(admission_events.ConnectionClosed("handshake", "PEER_DID_NOT_RETURN_A_CERTIFICATE"))
    observer(admission_events.ConnectionClosed("handshake", "HTTP_REQUEST"))
    (line,) = log.warnings
    assert "WEBHOOK_CLIENT_CA" in line
    assert 'connections_closed_total{reason="handshake",site="admission"} 4.0' in series(meters)


async def test_reviews_that_come_too_early_are_reported_once_and_not_as_a_warning(
    observer: admission_observers.AdmissionLog, log: logs.Lines
) -> None:
    for _ in range(15):
        observer(admission_events.ReviewRefused("/mutate-pods", 503, site.NOT_READY))
    assert [level for level, _ in log.lines] == ["info"]
    observer(admission_events.ReviewRefused("/mutate-pods", 503, "too many reviews are being answered"))
    assert len(log.warnings) == 1
