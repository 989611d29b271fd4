"""How the resources of modules are is known all the time, and said in a person's words."""

import pathlib
from typing import Final

import pytest

from addon_operator.devcluster import handle
from tests.integration import module_objects, operator_site

pytestmark = pytest.mark.integration

DEPLOYMENT: Final = """\
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 1
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      terminationGracePeriodSeconds: 0
      nodeSelector: {{ .Values.web.nodes | default dict | toJson }}
      containers: [{name: web, image: example.com/web:1}]
"""
NOWHERE: Final = "nodes: {on: the-moon}\n"


@pytest.fixture
def modules(site: operator_site.Site, devcluster: handle.DevCluster) -> module_objects.Modules:
    return module_objects.Modules(site, devcluster)


def with_deployment(site: operator_site.Site, directory: str, name: str = "web") -> pathlib.Path:
    module = site.module(directory, {"a": "b"}, values=f"{name}Enabled: true\n")
    (module / "templates" / "web.yaml").write_text(DEPLOYMENT.replace(".web.", f".{name}."))
    return module


def test_a_rollout_is_followed_to_its_end_and_a_pod_that_finds_no_node_is_named(
    site: operator_site.Site, modules: module_objects.Modules
) -> None:
    with_deployment(site, "010-web")
    operator = site.start().wait_ready()
    modules.wait(operator, "web", Ready="True", Healthy="True")
    assert operator.metrics().total("module_health", module="web", state="Healthy") == 1
    modules.kubectl("wait", "--for=condition=Healthy", "--timeout=5s", "module/web")

    site.config(web=NOWHERE)
    modules.wait(operator, "web", Ready="True", Healthy="Unknown")
    operator.wait_until(
        lambda: "nodes are available" in modules.condition("web", "Healthy")["message"], "the cause is told"
    )
    assert modules.condition("web", "Healthy")["reason"] == "Progressing"
    assert " (pod web-" in modules.condition("web", "Healthy")["message"]
    assert "): Deployment web, " in modules.condition("web", "Healthy")["message"]
    listed = site.command("module", "list").stdout
    assert listed.splitlines()[1].split()[:4] == ["web", "10", "Ready", "Unknown"]
    assert "nodes are available" in listed

    site.config(web=None)
    modules.wait(operator, "web", Ready="True", Healthy="True")
    assert modules.condition("web", "Healthy")["message"] == "All its resources are healthy."
    operator.stop()


@pytest.mark.slow
def test_a_quota_that_lets_no_pod_in_is_told(
    site: operator_site.Site, modules: module_objects.Modules
) -> None:
    site.create("resourcequota", "none", {"spec": {"hard": {"pods": "0"}}})
    with_deployment(site, "010-web")
    operator = site.start().wait_ready()
    operator.wait_until(
        lambda: "exceeded quota: none" in modules.condition("web", "Healthy")["message"], "the quota is told"
    )
    assert modules.conditions("web")["Healthy"] == "Unknown"
    operator.stop()


def test_a_module_waits_until_the_one_it_requires_is_healthy(
    site: operator_site.Site, modules: module_objects.Modules
) -> None:
    with_deployment(site, "010-web")
    site.config(web=NOWHERE)
    needy = site.module("020-db", {"a": "b"}, values="dbEnabled: true\n")
    (needy / "module.yaml").write_text("requires: {modules: [web]}\n")
    content = site.module("030-log", {"a": "b"}, values="logEnabled: true\n")
    assert content.exists()
    ready = site.module("040-now", {"a": "b"}, values="nowEnabled: true\n")
    (ready / "module.yaml").write_text("requires: {modules: [{name: web, until: ready}]}\n")
    operator = site.start()
    modules.wait(operator, "log", Ready="True")
    modules.wait(operator, "now", Ready="True")
    status = modules.wait(operator, "db", Ready="Unknown")
    assert "waits until web is healthy" in str(status)
    assert site.data("db") is None

    site.config(web=None)
    modules.wait(operator, "db", Ready="True")
    operator.wait_ready()

    # What becomes unhealthy later stops nobody.
    site.config(web=NOWHERE)
    modules.wait(operator, "web", Ready="True", Healthy="Unknown")
    assert modules.conditions("db")["Ready"] == "True"
    operator.stop()


@pytest.mark.slow
def test_a_run_that_waits_for_health_holds_up_no_hook_and_ends_with_an_edit(
    site: operator_site.Site, modules: module_objects.Modules
) -> None:
    module = with_deployment(site, "010-web")
    (module / "module.yaml").write_text("health: {wait: true, timeout: 2m}\n")
    site.hook(module, "tick.sh", {"schedule": [{"crontab": "* * * * * *", "name": "tick"}]})
    site.module("010-log", {"a": "{{ .Values.log.a }}"}, values="logEnabled: true\nlog: {a: b}\n")
    site.module("020-late", {"a": "b"}, values="lateEnabled: true\n")
    site.config(web=NOWHERE)
    operator = site.start(MODULES_PARALLELISM="1")
    modules.wait(operator, "web", Ready="Unknown", Healthy="Unknown")
    operator.wait_until(lambda: site.deployed() == {"web": 1, "log": 1}, "another one of its order runs")
    operator.wait_until(lambda: "WaitsForHealth" in str(modules.get("web")), "the run waits")
    operator.wait_until(lambda: any(label.startswith("tick.sh") for label in site.labels()), "hooks run")
    assert (modules.get("web") or {})["status"]["state"] == "Running"
    site.config(log="a: z\n")
    operator.wait_until(lambda: site.data("log") == {"a": "z"}, "an edit of another one is applied")
    assert site.data("late") is None

    site.config(web=None)
    modules.wait(operator, "web", Ready="True", Healthy="True")
    modules.wait(operator, "late", Ready="True")
    operator.stop()


@pytest.mark.slow
def test_a_run_that_is_not_healthy_in_time_has_failed(
    site: operator_site.Site, modules: module_objects.Modules
) -> None:
    module = with_deployment(site, "010-web")
    (module / "module.yaml").write_text("health: {wait: true, timeout: 2s}\n")
    site.config(web=NOWHERE)
    operator = site.start()
    status = modules.wait(operator, "web", Ready="False")
    assert "not healthy within 2s: " in status["lastError"]
    site.config(web=None)
    modules.wait(operator, "web", Ready="True", Healthy="True")
    operator.stop()


@pytest.mark.slow
def test_what_is_ignored_does_not_count_and_what_takes_too_long_has_failed(
    site: operator_site.Site, modules: module_objects.Modules
) -> None:
    site.config(web=NOWHERE, db=NOWHERE)
    ignoring = with_deployment(site, "010-web")
    (ignoring / "module.yaml").write_text("health: {ignore: [{kind: Deployment, name: w*}]}\n")
    late = with_deployment(site, "020-db", "db")
    template = late / "templates" / "web.yaml"
    template.write_text(template.read_text().replace("name: web}\nspec", "name: late}\nspec"))
    (late / "module.yaml").write_text("health: {deadline: 2s}\n")
    operator = site.start().wait_ready()
    modules.wait(operator, "web", Healthy="True")
    modules.wait(operator, "db", Healthy="False")
    assert "for more than 2 s" in modules.condition("db", "Healthy")["message"]
    operator.stop()


SHOPS: Final = """\
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: shops.%(group)s}
spec:
  group: %(group)s
  scope: Namespaced
  names: {kind: Shop, plural: shops, singular: shop, listKind: ShopList}
  versions:
  - name: v1
    served: true
    storage: true
    subresources: {status: {}}
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
"""


def test_custom_resources_are_as_their_words_or_the_modules_rules_say(
    site: operator_site.Site, modules: module_objects.Modules
) -> None:
    group = f"{site.namespace}.example.com"
    shop = f"apiVersion: {group}/v1\nkind: Shop\nmetadata: {{name: NAME}}\n"
    for order, name in ((10, "web"), (20, "db")):
        module = modules.add(order, name, data={"a": "b"})
        (module / "templates" / "shop.yaml").write_text(shop.replace("NAME", name))
        (module / "crds").mkdir()
        (module / "crds" / "shops.yaml").write_text(SHOPS % {"group": group})
    rule = f"{{apiVersion: {group}/v1, kind: Shop, healthy: 'self.status.phase == \"Open\"'"
    (site.modules / "020-db" / "module.yaml").write_text(
        f"health: {{rules: [{rule}, failed: 'self.status.phase == \"Burnt\"'}}]}}\n"
    )
    operator = site.start()

    def tell(name: str, **status: object) -> None:
        site.patch(f"shops.{group}", name, {"status": status}, subresource="status")

    modules.wait(operator, "web", Ready="True", Healthy="Unknown")
    operator.wait_until(
        lambda: "has no status yet" in modules.condition("web", "Healthy")["message"], "it is looked at"
    )
    operator.wait_ready()
    tell("web", phase="Provisioning")
    operator.wait_until(
        lambda: modules.condition("web", "Healthy")["message"] == "phase is Provisioning: Shop web",
        "by a word",
    )
    tell("web", phase="Running", conditions=[{"type": "Ready", "status": "True"}])
    modules.wait(operator, "web", Healthy="True")
    tell("web", conditions=[{"type": "Stalled", "status": "True", "message": "no money"}])
    modules.wait(operator, "web", Healthy="False")
    assert modules.condition("web", "Healthy")["message"] == "no money: Shop web"

    operator.wait_until(
        lambda: "does not meet self.status.phase" in modules.condition("db", "Healthy")["message"], "so is db"
    )
    tell("db", phase="Open")
    modules.wait(operator, "db", Healthy="True")
    tell("db", phase="Burnt")
    modules.wait(operator, "db", Healthy="False")
    operator.stop()
    modules.site.delete("crd", f"shops.{group}", waits=False)


TEST: Final = """\
apiVersion: v1
kind: Pod
metadata:
  name: check
  annotations: {helm.sh/hook: test, helm.sh/hook-delete-policy: before-hook-creation}
spec:
  restartPolicy: Never
  terminationGracePeriodSeconds: 0
  nodeSelector: {on: the-moon}
  containers: [{name: check, image: example.com/check:1}]
"""


def test_the_charts_tests_run_after_an_upgrade_that_is_healthy_and_a_failed_one_is_taken_back(
    site: operator_site.Site, modules: module_objects.Modules
) -> None:
    module = with_deployment(site, "010-web")
    (module / "templates" / "test.yaml").write_text(TEST)
    (module / "module.yaml").write_text("health: {test: true}\nremediation: {rollback: true}\n")
    site.hook(module, "tick.sh", {"schedule": [{"crontab": "* * * * * *", "name": "tick"}]})
    operator = site.start(HELM_TIMEOUT="60s")

    def end(phase: str) -> None:
        """The pod of the test ends, as a kubelet would tell."""
        operator.wait_until(lambda: site.find("pod", "check"), "the test runs")
        site.patch("pod", "check", {"status": {"phase": phase}}, subresource="status")

    operator.wait_until(lambda: "the chart's tests run" in str(modules.get("web")), "the run waits for tests")
    assert modules.conditions("web")["Ready"] == "Unknown"
    operator.wait_until(lambda: any(label.startswith("tick.sh") for label in site.labels()), "hooks run")
    end("Succeeded")
    modules.wait(operator, "web", Ready="True", Healthy="True")
    operator.stop()

    # What was tested is not tested again.
    site.delete("pod", "check")
    again = operator = site.start(HELM_TIMEOUT="60s").wait_ready()
    assert site.find("pod", "check") is None

    site.config(web="nodes: {kubernetes.io/os: linux}\n")
    end("Failed")
    again.wait_until(lambda: "RolledBack" in str(modules.get("web")), "it is taken back")
    error = (modules.get("web") or {})["status"]["lastError"]
    assert "the chart's tests failed: " in error
    again.stop()
