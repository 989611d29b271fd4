"""Tests of modules as their authors run them: the example modules, the page, a real control plane."""

import json
import os
import pathlib
import re
import subprocess
import sys

import pytest

from addon_operator.devcluster import handle, locations
from tests.integration import chart_repositories, operator_forks, typing_pages
from tests.unit.testing import fixed_fields

pytestmark = pytest.mark.integration

ROOT = pathlib.Path(__file__).parents[2]
PAGE = ROOT / "docs" / "how-to" / "test-a-module.md"


def run(
    arguments: list[str], cluster: handle.DevCluster, cwd: pathlib.Path, exit_code: int = 0, **more: str
) -> str:
    """What a command prints that an author types."""
    environ = {
        **os.environ,
        "PATH": f"{pathlib.Path(sys.executable).parent}:{cluster.bin}:{os.environ['PATH']}",
        "PYTHONPATH": str(ROOT / "operator"),
        **more,
    }
    if arguments[0] == "addon-operator":
        ran = operator_forks.run(arguments[1:], environ, cwd)
        assert ran.returncode == exit_code, ran.stdout + ran.stderr
        return ran.stdout + ran.stderr
    done = subprocess.run(
        arguments,
        cwd=cwd,
        env=environ,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == exit_code, done.stdout
    return done.stdout


@pytest.mark.slow
def test_the_tests_of_all_example_modules_and_global_hooks_pass(devcluster: handle.DevCluster) -> None:
    printed = run(["addon-operator", "module", "test", "."], devcluster, ROOT)

    rows = re.findall(r"^(\d{3}-\S+|global-hooks) +(\d+) +(\d+) +(\d+)", printed, re.MULTILINE)
    modules = sorted(path.name for path in (ROOT / "modules").glob("0*"))
    assert [row[0] for row in rows] == ["global-hooks", *modules]
    assert {row[2:] for row in rows} == {("0", "0")}


@pytest.mark.slow
def test_the_page_works_as_it_is_written(devcluster: handle.DevCluster, tmp_path: pathlib.Path) -> None:
    blocks = list(re.finditer(r"```(bash|text)\n(.*?)```", PAGE.read_text("utf-8"), re.DOTALL))
    script = "set -eo pipefail\n" + "".join(block[2] for block in blocks if block[1] == "bash")

    printed = run(["bash", "-c", script], devcluster, tmp_path)

    shown = [line for block in blocks if block[1] == "text" for line in block[2].splitlines()]
    assert [line for line in shown if not typing_pages.is_printed(line, printed)] == []


PUBLIC = ROOT / "docs" / "how-to" / "use-a-public-chart.md"
PUBLIC_ADDRESS = "oci://registry.example.com/charts"


@pytest.mark.slow
def test_a_module_of_a_public_chart_is_made_as_the_page_says(
    devcluster: handle.DevCluster, tmp_path: pathlib.Path
) -> None:
    blocks = re.findall(r"```(bash|text)\n(.*?)```", PUBLIC.read_text("utf-8"), re.DOTALL)
    script = "set -eo pipefail\n" + "".join(text for kind, text in blocks if kind == "bash")
    (name, version) = re.findall(rf"{PUBLIC_ADDRESS}/(\S+)@(\S+)", script)[0]
    with chart_repositories.registry(devcluster.helm, tmp_path) as registry:
        registry.push(chart_repositories.package(tmp_path / "upstream", devcluster.helm, version, name=name))
        environ = f"export ADDON_OPERATOR_TMP_DIR={tmp_path}/tmp\n"
        written = environ + script.replace(PUBLIC_ADDRESS, registry.address)
        printed = run(["bash", "-c", written], devcluster, tmp_path)

    shown = [line for kind, text in blocks if kind == "text" for line in text.splitlines()]
    assert [line for line in shown if not typing_pages.is_printed(line, printed)] == []


@pytest.mark.slow
def test_a_chart_that_cannot_be_pulled_fails_its_test_and_credentials_count(
    devcluster: handle.DevCluster, tmp_path: pathlib.Path
) -> None:
    files = tmp_path / "files"
    chart_repositories.package(files, devcluster.helm)
    chart_repositories.index(devcluster.helm, files)
    gate = chart_repositories.Gate(files=files, password=chart_repositories.PASSWORD)
    gate.opened.set()

    def tested(*, password: bool, exit_code: int) -> str:
        more = {"CHART_CREDENTIALS": str(tmp_path / "config.json")} if password else {}
        more["ADDON_OPERATOR_TMP_DIR"] = str(tmp_path / "tmp")
        return run(["addon-operator", "module", "test"], devcluster, tmp_path, exit_code, **more)

    with chart_repositories.serving(gate):
        host = f"127.0.0.1:{gate.port}"
        chart_repositories.credentials(tmp_path / "config.json", host)
        chart = f"http://{host}/upstream@1.2.3"
        run(["addon-operator", "new", "module", "web", "--chart", chart], devcluster, tmp_path)
        assert "may read it with CHART_CREDENTIALS" in tested(password=False, exit_code=1)
        assert re.search(r"^010-web +1 +0 +0$", tested(password=True, exit_code=0), re.MULTILINE)
    assert re.search(r"^010-web +1 +0 +0$", tested(password=False, exit_code=0), re.MULTILINE), "it is cached"


KEEPS = """\
{{- $old := lookup "v1" "ConfigMap" .Release.Namespace "kept" }}
apiVersion: v1
kind: ConfigMap
metadata: {name: kept}
data:
  first: {{ if $old }}{{ $old.data.now | quote }}{{ else }}{{ .Values.seen.size | quote }}{{ end }}
  now: {{ .Values.seen.size | quote }}
  upgrade: {{ .Release.IsUpgrade | quote }}
  tubes: {{ .Capabilities.APIVersions.Has "seen.example/v1/Tube" | quote }}
  pipes: {{ .Capabilities.APIVersions.Has "seen.example/v1/Pipe" | quote }}
"""
FIXED = """\
apiVersion: v1
kind: Secret
metadata: {name: fixed}
immutable: true
stringData: {size: {{ .Values.seen.size | quote }}}
"""
CASES = """\
- name: what lookup keeps survives an upgrade
  upgradeFrom: {seen: {size: 1}}
  values: {seen: {size: 2}}
  expect:
    objects:
    - {kind: ConfigMap, name: kept, data: {first: "1", now: "2", upgrade: "true"}}
- name: a first install has nothing to keep
  valuesFiles: [../examples/two.yaml]
  expect:
    objects:
    - {kind: ConfigMap, name: kept, data: {first: "2", now: "2", upgrade: "false"}}
    - {kind: ConfigMap, name: kept, data: {tubes: "false", pipes: "true"}}
- name: what is given is served
  objects:
  - {apiVersion: seen.example/v1, kind: Tube, metadata: {name: long, namespace: default}}
  expect:
    objects:
    - {kind: ConfigMap, name: kept, data: {tubes: "true", pipes: "true"}}
"""
PYTHON_CASE = """\
def test_what_is_given_is_served(module):
    tube = {"apiVersion": "seen.example/v1", "kind": "Tube", "metadata": {"name": "long"}}
    assert module.render().one("ConfigMap", "kept")["data"]["tubes"] == "false"
    assert module.render(objects=[tube]).one("ConfigMap", "kept")["data"]["tubes"] == "true"
"""
PIPES = """\
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: pipes.seen.example}
spec:
  group: seen.example
  scope: Namespaced
  names: {plural: pipes, singular: pipe, kind: Pipe}
  versions:
  - {name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}
"""


RANDOM = """\
apiVersion: v1
kind: Secret
metadata: {name: random}
stringData: {user: admin, password: {{ randAlphaNum 12 }}}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: served}
data: {monitored: {{ .Capabilities.APIVersions.Has "monitoring.coreos.com/v1" | quote }}}
"""


def test_cases_upgrade_and_snapshots_leave_out_what_varies_and_required_apis_are_served(
    devcluster: handle.DevCluster, tmp_path: pathlib.Path
) -> None:
    seen, varied = tmp_path / "modules" / "010-seen", tmp_path / "modules" / "020-varied"
    of_seen = {
        "values.yaml": "seenEnabled: true\nseen: {size: 1}\n",
        "Chart.yaml": "apiVersion: v2\nname: seen\nversion: 0.1.0\n",
        "templates/kept.yaml": KEEPS,
        "crds/pipes.yaml": PIPES,
        "examples/two.yaml": "seen: {size: 2}\n",
        "tests/upgrades.yaml": CASES,
        "tests/test_served.py": PYTHON_CASE,
        ".helmignore": "/tests/\n",
    }
    of_varied = {
        "Chart.yaml": "apiVersion: v2\nname: varied\nversion: 0.1.0\n",
        "module.yaml": "requires: {apis: [monitoring.coreos.com/v1]}\n",
        "templates/random.yaml": RANDOM,
        "tests/all.yaml": "- {name: all, expect: {snapshot: true}}\n",
        "tests/test_one.py": "def test_one(module, snapshot):\n    snapshot(module.render())\n",
    }
    for module, files in ((seen, of_seen), (varied, of_varied)):
        for name, text in files.items():
            (module / name).parent.mkdir(parents=True, exist_ok=True)
            (module / name).write_text(text)
    run(["addon-operator", "module", "test", "modules", "--snapshot-update"], devcluster, tmp_path)
    kept = [path.read_text() for path in sorted((varied / "tests/snapshots").rglob("*.yaml"))]
    assert len(kept) == 2
    assert all("password: (varies)" in text and "user: admin" in text for text in kept)
    assert all("monitored: 'true'" in text for text in kept)
    printed = run(["addon-operator", "module", "test", "modules"], devcluster, tmp_path)
    assert re.search(r"^010-seen +4 +0 +0\n020-varied +2 +0 +0$", printed, re.MULTILINE), printed

    (seen / "templates/fixed.yaml").write_text(FIXED)
    (seen / "tests/upgrades.yaml").write_text(CASES.replace('first: "2", now: "2"', 'first: "9", now: "2"'))
    (varied / "templates/random.yaml").write_text(RANDOM.replace("admin", "root"))
    printed = run(["addon-operator", "module", "test", "modules"], devcluster, tmp_path, exit_code=1)
    assert "these fields never change:\n  Secret fixed: data.size" in printed
    assert "data.first" in printed
    assert re.search(r"^010-seen +2 +2 +0$", printed, re.MULTILINE), printed
    shown = [each.split("If that")[0] for each in printed.split("differs")[1:]]
    assert any('- "admin"' in each for each in shown)
    assert not any("password" in each for each in shown if '- "admin"' in each)


UPGRADE = """
def test_upgrade(operator, module):
    running = operator(values={"seen": {"size": 1}}).wait_ready()
    upgrade = running.upgrade(from_={"seen": {"size": 1}}, to={"seen": {"size": 2}})
    assert upgrade.changed == ["ConfigMap seen: data.size"]
    assert running.objects("configmaps").one("ConfigMap", "seen")["data"] == {"size": "2"}
    assert running.objects("configmaps").one("ConfigMap", "made")["data"] == {"by": "hook"}
"""
FAILING = """
def test_fixed(operator):
    operator().wait_ready().upgrade(from_={"seen": {"size": 1}}, to={"seen": {"size": 1, "tier": "b"}})


def test_wrong(operator):
    operator(values={"seen": {"size": 3}}).wait_ready(timeout=60)
"""
HOOK = """#!/bin/bash
if [[ "$1" == --config ]]; then echo '{"configVersion": "v1", "beforeHelm": 1}'; exit; fi
echo "the hook counts"
if grep -q '"size":3' "$VALUES_PATH"; then echo "three is too much"; exit 1; fi
cat > "$KUBERNETES_PATCH_PATH" <<EOF
{"operation": "CreateIfNotExists", "object": {"apiVersion": "v1", "kind": "ConfigMap",
 "metadata": {"name": "made", "namespace": "$ADDON_OPERATOR_NAMESPACE"}, "data": {"by": "hook"}}}
EOF
"""
CONFTEST = """
import pathlib
import pytest
from addon_operator.devcluster import handle, locations

@pytest.fixture(scope="session")
def devcluster():
    places = pathlib.Path("{cluster.kubeconfig}"), pathlib.Path("{cluster.bin}")
    return handle.DevCluster("{cluster.name}", "{cluster.version}", "{cluster.url}", *places)
"""
TEMPLATE = """apiVersion: v1
kind: ConfigMap
metadata: {name: seen}
data: {size: "{{ .Values.seen.size }}"}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: seen}
spec:
  replicas: 0
  selector: {matchLabels: {app: seen, tier: {{ .Values.seen.tier | default "a" }}}}
  template:
    metadata: {labels: {app: seen, tier: {{ .Values.seen.tier | default "a" }}}}
    spec: {containers: [{name: seen, image: seen}]}
"""


@pytest.mark.slow
def test_an_operator_explains_a_failure_of_a_test_and_keeps_its_namespace(
    devcluster: handle.DevCluster, tmp_path: pathlib.Path
) -> None:
    write_seen(tmp_path, devcluster, FAILING)

    printed = run(
        ["addon-operator", "module", "test", "modules", "--keep-namespace"], devcluster, tmp_path, exit_code=1
    )

    assert re.search(r"^010-seen +0 +2 +0", printed, re.MULTILINE), printed
    named = r"these fields never change:\nE +Deployment seen: spec\.selector\.matchLabels\.tier\n"
    assert re.search(named, printed), printed
    assert "field is immutable" in printed
    assert "module seen fails: hook count.sh failed with exit code 1" in printed
    assert "seen count.sh: three is too much" in printed
    assert "--- Events" in printed
    kept = re.findall(r"kept: namespace (\S+) on", printed)
    assert kept
    assert kept[0] in devcluster.run_kubectl("get", "namespaces", "--output=name").stdout


def write_seen(tmp_path: pathlib.Path, cluster: handle.DevCluster, tests: str) -> None:
    """A module with a hook and these tests, which run on that cluster."""
    module = tmp_path / "modules" / "010-seen"
    for part in ("templates", "hooks", "tests"):
        (module / part).mkdir(parents=True)
    (module / "templates" / "seen.yaml").write_text(TEMPLATE)
    (module / "hooks" / "count.sh").write_text(HOOK)
    (module / "hooks" / "count.sh").chmod(0o755)
    (module / "tests" / "test_seen.py").write_text(tests)
    (tmp_path / "conftest.py").write_text(CONFTEST.format(cluster=cluster))


def test_an_operator_of_a_test_is_edited_and_upgraded(
    devcluster: handle.DevCluster, tmp_path: pathlib.Path
) -> None:
    write_seen(tmp_path, devcluster, UPGRADE)
    printed = run(["addon-operator", "module", "test", "modules"], devcluster, tmp_path)
    assert re.search(r"^010-seen +1 +0 +0", printed, re.MULTILINE), printed


OWN = """
def test_it_is_real_and_one_for_the_whole_run(cluster, operator, module):
    running = operator().wait_ready()
    assert running.objects("configmaps").one("ConfigMap", "seen")["data"] == {"size": "1"}
    assert cluster.run_kubectl("auth", "whoami", "--output=jsonpath={.status.userInfo.username}").stdout
    module.path.parent.joinpath("url").write_text(cluster.url)


def test_wrong(operator):
    operator(values={"seen": {"size": "big"}}).wait_ready()
"""


SAME = """
def test_it_is_the_same(cluster, module):
    assert module.path.parent.joinpath("url").read_text() == cluster.url
"""


@pytest.mark.slow
def test_a_run_has_a_control_plane_of_its_own_which_goes_or_is_kept_with_what_failed(
    devcluster: handle.DevCluster, tmp_path: pathlib.Path
) -> None:
    module, state = tmp_path / "modules" / "010-seen", tmp_path / "state"
    for name, text in (
        ("templates/seen.yaml", TEMPLATE.partition("---")[0]),
        ("openapi/config-values.yaml", "type: object\nproperties: {size: {type: integer}}\n"),
        ("values.yaml", "seen: {size: 1}\n"),
        ("tests/test_seen.py", OWN),
    ):
        (module / name).parent.mkdir(parents=True, exist_ok=True)
        (module / name).write_text(text)
    other = tmp_path / "modules" / "020-other" / "tests" / "test_other.py"
    other.parent.mkdir(parents=True)
    other.write_text(SAME)
    (other.parents[1] / "module.yaml").touch()
    tested = ["env", f"{locations.STATE_VARIABLE}={state}", "addon-operator", "module", "test", "modules"]

    printed = run(tested, devcluster, tmp_path, exit_code=1)
    assert re.search(r"^010-seen +1 +1 +0\n020-other +1 +0 +0$", printed, re.MULTILINE), printed
    assert "the edit is refused: " in printed
    assert list(state.iterdir()) == [], "it is gone"

    printed = run([*tested, "--keep-namespace", "--", "-k", "wrong"], devcluster, tmp_path, exit_code=1)
    (kept,) = re.findall(r"^kept: namespace (\S+) on (\S+), files in (\S+)$", printed, re.MULTILINE)
    kubectl = ["kubectl", f"--kubeconfig={kept[1]}", "get", "configmap", f"--namespace={kept[0]}"]
    assert "big" in run([*kubectl, "addon-operator", "--output=yaml"], devcluster, tmp_path)
    assert (pathlib.Path(kept[2]) / "operator.log").exists()
    (remedy,) = re.findall(
        r"^remove it all with: (addon-operator devcluster down --name \S+)$", printed, re.MULTILINE
    )
    run([*tested[:2], *remedy.split()], devcluster, tmp_path)
    assert list(state.iterdir()) == []


@pytest.mark.slow
def test_what_is_known_to_never_change_is_what_the_api_server_refuses(
    devcluster: handle.DevCluster, namespace: str, tmp_path: pathlib.Path
) -> None:
    cases = {f"fixed-{number}": each for number, each in enumerate(fixed_fields.CHANGES.values())}
    for at, file in ((1, "before.json"), (2, "after.json")):
        bodies = [fixed_fields.body(each[0], each[at], name) for name, each in cases.items()]  # type: ignore[arg-type]
        (tmp_path / file).write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": bodies}))
    kubectl = ["kubectl", f"--kubeconfig={devcluster.kubeconfig}", f"--namespace={namespace}"]
    try:
        run([*kubectl, "apply", "--filename=before.json"], devcluster, tmp_path)
        printed = run([*kubectl, "apply", "--filename=after.json"], devcluster, tmp_path, exit_code=1)
    finally:
        run([*kubectl, "delete", "--filename=before.json", "--wait=false"], devcluster, tmp_path)
    taken = {
        name
        for name in cases
        if re.search(rf"/{name} (configured|unchanged|serverside-applied)$", printed, re.MULTILINE)
    }
    assert taken == {name for name, each in cases.items() if not each[3]}, printed
