"""How the webhooks of hooks are registered: what their bindings say, in the words of the API."""

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any, Final

import msgspec
import orjson

from addon_operator.admission.registration import registration_specs
from addon_operator.hook_contract.configuration import bindings, webhook_bindings

PATHS: Final[Mapping[webhook_bindings.ReviewType, str]] = {
    asked: f"/hooks/{asked.value.lower()}/" for asked in webhook_bindings.ReviewType
}
"""Path at which the API server asks, by what it asks, after its random part; the webhook's name follows."""
KINDS: Final[Mapping[webhook_bindings.ReviewType, registration_specs.ConfigurationKind]] = {
    webhook_bindings.ReviewType.VALIDATING: registration_specs.ConfigurationKind.VALIDATING,
    webhook_bindings.ReviewType.MUTATING: registration_specs.ConfigurationKind.MUTATING,
}
"""Kind of the object that holds the webhooks."""
ANNOTATION: Final = "admission.addon-operator.io/hooks"
"""Says of each webhook which module and hook it is of: JSON, by its name."""
_OWN_GROUPS: Final = frozenset({"", "*", "coordination.k8s.io"})
_OWN: Final = "own-objects.admission.addon-operator.io"
_NAME_LABEL: Final = "kubernetes.io/metadata.name"
_SYSTEM_NAMESPACES: Final = frozenset({"kube-system", "kube-node-lease"})
"""Without the first no cluster starts, and without the second no node stays ready."""
_CLUSTER_RUNS: Final = "cluster-runs.admission.addon-operator.io"
_LIVED_BY: Final = (
    (
        "request.resource.group in ['coordination.k8s.io', 'authentication.k8s.io', 'authorization.k8s.io', "
        "'flowcontrol.apiserver.k8s.io']"
    ),
    "request.resource.group == '' && request.resource.resource == 'nodes'",
    "request.resource.group == 'storage.k8s.io' && request.resource.resource == 'csinodes'",
    "request.resource.group == 'discovery.k8s.io' && request.resource.resource == 'endpointslices'",
    (
        "request.resource.group == 'certificates.k8s.io' "
        "&& request.resource.resource == 'certificatesigningrequests' "
        "&& (object == null ? oldObject : object).spec.signerName in "
        "['kubernetes.io/kube-apiserver-client-kubelet', 'kubernetes.io/kubelet-serving']"
    ),
    "has(request.name) && request.name.startsWith('system:')",
    # Such as the address of each Service, and of itself.
    "request.userInfo.username == 'system:apiserver'",
)
"""What nodes, Services and the API server itself write: without it nothing starts that could answer."""


class Registered(msgspec.Struct, frozen=True):
    """A webhook as it is registered, and whose it is."""

    owner: str
    """The module; empty for the global hooks."""
    hook: str
    spec: registration_specs.WebhookSpec


def spec(
    binding: webhook_bindings.WebhookBinding, namespace: str, own: Collection[str] = ()
) -> registration_specs.WebhookSpec:
    """Return how a binding is registered by an operator in ``namespace``.

    ``own`` are the names of the objects there without which the operator cannot start or be configured:
    no hook is asked about them, nor about Leases there, as nobody could switch it off any more.

    Requests that must pass for the cluster, or the operator, to start are exempt, unless the binding names
    their namespaces or resources.
    """
    namespaces, conditions = _selector(binding.namespaces), dict(binding.match_conditions)
    exempt: list[str] = []
    if binding.failure_policy == "Fail":
        exempt = sorted((_SYSTEM_NAMESPACES | {namespace}) - set(_named(binding.namespaces)))
        if exempt:
            requirement = {"key": _NAME_LABEL, "operator": "NotIn", "values": exempt}
            namespaces["matchExpressions"] = [*namespaces.get("matchExpressions", ()), requirement]
    if any(rule.is_wide for rule in binding.rules):
        conditions[_CLUSTER_RUNS] = _without_lived_by(rule for rule in binding.rules if not rule.is_wide)
    groups = {group for rule in binding.rules for group in rule.api_groups}
    if namespace not in exempt and groups & _OWN_GROUPS:
        conditions[_OWN] = _without_own(namespace, own)
    return registration_specs.WebhookSpec(
        name=binding.name,
        path=f"{PATHS[binding.type]}{binding.name}",
        is_guarded=True,
        rules=[_rule(rule) for rule in binding.rules],
        failure_policy=binding.failure_policy,
        timeout_seconds=binding.timeout_seconds,
        side_effects=binding.side_effects,
        reinvocation_policy="IfNeeded",
        namespace_selector=namespaces,
        object_selector=_selector(binding.objects),
        match_conditions=conditions,
    )


def _without_lived_by(naming: Iterable[webhook_bindings.WebhookRule]) -> str:
    """Return the condition for rules that do not name their resources, beside some that do."""
    allowed = [f"!({' || '.join(f'({each})' for each in _LIVED_BY)})", *map(_matches, naming)]
    return " || ".join(f"({each})" for each in allowed)


def _matches(rule: webhook_bindings.WebhookRule) -> str:
    """Say in CEL what a rule names, whatever the version and scope."""
    parts = [f"request.resource.group in {_listed(rule.api_groups)}"]
    if "*" not in rule.operations:
        parts.append(f"request.operation in {_listed(rule.operations)}")
    parts.append(f"({' || '.join(map(_is_resource, rule.resources))})")
    return " && ".join(parts)


def _is_resource(given: str) -> str:
    name, _, part = given.partition("/")
    of = "(has(request.subResource) ? request.subResource : '')"
    named = "true" if name == "*" else f"request.resource.resource == {_quoted(name)}"
    return f"({named})" if part == "*" else f"({named} && {of} == {_quoted(part)})"


def _listed(texts: Iterable[str]) -> str:
    return f"[{', '.join(map(_quoted, texts))}]"


def _quoted(text: str) -> str:
    # JSON's strings are ones of CEL, too.
    return orjson.dumps(text).decode()


def _without_own(namespace: str, own: Collection[str]) -> str:
    names = ", ".join(f"'{name}'" for name in sorted(own))
    # With generateName there is no name yet, and what is of no namespace has none: both would be errors.
    return (
        f"!(has(request.namespace) && request.namespace == '{namespace}' && "
        "(request.resource.group == 'coordination.k8s.io' || "
        "request.resource.group == '' && request.resource.resource in ['configmaps', 'secrets'] && "
        f"has(request.name) && request.name in [{names}]))"
    )


def inherited(
    live: Mapping[str, Any], asked: webhook_bindings.ReviewType
) -> Iterator[tuple[str, Registered]]:
    """Yield the webhooks of an object that say whose they are, by name; others are none of an operator's."""
    owners = owners_of(live)
    for webhook in live.get("webhooks") or ():
        name = str(webhook.get("name"))
        if name in owners:
            owner, hook = owners[name]
            yield name, Registered(owner, hook, _spec_of(name, webhook, asked))


def owners_of(live: Mapping[str, Any]) -> dict[str, tuple[str, str]]:
    """Return module and hook of each webhook of an object, as far as that is said."""
    text = ((live.get("metadata") or {}).get("annotations") or {}).get(ANNOTATION)
    try:
        said = orjson.loads(text or "{}")
        return {name: (str(entry["module"]), str(entry["hook"])) for name, entry in said.items()}
    except (orjson.JSONDecodeError, AttributeError, KeyError, TypeError):
        # Somebody wrote something else into it.
        return {}


def annotation(registered: Mapping[str, Registered]) -> str:
    """Return what says whose these webhooks are."""
    said = {name: {"module": each.owner, "hook": each.hook} for name, each in registered.items()}
    return orjson.dumps(said, option=orjson.OPT_SORT_KEYS).decode()


def _rule(rule: webhook_bindings.WebhookRule) -> dict[str, Any]:
    return {
        "operations": list(rule.operations),
        "apiGroups": list(rule.api_groups),
        "apiVersions": list(rule.api_versions),
        "resources": list(rule.resources),
        "scope": rule.scope,
    }


def _selector(labels: bindings.LabelSelector | None) -> dict[str, Any]:
    if labels is None:
        return {}
    selector: dict[str, Any] = {}
    if labels.match_labels:
        selector["matchLabels"] = dict(labels.match_labels)
    if labels.match_expressions:
        selector["matchExpressions"] = [
            {"key": each.key, "operator": each.operator.value}
            | ({"values": list(each.values)} if each.values else {})
            for each in labels.match_expressions
        ]
    return selector


def _named(labels: bindings.LabelSelector | None) -> Iterator[str]:
    """Yield the namespaces that a selector names."""
    if labels is None:
        return
    yield from (value for key, value in labels.match_labels if key == _NAME_LABEL)
    for each in labels.match_expressions:
        if each.key == _NAME_LABEL and each.operator is bindings.LabelOperator.IN:
            yield from each.values


def _spec_of(
    name: str, webhook: Mapping[str, Any], asked: webhook_bindings.ReviewType
) -> registration_specs.WebhookSpec:
    conditions = webhook.get("matchConditions") or ()
    return registration_specs.WebhookSpec(
        name=name,
        path=f"{PATHS[asked]}{name}",
        is_guarded=True,
        rules=webhook.get("rules") or (),
        failure_policy=webhook.get("failurePolicy", "Fail"),
        timeout_seconds=webhook.get("timeoutSeconds", webhook_bindings.DEFAULT_TIMEOUT),
        side_effects=webhook.get("sideEffects", "None"),
        reinvocation_policy="IfNeeded",
        namespace_selector=webhook.get("namespaceSelector") or {},
        object_selector=webhook.get("objectSelector") or {},
        match_conditions={each["name"]: each["expression"] for each in conditions},
    )
