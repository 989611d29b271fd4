"""How webhooks of hooks are registered."""

import functools
from typing import Any

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


@functools.cache
def compiled(text: str) -> Any:  # noqa: ANN401 - the library has no types
    types = dict.fromkeys(("request", "object", "oldObject"), cel.Type.DYN)
    return cel.NewEnv(variables=types).compile(text)


def is_asked(rules: tuple[WebhookRule, ...], policy: FailurePolicy, given: str) -> bool:
    """Whether a hook is asked about ``GROUP/RESOURCE[/SUBRESOURCE][?NAME or =SIGNER]``."""
    binding = WebhookBinding(ReviewType.VALIDATING, "a.b.c", rules, failure_policy=policy)
    conditions = hook_specs.spec(binding, "ops").match_conditions
    given, _, user = given.partition("@")
    place, _, signer = given.partition("=")
    place, _, name = place.partition("?")
    group, resource, *parts = place.split("/")
    request = {"operation": "CREATE", "resource": {"group": group, "resource": resource}}
    request |= {"name": name} if name else {}
    request |= {"userInfo": {"username": user or "somebody"}}
    request |= {"subResource": parts[0]} if parts else {}
    body = {"spec": {"signerName": signer}}
    for each in ({"object": body, "oldObject": None}, {"object": None, "oldObject": body}):
        data = {"request": request, **each}
        found = {compiled(text).eval(data=data).value() for text in conditions.values()}
        if found - {True}:
            return False
    return True


EVERYTHING = WebhookRule(("*",), ("*",), ("*/*",), ("*",))
LIVED_BY = [
    "coordination.k8s.io/leases?web",
    "/nodes?one",
    "/nodes/status?one",
    "storage.k8s.io/csinodes?one",
    "discovery.k8s.io/endpointslices?web",
    "flowcontrol.apiserver.k8s.io/flowschemas?x",
    "flowcontrol.apiserver.k8s.io/prioritylevelconfigurations?x",
    "certificates.k8s.io/certificatesigningrequests?csr-1=kubernetes.io/kube-apiserver-client-kubelet",
    "certificates.k8s.io/certificatesigningrequests/approval?csr-1=kubernetes.io/kubelet-serving",
    "rbac.authorization.k8s.io/clusterroles?system:node",
    "rbac.authorization.k8s.io/clusterrolebindings?system:discovery",
    "authorization.k8s.io/subjectaccessreviews",
    "networking.k8s.io/ipaddresses?10.0.0.1@system:apiserver",
]


@rows.each("policy", ["Fail", "Ignore"])
@rows.each(
    "rule",
    [
        EVERYTHING,
        WebhookRule(("*",), ("*",), ("nodes", "csinodes"), ("*",)),
        WebhookRule(("",), ("*",), ("*/status",), ("*",)),
    ],
)
def test_rules_that_do_not_name_their_resources_leave_out_what_the_cluster_lives_by(
    rule: WebhookRule, policy: FailurePolicy
) -> None:
    assert [each for each in LIVED_BY if is_asked((RULE, rule), policy, each)] == []
    for each in (
        "apps/deployments?web",
        "/pods",
        "rbac.authorization.k8s.io/clusterroles?mine",
        "certificates.k8s.io/certificatesigningrequests?mine=example.com/mine",
    ):
        assert is_asked((RULE, rule), policy, each), each


def test_rules_that_name_their_resources_are_registered_as_they_are_also_beside_one_that_does_not() -> None:
    naming = WebhookRule(
        ("", "storage.k8s.io", "discovery.k8s.io", "rbac.authorization.k8s.io"),
        ("v1",),
        ("nodes", "csinodes", "endpointslices/*", "clusterroles", "*/scale"),
        ("CREATE", "UPDATE"),
    )
    binding = WebhookBinding(ReviewType.VALIDATING, "a.b.c", (naming,))
    assert hook_specs.spec(binding, "ops").match_conditions == {}
    asked = [each for each in LIVED_BY if is_asked((naming, EVERYTHING), "Fail", each)]
    assert asked == [
        "/nodes?one",
        "storage.k8s.io/csinodes?one",
        "discovery.k8s.io/endpointslices?web",
        "rbac.authorization.k8s.io/clusterroles?system:node",
    ]
    deletes = WebhookRule(("",), ("v1",), ("nodes",), ("DELETE",))
    assert not is_asked((deletes, EVERYTHING), "Fail", "/nodes?one")


@rows.each("policy", ["Fail", "Ignore"])
@rows.each("group", ["", "*", "coordination.k8s.io"])
def test_no_hook_is_asked_about_what_the_operator_starts_by_and_is_switched_by(
    group: str, policy: FailurePolicy
) -> None:
    rule = WebhookRule((group,), ("v1",), ("secrets", "leases", "configmaps"), ("*",))
    binding = WebhookBinding(
        ReviewType.VALIDATING, "a.b.c", (rule,), namespaces=labels("ops"), failure_policy=policy
    )
    conditions = hook_specs.spec(binding, "ops", ("values", "certificates")).match_conditions
    condition = conditions["own-objects.admission.addon-operator.io"]
    asked = cel.NewEnv(variables={"request": cel.Type.DYN}).compile(condition)

    def is_own(group: str, resource: str, **where: str) -> object:
        """Names that an object does not have are left out of its request."""
        request = {"resource": {"group": group, "resource": resource}, **where}
        return asked.eval(data={"request": request}).value()

    assert is_own("", "secrets", namespace="ops", name="certificates") is False
    assert is_own("", "configmaps", namespace="ops", name="values") is False
    assert is_own("coordination.k8s.io", "leases", namespace="ops", name="any") is False
    assert is_own("coordination.k8s.io", "leases", namespace="ops") is False
    assert is_own("", "configmaps", namespace="ops", name="other") is True
    assert is_own("", "configmaps", namespace="ops") is True, "generateName"
    assert is_own("", "configmaps", namespace="shop", name="values") is True
    assert is_own("", "nodes", name="values") is True, "without a namespace"


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
