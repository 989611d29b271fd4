"""Edits of the values ConfigMap that a real API server asks the operator about."""

import json
import os
import pathlib
import subprocess
from collections.abc import Iterator, Sequence

import pytest

from addon_operator.devcluster import handle
from tests.integration import admitting, operator_process, operator_site

pytestmark = pytest.mark.integration

PINS = """\
type: object
properties:
  mine: {type: integer}
  color: {type: string, enum: [green, red]}
  pin: {type: integer, x-sensitive: true}
x-kubernetes-validations:
- {rule: "!has(self.mine) || !has(self.pin) || self.mine == self.pin", message: mine must be the pin}
"""
DIFFERS = PINS.replace("self.mine == self.pin", "self.mine != self.pin").replace("must be the", "is the")
SCHEMA = """\
type: object
properties:
  color: {type: string, enum: [green, red]}
  size: {type: integer}
  password: {type: string, minLength: 12, x-sensitive: true}
  note: {type: string, pattern: '.{0,1000}.{0,1000}y'}
"""


def module(site: operator_site.Site, directory: str) -> pathlib.Path:
    name = directory.lstrip("0123456789-")
    path = site.module(directory, values=f"{name}Enabled: true\n")
    (path / "openapi").mkdir()
    (path / "openapi" / "config-values.yaml").write_text(SCHEMA)
    return path


class Kubectl:
    """kubectl as a user runs it: its refusals are what is tested."""

    def __init__(self, cluster: handle.DevCluster, site: operator_site.Site) -> None:
        self._site = site
        self._command = [
            os.fspath(cluster.kubectl),
            f"--kubeconfig={cluster.kubeconfig}",
            "-n",
            site.namespace,
        ]

    def run(self, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [*self._command, *arguments],
            env=dict(os.environ) | environment,
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )

    def answer(self, **data: str) -> str:
        """What the API server says to an edit that it does not store: to be asked again and again."""
        path = f"/api/v1/namespaces/{self._site.namespace}/configmaps/addon-operator?dryRun=All"
        merge = "application/merge-patch+json"
        return self._site.request("PATCH", path, {"data": data}, merge).text

    def set(self, *options: str, **data: str | None) -> subprocess.CompletedProcess[str]:
        patch = json.dumps({"data": data})
        return self.run("patch", "configmap", "addon-operator", "--type=merge", f"-p={patch}", *options)


@pytest.fixture
def kubectl(devcluster: handle.DevCluster, site: operator_site.Site) -> Kubectl:
    return Kubectl(devcluster, site)


@pytest.fixture
def operator(
    site: operator_site.Site, devcluster: handle.DevCluster, kubectl: Kubectl
) -> Iterator[operator_process.OperatorProcess]:
    hook = 'if [ -e "$TRACE.write" ]; then echo \'{"op": "add", "path": "/web/size", "value": 7}\' '
    site.hook(
        module(site, "010-web"),
        "write.sh",
        {"beforeHelm": 1},
        f'{hook} > "$CONFIG_VALUES_JSON_PATCH_PATH"; fi',
    )
    module(site, "020-api")
    site.config(web="color: green")
    with admitting.admitting(site, devcluster) as running:
        # The API server takes notice of a registration within a second or two.
        running.wait_until(lambda: "web.color" in kubectl.answer(web="color: no"), "edits are checked")
        yield running


def refusal(done: subprocess.CompletedProcess[str], words: Sequence[str]) -> None:
    assert done.returncode != 0, done.stdout
    for word in words:
        assert word in done.stderr


def test_a_wrong_edit_is_refused_with_all_that_is_wrong(
    site: operator_site.Site,
    operator: operator_process.OperatorProcess,
    kubectl: Kubectl,
    tmp_path: pathlib.Path,
) -> None:
    wrong = kubectl.set(web="color: blue\nsize: ten\npassword: s3cret", api="[", webEnabled="maybe")
    refusal(
        wrong, ["web.color: must be one of", "web.size: must be an integer", "key 'api', line", "webEnabled"]
    )
    assert "web.password: must have at least 12 characters, not ***" in wrong.stderr
    assert "s3cret" not in wrong.stderr
    assert site.data("addon-operator") == {"web": "color: green"}

    typo = kubectl.set(wep="color: red")
    assert typo.returncode == 0
    assert "did you mean 'web'?" in typo.stderr

    # kubectl edit shows what is wrong and lets the user go on.
    editor = site.script(
        tmp_path / "editor",
        'cp "$1" "$0.seen.$(ls "$0".seen.* 2>/dev/null | wc -l)"; sed -i "s/green/blue/" "$1"',
    )
    kubectl.run("edit", "configmap", "addon-operator", EDITOR=os.fspath(editor))
    again = pathlib.Path(f"{editor}.seen.1").read_text()
    assert '# configmaps "addon-operator" was not valid:' in again
    assert "web.color: must be one of" in again

    assert kubectl.set(web="color: red").returncode == 0
    operator.wait_logged("values ConfigMap changed", "web")
    assert operator.metrics().total("config_values_errors_total") == 0


def test_who_may_not_read_the_secret_does_not_find_it_by_asking(
    site: operator_site.Site, devcluster: handle.DevCluster, kubectl: Kubectl
) -> None:
    (module(site, "010-web") / "openapi" / "config-values.yaml").write_text(PINS)
    (module(site, "020-api") / "openapi" / "config-values.yaml").write_text(DIFFERS)
    site.config(web="color: green", api="color: green")
    site.secret(web="pin: 42", api="pin: 42")
    rule = {"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get", "update", "patch"]}
    site.create("role", "edits", {"rules": [rule]})
    group = "rbac.authorization.k8s.io"
    asker = {"apiGroup": group, "kind": "User", "name": "asker"}
    reference = {"apiGroup": group, "kind": "Role", "name": "edits"}
    site.create("rolebinding", "edits", {"roleRef": reference, "subjects": [asker]})
    asks = ("--as=asker", "--dry-run=server")
    other = {**asker, "name": "other"}
    site.create("rolebinding", "edits-too", {"roleRef": reference, "subjects": [other]})
    with admitting.admitting(site, devcluster) as running:
        running.wait_until(
            lambda: "mine must be the pin" in kubectl.answer(web="mine: 7"),
            "who may read the Secret is told all",
        )
        told = kubectl.set(*asks, web="mine: 0\ncolor: blue").stderr
        assert "web.color: must be one of" in told
        assert "mine must be the pin" not in told
        said = {kubectl.set(*asks, web=f"mine: {number}").stderr for number in range(1, 5)}
        [only] = said
        assert "refused, by a rule that looks at values of the Secret" in only
        for number in (6, 42):
            assert (
                "5 edits were compared within 10 minutes" in kubectl.set(*asks, web=f"mine: {number}").stderr
            )
        assert kubectl.set("--dry-run=server", web="mine: 42").returncode == 0
        # A rule that refuses only the right guess tells as much by what it takes.
        by_other = ("--as=other", "--dry-run=server")
        for number in range(1, 6):
            assert kubectl.set(*by_other, api=f"mine: {number}").returncode == 0
        late = kubectl.set(*by_other, api="mine: 42").stderr
        assert "5 edits were compared within 10 minutes" in late
        assert "mine is the pin" in kubectl.answer(api="mine: 42")

        # What passes unchecked is shown to everybody who sees Events or Module objects.
        forced = kubectl.set("--field-manager=addon-operator", web="mine: 7")
        assert forced.returncode == 0, forced.stderr
        events = running.wait_until(
            lambda: site.objects("events", fieldSelector="reason=InvalidValues"), "an Event says that it is"
        )
        shown = " ".join(site.command("module", "describe", "web").stdout.split())
        assert "web: does not fit values of the Secret; the log says why" in shown
        assert "mine must be the pin" not in f"{shown} {[each['message'] for each in events]}"
        running.wait_logged("is invalid", "mine must be the pin")


def test_nothing_but_wrong_edits_is_held_up(
    site: operator_site.Site, operator: operator_process.OperatorProcess, kubectl: Kubectl
) -> None:
    # Another ConfigMap may hold anything.
    other = kubectl.run("create", "configmap", "other", "--from-literal=web=color: blue")
    assert other.returncode == 0, other.stderr
    # Labels may change, hooks may write, and a ConfigMap may go, however wrong it is.
    forced = kubectl.set("--field-manager=addon-operator", api="color: blue")
    assert forced.returncode == 0, forced.stderr
    # Who only calls himself so is somebody else.
    other_user = ("--as=somebody", "--as-group=system:masters", "--field-manager=addon-operator")
    refusal(kubectl.set(*other_user, web="color: blue"), ["web.color"])
    assert kubectl.run("label", "configmap", "addon-operator", "a=b").returncode == 0
    writes = pathlib.Path(site.environment()["TRACE"] + ".write")
    writes.touch()
    operator.wait_logged("is invalid", "api.color")
    refusal(kubectl.set(web="color: red"), ["api.color"])
    assert kubectl.set(api=None, web="color: red").returncode == 0
    operator.wait_until(
        lambda: "size: 7" in (site.data("addon-operator") or {}).get("web", ""), "the hook's write passes"
    )
    writes.unlink()
    operator.wait_idle()
    assert kubectl.run("delete", "configmap", "addon-operator").returncode == 0
    refusal(
        kubectl.run("create", "configmap", "addon-operator", "--from-literal=web=color: no"), ["web.color"]
    )

    # An operator that is down blocks nothing.
    operator.stop()
    down = kubectl.run("create", "configmap", "addon-operator", "--from-literal=web=color: no")
    assert down.returncode == 0, down.stderr


@pytest.mark.slow
def test_an_edit_that_takes_too_long_to_check_is_refused_before_the_api_server_gives_up(
    site: operator_site.Site,
    operator: operator_process.OperatorProcess,
    kubectl: Kubectl,
    tmp_path: pathlib.Path,
) -> None:
    bomb = tmp_path / "patch.json"
    bomb.write_text(json.dumps({"data": {"web": "note: " + "x" * 900_000}}))
    done = kubectl.run("patch", "configmap", "addon-operator", "--type=merge", f"--patch-file={bomb}")
    refusal(
        done, ["web: cannot be checked: it took more than 3.5 s, the time limit; make the values smaller"]
    )
    aliases = "".join(f"a{n}: &a{n} {{<<: [{', '.join([f'*a{n - 1}'] * 10)}]}}\n" for n in range(1, 30))
    refusal(kubectl.set(web=f"a0: &a0 {{}}\n{aliases}"), ["aliases expand to more than 250000 nodes"])
    assert kubectl.set(web="color: red").returncode == 0
    operator.wait_until(lambda: operator.get("/healthz").status == 200, "it is healthy")
