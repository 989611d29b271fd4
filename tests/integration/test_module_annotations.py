"""What people ask of modules by annotations of Module objects: run, suspend, resume."""

import datetime as dt
import json

import pytest

from addon_operator.devcluster import handle
from tests.integration import operator_process, operator_site
from tests.integration.module_objects import Modules, Object

pytestmark = pytest.mark.integration


@pytest.fixture
def modules(site: operator_site.Site, devcluster: handle.DevCluster) -> Modules:
    return Modules(site, devcluster)


def annotations(modules: Modules, name: str) -> Object:
    found: Object = (modules.get(name) or {})["metadata"].get("annotations") or {}
    return found


def status(modules: Modules, name: str) -> Object:
    found: Object = (modules.get(name) or {}).get("status") or {}
    return found


def command(modules: Modules, *arguments: str) -> str:
    done = modules.site.command("module", *arguments)
    assert done.returncode == 0, done.stderr
    return done.stdout


def counted(modules: Modules) -> int:
    return modules.site.labels().count("before.sh beforeHelm")


def runs(modules: Modules, operator: operator_process.OperatorProcess, number: int, what: str) -> None:
    operator.wait_until(lambda: counted(modules) == number, what)
    operator.wait_idle()
    assert counted(modules) == number


def web(modules: Modules) -> None:
    path = modules.site.module(
        "010-web", {"size": '"{{ .Values.web.size }}"'}, values="webEnabled: true\nweb: {size: 1}"
    )
    modules.site.hook(path, "before.sh", {"beforeHelm": 1})


def test_each_new_value_of_the_annotation_runs_the_module_once(modules: Modules) -> None:
    web(modules)
    modules.site.module("020-off", values="offEnabled: false")
    operator = modules.site.start().wait_ready().wait_idle()
    modules.wait(operator, "web", Ready="True")
    assert counted(modules) == 1
    modules.site.annotate("module", "web", {"addon-operator.io/run": "1"})
    served = "--for=jsonpath={.status.lastHandledRun}=1"
    modules.kubectl("wait", "module/web", served, "--timeout=30s")
    assert modules.conditions("web")["Ready"] == "True"
    runs(modules, operator, 2, "it ran once more")
    modules.site.annotate("module", "web", {"addon-operator.io/run": "2"})
    modules.site.annotate("module", "web", {"unrelated": "2"})
    operator.wait_until(lambda: status(modules, "web").get("lastHandledRun") == "2", "it is served")
    runs(modules, operator, 3, "it ran once more")
    assert modules.site.revisions() == {"web": 1}
    modules.site.annotate("module", "off", {"addon-operator.io/run": "1"})
    operator.wait_until(lambda: status(modules, "off").get("lastHandledRun") == "1", "it is dismissed")
    operator.wait_logged("module off is disabled", "is not tried again")
    operator.stop()


@pytest.mark.slow
def test_a_value_of_the_annotation_counts_once_over_restarts(modules: Modules) -> None:
    web(modules)
    operator = modules.site.start().wait_ready().wait_idle()
    modules.wait(operator, "web", Ready="True")
    modules.site.annotate("module", "web", {"addon-operator.io/run": "2"})
    operator.wait_until(lambda: status(modules, "web").get("lastHandledRun") == "2", "it is served")
    runs(modules, operator, 2, "it ran once more")
    operator.stop()

    # The start runs each module once; a value that was served is not a reason for another run.
    again = modules.site.start().wait_ready()
    modules.wait(again, "web", Ready="True")
    runs(modules, again, 3, "the start ran it")
    assert status(modules, "web")["lastHandledRun"] == "2"
    again.stop()
    modules.site.annotate("module", "web", {"addon-operator.io/run": "3"})
    last = modules.site.start().wait_ready()
    last.wait_until(lambda: status(modules, "web").get("lastHandledRun") == "3", "it is served")
    last.stop()


def test_a_suspended_module_is_left_alone_until_it_is_resumed(modules: Modules) -> None:
    web(modules)
    operator = modules.site.start().wait_ready().wait_idle()
    modules.wait(operator, "web", Ready="True")
    told = command(modules, "suspend", "web", "--reason", "the disk is replaced")
    assert told.startswith("module web is suspended: the disk is replaced (by ")
    operator.wait_metric(1, "mm_module_maintenance", module="web", state="Suspended")
    modules.wait(operator, "web", Suspended="True", Ready="True")
    shown = status(modules, "web")["suspended"]
    assert shown["reason"] == "the disk is replaced"
    since = dt.datetime.fromisoformat(shown["since"]).timestamp()
    assert operator.metrics().total("module_suspended", module="web") == since
    assert "the disk is replaced" in command(modules, "list")
    assert "Suspended:\n  the disk is replaced (by " in command(modules, "describe", "web")
    operator.wait_until(lambda: "Suspended" in modules.reasons("web"), "an Event tells of it")
    operator.wait_idle()

    plan = modules.site.command("plan", "-o", "json")
    assert json.loads(plan.stdout)["modules"][0]["reason"] == "the module is in maintenance: Suspended"

    # What is edited and deleted meanwhile is left, also after a restart.
    calls = len(modules.site.helm_calls())
    modules.site.config(web="size: 2")
    modules.site.delete("configmap", "web")
    operator.wait_idle()
    operator.stop()
    operator = modules.site.start().wait_ready().wait_idle()
    assert modules.site.helm_calls()[calls:] == []
    assert modules.site.data("web") is None
    assert operator.metrics().total("module_suspended", module="web") == since

    assert command(modules, "resume", "web") == "module web is looked after again\n"
    operator.wait_until(lambda: modules.site.data("web") == {"size": "2"}, "the edit is applied")
    modules.wait(operator, "web", Suspended="False", Ready="True")
    assert modules.site.revisions() == {"web": 2}
    assert not [key for key in annotations(modules, "web") if "suspended" in key]
    assert "module_suspended" not in operator.metrics().names()
    operator.wait_until(lambda: modules.reasons("web")[-1:] == ["Resumed"], "an Event tells of it")
    refused = modules.site.command("module", "resume", "web")
    assert (refused.returncode, refused.stderr) == (1, "Error: module web is not suspended\n")
    operator.stop()


@pytest.mark.slow
def test_a_suspension_by_hand_ends_by_itself_and_without_a_revision(modules: Modules) -> None:
    web(modules)
    operator = modules.site.start().wait_ready().wait_idle()
    modules.wait(operator, "web", Ready="True")
    command(modules, "suspend", "web", "--reason", "a moment", "--for", "3s")
    modules.wait(operator, "web", Suspended="True")
    modules.wait(operator, "web", Suspended="False")
    operator.wait_until(lambda: not annotations(modules, "web"), "its annotations are gone")
    modules.site.annotate("module", "web", {"addon-operator.io/suspended": "by hand"})
    modules.wait(operator, "web", Suspended="True")
    assert status(modules, "web")["suspended"]["reason"] == "by hand"
    operator.stop()
    before = status(modules, "web")["suspended"]["since"]
    operator = modules.site.start().wait_ready().wait_idle()
    assert status(modules, "web")["suspended"]["since"] == before
    modules.site.annotate("module", "web", {"addon-operator.io/suspended": None})
    modules.wait(operator, "web", Suspended="False", Ready="True")
    operator.wait_idle()
    assert modules.site.revisions() == {"web": 1}
    operator.stop()
