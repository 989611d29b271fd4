"""Bindings that answer the API server, in configurations of hooks."""

import json
from typing import Any

import pytest

from addon_operator.hook_contract.configuration import bindings, hook_config, webhook_bindings

RULE = {"apiGroups": ["apps"], "apiVersions": ["v1"], "resources": ["deployments"], "operations": ["CREATE"]}
WEBHOOK: dict[str, Any] = {"name": "guard.shop.example", "rules": [RULE]}


def read(key: str = "kubernetesValidating", **changes: object) -> hook_config.HookConfig:
    config = {
        "configVersion": "v1",
        "kubernetes": [{"name": "pods", "kind": "Pod", "group": "main"}],
        key: [{**WEBHOOK, **changes}],
    }
    return hook_config.parse(json.dumps(config), hook_config.HookKind.MODULE, "hook x")


def test_what_is_not_given_has_the_documented_defaults() -> None:
    [webhook] = read("kubernetesMutating").webhooks
    assert webhook == webhook_bindings.WebhookBinding(
        webhook_bindings.ReviewType.MUTATING,
        "guard.shop.example",
        (webhook_bindings.WebhookRule(("apps",), ("v1",), ("deployments",), ("CREATE",), "*"),),
    )
    assert (webhook.failure_policy, webhook.side_effects, webhook.timeout_seconds) == ("Fail", "None", 10)


def test_all_fields_are_read() -> None:
    [webhook] = read(
        group="main",
        labelSelector={"matchLabels": {"a": "b"}},
        namespace={"labelSelector": {"matchLabels": {"c": "d"}}},
        rules=[{**RULE, "scope": "Cluster"}],
        failurePolicy="Ignore",
        sideEffects="NoneOnDryRun",
        timeoutSeconds=3,
        matchConditions=[{"name": "mine", "expression": "true"}],
    ).webhooks
    assert webhook.objects == bindings.LabelSelector((("a", "b"),))
    assert webhook.namespaces == bindings.LabelSelector((("c", "d"),))
    assert webhook.include_snapshots_from == ("pods",)
    assert (webhook.rules[0].scope, webhook.failure_policy) == ("Cluster", "Ignore")
    assert (webhook.side_effects, webhook.timeout_seconds) == ("NoneOnDryRun", 3)
    assert webhook.match_conditions == (("mine", "true"),)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"name": "guard"}, "kubernetesValidating[0].name: 'guard' is not a name that a webhook can have"),
        ({"name": None}, "kubernetesValidating[0].name: null is not a text"),
        ({"rules": []}, "kubernetesValidating[0].rules: it needs at least 1 item"),
        ({"rules": [{}]}, "kubernetesValidating[0].rules[0]: the key 'operations' is missing"),
        (
            {"rules": [{**RULE, "operations": ["CREAT"]}]},
            'kubernetesValidating[0].rules[0].operations[0]: "CREAT" is not known here; write one of CREATE',
        ),
        ({"failurPolicy": "Fail"}, "the key 'failurPolicy' is not known here; did you mean 'failurePolicy'?"),
        ({"failurePolicy": "fail"}, 'kubernetesValidating[0].failurePolicy: "fail" is not known here'),
        (
            {"timeoutSeconds": 31},
            "kubernetesValidating[0].timeoutSeconds: 31 is more than the largest allowed, 30",
        ),
        ({"queue": "main"}, "this binding runs for requests of the API server, not in a queue; remove it"),
        ({"namespaceSelector": {}}, "write 'namespace' with a 'labelSelector' in it"),
        ({"namespace": {"nameSelector": {}}}, "the API server selects namespaces by labels"),
        (
            {"includeSnapshotsFrom": ["pod"]},
            "kubernetesValidating[0].includeSnapshotsFrom[0]: no kubernetes binding has the name 'pod'",
        ),
        (
            {"matchConditions": [{"name": "a", "expression": "true"}] * 65},
            "kubernetesValidating[0].matchConditions: it has 65 items, and the API server takes 64",
        ),
    ],
)
def test_a_mistake_is_named_with_its_field(changes: dict[str, Any], said: str) -> None:
    with pytest.raises(hook_config.HookConfigError) as raised:
        read(**changes)
    assert said in str(raised.value)


def test_two_webhooks_of_one_name_are_a_mistake() -> None:
    config = {"configVersion": "v1", "kubernetesMutating": [WEBHOOK, WEBHOOK]}
    with pytest.raises(
        hook_config.HookConfigError, match=r"kubernetesMutating\[1\]\.name: .*\[0\] has the name"
    ):
        hook_config.parse(json.dumps(config), hook_config.HookKind.GLOBAL, "hook x")


def test_people_see_what_a_webhook_is_asked_about() -> None:
    rows = list(hook_config.rows(read()))
    assert hook_config.row_document(rows[-1]) == {
        "binding": "kubernetesValidating",
        "name": "guard.shop.example",
        "resources": "CREATE deployments.apps",
    }
