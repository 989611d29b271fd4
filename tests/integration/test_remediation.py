"""A failed upgrade goes back, and a failed run is tried again as soon as its cause is gone."""

import json
import pathlib
import re
import select
import socket
import socketserver
import threading
import time
from collections.abc import Callable
from typing import Final

import pytest
from typing_extensions import override

from addon_operator.devcluster import handle
from tests.integration import (
    chart_repositories,
    definitions,
    module_objects,
    operator_process,
    operator_site,
    pulling,
)

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
    # What the failed revision has no more is the release's own again.
    dropped = "kind: ConfigMap\napiVersion: v1\nmetadata: {name: dropped}\n"
    module = with_web(site, f"{{{{ if not .Values.web.fails }}}}\n---\n{dropped}{{{{ end }}}}\n")
    size = '[{"op": "add", "path": "/web/size", "value": 3}]'
    site.hook(module, "size.sh", {"beforeHelm": 1}, f"echo '{size}' > \"$CONFIG_VALUES_JSON_PATCH_PATH\"")
    operator = site.start().wait_ready()
    uid = site.get("configmap", "dropped")["metadata"]["uid"]
    site.config(web="fails: true\na: two\n")
    operator.wait_until(
        lambda: modules.condition("web", "Ready")["reason"] == "RolledBack", "it is taken back"
    )
    assert site.data("web") == {"a": "one"}
    assert site.get("configmap", "dropped")["metadata"]["uid"] == uid
    error = (modules.get("web") or {})["status"]["lastError"]
    assert "99999" in error or "Invalid value" in error
    assert "is taken back to revision 1; it is not tried again with the same chart and values" in error
    operator.wait_until(
        lambda: modules.condition("web", "Stalled")["reason"] == "RolledBack", "nobody waits for a next try"
    )
    assert modules.condition("web", "Reconciling")["status"] == "False"
    row = site.module_rows()["web"]
    said = error.rpartition("; revision 2")[2]
    assert (row["lastError"].endswith(said), row["nextTry"]) == (True, None), "all say one thing of it"
    assert "next try" not in operator.wait_logged("is taken back to revision 1")
    # What hooks wrote to the values stays.
    assert "size: 3" in (site.data(operator_site.CONFIG_MAP) or {})["web"]
    made = site.deployed()["web"]
    time.sleep(2)
    assert site.deployed()["web"] == made
    operator.stop()

    # It is remembered over a restart.
    again = site.start()
    again.wait_logged("the last upgrade failed and was taken back, and chart and values are the same")
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


@pytest.mark.slow
def test_a_module_is_not_ready_before_the_hooks_of_its_first_install_have_succeeded(
    site: operator_site.Site, modules: module_objects.Modules
) -> None:
    later, record = f"{site.namespace}-later", "sh.helm.release.v1.web.v2"
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
    # The operator may have noticed it before, and then has nothing to try again.
    site.command("module", "retry", "web")
    operator.wait_until(lambda: site.data("web") == {"a": "two"}, "it is installed")
    modules.wait(operator, "web", Ready="True")
    operator.stop()
    site.delete("namespace", later, waits=False)


def test_what_is_taken_back_goes_with_a_first_install_and_what_holds_data_outlives_its_revision(
    site: operator_site.Site, modules: module_objects.Modules
) -> None:
    claim = (
        "{{ if .Values.web.fails }}\n---\n"
        "apiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {name: data}\n"
        "spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}\n{{ end }}\n"
    )
    with_web(site, claim)
    db = site.module("010-db", {"a": "b"}, values="dbEnabled: true\n")
    (db / "templates" / "more.yaml").write_text(FAILING.replace(".web.", ".db."))
    (db / "module.yaml").write_text("remediation: {rollback: true}\n")

    # A first install that fails is uninstalled.
    site.config(db="fails: true\n")
    operator = site.start()
    operator.wait_until(
        lambda: modules.condition("db", "Ready")["reason"] == "RolledBack", "it is taken back"
    )
    operator.wait_until(lambda: site.deployed() == {"web": 1}, "nothing is left")
    assert site.data("db") is None

    site.config(db=None, web="fails: true\n")
    modules.wait(operator, "db", Ready="True")
    operator.wait_until(
        lambda: modules.condition("web", "Ready")["reason"] == "RolledBack", "it is taken back"
    )
    (kept,) = site.objects("persistentvolumeclaims", labelSelector="addon-operator.io/kept-from=web")
    assert kept["metadata"]["name"] == "data"
    assert "level=warn" in operator.wait_logged("PersistentVolumeClaim", "data stays: it holds data")
    operator.stop()


@pytest.mark.slow
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


@pytest.mark.slow
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


def test_a_rollback_without_a_revision_that_was_healthy_is_refused_until_an_edit_helps(
    site: operator_site.Site, modules: module_objects.Modules
) -> None:
    module = with_web(site, DEPLOYMENT, "{}")
    site.config(web="nodes: {on: the-moon}\n")
    operator = site.start().wait_ready()
    operator.stop()
    (module / "module.yaml").write_text("remediation: {rollback: true}\nhealth: {wait: true, timeout: 1s}\n")
    operator = site.start()
    site.config(web="nodes: {on: mars}\n")
    operator.wait_until(
        lambda: modules.condition("web", "Ready")["reason"] == "RollbackRefused", "it cannot be taken back"
    )
    said = "there is no rollback: no earlier revision was deployed and healthy"
    ready = modules.condition("web", "Ready")
    assert (ready["status"], said in ready["message"]) == ("False", True), ready
    assert "Deployment app" in ready["message"], "the cause stands before it"
    assert said in site.command("module", "list", "-o", "wide").stdout
    assert "mars" in str(site.get("deployment", "app")["spec"]), "it stays as it is"
    site.config(web="nodes: {}\n")
    modules.wait(operator, "web", Ready="True", Healthy="True")
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


SERVICE: Final = "apiVersion: v1\nkind: Service\nmetadata: {name: app}\nspec: {ports: [{port: 80}]}\n"
ACCOUNT: Final = "apiVersion: v1\nkind: ServiceAccount\nmetadata: {name: app}\n"
NAMESPACE: Final = "---\napiVersion: v1\nkind: Namespace\nmetadata: {{name: {name}}}\n"


def lacking(site: operator_site.Site) -> dict[str, tuple[str, str, Callable[[], object]]]:
    """What a module renders, what that lacks, and what brings it; by the module's name."""
    here = site.namespace
    far, going, group = f"{here}-far", f"{here}-going", f"{here}.example.com"
    site.create("namespace", going)
    site.create("configmap", "held", {"metadata": {"finalizers": ["example.com/held"]}}, going)
    site.delete("namespace", going, waits=False)
    site.create("resourcequota", "few", {"spec": {"hard": {"count/serviceaccounts": "0"}}})
    site.create("service", "guard", {"spec": {"ports": [{"port": 443}]}})
    site.apply(WEBHOOK.format(namespace=here))

    def end() -> None:
        site.patch("configmap", "held", {"metadata": {"finalizers": None}}, namespace=going)
        # The namespace is gone when its controller has looked again, which takes its time.
        operator_process.wait_until(lambda: site.find("namespace", going) is None, "the namespace is gone")

    def serve() -> None:
        # Nobody serves the webhook here: it goes, of which no watch tells, and its endpoints come.
        site.delete("validatingwebhookconfiguration", here)
        site.apply(SLICE)

    return {
        "far": (FAR.format(far=far), f"namespace {far}", lambda: site.create("namespace", far)),
        "going": (NAMESPACE.format(name=going) + FAR.format(far=going), f"the end of namespace {going}", end),
        "kind": (
            f"apiVersion: {group}/v1\nkind: Thing\nmetadata: {{name: one}}\n",
            "the kind Thing",
            lambda: site.apply(definitions.things(group)),
        ),
        "quota": (
            ACCOUNT,
            "room in ResourceQuota",
            lambda: site.patch("resourcequota", "few", {"spec": {"hard": {"count/serviceaccounts": "9"}}}),
        ),
        "secret": ("", f"Secret {here}/db", lambda: site.create("secret", "db")),
        "webhook": (SERVICE, f"endpoints of Service {here}/guard", serve),
    }


@pytest.mark.slow
def test_a_run_is_tried_again_as_soon_as_what_it_waits_for_is_there(
    site: operator_site.Site, modules: module_objects.Modules
) -> None:
    site.first_retry = NEVER
    cases = lacking(site)
    # Also a first install that took something over, which is not tried again by itself.
    site.create("configmap", "quota", {"data": {"a": "theirs"}})
    for name, (objects, _, _) in cases.items():
        module = modules.add(10, name, data={"a": "b"})
        (module / "templates" / "more.yaml").write_text(objects)
    asks = f"--kubeconfig={site.cluster.kubeconfig} --namespace={site.namespace} get secret db"
    site.hook(
        site.modules / "010-secret", "needs.sh", {"beforeHelm": 1}, f"{site.cluster.kubectl} {asks} >&2"
    )
    operator = site.start()
    for name, (_, lacks, _) in cases.items():
        told = f"waits for {lacks}"
        operator.wait_until(lambda: told in json.dumps(modules.get(name)), told)  # noqa: B023
    for name, (_, _, bring) in cases.items():
        assert modules.conditions(name)["Ready"] == "False", name
        bring()
        modules.wait(operator, name, Ready="True")
    operator.stop()
    site.delete("crd", f"things.{site.namespace}.example.com", waits=False)


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
