"""Module objects as people see them: kubectl get modules, kubectl wait, kubectl describe."""

import os
import pathlib
from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from addon_operator.debug import debug_client
from addon_operator.devcluster import handle
from tests.integration import charts, operator_site
from tests.integration.module_objects import CRD, Modules

pytestmark = pytest.mark.integration


@pytest.fixture
def modules(site: operator_site.Site, devcluster: handle.DevCluster) -> Modules:
    return Modules(site, devcluster)


@pytest.fixture
def neighbours(devcluster: handle.DevCluster, tmp_path: pathlib.Path) -> Iterator[Modules]:
    """Modules of another operator, in a namespace of its own."""
    site = operator_site.Site(devcluster, devcluster.namespace(), tmp_path / "neighbours")
    yield Modules(site, devcluster)
    site.close()


def test_kubectl_shows_how_modules_fare(modules: Modules) -> None:
    modules.site.first_retry = operator_site.SOON
    web = modules.add(10, "web", data={"a": "b"})
    (web / "module.yaml").write_text("description: The front door")
    modules.site.hook(web, "look.sh", {"beforeHelm": 1})
    fragile = modules.add(20, "fragile")
    modules.site.hook(fragile, "break.sh", {"onStartup": 1}, 'test -e "$TRACE.mended"')
    modules.add(30, "off", enabled=False)
    operator = modules.site.start(CONVERGE_ON_FAILURE="continue")
    status = modules.wait(operator, "web", Enabled="True", Ready="True", Reconciling="False", Stalled="False")
    assert (status["state"], status["order"], status["hooks"]) == ("Ready", 10, ["look.sh"])
    assert status["observedGeneration"] == 1
    assert status["description"] == "The front door"
    assert status["release"]["revision"] == 1
    assert status["release"]["checksum"]
    assert "lastError" not in status
    assert status["lastRun"] == status["lastRun"].rstrip("Z") + "Z"

    failed = modules.wait(operator, "fragile", Enabled="True", Ready="False", Stalled="True")
    assert "break.sh failed with exit code 1" in failed["lastError"]
    off = modules.wait(operator, "off", Enabled="False", Ready="False", Stalled="False")
    assert off["state"] == "Disabled"

    wide = modules.kubectl("get", "mod", "-o", "wide").splitlines()
    assert wide[0].split("  ")[0] == "NAME"
    for column in ("STATE", "READY", "ORDER", "REVISION", "LAST RUN", "REASON", "MESSAGE"):
        assert column in wide[0]
    (line,) = [line for line in wide if line.startswith("web")]
    assert line.split()[1:6] == ["Ready", "True", "True", "10", "1"]
    modules.kubectl("wait", "--for=condition=Ready", "module/web", "--timeout=10s")

    pathlib.Path(modules.site.environment()["TRACE"] + ".mended").touch()
    modules.wait(operator, "fragile", Ready="True")
    operator.wait_until(lambda: modules.reasons("fragile")[-1:] == ["Ready"], "an Event tells of it")
    assert modules.reasons("fragile") == ["Enabled", "Failed", "Ready"]
    assert modules.reasons("off") == []
    described = modules.kubectl("describe", "module", "fragile")
    assert "ready again, after a failure" in described


@pytest.mark.slow
def test_objects_follow_what_becomes_of_modules(modules: Modules) -> None:
    modules.add(10, "web", data={"a": "b"})
    operator = modules.site.start().wait_ready()
    before = modules.wait(operator, "web", Ready="True")
    modules.site.config(webEnabled="false")
    off = modules.wait(operator, "web", Enabled="False", Ready="False", Reconciling="False")
    assert off["state"] == "Disabled"
    assert "release" not in off
    operator.wait_until(lambda: modules.reasons("web")[-1:] == ["Disabled"], "an Event tells of it")
    modules.site.config(webEnabled="true")
    modules.wait(operator, "web", Enabled="True", Ready="True")
    operator.stop()

    # What is stale after an operator's end is put right by the next one.
    directory = next(modules.site.modules.iterdir())
    directory = directory.rename(directory.with_name("010-api"))
    (directory / "values.yaml").write_text("apiEnabled: true\n")
    operator = modules.site.start(ALLOW_EMPTY_MODULES="true")
    status = modules.wait(operator, "api", Ready="True")
    assert status["lastRun"] >= before["lastRun"]
    operator.wait_until(lambda: modules.get("web") is None, "the object of a module that is gone is deleted")


@pytest.mark.slow
def test_a_restart_changes_no_condition_and_tells_nothing(modules: Modules) -> None:
    modules.add(10, "web", data={"a": "b"})
    modules.site.hook(modules.add(20, "fragile"), "break.sh", {"onStartup": 1}, "exit 1")
    operator = modules.site.start(CONVERGE_ON_FAILURE="continue").wait_ready()
    before = modules.wait(operator, "web", Ready="True", Healthy="True")
    failed = _since(modules.wait(operator, "fragile", Ready="False"))
    operator.stop()
    told = modules.reasons("web")
    operator = modules.site.start(CONVERGE_ON_FAILURE="continue").wait_ready()
    operator.wait_until(
        lambda: (modules.get("web") or {})["status"]["lastRun"] > before["lastRun"],
        "the status of the new run",
    )
    after = modules.wait(operator, "web", Ready="True", Healthy="True")
    assert _since(after) == _since(before)
    assert _since(modules.wait(operator, "fragile", Ready="False"))["Ready"] == failed["Ready"]
    asked = debug_client.DebugClient(modules.site.root / "debug.socket", 10.0)
    described = asked.get("/module/fragile/describe.json")
    assert described["since"] == failed["Ready"], "as the object says"
    shown = asked.get("/module/web/describe.json")["events"]
    assert {event["reason"] for event in shown} == {"Enabled", "Ready"}, "the page has those of before, too"
    operator.stop()
    assert modules.reasons("web") == told == ["Enabled", "Ready"]


def _since(status: Mapping[str, Any]) -> dict[str, str]:
    """Return since when the conditions are so that a restart is not to touch."""
    times = {each["type"]: each["lastTransitionTime"] for each in status["conditions"]}
    return {type_: times[type_] for type_ in ("Enabled", "Ready", "Healthy", "Stalled", "WebhooksRegistered")}


def test_without_the_rights_everything_else_works(modules: Modules, devcluster: handle.DevCluster) -> None:
    modules.add(10, "web")
    modules.site.account("poor")
    modules.site.bind("poor", "ClusterRole", "admin")
    kubeconfig = charts.kubeconfig_with_token(devcluster, modules.site, "poor")
    operator = modules.site.start(KUBE_CONFIG=os.fspath(kubeconfig)).wait_ready()
    warning = operator.wait_logged("Module objects")
    assert "modules" in warning
    operator.stop()
    assert operator.log.count("not shown as Module objects") == 1
    assert modules.get("web") is None


@pytest.mark.slow
def test_operators_with_modules_of_one_name_have_an_object_each(
    modules: Modules, neighbours: Modules, devcluster: handle.DevCluster
) -> None:
    modules.add(10, "web", data={"a": "b"})
    neighbours.site.hook(neighbours.add(10, "web"), "break.sh", {"onStartup": 1}, "false")
    first, second = (each.site.start(CONVERGE_ON_FAILURE="continue") for each in (modules, neighbours))
    neighbours.wait(second, "web", Ready="False", Stalled="True")
    modules.wait(first, "web", Ready="True")
    assert "web,too" not in (first.log + second.log).replace(" ", "")
    listed = devcluster.run_kubectl("get", "modules", "-A", "--no-headers").stdout.splitlines()
    states = {line.split()[0]: line.split()[1:3] for line in listed}
    assert states[modules.site.namespace] == ["web", "Ready"]
    assert states[neighbours.site.namespace] == ["web", "Failed"]
    assert (modules.reasons("web")[-1], neighbours.reasons("web")[-1]) == ("Ready", "Failed")

    second.stop()
    devcluster.delete_namespace(neighbours.site.namespace)
    first.wait_until(lambda: neighbours.get("web") is None, "the object goes with its namespace")
    assert modules.conditions("web")["Ready"] == "True"


@pytest.mark.slow
def test_the_definition_of_an_older_version_is_replaced(modules: Modules) -> None:
    modules.leave_definition("addon-operator")
    modules.leave_object_of_the_cluster("old")
    modules.add(10, "web")
    operator = modules.site.start().wait_ready()
    modules.wait(operator, "web", Ready="True")
    assert modules.scope == "Namespaced"
    operator.wait_logged(CRD, "is replaced")
    assert modules.kubectl("get", "modules", "-o", "name").split() == ["module.addon-operator.io/web"]


@pytest.mark.slow
def test_a_definition_of_somebody_else_is_said_to_be_in_the_way_and_everything_else_works(
    modules: Modules,
) -> None:
    modules.leave_definition("somebody")
    modules.add(10, "web", data={"a": "b"})
    operator = modules.site.start().wait_ready()
    warning = operator.wait_logged("Module objects")
    assert f"run 'kubectl delete crd {CRD}'" in warning
    modules.site.config(webEnabled="false")
    operator.wait_until(lambda: modules.site.data("web") is None, "the module is removed")
    operator.stop()
    assert operator.log.count("not shown as Module objects") == 1
    assert modules.scope == "Cluster"

    modules.site.delete("crd", CRD)
    modules.wait(modules.site.start(), "web", Enabled="False")
