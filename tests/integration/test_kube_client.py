"""The API client, discovery, ConfigMap and Events against a real API server."""

import asyncio
import json
import pathlib
from collections.abc import AsyncIterator, Mapping

import pytest
import yaml

from addon_operator.devcluster.pytest_plugin import DevCluster
from addon_operator.kernel import clock
from addon_operator.kube import api_errors, paths
from addon_operator.kube.access import auth
from addon_operator.kube.client import client
from addon_operator.kube.discovery import discovery
from addon_operator.kube.objects import config_maps, events

pytestmark = pytest.mark.integration


@pytest.fixture
async def kube(devcluster: DevCluster) -> AsyncIterator[client.KubeClient]:
    async with client.KubeClient(auth.load_access(devcluster.kubeconfig, None, None, {})) as opened:
        yield opened


def config_map(name: str, **data: str) -> dict[str, object]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data}


async def test_objects_live_and_die(kube: client.KubeClient, namespace: str) -> None:
    collection = paths.of("v1", "configmaps", namespace=namespace)
    path = paths.of("v1", "configmaps", namespace=namespace, name="a")
    created = await kube.create(collection, config_map("a", x="1"))
    with pytest.raises(api_errors.AlreadyExists):
        await kube.create(collection, config_map("a"))
    await kube.patch(path, {"data": {"x": "2"}})
    with pytest.raises(api_errors.Conflict):
        await kube.replace(path, created)
    await kube.patch(path, [{"op": "add", "path": "/data/y", "value": "3"}], client.PatchType.JSON)
    applied = await kube.apply(path, config_map("a", z="4"), force=True)
    assert applied["data"] == {"x": "2", "y": "3", "z": "4"}
    await kube.delete(path, uid=applied["metadata"]["uid"])
    with pytest.raises(api_errors.NotFound):
        await kube.get(path)


async def test_a_list_has_all_pages_and_only_what_is_selected(
    kube: client.KubeClient, namespace: str
) -> None:
    collection = paths.of("v1", "configmaps", namespace=namespace)
    for number in range(7):
        body = config_map(f"c{number}", x="1") | {
            "metadata": {"name": f"c{number}", "labels": {"mine": "yes"}}
        }
        await kube.create(collection, body)
    found = await kube.list_all(collection, label_selector="mine=yes", metadata_only=True, page_size=3)
    assert sorted(item["metadata"]["name"] for item in found.items) == [f"c{number}" for number in range(7)]
    assert all("data" not in item for item in found.items)
    assert found.resource_version


async def test_a_refused_object_is_reported_in_the_servers_words(
    kube: client.KubeClient, namespace: str
) -> None:
    with pytest.raises(api_errors.Invalid, match="lower case"):
        await kube.create(paths.of("v1", "configmaps", namespace=namespace), config_map("Not_A_Name"))


async def test_a_missing_right_names_the_rule_that_gives_it(
    kube: client.KubeClient, devcluster: DevCluster, namespace: str, tmp_path: pathlib.Path
) -> None:
    account = paths.of("v1", "serviceaccounts", namespace=namespace)
    await kube.create(account, {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "poor"}})
    request = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}}
    answer = await kube.create(f"{account}/poor/token", request)
    config = yaml.safe_load(devcluster.kubeconfig.read_text())
    for user in config["users"]:
        user["user"] = {"token": answer["status"]["token"]}
    (tmp_path / "config").write_text(yaml.safe_dump(config))
    async with client.KubeClient(auth.load_access(tmp_path / "config", None, None, {})) as poor:
        with pytest.raises(api_errors.Forbidden) as refused:
            await config_maps.ConfigMap(poor, namespace, "values").read()
    assert str(refused.value) == (
        f'system:serviceaccount:{namespace}:poor may not get configmaps "values" in namespace "{namespace}": '
        'add to its Role the rule apiGroups: [""], resources: ["configmaps"], verbs: ["get"]'
    )


async def test_an_invalid_token_is_reported(devcluster: DevCluster, tmp_path: pathlib.Path) -> None:
    config = yaml.safe_load(devcluster.kubeconfig.read_text())
    for user in config["users"]:
        user["user"] = {"token": "wrong"}
    (tmp_path / "config").write_text(yaml.safe_dump(config))
    async with client.KubeClient(auth.load_access(tmp_path / "config", None, None, {})) as stranger:
        with pytest.raises(api_errors.Unauthorized, match="does not accept the credentials"):
            await stranger.get("/api/v1/namespaces")


async def test_writers_of_one_config_map_lose_nothing(kube: client.KubeClient, namespace: str) -> None:
    async def write(key: str) -> None:
        async def change(data: Mapping[str, str]) -> Mapping[str, str]:
            return {**data, key: "x"}

        await config_maps.ConfigMap(kube, namespace, "values").update(change)

    await asyncio.gather(*(write(f"k{number}") for number in range(5)))
    stored = await config_maps.ConfigMap(kube, namespace, "values").read()
    assert stored is not None
    assert set(stored.data) == {f"k{number}" for number in range(5)}


async def test_events_are_shown_at_their_object(kube: client.KubeClient, namespace: str) -> None:
    created = await kube.create(paths.of("v1", "configmaps", namespace=namespace), config_map("values"))
    about = events.ObjectReference("v1", "ConfigMap", "values", namespace, uid=created["metadata"]["uid"])
    recorder = events.EventWriter(kube, clock.SystemClock(), instance="operator-0")
    for _ in range(2):
        recorder.record(about, "Warning", "ValuesInvalid", "The values are wrong.")
    await recorder.flush()
    stored = await kube.list_all(
        paths.of("v1", "events", namespace=namespace), field_selector="involvedObject.name=values"
    )
    assert [(event["reason"], event["count"]) for event in stored.items] == [("ValuesInvalid", 2)]


async def test_an_event_about_an_object_with_a_strange_name_is_taken(
    kube: client.KubeClient, caplog: pytest.LogCaptureFixture
) -> None:
    about = events.ObjectReference("rbac.authorization.k8s.io/v1", "ClusterRole", "system:node")
    recorder = events.EventWriter(kube, clock.SystemClock())
    recorder.record(about, "Normal", "Tested", "A test was here.")
    await recorder.flush()
    assert caplog.text == ""


async def test_capabilities_are_those_of_helm(
    kube: client.KubeClient, devcluster: DevCluster, namespace: str, tmp_path: pathlib.Path
) -> None:
    chart = tmp_path / "chart"
    (chart / "templates").mkdir(parents=True)
    (chart / "Chart.yaml").write_text("apiVersion: v2\nname: chart\nversion: 0.1.0\n")
    (chart / "templates" / "a.yaml").write_text(
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata:\n"
        "  versions: {{ .Capabilities.APIVersions | toJson | quote }}\n"
        "  kube: {{ .Capabilities.KubeVersion.Version | quote }}\n"
    )
    done = await asyncio.to_thread(
        devcluster.run_helm, "template", "x", str(chart), "--validate", "--namespace", namespace
    )
    rendered = yaml.safe_load(done.stdout)["data"]
    found = await discovery.read(kube)
    assert found.version == rendered["kube"]
    assert found.api_versions == frozenset(json.loads(rendered["versions"]))
    assert await discovery.read(kube, found) is found, "nothing is sent twice"
    assert found.failed == ()


async def test_every_listed_kind_can_be_read_at_its_path(kube: client.KubeClient) -> None:
    catalog = discovery.Catalog(kube, clock.SystemClock())
    for name in ("Pod", "deploy", "customresourcedefinitions", "ClusterRole", "lease"):
        resource = await catalog.find(name)
        assert (await kube.list_all(resource.path())).resource_version
