"""Small questions about single objects and rights."""

import pytest

from addon_operator.kube import api_errors
from addon_operator.kube.client import client
from addon_operator.kube.discovery import api_resources, presence
from tests.support import api_server

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


async def test_no_answer_is_not_a_verdict(server: api_server.ApiServer, kube: client.KubeClient) -> None:
    server.on("GET", PATH, api_server.status(409, "Conflict"))
    with pytest.raises(api_errors.Conflict):
        await presence.ObjectProbe(kube).exists(CONFIG_MAP, "x", "a")


REVIEWS = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"


def verdict(allowed: bool) -> api_server.Answer:
    return api_server.Answer({"status": {"allowed": allowed}}, 201)


@pytest.mark.parametrize(
    ("answer", "allowed"),
    [
        (verdict(True), True),
        (verdict(False), False),
        (api_server.status(403, "Forbidden"), True),
    ],
    ids=["allowed", "may only list", "may not ask"],
)
async def test_everything_can_be_followed_with_the_rights_to_list_and_to_watch(
    server: api_server.ApiServer, kube: client.KubeClient, answer: api_server.Answer, allowed: bool
) -> None:
    server.on("GET", "/apis/apps/v1/deployments", {"items": []})
    server.on("POST", REVIEWS, answer)
    deployment = api_resources.Resource("apps/v1", "Deployment", "deployments", True)
    assert await presence.ObjectProbe(kube).may_follow_everywhere(deployment) is allowed
    assert server.asked[0].query == {"limit": "1"}
    wanted = {"verb": "watch", "group": "apps", "version": "v1", "resource": "deployments"}
    assert server.asked[1].body["spec"] == {"resourceAttributes": wanted}


async def test_without_the_right_to_list_nothing_more_is_asked(
    server: api_server.ApiServer, kube: client.KubeClient
) -> None:
    server.on("GET", "/api/v1/configmaps", api_server.status(403, "Forbidden"))
    assert await presence.ObjectProbe(kube).may_follow_everywhere(CONFIG_MAP) is False
    assert server.requests == ["GET /api/v1/configmaps"]
