"""From the start to the first converge: what waits for what, and who decides which modules are on."""

import json
from collections.abc import Mapping

import pytest

from addon_operator.devcluster import api, handle, layout
from tests.integration import admitting, operator_process, operator_site

pytestmark = pytest.mark.integration

FLAG_PATCH = """
    echo '[{"op": "add", "path": "/hookedEnabled", "value": true},
           {"op": "add", "path": "/unhookedEnabled", "value": false},
           {"op": "add", "path": "/outvotedEnabled", "value": true}]' > "$VALUES_JSON_PATCH_PATH"
"""


def own_config_map(site: operator_site.Site, **more: object) -> Mapping[str, object]:
    """A binding to one ConfigMap that is there all the time."""
    return {
        "name": "config",
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "namespace": {"nameSelector": {"matchNames": [site.namespace]}},
        "nameSelector": {"matchNames": ["kube-root-ca.crt"]},
        **more,
    }


def test_synchronizations_come_between_startup_and_converge_and_only_who_may_is_not_waited_for(
    site: operator_site.Site,
) -> None:
    site.values("webEnabled: true")
    web = site.module("010-web", {"color": "green"})
    gate = site.root / "gate"
    wait = f"until [[ -e {gate} ]]; do sleep 0.05; done"
    waiting = {"kubernetes": [own_config_map(site)]}
    site.hook(site.global_hooks, "b.sh", {**waiting, "onStartup": 1})
    ticks = {"schedule": [{"crontab": "* * * * * *"}]}
    site.hook(site.global_hooks, "a.sh", {**waiting, **ticks, "onStartup": 2})
    free = own_config_map(site, queue="slow", waitForSynchronization=False)
    site.hook(site.global_hooks, "free.sh", {"kubernetes": [free]}, wait)
    site.hook(site.global_hooks, "queued.sh", {"kubernetes": [own_config_map(site, queue="own")]})
    site.hook(site.global_hooks, "all.sh", {"beforeAll": 1, "afterAll": 1})
    site.hook(web, "free.sh", {"kubernetes": [free]}, wait)
    site.hook(web, "web.sh", {**waiting, "onStartup": 1, "beforeHelm": 1})
    operator = site.start().wait_ready()
    labels = [label for label in site.labels() if label != "a.sh schedule"]
    assert labels.count("free.sh config") <= 2
    rest = [label for label in labels if label != "free.sh config"]
    queued = rest.index("queued.sh config")
    assert queued < rest.index("all.sh beforeAll"), (
        "a queue of its own is waited for, too, if nothing is said"
    )
    assert [label for label in rest if label != "queued.sh config"] == [
        "b.sh onStartup", "a.sh onStartup",
        "a.sh config", "b.sh config",
        "all.sh beforeAll",
        "web.sh onStartup", "web.sh config", "web.sh beforeHelm",
        "all.sh afterAll",
    ]  # fmt: skip
    assert not gate.exists()
    gate.touch()
    operator.wait_until(lambda: "a.sh schedule" in site.labels(), "schedules tick")
    assert site.labels().index("a.sh schedule") > site.labels().index("all.sh afterAll")
    operator.wait_until(lambda: site.labels().count("free.sh config") == 2, "the others come when they can")
    operator.stop()


@pytest.mark.slow
def test_the_highest_source_decides_whether_a_module_is_on_and_says_why(site: operator_site.Site) -> None:
    on_in_common = ("common", "below", "hooked", "unhooked", "outvoted", "refused")
    site.values(
        "".join(f"{name}Enabled: {'false' if name == 'hooked' else 'true'}\n" for name in on_in_common)
    )
    for name in (*on_in_common, "nowhere", "own", "config"):
        site.module(f"010-{name}", {"color": "green"})
    (site.modules / "010-own" / "values.yaml").write_text("ownEnabled: true\n")
    (site.modules / "010-below" / "values.yaml").write_text("belowEnabled: false\n")
    refusal = """
        echo "the moon is full" > "$MODULE_ENABLED_REASON"
        echo false > "$MODULE_ENABLED_RESULT"
    """
    site.script(site.modules / "010-refused" / "enabled", refusal)
    site.hook(site.global_hooks, "flags.sh", {"beforeAll": 1}, FLAG_PATCH)
    site.config(configEnabled="true", outvotedEnabled="false")
    operator = site.start().wait_ready()
    assert set(site.revisions()) == {"common", "own", "hooked", "config"}
    reasons = {
        "nowhere": "default",
        "common": "modules/values.yaml",
        "own": "010-own/values.yaml",
        "below": "010-below/values.yaml",
        "hooked": "hook",
        "unhooked": "hook",
        "outvoted": "ConfigMap",
        "config": "ConfigMap",
        "refused": "the moon is full",
    }
    told = operator.log + operator.get("/").text
    for name, reason in reasons.items():
        assert reason in reason_of(operator, name), f"{name}: {told}"
    operator.stop()


def reason_of(operator: operator_process.OperatorProcess, module: str) -> str:
    """The row of the status page that is about the module."""
    rows = operator.get("/").text.split("<tr")
    return next((row for row in rows if f">{module}<" in row), "")


def test_pods_are_admitted_and_health_is_reported_while_the_first_hooks_still_run(
    site: operator_site.Site, devcluster: handle.DevCluster
) -> None:
    gate = site.root / "gate"
    wait = f"until [[ -e {gate} ]]; do sleep 0.05; done"
    site.hook(site.global_hooks, "slow.sh", {"onStartup": 1}, wait)
    client = api.ApiClient(layout.Layout(devcluster.kubeconfig.parent), devcluster.url)
    operator = site.start(**admitting.webhook_environment(operator_process.free_port()))
    paths = [f"{path}/addon-operator-{site.namespace}" for path in admitting.CONFIGURATIONS]
    shop_namespace = devcluster.namespace("shop")
    try:
        operator.wait_until(
            lambda: all(client.request("GET", path).is_success for path in paths), "the webhooks are there"
        )
        operator.wait_until(lambda: site.labels() == ["slow.sh onStartup"], "the hook runs")
        shop = admitting.Shop(shop_namespace, operator, devcluster, client)
        shop.preset()
        operator.wait_until(lambda: "DB_PORT" in json.dumps(shop.pod()["spec"]), "pods get their presets")
        assert (operator.get("/healthz").status, operator.get("/readyz").status) == (200, 503)
        assert not gate.exists()
        assert site.labels() == ["slow.sh onStartup"]
        gate.touch()
        operator.wait_ready()
    finally:
        for path in paths:
            client.request("DELETE", path)
        operator.kill()
        devcluster.delete_namespace(shop_namespace)
