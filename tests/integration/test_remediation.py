"""A failed upgrade goes back, and a failed run is tried again as soon as its cause is gone."""

import json
import pathlib
import time
from typing import Final

import pytest

from addon_operator.devcluster import handle
from tests.integration import module_objects, operator_process, operator_site

pytestmark = pytest.mark.integration

FAILING: Final = """\
{{ if .Values.web.fails }}
apiVersion: v1
kind: Service
metadata: {name: wrong}
spec: {ports: [{port: 99999}]}
{{ end }}
"""
HOOK: Final = {"afterHelm": 1}


@pytest.fixture
def modules(site: operator_site.Site, devcluster: handle.DevCluster) -> module_objects.Modules:
    site.first_retry = operator_site.SOON
    return module_objects.Modules(site, devcluster)


def with_web(
    site: operator_site.Site, extra: str = "", yaml: str = "remediation: {rollback: true}"
) -> pathlib.Path:
    module = site.module("010-web", {"a": '{{ .Values.web.a | default "one" }}'}, values="webEnabled: true\n")
    (module / "templates" / "more.yaml").write_text(FAILING + extra)
    (module / "module.yaml").write_text(f"{yaml}\n")
    return module


def reason(modules: module_objects.Modules, condition: str = "Ready") -> str:
    found = (modules.get("web") or {}).get("status", {}).get("conditions", ())
    return next((each["reason"] for each in found if each["type"] == condition), "")


@pytest.mark.parametrize("version", ["helm", "helm4"])
def test_a_failed_upgrade_goes_back_and_is_not_tried_again_until_somebody_asks(
    site: operator_site.Site, modules: module_objects.Modules, request: pytest.FixtureRequest, version: str
) -> None:
    if version == "helm4":
        site.use_helm(request.getfixturevalue(version))
    with_web(site)
    operator = site.start().wait_ready()
    site.config(web="fails: true\na: two\n")
    operator.wait_until(lambda: reason(modules) == "RolledBack", "it is taken back")
    assert site.data("web") == {"a": "one"}
    error = (modules.get("web") or {})["status"]["lastError"]
    assert "99999" in error or "Invalid value" in error
    assert "is taken back to revision 1" in error
    made = site.deployed()["web"]
    time.sleep(2)
    assert site.deployed()["web"] == made
    operator.stop()

    # It is remembered over a restart.
    again = site.start()
    operator_process.wait_until(lambda: reason(modules) == "RolledBack", "it is known")
    time.sleep(1)
    assert site.deployed()["web"] == made
    assert site.command("module", "retry", "web").returncode == 0
    again.wait_until(lambda: site.deployed()["web"] > made, "it is tried again")
    again.wait_until(lambda: reason(modules) == "RolledBack", "and taken back again")

    site.config(web="a: two\n")
    modules.wait(again, "web", Ready="True")
    assert site.data("web") == {"a": "two"}
    again.stop()


def test_what_would_delete_data_is_not_taken_back(
    site: operator_site.Site, modules: module_objects.Modules
) -> None:
    claim = (
        "{{ if .Values.web.fails }}\n---\n"
        "apiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {name: data}\n"
        "spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}\n{{ end }}\n"
    )
    with_web(site, claim)
    operator = site.start().wait_ready()
    site.config(web="fails: true\n")
    operator.wait_until(lambda: reason(modules) == "RollbackRefused", "it is refused")
    assert "it would delete PersistentVolumeClaim data" in (modules.get("web") or {})["status"]["lastError"]
    operator.stop()


def test_a_first_install_that_fails_is_uninstalled(
    site: operator_site.Site, modules: module_objects.Modules
) -> None:
    with_web(site)
    site.config(web="fails: true\n")
    operator = site.start()
    operator.wait_until(lambda: reason(modules) == "RolledBack", "it is taken back")
    operator.wait_until(lambda: not site.revisions(), "nothing is left")
    assert site.data("web") is None
    site.config(web=None)
    modules.wait(operator, "web", Ready="True")
    operator.stop()


DEPLOYMENT: Final = """\
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: app}
spec:
  selector: {matchLabels: {app: app}}
  template:
    metadata: {labels: {app: app}}
    spec:
      terminationGracePeriodSeconds: 0
      nodeSelector: {{ .Values.web.nodes | default dict | toJson }}
      containers: [{name: app, image: example.com/app:1}]
"""


def test_what_does_not_become_healthy_goes_back_to_what_was(
    site: operator_site.Site, modules: module_objects.Modules
) -> None:
    with_web(site, DEPLOYMENT, "remediation: {rollback: true}\nhealth: {wait: true, timeout: 3s}")
    operator = site.start()
    modules.wait(operator, "web", Ready="True", Healthy="True")
    site.config(web="nodes: {on: the-moon}\n")
    operator.wait_until(lambda: reason(modules) == "RolledBack", "it is taken back", deadline=60)
    error = (modules.get("web") or {})["status"]["lastError"]
    assert "not healthy within 3s: Deployment app" in error
    modules.wait(operator, "web", Ready="False", Healthy="True")
    selector = site.kubectl("get", "deployment", "app", "-o", "jsonpath={.spec.template.spec.nodeSelector}")
    assert "the-moon" not in selector
    operator.stop()


def begins(
    operator: operator_process.OperatorProcess, modules: module_objects.Modules, cure: object
) -> float:
    """Seconds from the cure until the module is Ready."""
    assert callable(cure)
    cure()
    began = time.monotonic()
    modules.wait(operator, "web", Ready="True")
    return time.monotonic() - began


def test_stalled_after_three_tries_and_woken_by_a_namespace(
    site: operator_site.Site, modules: module_objects.Modules
) -> None:
    far = f"{site.namespace}-far"
    with_web(site, f"---\napiVersion: v1\nkind: ConfigMap\nmetadata: {{name: far, namespace: {far}}}\n", "{}")
    operator = site.start()
    modules.wait(operator, "web", Ready="False", Stalled="True")
    operator.wait_until(lambda: f"waits for namespace {far}" in json.dumps(modules.get("web")), "it is told")
    listed = site.command("module", "list").stdout
    assert f"waits for namespace {far}" in listed
    assert begins(operator, modules, lambda: site.kubectl("create", "namespace", far)) < 4
    operator.stop()
    site.kubectl("delete", "namespace", far, "--wait=false")


def test_woken_by_a_kind_that_comes(site: operator_site.Site, modules: module_objects.Modules) -> None:
    group = f"{site.namespace}.example.com"
    with_web(site, f"---\napiVersion: {group}/v1\nkind: Shop\nmetadata: {{name: one}}\n", "{}")
    operator = site.start()
    modules.wait(operator, "web", Ready="False", Stalled="True")
    definition = site.root / "crd.yaml"
    definition.write_text(
        "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\n"
        f"metadata: {{name: shops.{group}}}\n"
        f"spec:\n  group: {group}\n  scope: Namespaced\n  names: {{kind: Shop, plural: shops}}\n  versions:\n"
        "  - name: v1\n    served: true\n    storage: true\n"
        "    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}\n"
    )
    assert begins(operator, modules, lambda: site.kubectl("apply", "-f", str(definition))) < 6
    operator.stop()
    site.kubectl("delete", "-f", str(definition), "--wait=false")


def test_woken_by_a_quota_that_is_raised(site: operator_site.Site, modules: module_objects.Modules) -> None:
    site.kubectl("create", "quota", "few", "--hard=count/services=0")
    service = "---\napiVersion: v1\nkind: Service\nmetadata: {name: app}\nspec: {ports: [{port: 80}]}\n"
    with_web(site, service, "{}")
    operator = site.start()
    modules.wait(operator, "web", Ready="False", Stalled="True")
    operator.wait_until(lambda: "room in ResourceQuota" in json.dumps(modules.get("web")), "it is told")
    more = json.dumps({"spec": {"hard": {"count/services": "5"}}})
    assert begins(operator, modules, lambda: site.kubectl("patch", "quota", "few", "-p", more)) < 4
    operator.stop()
