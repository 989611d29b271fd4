"""A failed upgrade goes back, and a failed run is tried again as soon as its cause is gone."""

import json
import pathlib
import re
import select
import socket
import socketserver
import threading
import time
from collections.abc import Sequence
from typing import Final

import pytest
from typing_extensions import override

from addon_operator.devcluster import handle
from tests.integration import chart_repositories, module_objects, operator_process, operator_site, pulling

pytestmark = pytest.mark.integration

NEVER: Final = 600.0
"""Seconds until a next try that no test waits for: what comes earlier was woken."""

FAILING: Final = """\
{{ if .Values.web.fails }}
apiVersion: v1
kind: Service
metadata: {name: wrong}
spec: {ports: [{port: 99999}]}
{{ end }}
"""


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


def test_a_failed_upgrade_goes_back_and_is_not_tried_again_until_somebody_asks(
    site: operator_site.Site, modules: module_objects.Modules, helm: pathlib.Path
) -> None:
    site.use_helm(helm)
    module = with_web(site)
    size = '[{"op": "add", "path": "/web/size", "value": 3}]'
    site.hook(module, "size.sh", {"beforeHelm": 1}, f"echo '{size}' > \"$CONFIG_VALUES_JSON_PATCH_PATH\"")
    operator = site.start().wait_ready()
    site.config(web="fails: true\na: two\n")
    operator.wait_until(
        lambda: modules.condition("web", "Ready")["reason"] == "RolledBack", "it is taken back"
    )
    assert site.data("web") == {"a": "one"}
    error = (modules.get("web") or {})["status"]["lastError"]
    assert "99999" in error or "Invalid value" in error
    assert "is taken back to revision 1" in error
    # What hooks wrote to the values stays.
    assert "size: 3" in (site.data(operator_site.CONFIG_MAP) or {})["web"]
    made = site.deployed()["web"]
    time.sleep(2)
    assert site.deployed()["web"] == made
    operator.stop()

    # It is remembered over a restart.
    again = site.start()
    again.wait_logged("the last upgrade failed and was taken back", "next try")
    again.wait_until(lambda: modules.condition("web", "Ready")["reason"] == "RolledBack", "it is known")
    assert site.deployed()["web"] == made
    # Its reason is that of before until the run after the start has ended.
    again.wait_until(lambda: not site.command("module", "retry", "web").returncode, "a retry is taken")
    again.wait_until(lambda: site.deployed()["web"] > made, "it is tried again")
    again.wait_until(
        lambda: modules.condition("web", "Ready")["reason"] == "RolledBack", "and taken back again"
    )

    site.config(web="a: two\n")
    modules.wait(again, "web", Ready="True")
    assert site.data("web") == {"a": "two"}
    again.stop()


BOOT: Final = """\
apiVersion: v1
kind: ConfigMap
metadata:
  name: boot
  namespace: NAMESPACE
  annotations: {helm.sh/hook: post-install}
"""


def test_a_module_is_not_ready_before_the_hooks_of_its_first_install_have_succeeded(
    site: operator_site.Site, modules: module_objects.Modules
) -> None:
    later, record = f"{site.namespace}-later", "secret/sh.helm.release.v1.web.v2"
    module = site.module("010-web", {"a": '{{ .Values.web.a | default "one" }}'}, values="webEnabled: true\n")
    (module / "templates" / "boot.yaml").write_text(BOOT.replace("NAMESPACE", later))
    site.first_retry = NEVER
    operator = site.start()
    operator.wait_until(lambda: modules.condition("web", "Ready")["status"] == "False", "it fails")
    assert later in (modules.get("web") or {})["status"]["lastError"]
    site.create("namespace", later)
    modules.wait(operator, "web", Ready="True")
    assert site.deployed() == {"web": 2}
    assert site.get("configmap", "boot", later)

    # A record that nobody can read is told where people look, and how to mend it.
    site.patch("secret", record, {"data": {"release": "bm8gcmVsZWFzZQ=="}})
    site.config(web="a: two\n")
    operator.wait_until(
        lambda: "cannot be decoded" in (modules.get("web") or {})["status"].get("lastError", ""), "it is told"
    )
    assert "or delete it" in (modules.get("web") or {})["status"]["lastError"]
    site.delete("secret", record)
    operator.wait_until(lambda: not site.command("module", "retry", "web").returncode, "a retry is taken")
    operator.wait_until(lambda: site.data("web") == {"a": "two"}, "it is installed")
    modules.wait(operator, "web", Ready="True")
    operator.stop()
    site.delete("namespace", later, waits=False)


def test_what_holds_data_outlives_the_revision_that_brought_it_and_was_taken_back(
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
    operator.wait_until(
        lambda: modules.condition("web", "Ready")["reason"] == "RolledBack", "it is taken back"
    )
    (kept,) = site.objects("persistentvolumeclaims", labelSelector="addon-operator.io/kept-from=web")
    assert kept["metadata"]["name"] == "data"
    assert "level=warn" in operator.wait_logged("PersistentVolumeClaim", "data stays: it holds data")
    operator.stop()


def test_what_was_taken_back_is_tried_again_when_its_cause_is_gone_also_after_a_restart(
    site: operator_site.Site, modules: module_objects.Modules
) -> None:
    service = (
        "{{ if .Values.web.service }}\n---\napiVersion: v1\nkind: Service\n"
        "metadata: {name: app}\nspec: {ports: [{port: 80}]}\n{{ end }}\n"
    )
    with_web(site, service)
    site.create("resourcequota", "few", {"spec": {"hard": {"count/services": "0"}}})
    site.start().wait_ready().stop()
    site.config(web="service: true\na: two\n")
    operator = site.start()
    operator.wait_until(
        lambda: modules.condition("web", "Ready")["reason"] == "RolledBack", "it is taken back"
    )
    waits = f"waits for room in ResourceQuota {site.namespace}/few"
    operator.wait_until(lambda: waits in site.command("module", "list").stdout, "it is told")
    made = site.deployed()["web"]
    operator.wait_metric(3, "tasks_queue_retries")
    assert waits in site.command("module", "list").stdout
    operator.stop()

    site.first_retry = NEVER
    again = site.start()
    again.wait_until(lambda: waits in json.dumps(modules.get("web")), "it is told again")
    assert "exceeded quota: few" in (modules.get("web") or {})["status"]["lastError"]
    assert site.deployed()["web"] == made
    site.patch("resourcequota", "few", {"spec": {"hard": {"count/services": "5"}}})
    modules.wait(again, "web", Ready="True")
    assert site.data("web") == {"a": "two"}
    again.stop()


def test_a_first_install_that_fails_is_uninstalled(
    site: operator_site.Site, modules: module_objects.Modules
) -> None:
    with_web(site)
    site.config(web="fails: true\n")
    operator = site.start()
    operator.wait_until(
        lambda: modules.condition("web", "Ready")["reason"] == "RolledBack", "it is taken back"
    )
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
    operator.wait_until(
        lambda: modules.condition("web", "Ready")["reason"] == "RolledBack", "it is taken back", deadline=60
    )
    error = (modules.get("web") or {})["status"]["lastError"]
    assert re.search("not healthy within 3s: .*Deployment app, ", error), error
    modules.wait(operator, "web", Ready="False", Healthy="True")
    assert "the-moon" not in str(site.get("deployment", "app")["spec"])
    operator.stop()


def begins(
    site: operator_site.Site, modules: module_objects.Modules, waits_for: str, *cure: Sequence[str]
) -> None:
    """The run waits for something, and is Ready as soon as that is there, long before its next try."""
    site.first_retry = NEVER
    operator = site.start()
    operator.wait_until(lambda: f"waits for {waits_for}" in json.dumps(modules.get("web")), "it is told")
    for command in cure:
        site.kubectl(*command)
    modules.wait(operator, "web", Ready="True")
    operator.stop()


def test_a_module_is_stalled_after_three_tries_and_says_what_it_waits_for(
    site: operator_site.Site, modules: module_objects.Modules
) -> None:
    far = f"{site.namespace}-far"
    with_web(site, FAR.format(far=far), "{}")
    operator = site.start()
    modules.wait(operator, "web", Ready="False", Stalled="True")
    assert f"waits for namespace {far}" in site.command("module", "list").stdout
    operator.stop()


FAR: Final = "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {{name: far, namespace: {far}}}\n"


def test_woken_by_a_namespace_that_comes(site: operator_site.Site, modules: module_objects.Modules) -> None:
    far = f"{site.namespace}-far"
    with_web(site, FAR.format(far=far), "{}")
    begins(site, modules, f"namespace {far}", ("create", "namespace", far))
    site.delete("namespace", far, waits=False)


def test_woken_by_the_end_of_a_namespace(site: operator_site.Site, modules: module_objects.Modules) -> None:
    far = f"{site.namespace}-far"
    site.create("namespace", far)
    held = {"metadata": {"name": "held", "finalizers": ["example.com/held"]}}
    body = site.root / "held.json"
    body.write_text(json.dumps({"apiVersion": "v1", "kind": "ConfigMap", **held}))
    site.kubectl(f"--namespace={far}", "create", "-f", str(body))
    site.delete("namespace", far, waits=False)
    namespace = f"---\napiVersion: v1\nkind: Namespace\nmetadata: {{name: {far}}}\n"
    with_web(site, namespace + FAR.format(far=far), "{}")
    free = json.dumps({"metadata": {"finalizers": None}})
    cure = ("patch", f"--namespace={far}", "configmap", "held", "--type=merge", "-p", free)
    # The namespace is gone when its controller has looked again, which takes its time.
    gone = ("wait", "--for=delete", f"namespace/{far}", "--timeout=60s")
    begins(site, modules, f"the end of namespace {far}", cure, gone)


def test_woken_by_a_kind_that_comes(site: operator_site.Site, modules: module_objects.Modules) -> None:
    group = f"{site.namespace}.example.com"
    with_web(site, f"---\napiVersion: {group}/v1\nkind: Shop\nmetadata: {{name: one}}\n", "{}")
    definition = site.root / "crd.yaml"
    definition.write_text(
        "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\n"
        f"metadata: {{name: shops.{group}}}\n"
        f"spec:\n  group: {group}\n  scope: Namespaced\n  names: {{kind: Shop, plural: shops}}\n  versions:\n"
        "  - name: v1\n    served: true\n    storage: true\n"
        "    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}\n"
    )
    begins(site, modules, "the kind Shop", ("apply", "-f", str(definition)))
    site.kubectl("delete", "-f", str(definition), "--wait=false")


def test_woken_by_a_quota_that_is_raised(site: operator_site.Site, modules: module_objects.Modules) -> None:
    site.create("resourcequota", "few", {"spec": {"hard": {"count/services": "0"}}})
    service = "---\napiVersion: v1\nkind: Service\nmetadata: {name: app}\nspec: {ports: [{port: 80}]}\n"
    with_web(site, service, "{}")
    more = json.dumps({"spec": {"hard": {"count/services": "5"}}})
    begins(site, modules, "room in ResourceQuota", ("patch", "quota", "few", "-p", more))


def test_woken_by_a_secret_that_comes(site: operator_site.Site, modules: module_objects.Modules) -> None:
    module = with_web(site, "", "{}")
    config = site.cluster.kubeconfig
    asks = f"kubectl --kubeconfig={config} --namespace={site.namespace} get secret db >&2"
    site.hook(module, "needs.sh", {"beforeHelm": 1}, asks)
    secret = ("create", "secret", "generic", "db", "--from-literal=a=b")
    begins(site, modules, f"Secret {site.namespace}/db", secret)


WEBHOOK: Final = """\
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata: {{name: {namespace}}}
webhooks:
- name: guard.example.com
  clientConfig: {{service: {{name: guard, namespace: {namespace}}}}}
  admissionReviewVersions: [v1]
  sideEffects: None
  rules: [{{apiGroups: [""], apiVersions: [v1], operations: [CREATE], resources: [services]}}]
  namespaceSelector: {{matchLabels: {{kubernetes.io/metadata.name: {namespace}}}}}
"""
SLICE: Final = """\
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: guard-1, labels: {kubernetes.io/service-name: guard}}
addressType: IPv4
endpoints: [{addresses: [10.1.2.3], conditions: {ready: true}}]
"""


def test_woken_by_endpoints_of_a_webhook(site: operator_site.Site, modules: module_objects.Modules) -> None:
    site.kubectl("create", "service", "clusterip", "guard", "--tcp=443")
    for name, text in (("webhook", WEBHOOK.format(namespace=site.namespace)), ("slice", SLICE)):
        (site.root / f"{name}.yaml").write_text(text)
    site.kubectl("create", "-f", str(site.root / "webhook.yaml"))
    service = "---\napiVersion: v1\nkind: Service\nmetadata: {name: app}\nspec: {ports: [{port: 80}]}\n"
    with_web(site, service, "{}")
    begins(
        site,
        modules,
        f"endpoints of Service {site.namespace}/guard",
        # Nobody serves the webhook here: it goes, of which no watch tells, and its endpoints come.
        ("delete", "validatingwebhookconfiguration", site.namespace),
        ("create", "-f", str(site.root / "slice.yaml")),
    )


def pass_on(port: int, to: int) -> socketserver.BaseServer:
    """Serve what another port of this machine serves, from now on."""

    class Passed(socketserver.BaseRequestHandler):
        @override
        def handle(self) -> None:
            with socket.create_connection(("127.0.0.1", to)) as behind:
                sides = {self.request: behind, behind: self.request}
                while True:
                    for side in select.select(list(sides), [], [], 10)[0]:
                        data = side.recv(65536)
                        if not data:
                            return
                        sides[side].sendall(data)

    server = socketserver.ThreadingTCPServer(("127.0.0.1", port), Passed)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server


def test_woken_by_a_registry_that_comes_back(
    site: operator_site.Site,
    modules: module_objects.Modules,
    registry: chart_repositories.Registry,
    archive: pathlib.Path,
) -> None:
    registry.push(archive)
    port = operator_process.free_port()
    pulling.write_module(site, registry.address.replace(str(registry.port), str(port)))
    site.first_retry = NEVER
    operator = site.start()
    operator.wait_until(lambda: "waits for the repository at" in json.dumps(modules.get("web")), "it is told")
    with pass_on(port, registry.port) as server:
        modules.wait(operator, "web", Ready="True")
        operator.stop()
        server.shutdown()
