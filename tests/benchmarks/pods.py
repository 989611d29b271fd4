"""A pod as the API server sends it to a webhook, and presets that fit it."""

import json
import uuid
from typing import Any, Final

from addon_operator.admission import events

FEW: Final = "few"
"""A namespace with ten presets, all of which match."""
MANY: Final = "many"
"""A namespace with a thousand presets, ten of which match."""

_MATCHING: Final = 10
_OTHERS: Final = 990
_ROOT_CA: Final = {"name": "kube-root-ca.crt", "items": [{"key": "ca.crt", "path": "ca.crt"}]}
_TOKEN_VOLUME: Final = {
    "name": "kube-api-access-x7k2p",
    "projected": {
        "defaultMode": 420,
        "sources": [
            {"serviceAccountToken": {"expirationSeconds": 3607, "path": "token"}},
            {"configMap": _ROOT_CA},
        ],
    },
}
_TOKEN_MOUNT: Final = {
    "name": "kube-api-access-x7k2p",
    "readOnly": True,
    "mountPath": "/var/run/secrets/kubernetes.io/serviceaccount",
}


def _container(name: str) -> dict[str, Any]:
    probe = {"httpGet": {"path": "/healthz", "port": 8080, "scheme": "HTTP"}, "periodSeconds": 10}
    return {
        "name": name,
        "image": f"registry.example.org/team/{name}:1.27.3",
        "args": ["--listen=:8080", "--db=$(DB_0)"],
        "ports": [{"name": "http", "containerPort": 8080, "protocol": "TCP"}],
        "env": [{"name": f"OWN_{number}", "value": f"value-{number}"} for number in range(8)],
        "resources": {"limits": {"memory": "256Mi"}, "requests": {"cpu": "100m", "memory": "256Mi"}},
        "volumeMounts": [_TOKEN_MOUNT],
        "livenessProbe": probe,
        "readinessProbe": probe,
        "terminationMessagePath": "/dev/termination-log",
        "imagePullPolicy": "IfNotPresent",
    }


def pod(namespace: str) -> dict[str, Any]:
    """A pod of a ReplicaSet with two containers and one init container, all defaults filled in."""
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "generateName": "web-5d59d67564-",
            "namespace": namespace,
            "labels": {"role": "frontend", "tier": "web", "pod-template-hash": "5d59d67564"},
            "ownerReferences": [{"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web-5d59d67564"}],
        },
        "spec": {
            "containers": [_container("server"), _container("proxy")],
            "initContainers": [_container("setup")],
            "volumes": [_TOKEN_VOLUME],
            "restartPolicy": "Always",
            "serviceAccountName": "default",
            "schedulerName": "default-scheduler",
            "enableServiceLinks": True,
        },
    }


def review(namespace: str) -> bytes:
    """The body that the API server sends when the pod is created."""
    return json.dumps(
        {
            "apiVersion": "admission.k8s.io/v1",
            "kind": "AdmissionReview",
            "request": {
                "uid": str(uuid.uuid4()),
                "kind": {"group": "", "version": "v1", "kind": "Pod"},
                "resource": {"group": "", "version": "v1", "resource": "pods"},
                "namespace": namespace,
                "operation": "CREATE",
                "userInfo": {"username": "system:serviceaccount:kube-system:replicaset-controller"},
                "object": pod(namespace),
                "dryRun": False,
            },
        }
    ).encode()


def presets() -> list[events.Stored]:
    """The presets of both namespaces, as the API server lists them."""
    matching = [
        _preset(name, number, {"role": "frontend"}) for name in (FEW, MANY) for number in range(_MATCHING)
    ]
    # Half of the others share a label with the pod, so that no single label tells them apart.
    others = [
        _preset(MANY, _MATCHING + number, {"app": f"app-{number}", **({"tier": "web"} if number % 2 else {})})
        for number in range(_OTHERS)
    ]
    return [*matching, *others]


def many_presets(number: int) -> list[events.Stored]:
    """So many presets in namespaces of ten."""
    return [_preset(f"n{each // 10}", each, {"app": f"app-{each}"}) for each in range(number)]


def _preset(namespace: str, number: int, labels: dict[str, str]) -> events.Stored:
    volume = f"cache-{number}"
    return {
        "metadata": {
            "name": f"preset-{number}",
            "namespace": namespace,
            "uid": f"{namespace}-{number}",
            "resourceVersion": str(1000 + number),
            "creationTimestamp": "2024-01-01T00:00:00Z",
        },
        "spec": {
            "selector": {"matchLabels": labels},
            "env": [
                {"name": f"DB_{number}", "value": f"db-{number}.example.org"},
                {
                    "name": f"PASSWORD_{number}",
                    "valueFrom": {"secretKeyRef": {"name": "db", "key": "password"}},
                },
            ],
            "volumes": [{"name": volume, "emptyDir": {}}],
            "volumeMounts": [{"name": volume, "mountPath": f"/{volume}"}],
        },
    }
