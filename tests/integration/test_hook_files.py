"""Hooks that cannot run, or whose results go nowhere: the operator, its page and its commands say so."""

import json
import pathlib
from typing import Any

import pytest

from tests.integration import operator_process, operator_site

pytestmark = pytest.mark.integration

MEND = "is not executable; run 'chmod +x {}'"


def listed(site: operator_site.Site, name: str) -> dict[str, Any]:
    """What ``module list`` says of it; nothing as long as the operator starts."""
    done = site.command("module", "list", "-o", "json")
    found = json.loads(done.stdout)["modules"] if done.returncode == 0 else []
    return next((module for module in found if module["name"] == name), {})


def wait(
    operator: operator_process.OperatorProcess, site: operator_site.Site, name: str, state: str
) -> dict[str, Any]:
    operator.wait_until(lambda: listed(site, name).get("state") == state, f"module {name} is {state}")
    return listed(site, name)


def set_mode(path: pathlib.Path, mode: int) -> str:
    path.chmod(mode)
    return MEND.format(path)


def test_a_hook_that_is_not_executable_stops_its_module_until_it_is(site: operator_site.Site) -> None:
    site.module("010-db", {"a": "b"}, values="dbEnabled: true")
    web = site.module("020-web", {"a": "{{ .Values.web.a }}"}, values="webEnabled: true\nweb: {a: b}")
    gift = '[{"op": "add", "path": "/web/a", "value": "given"}]'
    hook = site.hook(web, "give.sh", {"beforeHelm": 1}, f"echo '{gift}' > \"$VALUES_JSON_PATCH_PATH\"")
    mend = set_mode(hook, 0o644)
    planned = site.command("plan", "-o", "json")
    assert planned.returncode == 1
    assert (
        mend
        in next(each for each in json.loads(planned.stdout)["modules"] if each["name"] == "web")["reason"]
    )
    operator = site.start(WATCH_MODULES="yes")
    assert mend in wait(operator, site, "web", "Failed")["lastError"]
    assert site.revisions() == {"db": 1}
    set_mode(hook, 0o755)
    wait(operator, site, "web", "Ready")
    operator.wait_until(lambda: site.data("web") == {"a": "given"}, "the value of the hook is released")
    set_mode(hook, 0o644)
    assert mend in wait(operator, site, "web", "Failed")["lastError"]
    assert site.data("web") == {"a": "given"}, "nothing is undone"
    operator.stop()


def test_a_script_that_cannot_be_started_stops_its_module_and_a_global_hook_the_start(
    site: operator_site.Site,
) -> None:
    web = site.module("010-web", {"a": "b"}, values="webEnabled: true", enabled="exit 0")
    mend = set_mode(web / "enabled", 0o644)
    db = site.module("020-db", {"a": "b"}, values="dbEnabled: true")
    plain = site.script(db / "hooks" / "plain", "echo '{}'\n", exact=True)
    operator = site.start()
    assert mend in wait(operator, site, "web", "Failed")["lastError"]
    told = wait(operator, site, "db", "Failed")["lastError"]
    assert str(plain) in told
    assert "it has no #! line; begin a script with a line such as '#!/usr/bin/env bash'" in told
    assert site.revisions() == {}
    operator.stop()
    mend = set_mode(site.hook(site.global_hooks, "all.sh", {"beforeAll": 1}), 0o644)
    for command in ("start", "plan"):
        done = site.command(command)
        assert done.returncode == 1
        assert mend in done.stderr
        assert "Traceback" not in done.stderr
