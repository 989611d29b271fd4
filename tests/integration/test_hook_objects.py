"""Each attempt starts clean: what Helm's hooks, tests and Jobs left is not in its way."""

import pathlib
from collections.abc import Callable
from typing import Any, Final

import pytest

from addon_operator.devcluster import handle
from tests.integration import module_objects, operator_process, operator_site

pytestmark = pytest.mark.integration

POD: Final = "restartPolicy: Never, containers: [{name: a, image: IMAGE}]"
TEMPLATES: Final = """\
{{- $hook := "{helm.sh/hook: 'pre-upgrade', helm.sh/hook-delete-policy: hook-succeeded}" }}
apiVersion: v1
kind: ServiceAccount
metadata: {name: hook, annotations: {{ $hook }} }
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: hook, annotations: {{ $hook }} }
rules: [{apiGroups: [""], resources: [pods], verbs: [get]}]
---
apiVersion: batch/v1
kind: Job
metadata: {name: hook, annotations: {{ $hook }} }
spec:
  completions: {{ .Values.web.completions }}
  activeDeadlineSeconds: 1
  # No node takes its pod.
  template: {spec: {POD, nodeSelector: {none: none}}}
---
apiVersion: batch/v1
kind: Job
metadata:
  name: leave
  annotations: {helm.sh/hook: pre-delete, helm.sh/hook-delete-policy: hook-succeeded}
spec:
  activeDeadlineSeconds: 1
  template: {spec: {POD, nodeSelector: {none: none}}}
---
apiVersion: batch/v1
kind: Job
metadata: {name: migrate}
spec:
  completions: 0
  template: {spec: {POD}}
---
apiVersion: v1
kind: Pod
metadata:
  name: try
  annotations: {helm.sh/hook: test, helm.sh/hook-delete-policy: hook-succeeded}
spec: {POD}
""".replace("POD", POD).replace("IMAGE", '"example.com/app:{{ .Values.web.image }}"')

Object = dict[str, Any]


@pytest.fixture
def modules(site: operator_site.Site, devcluster: handle.DevCluster) -> module_objects.Modules:
    site.first_retry = operator_site.SOON
    return module_objects.Modules(site, devcluster)


def end_test(
    site: operator_site.Site, operator: operator_process.OperatorProcess, phase: str, *earlier: str
) -> str:
    """Wait for another pod of the test, and let it end."""

    def pod() -> str:
        found = site.find("pod", "try")
        if found is None or found["status"]["phase"] != "Running":
            return ""
        uid = str(found["metadata"]["uid"])
        return "" if uid in earlier else uid

    uid = operator.wait_until(pod, "the test begins")
    site.patch("pod", "try", {"status": {"phase": phase}}, subresource="status")
    return uid


def ready(modules: module_objects.Modules, *words: str) -> Callable[[], bool]:
    return lambda: all(word in modules.condition("web", "Ready")["message"] for word in words)


def test_what_failed_hooks_and_tests_left_does_not_stand_in_the_way(
    site: operator_site.Site, modules: module_objects.Modules, helm: pathlib.Path
) -> None:
    site.use_helm(helm)
    module = site.module("010-web", {"a": "b"}, values="webEnabled: true\n")
    (module / "templates" / "app.yaml").write_text(TEMPLATES)
    (module / "module.yaml").write_text("health: {test: true}\n")
    site.config(web="completions: 0\nimage: 1\n")
    operator = site.start()

    # A test that failed is tried again in another pod.
    first = end_test(site, operator, "Failed")
    operator.wait_until(ready(modules, "the chart's tests failed"), "it is told")
    assert "HELM_TIMEOUT" not in modules.condition("web", "Ready")["message"]
    end_test(site, operator, "Succeeded", first)
    modules.wait(operator, "web", Ready="True")
    job = site.get("job", "migrate")["metadata"]["uid"]

    # A hook that failed is told, and so is the next failure: not that its name is taken.
    site.config(web="completions: 1\nimage: 1\n")
    operator.wait_until(ready(modules, "pre-upgrade hooks failed"), "it fails")
    failed = site.get("job", "hook")["metadata"]["uid"]
    operator.wait_until(
        lambda: (site.find("job", "hook") or {"metadata": {"uid": failed}})["metadata"]["uid"] != failed,
        "it is tried again",
    )
    assert site.get("job", "migrate")["metadata"]["uid"] == job

    # The cure works, and the Job that has ended is made anew, as its template is another one.
    site.config(web="completions: 0\nimage: 2\n")
    end_test(site, operator, "Succeeded", first)
    modules.wait(operator, "web", Ready="True")
    migrate = site.get("job", "migrate")
    assert migrate["metadata"]["uid"] != job
    assert migrate["spec"]["template"]["spec"]["containers"][0]["image"] == "example.com/app:2"
    assert [site.find(kind, "hook") for kind in ("job", "role", "serviceaccount")] == [None] * 3

    # So does what a hook of a removal left, of which no record says that it failed.
    site.config(webEnabled="false")
    first_of = operator.wait_until(lambda: site.find("job", "leave"), "its hook begins")["metadata"]["uid"]
    operator.wait_until(
        lambda: (site.find("job", "leave") or {"metadata": {"uid": first_of}})["metadata"]["uid"] != first_of,
        "the removal is tried again",
    )
    assert "exists" not in operator.log
    operator.stop()
