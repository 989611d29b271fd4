"""``addon-operator plan`` against a real control plane: it tells what a start does, and changes nothing."""

import json
import pathlib
import shutil
from typing import Any, Final

import pytest

from tests.integration import charts, helm_site, kubelet, operator_site
from tests.support import pod_server

pytestmark = pytest.mark.integration

ROOT: Final = pathlib.Path(__file__).parents[2]
CLAIM: Final = """\
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: NAME, annotations: {HOOK}}
spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}
"""


def documents(site: operator_site.Site, *arguments: str, code: int, **environment: str) -> dict[str, Any]:
    done = site.command("plan", "-o", "json", *arguments, **environment)
    assert done.returncode == code, done.stdout + done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def actions(found: dict[str, Any]) -> dict[str, str]:
    return {module["name"]: module["action"] for module in found["modules"]}


def give_data(going: pathlib.Path, staying: pathlib.Path, own: pathlib.Path) -> None:
    """Have modules hold data: one that goes with it, one that leaves it, and one that deletes it itself."""
    (going / "module.yaml").write_text("removal: {data: delete}")
    for module, hook in ((going, ""), (staying, ""), (own, "helm.sh/hook: pre-upgrade")):
        claim = CLAIM.replace("NAME", f"{module.name[4:]}-data").replace("HOOK", hook)
        (module / "templates" / "claim.yaml").write_text(claim)


def notes_of_data(site: operator_site.Site) -> set[str]:
    kept = f"PersistentVolumeClaim {site.namespace}/gone-data of release gone"
    return {
        "the removal of module old deletes 2 objects (1 ConfigMap, 1 PersistentVolumeClaim)",
        "PersistentVolumeClaim old-data of module old goes with its data, as removal.data says",
        "the removal of release gone deletes 1 object (1 ConfigMap)",
        (
            f"{kept} stays: it holds data; 'kubectl delete pvc gone-data --namespace {site.namespace}' "
            "removes it"
        ),
        (
            "PersistentVolumeClaim web-data of module web is one of Helm's hooks: Helm deletes it, with what "
            "is in it, as its helm.sh/hook-delete-policy says, and without one before it makes it again"
        ),
    }


def test_a_plan_tells_what_the_operator_then_does_and_is_empty_afterwards(site: operator_site.Site) -> None:
    site.values("webEnabled: true\ndbEnabled: true\noldEnabled: true\nlabEnabled: true")
    site.module("010-db", {"size": "small"})
    web = site.module("020-web", {"color": "{{ .Values.web.color }}"}, values="web: {color: green}")
    old = site.module("030-old", {"a": "b"})
    site.module("040-lab", {"a": "b"}, enabled='echo false > "$MODULE_ENABLED_RESULT"\n'
                'echo "no lab here" > "$MODULE_ENABLED_REASON"')  # fmt: skip
    gone = site.module("050-gone", {"a": "b"}, values="goneEnabled: true")
    give_data(old, gone, web)

    first = documents(site, code=3)
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
    second = documents(site, code=3)
    assert actions(second) == {"old": "delete", "db": "nothing", "web": "upgrade", "lab": "nothing"}
    assert (second["modules"][0]["name"], *(purge["release"] for purge in second["purges"])) == (
        "old",
        "gone",
    )
    assert set(second["losses"]) >= notes_of_data(site)
    due = next(module for module in second["modules"] if module["name"] == "web")
    assert due["reason"] == "values changed: web.color"
    change = due["changes"][0]
    assert (change["change"], change["kind"], change["name"]) == ("changed", "ConfigMap", "web")
    assert "-  color: green\n+  color: red\n" in change["diff"]

    site.delete("configmap", "db")
    third = documents(site, "--module", "db", code=3)
    assert (actions(third), third["purges"]) == ({"db": "restore"}, [])
    assert third["modules"][0]["reason"] == "absent in the cluster: ConfigMap db"
    assert site.revisions() == {"db": 1, "web": 1, "old": 1, "gone": 1}

    (web / "templates" / "broken.yaml").write_text('{{ fail "no way" }}')
    broken = documents(site, code=1)
    assert actions(broken)["web"] == "unknown"
    assert "no way" in next(module for module in broken["modules"] if module["name"] == "web")["reason"]
    assert actions(broken)["db"] == "restore", "the others are told all the same"


def test_an_edit_of_the_values_is_planned_before_it_is_made(site: operator_site.Site) -> None:
    site.values("webEnabled: true\ndbEnabled: true\nupEnabled: true")
    site.module("010-db", {"size": "{{ .Values.db.size }}"}, values="db: {size: small}")
    web = {"color": "{{ .Values.web.color }}", "list": "{{ .Values.web.list | toJson | quote }}"}
    site.module("020-web", web, values="web: {color: green, list: []}")
    chart = site.module("030-up", values="up: {}") / "chart"
    (chart / "templates").mkdir(parents=True)
    (chart / "Chart.yaml").write_text("apiVersion: v2\nname: up\nversion: 1.0.0\n")
    (chart / "values.yaml").write_text("replicaCount: 1\n")
    site.config(web="list: [a, {b: c}]")
    site.start().wait_ready().stop()
    file = site.root / "config.yaml"
    file.write_text("kind: ConfigMap\napiVersion: v1\ndata:\n  web: 'color: red'\n  dbEnabled: 'false'\n")
    sections = site.root / "sections.yaml"
    sections.write_text("web: {list: [a, {b: c}]}\ndbEnabled: false\n")
    secret = site.root / "secret.yaml"
    secret.write_text("db: {size: hidden-size}\n")
    before = site.data("addon-operator")

    of_file = documents(site, "--config", str(file), code=3)
    assert actions(of_file) == {"db": "delete", "web": "upgrade", "up": "nothing"}
    assert f"this is planned with {file} in place of the values ConfigMap" in of_file["notes"]
    over = documents(
        site, "--set", "web.list[1].b=d", "--set", "db.size=large", "--set", "up.replicaCoutn=3", code=3
    )
    assert actions(over) == {"db": "upgrade", "web": "upgrade", "up": "nothing"}
    slip = "the chart has no value up.replicaCoutn; did you mean 'replicaCount'?"
    assert [note for note in over["notes"] if slip in note]
    diffs = "".join(change["diff"] for module in over["modules"] for change in module["changes"])
    assert """+  list: '["a",{"b":"d"}]'""" in diffs
    assert "+  size: large" in diffs
    over_file = documents(site, "--config", str(sections), "--set", "dbEnabled=true", code=0)
    assert actions(over_file) == {"db": "nothing", "web": "nothing", "up": "nothing"}
    done = site.command("plan", "--secret", str(secret))
    assert (done.returncode, "hidden-size" in done.stdout + done.stderr) == (3, False)
    assert "values changed: db.size" in done.stdout
    for arguments, said in {
        ("--set", "web.list[7]=x"): "web.list is a list of 2 items",
        ("--config", str(secret.with_name("none.yaml"))): "there is no file",
        ("--config", str(file), "--state", "x"): "leave --record and --state out",
    }.items():
        done = site.command("plan", *arguments)
        assert done.returncode in {1, 2}
        assert said in done.stderr
        assert "Traceback" not in done.stderr
    assert site.data("addon-operator") == before
    assert site.revisions() == {"db": 1, "web": 1, "up": 1}


def test_a_module_without_a_release_whose_values_cannot_be_read_is_not_known(
    site: operator_site.Site,
) -> None:
    new = site.module("060-new", {"a": "b"}, values="new: [")
    (unread,) = documents(site, code=1)["modules"]
    assert (unread["action"], unread["enabled"]) == ("unknown", False)
    assert unread["reason"].startswith(f"whether it is enabled is not known: {new}/values.yaml")
    site.config(newEnabled="false")
    assert actions(documents(site, code=0)) == {"new": "nothing"}, "somebody says so"


def test_the_text_is_a_table_and_diffs_without_secrets(site: operator_site.Site) -> None:
    site.values("webEnabled: true\nweb: {password: hunter2}")
    web = site.module("010-web", {"color": "green"})
    (web / "templates" / "secret.yaml").write_text(
        "apiVersion: v1\nkind: Secret\nmetadata: {name: keys}\n"
        "stringData: {password: {{ .Values.web.password | quote }}}\n"
    )
    site.hook(web, "look.sh", {"beforeHelm": 1})
    done = site.command("plan")
    assert done.returncode == 3
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


def test_what_is_wrong_with_one_module_is_said_of_it_and_the_others_are_planned(
    site: operator_site.Site,
) -> None:
    site.values("webEnabled: true\ndbEnabled: true\nbadEnabled: true")
    site.module("010-db", {"size": "{{ .Values.db.size }}"}, values="db: {size: small}")
    site.module("020-web", {"color": "green"})
    bad = site.module("030-bad", {"color": "green"}, enabled="echo oh no >&2; exit 3")
    file = site.root / "config.yaml"
    manifest = "kind: ConfigMap\napiVersion: v1\ndata: {%s: '[', db: 'size: large'}\n"
    file.write_text(manifest % "web")
    for arguments, wrong in (
        (("--config", str(file)), "its section of ConfigMap"),
        (("--set", "webEnabled=maybe"), 'a switch must be "true" or "false"'),
    ):
        found = documents(site, *arguments, code=1)
        reasons = {each["name"]: each["reason"] for each in found["modules"]}
        assert actions(found) == {"db": "install", "web": "unknown", "bad": "unknown"}
        assert wrong in reasons["web"]
        assert reasons["web"].endswith("; it stays as it is")
        assert reasons["bad"] == "its enabled script failed with exit code 3: oh no; it stays as it is"
    shutil.rmtree(bad)
    file.write_text(manifest % "global")
    done = site.command("plan", "--config", str(file))
    assert (done.returncode, done.stdout) == (1, ""), "it is everybody's"
    assert "key 'global'" in done.stderr


def test_a_plan_knows_what_cannot_work_and_data_that_a_chart_deletes_by_itself(
    site: operator_site.Site,
) -> None:
    web = site.module("010-web", {"a": "b"}, values="webEnabled: true")
    (web / "templates" / "old.yaml").write_text(
        "apiVersion: extensions/v1beta1\nkind: DaemonSet\nmetadata: {name: old}\n"
    )
    (web / "hooks").mkdir()
    (web / "hooks" / "main.go").write_text("package hooks\n")
    db = site.module("020-db", {"a": "b"}, values="dbEnabled: true")
    (db / "templates" / "claim.yaml").write_text(
        "apiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {name: data, annotations: {helm.sh/hook: "
        "pre-install}}\nspec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}\n"
    )
    found = documents(site, code=1)
    assert actions(found) == {"web": "unknown", "db": "install"}
    itself = "PersistentVolumeClaim data of module db is one of Helm's hooks: Helm deletes it"
    assert any(itself in each for each in found["losses"])
    reason = found["modules"][0]["reason"]
    assert reason.startswith("Helm would fail: the API server has no kind 'DaemonSet' in extensions/v1beta1")
    assert reason.endswith(": it serves it in apps/v1")
    assert any("main.go is a Go hook" in note for note in found["notes"]), found["notes"]


DEPLOYMENT = """\
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: {{ .Values.web.replicas }}
  strategy: {{ .Values.web.strategy | toJson }}
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: web, image: web}]}
"""
SERVICE = """\
apiVersion: v1
kind: Service
metadata: {name: web, labels: {replicas: {{ .Values.web.replicas | quote }}}}
spec: {type: NodePort, selector: {app: web}, ports: [{port: 80, nodePort: 3178MAJOR, name: http}]}
"""
ROLLING = "{type: RollingUpdate, rollingUpdate: {maxSurge: 2}}"


@pytest.mark.parametrize("major", [pytest.param(3, marks=pytest.mark.slow), 4])
def test_a_plan_says_what_the_api_server_would_refuse(site: operator_site.Site, major: int) -> None:
    if major == 4:
        site.use_helm(helm_site.helm4_binary())
    web = site.module("010-web", {"a": "b"}, values="webEnabled: true")
    (web / "templates" / "deployment.yaml").write_text(DEPLOYMENT)
    (web / "templates" / "service.yaml").write_text(SERVICE.replace("MAJOR", str(major)))

    def planned(replicas: str, strategy: str, action: str, code: int) -> dict[str, Any]:
        site.config(web=f"replicas: {replicas}\nstrategy: {strategy}")
        found = documents(site, code=code)
        assert actions(found) == {"web": action}, found
        module: dict[str, Any] = found["modules"][0]
        return module

    for is_first in (True, False):
        wrong = planned("many", ROLLING, "unknown", 1)["reason"]
        assert wrong.startswith(f"Helm would fail: {web}/templates/deployment.yaml: the API server did not ")
        assert "replicas" in wrong
        assert wrong.count("replicas") == 1, "the Service is right"
        if is_first:
            planned("1", ROLLING, "install", 3)
            site.start().wait_ready().stop()
    # What the release alone has goes away with it, and an object that is there may keep its port.
    planned("2", "{type: Recreate}", "upgrade", 3)
    (web / "templates" / "deployment.yaml").write_text(DEPLOYMENT.replace("  replicas:", "  replica: 1 #"))
    unknown_field = planned("1", ROLLING, "unknown" if major == 4 else "upgrade", 1 if major == 4 else 3)
    assert ("spec.replica" in unknown_field["reason"]) is (major == 4)


def test_a_plan_says_what_it_may_not_ask(site: operator_site.Site) -> None:
    web = site.module("010-web", {"a": "b"}, values="webEnabled: true\nweb: {replicas: 1, strategy: {}}")
    (web / "templates" / "deployment.yaml").write_text(DEPLOYMENT)
    site.account("planner", "get,list,watch secrets,configmaps")
    config = str(charts.kubeconfig_with_token(site.cluster, site, "planner"))
    found = documents(site, code=3, KUBE_CONFIG=config)
    assert actions(found) == {"web": "install"}
    notes = [note for note in found["notes"] if note.startswith("whether the API server takes all")]
    assert any("may not create deployments" in note for note in notes), found["notes"]


GIVING = """\
required: [internal]
x-required-for-helm: [internal]
properties:
  note: {type: string}
  extra: {type: string}
  internal:
    type: object
    properties: {size: {type: integer}, key: {type: string, x-sensitive: true}}
"""
SECRET = "hunter2-of-a-hook"


def giving_site(site: operator_site.Site) -> None:
    """A module that a global hook enables, and whose own hook fills what its schema demands."""
    site.values("wlanEnabled: false")
    web = site.module("010-web", {"a": "{{ .Values.web.internal.size | quote }}",
                                  "note": "{{ .Values.web.note | quote }}",
                                  "key": "{{ .Values.web.internal.key | quote }}",
                                  "zone": "{{ .Values.global.zone | quote }}"},
                      values="web: {note: one}")  # fmt: skip
    (web / "openapi").mkdir()
    (web / "openapi" / "values.yaml").write_text(GIVING)
    gift = f'[{{"op": "add", "path": "/web/internal", "value": {{"size": 3, "key": "{SECRET}"}}}}]'
    site.hook(web, "give.sh", {"beforeHelm": 1}, f"echo '{gift}' > \"$VALUES_JSON_PATCH_PATH\"")
    shared = (
        '[{"op": "add", "path": "/global/zone", "value": "north"},'
        ' {"op": "add", "path": "/webEnabled", "value": true}]'
    )
    site.hook(
        site.global_hooks, "zone.sh", {"beforeAll": 1}, f"echo '{shared}' > \"$VALUES_JSON_PATCH_PATH\""
    )


def test_a_plan_has_the_values_and_flags_that_hooks_gave_to_the_running_operator(
    site: operator_site.Site,
) -> None:
    giving_site(site)
    operator = site.start().wait_ready()
    found = documents(site, code=0)
    assert found["modules"][0]["enabledReason"] == "enabled by webEnabled of a global hook"
    assert actions(found) == {"web": "nothing"}
    socket = site.root / "debug.socket"
    assert found["hookValues"] == {
        "from": "operator",
        "operator": f"the operator on {socket}",
        "releases": {},
    }

    (site.modules / "010-web" / "values.yaml").write_text("web: {note: two}")
    changed = site.command("plan")
    assert changed.returncode == 3
    assert "+  note: two" in changed.stdout
    assert SECRET not in changed.stdout + changed.stderr
    assert (
        f"hooks were not run: the values and flags that they set are those of the operator on {socket}"
        in (changed.stderr)
    )
    operator.stop()


@pytest.mark.slow
def test_a_plan_has_the_values_and_flags_that_the_last_releases_were_made_with(
    site: operator_site.Site,
) -> None:
    giving_site(site)
    site.start().wait_ready().stop()
    runs = len(site.runs())
    before = site.helm_calls()
    found = documents(site, code=0)
    assert actions(found) == {"web": "nothing"}
    assert found["modules"][0]["enabledReason"] == "enabled by webEnabled of a global hook"
    assert found["hookValues"] == {"from": "releases", "operator": None, "releases": {"web": 1}}
    assert site.helm_calls() == before, "all values are those of the revision"

    site.config(web="note: two\nextra: x")
    assert actions(documents(site, code=3)) == {"web": "upgrade"}
    site.start().wait_ready().stop()
    site.config(web=None)
    changed = site.command("plan")
    assert changed.returncode == 3, "what left the ConfigMap was not given by hooks"
    assert "-  note: two" in changed.stdout
    assert SECRET not in changed.stdout + changed.stderr
    assert "those that the last releases were made with (web revision 2)" in changed.stderr
    assert len(site.runs()) == 2 * runs, "a plan runs no hooks"


def test_what_hooks_have_to_give_first_is_an_install_and_not_unknown(site: operator_site.Site) -> None:
    giving_site(site)
    site.config(webEnabled="true")
    found = documents(site, code=3)
    assert actions(found) == {"web": "install"}
    assert found["modules"][0]["reason"] == (
        "there is no release; hooks have to give values first: web must have the key 'internal'; "
        "the changes are not known before"
    )
    assert found["hookValues"] == {"from": "nothing", "operator": None, "releases": {}}
    assert any("there is neither a running operator nor a release" in note for note in found["notes"]), found[
        "notes"
    ]


def test_a_plan_asks_the_operator_in_its_pod_through_the_api_server(site: operator_site.Site) -> None:
    giving_site(site)
    operator = site.start().wait_ready()

    def run(command: list[str]) -> pod_server.Ran:
        done = site.command(*command[1:])
        return pod_server.Ran(done.stdout, done.stderr, "exit code 1" if done.returncode else "")

    # No kubectl is needed, so none is found.
    nowhere = {"DEBUG_UNIX_SOCKET": str(site.root / "no.socket"), "PATH": str(site.root)}
    with kubelet.serving(site.root, run) as port:
        kubelet.add_pod(site, "ao-0", port, app="ao")
        site.apply(
            "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: ao}\nspec:\n"
            "  replicas: 0\n  selector: {matchLabels: {app: ao}}\n  template:\n"
            "    metadata: {labels: {app: ao}}\n    spec: {containers: [{name: x, image: none}]}\n"
        )
        found = documents(site, "--from-pod", f"{site.namespace}/deployment/ao", code=0, **nowhere)
        who = f"the operator in pod {site.namespace}/ao-0"
        assert found["hookValues"] == {"from": "operator", "operator": who, "releases": {}}
        assert actions(found) == {"web": "nothing"}
        other = documents(site, "--from-pod", f"{site.namespace}/ao-0", "--namespace", "default",
                          code=0, **nowhere)  # fmt: skip
        assert any(f"works in namespace {site.namespace}, and the plan is for default" in note
                   for note in other["notes"])  # fmt: skip
        operator.stop()
        ended = documents(site, "--from-pod", "ao-0", code=0, **nowhere)
    assert ended["hookValues"]["from"] == "releases"
    assert any(
        note.startswith(
            f"the operator in pod {site.namespace}/ao-0 does not tell what hooks gave: no operator"
        )
        for note in ended["notes"]
    )


def test_a_plan_that_may_not_ask_says_which_right_is_missing_and_takes_the_releases(
    site: operator_site.Site,
) -> None:
    giving_site(site)
    site.start().wait_ready().stop()
    site.account("planner", "get,list,watch,create,update,patch secrets,configmaps,pods")
    kubelet.add_pod(site, "ao-0", 1)
    found = documents(
        site, "--from-pod", "ao-0", code=0,
        KUBE_CONFIG=str(charts.kubeconfig_with_token(site.cluster, site, "planner")),
    )  # fmt: skip
    assert actions(found) == {"web": "nothing"}
    assert found["hookValues"] == {"from": "releases", "operator": None, "releases": {"web": 1}}
    (note,) = (note for note in found["notes"] if "ao-0" in note)
    assert "may not" in note
    assert "pods/exec" in note


@pytest.mark.slow
def test_the_examples_of_the_project_are_planned_without_anything_unknown(site: operator_site.Site) -> None:
    examples = {"MODULES_DIR": str(ROOT / "modules"), "GLOBAL_HOOKS_DIR": str(ROOT / "global-hooks")}
    first = documents(site, code=3, **examples)
    assert "unknown" not in actions(first).values()
    enabled = {module["name"]: module["action"] for module in first["modules"] if module["enabled"]}
    assert enabled == {"dns-check": "hooks", "web": "install", "web-guard": "install"}
    operator = site.start(**examples).wait_ready()
    running = documents(site, code=0, **examples)
    assert set(actions(running).values()) == {"hooks", "nothing"}
    assert running["hookValues"]["from"] == "operator"
    operator.stop()
    stopped = documents(site, code=0, **examples)
    assert set(actions(stopped).values()) == {"hooks", "nothing"}
    assert stopped["hookValues"]["releases"] == {"web": 1, "web-guard": 1}
    site.config(web="title: Another page")
    changed = documents(site, code=3, **examples)
    assert actions(changed)["web"] == "upgrade"
    (one,) = (module for module in changed["modules"] if module["name"] == "web")
    assert "Another page" in "".join(change["diff"] for change in one["changes"])
    assert "replicas" not in "".join(
        line
        for change in one["changes"]
        for line in change["diff"].splitlines()
        if line.startswith(("+", "-"))
    )


@pytest.mark.slow
def test_a_chart_with_values_at_the_root_is_planned_with_what_hooks_gave(site: operator_site.Site) -> None:
    web = site.module("010-web", values="webEnabled: true\nweb: {note: one}")
    chart = web / "chart" / "templates"
    chart.mkdir(parents=True)
    (chart.parent / "Chart.yaml").write_text("apiVersion: v2\nname: up\nversion: 1.0.0\n")
    (chart / "a.yaml").write_text(
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: web}\n"
        "data: {note: {{ .Values.note }}, size: {{ .Values.internal.size | quote }},\n"
        "  login: {{ .Values.internal.adminPassword }}}\n"
    )
    gift = f'[{{"op": "add", "path": "/web/internal", "value": {{"size": 3, "adminPassword": "{SECRET}"}}}}]'
    site.hook(web, "give.sh", {"beforeHelm": 1}, f"echo '{gift}' > \"$VALUES_JSON_PATCH_PATH\"")
    site.start().wait_ready().stop()
    assert actions(documents(site, code=0)) == {"web": "nothing"}
    site.config(web="note: two")
    found = documents(site, code=3)
    (change,) = found["modules"][0]["changes"]
    edited = [
        line for line in change["diff"].splitlines() if line[:1] in "+-" and line[:2] not in ("--", "++")
    ]
    assert edited == ["-  note: one", "+  note: two"]
    assert "login: ***" in change["diff"]
    assert SECRET not in json.dumps(found), "the name of the key says what a hook gave"


def test_the_first_plan_has_objects_of_kinds_that_the_cluster_does_not_serve_yet(
    site: operator_site.Site, helm4: pathlib.Path
) -> None:
    site.use_helm(helm4)
    chart = site.module("010-web", values="webEnabled: true") / "chart" / "templates"
    chart.mkdir(parents=True)
    (chart.parent / "Chart.yaml").write_text("apiVersion: v2\nname: up\nversion: 1.0.0\n")
    # With lookup, Helm 4 asks the cluster for the kinds of all objects.
    (chart / "a.yaml").write_text(
        "apiVersion: example.com/v1\nkind: Unserved\nmetadata: "
        '{name: {{ lookup "v1" "Secret" "" "" | len }}-a}\n'
        "---\napiVersion: example.com/v1\nkind: Unserved\nmetadata: {name: b}\n"
    )
    (module,) = documents(site, code=3)["modules"]
    assert [(change["kind"], change["name"]) for change in module["changes"]] == [
        ("Unserved", "0-a"),
        ("Unserved", "b"),
    ]
