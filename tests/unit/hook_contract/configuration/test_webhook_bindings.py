"""Bindings that answer the API server, in configurations of hooks."""

import json
from typing import Any

import pytest

from addon_operator.hook_contract.configuration import bindings, hook_config, webhook_bindings
from tests.support import rows

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


def test_a_whole_number_may_be_written_with_a_point() -> None:
    [webhook] = read(timeoutSeconds=5.0).webhooks
    assert repr(webhook.timeout_seconds) == "5", "the API server takes no 5.0"


@rows.each(
    ("changes", "said"),
    [
        ({"name": "guard"}, "kubernetesValidating[0].name: 'guard' is not a name that a webhook can have"),
        (
            {"name": f"{'a' * 252}.b.c"},
            'kubernetesValidating[0].name: "aaaa',
        ),
        (
            {"name": f"{'a' * 252}.b.c"},
            " has 256 characters, and may have 253",
        ),
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
            {"timeoutSeconds": 5.5},
            "kubernetesValidating[0].timeoutSeconds: 5.5 is not an integer",
        ),
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
        (
            {"matchConditions": [{"name": "a", "expression": "true"}] * 2},
            "matchConditions[1].name: kubernetesValidating[0].matchConditions[0] has the name 'a', too",
        ),
        ({"rules": [{**RULE, "apiGroups": ["apps/v1"]}]}, "apiGroups[0]: 'apps/v1' is not an API group"),
        ({"rules": [{**RULE, "apiVersions": ["apps/v1"]}]}, "apiVersions[0]: 'apps/v1' is not a version"),
        ({"rules": [{**RULE, "resources": ["pods/"]}]}, "resources[0]: 'pods/' is not a resource"),
        ({"rules": [{**RULE, "resources": ["a/b/c"]}]}, "resources[0]: 'a/b/c' is not a resource"),
        ({"rules": [{**RULE, "apiGroups": ["*", "apps"]}]}, "rules[0].apiGroups: '*' stands for all"),
        ({"rules": [{**RULE, "apiVersions": ["v1", "*"]}]}, "rules[0].apiVersions: '*' stands for all"),
        ({"rules": [{**RULE, "operations": ["*", "CREATE"]}]}, "rules[0].operations: '*' stands for all"),
        (
            {"rules": [RULE, {**RULE, "resources": ["*"]}]},
            "rules[1]: with '*' in apiGroups or resources and failurePolicy Fail, nobody can change anything",
        ),
        ({"rules": [{**RULE, "resources": ["*/status"]}]}, "or 'locks: cluster' if that is meant"),
        ({"rules": [{**RULE, "apiGroups": ["*"]}]}, "or 'locks: cluster' if that is meant"),
        ({"rules": [{**RULE, "resources": ["*", "pods"]}]}, "resources: '*' stands for 'pods', too"),
        ({"rules": [{**RULE, "resources": ["*/*", "*"]}]}, "resources: '*/*' stands for '*', too"),
        ({"rules": [{**RULE, "resources": ["pods/*", "pods/log"]}]}, "'pods/*' stands for 'pods/log', too"),
        ({"rules": [{**RULE, "resources": ["*/scale", "a/scale"]}]}, "'*/scale' stands for 'a/scale', too"),
    ],
)
def test_a_mistake_is_named_with_its_field(changes: dict[str, Any], said: str) -> None:
    with pytest.raises(hook_config.HookConfigError) as raised:
        read(**changes)
    assert said in str(raised.value)


@rows.each(
    "rule",
    [
        {"apiGroups": ["", "apps"]},
        {"apiGroups": ["*"], "apiVersions": ["*"], "operations": ["*"], "resources": ["*/*"]},
        {"resources": ["*", "*/status"]},
        {"resources": ["pods", "pods/*"]},
        {"resources": ["pods", "pods"], "operations": ["CREATE", "CREATE"]},
        {"resources": ["pods", "pods/status", "crontabs"], "operations": ["DELETE", "CONNECT"]},
    ],
)
def test_rules_that_the_api_server_takes_are_taken(rule: dict[str, Any]) -> None:
    for webhook in (
        *read(rules=[{**RULE, **rule}], failurePolicy="Ignore").webhooks,
        *read(rules=[{**RULE, **rule}], locks="cluster").webhooks,
    ):
        assert len(webhook.rules) == 1


def test_a_conversion_to_a_version_of_another_group_is_a_mistake() -> None:
    binding = {
        "crdName": "crontabs.stable.example.com",
        "conversions": [{"fromVersion": "v1", "toVersion": "example.com/v2"}],
    }
    config = {"configVersion": "v1", "kubernetesCustomResourceConversion": [binding]}
    with pytest.raises(hook_config.HookConfigError, match=r"toVersion: 'example\.com/v2' is of group"):
        hook_config.parse(json.dumps(config), hook_config.HookKind.GLOBAL, "hook x")


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


@rows.each(
    ("changes", "said"),
    [
        (
            {"group": "mian"},
            "kubernetes binding is of the group 'mian', so that it brings no snapshots; did you mean 'main'",
        ),
        (
            {"rules": [{**RULE, "resources": ["ConfigMap"]}]},
            "resources[0]: 'ConfigMap' is a kind, so that no request matches; write its lower-case plural",
        ),
        (
            {
                "rules": [{**RULE, "apiGroups": [""], "resources": ["pods"]}],
                "namespace": {"labelSelector": {"matchLabels": {"kubernetes.io/metadata.name": "addons"}}},
            },
            "no pod starts in addons while no operator answers; if one of these is the operator's own",
        ),
    ],
)
def test_what_the_api_server_takes_and_nobody_means_is_a_warning(changes: dict[str, Any], said: str) -> None:
    (warning,) = read(**changes).warnings
    assert said in warning


@rows.each(
    "changes",
    [
        {"group": "main"},
        {"timeoutSeconds": 1},
        {"rules": [{**RULE, "resources": ["endpoints", "pods/log", "*/scale"]}]},
    ],
)
def test_what_may_be_meant_is_no_warning(changes: dict[str, Any]) -> None:
    assert read(**changes).warnings == ()


def test_a_conversion_of_a_group_without_kubernetes_bindings_is_a_warning_too() -> None:
    converting = {
        "crdName": "crons.shop.example",
        "group": "odd",
        "conversions": [{"fromVersion": "v1", "toVersion": "v2"}],
    }
    text = json.dumps({"configVersion": "v1", "kubernetesCustomResourceConversion": [converting]})
    (warning,) = hook_config.parse(text, hook_config.HookKind.MODULE, "hook x").warnings
    assert (
        "kubernetesCustomResourceConversion[0].group: no kubernetes binding is of the group 'odd'" in warning
    )
    assert warning.endswith("none of them is of any")
