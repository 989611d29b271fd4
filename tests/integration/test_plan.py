"""``addon-operator plan`` against a real control plane: it tells what a start does, and changes nothing."""

import json
from typing import Any

import pytest

from tests.integration import operator_site

pytestmark = pytest.mark.integration


def documents(site: operator_site.Site, *arguments: str, code: int, **environment: str) -> dict[str, Any]:
    done = site.command("plan", "-o", "json", *arguments, **environment)
    assert done.returncode == code, done.stdout + done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def actions(found: dict[str, Any]) -> dict[str, str]:
    return {module["name"]: module["action"] for module in found["modules"]}


def test_a_plan_tells_what_the_operator_then_does_and_is_empty_afterwards(site: operator_site.Site) -> None:
    site.values("webEnabled: true\ndbEnabled: true\noldEnabled: true\nlabEnabled: true")
    site.module("010-db", {"size": "small"})
    web = site.module("020-web", {"color": "{{ .Values.web.color }}"}, values="web: {color: green}")
    site.module("030-old", {"a": "b"})
    site.module("040-lab", {"a": "b"}, enabled='echo false > "$MODULE_ENABLED_RESULT"\n'
                'echo "no lab here" > "$MODULE_ENABLED_REASON"')  # fmt: skip
    gone = site.module("050-gone", {"a": "b"}, values="goneEnabled: true")

    first = documents(site, code=2)
    assert actions(first) == {
        "db": "install", "web": "install", "old": "install", "lab": "nothing", "gone": "install"
    }  # fmt: skip
    lab = next(module for module in first["modules"] if module["name"] == "lab")
    assert (lab["enabled"], lab["enabledReason"]) == (False, "no lab here")
    assert site.revisions() == {}, "a plan changes nothing"

    site.start().wait_ready().stop()
    assert site.revisions() == {"db": 1, "web": 1, "old": 1, "gone": 1}
    before = site.helm_calls()
    nothing = documents(site, code=0)
    assert set(actions(nothing).values()) == {"nothing"}
    assert nothing["changes"] is False
    assert site.helm_calls() == before, "what did not change needs no Helm"

    site.config(web="color: red", oldEnabled="false")
    gone.rename(site.root / "elsewhere")
    second = documents(site, code=2)
    assert actions(second) == {"old": "delete", "db": "nothing", "web": "upgrade", "lab": "nothing"}
    assert second["modules"][0]["name"] == "old", "deletes come first"
    assert [purge["release"] for purge in second["purges"]] == ["gone"]
    change = next(module for module in second["modules"] if module["name"] == "web")["changes"][0]
    assert (change["change"], change["kind"], change["name"]) == ("changed", "ConfigMap", "web")
    assert "-  color: green\n+  color: red\n" in change["diff"]

    site.kubectl("delete", "configmap", "db")
    third = documents(site, "--module", "db", code=2)
    assert actions(third) == {"db": "restore"}
    assert third["modules"][0]["reason"] == "absent in the cluster: ConfigMap db"
    assert third["purges"] == []
    assert site.revisions() == {"db": 1, "web": 1, "old": 1, "gone": 1}

    (web / "templates" / "broken.yaml").write_text('{{ fail "no way" }}')
    broken = documents(site, code=1)
    assert actions(broken)["web"] == "unknown"
    assert "no way" in next(module for module in broken["modules"] if module["name"] == "web")["reason"]
    assert actions(broken)["db"] == "restore", "the others are told all the same"


def test_the_text_is_a_table_and_diffs_without_secrets(site: operator_site.Site) -> None:
    site.values("webEnabled: true\nweb: {password: hunter2}")
    web = site.module("010-web", {"color": "green"})
    (web / "templates" / "secret.yaml").write_text(
        "apiVersion: v1\nkind: Secret\nmetadata: {name: keys}\n"
        "stringData: {password: {{ .Values.web.password | quote }}}\n"
    )
    site.hook(web, "look.sh", {"beforeHelm": 1})
    done = site.command("plan")
    assert done.returncode == 2
    lines = done.stdout.splitlines()
    assert lines[0].split() == ["MODULE", "ORDER", "STATE", "WHY", "ACTION", "BECAUSE"]
    assert any(line.startswith("web ") and "install" in line for line in lines)
    assert "+  color: green" in lines
    assert "+  password: '***'" in lines
    assert "hunter2" not in done.stdout + done.stderr
    assert lines[-1] == "Releases: 1 to install."
    assert "hooks were not run" in done.stderr
    assert site.runs() == [], "hooks are not run"
    assert list((site.root / "tmp").iterdir()) == [], "nothing is left behind"


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("--module", "wbe"), "there is no module 'wbe'; did you mean 'web'?"),
        (("--modules-dir", "/nowhere"), "modules directory /nowhere does not exist"),
        (("--namespace", "mistyped"), "namespace mistyped does not exist"),
    ],
    ids=["module", "modules directory", "namespace"],
)
def test_a_mistake_is_one_sentence_and_exit_code_1(
    site: operator_site.Site, arguments: tuple[str, ...], sentence: str
) -> None:
    site.module("010-web", {"color": "green"})
    done = site.command("plan", *arguments)
    assert done.returncode == 1
    assert sentence in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.slow
def test_a_failing_enabled_script_and_a_wrong_config_map_are_reported(site: operator_site.Site) -> None:
    site.values("webEnabled: true")
    site.module("010-web", {"color": "green"}, enabled="echo oh no >&2; exit 3")
    done = site.command("plan")
    assert done.returncode == 1
    assert "module web: its enabled script failed with exit code 3: oh no" in done.stderr
    site.config(web="color: [red")
    done = site.command("plan")
    assert done.returncode == 1
    assert "web" in done.stderr
    assert "key 'web', line 2" in done.stderr


def test_a_plan_knows_versions_that_are_not_served_and_hooks_that_cannot_run(
    site: operator_site.Site,
) -> None:
    web = site.module("010-web", {"a": "b"}, values="webEnabled: true")
    (web / "templates" / "old.yaml").write_text(
        "apiVersion: extensions/v1beta1\nkind: DaemonSet\nmetadata: {name: old}\n"
    )
    (web / "hooks").mkdir()
    (web / "hooks" / "main.go").write_text("package hooks\n")
    found = documents(site, code=1)
    assert actions(found) == {"web": "unknown"}
    reason = found["modules"][0]["reason"]
    assert reason.startswith("Helm would fail: the API server has no kind 'DaemonSet' in extensions/v1beta1")
    assert reason.endswith(": it serves it in apps/v1")
    assert any("main.go is a Go hook" in note for note in found["notes"])
