"""What somebody changes of a module's resources is told, or put back."""

import json
import pathlib
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


@pytest.fixture
def modules(site: operator_site.Site, devcluster: handle.DevCluster) -> module_objects.Modules:
    return module_objects.Modules(site, devcluster)


def with_app(site: operator_site.Site, drift: str = "") -> pathlib.Path:
    module = site.module("010-web", {"a": "b"}, values="webEnabled: true\n")
    (module / "templates" / "app.yaml").write_text(TEMPLATES)
    if drift:
        (module / "module.yaml").write_text(f"drift: {drift}\n")
    return module


def message(modules: module_objects.Modules) -> str:
    found = (modules.get("web") or {}).get("status", {}).get("conditions", ())
    return next((each["message"] for each in found if each["type"] == "Drifted"), "")


def patch(site: operator_site.Site, resource: str, body: dict[str, Any], *more: str) -> None:
    site.kubectl("patch", resource, "--type=merge", "-p", json.dumps(body), *more)


def settle(modules: module_objects.Modules, operator: operator_process.OperatorProcess) -> None:
    modules.wait(operator, "web", Ready="True", Healthy="True", Drifted="False")


@pytest.mark.parametrize("version", ["helm", "helm4"])
def test_what_somebody_changes_is_told_with_field_and_manager_and_never_a_secret(
    site: operator_site.Site, modules: module_objects.Modules, request: pytest.FixtureRequest, version: str
) -> None:
    if version == "helm4":
        site.use_helm(request.getfixturevalue(version))
    with_app(site)
    operator = site.start().wait_ready()
    settle(modules, operator)
    before = site.revisions()

    # What others are meant to write, and what nobody wrote in the chart.
    site.kubectl("scale", "deployment/app", "--replicas=2")
    site.kubectl("rollout", "restart", "deployment/app")
    site.kubectl("label", "deployment/app", "other=x")
    patch(site, "configmap/web", {"data": {"c": "d"}})

    patch(site, "configmap/web", {"data": {"a": "z"}}, "--field-manager=alice")
    operator.wait_until(lambda: "ConfigMap web: /data/a (by alice)" in message(modules), "it is told")
    assert message(modules) == "ConfigMap web: /data/a (by alice)"
    patch(site, "secret/hidden", {"stringData": {"password": "other"}}, "--field-manager=bob")
    operator.wait_until(lambda: "Secret hidden: /data/password (by bob)" in message(modules), "so is this")
    operator.wait_metric(2, "module_drifted_resources", module="web")
    shown = site.command("module", "diff", "web")
    assert "ConfigMap web: /data/a (by alice)\n  - b\n  + z\n" in shown.stdout
    assert "Secret hidden: /data/password (by bob)\n  - ***\n  + ***\n" in shown.stdout
    assert "Drifted" in modules.reasons("web")
    everywhere = shown.stdout + operator.log + json.dumps(modules.get("web"))
    assert "geheim" not in everywhere
    assert "Z2VoZWlt" not in everywhere

    # It is found after a restart, and over when it is undone.
    operator.stop()
    patch(site, "service/app", {"spec": {"selector": {"app": "elsewhere"}}}, "--field-manager=carol")
    again = site.start().wait_ready()
    again.wait_until(lambda: "Service app: /spec/selector/app (by carol)" in message(modules), "it is found")
    patch(site, "configmap/web", {"data": {"a": "b"}})
    patch(site, "secret/hidden", {"stringData": {"password": "geheim"}})
    patch(site, "service/app", {"spec": {"selector": {"app": "app"}}})
    modules.wait(again, "web", Drifted="False")
    assert site.revisions() == before
    again.stop()


@pytest.mark.parametrize("version", ["helm", "helm4"])
def test_what_somebody_changes_is_put_back_without_a_revision(
    site: operator_site.Site, modules: module_objects.Modules, request: pytest.FixtureRequest, version: str
) -> None:
    if version == "helm4":
        site.use_helm(request.getfixturevalue(version))
    with_app(site, "{mode: correct, ignore: [{kind: ConfigMap, name: web, paths: [/data/a]}]}")
    operator = site.start().wait_ready()
    settle(modules, operator)
    before = site.revisions()
    site.kubectl("scale", "deployment/app", "--replicas=2")
    patch(site, "configmap/web", {"data": {"a": "z"}})
    image = [{"op": "replace", "path": "/spec/template/spec/containers/0/image", "value": "evil:1"}]
    site.kubectl("patch", "deployment/app", "--type=json", "-p", json.dumps(image))
    operator.wait_metric(1, "resources_corrected_total", module="web")
    site.kubectl("label", "deployment/app", "team-")
    operator.wait_metric(2, "resources_corrected_total", module="web")
    patch(site, "secret/hidden", {"data": None})
    operator.wait_metric(3, "resources_corrected_total", module="web")
    found = json.loads(site.kubectl("get", "deployment", "app", "-o", "json"))
    assert found["spec"]["template"]["spec"]["containers"][0]["image"] == "example.com/app:1"
    assert (found["metadata"]["labels"]["team"], found["spec"]["replicas"]) == ("a", 2)
    assert site.secret_data("hidden") == {"password": "Z2VoZWlt"}
    assert site.data("web") == {"a": "z"}
    assert site.revisions() == before
    operator.wait_until(lambda: "Corrected" in modules.reasons("web"), "it is told")
    settle(modules, operator)
    operator.stop()


def test_somebody_who_insists_is_left_alone_with_a_warning_that_names_them(
    site: operator_site.Site, modules: module_objects.Modules
) -> None:
    with_app(site, "{mode: correct}")
    operator = site.start().wait_ready()
    settle(modules, operator)
    for number in range(5):
        patch(site, "configmap/web", {"data": {"a": f"z{number}"}}, "--field-manager=mallory")
        operator.wait_metric(number + 1, "resources_corrected_total", module="web")
    patch(site, "configmap/web", {"data": {"a": "at last"}}, "--field-manager=mallory")
    operator.wait_logged("ConfigMap web is changed again and again by mallory")
    modules.wait(operator, "web", Drifted="True")
    assert site.data("web") == {"a": "at last"}
    operator.stop()


def test_what_is_exempt_or_in_maintenance_or_ignored_is_left_alone(
    site: operator_site.Site, modules: module_objects.Modules
) -> None:
    with_app(site, "{mode: correct}")
    operator = site.start().wait_ready()
    settle(modules, operator)
    site.kubectl("annotate", "configmap/web", "addon-operator.io/drift=ignore")
    patch(site, "configmap/web", {"data": {"a": "mine"}})
    patch(site, "service/app", {"spec": {"selector": {"app": "x"}}})
    operator.wait_metric(1, "resources_corrected_total", module="web")
    assert site.data("web") == {"a": "mine"}
    operator.stop()
    quiet = site.start(DRIFT_MODE="ignore").wait_ready()
    modules.wait(quiet, "web", Ready="True")
    quiet.stop()
