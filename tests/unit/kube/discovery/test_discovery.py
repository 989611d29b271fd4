"""What the API server offers, in both forms in which servers tell it."""

import itertools
from collections.abc import Callable
from typing import Any

import pytest

from addon_operator.kube import api_errors
from addon_operator.kube.client import client, retries
from addon_operator.kube.discovery import api_resources, discovery
from tests.support import api_server
from tests.support.api_server import Answer, ApiServer, Asked, Pauses

VERSION = {"major": "1", "minor": "36", "gitVersion": "v1.36.3"}


def aggregated(*items: dict[str, Any]) -> dict[str, Any]:
    return {"kind": "APIGroupDiscoveryList", "apiVersion": "apidiscovery.k8s.io/v2", "items": list(items)}


def kind(name: str, plural: str, scope: str = "Namespaced", **more: Any) -> dict[str, Any]:  # noqa: ANN401 - JSON
    return {
        "resource": plural,
        "responseKind": {"kind": name},
        "scope": scope,
        "verbs": ["get", "list"],
        **more,
    }


CORE = aggregated(
    {
        "metadata": {"name": ""},
        "versions": [
            {
                "version": "v1",
                "resources": [
                    kind(
                        "Namespace", "namespaces", "Cluster", shortNames=["ns"], singularResource="namespace"
                    ),
                    kind(
                        "Pod",
                        "pods",
                        shortNames=["po"],
                        subresources=[
                            {"subresource": "exec", "responseKind": {"kind": "PodExecOptions"}},
                            {"subresource": "nothing"},
                        ],
                    ),
                ],
            }
        ],
    }
)
NAMED = aggregated(
    {
        "metadata": {"name": "apps"},
        "versions": [
            {
                "version": "v1",
                "resources": [
                    kind(
                        "Deployment",
                        "deployments",
                        subresources=[{"subresource": "scale", "responseKind": {"kind": "Scale"}}],
                    )
                ],
            }
        ],
    },
    {
        "metadata": {"name": "example.io"},
        "versions": [
            {"version": "v2", "resources": [kind("Pod", "pods")]},
            {"version": "v1", "resources": [kind("Pod", "pods"), {"resource": "broken"}]},
        ],
    },
    {"metadata": {"name": "metrics.k8s.io"}, "versions": [{"version": "v1beta1", "freshness": "Stale"}]},
)
HELM_NAMES = {
    "v1", "v1/Namespace", "v1/Pod", "v1/PodExecOptions",
    "apps/v1", "apps/v1/Deployment", "apps/v1/Scale",
    "example.io/v2", "example.io/v2/Pod", "example.io/v1", "example.io/v1/Pod",
    "metrics.k8s.io/v1beta1",
}  # fmt: skip


def script_aggregated(server: ApiServer) -> None:
    server.on("GET", "/version", VERSION)
    server.on("GET", "/api", CORE)
    server.on("GET", "/apis", NAMED)


async def test_capabilities_are_those_that_helm_lists(server: ApiServer, kube: client.KubeClient) -> None:
    script_aggregated(server)
    found = await discovery.read(kube)
    assert found.api_versions == HELM_NAMES
    assert found.version == "v1.36.3"


async def test_a_group_that_does_not_answer_is_reported_and_no_obstacle(
    server: ApiServer,
    kube: client.KubeClient,
) -> None:
    script_aggregated(server)
    assert (await discovery.read(kube)).failed == ("metrics.k8s.io/v1beta1",)


@pytest.mark.parametrize(
    ("name", "api_version", "found"),
    [
        ("Pod", "v1", ("v1", "pods", True)),
        ("Pod", None, ("v1", "pods", True)),
        ("Pod", "example.io/v1", ("example.io/v1", "pods", True)),
        ("po", None, ("v1", "pods", True)),
        ("PODS", None, ("v1", "pods", True)),
        ("namespace", None, ("v1", "namespaces", False)),
        ("Deployment", None, ("apps/v1", "deployments", True)),
    ],
)  # fmt: skip
async def test_a_kind_is_found_by_any_of_its_names(
    server: ApiServer,
    kube: client.KubeClient,
    pauses: Pauses,
    name: str,
    api_version: str | None,
    found: tuple[str, str, bool],
) -> None:
    script_aggregated(server)
    resource = await discovery.Catalog(kube, pauses).find(name, api_version)
    assert (resource.api_version, resource.plural, resource.namespaced) == found


async def test_objects_are_read_in_a_version_that_is_served_now_also_after_their_group_has_moved(
    server: ApiServer, kube: client.KubeClient, pauses: Pauses
) -> None:
    script_aggregated(server)
    versions = {
        ("example.io/v1", "Pod"): "example.io/v1",
        ("example.io/v1alpha1", "Pod"): "example.io/v2",
        ("extensions/v1beta1", "Deployment"): "apps/v1",
        ("apps/v1beta1", "Deployment"): "apps/v1",
        ("extensions/v1beta1", "Pod"): None,
        ("other.io/v1", "Deployment"): None,
        ("v1", "Deployment"): None,
    }
    found = await discovery.Catalog(kube, pauses).readable(itertools.starmap(discovery.Kind, versions))
    assert found == {kind: version for kind, version in versions.items() if version is not None}


async def test_the_preferred_version_of_a_group_goes_first(
    server: ApiServer,
    kube: client.KubeClient,
) -> None:
    script_aggregated(server)
    groups = (await discovery.read(kube)).groups
    names = [group.name for group in groups]
    assert names.index("example.io/v2") < names.index("example.io/v1")
    assert api_resources.find(groups[2:], "Pod") is not None


async def test_aggregated_discovery_takes_three_requests(server: ApiServer, kube: client.KubeClient) -> None:
    script_aggregated(server)
    await discovery.read(kube)
    assert sorted(server.requests) == ["GET /api", "GET /apis", "GET /version"]
    accept = next(asked.headers["accept"] for asked in server.asked if asked.path == "/apis")
    assert accept.startswith("application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,")


async def test_what_did_not_change_is_not_sent_and_read_again(
    server: ApiServer, kube: client.KubeClient
) -> None:
    def unless_known(body: dict[str, Any], etag: str) -> Callable[[Asked], Answer]:
        def answer(asked: Asked) -> Answer:
            is_known = asked.headers.get("if-none-match") == etag
            return Answer(text="", status=304) if is_known else Answer(body, headers={"ETag": etag})

        return answer

    server.on("GET", "/version", VERSION)
    server.on("GET", "/api", unless_known(CORE, '"1"'))
    server.on("GET", "/apis", unless_known(NAMED, '"2"'))
    first = await discovery.read(kube)
    assert await discovery.read(kube, first) is first
    server.on("GET", "/apis", unless_known(aggregated(), '"3"'))
    second = await discovery.read(kube, first)
    assert [group.name for group in second.groups] == ["v1"]
    assert await discovery.read(kube, second) is second
    server.on("GET", "/version", {"gitVersion": "v1.37.0"})
    assert (await discovery.read(kube, second)).version == "v1.37.0"


async def test_a_server_without_aggregated_discovery_is_too_old(
    server: ApiServer, kube: client.KubeClient
) -> None:
    script_aggregated(server)
    server.on("GET", "/apis", {"kind": "APIGroupList", "groups": []})
    with pytest.raises(api_errors.BrokenAnswer, match=r"v1\.36\.3.*use Kubernetes 1\.30 or newer"):
        await discovery.read(kube)


async def test_a_kind_that_comes_later_is_found(
    server: ApiServer, kube: client.KubeClient, pauses: Pauses
) -> None:
    script_aggregated(server)
    catalog = discovery.Catalog(kube, pauses)
    with pytest.raises(discovery.NoSuchKind):
        await catalog.find("Late", "late.io/v1")
    server.on("GET", "/apis", aggregated({"metadata": {"name": "late.io"}, "versions": [
        {"version": "v1", "resources": [kind("Late", "lates")]}]}))  # fmt: skip
    pauses.now += 6
    assert (await catalog.find("Late", "late.io/v1")).path(namespace="x", name="y") == (
        "/apis/late.io/v1/namespaces/x/lates/y"
    )


async def test_a_kind_that_is_missing_is_not_asked_for_all_the_time(
    server: ApiServer, kube: client.KubeClient, pauses: Pauses
) -> None:
    script_aggregated(server)
    catalog = discovery.Catalog(kube, pauses)
    for _ in range(3):
        with pytest.raises(
            discovery.NoSuchKind, match=r"no kind 'Late' in late\.io/v1: is its CRD installed\?"
        ):
            await catalog.find("Late", "late.io/v1")
    assert server.requests.count("GET /apis") == 1


@pytest.mark.parametrize(
    ("name", "api_version", "said"),
    [
        ("Podd", None, "'Podd': did you mean 'Pod' of v1? If not, is its CRD installed?"),
        ("podd", "v1", "'podd' in v1: did you mean 'Pod' of v1? If not, is its CRD installed?"),
        ("Deploymnet", "v1", "in v1: did you mean 'Deployment' of apps/v1? If not, is its CRD installed?"),
        ("Pod", "apps/v1", "'Pod' in apps/v1: it serves it in v1 and "),
        ("Podd", "late.io/v1", "'Podd' in late.io/v1: is its CRD installed?"),
        ("Certificate", None, "'Certificate': is its CRD installed?"),
    ],
)
async def test_a_kind_that_is_nearly_one_of_the_servers_is_told_with_that(
    server: ApiServer,
    kube: client.KubeClient,
    pauses: Pauses,
    name: str,
    api_version: str | None,
    said: str,
) -> None:
    script_aggregated(server)
    with pytest.raises(discovery.NoSuchKind) as caught:
        await discovery.Catalog(kube, pauses).find(name, api_version)
    assert said in str(caught.value)


async def test_what_is_known_is_not_asked_for_again_until_it_is_forgotten(
    server: ApiServer, kube: client.KubeClient, pauses: Pauses
) -> None:
    script_aggregated(server)
    catalog = discovery.Catalog(kube, pauses)
    await catalog.find("Pod")
    await catalog.find("Deployment")
    assert server.requests.count("GET /apis") == 1
    catalog.forget()
    await catalog.find("Pod")
    assert server.requests.count("GET /apis") == 2


async def test_discovery_is_not_slowed_by_the_rate_limit(server: ApiServer, pauses: Pauses) -> None:
    script_aggregated(server)
    async with api_server.client_of(server, pauses, rate=retries.Rate(1, 1)) as kube:
        await discovery.read(kube)
    assert pauses.seconds == []


@pytest.mark.parametrize(
    "answer", [Answer({}), Answer([]), Answer(text="<html>")], ids=["empty", "list", "html"]
)
async def test_a_server_that_is_not_an_api_server_is_reported(
    server: ApiServer, kube: client.KubeClient, answer: Answer
) -> None:
    server.on("GET", "/version", answer)
    with pytest.raises(api_errors.BrokenAnswer, match="/version"):
        await discovery.server_version(kube)


async def test_a_look_asks_for_everything_again_and_the_version_alone_is_one_request(
    server: ApiServer, kube: client.KubeClient, pauses: Pauses
) -> None:
    script_aggregated(server)
    catalog = discovery.Catalog(kube, pauses)
    assert await catalog.version() == "v1.36.3"
    assert server.requests.count("GET /apis") == 0
    await catalog.find("Pod")
    assert (await catalog.look()).failed == ("metrics.k8s.io/v1beta1",)
    assert server.requests.count("GET /apis") == 2
