"""Whether admission is served, what is registered for it, and its definition."""

import pathlib

import pytest

from addon_operator.admission import reviews
from addon_operator.admission.certificates import (
    certificate_store,
    certificate_store_files,
    path_keys,
    tls,
)
from addon_operator.admission.conversions import converter
from addon_operator.admission.hooks import hook_reviews
from addon_operator.admission.pods import pod_handler
from addon_operator.admission.registration import registration_specs
from addon_operator.app import (
    admission,
    admission_part,
    admission_webhooks,
)
from addon_operator.kernel import errors
from addon_operator.kube import api_errors
from addon_operator.kube.access import auth, credentials
from addon_operator.settings import settings, settings_loading
from tests.support import api_server, logs, review_handlers, rows

CRD = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/podpresets.settings.k8s.io"


def load(**environ: str) -> settings.Settings:
    return settings_loading.load({}, {"ADDON_OPERATOR_NAMESPACE": "addons", **environ})


def in_cluster(directory: pathlib.Path) -> auth.ClusterAccess:
    for name in ("token", "ca.crt"):
        (directory / name).write_text("x")
    environ = {"KUBERNETES_SERVICE_HOST": "10.0.0.1", "KUBERNETES_SERVICE_PORT": "443"}
    source = credentials.ServiceAccountSource(directory, None, environ)
    return auth.ClusterAccess("the pod's service account", source.server, source)


@rows.each(
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


@rows.each(
    "environ", [{}, {"ADMISSION_SERVER_ENABLED": "no", "WEBHOOK_URL": "https://h:1"}], ids=["outside", "off"]
)
def test_a_process_that_only_admits_needs_to_be_called(environ: dict[str, str]) -> None:
    access = api_server.access_to("http://127.0.0.1:1")
    with pytest.raises(errors.ConfigurationError, match=r"ADMISSION_ONLY is set.*WEBHOOK_URL"):
        admission_part.is_enabled(load(ADMISSION_ONLY="yes", **environ), access)


@rows.each(
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


@rows.each("url", ["http://h:1", "https://me@h:1", "https://h?x=1", "https://h#x", "h:port"])
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
    webhook = webhooks()[pod_handler.PATH]
    assert (webhook.operations, webhook.resource) == (("CREATE",), "pods")
    assert (webhook.failure_policy, webhook.timeout_seconds) == ("Ignore", 5)
    assert (webhook.reinvocation_policy, webhook.side_effects) == ("IfNeeded", "NoneOnDryRun")


def test_the_failure_policy_is_that_of_the_setting_for_what_changes_pods_alone() -> None:
    found = webhooks(WEBHOOK_FAILURE_POLICY="Fail")
    assert {path: webhook.failure_policy for path, webhook in found.items()} == {
        pod_handler.PATH: "Fail",
        admission_webhooks.CHECK_PODS: "Ignore",
        admission_webhooks.NOTICE_PRESETS: "Ignore",
        admission_webhooks.CHECK_CONFIG: "Ignore",
    }


@rows.each("path", [pod_handler.PATH, admission_webhooks.CHECK_PODS])
def test_the_namespaces_of_the_system_and_of_the_operator_are_exempt(path: str) -> None:
    (expression,) = webhooks()[path].namespace_selector["matchExpressions"]
    assert (expression["operator"], expression["values"]) == ("NotIn", ["addons", "kube-system"])


@rows.each(
    ("path", "events_wanted", "conditions"),
    [
        (pod_handler.PATH, "yes", ["not-a-mirror-pod", "not-excluded"]),
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


def no_certificates() -> certificate_store.CertificateStore:
    clock = api_server.Pauses()
    kube = api_server.client_of(api_server.ApiServer(), clock)
    return certificate_store.CertificateStore(
        certificate_store_files.FileSource(pathlib.Path("nowhere")),
        tls.LiveTls(),
        path_keys.PathKeys(kube, "system", "none", clock),
        logs.Lines(),
        clock,
    )


@rows.each(
    "environ",
    [{}, {"CONFIG_VALIDATION": "no"}, {"EXPANSION_EVENTS": "no"}],
    ids=["all", "no check", "no Events"],
)
def test_the_site_answers_the_webhooks_that_are_registered_and_no_others(environ: dict[str, str]) -> None:
    async def allowing(review: reviews.Review) -> reviews.ReviewVerdict:
        return reviews.ALLOWED

    handler = review_handlers.Calling(allowing)
    served = admission_webhooks.routes(
        load(**environ),
        mutate_pods=handler,
        check_pods=handler,
        notice_presets=handler,
        check_config=handler,
        ask_hooks=handler,
        convert=converter.ConversionHandler(converter.DeclaredConversions()),
        guard=no_certificates(),
    )
    of_hooks = {*hook_reviews.ROUTES.values(), converter.ROUTE}
    assert served.keys() - of_hooks == webhooks(**environ).keys()
    guarded = {path for path, route in served.items() if route.guard is not None}
    assert guarded == of_hooks | {each.path for each in webhooks(**environ).values() if each.is_guarded}


def test_operators_in_different_namespaces_have_configurations_of_their_own() -> None:
    names = {each.name for each in admission_webhooks.configurations(load())}
    others = admission_webhooks.configurations(settings_loading.load({}, {"NAMESPACE": "other"}))
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
