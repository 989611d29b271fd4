"""Rules of webhooks and conversions in a hook's configuration that no single place can break.

The API server has the same rules; here they are found without one. What does not have the expected shape is
ignored.
Source: the validation of ``admissionregistration.k8s.io/v1`` in the Kubernetes API.
"""

from collections.abc import Iterator, Sequence
from typing import Final

from addon_operator.hook_contract.configuration import conversion_bindings, webhook_bindings
from addon_operator.kernel.json_types import JsonObject, JsonValue

_ANY: Final = "*"
_ALL: Final = "*/*"
_NAME_LABEL: Final = "kubernetes.io/metadata.name"
_WORDS: Final = """
apiservices bindings certificatesigningrequests clusterrolebindings clusterroles configmaps
controllerrevisions cronjobs csidrivers csinodes csistoragecapacities customresourcedefinitions
daemonsets deployments deviceclasses endpoints endpointslices events flowschemas
horizontalpodautoscalers ingressclasses ingresses ipaddresses jobs leases limitranges
mutatingadmissionpolicies mutatingwebhookconfigurations namespaces networkpolicies nodes
persistentvolumeclaims persistentvolumes poddisruptionbudgets pods podtemplates priorityclasses
replicasets replicationcontrollers resourceclaims resourceclaimtemplates resourcequotas resourceslices
rolebindings roles runtimeclasses secrets serviceaccounts servicecidrs services statefulsets
storageclasses validatingadmissionpolicies validatingwebhookconfigurations volumeattachments
"""
_PLURALS: Final = frozenset(_WORDS.split())
"""Resources of Kubernetes' own."""
_ALONE: Final = ("apiGroups", "apiVersions", "operations")


def rules(where: str, item: JsonObject) -> Iterator[str]:
    """Yield which lists of a webhook's rules have something beside what stands for all of it."""
    for index, rule in enumerate(_list(item, "rules")):
        spot = f"{where}.rules[{index}]"
        for key in _ALONE:
            listed = _list(rule, key)
            if _ANY in listed and len(listed) > 1:
                yield f"{spot}.{key}: {_ANY!r} stands for all of them; remove the others"
        yield from _resources(f"{spot}.resources", _list(rule, "resources"))


def _resources(spot: str, listed: list[JsonValue]) -> Iterator[str]:
    names = dict.fromkeys(name for name in listed if isinstance(name, str))
    for name in names:
        resource, _, part = name.partition("/")
        covering = [_ALL, *([f"{resource}/*", f"*/{part}"] if part else [_ANY])]
        found = next((wide for wide in covering if wide in names and wide != name), None)
        if found is not None:
            yield f"{spot}: {found!r} stands for {name!r}, too; remove one of the two"


def wide(where: str, item: JsonObject) -> Iterator[str]:
    """Yield that a webhook holds up the whole cluster as long as no operator answers, unless it says so."""
    if item.get("failurePolicy", "Fail") != "Fail" or item.get("locks") == "cluster":
        return
    for index, rule in enumerate(_list(item, "rules")):
        if webhook_bindings.is_wide(_list(rule, "apiGroups"), _list(rule, "resources")):
            yield (
                f"{where}.rules[{index}]: with '*' in apiGroups or resources and failurePolicy Fail, nobody "
                "can change anything in the cluster while no operator answers; name groups and resources, or "
                "write 'failurePolicy: Ignore', or 'locks: cluster' if that is meant"
            )
            return


def blocking(where: str, item: JsonObject) -> Iterator[str]:
    """Yield that a webhook about pods of namespaces that it names keeps an operator there from starting."""
    selector = item.get("namespace")
    names = [*_named(selector.get("labelSelector") if isinstance(selector, dict) else None)]
    if item.get("failurePolicy", "Fail") != "Fail" or not names:
        return
    for rule in _list(item, "rules"):
        groups, resources = _list(rule, "apiGroups"), _list(rule, "resources")
        if ("" in groups or _ANY in groups) and not {"pods", _ANY, _ALL}.isdisjoint(map(str, resources)):
            yield (
                f"{where}: with failurePolicy Fail, no pod starts in {', '.join(names)} while no operator "
                "answers; if one of these is the operator's own namespace, it blocks its own pods"
            )
            return


def _named(selector: JsonValue) -> Iterator[str]:
    """Yield the namespaces that a label selector names."""
    labels = selector.get("matchLabels") if isinstance(selector, dict) else None
    if isinstance(labels, dict) and isinstance(name := labels.get(_NAME_LABEL), str):
        yield name
    for each in _list(selector, "matchExpressions"):
        if isinstance(each, dict) and (each.get("key"), each.get("operator")) == (_NAME_LABEL, "In"):
            yield from map(str, _list(each, "values"))


def unmatched(where: str, item: JsonObject) -> Iterator[str]:
    """Yield which resources of a webhook's rules are kinds, or the singular of one of Kubernetes' own.

    An API server takes that, as there could be such a resource, and no request matches it.
    """
    for index, rule in enumerate(_list(item, "rules")):
        groups = [group for group in _list(rule, "apiGroups") if isinstance(group, str)]
        is_own = any("." not in group or group.endswith(".k8s.io") for group in groups)
        for number, name in enumerate(_list(rule, "resources")):
            if not isinstance(name, str):
                continue
            plural = _plural(name.lower()) if is_own else ""
            spot = f"{where}.rules[{index}].resources[{number}]"
            if plural and plural != name:
                yield f"{spot}: {name!r} is not the plural, so that no request matches; write {plural!r}"
            elif name != name.lower():
                yield f"{spot}: {name!r} is a kind, so that no request matches; write its lower-case plural"


def _plural(name: str) -> str:
    """Return the resource of Kubernetes' own that was meant; empty for everything else."""
    resource, slash, part = name.partition("/")
    possible = (resource, f"{resource}s", f"{resource}es", f"{resource.removesuffix('y')}ies")
    found = next((each for each in possible if each in _PLURALS), "")
    return found and f"{found}{slash}{part}"


def hurried(items: Sequence[tuple[str, JsonObject]]) -> Iterator[str]:
    """Yield in one sentence which webhooks leave their hook hardly the time to start."""
    found = [where for where, item in items if item.get("timeoutSeconds") == 1]
    if found:
        more = f" (and of {len(found) - 1} more)" if len(found) > 1 else ""
        yield (
            f"{found[0]}.timeoutSeconds{more}: 1 leaves the hook half a second, with its wait for a "
            "process and its start; write 2 or more"
        )


def conditions(where: str, item: JsonObject) -> Iterator[str]:
    """Yield which match conditions of a webhook have the name of an earlier one."""
    first: dict[str, int] = {}
    for index, condition in enumerate(_list(item, "matchConditions")):
        name = condition.get("name") if isinstance(condition, dict) else None
        if isinstance(name, str) and first.setdefault(name, index) != index:
            other = f"{where}.matchConditions[{first[name]}]"
            yield f"{where}.matchConditions[{index}].name: {other} has the name {name!r}, too; rename one"


def groups(where: str, item: JsonObject) -> Iterator[str]:
    """Yield which versions of a conversion are of another group than the definition's."""
    crd = item.get("crdName")
    group = crd.partition(".")[2] if isinstance(crd, str) else ""
    for index, rule in enumerate(_list(item, "conversions")):
        for key in ("fromVersion", "toVersion"):
            version = rule.get(key) if isinstance(rule, dict) else None
            if isinstance(version, str) and group:
                other = conversion_bindings.full_version(version, f"x.{group}").partition("/")[0]
                if other != group:
                    spot = f"{where}.conversions[{index}].{key}"
                    yield f"{spot}: {version!r} is of group {other!r}, and {crd} of {group!r}; correct one"


def _list(value: JsonValue, key: str) -> list[JsonValue]:
    items = value.get(key) if isinstance(value, dict) else None
    return items if isinstance(items, list) else []
