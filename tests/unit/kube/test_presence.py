"""Small questions about single objects and rights."""

import pytest

from addon_operator.kube import api_resources, client, errors, presence
from tests.fakes import api_server

CONFIG_MAP = api_resources.Resource("v1", "ConfigMap", "configmaps", True)
ROLE = api_resources.Resource("rbac.authorization.k8s.io/v1", "ClusterRole", "clusterroles", False)
PATH = "/api/v1/namespaces/x/configmaps/a"


@pytest.mark.parametrize(
    ("answer", "exists"),
    [
        (api_server.Answer({"metadata": {}}), True),
        (api_server.status(404, "NotFound"), False),
        (api_server.status(403, "Forbidden"), None),
    ],
    ids=["there", "gone", "no right"],
)
async def test_an_object_is_there_or_not_or_may_not_be_asked_for(
    server: api_server.ApiServer, kube: client.KubeClient, answer: api_server.Answer, exists: bool | None
) -> None:
    server.on("GET", PATH, answer)
    assert await presence.ObjectProbe(kube).exists(CONFIG_MAP, "x", "a") is exists
    assert "PartialObjectMetadata" in server.asked[0].headers["accept"]


async def test_an_object_of_the_cluster_has_no_namespace(
    server: api_server.ApiServer, kube: client.KubeClient
) -> None:
    server.on("GET", "/apis/rbac.authorization.k8s.io/v1/clusterroles/a:b", {"metadata": {}})
    assert await presence.ObjectProbe(kube).exists(ROLE, "", "a:b") is True


async def test_no_answer_is_no_verdict(server: api_server.ApiServer, kube: client.KubeClient) -> None:
    server.on("GET", PATH, api_server.status(409, "Conflict"))
    with pytest.raises(errors.Conflict):
        await presence.ObjectProbe(kube).exists(CONFIG_MAP, "x", "a")


@pytest.mark.parametrize(
    ("answer", "allowed"),
    [(api_server.Answer({"items": []}), True), (api_server.status(403, "Forbidden"), False)],
    ids=["allowed", "forbidden"],
)
async def test_the_right_to_list_everything_is_found_out_by_a_list_of_one(
    server: api_server.ApiServer, kube: client.KubeClient, answer: api_server.Answer, allowed: bool
) -> None:
    server.on("GET", "/api/v1/configmaps", answer)
    assert await presence.ObjectProbe(kube).may_list_everywhere(CONFIG_MAP) is allowed
    assert server.asked[0].query == {"limit": "1"}
