"""Events about conflicts, as people see them."""

import pathlib
from collections.abc import Iterator

import pytest

from addon_operator.devcluster import handle
from tests.integration import admitting, operator_site
from tests.integration.admitting import Shop, container

pytestmark = pytest.mark.integration

CONFLICTING = container(env=[{"name": "DB_PORT", "value": "1"}])
SOURCE = "podpreset.admission.kubernetes.io/allow-database"
MESSAGE = "Conflict on pod preset. Duplicate env DB_PORT."


@pytest.fixture(scope="module")
def shop(devcluster: handle.DevCluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shop]:
    namespace = devcluster.namespace("operator")
    site = operator_site.Site(devcluster, namespace, tmp_path_factory.mktemp("operator"))
    with admitting.opened(site, devcluster) as found:
        found.preset()
        yield found
    site.close()
    devcluster.delete_namespace(namespace)


def of_pods(shop: Shop, prefix: str) -> list[admitting.Object]:
    found = shop.events("conflict")
    return [each for each in found if each["involvedObject"]["name"].startswith(prefix)]


def controlled(shop: Shop, kind: str, name: str, count: int) -> list[admitting.Object]:
    """Pods of a controller after each has its Event."""
    template: admitting.Object = {
        "metadata": {"labels": {**admitting.LABELS, "of": name}},
        "spec": {"containers": [CONFLICTING]},
    }
    if kind == "Job":
        template["spec"]["restartPolicy"] = "Never"
        spec = {"parallelism": count, "completions": count, "template": template}
    else:
        spec = {"replicas": count, "selector": {"matchLabels": {"of": name}}, "template": template}
    version = "batch/v1" if kind == "Job" else "apps/v1"
    shop.apply({"apiVersion": version, "kind": kind, "metadata": {"name": name}, "spec": spec})
    shop.operator.wait_until(lambda: len(of_pods(shop, f"{name}-")) >= count, f"{count} Events")
    return shop.items(admitting.PODS, f"?labelSelector=of={name}")


@pytest.mark.parametrize(("kind", "count"), [("ReplicaSet", 8), ("Job", 3), ("StatefulSet", 1)])
def test_each_pod_of_a_controller_has_its_own_event_once(shop: Shop, kind: str, count: int) -> None:
    name = kind.lower()
    pods = controlled(shop, kind, name, count)
    events = of_pods(shop, f"{name}-")
    assert sorted(each["involvedObject"]["uid"] for each in events) == sorted(
        pod["metadata"]["uid"] for pod in pods
    )
    assert {
        (each["type"], each["count"], each["source"]["component"], each["message"]) for each in events
    } == {("Warning", 1, SOURCE, MESSAGE)}


def test_kubectl_describe_shows_the_event(shop: Shop) -> None:
    shop.pod(CONFLICTING, metadata={"name": "described"})
    shop.operator.wait_until(lambda: of_pods(shop, "described"), "the Event")
    text = shop.cluster.run_kubectl("describe", "pod", "described", "-n", shop.namespace).stdout
    (line,) = [line for line in text.splitlines() if "conflict" in line and SOURCE in line]
    assert line.split()[0] == "Warning"
    assert line.endswith(MESSAGE)


def test_each_preset_in_conflict_tells_all_that_is_in_its_way(shop: Shop) -> None:
    labels = {"matchLabels": {"several": "yes"}}
    long = "n" * 253
    mount = {"name": "cache", "mountPath": "/cache"}
    for name in ("first", long):
        volumes = [{"name": "cache", "emptyDir": {}}]
        shop.preset(
            name, selector=labels, volumes=volumes, volumeMounts=[mount], env=[{"name": "A", "value": "1"}]
        )
    pod = container(volumeMounts=[{"name": "own", "mountPath": "/cache"}], env=[{"name": "A", "value": "2"}])
    made = shop.pod(
        pod,
        metadata={"name": "several", "labels": {"several": "yes"}},
        volumes=[{"name": "own", "emptyDir": {}}],
    )
    assert not any("podpreset-" in key for key in made["metadata"].get("annotations", {}))
    events = shop.operator.wait_until(
        lambda: found if len(found := of_pods(shop, "several")) == 2 else None, "two Events"
    )
    assert {each["source"]["component"].rpartition("/")[2] for each in events} == {"first", long}
    assert {each["message"] for each in events} == {
        "Conflict on pod preset. Duplicate env A. Duplicate mountPath /cache."
    }


def test_a_pod_that_another_admission_refuses_gives_no_event(shop: Shop) -> None:
    quota = {
        "apiVersion": "v1",
        "kind": "ResourceQuota",
        "metadata": {"name": "none"},
        "spec": {"hard": {"count/pods": "0"}},
    }
    other = Shop(shop.cluster.namespace("full"), shop.operator, shop.cluster, shop.client)
    other.preset()
    other.request("POST", f"/api/v1/namespaces/{other.namespace}/resourcequotas", quota)
    shop.operator.wait_until(
        lambda: other.items("/api/v1/namespaces/{}/resourcequotas")[0].get("status", {}).get("hard"),
        "the quota",
    )
    pod: admitting.Object = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "refused", "labels": admitting.LABELS},
        "spec": {"containers": [CONFLICTING]},
    }
    refused = other.client.request("POST", admitting.PODS.format(other.namespace), pod)
    assert not refused.is_success
    shop.pod(CONFLICTING, metadata={"name": "after"})
    shop.operator.wait_until(lambda: of_pods(shop, "after"), "an Event of a later pod")
    assert other.events("conflict") == []
    shop.cluster.delete_namespace(other.namespace)


def test_a_valid_preset_says_so_itself(
    devcluster: handle.DevCluster, tmp_path: pathlib.Path, shop: Shop
) -> None:
    created = shop.preset("valid")
    assert created["spec"]["env"][0]["value"] == 6379
    found = shop.operator.wait_until(
        lambda: (shop.stored_preset("valid").get("status") or {}).get("conditions"), "its condition"
    )
    assert [(each["type"], each["status"]) for each in found] == [("Valid", "True")]
