"""What others do to the resources of releases all the time, and what a chart's user does not call drift.

An autoscaler writes how many pods there are, an injector of certificates which authority webhooks are asked
with, a platform adds its pull secret to each account, somebody enlarges claims, an inventory marks
everything, and admission policies change each pod and each written Deployment.
"""

import base64
from collections.abc import Iterable
from typing import Any, Final

from addon_operator.devcluster import handle
from tests.trials import release_view

_SCALED: Final = frozenset({"Deployment", "StatefulSet"})
_UNMARKED: Final = frozenset({"Namespace", "CustomResourceDefinition"})
_MARK: Final = "trial.example.com/round"
_POLICIES: Final = """\
apiVersion: storage.k8s.io/v1
kind: StorageClass
metadata: {name: trial, annotations: {storageclass.kubernetes.io/is-default-class: "true"}}
provisioner: trial.example.com/none
allowVolumeExpansion: true
---
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingAdmissionPolicy
metadata: {name: pods.trial.example.com}
spec:
  matchConstraints:
    resourceRules:
    - {apiGroups: [""], apiVersions: [v1], operations: [CREATE], resources: [pods]}
  failurePolicy: Ignore
  reinvocationPolicy: Never
  mutations:
  - patchType: ApplyConfiguration
    applyConfiguration:
      expression: >-
        Object{metadata: Object.metadata{labels: Object.metadata.labels{injected: "yes"}}}
---
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingAdmissionPolicyBinding
metadata: {name: pods.trial.example.com}
spec: {policyName: pods.trial.example.com}
---
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingAdmissionPolicy
metadata: {name: workloads.trial.example.com}
spec:
  matchConstraints:
    resourceRules:
    - {apiGroups: [apps], apiVersions: [v1], operations: [CREATE, UPDATE], resources: [deployments]}
  failurePolicy: Ignore
  reinvocationPolicy: Never
  mutations:
  - patchType: ApplyConfiguration
    applyConfiguration:
      expression: >-
        Object{spec: Object.spec{template: Object.spec.template{spec: Object.spec.template.spec{
          containers: object.spec.template.spec.containers.map(each, Object.spec.template.spec.containers{
            name: each.name, imagePullPolicy: "Always"})}}}}
---
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingAdmissionPolicyBinding
metadata: {name: workloads.trial.example.com}
spec: {policyName: workloads.trial.example.com}
"""


class Others:
    """Does what they do, one round after another."""

    def __init__(self, cluster: handle.DevCluster, releases: release_view.Releases) -> None:
        self._cluster = cluster
        self._releases = releases
        self._round = 0
        authority = (cluster.kubeconfig.parent / "pki" / "ca.crt").read_bytes()
        self._bundles = [base64.b64encode(authority * (1 + number)).decode() for number in range(2)]
        self.writes = 0
        """How many objects they have written."""
        self._autoscalers: dict[str, None] = {}
        self.refused = 0
        """How many they were not allowed to write."""

    def arrive(self) -> None:
        """Make the policies and a class of storage, which count from now on."""
        self._cluster.run_kubectl("apply", "-f", "-", stdin=_POLICIES)

    def leave(self) -> None:
        """Remove these and the autoscalers."""
        self._cluster.run_kubectl("delete", "-f", "-", stdin=_POLICIES)
        for place in self._autoscalers:
            self._releases.api.request("DELETE", place)

    def write(self, things: Iterable[release_view.Thing]) -> None:
        """Write what is theirs of these objects."""
        self._round += 1
        for thing in things:
            if thing.kind in _SCALED:
                self._scale(thing)
            elif thing.kind == "ServiceAccount":
                self._add_pull_secret(thing)
            elif thing.kind == release_view.CLAIM:
                self._enlarge(thing)
            elif thing.kind.endswith("WebhookConfiguration"):
                self._inject(thing)
            if thing.kind not in _UNMARKED:
                self._patch(thing.path, {"metadata": {"labels": {_MARK: str(self._round)}}}, "inventory")

    def _scale(self, thing: release_view.Thing) -> None:
        root, _, name = thing.path.rpartition("/")
        namespace = root.split("/namespaces/")[1].split("/")[0]
        place = f"/apis/autoscaling/v2/namespaces/{namespace}/horizontalpodautoscalers/trial-{name}"
        target = {"apiVersion": "apps/v1", "kind": thing.kind, "name": name}
        body = {
            "apiVersion": "autoscaling/v2",
            "kind": "HorizontalPodAutoscaler",
            "metadata": {"name": f"trial-{name}", "namespace": namespace},
            "spec": {"scaleTargetRef": target, "maxReplicas": 9},
        }
        self._autoscalers[place] = None
        self._releases.api.request(
            "PATCH", f"{place}?fieldManager=trial", body, "application/apply-patch+yaml"
        )
        self._patch(f"{thing.path}/scale", {"spec": {"replicas": 1 + self._round % 2}}, "autoscaler")

    def _enlarge(self, thing: release_view.Thing) -> None:
        """Give a claim its volume, once, and more room from then on: only a bound claim can grow."""
        claim = self._releases.read(thing)
        metadata, spec = claim["metadata"], claim["spec"]
        if spec.get("storageClassName") and not spec.get("volumeName"):
            name = f"trial-{metadata['uid']}"
            body = {
                "apiVersion": "v1",
                "kind": "PersistentVolume",
                "metadata": {"name": name},
                "spec": {
                    "capacity": spec["resources"]["requests"],
                    "accessModes": spec["accessModes"],
                    "storageClassName": spec["storageClassName"],
                    "claimRef": {"namespace": metadata["namespace"], "name": metadata["name"]},
                    "hostPath": {"path": "/trial"},
                },
            }
            place = f"/api/v1/persistentvolumes/{name}?fieldManager=trial"
            self._releases.api.request("PATCH", place, body, "application/apply-patch+yaml")
        elif claim["status"].get("phase") == "Bound":
            more = {"spec": {"resources": {"requests": {"storage": f"{500 + self._round}Gi"}}}}
            self._patch(thing.path, more, "kubectl-edit")

    def _add_pull_secret(self, thing: release_view.Thing) -> None:
        secrets = self._releases.read(thing).get("imagePullSecrets") or []
        if (added := {"name": "platform"}) not in secrets:
            self._patch(thing.path, {"imagePullSecrets": [*secrets, added]}, "platform")

    def _inject(self, thing: release_view.Thing) -> None:
        found = self._releases.read(thing)
        webhooks = found.get("webhooks") or []
        for webhook in webhooks:
            webhook["clientConfig"]["caBundle"] = self._bundles[self._round % 2]
        if webhooks:
            self._patch(thing.path, {"webhooks": webhooks}, "injector")

    def _patch(self, path: str, body: dict[str, Any], manager: str) -> None:
        target = f"{path}?fieldManager={manager}"
        try:
            self._releases.api.request("PATCH", target, body, "application/merge-patch+json")
        except RuntimeError:
            # A webhook of a chart whose pods serve nothing here.
            self.refused += 1
        else:
            self.writes += 1
