"""What somebody changes of a module's resources is told, or put back."""

import base64
import json
import pathlib
import shlex
import time
from typing import Any, Final

import pytest

from addon_operator.devcluster import handle
from tests.integration import module_objects, operator_process, operator_site

pytestmark = pytest.mark.integration

TEMPLATES: Final = """\
apiVersion: apps/v1
kind: Deployment
metadata: {name: app, labels: {team: a}}
spec:
  replicas: 1
  selector: {matchLabels: {app: app}}
  template:
    metadata: {labels: {app: app}}
    spec:
      hostNetwork: false
      terminationGracePeriodSeconds: 0
      containers:
      - name: app
        image: example.com/app:1
        ports: [{containerPort: 80}]
        resources: {limits: {cpu: 0.5, memory: 1024Mi}}
        env: [{name: A, value: "1"}, {name: B, value: "2"}]
---
apiVersion: v1
kind: Secret
metadata: {name: hidden}
stringData: {password: geheim}
---
apiVersion: v1
kind: Service
metadata: {name: app}
spec: {selector: {app: app}, ports: [{port: 80}]}
---
apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata: {name: app}
spec:
  podSelector: {}
  ingress: [{ports: [{port: 80}]}]
"""


DEFINITIONS: Final = """\
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.GROUP}
spec:
  group: GROUP
  scope: Namespaced
  names: {kind: Widget, plural: widgets, singular: widget, listKind: WidgetList}
  versions:
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            properties:
              mode: {type: string, default: fast}
              size: {type: integer}
              parts:
                type: array
                x-kubernetes-list-type: map
                x-kubernetes-list-map-keys: [id]
                items:
                  type: object
                  required: [id]
                  properties: {id: {type: string}, weight: {type: integer, default: 1}}
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: blobs.GROUP}
spec:
  group: GROUP
  scope: Namespaced
  names: {kind: Blob, plural: blobs, singular: blob, listKind: BlobList}
  versions:
  - name: v1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
"""
OTHERS: Final = """\
apiVersion: GROUP/v1
kind: Widget
metadata: {name: app}
spec: {size: 1, parts: [{id: a}, {id: b, weight: 2}]}
---
apiVersion: GROUP/v1
kind: Blob
metadata: {name: app}
spec: {size: 1.0, empty: {}, parts: [{id: a}, {id: b}]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: GROUP}
aggregationRule: {clusterRoleSelectors: [{matchLabels: {"GROUP/aggregate": "yes"}}]}
rules: []
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: part.GROUP, labels: {"GROUP/aggregate": "yes"}}
rules: [{apiGroups: [""], resources: [pods], verbs: [get]}]
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata: {name: GROUP}
webhooks:
- name: hook.GROUP
  clientConfig: {service: {name: app, namespace: none}, caBundle: ""}
  rules: [{apiGroups: [GROUP], apiVersions: [v9], operations: ["*"], resources: ["*"]}]
  sideEffects: None
  admissionReviewVersions: [v1]
---
apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata: {name: app}
spec:
  scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: app}
  maxReplicas: 9
  metrics: [{type: Resource, resource: {name: cpu, target: {type: Utilization, averageUtilization: 50}}}]
"""
MUTATION: Final = """\
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingAdmissionPolicy
metadata: {name: GROUP}
spec:
  matchConstraints:
    namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: NAMESPACE}}
    resourceRules:
    - {apiGroups: [apps], apiVersions: [v1], operations: ["*"], resources: [deployments]}
  reinvocationPolicy: Never
  mutations:
  - patchType: ApplyConfiguration
    applyConfiguration:
      expression: "Object{metadata: Object.metadata{labels: Object.metadata.labels{team: 'z'}}}"
---
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingAdmissionPolicyBinding
metadata: {name: GROUP}
spec: {policyName: GROUP}
"""


@pytest.fixture
def modules(site: operator_site.Site, devcluster: handle.DevCluster) -> module_objects.Modules:
    return module_objects.Modules(site, devcluster)


def with_app(site: operator_site.Site, drift: str = "") -> pathlib.Path:
    module = site.module("010-web", {"a": "b"}, values="webEnabled: true\n")
    (module / "templates" / "app.yaml").write_text(TEMPLATES)
    if drift:
        (module / "module.yaml").write_text(f"drift: {drift}\n")
    return module


def patch(site: operator_site.Site, resource: str, body: dict[str, Any], manager: str = "kubectl") -> None:
    kind, _, name = resource.partition("/")
    site.patch(kind, name, body, manager=manager)


def scale(site: operator_site.Site, replicas: int) -> None:
    site.patch("deployment", "app", {"spec": {"replicas": replicas}}, subresource="scale")


def mutated(site: operator_site.Site) -> bool:
    """Write the Deployment; whether that was mutated."""
    site.annotate("deployment", "app", {"seen": str(time.monotonic())})
    return bool(site.get("deployment", "app")["metadata"]["labels"]["team"] == "z")


def settle(modules: module_objects.Modules, operator: operator_process.OperatorProcess) -> None:
    modules.wait(operator, "web", Ready="True", Healthy="True", Drifted="False")


def test_what_somebody_changes_is_told_with_field_and_manager_and_never_a_secret(  # noqa: PLR0915 - one cluster
    site: operator_site.Site, modules: module_objects.Modules, helm: pathlib.Path
) -> None:
    site.use_helm(helm)
    module = with_app(site)
    operator = site.start().wait_ready()
    settle(modules, operator)
    before = site.revisions()

    # What others are meant to write, and what nobody wrote in the chart.
    site.kubectl("rollout", "restart", "deployment/app")
    site.label("deployment", "app", {"other": "x"})
    patch(site, "configmap/web", {"data": {"c": "d"}})

    patch(site, "configmap/web", {"data": {"a": "z"}}, "alice")
    operator.wait_until(
        lambda: "ConfigMap web: /data/a (by alice)" in modules.condition("web", "Drifted")["message"],
        "it is told",
    )
    assert modules.condition("web", "Drifted")["message"] == "ConfigMap web: /data/a (by alice)"
    assert modules.condition("web", "Drifted")["reason"] == "Changed"
    patch(site, "secret/hidden", {"stringData": {"password": "other"}}, "bob")
    operator.wait_until(
        lambda: "Secret hidden: /data/password (by bob)" in modules.condition("web", "Drifted")["message"],
        "so is this",
    )
    operator.wait_metric(2, "module_drifted_resources", module="web")
    shown = site.command("module", "diff", "web")
    assert "ConfigMap web: /data/a (by alice)\n  - b\n  + z\n" in shown.stdout
    assert "Secret hidden: /data/password (by bob)\n  - ***\n  + ***\n" in shown.stdout
    assert "Drifted" in modules.reasons("web")
    everywhere = shown.stdout + operator.log + json.dumps(modules.get("web"))
    assert "geheim" not in everywhere
    assert "Z2VoZWlt" not in everywhere

    # It is found after a restart.
    operator.stop()
    patch(site, "service/app", {"spec": {"selector": {"app": "elsewhere"}}}, "carol")
    again = site.start(WATCH_MODULES="true").wait_ready()
    again.wait_until(
        lambda: (
            "Service app: /spec/selector/app (by carol)" in modules.condition("web", "Drifted")["message"]
        ),
        "it is found",
    )
    # It is over when it is undone, when somebody runs the module, and when its mode changes.
    patch(site, "configmap/web", {"data": {"a": "b"}})
    again.wait_metric(2, "module_drifted_resources", module="web")
    site.command("module", "run", "web")
    modules.wait(again, "web", Drifted="False")
    patch(site, "service/app", {"spec": {"selector": {"app": "elsewhere"}}}, "carol")
    modules.wait(again, "web", Drifted="True")
    (module / "module.yaml").write_text("drift: {mode: correct}\n")
    modules.wait(again, "web", Drifted="False")
    assert site.get("service", "app")["spec"]["selector"] == {"app": "app"}
    assert site.secret_data("hidden") == {"password": "Z2VoZWlt"}

    # In the mode ignore nobody looks, and neither does a run put anything back.
    corrected = again.metrics().total("resources_corrected_total", module="web")
    (module / "module.yaml").write_text("drift: {mode: ignore}\n")
    again.wait_until(lambda: again.log.count("changed on disk and reloaded: web") == 2, "it is taken in")
    patch(site, "service/app", {"spec": {"selector": {"app": "elsewhere"}}}, "carol")
    ran = site.command("module", "run", "web", "--wait")
    assert ran.returncode == 0, ran.stderr
    again.wait_idle()
    assert site.get("service", "app")["spec"]["selector"] == {"app": "elsewhere"}
    assert modules.condition("web", "Drifted")["status"] != "True"
    assert again.metrics().total("resources_corrected_total", module="web") == corrected
    assert site.revisions() == before
    again.stop()


def test_what_somebody_changes_is_put_back_without_a_revision(
    site: operator_site.Site, modules: module_objects.Modules, helm: pathlib.Path
) -> None:
    site.use_helm(helm)
    with_app(site, "{mode: correct, ignore: [{kind: ConfigMap, name: web, paths: [/data/a]}]}")
    operator = site.start().wait_ready()
    settle(modules, operator)
    before = site.revisions()
    scale(site, 2)
    operator.wait_metric(1, "resources_corrected_total", module="web")
    patch(site, "configmap/web", {"data": {"a": "z"}})
    image = [{"op": "replace", "path": "/spec/template/spec/containers/0/image", "value": "evil:1"}]
    site.patch("deployment", "app", image)
    operator.wait_metric(2, "resources_corrected_total", module="web")
    site.label("deployment", "app", {"team": None})
    operator.wait_metric(3, "resources_corrected_total", module="web")
    patch(site, "secret/hidden", {"data": None})
    operator.wait_metric(4, "resources_corrected_total", module="web")
    found = site.get("deployment", "app")
    assert found["spec"]["template"]["spec"]["containers"][0]["image"] == "example.com/app:1"
    assert (found["metadata"]["labels"]["team"], found["spec"]["replicas"]) == ("a", 1)
    assert site.secret_data("hidden") == {"password": "Z2VoZWlt"}
    assert site.data("web") == {"a": "z"}
    assert site.revisions() == before
    operator.wait_until(lambda: "Corrected" in modules.reasons("web"), "it is told")
    settle(modules, operator)
    operator.stop()


PORTS: Final = """\
apiVersion: v1
kind: Service
metadata: {name: ports}
spec: {selector: {app: app}, ports: [{name: http, port: 80}, {name: metrics, port: 9090, targetPort: TARGET}]}
"""


def renumber(site: operator_site.Site) -> None:
    port = [{"op": "replace", "path": "/spec/ports/1/port", "value": 9191}]
    site.patch("service", "ports", port, manager="kubectl-edit")


@pytest.mark.slow
def test_a_port_that_somebody_renumbered_is_told_with_the_command_that_lets_upgrades_work_again(
    site: operator_site.Site, modules: module_objects.Modules, helm: pathlib.Path
) -> None:
    site.use_helm(helm)
    module = with_app(site)
    ports = module / "templates" / "ports.yaml"
    ports.write_text(PORTS.replace("TARGET", "1"))
    operator = site.start().wait_ready()
    settle(modules, operator)
    renumber(site)
    told = "Service ports: /spec/ports/1 (by kubectl-edit), /spec/ports/2 (by kubectl-edit)"
    operator.wait_until(
        lambda: told in modules.condition("web", "Drifted")["message"],
        "what is missing and what was added is told",
    )
    shown = site.command("module", "diff", "web").stdout
    assert '"port":9191' in shown.partition("/spec/ports/2 (by kubectl-edit)\n  - (missing)\n  + {")[2]
    operator.stop()

    # Helm's merge would have two ports of one name: plan says so, and so does the module that fails.
    ports.write_text(PORTS.replace("TARGET", "2"))
    cause = "Service ports: kubectl-edit added /spec/ports/1, "
    assert cause in " ".join(site.command("plan").stdout.split())
    again = site.start()
    again.wait_until(lambda: cause in modules.condition("web", "Ready")["message"], "the cause is told")
    command = (
        modules.condition("web", "Ready")["message"]
        .partition("remove it with: kubectl ")[2]
        .partition("; helm upgrade")[0]
    )
    site.kubectl(*shlex.split(command))
    again.wait_ready()
    modules.wait(again, "web", Ready="True", Drifted="False")
    found = site.get("service", "ports")["spec"]["ports"]
    assert [(each["port"], each["targetPort"]) for each in found] == [(80, 80), (9090, 2)]
    again.stop()

    # With drift.mode correct, nobody has to.
    (module / "module.yaml").write_text("drift: {mode: correct}\n")
    last = site.start().wait_ready()
    settle(modules, last)
    renumber(site)
    last.wait_metric(1, "resources_corrected_total", module="web")
    after = site.get("service", "ports")
    assert sorted(each["port"] for each in after["spec"]["ports"]) == [80, 9090]
    managers = {each["manager"] for each in after["metadata"]["managedFields"]}
    assert "addon-operator" not in managers, "what Helm drops later must not be held on to"
    last.stop()


@pytest.mark.slow
def test_somebody_who_insists_is_left_alone_with_a_warning_that_names_them(
    site: operator_site.Site, modules: module_objects.Modules
) -> None:
    with_app(site, "{mode: correct}")
    operator = site.start().wait_ready()
    settle(modules, operator)
    for number in range(5):
        patch(site, "configmap/web", {"data": {"a": f"z{number}"}}, "mallory")
        operator.wait_metric(number + 1, "resources_corrected_total", module="web")
    patch(site, "configmap/web", {"data": {"a": "at last"}}, "mallory")
    operator.wait_logged("ConfigMap web is changed again and again by mallory")
    operator.wait_until(
        lambda: modules.condition("web", "Drifted")["reason"] == "GivenUp", "it says that it gave up"
    )
    assert site.data("web") == {"a": "at last"}
    operator.stop()


@pytest.mark.slow
def test_what_is_exempt_or_in_maintenance_or_ignored_is_left_alone(
    site: operator_site.Site, modules: module_objects.Modules
) -> None:
    with_app(site, "{mode: correct}")
    operator = site.start().wait_ready()
    settle(modules, operator)
    site.annotate("configmap", "web", {"addon-operator.io/drift": "ignore"})
    patch(site, "configmap/web", {"data": {"a": "mine"}})
    patch(site, "service/app", {"spec": {"selector": {"app": "x"}}})
    operator.wait_metric(1, "resources_corrected_total", module="web")
    assert site.data("web") == {"a": "mine"}
    operator.stop()
    quiet = site.start(DRIFT_MODE="ignore").wait_ready()
    modules.wait(quiet, "web", Ready="True")
    quiet.stop()


def test_what_others_are_meant_to_write_is_neither_told_nor_put_back(  # noqa: PLR0915 - one cluster
    site: operator_site.Site,
    modules: module_objects.Modules,
    devcluster: handle.DevCluster,
    helm: pathlib.Path,
) -> None:
    site.use_helm(helm)
    group = f"{site.namespace}.example.com"
    module = with_app(site, "{mode: correct}")
    (module / "crds").mkdir()
    (module / "crds" / "all.yaml").write_text(DEFINITIONS.replace("GROUP", group))
    (module / "templates" / "others.yaml").write_text(OTHERS.replace("GROUP", group))
    operator = site.start().wait_ready()
    # No autoscaler is healthy where nobody serves metrics.
    modules.wait(operator, "web", Ready="True", Drifted="False")
    operator.wait_idle()
    before = site.revisions()

    # An autoscaler, by scale and by hand; an injector; the controller that aggregates roles.
    scale(site, 3)
    patch(site, "deployment/app", {"spec": {"replicas": 4}}, "autoscaler")
    authority = (devcluster.kubeconfig.parent / "pki" / "ca.crt").read_bytes()
    bundle = {
        "op": "add",
        "path": "/webhooks/0/clientConfig/caBundle",
        "value": base64.b64encode(authority).decode(),
    }
    site.patch("validatingwebhookconfiguration", group, [bundle])
    operator.wait_until(lambda: site.get("clusterrole", group)["rules"], "the rules are gathered")
    # Items and fields of their own.
    parts = [{"id": "c"}, {"id": "b", "weight": 2}, {"id": "a"}]
    patch(site, f"widgets.{group}/app", {"spec": {"parts": parts, "mode": "slow"}})
    patch(site, f"blobs.{group}/app", {"spec": {"more": 1}})
    sidecar = [
        {
            "op": "add",
            "path": "/spec/template/spec/containers/0",
            "value": {"name": "proxy", "image": "proxy"},
        }
    ]
    site.patch("deployment", "app", sidecar)
    # A mutation of each write, whoever wants it otherwise.
    policy = MUTATION.replace("GROUP", group).replace("NAMESPACE", site.namespace)
    site.apply(policy)
    try:
        operator_process.wait_until(lambda: mutated(site), "the policy counts")
        for number in range(3):
            site.label("deployment", "app", {"team": f"mine{number}"})
            operator.wait_logged("Deployment app", "changes /metadata/labels/team at each write")
        # What somebody else writes is told and put back all the same.
        patch(site, f"widgets.{group}/app", {"spec": {"size": 7}}, "alice")
        patch(site, f"blobs.{group}/app", {"spec": {"parts": [{"id": "a"}]}}, "bob")
        operator.wait_metric(2, "resources_corrected_total", module="web")
        modules.wait(operator, "web", Drifted="False")
    finally:
        for kind in ("mutatingadmissionpolicybinding", "mutatingadmissionpolicy"):
            site.delete(kind, group)
    assert operator.log.count("at each write") == 1, operator.tail()
    assert operator.metrics().total("resources_corrected_total", module="web") == 2
    assert site.revisions() == before
    deployment = site.get("deployment", "app")
    assert deployment["spec"]["replicas"] == 4
    assert [each["name"] for each in deployment["spec"]["template"]["spec"]["containers"]] == ["proxy", "app"]
    widget = site.get(f"widgets.{group}", "app")["spec"]
    assert (widget["size"], widget["mode"], len(widget["parts"])) == (1, "slow", 3)
    operator.stop()
