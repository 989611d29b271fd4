"""How webhooks of hooks are registered."""

import pytest

from addon_operator.admission.hooks import hook_specs
from addon_operator.hook_contract.configuration import bindings
from addon_operator.hook_contract.configuration.webhook_bindings import (
    FailurePolicy,
    ReviewType,
    WebhookBinding,
    WebhookRule,
)

RULE = WebhookRule(("apps",), ("v1",), ("deployments",), ("CREATE",))
NAME = "kubernetes.io/metadata.name"


def labels(*namespaces: str) -> bindings.LabelSelector:
    requirement = bindings.LabelRequirement(NAME, bindings.LabelOperator.IN, namespaces)
    return bindings.LabelSelector(match_expressions=(requirement,))


@pytest.mark.parametrize(
    ("policy", "chosen", "exempt"),
    [
        ("Fail", None, ["kube-system", "ops"]),
        ("Fail", labels("shop"), ["kube-system", "ops"]),
        ("Fail", labels("ops"), ["kube-system"]),
        ("Fail", bindings.LabelSelector(((NAME, "kube-system"),)), ["ops"]),
        ("Fail", labels("ops", "kube-system"), []),
        ("Ignore", None, []),
    ],
    ids=["all", "another", "own", "kube-system", "both", "may be ignored"],
)
def test_what_must_start_is_exempt_unless_it_is_named_or_passes_anyway(
    policy: FailurePolicy, chosen: bindings.LabelSelector | None, exempt: list[str]
) -> None:
    binding = WebhookBinding(
        ReviewType.VALIDATING, "a.b.c", (RULE,), namespaces=chosen, failure_policy=policy
    )
    selector = hook_specs.spec(binding, "ops").namespace_selector
    found = [each["values"] for each in selector.get("matchExpressions", ()) if each["operator"] == "NotIn"]
    assert found == ([exempt] if exempt else [])


def test_what_is_registered_is_read_again_as_it_was_written() -> None:
    binding = WebhookBinding(ReviewType.MUTATING, "a.b.c", (RULE,), match_conditions=(("x", "true"),))
    spec = hook_specs.spec(binding, "ops")
    registered = hook_specs.Registered("shop", "guard.sh", spec)
    live = {
        "metadata": {"annotations": {hook_specs.ANNOTATION: hook_specs.annotation({"a.b.c": registered})}},
        "webhooks": [
            {
                "name": "a.b.c",
                "rules": list(spec.rules),
                "failurePolicy": "Fail",
                "timeoutSeconds": 10,
                "sideEffects": "None",
                "namespaceSelector": dict(spec.namespace_selector),
                "objectSelector": {},
                "matchConditions": [{"name": "x", "expression": "true"}],
            },
            {"name": "of.somebody.else"},
        ],
    }
    assert dict(hook_specs.inherited(live, ReviewType.MUTATING)) == {"a.b.c": registered}


@pytest.mark.parametrize("text", ["", "[", "[]", '{"a": 1}', '{"a": {}}'])
def test_an_annotation_that_somebody_has_changed_names_nobody(text: str) -> None:
    assert hook_specs.owners_of({"metadata": {"annotations": {hook_specs.ANNOTATION: text}}}) == {}
