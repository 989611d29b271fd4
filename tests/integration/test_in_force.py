"""What of files and values is in force, what is not yet, and what that waits for."""

import os
import pathlib
import re
import textwrap
from typing import Any, Final

import orjson
import pytest

from tests.integration import definitions, module_objects, operator_site

pytestmark = pytest.mark.integration


def module(site: operator_site.Site, directory: str) -> pathlib.Path:
    """A module that is on and shows its color."""
    name = directory.lstrip("0123456789-")
    template = {"color": f"{{{{ .Values.{name}.color }}}}"}
    return site.module(directory, template, values=f"{name}: {{color: green}}\n{name}Enabled: true\n")


def pods_made(site: operator_site.Site) -> list[str]:
    """The names of the pods of the hook, of those that are gone, too."""
    events = site.objects("events", fieldSelector="reason=SuccessfulCreate,involvedObject.kind=Job")
    return [event["message"] for event in events]


def hook_pods(site: operator_site.Site) -> list[dict[str, Any]]:
    """The pods of the hook that is there; nothing while one of them is on its way out."""
    pods = site.objects("pods", labelSelector="job-name=migrate")
    return pods if len(pods) == 1 and "deletionTimestamp" not in pods[0]["metadata"] else []


def waiting_row(site: operator_site.Site, name: str) -> dict[str, Any] | None:
    """The module as it is listed, once an edit of it waits."""
    row = site.module_rows()[name]
    return row if row["editWaits"] else None


def test_a_hook_that_hangs_holds_its_own_module_alone_until_somebody_ends_it(
    site: operator_site.Site, tmp_path: pathlib.Path
) -> None:
    gate, wait = tmp_path / "gate", tmp_path / "wait"
    shown = module_objects.Modules(site, site.cluster)
    site.first_retry = 0.2
    every_second = {"schedule": [{"name": "often", "crontab": "* * * * * *", "allowFailure": True}]}
    site.hook(module(site, "010-web"), "tick.sh", every_second, f"[[ -e {gate} ]] || sleep 1000")
    site.hook(module(site, "010-api"), "slow.sh", {"beforeHelm": 1}, f"[[ ! -e {wait} ]] || sleep 1000")
    operator = site.start().wait_ready()
    operator.wait_until(lambda: "tick.sh often" in site.labels(), "the hook hangs")

    site.config(web="color: red", api="color: red")
    operator.wait_until(lambda: site.data("api") == {"color": "red"}, "the other module has its edit")
    assert site.data("web") == {"color": "green"}
    row = operator.wait_until(
        lambda: waiting_row(site, "web"), "the edit of its own module waits, and says so"
    )
    assert re.fullmatch(
        r"an edit waits since \S+: its hook tick.sh has been running since \S+; "
        r"'addon-operator hooks end \d+' ends it",
        row["editWaits"],
    )
    assert [each["hook"] for each in row["runningHooks"]] == ["tick.sh"]
    operator.wait_until(
        lambda: shown.condition("web", "Ready")["reason"] == "EditWaits", "its object says so"
    )
    ready = shown.condition("web", "Ready")
    assert ready["status"] == "True"
    assert row["editWaits"] in ready["message"]
    assert f"module web is not as its values say: {row['editWaits']}" in operator.get("/readyz?verbose").text
    assert operator.metrics().total("module_edit_waiting_seconds", module="web") > 0
    assert "Running hooks:" in site.command("module", "describe", "web").stdout
    (running,) = orjson.loads(site.command("hooks", "running", "-o", "json").stdout)
    assert (running["module"], running["hook"]) == ("web", "tick.sh")
    gate.touch()
    ended = site.command("hooks", "end", str(running["id"]))
    assert ended.stdout == "hook tick.sh is being ended: that run has failed, and is tried again\n"
    operator.wait_until(lambda: site.data("web") == {"color": "red"}, "its own module has it, too")
    operator.wait_until(lambda: not site.module_rows()["web"]["editWaits"], "it is applied")
    assert "module_edit_waiting_seconds" not in operator.metrics().names()

    # A hook of a run that hangs is said, too, without an edit that waits.
    wait.touch()
    assert site.command("module", "run", "api").returncode == 0
    said = "its hook slow.sh has been running since "
    operator.wait_until(lambda: said in shown.condition("api", "Ready")["message"], "the run says so")
    assert said in site.command("module", "list", "-o", "wide").stdout


@pytest.mark.slow
def test_a_wrong_section_holds_its_own_module_alone(site: operator_site.Site) -> None:
    module(site, "010-web")
    module(site, "020-api")
    shown = module_objects.Modules(site, site.cluster)
    operator = site.start().wait_ready()
    site.config(web="[", api="color: red")
    operator.wait_until(lambda: site.data("api") == {"color": "red"}, "the right section is applied")
    operator.wait_until(
        lambda: shown.condition("web", "Ready")["reason"] == "WrongValues", "the other says so"
    )
    assert shown.condition("api", "ConfigValid")["status"] == "True"
    assert operator.metrics().total("module_edit_waiting_seconds", module="web") > 0
    site.config(**{"global": "[", "api": "color: blue"})
    operator.wait_until(
        lambda: shown.condition("api", "Ready")["reason"] == "WrongValues", "global holds all"
    )
    assert site.data("api") == {"color": "red"}
    site.config(**{"global": None, "webEnabled": "false"})
    operator.wait_until(lambda: site.data("web") is None, "switching off counts beside a wrong section")
    operator.wait_until(lambda: site.data("api") == {"color": "blue"}, "what global held is applied")


def test_a_section_that_is_wrong_at_a_start_holds_its_own_module_alone(site: operator_site.Site) -> None:
    for name in ("010-web", "010-old"):
        module(site, name)
    shown = module_objects.Modules(site, site.cluster)
    site.start().wait_ready().stop()
    module(site, "010-new")
    module(site, "020-api")
    site.config(web="[", old="[", oldEnabled="false", new="[", api="color: red")
    operator = site.start()
    operator.wait_until(lambda: site.data("api") == {"color": "red"}, "a module without a mistake runs")
    operator.wait_until(lambda: site.data("old") is None, "switching off counts beside a wrong section")
    for name in ("web", "new"):
        operator.wait_until(
            lambda: shown.condition(name, "Ready")["reason"] == "WrongValues",  # noqa: B023
            "the others say so",
        )
    said = shown.condition("web", "Ready")
    assert said["status"] == "False"
    assert "key 'web'" in said["message"]
    for text in (operator.get("/").text.replace("&#x27;", "'"), site.command("module", "list").stdout):
        assert "key 'web', line " in text
    assert (site.data("web"), site.data("new")) == ({"color": "green"}, None), "each is as it was"
    assert operator.metrics().total("config_values_errors_total") == 1
    site.kubectl("delete", "configmap", "web")
    operator.wait_until(lambda: site.data("web") == {"color": "green"}, "what is absent is restored")
    operator.wait_ready()
    site.config(web="color: blue", new="")
    for name, color in (("web", "blue"), ("new", "green")):
        operator.wait_until(lambda: site.data(name) == {"color": color}, "mended, it runs")  # noqa: B023
    operator.wait_ready()


def test_a_module_that_fails_at_a_start_holds_up_first_installs_of_higher_orders_alone(
    site: operator_site.Site, tmp_path: pathlib.Path
) -> None:
    gate = tmp_path / "gate"
    gate.touch()
    site.hook(module(site, "010-db"), "look.sh", {"beforeHelm": 1}, f"[[ -e {gate} ]]")
    module(site, "020-web")
    site.start().wait_ready().stop()

    gate.unlink()
    module(site, "020-new")
    site.chart(site.modules / "020-web", {"color": "blue"})
    operator = site.start()
    operator.wait_until(lambda: site.data("web") == {"color": "blue"}, "what has a release is upgraded")
    site.config(web="size: large")
    operator.wait_until(lambda: site.module_rows()["db"]["state"] == "Failed", "the first one fails")
    assert site.data("new") is None
    ran = site.command("module", "run", "new")
    assert ran.returncode == 0, ran.stderr
    operator.wait_until(lambda: site.data("new") == {"color": "green"}, "somebody wanted it now")
    gate.touch()
    operator.wait_ready()


def test_an_enabled_script_that_fails_holds_its_own_module_alone(
    site: operator_site.Site, tmp_path: pathlib.Path
) -> None:
    answer = tmp_path / "answer"
    answer.write_text("true")
    site.first_retry = 0.2
    script = f"cat {answer} > $MODULE_ENABLED_RESULT || {{ echo nobody knows >&2; exit 3; }}"
    shown = module_objects.Modules(site, site.cluster)
    site.script(module(site, "010-web") / "enabled", script)
    module(site, "020-api")
    operator = site.start().wait_ready()
    answer.unlink()
    operator.stop()

    site.script(module(site, "010-new") / "enabled", script)
    operator = site.start()
    operator.wait_until(
        lambda: site.module_rows().get("web", {}).get("state") == "Failed", "its script failed"
    )
    site.config(web="color: red", api="color: red")
    operator.wait_until(lambda: site.data("api") == {"color": "red"}, "another module has its edit")
    rows = site.module_rows()
    assert {name: rows[name]["enabled"] for name in rows} == {"web": True, "new": False, "api": True}
    assert rows["new"]["state"] == "Failed", "it stays off, as it has no release"
    assert all("nobody knows" in rows[name]["lastError"] for name in ("web", "new"))
    assert site.data("web") == {"color": "green"}
    operator.wait_until(lambda: shown.condition("new", "Enabled")["status"] == "False", "it says that")
    assert shown.condition("web", "Enabled")["status"] == "True"
    assert operator.metrics().total("module_enabled", module="new") == 0

    os.mkfifo(answer)
    operator.wait_until(
        lambda: "running since" in (site.module_rows()["web"]["lastError"] or ""), "now it hangs, and says so"
    )
    site.config(web="color: red", api="color: blue")
    operator.wait_until(lambda: site.data("api") == {"color": "blue"}, "others have their edits")
    running = orjson.loads(site.command("hooks", "running", "-o", "json").stdout)
    assert {(each["module"], each["hook"]) for each in running} == {("web", "enabled"), ("new", "enabled")}
    assert (site.data("web"), site.data("new")) == ({"color": "green"}, None)

    answer.unlink()
    answer.write_text("true")
    for each in running:
        site.command("hooks", "end", str(each["id"]))
    operator.wait_until(lambda: site.data("web") == {"color": "red"}, "the script is asked again")
    operator.wait_until(lambda: site.data("new") == {"color": "green"}, "that of the other one, too")


def test_a_restart_makes_no_module_red_whose_chart_refuses_upgrades(
    site: operator_site.Site, tmp_path: pathlib.Path
) -> None:
    web = module(site, "010-web")
    seen = """\
        {{- if .Release.IsUpgrade }}{{ fail "PASSWORDS ERROR: give your password" }}{{ end }}
        apiVersion: v1
        kind: ConfigMap
        metadata: {name: seen}
        imutable: true
        data: {sees: "{{ .Capabilities.APIVersions.Has "seen.example.com/v1" }}", c: "{{ .Values.web.colr }}"}
        """
    (web / "templates" / "seen.yaml").write_text(textwrap.dedent(seen))
    shown = module_objects.Modules(site, site.cluster)
    operator = site.start().wait_ready()
    unknown = 'unknown field "imutable"'
    operator.wait_until(lambda: unknown in shown.condition("web", "Warnings")["message"], "it is shown")
    ready = shown.condition("web", "Ready")
    assert (ready["status"], ready["reason"], unknown in ready["message"]) == ("True", "Warned", True)
    assert unknown in site.command("module", "list", "-o", "wide").stdout
    operator.wait_logged("ConfigMap seen", "the API server leaves /imutable out, as it knows no such field")
    operator.stop()
    definition = tmp_path / "seen.yaml"
    definition.write_text(definitions.things("seen.example.com"))
    site.kubectl("apply", "-f", str(definition))
    operator = site.start().wait_ready()
    operator.wait_until(
        lambda: "the next revision will fail" in shown.condition("web", "Warnings")["message"], "it says so"
    )
    warned = shown.condition("web", "Warnings")
    assert warned["status"] == "True"
    assert "PASSWORDS ERROR" in warned["message"]
    assert unknown in warned["message"], "as before the restart"
    slip = "templates/seen.yaml:6 reads .Values.web.colr, which nothing sets; did you mean 'color'?"
    assert slip in warned["message"]
    assert shown.condition("web", "Ready")["status"] == "True"
    renders = site.helm_calls().count("template")
    ran = site.command("module", "run", "web", "--wait")
    assert ran.returncode == 0, ran.stderr
    assert site.helm_calls().count("template") == renders, "not again as long as nothing changes"
    planned = site.command("plan")
    assert planned.returncode == 0, planned.stderr
    assert "the next revision will fail" in planned.stdout
    site.config(web="color: red")
    operator.wait_until(lambda: site.module_rows()["web"]["state"] == "Failed", "an edit is another thing")
    site.kubectl("delete", "-f", str(definition))


def with_job(site: operator_site.Site) -> pathlib.Path:
    """A module whose chart has a hook of Helm where its values name an image; no node takes its pod."""
    web = module(site, "010-web")
    job = """\
        {{- if .Values.web.image }}
        apiVersion: batch/v1
        kind: Job
        metadata:
          name: migrate
          annotations: {helm.sh/hook: pre-upgrade}
        spec:
          template:
            spec:
              restartPolicy: Never
              nodeSelector: {no-node: has-this}
              containers: [{name: migrate, image: {{ .Values.web.image | quote }}}]
        {{- end }}
        """
    (web / "templates" / "job.yaml").write_text(textwrap.dedent(job))
    (web / "values.yaml").write_text('web: {color: green, image: ""}\nwebEnabled: true\n')
    return web


def tell(site: operator_site.Site, pod: str, status: dict[str, object]) -> None:
    """The status of a pod, as a kubelet tells it."""
    patch = orjson.dumps({"status": status}).decode()
    site.kubectl("patch", "pod", pod, "--subresource=status", "-p", patch)


RUNNING: Final[dict[str, object]] = {"containerStatuses": [{
    "name": "migrate", "image": "x", "imageID": "x", "ready": True, "restartCount": 0,
    "state": {"running": {"startedAt": "2026-01-01T00:00:00Z"}},
}]}  # fmt: skip


def test_a_newer_wish_ends_a_call_of_helm_whose_own_hook_gets_nowhere(site: operator_site.Site) -> None:
    with_job(site)
    operator = site.start().wait_ready()
    site.config(web="{color: red, image: mistyped}")
    operator.wait_until(
        lambda: site.objects("pods", labelSelector="job-name=migrate"), "Helm waits for its hook"
    )
    site.config(web="{color: blue, image: mistyped}")
    operator.wait_until(lambda: len(pods_made(site)) == 2, "the call is ended, and another one is made")
    operator.wait_logged("the call of Helm is ended for a newer wish: Job migrate: ", "pod migrate-")

    (pod,) = operator.wait_until(lambda: hook_pods(site), "the hook of the last call")
    name = pod["metadata"]["name"]
    tell(site, name, RUNNING)
    site.config(web='{color: white, image: ""}')
    waits = f"Helm waits for its hook Job migrate: pod {name} works"
    operator.wait_until(
        lambda: waits in (waiting_row(site, "web") or {"editWaits": ""})["editWaits"],
        "a hook that works is let end",
    )
    ran = site.command("module", "run", "web", "--now", "--wait")
    assert ran.returncode == 0, ran.stderr
    operator.wait_until(lambda: site.data("web") == {"color": "white"}, "not with --now")
    operator.wait_until(lambda: site.module_rows()["web"]["state"] == "Ready", "and the record is right")
    assert site.deployed() == {"web": max(site.revisions().values())}


@pytest.mark.slow
def test_a_changed_chart_ends_a_call_of_helm_and_an_edit_is_applied_when_a_hook_that_works_has_ended(
    site: operator_site.Site,
) -> None:
    web = with_job(site)
    operator = site.start(WATCH_MODULES="yes").wait_ready()
    site.config(web="{color: blue, image: mistyped}")
    operator.wait_until(lambda: len(pods_made(site)) == 1, "Helm waits for its hook")
    site.chart(web, {"color": "{{ .Values.web.color }}", "is-new": "so"})
    operator.wait_until(lambda: len(pods_made(site)) == 2, "a changed chart ends it")
    (pod,) = operator.wait_until(lambda: hook_pods(site), "its pod")
    tell(site, pod["metadata"]["name"], RUNNING)
    site.config(web='{color: white, image: ""}')
    operator.wait_until(lambda: waiting_row(site, "web"), "it works, and the edit waits for it")
    tell(site, pod["metadata"]["name"], {"phase": "Succeeded"})
    wanted = {"color": "white", "is-new": "so"}
    operator.wait_until(lambda: site.data("web") == wanted, "then the edit is applied")
    operator.wait_until(lambda: site.module_rows()["web"]["state"] == "Ready", "and the record is right")
    assert site.deployed() == {"web": max(site.revisions().values())}


def test_what_others_make_of_records_and_module_objects_is_seen_and_put_right(
    site: operator_site.Site,
) -> None:
    for name in ("010-told", "010-kept"):
        module(site, name)
    (site.modules / "010-kept" / "module.yaml").write_text("drift: {mode: correct}\n")
    shown = module_objects.Modules(site, site.cluster)
    operator = site.start().wait_ready().wait_idle()

    def revision(name: str) -> int:
        found = shown.get(name) or {}
        return int(found.get("status", {}).get("release", {}).get("revision", 0))

    operator.wait_until(lambda: (revision("told"), revision("kept")) == (1, 1), "both are shown")
    for name in ("told", "kept"):
        chart = str(site.modules / f"010-{name}")
        values = ("--set", f"{name}.color=brown")
        site.cluster.run_helm(f"--namespace={site.namespace}", "upgrade", name, chart, *values)
    operator.wait_until(lambda: site.data("kept") == {"color": "green"}, "in the mode correct at once")
    operator.wait_until(lambda: revision("kept") == 3, "with a revision, which is shown")
    operator.wait_until(lambda: revision("told") == 2, "else the revision of others is shown")
    operator.wait_until(lambda: shown.condition("told", "Ready")["reason"] == "ChangedByOthers", "and told")
    assert "module suspend told" in shown.condition("told", "Ready")["message"]
    described = site.command("module", "describe", "told").stdout
    assert "Release:     revision 2\n" in described
    assert "Changed by others:\n  revision 2 of release told was made or changed by others" in described
    assert site.data("told") == {"color": "brown"}
    assert site.command("module", "run", "told").returncode == 0
    operator.wait_until(lambda: site.data("told") == {"color": "green"}, "a run puts it right")
    operator.wait_until(lambda: shown.condition("told", "Ready")["reason"] == "RunSucceeded", "and says so")

    before = shown.get("kept")
    assert before is not None
    site.kubectl("delete", "modules.addon-operator.io", "kept")
    after = operator.wait_until(lambda: shown.get("kept"), "an object that somebody deleted is back")
    assert after["metadata"]["uid"] != before["metadata"]["uid"]
    operator.wait_until(lambda: shown.condition("kept", "Ready")["status"] == "True", "with its status")
