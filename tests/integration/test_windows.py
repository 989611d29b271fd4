"""What changes what runs waits for a window; the rest does not, and the window that opens is noticed."""

import datetime as dt
import json
import pathlib

import pytest

from addon_operator.devcluster import handle
from tests.integration import operator_process, operator_site
from tests.integration.module_objects import Modules

pytestmark = pytest.mark.integration

SIZE = {"size": '"{{ .Values.web.size }}"'}


def opening_in(seconds: float) -> dict[str, str]:
    """A window that opens once a day, the next time after so many seconds."""
    opens = dt.datetime.now(dt.UTC) + dt.timedelta(seconds=seconds)
    return {"schedule": f"{opens.second} {opens.minute} {opens.hour} * * *", "duration": "10m"}


CLOSED = opening_in(12 * 3600)


def set_windows(module: pathlib.Path, *windows: dict[str, str]) -> None:
    (module / "module.yaml").write_text(json.dumps({"windows": windows}))


@pytest.fixture
def modules(site: operator_site.Site, devcluster: handle.DevCluster) -> Modules:
    return Modules(site, devcluster)


def wait_held(modules: Modules, operator: operator_process.OperatorProcess, name: str = "web") -> str:
    """Wait until something of a module waits for a window; what the condition says of it."""
    condition = operator.wait_until(
        lambda: found if (found := modules.condition(name, "Ready"))["reason"] == "WaitsForWindow" else None,
        "it waits for a window",
    )
    return f"{condition['status']} {condition['message']}"


def restarted(
    modules: Modules, operator: operator_process.OperatorProcess
) -> operator_process.OperatorProcess:
    """Another operator: what waits does so since the same time."""
    held = modules.wait(operator, "web", Ready="True")["heldBack"]
    operator.stop()
    another = modules.site.start(DRIFT_MODE="correct").wait_ready().wait_idle()
    assert modules.wait(another, "web", Ready="True")["heldBack"] == held
    return another


def test_an_upgrade_waits_and_first_installs_hooks_and_healing_do_not(
    modules: Modules,
) -> None:
    site = modules.site
    web = site.module("010-web", SIZE, values="webEnabled: true\nweb: {size: 1}")
    site.hook(web, "before.sh", {"beforeHelm": 1})
    set_windows(web, CLOSED)
    operator = site.start(DRIFT_MODE="correct").wait_ready().wait_idle()
    assert site.data("web") == {"size": "1"}
    modules.wait(operator, "web", Drifted="False")
    site.patch("configmap", "web", {"data": {"size": "9"}})
    modules.wait(operator, "web", Drifted="True")
    assert site.data("web") == {"size": "9"}, "a correction waits, too"
    site.patch("configmap", "web", {"data": {"size": "1"}})
    runs = site.labels().count("before.sh beforeHelm")
    site.config(web="size: 2")
    told = wait_held(modules, operator)
    assert told.startswith("True The last run succeeded; waits for a window, which opens at 20")
    assert told.endswith("upgrade to revision 2: 1 resource changes: ConfigMap web.")
    operator.wait_idle()
    assert site.labels().count("before.sh beforeHelm") == runs + 1
    assert site.data("web") == {"size": "1"}
    assert site.revisions() == {"web": 1}
    operator.wait_metric(1, "module_held_back", module="web")
    site.delete("configmap", "web")
    operator.wait_metric(1, "resources_healed_total", module="web")
    assert site.data("web") == {"size": "1"}

    described = site.command("module", "describe", "web").stdout
    assert "Held back:\n  waits for a window, which opens at 20" in described
    assert "waits for a window, which opens at 20" in site.command("module", "list").stdout
    assert "upgrade to revision 2: 1 resource changes: ConfigMap web" in operator.get("/").text
    planned = site.command("plan", "--output=json", "--module=web")
    (row,) = json.loads(planned.stdout)["modules"]
    assert (planned.returncode, row["action"], len(row["changes"])) == (3, "wait", 1), planned.stderr
    assert row["reason"].startswith("waits for a window, which opens at 20")

    operator = restarted(modules, operator)
    site.config(web=None)
    operator.wait_until(
        lambda: modules.condition("web", "Ready")["reason"] == "RunSucceeded", "nothing waits any more"
    )
    assert "module_held_back" not in operator.metrics().names()
    operator.stop()


@pytest.mark.slow
def test_the_window_that_opens_brings_the_upgrade(modules: Modules) -> None:
    site = modules.site
    web = site.module("010-web", SIZE, values="webEnabled: true\nweb: {size: 1}")
    site.start().wait_ready().wait_idle().stop()
    set_windows(web, CLOSED, window := opening_in(25))
    site.config(web="size: 2")
    operator = site.start().wait_ready().wait_idle()
    assert site.data("web") == {"size": "1"}, f"{window} was already open"
    wait_held(modules, operator)
    operator.wait_until(lambda: site.data("web") == {"size": "2"}, "the window opens", deadline=60)
    operator.wait_until(
        lambda: modules.condition("web", "Ready")["reason"] == "RunSucceeded", "nothing waits any more"
    )
    operator.wait_logged("module run ended", "WindowOpened")
    operator.stop()


@pytest.mark.slow
def test_what_is_held_back_can_be_seen_and_be_done_once_without_waiting(modules: Modules) -> None:
    site = modules.site
    web = site.module("010-web", SIZE, values="webEnabled: true\nweb: {size: 1, password: ancient}")
    (web / "templates" / "secret.yaml").write_text(
        "apiVersion: v1\nkind: Secret\nmetadata: {name: web}\n"
        "stringData: {password: '{{ .Values.web.password }}'}"
    )
    operator = site.start(WINDOWS=json.dumps([CLOSED])).wait_ready().wait_idle()
    assert site.command("module", "diff", "web", "--pending").returncode == 0
    site.config(web="{size: 2, password: brandnew}")
    assert "2 resources change: Secret web, ConfigMap web" in wait_held(modules, operator)
    shown = site.command("module", "diff", "web", "--pending")
    assert shown.returncode == 1, shown.stderr
    assert "-  size: '1'\n+  size: '2'" in shown.stdout.replace('"', "'")
    assert "password: '*** (after)'" in shown.stdout.replace('"', "'")
    assert "ancient" not in shown.stdout
    assert "brandnew" not in shown.stdout
    # Nobody else changed anything.
    assert site.command("module", "diff", "web").returncode == 0

    done = site.command("module", "run", "web", "--now", "--wait")
    assert done.stdout == "module web is Ready\n", done.stderr
    assert site.data("web") == {"size": "2"}
    assert site.command("module", "diff", "web", "--pending").stdout == "Nothing is held back.\n"
    # Once only, and once more for each value of the annotation.
    site.config(web="{size: 3, password: brandnew}")
    wait_held(modules, operator)
    assert site.data("web") == {"size": "2"}
    site.annotate("module", "web", {"addon-operator.io/now": "1"})
    operator.wait_until(lambda: site.data("web") == {"size": "3"}, "the annotation does the same")
    site.kubectl("wait", "module/web", "--for=jsonpath={.status.lastHandledNow}=1", "--timeout=30s")
    site.config(web="{size: 4, password: brandnew}")
    wait_held(modules, operator)
    operator.stop()
    again = site.start(WINDOWS=json.dumps([CLOSED])).wait_ready().wait_idle()
    wait_held(modules, again)
    assert site.data("web") == {"size": "3"}
    again.stop()


@pytest.mark.slow
def test_removals_wait_even_over_a_restart_in_the_order_of_what_requires_what(modules: Modules) -> None:
    site = modules.site
    base = site.module("010-base", {"a": "b"}, values="baseEnabled: true")
    top = site.module("020-top", {"a": "b"}, values="topEnabled: true")
    (top / "module.yaml").write_text(json.dumps({"requires": {"modules": ["base"]}}))
    site.module("005-stay", {"a": "b"}, values="stayEnabled: true")
    gone = site.module("030-gone", {"a": "b"}, values="goneEnabled: true")
    set_windows(base)  # An own list, which is empty: nothing of it waits by itself.
    site.start().wait_ready().wait_idle().stop()
    site.config(baseEnabled="false")
    for file in sorted(gone.rglob("*"), reverse=True):
        file.rmdir() if file.is_dir() else file.unlink()
    gone.rmdir()
    environment = {"WINDOWS": json.dumps([CLOSED])}
    operator = site.start(**environment).wait_ready().wait_idle()
    assert wait_held(modules, operator, "top").startswith("False The module is disabled; waits for a window")
    assert wait_held(modules, operator, "base").startswith("False The module is disabled; waits for a window")
    assert site.revisions() == {"stay": 1, "base": 1, "top": 1, "gone": 1}
    operator.wait_metric(1, "module_held_back", module="gone")
    assert "release gone waits for a window" in site.command("module", "list").stdout
    planned = json.loads(site.command("plan", "--output=json", **environment).stdout)
    actions = {each["name"]: each["action"] for each in planned["modules"]}
    assert actions == {"top": "wait", "base": "wait", "stay": "nothing"}
    assert planned["purges"][0]["reason"].startswith("waits for a window")
    diff = site.command("module", "diff", "base", "--pending")
    assert "-kind: ConfigMap" in diff.stdout

    refused = site.command("module", "run", "base", "--now")
    assert "comes after that of top" in refused.stderr
    done = site.command("module", "run", "top", "--now", "--wait")
    assert done.stdout == "module top is Disabled\n", done.stderr
    operator.wait_until(
        lambda: site.revisions() == {"stay": 1, "gone": 1}, "what waited for top only is done, too"
    )
    operator.stop()

    again = site.start(WINDOWS=json.dumps([opening_in(20)])).wait_ready().wait_idle()
    assert site.revisions() == {"stay": 1, "gone": 1}
    again.wait_until(lambda: site.revisions() == {"stay": 1}, "the window opens", deadline=60)
    again.wait_idle()
    assert "module_held_back" not in again.metrics().names()
    again.stop()
