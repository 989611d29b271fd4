"""Another build of the operator takes over from one before it, and back: nothing happens to the add-ons."""

import contextlib
import io
import os
import pathlib
import subprocess
import tarfile
from collections.abc import Iterator
from typing import Any, Final

import pytest

from addon_operator.devcluster import handle
from tests.integration import admitting, module_objects, operator_process, operator_site, receivers

pytestmark = pytest.mark.integration

_ROOT: Final = pathlib.Path(__file__).parents[2]
_BEFORE: Final = os.environ.get("BUILD_BEFORE", "cde5b7bc")
"""A commit or tag whose build upgrades to this one: that of the last release, once there is one."""
_MODULES: Final = ("works", "fails", "warns", "drifts", "defines", "random")
_RANDOM: Final = (
    "apiVersion: v1\nkind: Secret\nmetadata: {name: random}\n"
    "stringData: {password: {{ randAlphaNum 12 | quote }}}\n"
)
_DEFINITION: Final = """\
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: parts.NAMESPACE.example}
spec:
  group: NAMESPACE.example
  names: {kind: Part, plural: parts}
  scope: Namespaced
  versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}]
"""


@pytest.fixture
def build_before(tmp_path: pathlib.Path) -> pathlib.Path:
    """The source root of the build before."""
    archive = subprocess.run(
        ["git", "-C", str(_ROOT), "archive", _BEFORE, "operator", "crds"], capture_output=True, check=False
    )
    if archive.returncode:
        pytest.skip(f"this is no clone that has {_BEFORE}; name another build with BUILD_BEFORE")
    with tarfile.open(fileobj=io.BytesIO(archive.stdout)) as opened:
        opened.extractall(tmp_path / "before", filter="data")
    return tmp_path / "before" / "operator"


@pytest.fixture
def receiver() -> Iterator[receivers.Receiver]:
    with receivers.receiving() as made:
        yield made


def write_modules(site: operator_site.Site) -> None:
    """Modules that work, fail, warn, have drifted, bring a definition, or have something random."""
    site.values("".join(f"{word}Enabled: true\n" for word in _MODULES))
    for word in _MODULES:
        site.module(f"010-{word}", {"a": '"one"'})
    site.hook(site.modules / "010-fails", "look.sh", {"afterHelm": 1}, "exit 1")
    passed_over = site.modules / "010-warns" / "crds"
    passed_over.mkdir()
    (passed_over / "parts.yml").write_text("{}\n")
    crds = site.modules / "010-defines" / "crds"
    crds.mkdir()
    (crds / "parts.yaml").write_text(_DEFINITION.replace("NAMESPACE", site.namespace))
    (site.modules / "010-random" / "templates" / "random.yaml").write_text(_RANDOM)


class State:
    """What people and other programs see of an operator's work."""

    def __init__(self, site: operator_site.Site, modules: module_objects.Modules) -> None:
        self._site = site
        self._modules = modules

    def now(self) -> dict[str, Any]:
        """Revisions, objects, and what Module objects say, without what counts tries and looks."""
        records = self._site.objects("secrets", labelSelector="owner=helm")
        found: dict[str, Any] = {
            each["metadata"]["name"]: each["metadata"]["resourceVersion"] for each in records
        }
        for kind in ("configmaps", "secrets"):
            for each in self._site.objects(kind):
                if each["metadata"]["name"] in {"works", "drifts", "random"}:
                    found[f"{kind}/{each['metadata']['name']}"] = each["data"]
        certificates = self._site.secret_data("addon-operator-admission")
        found |= {name: text for name, text in certificates.items() if name.endswith(".crt")}
        for word in _MODULES:
            for condition in (self._modules.get(word) or {})["status"]["conditions"]:
                key = f"{word} {condition['type']}"
                found[key] = (condition["status"], condition["reason"])
                if condition["type"] in {"Ready", "Healthy"}:
                    found[f"{key} since"] = condition["lastTransitionTime"]
        return found


def differences(before: dict[str, Any], after: dict[str, Any]) -> dict[str, tuple[Any, Any]]:
    names = before.keys() | after.keys()
    return {
        name: (before.get(name), after.get(name)) for name in names if before.get(name) != after.get(name)
    }


def wait_for_runs(site: operator_site.Site, operator: operator_process.OperatorProcess, count: int) -> None:
    operator.wait_until(lambda: len(site.runs()) >= count, "the one that fails is tried again, and again")


def wait_for_same(operator: operator_process.OperatorProcess, state: State, before: dict[str, Any]) -> None:
    """Wait until all is as before; while an operator starts, some conditions are not known."""
    different: dict[str, Any] = {}

    def is_same() -> bool:
        different.clear()
        different.update(differences(before, state.now()))
        return not different

    with contextlib.suppress(AssertionError):
        operator.wait_until(is_same, "all is as before", deadline=60)
    assert different == {}


@pytest.mark.slow
def test_an_upgrade_and_a_downgrade_make_no_revision_no_call_of_helm_and_no_notification(
    site: operator_site.Site,
    devcluster: handle.DevCluster,
    build_before: pathlib.Path,
    receiver: receivers.Receiver,
) -> None:
    write_modules(site)
    site.first_retry = operator_site.SOON
    receivers.write_targets(site, [receivers.target(receiver, "chat", "slack")])
    modules = module_objects.Modules(site, devcluster)
    state = State(site, modules)
    port = admitting.webhook_environment(operator_process.free_port())
    common = {"CONVERGE_ON_FAILURE": "continue", **port}

    operator = site.start(PYTHONPATH=str(build_before), **common)
    operator.wait_until(lambda: set(site.deployed()) == {*_MODULES}, "all")
    site.patch("configmap", "drifts", {"data": {"a": "by hand"}})
    operator.wait_until(lambda: modules.condition("drifts", "Drifted")["status"] == "True", "it has drifted")
    receiver.wait("/chat", 1)
    told, before = len(receiver.got), state.now()
    for build in (None, str(build_before)):
        operator.stop()
        calls, runs = len(site.helm_calls()), len(site.runs())
        operator = site.start(**common, **({"PYTHONPATH": build} if build else {}))
        wait_for_runs(site, operator, runs + 2)
        wait_for_same(operator, state, before)
        assert site.helm_calls()[calls:] == []
        assert len(receiver.got) == told, receiver.titles("/chat")
    operator.stop()
