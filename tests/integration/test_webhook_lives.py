"""Hooks that answer the API server, while files and charts of their modules change."""

import json
from typing import Final

import pytest

from addon_operator.devcluster import handle
from tests.integration import admitting, module_objects, operator_site
from tests.integration.guarded import LABELS, binding, create

pytestmark = pytest.mark.integration

DENIES_RED: Final = """
if [[ $contexts == *'"red"'* ]]; then
  echo '{"allowed": false, "message": "not red"}' > "$VALIDATING_RESPONSE_PATH"
else
  echo '{"allowed": true}' > "$VALIDATING_RESPONSE_PATH"
fi
"""
WRITES: Final = """
echo '{"operation": "CreateOrUpdate", "object": {"apiVersion": "v1", "kind": "ConfigMap", "metadata":
  {"name": "written", "namespace": "@"}}}' > "$KUBERNETES_PATCH_PATH"
echo '{"allowed": true}' > "$VALIDATING_RESPONSE_PATH"
"""
ADDS: Final = """
if [[ $contexts == *'"@":'* ]]; then
  echo '{"allowed": true}' > "$VALIDATING_RESPONSE_PATH"
else
  patch='[{"op": "add", "path": "/data/@", "value": "yes"}]'
  echo '{"allowed": true, "patch": '"$patch"'}' > "$VALIDATING_RESPONSE_PATH"
fi
"""


@pytest.mark.slow
def test_dry_runs_leave_nothing_and_a_mutating_hook_is_asked_again_after_another_one(
    site: operator_site.Site, devcluster: handle.DevCluster
) -> None:
    module = site.module("010-shop", values="shopEnabled: true\n")
    validating = binding(site, "writes.shop.example", sideEffects="NoneOnDryRun")
    site.hook(
        module, "writes.sh", {"kubernetesValidating": [validating]}, WRITES.replace("@", site.namespace)
    )
    for name in ("first", "second"):
        mutating = {"kubernetesMutating": [binding(site, f"{name}.shop.example")]}
        site.hook(module, f"{name}.sh", mutating, ADDS.replace("@", name))
    site.config()
    with admitting.admitting(site, devcluster) as operator:
        operator.wait_logged("module run ended")
        body = {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": "dry", "labels": LABELS},
            "data": {"a": "b"},
        }
        path = f"/api/v1/namespaces/{site.namespace}/configmaps?dryRun=All"
        operator.wait_until(
            lambda: json.loads(site.request("POST", path, body).text).get("data", {}).get("second"),
            "it is asked",
        )
        assert json.loads(site.request("POST", path, body).text)["data"] == {
            "a": "b", "first": "yes", "second": "yes",
        }  # fmt: skip
        assert site.data("written") is None, "a dry run writes nothing"
        asked = len([run for run in site.runs() if run.hook == "first.sh"])
        assert create(site, "real", a="b").is_success
        assert len([run for run in site.runs() if run.hook == "first.sh"]) == asked + 2, (
            "the object had changed"
        )
        operator.wait_until(lambda: site.data("written") is not None, "otherwise it writes")


@pytest.mark.slow
def test_what_a_hook_denies_of_its_own_modules_chart_is_the_error_of_that_run(
    site: operator_site.Site, devcluster: handle.DevCluster
) -> None:
    module = site.module("010-shop", {"color": "red"}, values="shopEnabled: true\n")
    own = binding(site, "guard.shop.example")
    del own["labelSelector"]
    site.hook(module, "guard.sh", {"kubernetesValidating": [own]}, DENIES_RED)
    site.module("020-other", {"color": "blue"}, values="otherEnabled: true\n")
    site.config()
    with admitting.admitting(site, devcluster, CONVERGE_ON_FAILURE="continue") as operator:
        denied = 'admission webhook "guard.shop.example" denied the request: not red'
        operator.wait_logged("denied the request: not red")
        told = site.command("module", "describe", "shop")
        assert denied in " ".join(told.stdout.split()), told
        operator.wait_metric(1, "module_info", module="other", state="Ready")


def test_a_module_whose_hooks_the_api_server_does_not_ask_says_so_wherever_one_looks(
    site: operator_site.Site, devcluster: handle.DevCluster
) -> None:
    shown = module_objects.Modules(site, devcluster)
    wrong = binding(
        site, "guard.shop.example", matchConditions=[{"name": "odd", "expression": "object.metadata.nme ="}]
    )
    refused = site.module("010-shop", values="shopEnabled: true\n")
    site.hook(refused, "guard.sh", {"kubernetesValidating": [wrong]}, DENIES_RED)
    waits = site.module("020-cron", values="cronEnabled: true\n")
    crd = f"crons.{site.namespace}.example"
    converting = {"name": "up", "crdName": crd, "conversions": [{"fromVersion": "v1", "toVersion": "v2"}]}
    site.hook(
        waits,
        "convert.sh",
        {
            "kubernetesCustomResourceConversion": [converting],
            "kubernetesValidating": [binding(site, "cron.shop.example")],
        },
        DENIES_RED,
    )
    site.config()
    with admitting.admitting(
        site, devcluster, MODULE_OBJECTS="true", CONVERGE_ON_FAILURE="continue"
    ) as operator:
        status = shown.wait(operator, "shop", WebhooksRegistered="False", Ready="False")
        assert "does not take kubernetesValidating guard.shop.example of hook guard.sh" in status["lastError"]
        shown.wait(operator, "cron", WebhooksRegistered="False", Ready="True")
        absent = (
            f"kubernetesCustomResourceConversion up of hook convert.sh is not registered: there is no "
            f"CustomResourceDefinition {crd}"
        )
        # The other one of its webhooks may be registered a moment later.
        operator.wait_until(
            lambda: shown.condition("cron", "WebhooksRegistered")["message"].startswith(absent),
            "the Module says which is not registered",
        )
        listed = " ".join(site.command("module", "list", "-o", "wide").stdout.split())
        assert "0/1 registered" in listed
        assert "1/2 registered" in listed
        assert absent in listed
        definition = {
            "apiVersion": "apiextensions.k8s.io/v1",
            "kind": "CustomResourceDefinition",
            "metadata": {"name": crd},
            "spec": {
                "group": f"{site.namespace}.example",
                "scope": "Namespaced",
                "names": {"plural": "crons", "singular": "cron", "kind": "Cron"},
                "versions": [
                    {
                        "name": name,
                        "served": True,
                        "storage": name == "v2",
                        "schema": {"openAPIV3Schema": {"type": "object"}},
                    }
                    for name in ("v1", "v2")
                ],
            },
        }
        path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
        assert site.request("POST", path, definition).is_success
        shown.wait(operator, "cron", WebhooksRegistered="True", Ready="True")


def test_webhooks_come_and_go_with_the_files_of_hooks(
    site: operator_site.Site, devcluster: handle.DevCluster
) -> None:
    module = site.module("010-shop", values="shopEnabled: true\n")
    hook = {"kubernetesValidating": [binding(site, "guard.shop.example")]}
    site.hook(module, "guard.sh", hook, DENIES_RED)
    site.config()
    with admitting.admitting(site, devcluster, WATCH_MODULES="true") as operator:
        operator.wait_until(lambda: "not red" in create(site, "a", color="red").text, "red is denied")
        site.hook(module, "guard.sh", hook, DENIES_RED.replace("red", "blue"))
        operator.wait_until(lambda: "not blue" in create(site, "b", color="blue").text, "blue is denied now")
        assert create(site, "c", color="red").is_success
        (module / "hooks" / "guard.sh").unlink()
        operator.wait_until(lambda: create(site, "d", color="blue").is_success, "nobody is asked any more")
        path = f"{admitting.CONFIGURATIONS[1]}/addon-operator-{site.namespace}-hooks"
        operator.wait_until(
            lambda: "guard.shop.example" not in site.request("GET", path).text, "it is not registered"
        )
