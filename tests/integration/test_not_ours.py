"""What others rightly write of a release's objects stays, whatever the operator writes, with both Helms."""

import base64
import json
import pathlib
from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

import pytest

from addon_operator.devcluster import handle
from tests.integration import module_objects, operator_site

pytestmark = pytest.mark.integration

WORKLOAD: Final = """\
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: NAME}
spec:
  REPLICAS
  selector: {matchLabels: {app: NAME}}
  template:
    metadata:
      labels: {app: NAME}
      annotations: {kubectl.kubernetes.io/restartedAt: "2026-01-01T00:00:00Z"}
    spec: {containers: [{name: app, image: "example.com/app:{{ .Values.web.image }}"}]}
"""
REPLICAS: Final = "replicas: 2"
HANDED: Final = "{{ if not .Values.web.handed }}replicas: 2{{ end }}"
OTHERS: Final = """\
---
apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata: {name: own}
spec: {scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: own}, maxReplicas: 9}
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: data}
spec:
  storageClassName: NAMESPACE
  volumeName: NAMESPACE
  accessModes: [ReadWriteOnce]
  resources: {requests: {storage: "{{ .Values.web.size }}"}}
---
apiVersion: v1
kind: ServiceAccount
metadata: {name: app}
imagePullSecrets: [{name: "{{ .Values.web.pull }}"}]
secrets: [{name: own}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: NAMESPACE}
aggregationRule: {clusterRoleSelectors: [{matchLabels: {NAMESPACE/aggregate: "yes"}}]}
rules: []
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata: {name: NAMESPACE}
webhooks:
- name: hook.example.com
  clientConfig: {service: {name: app, namespace: none}, caBundle: ""}
  rules: [{apiGroups: [NAMESPACE], apiVersions: [v9], operations: ["*"], resources: ["*"]}]
  failurePolicy: Ignore
  sideEffects: None
  admissionReviewVersions: [v1]
"""
VOLUME: Final = """\
apiVersion: storage.k8s.io/v1
kind: StorageClass
metadata: {name: NAMESPACE}
provisioner: example.com/none
allowVolumeExpansion: true
---
apiVersion: v1
kind: PersistentVolume
metadata: {name: NAMESPACE}
spec:
  storageClassName: NAMESPACE
  capacity: {storage: 10Gi}
  accessModes: [ReadWriteOnce]
  hostPath: {path: /nowhere}
"""
KEDA: Final = """\
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: scaledobjects.keda.sh}
spec:
  group: keda.sh
  scope: Namespaced
  names: {plural: scaledobjects, singular: scaledobject, kind: ScaledObject}
  versions:
  - name: v1alpha1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
"""
SCALED: Final = """\
apiVersion: keda.sh/v1alpha1
kind: ScaledObject
metadata: {name: scaled}
spec: {scaleTargetRef: {name: scaled}}
"""
PART: Final = """\
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: NAMESPACE-part, labels: {NAMESPACE/aggregate: "yes"}}
rules: [{apiGroups: [""], resources: [pods], verbs: [get]}]
"""
APPLIED: Final = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: web}\ndata: {applied: platform}\n"
FAILING: Final = """\
{{ if .Values.web.fails }}
---
apiVersion: v1
kind: Service
metadata: {name: wrong}
spec: {ports: [{port: 0}]}
{{ end }}
"""
VALUES: Final = {
    "image": "1",
    "size": "10Gi",
    "pull": "own",
    "handed": "false",
    "applied": "chart",
    "fails": "false",
}

IMAGE: Final = "/spec/template/spec/containers/0/image"

Object = dict[str, Any]


class Case(NamedTuple):
    """One row: what others write, and what is there of it at any time afterwards."""

    write: Callable[[operator_site.Site], object]
    read: Callable[[operator_site.Site], object]
    stays: object


def workload(name: str, replicas: str = REPLICAS) -> str:
    return WORKLOAD.replace("NAME", name).replace("REPLICAS", replicas)


def scale(name: str, replicas: int, manager: str = "kubectl") -> Callable[[operator_site.Site], object]:
    return lambda site: site.patch(
        "deployment", name, {"spec": {"replicas": replicas}}, subresource="scale", manager=manager
    )


def replicas(name: str) -> Callable[[operator_site.Site], object]:
    return lambda site: site.get("deployment", name)["spec"]["replicas"]


def webhook(site: operator_site.Site) -> Any:  # noqa: ANN401 - JSON
    return site.get("validatingwebhookconfiguration", site.namespace)["webhooks"][0]


def bundle(site: operator_site.Site) -> str:
    """What is a certificate."""
    return str(site.get("configmap", "kube-root-ca.crt")["data"]["ca.crt"])


def inject(site: operator_site.Site) -> None:
    for path, value, manager in (
        ("clientConfig/caBundle", base64.b64encode(bundle(site).encode()).decode(), "cainjector"),
        ("failurePolicy", "Fail", "pilot-discovery"),
    ):
        operation = {"op": "add", "path": f"/webhooks/0/{path}", "value": value}
        site.patch("validatingwebhookconfiguration", site.namespace, [operation], manager=manager)


def restart(site: operator_site.Site) -> None:
    annotations = {"kubectl.kubernetes.io/restartedAt": "2026-02-02T00:00:00Z"}
    site.patch("deployment", "own", {"spec": {"template": {"metadata": {"annotations": annotations}}}})


CASES: Final[Mapping[str, Case]] = {
    "replicas under an autoscaler of the release": Case(scale("own", 4), replicas("own"), 4),
    "replicas under an autoscaler beside the release": Case(scale("beside", 5), replicas("beside"), 5),
    "replicas under a ScaledObject beside the release": Case(scale("scaled", 6), replicas("scaled"), 6),
    "replicas that the chart hands over": Case(lambda _: None, replicas("handed"), 2),
    "a claim that grew": Case(
        lambda site: site.patch("pvc", "data", {"spec": {"resources": {"requests": {"storage": "20Gi"}}}}),
        lambda site: site.get("pvc", "data")["spec"]["resources"]["requests"]["storage"],
        "20Gi",
    ),
    "a platform's pull secret": Case(
        lambda site: site.patch(
            "serviceaccount", "app", {"imagePullSecrets": [{"name": "own"}, {"name": "platform"}]}
        ),
        lambda site: {"name": "platform"} in site.get("serviceaccount", "app")["imagePullSecrets"],
        True,
    ),
    "a generated secret of an account": Case(
        lambda site: site.patch("serviceaccount", "app", {"secrets": [{"name": "own"}, {"name": "made"}]}),
        lambda site: {"name": "made"} in site.get("serviceaccount", "app")["secrets"],
        True,
    ),
    "the bundle of a webhook": Case(
        inject, lambda site: len(webhook(site)["clientConfig"]["caBundle"]) > 100, True
    ),
    "the failure policy of a webhook": Case(
        lambda _: None, lambda site: webhook(site)["failurePolicy"], "Fail"
    ),
    "rules that are gathered": Case(
        lambda site: site.apply(PART.replace("NAMESPACE", site.namespace)),
        lambda site: len(site.get("clusterrole", site.namespace)["rules"]),
        1,
    ),
    "a restart": Case(
        restart,
        lambda site: site.get("deployment", "own")["spec"]["template"]["metadata"]["annotations"][
            "kubectl.kubernetes.io/restartedAt"
        ],
        "2026-02-02T00:00:00Z",
    ),
    "what a program of the release wrote": Case(
        lambda site: site.patch("configmap", "web", {"data": {"program": "own"}}, manager="app"),
        lambda site: (site.data("web") or {})["program"],
        "own",
    ),
    "what others apply": Case(
        lambda site: site.apply(APPLIED, manager="platform"),
        lambda site: (site.data("web") or {})["applied"],
        "platform",
    ),
}


def set_values(site: operator_site.Site, **more: str) -> None:
    site.config(web="".join(f"{key}: {value}\n" for key, value in {**VALUES, **more}.items()))


def gone(site: operator_site.Site) -> None:
    site.delete("clusterrole", f"{site.namespace}-part")
    site.delete("persistentvolume", site.namespace, waits=False)
    site.kubectl("delete", "storageclass", site.namespace)
    site.kubectl("delete", "customresourcedefinition", "scaledobjects.keda.sh")


@pytest.fixture
def modules(site: operator_site.Site, devcluster: handle.DevCluster) -> module_objects.Modules:
    site.first_retry = operator_site.SOON
    return module_objects.Modules(site, devcluster)


def kept(site: operator_site.Site) -> dict[str, object]:
    return {name: case.read(site) for name, case in CASES.items()}


def pull_secrets(site: operator_site.Site) -> list[str]:
    found = site.get("serviceaccount", "app")["imagePullSecrets"]
    return sorted(each["name"] for each in found)


def images(site: operator_site.Site) -> set[str]:
    found = (site.get("deployment", name) for name in ("own", "beside", "handed"))
    return {each["spec"]["template"]["spec"]["containers"][0]["image"].rpartition(":")[2] for each in found}


def test_what_others_made_of_objects_is_no_drift_and_stays_when_they_are_written(  # noqa: PLR0915 - one cluster
    site: operator_site.Site, modules: module_objects.Modules, helm: pathlib.Path
) -> None:
    site.use_helm(helm)
    data = {"program": "chart", "applied": "{{ .Values.web.applied }}"}
    module = site.module("010-web", data, values="webEnabled: true\n")
    (module / "module.yaml").write_text("remediation: {rollback: true}\n")
    parts = [
        workload("own"),
        workload("beside"),
        workload("scaled"),
        workload("handed", HANDED),
        workload("plain"),
        OTHERS,
        FAILING,
    ]
    (module / "templates" / "app.yaml").write_text("".join(parts).replace("NAMESPACE", site.namespace))
    site.kubectl("create", "-f", write(site, f"{VOLUME}---\n{KEDA}"))
    site.kubectl("wait", "--for=condition=Established", "customresourcedefinition/scaledobjects.keda.sh")
    set_values(site)
    operator = site.start().wait_ready().wait_idle()
    modules.wait(operator, "web", Ready="True", Drifted="False")
    for name in ("beside", "handed"):
        site.kubectl("autoscale", f"deployment/{name}", "--max=9")
    site.kubectl("create", "-f", write(site, SCALED))
    operator.wait_until(lambda: site.get("pvc", "data")["status"].get("phase") == "Bound", "it is bound")
    for case in CASES.values():
        case.write(site)
    there = {name: case.stays for name, case in CASES.items()}
    operator.wait_until(lambda: kept(site) == there, "all is written")

    # Without an autoscaler it is drift, and the only one.
    scale("plain", 0)(site)
    told = "Deployment plain: /spec/replicas"
    operator.wait_until(lambda: modules.condition("web", "Drifted")["message"].startswith(told), "it is told")
    assert ";" not in modules.condition("web", "Drifted")["message"]

    set_values(site, image="2", handed="true")
    operator.wait_until(lambda: images(site) == {"2"}, "the edit is there")
    modules.wait(operator, "web", Ready="True", Drifted="False")
    assert kept(site) == there
    assert replicas("plain")(site) == 2

    # A rollback keeps them, too.
    set_values(site, image="bad", handed="true", fails="true")
    operator.wait_until(
        lambda: modules.condition("web", "Ready")["reason"] == "RolledBack", "it is taken back"
    )
    assert (kept(site), images(site)) == (there, {"2"})

    # A chart that wants more, or something else of its own, gets it.
    set_values(site, image="3", handed="true", size="30Gi", pull="other", applied="changed")
    operator.wait_until(lambda: images(site) == {"3"}, "the edit is there")
    modules.wait(operator, "web", Ready="True", Drifted="False")
    there |= {"a claim that grew": "30Gi", "what others apply": "changed"}
    assert kept(site) == there
    assert pull_secrets(site) == ["other", "platform"]

    # The record is as others made it, and the checksum that of the chart: nothing is due.
    before = site.revisions()
    assert "No release would change." in site.command("plan").stdout
    operator.stop()
    wanted = {"image": "3", "handed": "true", "size": "30Gi", "pull": "other", "applied": "changed"}
    set_values(site, **{**wanted, "image": "4"})
    (planned,) = json.loads(site.command("plan", "--output=json").stdout)["modules"]
    changed = {each["name"]: each["diff"] for each in planned["changes"]}
    assert sorted(changed) == ["beside", "handed", "own", "plain", "scaled"], "what stays is no change"
    assert not [each for each in changed.values() if "-  replicas" in each]
    set_values(site, **wanted)
    again = site.start(DRIFT_MODE="correct").wait_ready().wait_idle()
    modules.wait(again, "web", Ready="True", Drifted="False")

    # Neither does a correction of other fields change them.
    site.patch("deployment", "own", [{"op": "replace", "path": IMAGE, "value": "example.com/app:0"}])
    site.patch("serviceaccount", "app", {"imagePullSecrets": [{"name": "late"}, {"name": "platform"}]})
    again.wait_metric(2, "resources_corrected_total", module="web")
    modules.wait(again, "web", Ready="True", Drifted="False")
    assert (kept(site), images(site), pull_secrets(site)) == (there, {"3"}, ["late", "other", "platform"])
    assert "at each write" not in again.log
    assert site.revisions() == before
    again.stop()
    gone(site)


def write(site: operator_site.Site, text: str) -> str:
    path = site.root / "volume.yaml"
    path.write_text(text.replace("NAMESPACE", site.namespace))
    return str(path)
