"""Changes of objects that the API server refuses, and some that it takes: kind, before, after, fields."""

from collections.abc import Mapping
from typing import Any, Final

_Change = tuple[str, Mapping[str, Any], Mapping[str, Any], list[str]]

_POD: Final = {"containers": [{"name": "web", "image": "web:1"}]}
_LABELS: Final = {"metadata": {"labels": {"app": "web"}}}
_TEMPLATE: Final = {**_LABELS, "spec": _POD}
_SELECTED: Final = {"selector": {"matchLabels": {"app": "web"}}, "template": _TEMPLATE}
_TIER: Final = {
    "selector": {"matchLabels": {"app": "web", "tier": "a"}},
    "template": {"metadata": {"labels": {"app": "web", "tier": "a"}}, "spec": _POD},
}
_CLAIM: Final = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "2Gi"}}}
_TEMPLATES: Final = [{"metadata": {"name": "data"}, "spec": _CLAIM}]
_ONCE: Final = {"spec": {**_POD, "restartPolicy": "Never"}}
_AGAIN: Final = {"spec": {"containers": [{"name": "web", "image": "web:2"}], "restartPolicy": "Never"}}
_PORTS: Final = {"ports": [{"port": 80}]}
_SMALLER: Final = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
_ROLE: Final = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "view"}

CHANGES: Final[Mapping[str, _Change]] = {
    "selector of a Deployment": (
        "apps/v1 Deployment",
        {"spec": _SELECTED},
        {"spec": _TIER},
        ["spec.selector.matchLabels.tier"],
    ),
    "replicas of a Deployment": (
        "apps/v1 Deployment",
        {"spec": _SELECTED},
        {"spec": {**_SELECTED, "replicas": 3}},
        [],
    ),
    "selector of a DaemonSet": (
        "apps/v1 DaemonSet",
        {"spec": _SELECTED},
        {"spec": _TIER},
        ["spec.selector.matchLabels.tier"],
    ),
    "claims of a StatefulSet": (
        "apps/v1 StatefulSet",
        {"spec": {**_SELECTED, "serviceName": "web", "volumeClaimTemplates": _TEMPLATES}},
        {
            "spec": {
                **_SELECTED,
                "serviceName": "web",
                "volumeClaimTemplates": [{"metadata": {"name": "data"}, "spec": _SMALLER}],
            }
        },
        ["spec.volumeClaimTemplates[0].spec.resources.requests.storage"],
    ),
    "service and policy of a StatefulSet": (
        "apps/v1 StatefulSet",
        {"spec": {**_SELECTED, "serviceName": "web"}},
        {"spec": {**_SELECTED, "serviceName": "other", "podManagementPolicy": "Parallel"}},
        ["spec.serviceName", "spec.podManagementPolicy"],
    ),
    "what may change of a StatefulSet": (
        "apps/v1 StatefulSet",
        {"spec": {**_SELECTED, "serviceName": "web"}},
        {
            "spec": {
                **_SELECTED,
                "serviceName": "web",
                "replicas": 2,
                "minReadySeconds": 3,
                "revisionHistoryLimit": 4,
                "podManagementPolicy": "OrderedReady",
                "template": {**_LABELS, "spec": {**_POD, "hostNetwork": True}},
            }
        },
        [],
    ),
    "template of a Job": (
        "batch/v1 Job",
        {"spec": {"template": _ONCE}},
        {"spec": {"template": _AGAIN}},
        ["spec.template.spec.containers[web].image"],
    ),
    "mode of a Job": (
        "batch/v1 Job",
        {"spec": {"template": _ONCE, "completions": 2}},
        {"spec": {"template": _ONCE, "completions": 2, "completionMode": "Indexed"}},
        ["spec.completionMode"],
    ),
    "parallelism of a Job": (
        "batch/v1 Job",
        {"spec": {"template": _ONCE}},
        {"spec": {"template": _ONCE, "parallelism": 2}},
        [],
    ),
    "address of a Service": (
        "v1 Service",
        {"spec": _PORTS},
        {"spec": {**_PORTS, "clusterIP": "None"}},
        ["spec.clusterIP"],
    ),
    "type of a Service": (
        "v1 Service",
        {"spec": _PORTS},
        {"spec": {**_PORTS, "type": "NodePort"}},
        [],
    ),
    "modes of a claim": (
        "v1 PersistentVolumeClaim",
        {"spec": _CLAIM},
        {"spec": {**_CLAIM, "accessModes": ["ReadOnlyMany"]}},
        ["spec.accessModes[0]"],
    ),
    "volume mode of a claim that was left out": (
        "v1 PersistentVolumeClaim",
        {"spec": _CLAIM},
        {"spec": {**_CLAIM, "volumeMode": "Filesystem"}},
        [],
    ),
    "a smaller claim": (
        "v1 PersistentVolumeClaim",
        {"spec": _CLAIM},
        {"spec": _SMALLER},
        ["spec.resources.requests.storage"],
    ),
    "parameters of a StorageClass": (
        "storage.k8s.io/v1 StorageClass",
        {"provisioner": "example.com/x", "parameters": {"type": "slow"}},
        {"provisioner": "example.com/x", "parameters": {"type": "fast"}, "reclaimPolicy": "Retain"},
        ["parameters.type", "reclaimPolicy"],
    ),
    "what may change of a StorageClass": (
        "storage.k8s.io/v1 StorageClass",
        {"provisioner": "example.com/x"},
        {"provisioner": "example.com/x", "allowVolumeExpansion": True, "reclaimPolicy": "Delete"},
        [],
    ),
    "an immutable ConfigMap": (
        "v1 ConfigMap",
        {"immutable": True, "data": {"a": "1"}},
        {"immutable": True, "data": {"a": "2"}},
        ["data.a"],
    ),
    "a ConfigMap that is no longer immutable": (
        "v1 ConfigMap",
        {"immutable": True, "data": {"a": "1"}},
        {"data": {"a": "1"}},
        ["immutable"],
    ),
    "a ConfigMap that becomes immutable": (
        "v1 ConfigMap",
        {"data": {"a": "1"}},
        {"immutable": True, "data": {"a": "2"}},
        [],
    ),
    "an immutable Secret": (
        "v1 Secret",
        {"immutable": True, "stringData": {"a": "1"}},
        {"immutable": True, "data": {"a": "Mg=="}},
        ["data.a"],
    ),
    "an immutable Secret in another form": (
        "v1 Secret",
        {"immutable": True, "stringData": {"a": "1"}},
        {"immutable": True, "data": {"a": "MQ=="}},
        [],
    ),
    "type of a Secret": ("v1 Secret", {}, {"type": "example.com/x"}, ["type"]),
    "role of a binding": (
        "rbac.authorization.k8s.io/v1 RoleBinding",
        {"roleRef": _ROLE},
        {"roleRef": {**_ROLE, "name": "edit"}},
        ["roleRef.name"],
    ),
    "value of a PriorityClass": (
        "scheduling.k8s.io/v1 PriorityClass",
        {"value": 1},
        {"value": 2},
        ["value"],
    ),
    "controller of an IngressClass": (
        "networking.k8s.io/v1 IngressClass",
        {"spec": {"controller": "example.com/a"}},
        {"spec": {"controller": "example.com/b"}},
        ["spec.controller"],
    ),
    "handler of a RuntimeClass": (
        "node.k8s.io/v1 RuntimeClass",
        {"handler": "a"},
        {"handler": "b"},
        ["handler"],
    ),
}


def body(kind: str, content: Mapping[str, Any], name: str = "web") -> dict[str, Any]:
    """Return an object of a kind, such as ``apps/v1 Deployment``."""
    version, _, word = kind.partition(" ")
    return {"apiVersion": version, "kind": word, "metadata": {"name": name}, **content}
