"""Hooks that answer wrongly, or for others: nobody but who asks them is harmed."""

import asyncio
import concurrent.futures
import json
import time
from typing import Any, Final

import pytest

from addon_operator.devcluster import api, handle, layout
from addon_operator.kube import paths
from addon_operator.kube.access import auth
from addon_operator.kube.client import client
from tests.integration import admitting, definitions, operator_site
from tests.integration.guarded import LABELS, binding, create

pytestmark = pytest.mark.integration

MANY: Final = 10_000
LARGE: Final = 1 << 20
"""Characters: as many as a ConfigMap can hold."""
WRITERS: Final = 32
ALLOWS: Final = """echo '{"allowed": true}' > "$VALIDATING_RESPONSE_PATH" """
DENIES: Final = """echo '{"allowed": false, "message": "never"}' > "$VALIDATING_RESPONSE_PATH" """


def registered(site: operator_site.Site) -> list[str]:
    """Names of the validating webhooks of hooks."""
    path = f"{admitting.CONFIGURATIONS[1]}/addon-operator-{site.namespace}-hooks"
    answer = site.request("GET", path)
    return [each["name"] for each in json.loads(answer.text).get("webhooks") or []]


@pytest.mark.slow
def test_a_webhook_that_the_api_server_refuses_is_shown_and_others_stay(
    site: operator_site.Site, devcluster: handle.DevCluster
) -> None:
    site.first_retry = operator_site.SOON
    good = site.module("010-good", values="goodEnabled: true\n")
    site.hook(good, "good.sh", {"kubernetesValidating": [binding(site, "good.shop.example")]}, DENIES)
    bad = site.module("020-bad", values="badEnabled: true\n")
    wrong = [{"name": "odd", "expression": "object.metadata.name.nothing("}]
    site.hook(
        bad,
        "bad.sh",
        {"kubernetesValidating": [binding(site, "bad.shop.example", matchConditions=wrong)]},
        DENIES,
    )
    site.config()
    options = {"CONVERGE_ON_FAILURE": "continue", "WATCH_MODULES": "true"}
    with admitting.admitting(site, devcluster, **options) as operator:
        operator.wait_logged("the API server does not take", "matchConditions")
        told = " ".join(site.command("module", "describe", "bad").stdout.split())
        assert "hook bad.sh of module bad" in told, told
        assert "matchConditions[0].expression" in told
        assert registered(site) == ["good.shop.example"]
        assert "denied the request: never" in create(site, "a").text
        operator.wait_metric(1, "module_info", module="good", state="Ready")
        site.hook(bad, "bad.sh", {"kubernetesValidating": [binding(site, "bad.shop.example")]}, ALLOWS)
        operator.wait_until(
            lambda: registered(site) == ["bad.shop.example", "good.shop.example"], "it is mended"
        )


EVERYTHING: Final = {
    "apiGroups": ["*"],
    "apiVersions": ["*"],
    "operations": ["CREATE", "UPDATE", "DELETE"],
    "resources": ["*/*"],
    "scope": "*",
}


@pytest.mark.slow
def test_an_operator_starts_works_and_can_be_told_while_a_hook_denies_everything_of_its_namespace(
    site: operator_site.Site, devcluster: handle.DevCluster
) -> None:
    site.first_retry = operator_site.SOON
    of_namespace = {"labelSelector": {"matchLabels": {"kubernetes.io/metadata.name": site.namespace}}}
    denies = {"name": "never.shop.example", "rules": [EVERYTHING], "namespace": of_namespace}
    denies["locks"] = "cluster"
    module = site.module("010-shop", values="shopEnabled: true\n")
    group = f"{site.namespace}.example"
    definitions.write(module, "things.yaml", definitions.definition(group, "things", "v1", "v2"))
    rules = [{"fromVersion": "v2", "toVersion": "v1"}]
    converts = {"name": "c", "crdName": f"things.{group}", "conversions": rules}
    site.hook(
        module,
        "never.sh",
        {"kubernetesValidating": [denies], "kubernetesCustomResourceConversion": [converts]},
        DENIES,
    )
    site.module("020-web", {"color": "{{ .Values.web.color }}"}, values="web: {color: red}\n")
    site.config()
    options = {"CONVERGE_ON_FAILURE": "continue", **operator_site.SHORT_LEASE}
    with admitting.admitting(site, devcluster, **options) as operator:
        operator.wait_until(lambda: registered(site) == ["never.shop.example"], "it is registered")
        operator.wait_until(lambda: "never" in create(site, "a").text, "it denies")
        operator.kill()
    with admitting.admitting(site, devcluster, **options) as again:
        again.wait_logged("this replica leads")
        assert "never" in create(site, "a").text
        site.config(webEnabled="true")
        again.wait_logged("denied the request: never", "module=web")
        assert site.revisions() == {}
        told = " ".join(site.command("module", "describe", "shop").stdout.split())
        assert 'admission webhook "never.shop.example" denied the request: never' in told, told
        site.config(shopEnabled="false")
        again.wait_until(lambda: registered(site) == [], "it can be switched off")
        again.wait_until(lambda: site.data("web") == {"color": "red"}, "and the others go on")
        crd = f"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/things.{group}"
        assert json.loads(site.request("GET", crd).text)["spec"]["conversion"] == {"strategy": "None"}
        again.stop()


def test_a_hook_that_hangs_and_one_that_is_killed_leave_others_and_pods_alone_in_a_storm(
    site: operator_site.Site, devcluster: handle.DevCluster
) -> None:
    bodies = {
        "hangs": f"until [[ -e {site.root}/over ]]; do sleep 0.5; done",
        "dies": "kill -KILL $$",
        "good": ALLOWS,
    }
    for number, (name, body) in enumerate(bodies.items()):
        module = site.module(f"0{number}0-{name}", values=f"{name}Enabled: true\n")
        guards = binding(site, f"{name}.shop.example", timeoutSeconds=30)
        guards["labelSelector"] = {"matchLabels": {"asks": name}}
        site.hook(module, f"{name}.sh", {"kubernetesValidating": [guards]}, body)
    site.config()
    with admitting.opened(site, devcluster) as shop:
        shop.operator.wait_until(lambda: len(registered(site)) == len(bodies), "all are registered")
        shop.preset(env=[{"name": "DB_PORT", "value": "6379"}], selector={"matchLabels": admitting.LABELS})
        shop.operator.wait_until(lambda: admitting.is_injected(shop, shop.operator), "pods are injected")
        asking = api.ApiClient(layout.Layout(devcluster.kubeconfig.parent), devcluster.url)

        def ask(name: str) -> api.ApiAnswer:
            body: Any = {
                "apiVersion": "v1",
                "kind": "ConfigMap",
                "metadata": {"generateName": "a-", "labels": {"asks": name}},
            }
            return asking.request("POST", f"/api/v1/namespaces/{site.namespace}/configmaps", body)

        shop.operator.wait_until(lambda: ask("good").is_success, "the good one answers")
        with concurrent.futures.ThreadPoolExecutor(60) as pool:
            storm = [pool.submit(ask, name) for name in ("hangs", "dies") for _ in range(25)]
            time.sleep(operator_site.SOON)
            try:
                good = [ask("good") for _ in range(5)]
                pods = [shop.pod()["spec"]["containers"][0].get("env") for _ in range(5)]
                hanging = [each for each in storm[:25] if not each.done()]
            finally:
                (site.root / "over").touch()
            said = [each.result().text for each in storm]
        assert all(answer.is_success for answer in good), good
        assert all(pods), "no pod waits for a hook that hangs"
        assert hanging, "none of them waited for all that hang"
        assert [text for text in said[:25] if "hangs.shop.example" not in text] == []
        assert [text for text in said[25:] if "of module dies" not in text] == []


LIVED_BY: Final[dict[str, tuple[str, dict[str, Any]]]] = {
    "apis/storage.k8s.io/v1/csinodes": ("CSINode", {"spec": {"drivers": []}}),
    "apis/flowcontrol.apiserver.k8s.io/v1/flowschemas": (
        "FlowSchema",
        {"spec": {"priorityLevelConfiguration": {"name": "exempt"}, "matchingPrecedence": 9000}},
    ),
    "apis/certificates.k8s.io/v1/certificatesigningrequests": (
        "CertificateSigningRequest",
        {"spec": {"signerName": "kubernetes.io/kubelet-serving", "request": "", "usages": ["server auth"]}},
    ),
    "apis/discovery.k8s.io/v1/namespaces/{}/endpointslices": (
        "EndpointSlice",
        {"addressType": "IPv4", "endpoints": []},
    ),
    "apis/rbac.authorization.k8s.io/v1/clusterroles": ("ClusterRole", {"rules": []}),
}


def test_a_hook_for_everything_does_not_lock_the_cluster_out(
    site: operator_site.Site, devcluster: handle.DevCluster
) -> None:
    mine = {"labelSelector": {"matchLabels": {"attack": site.namespace}}}
    wide, other = {**EVERYTHING, "operations": ["*"]}, devcluster.namespace("other")
    module = site.module("010-shop", values="shopEnabled: true\n")
    denies = {"name": "wide.shop.example", "rules": [wide], "locks": "cluster", **mine}
    # The API server itself makes an object for the address of each Service.
    labelled = {"matchLabels": {"ipaddress.kubernetes.io/managed-by": "ipallocator.k8s.io"}}
    addresses = {**denies, "name": "addresses.shop.example", "labelSelector": labelled}
    site.hook(module, "wide.sh", {"kubernetesValidating": [denies, addresses]}, DENIES)
    wrong = site.module("020-wrong", values="wrongEnabled: true\n")
    hook = {"kubernetesValidating": [{"name": "wrong.shop.example", "rules": [wide], **mine}]}
    site.hook(wrong, "wrong.sh", hook, DENIES)
    site.config()

    def make(number: int) -> dict[str, str]:
        """Create one of each, and of a ConfigMap; why those were refused that were."""
        refused = {}
        given = {**LIVED_BY, "api/v1/namespaces/{}/configmaps": ("ConfigMap", {"data": {}})}
        for path, (kind, body) in given.items():
            group = "v1" if kind == "ConfigMap" else "/".join(path.split("/")[1:3])
            name = (
                f"system:{site.namespace}-{number}" if kind == "ClusterRole" else f"{site.namespace}-{number}"
            )
            metadata = {"name": name, "labels": {"attack": site.namespace}}
            whole = {"apiVersion": group, "kind": kind, "metadata": metadata, **body}
            answer = site.request("POST", f"/{path.format(other)}?dryRun=All", whole)
            if not answer.is_success:
                refused[kind] = answer.text
        return refused

    with admitting.admitting(site, devcluster, CONVERGE_ON_FAILURE="continue") as operator:
        operator.wait_until(
            lambda: len(registered(site)) == len(("wide", "addresses")), "both are registered"
        )
        operator.wait_until(lambda: "ConfigMap" in make(0), "it denies")
        # The API server takes no request for a certificate without one.
        refused = make(1)
        assert refused.keys() - {"CertificateSigningRequest"} == {"ConfigMap"}
        assert "denied the request" not in refused.get("CertificateSigningRequest", "")
        told = " ".join(site.command("module", "describe", "wrong").stdout.split())
        assert "nobody can change anything in the cluster while no operator answers" in told, told
        operator.kill()
        refused = make(2)
        assert refused.keys() - {"CertificateSigningRequest"} == {"ConfigMap"}
        site.create("service", "operator", {"spec": {"ports": [{"port": 443}]}})
        assert "failed calling webhook" not in refused.get("CertificateSigningRequest", "")


SLOW: Final = f"sleep 0.4\n{ALLOWS}"


@pytest.mark.slow
def test_forty_dry_runs_of_one_user_delay_himself_alone_and_a_crash_leaves_it_to_the_failure_policy(
    site: operator_site.Site, devcluster: handle.DevCluster
) -> None:
    module = site.module("010-shop", values="shopEnabled: true\n")
    site.hook(module, "slow.sh", {"kubernetesValidating": [binding(site, "slow.shop.example")]}, SLOW)
    ignored = binding(site, "dies.shop.example", failurePolicy="Ignore")
    ignored["labelSelector"] = {"matchLabels": {"asks": "dies"}}
    site.hook(module, "dies.sh", {"kubernetesValidating": [ignored]}, "kill -KILL $$")
    site.config()
    in_namespace = ("-n", site.namespace)
    devcluster.run_kubectl("create", "rolebinding", "me", "--clusterrole=edit", "--user=me", *in_namespace)
    with admitting.admitting(site, devcluster, WEBHOOK_HOOKS_PARALLELISM="1") as operator:
        operator.wait_until(lambda: len(registered(site)) == 2, "both are registered")
        operator.wait_until(lambda: create(site, "first").is_success, "it answers")
        asking = api.ApiClient(layout.Layout(devcluster.kubeconfig.parent), devcluster.url, 30.0)

        def flood(number: int) -> api.ApiAnswer:
            body: Any = {
                "apiVersion": "v1",
                "kind": "ConfigMap",
                "metadata": {"name": f"f-{number}", "labels": dict(LABELS)},
            }
            path = f"/api/v1/namespaces/{site.namespace}/configmaps?dryRun=All"
            return asking.request("POST", path, body)

        with concurrent.futures.ThreadPoolExecutor(41) as pool:
            storm = [pool.submit(flood, number) for number in range(40)]
            operator.wait_until(lambda: any(each.done() for each in storm), "they have begun")
            mine = {
                "kind": "ConfigMap",
                "apiVersion": "v1",
                "metadata": {"name": "mine", "labels": dict(LABELS)},
            }
            devcluster.run_kubectl("create", "--as=me", "-f", "-", *in_namespace, stdin=json.dumps(mine))
            assert not all(each.done() for each in storm), "it came before the last of them"
            said = [each.result() for each in storm]
        assert [each.text for each in said if "denied the request" in each.text] == []
        body = {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": "ignored", "labels": {"asks": "dies"}},
        }
        assert site.request("POST", f"/api/v1/namespaces/{site.namespace}/configmaps", body).is_success


COUNTED: Final = """
mkdir -p "@ROOT@/running"
touch "@ROOT@/running/$$"
ls "@ROOT@/running" | wc -l >> "@ROOT@/at-once"
sleep 0.2
rm "@ROOT@/running/$$"
if [[ $contexts == *'"chatty"'* ]]; then
  echo '{"allowed": true, "message": "' > "$VALIDATING_RESPONSE_PATH"
  head -c 3200000 /dev/zero | tr '\\0' x >> "$VALIDATING_RESPONSE_PATH"
  echo '"}' >> "$VALIDATING_RESPONSE_PATH"
else
  echo '{"allowed": true}' > "$VALIDATING_RESPONSE_PATH"
fi
"""


@pytest.mark.slow
def test_no_more_hooks_run_at_once_than_is_set_and_an_answer_of_more_than_an_object_is_refused(
    site: operator_site.Site, devcluster: handle.DevCluster
) -> None:
    module = site.module("010-shop", values="shopEnabled: true\n")
    for name in ("guard", "other"):
        guards = binding(site, f"{name}.shop.example", timeoutSeconds=30)
        site.hook(
            module,
            f"{name}.sh",
            {"kubernetesValidating": [guards]},
            COUNTED.replace("@ROOT@", str(site.root)),
        )
    site.config()
    with admitting.admitting(site, devcluster, WEBHOOK_HOOKS_PARALLELISM="2") as operator:
        operator.wait_until(lambda: len(registered(site)) == 2, "both are registered")
        with concurrent.futures.ThreadPoolExecutor(12) as pool:
            answers = list(pool.map(lambda number: create(site, f"a-{number}"), range(12)))
        assert all(answer.is_success for answer in answers)
        at_once = [int(line) for line in (site.root / "at-once").read_text().split()]
        assert (len(at_once), max(at_once)) == (24, 2)
        assert "of module shop gave a wrong answer" in create(site, "chatty").text
        operator.wait_logged("guard.sh", "and may have 3145728")


@pytest.mark.slow
def test_large_objects_and_ten_thousand_others_in_a_snapshot_reach_the_hook(
    site: operator_site.Site, devcluster: handle.DevCluster
) -> None:
    group = f"{site.namespace}.example"
    module = site.module("010-shop", values="shopEnabled: true\n")
    definitions.write(module, "things.yaml", definitions.definition(group, "things", "v1"))
    things = {
        "name": "things",
        "kind": "Thing",
        "apiVersion": f"{group}/v1",
        "jqFilter": "{name: .metadata.name, size: .size}",
        "keepFullObjectsInMemory": False,
        "executeHookOnEvent": [],
        "executeHookOnSynchronization": False,
    }
    guards = binding(site, "guard.shop.example", includeSnapshotsFrom=["things"], timeoutSeconds=20)
    site.script(
        module / "hooks" / "guard.sh",
        COUNTS.replace(
            "@CONFIG@",
            json.dumps({"configVersion": "v1", "kubernetes": [things], "kubernetesValidating": [guards]}),
        ),
        exact=True,
    )
    site.config()
    with admitting.admitting(site, devcluster) as operator:
        operator.wait_until(lambda: registered(site) == ["guard.shop.example"], "it is registered")
        asyncio.run(make_things(devcluster, site.namespace, group, MANY))
        operator.wait_until(lambda: f"{MANY} things" in create(site, "few").text, "all are in the snapshot")
        answer = create(site, "large", text="x" * LARGE)
        assert f"{MANY} things, {LARGE} characters" in answer.text, answer.text[:300]


COUNTS: Final = """\
#!/bin/bash
if [[ "${1:-}" == "--config" ]]; then
  cat <<'END'
@CONFIG@
END
  exit 0
fi
jq -c '.[0] | {allowed: false, message: ((.snapshots.things | length | tostring) + " things, "
  + (.review.request.object.data.text // "" | length | tostring) + " characters")}' \\
  "$BINDING_CONTEXT_PATH" > "$VALIDATING_RESPONSE_PATH"
"""


async def make_things(cluster: handle.DevCluster, namespace: str, group: str, number: int) -> None:
    """Create them, many side by side."""
    collection = paths.of(f"{group}/v1", "things", namespace=namespace)
    waiting = iter(range(number))
    async with client.KubeClient(auth.load_access(cluster.kubeconfig, None, None, {})) as kube:

        async def work() -> None:
            for each in waiting:
                metadata = {"name": f"t-{each}"}
                body = {"apiVersion": f"{group}/v1", "kind": "Thing", "metadata": metadata, "size": 1}
                await kube.create(collection, body)

        await asyncio.gather(*(work() for _ in range(WRITERS)))
