"""``plan --record`` and ``plan --state``: a change is planned without the cluster, and comes true."""

import base64
import datetime as dt
import hashlib
import json
import os
import pathlib
import shutil
import subprocess
import sys
from typing import Any, Final

import pytest

from addon_operator.devcluster import handle
from tests.integration import operator_site
from tests.unit.docs import pages

pytestmark = pytest.mark.integration

CANARIES: Final = ("canary-of-the-secret", "canary-x-sensitive", "canary-of-a-hook", "canary-in-a-comment")
SECRET: Final = """\
apiVersion: v1
kind: Secret
metadata: {name: keys}
stringData:
  token: {{ .Values.web.token | quote }}
  password: {{ .Values.web.password | quote }}
  fixed: written-in-the-chart
data:
  random: {{ randAlphaNum 12 | b64enc }}
"""
SCHEMA: Final = """\
type: object
properties:
  password: {type: string, x-sensitive: true, pattern: "^canary"}
  color: {type: string}
  token: {type: string, pattern: "^canary"}
  fromHook: {type: string, x-sensitive: true}
"""
HOOK: Final = """
printf '[{"op":"add","path":"/web/fromHook","value":"canary-of-a-hook"}]' > "$VALUES_JSON_PATCH_PATH"
"""


def without_cluster(site: operator_site.Site) -> dict[str, str]:
    """What makes sure that no cluster is asked, and nobody logs in."""
    return {"KUBE_CONFIG": "", "KUBECONFIG": "/nowhere", "KUBE_SERVER": "", "ADDON_OPERATOR_NAMESPACE": ""}


def planned(
    site: operator_site.Site, *arguments: str, code: int, **environment: str
) -> dict[str, dict[str, Any]]:
    environment = without_cluster(site) | environment
    done = site.command("plan", "--state", "state.json", "-o", "json", *arguments, **environment)
    assert done.returncode == code, done.stdout + done.stderr
    found = json.loads(done.stdout)
    modules = {module["name"]: module for module in found["modules"]}
    purges = {purge["release"]: purge | {"action": "purge"} for purge in found["purges"]}
    return modules | purges


NAMED: Final = """\
apiVersion: v1
kind: ConfigMap
metadata: {name: "named-{{ .Values.web.token | sha256sum | trunc 10 }}"}
"""


def record(site: operator_site.Site) -> str:
    done = site.command("plan", "--record", "state.json")
    assert done.returncode == 0, done.stdout + done.stderr
    text = (site.root / "state.json").read_text()
    for canary in CANARIES:
        encoded = base64.b64encode(canary.encode()).decode()
        digest = hashlib.sha256(canary.encode()).hexdigest()
        for form in (canary, encoded, digest[:10]):
            assert form not in text + done.stdout + done.stderr, form
    assert (site.root / "state.json").stat().st_mode & 0o777 == 0o600
    return text


def site_with_secrets(site: operator_site.Site) -> pathlib.Path:
    site.values("webEnabled: true\ndbEnabled: true\nlookEnabled: true")
    web = site.module("010-web", {
        "color": "{{ .Values.web.color }}", "sum": "{{ .Values.web.token | sha256sum }}",
        "hook": "{{ .Values.web.fromHook | default `none` | sha256sum }}",
    }, values="web: {color: green}")  # fmt: skip
    (web / "templates" / "secret.yaml").write_text(SECRET)
    (web / "templates" / "named.yaml").write_text(NAMED)
    (web / "openapi").mkdir()
    (web / "openapi" / "config-values.yaml").write_text(SCHEMA)
    site.hook(web, "give.sh", {"beforeHelm": 1, "kubernetes": [{"kind": "Node"}]}, HOOK)
    site.module("020-db", {"size": "small"})
    site.module(
        "030-look", {"found": '{{ (lookup "v1" "ConfigMap" .Release.Namespace "db") | empty | quote }}'}
    )
    site.module("040-gone", {"a": "b"}, values="goneEnabled: true")
    site.config(web="password: canary-x-sensitive  # was canary-in-a-comment\ncolor: blue")
    site.secret(web="token: canary-of-the-secret")
    return web


GH: Final = """\
printf '%s\\n' "$@" > "$GH_CALLED"
test -n "$GH_TOKEN"
"""


def commented_by_the_workflow(site: operator_site.Site) -> None:
    """What the page has for GitHub does what it says, as it is typed there; pip and gh are not at hand."""
    repository, programs = site.root / "repository", site.root / "programs"
    site.script(programs / "addon-operator", f'exec "{sys.executable}" -m addon_operator "$@"')
    site.script(programs / "gh", GH)
    site.script(programs / "pip", 'test "$1" = install && [[ "$2" == git+https://*/addon-operator@* ]]')
    environment = site.environment(without_cluster(site)) | {
        "PATH": f"{programs}:{site.root}:{os.environ['PATH']}",
        "GITHUB_STEP_SUMMARY": str(site.root / "summary.md"),
        "GH_CALLED": str(site.root / "gh.txt"),
        "BASE": committed(repository, site.root / "base", site.root / "state.json"),
        "NUMBER": "7",
        "GH_TOKEN": "token",
    }
    for name in ("MODULES_DIR", "GLOBAL_HOOKS_DIR"):
        del environment[name]
    committed(repository, site.root, site.root / "state.json")
    steps = pages.plan_workflow()["jobs"]["plan"]["steps"]
    for step in steps:
        assert step.get("env", {}).keys() <= environment.keys()
        if "run" in step:
            # As a runner starts it.
            done = subprocess.run(
                ["bash", "-e", "-c", step["run"]], cwd=repository, env=environment, check=False,
                capture_output=True, text=True,
            )  # fmt: skip
            assert done.returncode == 0, done.stdout + done.stderr
    plan = (repository / "plan.md").read_text()
    assert "| `gone` | 🔴 purge |" in plan
    assert "<details><summary><b>web</b>: 1 object</summary>" in plan
    assert (site.root / "summary.md").read_text() == plan
    assert (site.root / "gh.txt").read_text().split() == [
        "pr", "comment", "7", "--edit-last", "--create-if-none", "--body-file", "plan.md"
    ]  # fmt: skip
    assert not any(canary in plan for canary in CANARIES)


def committed(repository: pathlib.Path, files: pathlib.Path, state: pathlib.Path) -> str:
    """Commit the modules in a directory, and the state file; the result is the commit."""
    for part in ("modules", "global-hooks", "plan"):
        shutil.rmtree(repository / part, ignore_errors=True)
    shutil.copytree(files / "modules", repository / "modules")
    shutil.copytree(files / "global-hooks", repository / "global-hooks")
    (repository / "plan").mkdir()
    shutil.copy(state, repository / "plan" / "state.json")
    git = ["git", "-C", str(repository), "-c", "user.name=x", "-c", "user.email=x@example.com"]
    for arguments in (["init", "--quiet"], ["add", "--all"], ["commit", "--quiet", "--message=x"]):
        subprocess.run([*git, *arguments], check=True)
    return subprocess.run(
        [*git, "rev-parse", "HEAD"], check=True, capture_output=True, text=True
    ).stdout.strip()


OLD: Final = """\
apiVersion: v1
kind: ConfigMap
metadata: {name: derived-NAME}
data:
  url: "http://u:{{ .Values.web.token }}@db"
  pin: "{{ .Values.web.pin }}"
  sum: {{ .Values.web.pin | toString | sha256sum }}
  key-of-{{ .Values.web.pin }}: x
"""


ANNOTATIONS: Final = ("suspended-since", "suspended-until", "suspended-by", "confirm-removal", "run", "now")


@pytest.mark.slow
def test_a_recording_has_nothing_of_earlier_values_whatever_became_of_the_release(
    site: operator_site.Site, devcluster: handle.DevCluster
) -> None:
    """Rotated, suspended, failed, waiting for a window: each has a revision from other values than now."""
    names = ("web", "stopped", "fails", "waits")
    site.values("\n".join(f"{name}Enabled: true" for name in names))
    for number, name in enumerate(names):
        module = site.module(f"0{number}0-{name}", {"color": "green"})
        (module / "templates" / "old.yaml").write_text(
            OLD.replace(".web.", f".{name}.").replace("NAME", name)
        )
        (module / "openapi").mkdir()
        (module / "openapi" / "config-values.yaml").write_text(
            "type: object\nproperties:\n  token: {type: string, x-sensitive: true}\n"
            "  pin: {type: integer, x-sensitive: true}\n  fail: {type: string}\n"
        )
    fails = site.modules / "020-fails" / "templates" / "fail.yaml"
    fails.write_text('{{ with .Values.fails.fail }}{{ fail (printf "canary-of-the-chart %s" .) }}{{ end }}\n')
    site.config(**dict.fromkeys(names, "token: canary-one\npin: 471101"))
    operator = site.start(CONVERGE_ON_FAILURE="continue", MODULE_OBJECTS="true")
    operator.wait_ready()
    assert site.command("module", "suspend", "stopped", "--reason", "canary-reason").returncode == 0
    now = dict.fromkeys(("web", "stopped"), "token: canary-two\npin: 471102")
    site.config(**now, fails="token: canary-two\npin: 471102\nfail: boom")
    operator.wait_until(lambda: "canary-two" in str(site.data("derived-web")), "web has its new password")
    operator.wait_until(lambda: "Failed" in site.command("module", "list").stdout, "one cannot be rendered")
    operator.stop()
    opens = dt.datetime.now(dt.UTC) + dt.timedelta(hours=12)
    closed = f"windows: [{{schedule: '0 0 {opens.hour} * * *', duration: 10m}}]\n"
    (site.modules / "030-waits" / "module.yaml").write_text(closed)
    site.config(waits="token: canary-two\npin: 471102", other="a: canary-of-nobody")
    site.secret(fails="token: canary-of-the-secret\n", other="canary: canary-of-nobody")
    free = [f"addon-operator.io/{each}=canary-{each}" for each in ANNOTATIONS]
    site.kubectl("annotate", "--overwrite", "modules.addon-operator.io", "stopped", *free)
    text = record(site)
    pins = ("471101", "471102")
    for canary in ("canary-", *pins, *(hashlib.sha256(pin.encode()).hexdigest() for pin in pins)):
        assert canary not in text, canary
    labels = [each["labels"] for each in json.loads(text)["releases"]]
    secrets = devcluster.run_kubectl("get", "secrets", "-n", site.namespace, "-l", "owner=helm", "-o", "json")
    for item in json.loads(secrets.stdout)["items"]:
        for label, value in item["metadata"]["labels"].items():
            if ("checksum" in label and "chart" not in label) or "digest" in label:
                assert value not in str(labels), label
    found = {name: each["action"] for name, each in planned(site, code=1).items()}
    live = json.loads(site.command("plan", "-o", "json").stdout)["modules"]
    assert found == {module["name"]: module["action"] for module in live}
    assert (found["web"], found["fails"], found["waits"]) == ("nothing", "unknown", "wait")


def test_a_recorded_state_tells_what_a_change_does_without_a_cluster_or_a_secret(
    site: operator_site.Site,
) -> None:
    web = site_with_secrets(site)
    operator = site.start()
    operator.wait_ready().stop()
    before = site.revisions()
    assert set(before) == {"web", "db", "look", "gone"}
    record(site)
    nothing = planned(site, code=0)
    assert {module["action"] for module in nothing.values()} == {"nothing"}
    assert "hooks/give.sh" in " ".join(nothing["web"]["unknown"])
    assert "Node" in " ".join(nothing["web"]["unknown"])
    assert "lookup" in " ".join(nothing["look"]["unknown"])

    shutil.copytree(site.modules, site.root / "base" / "modules")
    shutil.copytree(site.global_hooks, site.root / "base" / "global-hooks")
    secret = web / "templates" / "secret.yaml"
    secret.write_text(secret.read_text().replace("written-in", "changed-in"))
    (site.modules / "040-gone").rename(site.root / "gone")
    site.values("webEnabled: true\ndbEnabled: false\nlookEnabled: true\nnewEnabled: true")
    site.module("050-new", {"a": "b"})
    changed = planned(site, "--base", "base", code=3)
    assert {name: each["action"] for name, each in changed.items()} == {
        "web": "upgrade", "db": "delete", "look": "nothing", "new": "install", "gone": "purge"
    }  # fmt: skip
    assert not any(each["pending"] for name, each in changed.items() if name != "look")
    assert "written-in" not in str(changed)
    commented_by_the_workflow(site)
    planned_to_change = {name for name, each in changed.items() if each["action"] != "nothing"}
    operator = site.start().wait_ready()

    def changed_now() -> set[str]:
        after = site.deployed()
        return {name for name in before | after if before.get(name) != after.get(name)}

    operator.wait_until(lambda: changed_now() == planned_to_change, "what was planned, with the purge")
    operator.stop()
    assert changed_now() == planned_to_change
    comment = site.command("plan", "--state", "state.json", "-o", "markdown", **without_cluster(site))
    assert comment.returncode == 3
    assert "| `gone` | 🔴 purge |" in comment.stdout
    assert "<details><summary><b>web</b>: 1 object</summary>" in comment.stdout
    assert not any(canary in comment.stdout + comment.stderr for canary in CANARIES)
