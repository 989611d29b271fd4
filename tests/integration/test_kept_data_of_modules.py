"""Modules change, go, move and come back: what holds data is the same object all the time."""

import json
import pathlib
from typing import Any, Final

import pytest

from addon_operator.devcluster import handle
from tests.integration import module_objects, operator_process, operator_site

pytestmark = pytest.mark.integration

CLAIM: Final = """\
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: NAME}
spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}
"""
DEFINITION: Final = """\
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: bells.GROUP}
spec:
  group: GROUP
  names: {kind: Bell, plural: bells}
  scope: Namespaced
  versions:
  - {name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}
"""
KEPT: Final = "addon-operator.io/kept-from"


@pytest.fixture
def modules(site: operator_site.Site, devcluster: handle.DevCluster) -> module_objects.Modules:
    return module_objects.Modules(site, devcluster)


def write(site: operator_site.Site, directory: str, *claims: str) -> pathlib.Path:
    name = directory.partition("-")[2]
    module = site.module(directory, {"a": "b"}, values=f"{name}Enabled: true")
    texts = (CLAIM.replace("NAME", claim) for claim in claims)
    (module / "templates" / "claims.yaml").write_text("---\n".join(texts))
    return module


def claims(site: operator_site.Site, **selectors: str) -> dict[str, str]:
    """The uids of claims, by their names."""
    found = site.objects("persistentvolumeclaims", **selectors)
    return {each["metadata"]["name"]: each["metadata"]["uid"] for each in found}


def kept(site: operator_site.Site) -> dict[str, str]:
    """The releases that claims are kept from, by their names."""
    found = site.objects("persistentvolumeclaims", labelSelector=KEPT)
    return {each["metadata"]["name"]: each["metadata"]["labels"][KEPT] for each in found}


def definition(site: operator_site.Site, group: str) -> tuple[str, bool]:
    """The uid of the definition, and whether it is marked."""
    found: dict[str, Any] = json.loads(site.kubectl("get", "crd", f"bells.{group}", "--output=json"))
    return found["metadata"]["uid"], KEPT in found["metadata"]["labels"]


def check_told(
    site: operator_site.Site, modules: module_objects.Modules, operator: operator_process.OperatorProcess
) -> None:
    """What stays is in the log, in Events, and in the status of modules that are there."""
    shown = (modules.get("web") or {})["status"]["kept"]
    (entry,) = shown
    assert entry.pop("since")
    assert entry == {
        "kind": "PersistentVolumeClaim", "namespace": site.namespace, "name": "web", "release": "web",
    }  # fmt: skip
    assert (modules.get("moved") or {})["status"]["kept"][0]["name"] == "moved"
    line = operator.wait_logged("release gone: PersistentVolumeClaim", "stays: it holds data")
    assert "level=warn" in line
    told = operator.wait_until(lambda: site.objects("events", fieldSelector="reason=Kept"), "Events")
    by_kind = {each["involvedObject"]["kind"]: each["message"] for each in told}
    assert by_kind.keys() == {"ConfigMap", "Module"}
    assert f"kubectl delete pvc gone --namespace {site.namespace}" in by_kind["ConfigMap"]


def test_what_holds_data_stays_and_comes_back_with_its_modules(
    site: operator_site.Site, modules: module_objects.Modules
) -> None:
    group = f"{site.namespace}.example"
    bell = write(site, "010-bell")
    (bell / "templates" / "crd.yaml").write_text(DEFINITION.replace("GROUP", group))
    write(site, "020-web", "web")
    gone = write(site, "030-gone", "gone")
    old = write(site, "040-old", "fixed", "{{ .Release.Name }}-own")
    moved = write(site, "050-moved", "moved")
    operator = site.start(WATCH_MODULES="yes").wait_ready().wait_idle()
    uids, defined = claims(site), definition(site, group)
    assert uids.keys() == {"web", "gone", "fixed", "old-own", "moved"}

    # The chart's definition moves to crds/.
    (bell / "crds").mkdir()
    (bell / "templates" / "crd.yaml").rename(bell / "crds" / "bell.yaml")
    operator.wait_until(lambda: site.deployed()["bell"] == 2, "it has left the release")
    assert definition(site, group) == defined

    # A module is disabled, one is gone, one is renamed, and one moves to another namespace.
    site.config(webEnabled="false")
    operator.wait_until(lambda: kept(site) == {"web": "web"}, "it is kept")
    modules.wait(operator, "web", Enabled="False")
    gone.rename(site.root / "away")
    new = old.rename(site.modules / "040-new")
    (new / "values.yaml").write_text("newEnabled: true")
    elsewhere = f"{site.namespace}-edge"
    (moved / "module.yaml").write_text(json.dumps({"namespace": elsewhere, "createNamespace": True}))
    operator.wait_until(lambda: site.deployed().keys() == {"bell", "new"}, "the others are gone")
    everything = {"web": "web", "gone": "gone", "old-own": "old", "moved": "moved"}
    operator.wait_until(lambda: kept(site) == everything, "all is kept")
    assert claims(site).items() >= uids.items()
    assert claims(site).keys() - uids.keys() == {"new-own"}

    check_told(site, modules, operator)

    # All of it comes back, whatever TAKE_OWNERSHIP says, also under another name.
    operator.stop()
    write(site, "060-again", "gone")
    (moved / "module.yaml").unlink()
    operator = site.start(TAKE_OWNERSHIP="never").wait_ready()
    operator.wait_until(
        lambda: "web" in str((modules.get("web") or {})["status"].get("kept")), "it is still shown"
    )
    site.config(webEnabled=None)
    operator.wait_until(lambda: kept(site) == {"old-own": "old"}, "it is the modules' again")
    operator.wait_idle().wait_ready()
    assert claims(site).items() >= uids.items()
    assert "kept" not in (modules.get("web") or {})["status"]
    operator.stop()
    site.kubectl("delete", f"namespace/{elsewhere}", f"crd/bells.{group}", "--wait=false")
