"""Module objects as people see them: kubectl get modules, kubectl wait, kubectl describe."""

import json
import os
import pathlib
import uuid
from collections.abc import Iterator
from typing import Any

import pytest
import yaml

from addon_operator.devcluster import api, handle, layout
from tests.integration import operator_process, operator_site

pytestmark = pytest.mark.integration

MODULES = "/apis/addon-operator.io/v1alpha1/modules"
EVENTS = "/api/v1/namespaces/default/events"
Object = dict[str, Any]


class Modules:
    """The Module objects of one test, whose modules have names of its own: the objects are the cluster's."""

    def __init__(self, site: operator_site.Site, cluster: handle.DevCluster) -> None:
        self.site = site
        self._cluster = cluster
        self._client = api.ApiClient(layout.Layout(cluster.kubeconfig.parent), cluster.url)
        self._suffix = uuid.uuid4().hex[:6]

    def name(self, stem: str) -> str:
        return f"{stem}-x{self._suffix}"

    def add(self, order: int, stem: str, *, enabled: bool = True, data: Object | None = None) -> pathlib.Path:
        key = f"{stem}X{self._suffix}"
        return self.site.module(
            f"{order:03}-{self.name(stem)}", data, values=f"{key}Enabled: {str(enabled).lower()}\n"
        )

    def get(self, stem: str) -> Object | None:
        answer = self._client.request("GET", f"{MODULES}/{self.name(stem)}")
        found: Object | None = json.loads(answer.text) if answer.is_success else None
        return found

    def conditions(self, stem: str) -> dict[str, str]:
        found = (self.get(stem) or {}).get("status", {})
        return {each["type"]: each["status"] for each in found.get("conditions", ())}

    def wait(self, operator: operator_process.OperatorProcess, stem: str, **conditions: str) -> Object:
        """Wait until it has these conditions; its status."""
        operator.wait_until(
            lambda: conditions.items() <= self.conditions(stem).items(), f"module {stem} is {conditions}"
        )
        found = self.get(stem)
        assert found is not None
        status: Object = found["status"]
        return status

    def delete(self, stem: str) -> None:
        self._client.request("DELETE", f"{MODULES}/{self.name(stem)}")

    def reasons(self, stem: str) -> list[str]:
        """Reasons of the Events about it, in their order."""
        answer = self._client.request("GET", f"{EVENTS}?fieldSelector=involvedObject.name={self.name(stem)}")
        found = sorted(json.loads(answer.text)["items"], key=lambda event: event["metadata"]["name"])
        return [event["reason"] for event in found]

    def kubectl(self, *arguments: str) -> str:
        return self._cluster.run_kubectl(*arguments).stdout

    def clear(self) -> None:
        answer = self._client.request("GET", MODULES)
        for item in json.loads(answer.text).get("items", ()) if answer.is_success else ():
            if item["metadata"]["name"].endswith(self._suffix):
                self._client.request("DELETE", f"{MODULES}/{item['metadata']['name']}")


@pytest.fixture
def modules(site: operator_site.Site, devcluster: handle.DevCluster) -> Iterator[Modules]:
    found = Modules(site, devcluster)
    yield found
    site.close()
    found.clear()


def test_kubectl_shows_how_modules_fare(modules: Modules) -> None:
    modules.site.hook(modules.add(10, "web", data={"a": "b"}), "look.sh", {"beforeHelm": 1})
    fragile = modules.add(20, "fragile")
    modules.site.hook(fragile, "break.sh", {"onStartup": 1}, 'test -e "$TRACE.mended"')
    modules.add(30, "off", enabled=False)
    operator = modules.site.start(CONVERGE_ON_FAILURE="continue")
    status = modules.wait(operator, "web", Enabled="True", Ready="True", Reconciling="False", Stalled="False")
    assert (status["state"], status["order"], status["hooks"]) == ("Ready", 10, ["look.sh"])
    assert status["observedGeneration"] == 1
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
    (line,) = [line for line in wide if line.startswith(modules.name("web"))]
    assert line.split()[1:5] == ["Ready", "True", "10", "1"]
    modules.kubectl("wait", "--for=condition=Ready", f"module/{modules.name('web')}", "--timeout=10s")

    pathlib.Path(modules.site.environment()["TRACE"] + ".mended").touch()
    modules.kubectl("wait", "--for=condition=Ready", f"module/{modules.name('fragile')}", "--timeout=30s")
    operator.wait_until(lambda: modules.reasons("fragile")[-1:] == ["Ready"], "an Event tells of it")
    assert modules.reasons("fragile") == ["Enabled", "Failed", "Ready"]
    assert modules.reasons("off") == []
    described = modules.kubectl("describe", "module", modules.name("fragile"))
    assert "ready again, after a failure" in described


def test_objects_follow_what_becomes_of_modules(modules: Modules) -> None:
    modules.add(10, "web", data={"a": "b"})
    web_key = modules.name("web").replace("-x", "X")
    operator = modules.site.start().wait_ready()
    before = modules.wait(operator, "web", Ready="True")
    modules.site.config(**{f"{web_key}Enabled": "false"})
    off = modules.wait(operator, "web", Enabled="False", Ready="False", Reconciling="False")
    assert off["state"] == "Disabled"
    assert "release" not in off
    operator.wait_until(lambda: modules.reasons("web")[-1:] == ["Disabled"], "an Event tells of it")
    modules.site.config(**{f"{web_key}Enabled": "true"})
    modules.wait(operator, "web", Enabled="True", Ready="True")
    operator.stop()

    # What is stale after an operator's end is put right by the next one.
    directory = next(modules.site.modules.iterdir())
    directory.rename(directory.with_name(f"010-{modules.name('api')}"))
    (modules.site.modules / f"010-{modules.name('api')}" / "values.yaml").write_text(
        f"{modules.name('api').replace('-x', 'X')}Enabled: true\n"
    )
    operator = modules.site.start()
    status = modules.wait(operator, "api", Ready="True")
    assert status["lastRun"] >= before["lastRun"]
    operator.wait_until(lambda: modules.get("web") is None, "the object of a module that is gone is deleted")


@pytest.mark.slow
def test_a_restart_changes_no_condition_and_tells_nothing(modules: Modules) -> None:
    modules.add(10, "web", data={"a": "b"})
    operator = modules.site.start().wait_ready()
    before = modules.wait(operator, "web", Ready="True")
    operator.stop()
    told = modules.reasons("web")
    operator = modules.site.start().wait_ready()
    operator.wait_until(
        lambda: (modules.get("web") or {})["status"]["lastRun"] > before["lastRun"],
        "the status of the new run",
    )
    modules.wait(operator, "web", Ready="True")
    operator.stop()
    assert modules.reasons("web") == told == ["Enabled", "Ready"]


def test_without_the_rights_everything_else_works(modules: Modules, devcluster: handle.DevCluster) -> None:
    modules.add(10, "web")
    namespace = modules.site.namespace
    modules.kubectl("create", "serviceaccount", "poor", f"--namespace={namespace}")
    modules.kubectl(
        "create",
        "rolebinding",
        "poor",
        "--clusterrole=admin",
        f"--serviceaccount={namespace}:poor",
        f"--namespace={namespace}",
    )
    token = modules.kubectl("create", "token", "poor", f"--namespace={namespace}").strip()
    config = yaml.safe_load(devcluster.kubeconfig.read_text())
    for user in config["users"]:
        user["user"] = {"token": token}
    kubeconfig = modules.site.root / "poor.kubeconfig"
    kubeconfig.touch(0o600)
    kubeconfig.write_text(yaml.safe_dump(config))
    operator = modules.site.start(KUBE_CONFIG=os.fspath(kubeconfig)).wait_ready()
    warning = operator.wait_logged("Module objects")
    assert "modules" in warning
    operator.stop()
    assert operator.log.count("not shown as Module objects") == 1
    assert modules.get("web") is None
