"""Releases outside of the operator's namespace: made, found again, moved and removed."""

import json
import pathlib

import pytest

from addon_operator.devcluster import handle
from tests.integration import charts, operator_process, operator_site

pytestmark = pytest.mark.integration

_SHARED = """
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: NAME}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: fixed, namespace: NAMESPACE}
"""


_CLAIM = """\
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: data}
spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}
"""


def write(site: operator_site.Site, directory: str = "010-web", **config: object) -> pathlib.Path:
    """A module whose release is where ``config`` says; its ConfigMap is named as the release."""
    module = site.module(directory, {"a": "b"}, values=f"{directory[4:]}Enabled: true")
    say(module, **config)
    return module


def say(module: pathlib.Path, **config: object) -> None:
    (module / "module.yaml").write_text(json.dumps(config))


def forget(module: pathlib.Path) -> None:
    """Take the module away."""
    for path in sorted(module.rglob("*"), reverse=True):
        path.rmdir() if path.is_dir() else path.unlink()
    module.rmdir()


def names(site: operator_site.Site, namespace: str) -> set[str]:
    """The ConfigMaps of a namespace."""
    found = site.listed("configmap", namespace)
    return {each["metadata"]["name"] for each in found} - {"kube-root-ca.crt"}


def records(site: operator_site.Site, namespace: str, kind: str = "secret") -> dict[str, int]:
    """The last revision of each release of a namespace."""
    labels = [each["metadata"]["labels"] for each in site.listed(kind, namespace, labelSelector="owner=helm")]
    return {
        each["name"]: int(each["version"]) for each in sorted(labels, key=lambda one: int(one["version"]))
    }


def run(site: operator_site.Site, **environment: str) -> operator_process.OperatorProcess:
    return site.start(**environment).wait_ready().wait_idle()


def test_a_release_elsewhere_goes_with_its_module_also_while_no_operator_runs(
    site: operator_site.Site,
) -> None:
    edge = f"{site.namespace}-edge"
    site.module("020-other", {"a": "b"}, values="otherEnabled: true")
    # What says so goes with the directory, and is remembered.
    module = write(site, namespace=edge, createNamespace=True, removal={"data": "delete"})
    (module / "templates" / "claim.yaml").write_text(_CLAIM)
    run(site).stop()
    assert names(site, edge) == {"web"}
    assert site.find("pvc", "data", edge)
    forget(module)
    operator = run(site)
    operator.wait_until(lambda: records(site, edge) == {}, "it is purged")
    operator.wait_until(lambda: site.find("pvc", "data", edge) is None, "so is its data")
    assert names(site, edge) == set()
    assert f"release {edge}/web is purged: no module directory explains it" in operator.log
    operator.stop()
    calls = len(site.helm_calls())
    run(site).stop()
    assert len(site.helm_calls()) == calls


@pytest.mark.slow
def test_a_namespace_that_is_gone_keeps_nobody_from_forgetting_the_module(
    site: operator_site.Site,
) -> None:
    edge = f"{site.namespace}-edge"
    site.module("020-other", {"a": "b"}, values="otherEnabled: true")
    module = write(site, namespace=edge, createNamespace=True)
    run(site).stop()
    forget(module)
    site.delete("namespace", edge)
    operator = run(site)
    assert site.revisions() == {"other": 1}
    assert "level=error" not in operator.log
    operator.stop()


@pytest.mark.slow
def test_a_release_that_moves_keeps_what_both_have(site: operator_site.Site) -> None:
    edge = f"{site.namespace}-edge"
    module = write(site)
    shared = _SHARED.replace("NAMESPACE", site.namespace).replace("NAME", site.namespace)
    (module / "templates" / "shared.yaml").write_text(shared)
    (module / "templates" / "claim.yaml").write_text(_CLAIM)
    operator = run(site, WATCH_MODULES="yes", REMOVAL_DATA="delete")

    def uids() -> list[str]:
        path = "--output=jsonpath={.metadata.uid}"
        kinds = (("clusterrole", site.namespace), ("configmap", "fixed"))
        return [site.kubectl("get", *each, path) for each in kinds]

    before, claim = uids(), site.get("pvc", "data")["metadata"]["uid"]
    say(module, namespace=edge, createNamespace=True)
    operator_process.wait_until(
        lambda: site.revisions() == {} and records(site, edge) == {"web": 1}, "the release moves"
    )
    operator.wait_idle()
    assert "web" in names(site, edge)
    assert names(site, site.namespace) == {"fixed"}
    assert uids() == before
    # The data stays where it is: nobody asked that it goes.
    kept = site.get("pvc", "data")["metadata"]
    assert (kept["uid"], kept["labels"]["addon-operator.io/kept-from"]) == (claim, "web")
    assert "deletionTimestamp" not in kept
    say(module, namespace=edge, releaseName="front")
    operator_process.wait_until(lambda: records(site, edge) == {"front": 1}, "the release has its new name")
    operator.wait_idle()
    assert names(site, edge) == {"front"}
    assert uids() == before
    site.delete("configmap", "fixed")
    operator.wait_metric(1, "resources_healed_total", module="web")
    before = uids()
    (module / "module.yaml").unlink()
    operator_process.wait_until(lambda: site.deployed() == {"web": 1}, "the release is back")
    operator_process.wait_until(lambda: records(site, edge) == {}, "nothing of it is left elsewhere")
    operator.wait_idle()
    assert names(site, site.namespace) == {"web", "fixed"}
    assert names(site, edge) == set()
    assert uids() == before
    back = site.get("pvc", "data")["metadata"]
    assert (back["uid"], "addon-operator.io/kept-from" in back["labels"]) == (claim, False)
    operator.stop()
    site.delete("clusterrole", site.namespace)


def test_a_release_of_another_operator_is_neither_removed_nor_changed(
    site: operator_site.Site, devcluster: handle.DevCluster
) -> None:
    edge = f"{site.namespace}-edge"
    site.create("namespace", edge)
    chart = site.module("010-web", {"a": "b"}, values="webEnabled: true")
    for name, labels in {
        "theirs": "addon-operator.io/managed=true,addon-operator.io/operator=somewhere",
        "old": "addon-operator.io/managed=true",
        "ours": f"addon-operator.io/managed=true,addon-operator.io/operator={site.namespace}",
    }.items():
        devcluster.run_helm(f"--namespace={edge}", "install", name, str(chart), "--labels", labels)
    labels = "addon-operator.io/managed=true,addon-operator.io/operator=somewhere"
    devcluster.run_helm(f"--namespace={site.namespace}", "install", "guest", str(chart), "--labels", labels)
    say(chart, namespace=edge)
    conflict = write(site, "020-theirs", namespace=edge)
    operator = site.start()
    try:
        operator_process.wait_until(
            lambda: (
                "belongs to the operator in namespace somewhere"
                in str(site.module_rows().get("theirs", {}).get("lastError"))
            ),
            "the conflict is told",
        )
        # Who edits Secrets there may have written our labels.
        operator.wait_logged(f"no module has {edge}/ours", "helm uninstall")
        forget(conflict)
    finally:
        operator.stop()
    run(site).wait_idle().stop()
    assert records(site, edge) == {"web": 1, "theirs": 1, "old": 1, "ours": 1}
    assert site.revisions() == {"guest": 1}


@pytest.mark.slow
def test_releases_that_modules_must_not_touch_are_refused_as_releasename(site: operator_site.Site) -> None:
    edge = f"{site.namespace}-edge"
    module = write(site, releaseName="kept")
    site.install("kept", module)
    elsewhere = write(site, "020-kept", namespace=edge, createNamespace=True)
    operator = site.start(HELM_IGNORE_RELEASE="kept")
    try:
        operator_process.wait_until(
            lambda: "HELM_IGNORE_RELEASE" in site.command("module", "describe", "web").stdout,
            "the mistake is shown",
        )
        assert site.revisions() == {"kept": 1}
        plan = site.command("plan", HELM_IGNORE_RELEASE="kept").stdout
        assert "HELM_IGNORE_RELEASE" in plan
        site.config(webEnabled="false")
        operator.wait_idle()
        assert records(site, edge) == {"kept": 1}
        site.config(keptEnabled="false")
        operator_process.wait_until(lambda: records(site, edge) == {}, "that of another namespace goes")
    finally:
        operator.stop()
    forget(elsewhere)
    run(site, HELM_IGNORE_RELEASE="kept").stop()
    assert site.revisions() == {"kept": 1}


@pytest.mark.slow
def test_records_elsewhere_may_be_configmaps(site: operator_site.Site) -> None:
    edge = f"{site.namespace}-edge"
    site.module("020-other", {"a": "b"}, values="otherEnabled: true")
    module = write(site, namespace=edge, createNamespace=True, releaseName="front")
    run(site, HELM_DRIVER="configmap").stop()
    assert records(site, edge, "configmap") == {"front": 1}
    calls = len(site.helm_calls())
    run(site, HELM_DRIVER="configmap").stop()
    assert len(site.helm_calls()) == calls
    forget(module)
    operator = run(site, HELM_DRIVER="configmap")
    operator.wait_until(lambda: names(site, edge) == set(), "it is purged")
    operator.stop()


def lists(operator: operator_process.OperatorProcess) -> dict[str, int]:
    """How often records were listed: in the whole cluster, and in single namespaces."""
    metrics = operator.metrics()
    paths = {"cluster": "/api/v1/secrets", "namespace": "/api/v1/namespaces/{namespace}/secrets"}
    name = "kubernetes_client_request_latency_seconds_count"
    return {where: int(metrics.total(name, verb="list", url=url)) for where, url in paths.items()}


@pytest.mark.slow
def test_a_start_lists_the_records_once_and_starts_no_helm(site: operator_site.Site) -> None:
    for number, name in enumerate(("a", "b", "c")):
        write(site, f"01{number}-{name}", namespace=f"{site.namespace}-{name}", createNamespace=True)
    site.module("020-web", {"a": "b"}, values="webEnabled: true")
    run(site).stop()
    calls = len(site.helm_calls())
    operator = run(site)
    # Each release is read once more, alone, for what is to be watched: after the first converge.
    expected = {"cluster": 1, "namespace": 4}
    operator.wait_until(lambda: lists(operator) == expected, "what is watched was read")
    operator.wait_idle()
    assert lists(operator) == expected
    operator.stop()
    assert len(site.helm_calls()) == calls


@pytest.mark.slow
def test_a_removal_elsewhere_that_was_interrupted_is_finished_after_a_restart(
    site: operator_site.Site,
) -> None:
    edge = f"{site.namespace}-edge"
    module = write(site, namespace=edge, createNamespace=True, releaseName="front")
    stop = 'test -e "$(dirname "$TRACE")/go" || exit 1'
    site.hook(module, "after.sh", {"afterDeleteHelm": 1}, stop)
    operator = run(site)
    site.config(webEnabled="false")
    operator.wait_until(lambda: "after.sh afterDeleteHelm" in site.labels(), "the hook fails")
    operator.kill()
    assert names(site, edge) == set()
    assert records(site, edge) == {"front": 1}
    (site.root / "go").touch()
    run(site).stop()
    assert records(site, edge) == {}


@pytest.mark.slow
def test_a_release_elsewhere_that_nobody_of_ours_made_is_adopted(
    site: operator_site.Site, devcluster: handle.DevCluster
) -> None:
    edge = f"{site.namespace}-edge"
    site.create("namespace", edge)
    site.module("020-other", {"a": "b"}, values="otherEnabled: true")
    module = write(site, namespace=edge, releaseName="front")
    devcluster.run_helm(f"--namespace={edge}", "install", "front", str(module))
    site.chart(module, {"a": "c"})
    shown = site.command("plan").stdout
    assert "upgrade" in shown
    assert "was not made by this operator" in shown
    assert f"{edge}/front" in shown
    operator = run(site)
    assert records(site, edge) == {"front": 2}
    assert "was not made by this operator" in operator.log
    operator.stop()
    forget(module)
    assert f"{edge}/front" in site.command("plan").stdout
    operator = run(site)
    operator.wait_until(lambda: records(site, edge) == {}, "it is purged")
    operator.stop()


@pytest.mark.slow
def test_a_namespace_that_somebody_deletes_comes_back_with_the_release(site: operator_site.Site) -> None:
    site.first_retry = operator_site.SOON
    edge = f"{site.namespace}-edge"
    write(site, namespace=edge, createNamespace=True)
    lost = f"{site.namespace}-lost"
    site.create("namespace", lost)
    write(site, "020-db", namespace=lost)
    operator = run(site)
    try:
        site.delete("namespace", edge, lost, waits=False)
        operator.wait_until(lambda: names_or_none(site, edge) == {"web"}, "the namespace is there again")
        operator.wait_until(
            lambda: "createNamespace: true" in site.command("module", "describe", "db").stdout,
            "the other module says what to do",
        )
        site.create("namespace", lost)
        operator.wait_until(lambda: names_or_none(site, lost) == {"db"}, "the other release is there again")
    finally:
        operator.kill()
    assert "Traceback" not in operator.log


def names_or_none(site: operator_site.Site, namespace: str) -> set[str] | None:
    found = site.find("namespace", namespace)
    return names(site, namespace) if found and found["status"]["phase"] == "Active" else None


@pytest.mark.slow
def test_maintenance_and_healing_work_elsewhere(site: operator_site.Site) -> None:
    edge = f"{site.namespace}-edge"
    module = write(site, namespace=edge, createNamespace=True, releaseName="front")
    operator = run(site)
    shown = site.command("module", "describe", "web").stdout
    assert f"{edge}/front" in shown
    assert f"{edge}/front" in site.command("module", "list", "-o", "wide").stdout
    path = "--output=jsonpath={.status.release.namespace}/{.status.release.name}"
    asked = ("get", "modules.addon-operator.io", "--field-selector=metadata.name=web")
    path = path.replace("{.status", "{.items[*].status")
    operator.wait_until(lambda: site.kubectl(*asked, path) == f"{edge}/front", "the Module says it, too")
    changed = "values ConfigMap changed"
    site.config(webMaintenance="NoResourceReconciliation")
    operator.wait_logged(changed)
    operator.wait_idle()
    site.delete("configmap", "front", namespace=edge)
    site.chart(module, {"a": "c"})
    site.config(web="x: 1")
    operator.wait_until(lambda: operator.log.count(changed) == 2, "the second edit is taken, too")
    operator.wait_idle()
    assert records(site, edge) == {"front": 1}
    assert names(site, edge) == set()
    site.config(webMaintenance=None)
    operator.wait_until(lambda: names(site, edge) == {"front"}, "it is maintained again")
    operator.stop()


@pytest.mark.slow
def test_a_role_in_each_namespace_is_enough(devcluster: handle.DevCluster, site: operator_site.Site) -> None:
    edge, locked = f"{site.namespace}-edge", f"{site.namespace}-locked"
    for namespace in (edge, locked):
        site.create("namespace", namespace)
    site.module("030-other", {"a": "b"}, values="otherEnabled: true")
    module = write(site, namespace=edge, createNamespace=True, releaseName="front")
    write(site, "020-db", namespace=locked)
    values: dict[str, object] = {
        "rbac.modules": "namespace-admin",
        "releaseNamespaces": [edge],
        "podPresets.enabled": False,
    }
    off = {"ADMISSION_SERVER_ENABLED": "false", "CONVERGE_ON_FAILURE": "continue"}
    with charts.installed(devcluster, site, values) as installation:
        with charts.operating(installation, **off) as operator:
            operator.wait_until(lambda: names(site, edge) == {"front"}, "it is installed")
            operator.wait_until(
                lambda: "releaseNamespaces" in site.command("module", "describe", "db").stdout,
                "the module without rights says what to do",
            )
            assert f"releases in namespace {locked} are neither made nor removed" in operator.log
            site.delete("configmap", "front", namespace=edge)
            operator.wait_metric(1, "resources_healed_total", module="web")
            operator.stop()
        forget(site.modules / "020-db")
        calls = len(site.helm_calls())
        with charts.operating(installation, **off) as operator:
            operator.wait_ready().wait_idle()
            # Refused for the cluster; then two namespaces, and each of two releases for its watch.
            assert lists(operator) == {"cluster": 1, "namespace": 4}
            assert len(site.helm_calls()) == calls
            operator.stop()
        forget(module)
        with charts.operating(installation, **off) as operator:
            operator.wait_ready().wait_until(lambda: names(site, edge) == set(), "both are purged")
            operator.stop()
    for namespace in (edge, locked):
        site.delete("namespace", namespace, waits=False)


@pytest.mark.slow
def test_a_release_stays_until_the_one_that_takes_its_place_is_there(site: operator_site.Site) -> None:
    site.first_retry = operator_site.SOON
    edge = f"{site.namespace}-edge"
    module = write(site)
    run(site).stop()
    say(module, namespace=edge)
    operator = site.start(CONVERGE_ON_FAILURE="continue")
    operator.wait_logged(f"its release was {site.namespace}/web and stays until the new one, {edge}/web, is")
    assert site.revisions() == {"web": 1}
    site.create("namespace", edge)
    operator.wait_until(lambda: site.revisions() == {}, "the release has moved")
    assert records(site, edge) == {"web": 1}
    operator.kill()
