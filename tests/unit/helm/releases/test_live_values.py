"""What is read of the cluster for what objects keep: objects that the list of what is not ours concerns."""

import pytest

from addon_operator.helm.releases import live_objects, live_values
from addon_operator.kernel import names
from addon_operator.kube.client import client
from addon_operator.modules import manifests
from tests.support import api_server, clocks, kinds
from tests.unit.helm import fakes

WEB = names.ModuleName("web")
OTHERS = """\
apiVersion: v1
kind: ConfigMap
metadata: {name: a}
---
apiVersion: v1
kind: Service
metadata: {name: a}
"""
DEPLOYMENT = "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: a}\nspec: {replicas: 2}\n"
KINDS = ("Deployment", "ConfigMap", "Service", "HorizontalPodAutoscaler")


@pytest.mark.parametrize(
    ("manifest", "written", "replicas", "asked", "kept"),
    [
        (OTHERS, (), 2, [], None),
        (OTHERS, [("", "Service", api_server.NAMESPACE, "a")], 2, ["services/a"], None),
        (DEPLOYMENT, (), 2, ["deployments/a"], None),
        (DEPLOYMENT, (), 5, ["deployments/a", "horizontalpodautoscalers"], 5),
    ],
    ids=["nothing", "what others wrote", "as it is", "scaled"],
)
async def test_only_objects_that_may_keep_something_are_read(
    world: fakes.World,
    server: api_server.ApiServer,
    kube: client.KubeClient,
    manifest: str,
    written: list[tuple[str, str, str, str]],
    replicas: int,
    asked: list[str],
    kept: int | None,
) -> None:
    server.put(api_server.an_object("Deployment", "a", api_version="apps/v1", spec={"replicas": replicas}))
    server.put(api_server.an_object("Service", "a"))
    target = {"kind": "Deployment", "name": "a"}
    server.put(
        api_server.an_object(
            "HorizontalPodAutoscaler", "b", api_version="autoscaling/v2", spec={"scaleTargetRef": target}
        )
    )
    server.asked.clear()
    records = world.planner().records
    live = live_objects.LiveObjects(kube, kinds.Kinds(*KINDS), records.places, {})
    fields, *_ = await live_values.of_release(records, live, WEB, manifest, manifest, written)
    assert [each.split(f"/{api_server.NAMESPACE}/")[1].split("?")[0] for each in server.requests] == asked
    assert [value for each in fields.values() for _, value in each] == ([] if kept is None else [kept])


async def test_what_a_release_takes_over_is_taken_although_a_controller_writes_it_meanwhile(
    world: fakes.World, server: api_server.ApiServer, kube: client.KubeClient
) -> None:
    path = f"/api/v1/namespaces/{api_server.NAMESPACE}/services/a"
    by_helm = {"manager": "helm", "operation": "Update", "fieldsV1": {"f:spec": {}}}
    versions = [
        api_server.an_object("Service", "a", metadata={"resourceVersion": each, "managedFields": [by_helm]})
        for each in "12"
    ]
    server.on("GET", path, *versions)
    server.on("PATCH", path, api_server.status(409, "Conflict"), versions[1])
    places = world.planner().records.places
    live = live_objects.LiveObjects(kube, kinds.Kinds("Service"), places, {}, clocks.Pauses().sleep)
    resource = manifests.ManifestResource("v1", "Service", api_server.NAMESPACE, "a")
    await live.take_over(WEB, resource, {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "a"}})
    first, second, applied = [each.body for each in server.asked if each.method == "PATCH"]
    assert [each[0]["value"] for each in (first, second)] == ["1", "2"], "what was read is what is changed"
    assert second[1]["value"] == [by_helm | {"operation": "Apply"}]
    assert applied["metadata"]["name"] == "a"
