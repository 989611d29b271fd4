"""How webhooks of hooks are registered."""

from cel_expr_python import cel

from addon_operator.admission.hooks import hook_specs
from addon_operator.hook_contract.configuration import bindings
from addon_operator.hook_contract.configuration.webhook_bindings import (
    FailurePolicy,
    ReviewType,
    WebhookBinding,
    WebhookRule,
)
from tests.support import rows

RULE = WebhookRule(("apps",), ("v1",), ("deployments",), ("CREATE",))
NAME = "kubernetes.io/metadata.name"
SYSTEM = ["kube-node-lease", "kube-system"]


def labels(*namespaces: str) -> bindings.LabelSelector:
    requirement = bindings.LabelRequirement(NAME, bindings.LabelOperator.IN, namespaces)
    return bindings.LabelSelector(match_expressions=(requirement,))


@rows.each(
    ("policy", "chosen", "exempt"),
    [
        ("Fail", None, [*SYSTEM, "ops"]),
        ("Fail", labels("shop"), [*SYSTEM, "ops"]),
        ("Fail", labels("ops"), SYSTEM),
        ("Fail", bindings.LabelSelector(((NAME, "kube-system"),)), ["kube-node-lease", "ops"]),
        ("Fail", labels("ops", *SYSTEM), []),
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


@rows.each("resource", ["*", "*/*", "*/status"])
def test_a_webhook_for_everything_that_may_not_be_ignored_leaves_out_what_nodes_and_operators_live_by(
    resource: str,
) -> None:
    rule = WebhookRule(("*",), ("*",), (resource,), ("*",))
    binding = WebhookBinding(ReviewType.VALIDATING, "a.b.c", (RULE, rule), match_conditions=(("x", "true"),))
    own, exempting = hook_specs.spec(binding, "ops").match_conditions.items()
    assert own == ("x", "true")
    assert all(word in exempting[1] for word in ("coordination.k8s.io", "authentication.k8s.io", "'nodes'"))


@rows.each(("resource", "policy"), [("nodes", "Fail"), ("*/*", "Ignore")])
def test_a_webhook_that_names_nodes_or_may_be_ignored_is_asked_about_them(
    resource: str, policy: FailurePolicy
) -> None:
    rule = WebhookRule(("*",), ("*",), (resource,), ("*",))
    binding = WebhookBinding(ReviewType.VALIDATING, "a.b.c", (rule,), failure_policy=policy)
    assert not any("'nodes'" in text for text in hook_specs.spec(binding, "ops").match_conditions.values())


@rows.each("policy", ["Fail", "Ignore"])
@rows.each("group", ["", "*", "coordination.k8s.io"])
def test_no_hook_is_asked_about_what_the_operator_starts_by_and_is_switched_by(
    group: str, policy: FailurePolicy
) -> None:
    rule = WebhookRule((group,), ("v1",), ("secrets", "leases", "configmaps"), ("*",))
    binding = WebhookBinding(
        ReviewType.VALIDATING, "a.b.c", (rule,), namespaces=labels("ops"), failure_policy=policy
    )
    [condition] = hook_specs.spec(binding, "ops", ("values", "certificates")).match_conditions.values()
    asked = cel.NewEnv(variables={"request": cel.Type.DYN}).compile(condition)

    def is_asked(group: str, resource: str, **where: str) -> object:
        """Names that an object does not have are left out of its request."""
        request = {"resource": {"group": group, "resource": resource}, **where}
        return asked.eval(data={"request": request}).value()

    assert is_asked("", "secrets", namespace="ops", name="certificates") is False
    assert is_asked("", "configmaps", namespace="ops", name="values") is False
    assert is_asked("coordination.k8s.io", "leases", namespace="ops", name="any") is False
    assert is_asked("coordination.k8s.io", "leases", namespace="ops") is False
    assert is_asked("", "configmaps", namespace="ops", name="other") is True
    assert is_asked("", "configmaps", namespace="ops") is True, "generateName"
    assert is_asked("", "configmaps", namespace="shop", name="values") is True
    assert is_asked("", "nodes", name="values") is True, "without a namespace"


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


@rows.each("text", ["", "[", "[]", '{"a": 1}', '{"a": {}}'])
def test_an_annotation_that_somebody_has_changed_names_nobody(text: str) -> None:
    assert hook_specs.owners_of({"metadata": {"annotations": {hook_specs.ANNOTATION: text}}}) == {}
