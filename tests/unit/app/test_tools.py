"""The release that installed the operator is found through the operator's pod."""

from typing import Any

import pytest

from addon_operator.app import tools
from addon_operator.kube.client import client
from addon_operator.settings import settings_loading
from tests.support import api_server

POD = "/api/v1/namespaces/addons/pods/operator-7d-x"
REPLICA_SET = "/apis/apps/v1/namespaces/addons/replicasets/operator-7d"
DEPLOYMENT = "/apis/apps/v1/namespaces/addons/deployments/operator"
HELM = {"meta.helm.sh/release-name": "ours", "meta.helm.sh/release-namespace": "addons"}


def owned(kind: str, name: str) -> list[dict[str, Any]]:
    return [{"apiVersion": "apps/v1", "kind": kind, "name": name, "controller": True}]


METADATA: dict[str, dict[str, Any]] = {
    POD: {"ownerReferences": owned("ReplicaSet", "operator-7d")},
    REPLICA_SET: {"ownerReferences": owned("Deployment", "operator")},
    DEPLOYMENT: {"annotations": HELM},
}


@pytest.fixture(autouse=True)
def cluster(server: api_server.ApiServer) -> api_server.ApiServer:
    """The API server, with the operator's pod and what owns it."""
    for path, metadata in METADATA.items():
        put(server, path, metadata)
    return server


def put(server: api_server.ApiServer, path: str, metadata: dict[str, Any]) -> None:
    server.on("GET", path, {"metadata": metadata})


async def test_the_release_is_that_of_the_pods_deployment(kube: client.KubeClient) -> None:
    assert await tools.find_own(kube, "addons", "operator-7d-x") == {"ours"}


@pytest.mark.parametrize("variable", ["ADDON_OPERATOR_POD", "HOSTNAME"])
async def test_the_pod_is_known_by_its_variables(variable: str, kube: client.KubeClient) -> None:
    environ = {"ADDON_OPERATOR_NAMESPACE": "addons", "HELM_IGNORE_RELEASE": "a,b", variable: "operator-7d-x"}
    found = await tools.ignored_releases(kube, settings_loading.load({}, environ), environ)
    assert found == {"ours", "a", "b"}


async def test_a_release_of_another_namespace_is_another_one(
    cluster: api_server.ApiServer, kube: client.KubeClient
) -> None:
    put(cluster, DEPLOYMENT, {"annotations": HELM | {"meta.helm.sh/release-namespace": "other"}})
    assert await tools.find_own(kube, "addons", "operator-7d-x") == frozenset()


@pytest.mark.parametrize("pod", ["", "laptop", "."])
async def test_an_operator_outside_the_cluster_has_no_release(pod: str, kube: client.KubeClient) -> None:
    assert await tools.find_own(kube, "addons", pod) == frozenset()


async def test_without_the_right_to_look_further_the_pods_labels_count(
    cluster: api_server.ApiServer, kube: client.KubeClient
) -> None:
    cluster.on("GET", REPLICA_SET, api_server.status(403, "Forbidden"))
    labels = {"app.kubernetes.io/managed-by": "Helm", "app.kubernetes.io/instance": "ours"}
    put(cluster, POD, METADATA[POD] | {"labels": labels})
    assert await tools.find_own(kube, "addons", "operator-7d-x") == {"ours"}


async def test_owners_that_own_each_other_end_the_search(
    cluster: api_server.ApiServer, kube: client.KubeClient
) -> None:
    put(cluster, DEPLOYMENT, METADATA[DEPLOYMENT] | {"ownerReferences": owned("ReplicaSet", "operator-7d")})
    assert await tools.find_own(kube, "addons", "operator-7d-x") == {"ours"}
