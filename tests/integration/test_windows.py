"""What changes what runs waits for a window; the rest does not, and the window that opens is noticed."""

import datetime as dt
import json
import pathlib
from typing import Any

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


def ready(modules: Modules, name: str = "web") -> dict[str, Any]:
    """The condition Ready of a module; empty as long as there is none."""
    found: dict[str, Any] = (modules.get(name) or {}).get("status", {})
    return next((each for each in found.get("conditions", ()) if each["type"] == "Ready"), {})


def wait_held(modules: Modules, operator: operator_process.OperatorProcess, name: str = "web") -> str:
    """Wait until something of a module waits for a window; what the condition says of it."""
    condition = operator.wait_until(
        lambda: found if (found := ready(modules, name)).get("reason") == "WaitsForWindow" else None,
        "it waits for a window",
    )
    return f"{condition['status']} {condition['message']}"


def test_an_upgrade_waits_and_first_installs_hooks_and_healing_do_not(
    modules: Modules,
) -> None:
    site = modules.site
    web = site.module("010-web", SIZE, values="webEnabled: true\nweb: {size: 1}")
    site.hook(web, "before.sh", {"beforeHelm": 1})
    set_windows(web, CLOSED)
    operator = site.start().wait_ready().wait_idle()
    assert site.data("web") == {"size": "1"}
    runs = site.labels().count("before.sh beforeHelm")
    site.config(web="size: 2")
    told = wait_held(modules, operator)
    assert told.startswith(
        "True The last run succeeded; upgrade to revision 2: 1 resource changes: ConfigMap web"
    )
    assert "waits for a window, which opens at 20" in told
    operator.wait_idle()
    assert site.labels().count("before.sh beforeHelm") == runs + 1
    assert site.data("web") == {"size": "1"}
    assert site.revisions() == {"web": 1}
    operator.wait_metric(1, "module_held_back", module="web")
    site.kubectl("delete", "configmap", "web")
    operator.wait_metric(1, "resources_healed_total", module="web")
    assert site.data("web") == {"size": "1"}

    site.config(web=None)
    operator.wait_until(lambda: ready(modules).get("reason") == "RunSucceeded", "nothing waits any more")
    assert "module_held_back" not in operator.metrics().names()
    operator.stop()


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
    operator.wait_until(lambda: ready(modules).get("reason") == "RunSucceeded", "nothing waits any more")
    operator.wait_logged("module run ended", "WindowOpened")
    operator.stop()
