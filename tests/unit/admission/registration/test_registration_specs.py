"""What is registered, as the API stores it."""

import base64
import copy
from typing import Any

import pytest
from msgspec import structs

from addon_operator.admission.registration import registration_specs as specs
from tests.support import rows

BUNDLE = b"-----BEGIN CERTIFICATE-----"
SERVICE = specs.ServiceAddress("system", "addon-operator")
PODS = specs.WebhookSpec(
    name="pods.podpreset.addon-operator.io",
    path="/mutate-pods",
    operations=("CREATE",),
    resource="pods",
    side_effects="NoneOnDryRun",
    reinvocation_policy="IfNeeded",
    namespace_selector={"matchExpressions": [{"key": "a", "operator": "NotIn", "values": ["b"]}]},
    match_conditions={"no-mirror": "true"},
)
PRESETS = specs.WebhookSpec(
    "presets.addon-operator.io",
    "/presets",
    ("CREATE", "DELETE"),
    "podpresets",
    "settings.k8s.io",
    "v1alpha1",
)
RULE = {
    "operations": ["CREATE"],
    "apiGroups": [""],
    "apiVersions": ["v1"],
    "resources": ["pods"],
    "scope": "Namespaced",
}
MUTATING = specs.WebhookConfiguration(specs.ConfigurationKind.MUTATING, "addon-operator", (PODS,))
VALIDATING = specs.WebhookConfiguration(specs.ConfigurationKind.VALIDATING, "addon-operator", (PRESETS,))


def webhooks(**changes: object) -> list[dict[str, Any]]:
    webhook = structs.replace(PODS, **changes)
    return specs.webhooks_of(structs.replace(MUTATING, webhooks=(webhook,)), SERVICE, BUNDLE, "k")


def test_a_mutating_webhook_is_written_out() -> None:
    assert webhooks() == [
        {
            "name": "pods.podpreset.addon-operator.io",
            "admissionReviewVersions": ["v1"],
            "clientConfig": {
                "service": {
                    "namespace": "system",
                    "name": "addon-operator",
                    "port": 443,
                    "path": "/mutate-pods",
                },
                "caBundle": base64.b64encode(BUNDLE).decode(),
            },
            "rules": [
                {
                    "operations": ["CREATE"],
                    "apiGroups": [""],
                    "apiVersions": ["v1"],
                    "resources": ["pods"],
                    "scope": "Namespaced",
                }
            ],
            "failurePolicy": "Ignore",
            "matchPolicy": "Equivalent",
            "namespaceSelector": {"matchExpressions": [{"key": "a", "operator": "NotIn", "values": ["b"]}]},
            "objectSelector": {},
            "sideEffects": "NoneOnDryRun",
            "timeoutSeconds": 5,
            "matchConditions": [{"name": "no-mirror", "expression": "true"}],
            "reinvocationPolicy": "IfNeeded",
        }
    ]


def test_a_validating_webhook_has_no_second_call() -> None:
    (webhook,) = specs.webhooks_of(VALIDATING, SERVICE, None, "k")
    assert "reinvocationPolicy" not in webhook
    assert "caBundle" not in webhook["clientConfig"]
    assert webhook["matchConditions"] == []


@rows.each(
    ("base", "called"),
    [
        ("https://host", "https://host/mutate-pods"),
        ("https://10.0.0.1:9651/", "https://10.0.0.1:9651/mutate-pods"),
        ("https://[::1]:9651/hooks", "https://[::1]:9651/hooks/mutate-pods"),
    ],
)
def test_the_path_is_appended_to_a_url(base: str, called: str) -> None:
    assert specs.url_address(base).client_config("/mutate-pods") == {"url": called}


@rows.each(
    ("url", "says"),
    [
        pytest.param("http://host", "write https://", id="no TLS"),
        pytest.param("host:9651", "write https://", id="no scheme"),
        pytest.param("", "write https://", id="empty"),
        pytest.param("https://", "write https://", id="no host"),
        pytest.param("https://host:0", "write https://", id="port zero"),
        pytest.param("https://host:99999", "is not a URL", id="no port"),
        pytest.param("https://[::1", "is not a URL", id="half an address"),
        pytest.param("https://hóst", "write https://", id="no ASCII"),
        pytest.param("https://me@host", "user, query or fragment", id="user"),
        pytest.param("https://host?a=b", "user, query or fragment", id="query"),
        pytest.param("https://host#a", "user, query or fragment", id="fragment"),
    ],
)
def test_a_url_that_cannot_be_called_is_refused(url: str, says: str) -> None:
    with pytest.raises(specs.AddressError, match=says):
        specs.url_address(url)


def test_the_certificate_needs_the_names_that_are_called() -> None:
    assert "addon-operator.system.svc" in SERVICE.server_names()
    assert specs.url_address("https://[::1]:9651/a").server_names() == {"::1"}
    assert specs.url_address("https://Host.example:9651").server_names() == {"host.example"}


def test_the_digest_tells_specifications_apart_but_not_certificates() -> None:
    assert specs.digest(MUTATING, SERVICE) == specs.digest(copy.deepcopy(MUTATING), SERVICE)
    other = structs.replace(MUTATING, webhooks=(structs.replace(PODS, failure_policy="Fail"),))
    assert specs.digest(other, SERVICE) != specs.digest(MUTATING, SERVICE)
    assert specs.digest(MUTATING, specs.url_address("https://x")) != specs.digest(MUTATING, SERVICE)


def test_what_is_wanted_is_recognised_with_what_a_newer_api_adds() -> None:
    live = webhooks()
    live[0]["somethingNew"] = "Default"
    live[0]["rules"][0]["somethingNew"] = ["Default"]
    live[0]["clientConfig"]["service"]["somethingNew"] = {"a": "Default"}
    live[0]["matchConditions"][0]["somethingNew"] = 1
    assert specs.is_within(webhooks(), live)


def test_no_conditions_are_stored_as_no_field() -> None:
    live = webhooks(match_conditions={})
    del live[0]["matchConditions"]
    assert specs.is_within(webhooks(match_conditions={}), live)


@rows.each(
    "edit",
    [
        pytest.param({"failurePolicy": "Fail"}, id="policy"),
        pytest.param({"objectSelector": {"matchLabels": {"a": "b"}}}, id="an added selector"),
        pytest.param(
            {"objectSelector": {"matchExpressions": [{"key": "a", "operator": "Exists"}]}},
            id="added expressions",
        ),
        pytest.param({"rules": [{**RULE, "scope": "*"}]}, id="a field of a rule"),
        pytest.param({"rules": [RULE, RULE]}, id="one more rule"),
        pytest.param({"matchConditions": []}, id="removed conditions"),
        pytest.param({"rules": []}, id="no rules"),
        pytest.param({"clientConfig": {"url": "https://evil.example"}}, id="another server"),
        pytest.param({"timeoutSeconds": 30}, id="time"),
    ],
)
def test_an_edit_is_seen(edit: dict[str, Any]) -> None:
    live = webhooks()
    live[0] |= edit
    assert not specs.is_within(webhooks(), live)


def test_an_added_or_removed_webhook_is_seen() -> None:
    assert not specs.is_within(webhooks(), [])
    assert not specs.is_within(webhooks(), [*webhooks(), *webhooks(name="other.addon-operator.io")])


def test_a_bundle_that_others_inject_is_kept() -> None:
    wanted = specs.webhooks_of(MUTATING, SERVICE, None, "k")
    specs.with_bundles_of(wanted, webhooks())
    assert wanted == webhooks()
