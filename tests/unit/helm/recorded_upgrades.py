"""Upgrades that real API servers refused, with Helm 3.22 and 4.3 and Kubernetes 1.37.

Of those that somebody's change made fail, the objects as they were then. Namespaces were made alike.
"""

import json
import pathlib
from typing import Any, TypedDict


class Recorded(TypedDict, total=False):
    case: str
    helm: int
    stderr: str
    live: dict[str, Any]
    manifest: str


RECORDED: list[Recorded] = json.loads((pathlib.Path(__file__).parent / "recorded_upgrades.json").read_text())
CASES = {(each["case"], each["helm"]): each for each in RECORDED}
ADVICE = {
    "service-cluster-ip-other": "delete it with 'kubectl -n addons delete service web'",
    "service-load-balancer-class": "delete service web', and Helm creates it again, with another address",
    "strategy-chart": 'patch deployment web --type=json -p \'[{"op":"replace","path":"/spec/strategy"',
    "configmap-immutable": "delete it with 'kubectl -n addons delete configmap web'",
    "configmap-immutable-chart": "delete it with 'kubectl -n addons delete configmap web'",
    "deployment-selector": "delete it with 'kubectl -n addons delete deployment web'",
    "daemonset-selector": "delete it with 'kubectl -n addons delete daemonset web'",
    "statefulset-claims": "'kubectl -n addons delete statefulset db --cascade=orphan'",
    "job-template": "delete it with 'kubectl -n addons delete job migrate'",
    "pvc-spec": "take the change back: its data goes with it if somebody deletes it",
    "pvc-size": "take the change back: its data goes with it if somebody deletes it",
    "role-ref": "delete it with 'kubectl -n addons delete rolebinding web'",
    "storage-class": "delete it with 'kubectl -n addons delete storageclass addons'",
    "priority-class": "delete it with 'kubectl -n addons delete priorityclass addons'",
    "ingress-class": "delete it with 'kubectl -n addons delete ingressclass addons'",
    "crd-scope": "take the change back: all objects of the kind go with it if somebody deletes it",
    "crd-stored-version": "keep that version in the definition",
    "node-port-taken": "another Service has it, as 'kubectl get services -A' shows",
}
"""What is advised, by case."""
_CONTAINER = "/spec/template/spec/containers/0"
OTHERS = {
    "service-port-number": ["/spec/ports/1"],
    "service-port-added-then-chart": ["/spec/ports/2"],
    "service-added-unnamed-chart": ["/spec/ports/0"],
    "container-port-number": [f"{_CONTAINER}/ports/1"],
    "env-value-from": [f"{_CONTAINER}/env/0/valueFrom"],
    "env-value-to-from": [f"{_CONTAINER}/env/0/value"],
    "volume-type": ["/spec/template/spec/volumes/0/configMap"],
    "volume-removed-mounted": [f"{_CONTAINER}/volumeMounts/1"],
    "container-renamed": [_CONTAINER],
    "probe-handler": [f"{_CONTAINER}/livenessProbe/exec"],
    "resources": [f"{_CONTAINER}/resources/requests"],
    "strategy-surge": ["/spec/strategy/rollingUpdate/maxSurge"],
    "pdb": ["/spec/maxUnavailable"],
    "configmap-immutable": ["/immutable"],
}
"""What somebody added that is in the way, by case."""
