"""The release that installed the operator is found through the operator's pod."""

from typing import Any, cast

import pytest

from addon_operator.app import tools
from addon_operator.kube.client import api_errors, client, paths
from addon_operator.settings import settings

POD = "/api/v1/namespaces/addons/pods/operator-7d-x"
REPLICA_SET = "/apis/apps/v1/namespaces/addons/replicasets/operator-7d"
DEPLOYMENT = "/apis/apps/v1/namespaces/addons/deployments/operator"
HELM = {"meta.helm.sh/release-name": "ours", "meta.helm.sh/release-namespace": "addons"}


def owned(kind: str, name: str) -> list[dict[str, Any]]:
    return [{"apiVersion": "apps/v1", "kind": kind, "name": name, "controller": True}]


class Cluster:
    def __init__(self) -> None:
        self.metadata: dict[str, dict[str, Any]] = {
            POD: {"ownerReferences": owned("ReplicaSet", "operator-7d")},
            REPLICA_SET: {"ownerReferences": owned("Deployment", "operator")},
            DEPLOYMENT: {"annotations": HELM},
        }
        self.denied: set[str] = set()

    async def get(self, path: str, *, metadata_only: bool) -> dict[str, Any]:
        assert metadata_only
        if path in self.denied:
            raise api_errors.Forbidden(paths.target("GET", path), 403, "Forbidden", "no")
        if path not in self.metadata:
            raise api_errors.NotFound(paths.target("GET", path), 404, "NotFound", "gone")
        return {"metadata": self.metadata[path]}


def as_client(cluster: Cluster) -> client.KubeClient:
    return cast("client.KubeClient", cluster)


async def find(cluster: Cluster, namespace: str, pod: str) -> frozenset[str]:
    return await tools.find_own(as_client(cluster), namespace, pod)


async def test_the_release_is_that_of_the_pods_deployment() -> None:
    assert await find(Cluster(), "addons", "operator-7d-x") == {"ours"}


@pytest.mark.parametrize("variable", ["ADDON_OPERATOR_POD", "HOSTNAME"])
async def test_the_pod_is_known_by_its_variables(variable: str) -> None:
    environ = {"ADDON_OPERATOR_NAMESPACE": "addons", "HELM_IGNORE_RELEASE": "a,b", variable: "operator-7d-x"}
    found = await tools.ignored_releases(as_client(Cluster()), settings.load({}, environ), environ)
    assert found == {"ours", "a", "b"}


async def test_a_release_of_another_namespace_is_another_one() -> None:
    cluster = Cluster()
    cluster.metadata[DEPLOYMENT] = {"annotations": HELM | {"meta.helm.sh/release-namespace": "other"}}
    assert await find(cluster, "addons", "operator-7d-x") == frozenset()


@pytest.mark.parametrize("pod", ["", "laptop", "."])
async def test_an_operator_outside_the_cluster_has_no_release(pod: str) -> None:
    assert await find(Cluster(), "addons", pod) == frozenset()


async def test_without_the_right_to_look_further_the_pods_labels_count() -> None:
    cluster = Cluster()
    cluster.denied = {REPLICA_SET}
    labels = {"app.kubernetes.io/managed-by": "Helm", "app.kubernetes.io/instance": "ours"}
    cluster.metadata[POD]["labels"] = labels
    assert await find(cluster, "addons", "operator-7d-x") == {"ours"}


async def test_owners_that_own_each_other_end_the_search() -> None:
    cluster = Cluster()
    cluster.metadata[DEPLOYMENT]["ownerReferences"] = owned("ReplicaSet", "operator-7d")
    assert await find(cluster, "addons", "operator-7d-x") == {"ours"}
