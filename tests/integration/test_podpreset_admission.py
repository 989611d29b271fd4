"""Presets in pods that a real API server creates."""

import pathlib
from collections.abc import Iterator

import pytest

from addon_operator.devcluster import api, handle, layout
from tests.integration import admitting, operator_process, operator_site
from tests.integration.admitting import Shop, container

pytestmark = pytest.mark.integration

ANNOTATION = "podpreset.admission.kubernetes.io/podpreset-allow-database"


@pytest.fixture(scope="module")
def operator(
    devcluster: handle.DevCluster, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[operator_process.OperatorProcess]:
    namespace = devcluster.namespace("operator")
    site = operator_site.Site(devcluster, namespace, tmp_path_factory.mktemp("operator"))
    with admitting.admitting(site, devcluster) as running:
        yield running
    site.close()
    devcluster.delete_namespace(namespace)


@pytest.fixture
def shop(operator: operator_process.OperatorProcess, devcluster: handle.DevCluster) -> Iterator[Shop]:
    namespace = devcluster.namespace("shop")
    client = api.ApiClient(layout.Layout(devcluster.kubeconfig.parent), devcluster.url)
    yield Shop(namespace, operator, devcluster, client)
    devcluster.delete_namespace(namespace)


def test_a_preset_reaches_all_containers_of_a_pod_created_right_after_it(shop: Shop) -> None:
    created = shop.preset(
        env=[{"name": "DB_PORT", "value": 6379}],
        envFrom=[{"configMapRef": {"name": "settings"}}],
        volumes=[{"name": "cache", "emptyDir": {}}],
        volumeMounts=[{"name": "cache", "mountPath": "/cache"}],
    )
    pod = shop.pod(
        container(env=[{"name": "OWN", "value": "1"}]),
        initContainers=[container("init"), container("sidecar", restartPolicy="Always")],
    )
    spec = pod["spec"]
    assert [each["name"] for each in spec["containers"][0]["env"]] == ["OWN", "DB_PORT"]
    for each in (*spec["containers"], *spec["initContainers"]):
        assert each["env"][-1] == {"name": "DB_PORT", "value": "6379"}
        assert each["envFrom"] == [{"configMapRef": {"name": "settings"}}]
        assert each["volumeMounts"][-1] == {"name": "cache", "mountPath": "/cache"}
    assert spec["volumes"][-1] == {"name": "cache", "emptyDir": {}}
    # Its status may have been written in between.
    assert int(pod["metadata"]["annotations"][ANNOTATION]) >= int(created["metadata"]["resourceVersion"])


def test_a_change_of_presets_is_seen_by_the_very_next_pod(shop: Shop) -> None:
    for _ in range(15):
        shop.preset()
        assert "env" in shop.pod()["spec"]["containers"][0]
        shop.delete_preset()
        assert "env" not in shop.pod()["spec"]["containers"][0]


def test_pods_of_a_deployment_are_changed_and_the_deployment_is_not(shop: Shop) -> None:
    shop.preset()
    labels = {"matchLabels": admitting.LABELS}
    template = {"metadata": {"labels": admitting.LABELS}, "spec": {"containers": [container()]}}
    shop.apply(
        {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": {"name": "web"},
            "spec": {"replicas": 2, "selector": labels, "template": template},
        }
    )
    pods = shop.operator.wait_until(
        lambda: found if len(found := shop.items(admitting.PODS)) == 2 else None, "two pods"
    )
    assert all(pod["spec"]["containers"][0]["env"] for pod in pods)
    (deployment,) = shop.items("/apis/apps/v1/namespaces/{}/deployments")
    assert "env" not in deployment["spec"]["template"]["spec"]["containers"][0]


@pytest.mark.parametrize(
    ("annotations", "labels", "injected"),
    [
        ({"podpreset.admission.kubernetes.io/exclude": "true"}, admitting.LABELS, False),
        ({"podpreset.admission.kubernetes.io/exclude": "True"}, admitting.LABELS, True),
        ({}, {"role": "backend"}, False),
        ({}, {}, False),
    ],
    ids=["excluded", "another text", "other labels", "no labels"],
)
def test_a_preset_reaches_the_pods_that_it_selects_and_that_want_it(
    shop: Shop, annotations: dict[str, str], labels: dict[str, str], injected: bool
) -> None:
    shop.preset()
    pod = shop.pod(annotations=annotations, metadata={"labels": labels})
    assert ("env" in pod["spec"]["containers"][0]) is injected


def test_presets_of_other_namespaces_and_of_exempt_ones_have_no_effect(
    shop: Shop, devcluster: handle.DevCluster
) -> None:
    shop.preset()
    other = Shop(devcluster.namespace("other"), shop.operator, devcluster, shop.client)
    assert "env" not in other.pod()["spec"]["containers"][0]
    devcluster.delete_namespace(other.namespace)


def test_an_identical_secret_volume_is_not_a_conflict_after_defaulting(shop: Shop) -> None:
    volume = {"name": "login", "secret": {"secretName": "login"}}
    mount = {"name": "login", "mountPath": "/login"}
    shop.preset(volumes=[volume], volumeMounts=[mount])
    pod = shop.pod(container(volumeMounts=[mount]), volumes=[volume])
    assert ANNOTATION in pod["metadata"]["annotations"]
    assert [each["name"] for each in pod["spec"]["volumes"]].count("login") == 1


def test_a_variable_that_the_pods_secret_defines_is_a_conflict(shop: Shop) -> None:
    secret = {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": "login"},
        "stringData": {"DB_PORT": "1"},
    }
    shop.request("POST", f"/api/v1/namespaces/{shop.namespace}/secrets", secret)
    shop.preset()
    pod = shop.pod(container(envFrom=[{"secretRef": {"name": "login"}}]))
    assert "env" not in pod["spec"]["containers"][0]
    (event,) = shop.wait_events("conflict", 1)
    assert event["message"] == "Conflict on pod preset. Env DB_PORT is also set by envFrom Secret login."


@pytest.mark.slow
def test_the_status_says_valid_and_counts_a_burst_in_a_handful_of_writes(shop: Shop) -> None:
    shop.preset()
    for number in range(40):
        shop.pod(*([container(env=[{"name": "DB_PORT", "value": "1"}])] if number % 4 == 0 else []))

    def status() -> admitting.Object | None:
        found: admitting.Object = shop.stored_preset().get("status") or {}
        return found if (found.get("injected"), found.get("conflicts")) == (30, 10) else None

    found = shop.operator.wait_until(status, "all pods are counted")
    (condition,) = found["conditions"]
    assert (condition["type"], condition["status"]) == ("Valid", "True")
    managed = shop.stored_preset()["metadata"]["managedFields"]
    assert any(each.get("subresource") == "status" for each in managed)


@pytest.mark.slow
def test_a_dry_run_is_answered_alike_and_leaves_no_trace(shop: Shop) -> None:
    shop.preset()
    assert "env" in shop.pod(dry_run=True)["spec"]["containers"][0]
    conflicting = container(env=[{"name": "DB_PORT", "value": "1"}])
    shop.pod(conflicting, dry_run=True, metadata={"name": "dry"})
    shop.pod(conflicting, metadata={"name": "wet"})
    events = shop.wait_events("conflict", 1)
    assert [each["involvedObject"]["name"] for each in events] == ["wet"]
    status = shop.operator.wait_until(
        lambda: found if (found := shop.stored_preset().get("status") or {}).get("conflicts") else None,
        "the conflict is counted",
    )
    assert (status["injected"], status["conflicts"]) == (0, 1)


def test_results_are_counted(shop: Shop) -> None:
    shop.preset()
    shop.pod()
    shop.pod(metadata={"labels": {"role": "backend"}})
    shop.pod(container(env=[{"name": "DB_PORT", "value": "1"}]))
    for result in ("injected", "unchanged", "conflict"):
        shop.operator.wait_metric(1, "podpreset_admissions_total", namespace=shop.namespace, result=result)
    assert shop.operator.metrics().total("webhook_certificate_expiry_seconds") > 300 * 24 * 3600


@pytest.mark.slow
def test_a_restarted_operator_goes_on_with_the_same_certificates_and_webhooks(
    devcluster: handle.DevCluster, tmp_path: pathlib.Path
) -> None:
    namespace = devcluster.namespace("operator")
    site = operator_site.Site(devcluster, namespace, tmp_path)
    environment = admitting.webhook_environment(operator_process.free_port())
    try:
        with admitting.opened(site, devcluster, **environment) as shop:
            shop.preset()
            shop.operator.stop()
            path = f"{admitting.CONFIGURATIONS[0]}/addon-operator-{namespace}"
            left = shop.request("GET", path)
            again = site.start(**environment).wait_ready()
            # The API server may still hold connections to the former process: with the policy Ignore a pod
            # that meets one goes without presets.
            again.wait_until(lambda: admitting.is_injected(shop, again), "a pod is injected")
            found = shop.request("GET", path)
            assert found["metadata"]["resourceVersion"] == left["metadata"]["resourceVersion"]
    finally:
        site.close()
        devcluster.delete_namespace(namespace)
