"""Releases outside of the operator's namespace: found, as long as a module or the memory says where."""

import pathlib
from collections.abc import Mapping
from typing import Any

import pytest
from typing_extensions import override

from addon_operator.helm import helm_errors, places
from addon_operator.helm.releases import record_format, record_lists, release_calls, release_records
from addon_operator.kernel.names import ModuleName
from addon_operator.kube import api_errors, paths
from addon_operator.kube.client import client
from addon_operator.modules import model, module_config, release
from tests.support import api_server
from tests.unit.helm import fakes

_ALL = "/api/v1/secrets"


class Api(client.KubeClient):
    """Records of several namespaces, where the whole cluster may be listed, or single namespaces."""

    def __init__(self) -> None:
        self.objects: list[dict[str, Any]] = []
        self.forbidden: set[str] = set()
        self.lists: list[str] = []
        self.writes: list[str] = []

    def put(self, namespace: str, name: str, operator: str = "", inside: Mapping[str, object] = {}) -> None:
        """``inside``: what the content says that the labels do not."""
        labels = {"name": name, "version": "1", "status": "deployed", "owner": "helm"}
        if operator:
            labels |= {release.OPERATOR_LABEL: operator, release.MANAGED_LABEL: "true"}
        stored = f"sh.helm.release.v1.{name}.v1"
        metadata = {"namespace": namespace, "name": stored, "labels": labels, "resourceVersion": "1"}
        made = {"name": name, "namespace": namespace, "version": 1, "info": {"status": "deployed"}}
        text = record_format.stored({**made, "manifest": "kind: ConfigMap", **inside}, is_secret=True)
        data = {"release": text}
        self.objects.append({"metadata": metadata, "data": data})

    @override
    async def list_all(
        self,
        path: str,
        *,
        label_selector: str | None = None,
        field_selector: str | None = None,
        metadata_only: bool = False,
        page_size: int = client.PAGE_SIZE,
    ) -> client.ObjectList:
        assert metadata_only
        self.lists.append(path)
        if path in self.forbidden:
            raise api_errors.Forbidden(paths.target("GET", path), 403, "Forbidden", "no")
        items = [each for each in self.objects if path in (_ALL, _path(each["metadata"]["namespace"]))]
        name = (label_selector or "").partition("name=")[2]
        return client.ObjectList(
            [each for each in items if name in ("", each["metadata"]["labels"].get("name"))], "1"
        )

    @override
    async def get(
        self, path: str, *, query: Mapping[str, str] | None = None, metadata_only: bool = False
    ) -> client.Object:
        for each in self.objects:
            if path == f"{_path(each['metadata']['namespace'])}/{each['metadata']['name']}":
                return each
        raise api_errors.NotFound(paths.target("GET", path), 404, "NotFound", "gone")

    @override
    async def patch(
        self,
        path: str,
        patch: Mapping[str, Any] | list[Any],
        type_: client.PatchType = client.PatchType.MERGE,
        *,
        query: Mapping[str, str] | None = None,
    ) -> client.Object:
        assert isinstance(patch, Mapping)
        found = await self.get(path)
        labels = found["metadata"]["labels"] | patch["metadata"]["labels"]
        found["metadata"]["labels"] = {key: value for key, value in labels.items() if value is not None}
        found["metadata"]["resourceVersion"] += "0"
        found["data"] |= patch.get("data", {})
        return found

    @override
    async def delete(
        self,
        path: str,
        *,
        propagation: str = "Background",
        uid: str | None = None,
        resource_version: str | None = None,
    ) -> client.Object:
        self.writes.append(f"DELETE {path}")
        raise api_errors.NotFound(paths.target("DELETE", path), 404, "NotFound", "gone already")


def _path(namespace: str) -> str:
    return f"/api/v1/namespaces/{namespace}/secrets"


@pytest.fixture
def api() -> Api:
    return Api()


@pytest.fixture
def secret() -> api_server.ApiServer:
    return api_server.ApiServer()


async def started(
    api: Api, secret: api_server.ApiServer, *modules: tuple[str, str]
) -> release_records.ReleaseRecords:
    """The records as a restarted operator with these modules, and their namespaces, has them."""
    where = places.ReleaseLocations("addons")
    where.assign(
        model.Module(
            ModuleName(name), 1, pathlib.Path(name), config=module_config.ModuleConfig(namespace=namespace)
        )
        for name, namespace in modules
    )
    remembered = fakes.memory_of(secret)
    await remembered.load()
    return release_records.ReleaseRecords(api, where, remembered)


def calls(records: release_records.ReleaseRecords) -> release_calls.ReleaseCalls:
    return release_calls.ReleaseCalls(records, lambda _, __: None)


async def test_without_modules_elsewhere_there_is_one_list(api: Api, secret: api_server.ApiServer) -> None:
    api.put("addons", "web")
    records = await started(api, secret, ("web", ""))
    assert list(await records.read_all()) == ["web"]
    await calls(records).observed()
    assert api.lists == [_path("addons")]


async def test_a_release_elsewhere_is_found_when_no_module_names_its_namespace_any_more(
    api: Api, secret: api_server.ApiServer
) -> None:
    before = await started(api, secret, ("web", "edge"))
    assert await before.read_all() == {}
    await calls(before).observed()
    await calls(before).begin("web", "install", 1)
    api.put("edge", "web", operator="addons")
    assert before.marks("web") == {
        release.OPERATOR_LABEL: "addons",
        release.CONFIG_MAP_LABEL: "addon-operator",
    }
    after = await started(api, secret)
    assert list(await after.read_all()) == ["edge/web"]
    await calls(after).observed()
    assert api.lists == [_ALL, _path("edge"), _ALL]
    assert list(await (await started(api, secret)).read_all()) == ["edge/web"]


async def test_a_release_whose_record_is_gone_is_forgotten(api: Api, secret: api_server.ApiServer) -> None:
    api.put("edge", "web", operator="addons")
    first = await started(api, secret, ("web", "edge"))
    await first.read_all()
    await calls(first).observed()
    await calls(first).begin("web", "install", 1)
    api.objects.clear()
    for modules, left in (([("web", "edge")], 1), ([], 0)):
        again = await started(api, secret, *modules)
        await again.read_all()
        await calls(again).observed()
        assert len(again.memory.locations) == left


async def test_what_a_build_without_a_memory_remembered_is_read_once(
    api: Api, secret: api_server.ApiServer
) -> None:
    api.put("edge", "web", operator="addons")
    metadata = {
        "namespace": "addons",
        "name": record_lists.NAMESPACES,
        "annotations": {record_lists.NAMESPACES_ANNOTATION: "edge"},
    }
    api.objects.append({"metadata": {**metadata, "labels": {}}})
    records = await started(api, secret)
    assert list(await records.read_all()) == ["edge/web"]
    await calls(records).observed()
    assert api.writes == [f"DELETE {_path('addons')}/{record_lists.NAMESPACES}"]
    assert records.memory.locations == [], "what stands on a record there proves nothing"
    assert await (await started(api, secret)).read_all() == {}


async def test_what_another_operator_or_nobody_of_ours_made_elsewhere_does_not_count(
    api: Api, secret: api_server.ApiServer
) -> None:
    api.put("edge", "theirs", operator="other")
    api.put("edge", "foreign")
    api.put("edge", "web", operator="other")
    api.put("addons", "guest", operator="other")
    api.put("addons", "own")
    records = await started(api, secret, ("web", "edge"))
    found = await records.read_all()
    assert set(found) == {"web", "own"}
    with pytest.raises(helm_errors.HelmError, match="belongs to the operator in namespace other"):
        records.check_operator(found["web"])
    records.check_operator(found["own"])


async def test_without_the_right_to_list_the_cluster_each_namespace_is_listed(
    api: Api, secret: api_server.ApiServer
) -> None:
    api.forbidden = {_ALL, _path("locked")}
    api.put("edge", "web", operator="addons")
    api.put("locked", "db", operator="addons")
    records = await started(api, secret, ("web", "edge"), ("db", "locked"))
    assert list(await records.read_all()) == ["web"]
    assert api.lists == [_ALL, _path("addons"), _path("edge"), _path("locked")]
    assert records.unreadable == {"locked"}
    with pytest.raises(helm_errors.HelmError, match="releaseNamespaces"):
        await records.get(ModuleName("db"))


async def test_a_namespace_that_may_not_be_read_now_is_not_forgotten(
    api: Api, secret: api_server.ApiServer
) -> None:
    api.put("locked", "db", operator="addons")
    first = await started(api, secret, ("db", "locked"))
    await first.read_all()
    await calls(first).observed()
    await calls(first).begin("db", "install", 1)
    api.forbidden = {_ALL, _path("locked")}
    second = await started(api, secret)
    assert await second.read_all() == {}
    await calls(second).observed()
    assert second.memory.locations == [places.ReleaseLocation("locked", "db")]


@pytest.mark.parametrize(
    "change",
    [
        pytest.param({"manifest": "kind: Secret"}, id="edited"),
        pytest.param({"hooks": [{"manifest": "kind: Pod", "events": ["pre-delete"]}]}, id="with a hook"),
        pytest.param(None, id="a later one"),
    ],
)
async def test_helm_is_not_called_by_a_record_that_others_changed_after_it_was_judged(
    api: Api, secret: api_server.ApiServer, change: dict[str, object] | None
) -> None:
    records = await started(api, secret, ("web", "edge"))
    api.put("edge", "web")
    with pytest.raises(helm_errors.HelmError, match="the next try begins anew"):
        await calls(records).check_again("web", 0)
    record = await records.read("web")
    assert record is not None
    assert await records.sign(record) is not None
    await calls(records).check_again("web", 1, 1)
    labels = api.objects[0]["metadata"]["labels"]
    if change is None:
        api.put("edge", "web", inside={"version": 2})
        metadata = api.objects[1]["metadata"]
        metadata["labels"]["version"], metadata["name"] = "2", "sh.helm.release.v1.web.v2"
    else:
        api.objects.clear()
        api.put("edge", "web", inside=change)
        api.objects[0]["metadata"] |= {"labels": labels, "resourceVersion": "9"}
    with pytest.raises(helm_errors.HelmError, match="the next try begins anew"):
        await calls(records).check_again("web", 1, 1)
    if change is not None:
        # What was cut is no input of Helm's, as long as nobody changes it again.
        record = await records.read("web")
        assert record is not None
        await records.cut(record, "")
        await calls(records).check_again("web", 1, 1)
        api.objects[0]["metadata"]["resourceVersion"] = "99"
        with pytest.raises(helm_errors.HelmError, match="the next try begins anew"):
            await calls(records).check_again("web", 1, 1)


async def test_what_others_wrote_when_helm_was_about_to_be_called_is_nothing_that_the_call_left(
    api: Api, secret: api_server.ApiServer
) -> None:
    records = await started(api, secret, ("web", "edge"))
    working = calls(records)
    await working.begin("web", "install", 1)
    api.put("edge", "web", inside={"info": {"status": "failed"}})
    api.objects[0]["metadata"]["labels"]["status"] = "failed"
    with pytest.raises(helm_errors.NotCalledError):
        await working.check_again("web", 0)
    record = await working.end("web")
    assert record is not None
    assert not await working.explains(record)


LIES: dict[str, dict[str, object]] = {
    "a later revision": {"version": 100},
    "a revision that is a text": {"version": "1"},
    "a revision that is no integer": {"version": 1.0},
    "another status": {"info": {"status": "failed"}},
    "another release": {"name": "other"},
    "another namespace": {"namespace": "addons"},
    "a key that Helm takes for another one": {"Version": 100},
    "a status that Helm takes for another one": {"info": {"status": "deployed", "Status": "failed"}},
}


async def test_no_call_begins_while_helm_would_take_a_record_for_another_revision(
    api: Api, secret: api_server.ApiServer
) -> None:
    records = await started(api, secret, ("web", "edge"))
    api.put("edge", "web", operator="addons")
    await calls(records).begin("web", "upgrade", 2)
    for lie, inside in LIES.items():
        api.objects.clear()
        api.put("edge", "web", inside=inside)
        api.objects[0]["metadata"]["resourceVersion"] = lie
        with pytest.raises(helm_errors.HelmError, match="is not what its name and labels say"):
            await calls(records).begin("web", "upgrade", 2)
    for outside in (
        {"name": "sh.helm.release.v1.web.v01"},
        {"labels": {"name": "web", "status": "deployed"}},
    ):
        api.objects.clear()
        api.put("edge", "web")
        api.objects[0]["metadata"] |= {"resourceVersion": str(outside), **outside}
        with pytest.raises(helm_errors.HelmError, match="is not what its name and labels say"):
            await calls(records).begin("web", "upgrade", 2)


async def test_a_revision_from_which_helm_cannot_count_on_is_refused(
    api: Api, secret: api_server.ApiServer
) -> None:
    records = await started(api, secret, ("web", "edge"))
    most = 2**63 - 2
    api.put("edge", "web", inside={"version": most})
    metadata = api.objects[0]["metadata"]
    metadata["name"], metadata["labels"]["version"] = f"sh.helm.release.v1.web.v{most}", str(most)
    with pytest.raises(helm_errors.HelmError, match="delete it"):
        await calls(records).begin("web", "upgrade", most + 1)
