"""A module in maintenance is left alone by Helm and healing, and looked after again afterwards."""

import json

import pytest

from addon_operator.devcluster import handle
from tests.integration import module_objects, operator_process, operator_site

pytestmark = pytest.mark.integration

MODE = "NoResourceReconciliation"


def resource_monitor(site: operator_site.Site) -> dict[str, object]:
    """What ``addon-operator module resource-monitor`` shows."""
    done = site.command("module", "resource-monitor", "--output=json")
    assert done.returncode == 0, done.stderr
    shown = json.loads(done.stdout)
    assert isinstance(shown, dict)
    return shown


def test_a_module_in_maintenance_is_left_alone_until_that_ends(
    site: operator_site.Site, devcluster: handle.DevCluster
) -> None:
    shown = module_objects.Modules(site, devcluster)
    module = site.module(
        "010-web", {"size": '"{{ .Values.web.size }}"'}, values="webEnabled: true\nweb: {size: 1}"
    )
    site.hook(module, "before.sh", {"beforeHelm": 1})
    site.module("010-db", {"a": "b"}, values="dbEnabled: true")
    operator = site.start().wait_ready().wait_idle()
    # The first list of a kind may come later than the end of the converge.
    operator.wait_until(lambda: site.module_rows()["web"]["health"] == "Healthy", "it is watched")
    rows = resource_monitor(site)["web"]
    assert isinstance(rows, list)
    [row] = rows
    assert (row["resource"], row["state"]) == (f"ConfigMap {site.namespace}/web", "present")

    site.config(webMaintenance=MODE)
    operator.wait_metric(1, "mm_module_maintenance", module="web", state=MODE)
    operator.wait_until(
        lambda: shown.condition("web", "Ready")["reason"] == "Maintenance", "its object says so"
    )
    operator.wait_idle()
    runs = site.labels().count("before.sh beforeHelm")
    helm = len(site.helm_calls())
    # New values reach the hooks and not the cluster; what is deleted stays away.
    site.config(web="size: 2")
    operator.wait_until(lambda: site.labels().count("before.sh beforeHelm") == runs + 1, "the hooks continue")
    site.delete("configmap", "web", "db")
    operator.wait_metric(1, "resources_healed_total", module="db")
    operator.wait_idle()
    assert site.data("web") is None
    assert site.revisions()["web"] == 1
    assert site.helm_calls()[helm:] == []
    assert isinstance(resource_monitor(site)["web"], str)
    operator.wait_logged("in maintenance", "module=web")

    # A restart leaves the module alone, too, and the end of the maintenance brings everything back.
    operator.stop()
    again = site.start().wait_ready().wait_idle()
    assert again.metrics().total("mm_module_maintenance", module="web", state=MODE) == 1
    assert site.data("web") is None
    site.config(webMaintenance=None)
    again.wait_until(lambda: site.data("web") == {"size": "2"}, "reconciled")
    again.wait_idle()
    assert "mm_module_maintenance" not in again.metrics().names()
    assert site.revisions()["web"] == 2
    site.delete("configmap", "web")
    again.wait_metric(1, "resources_healed_total", module="web")
    see_healed_at_the_end(site, again)
    again.stop()


def see_healed_at_the_end(site: operator_site.Site, operator: operator_process.OperatorProcess) -> None:
    """What was deleted comes back when the maintenance ends without any other change."""
    site.config(dbMaintenance=MODE.lower())
    operator.wait_metric(1, "mm_module_maintenance", module="db")
    operator.wait_idle()
    site.delete("configmap", "db")
    site.config(dbMaintenance="")
    operator.wait_metric(1, "resources_healed_total", module="db")
    assert site.data("db") == {"a": "b"}
