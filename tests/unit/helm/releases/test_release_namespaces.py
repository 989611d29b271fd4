"""Where releases outside of the operator's namespace are, as the cluster remembers it."""

import pathlib
from collections.abc import Mapping
from typing import Any

import pytest
from typing_extensions import override

from addon_operator.helm import helm_errors, places
from addon_operator.helm.releases import release_namespaces, release_records
from addon_operator.kernel.names import ModuleName
from addon_operator.kube import api_errors, paths
from addon_operator.kube.client import client
from addon_operator.modules import model, module_config, release

_ALL = "/api/v1/secrets"


class Api(client.KubeClient):
    """Records of several namespaces, where the whole cluster may be listed, or single namespaces."""

    def __init__(self) -> None:
        self.objects: list[dict[str, Any]] = []
        self.forbidden: set[str] = set()
        self.lists: list[str] = []
        self.writes: list[str] = []

    def put(self, namespace: str, name: str, operator: str = "") -> None:
        labels = {"name": name, "version": "1", "status": "deployed", "owner": "helm"}
        if operator:
            labels |= {release.OPERATOR_LABEL: operator, release.MANAGED_LABEL: "true"}
        metadata = {"namespace": namespace, "name": f"{name}.v1", "labels": labels, "resourceVersion": "1"}
        self.objects.append({"metadata": metadata})

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
    async def apply(
        self,
        path: str,
        body: Mapping[str, Any],
        *,
        field_manager: str = client.FIELD_MANAGER,
        force: bool = False,
    ) -> client.Object:
        assert force
        self._drop()
        metadata = {**body["metadata"], "namespace": path.split("/")[4]}
        stored = {"metadata": metadata}
        self.objects.append(stored)
        self.writes.append(f"APPLY {path}")
        return stored

    @override
    async def delete(
        self,
        path: str,
        *,
        propagation: str = "Background",
        uid: str | None = None,
        resource_version: str | None = None,
    ) -> client.Object:
        self._drop()
        self.writes.append(f"DELETE {path}")
        raise api_errors.NotFound(paths.target("DELETE", path), 404, "NotFound", "gone already")

    def _drop(self) -> None:
        kept = [each for each in self.objects if each["metadata"]["name"] != release_namespaces.NAME]
        self.objects = kept


def _path(namespace: str) -> str:
    return f"/api/v1/namespaces/{namespace}/secrets"


@pytest.fixture
def api() -> Api:
    return Api()


def started(api: Api, *modules: tuple[str, str]) -> release_records.ReleaseRecords:
    """The records as a restarted operator with these modules, and their namespaces, has them."""
    where = places.ReleaseLocations("addons")
    where.assign(
        model.Module(
            ModuleName(name), 1, pathlib.Path(name), config=module_config.ModuleConfig(namespace=namespace)
        )
        for name, namespace in modules
    )
    return release_records.ReleaseRecords(api, where)


async def test_without_modules_elsewhere_there_is_one_list_and_nothing_is_written(api: Api) -> None:
    api.put("addons", "web")
    records = started(api, ("web", ""))
    assert list(await records.read_all()) == ["web"]
    await records.remember()
    assert (api.lists, api.writes) == ([_path("addons")], [])


async def test_a_release_elsewhere_is_found_when_no_module_names_its_namespace_any_more(api: Api) -> None:
    before = started(api, ("web", "edge"))
    assert await before.read_all() == {}
    await before.remember()
    api.put("edge", "web", operator="addons")
    assert before.marks("web") == {release.OPERATOR_LABEL: "addons"}
    assert api.lists == [_ALL]
    after = started(api)
    assert list(await after.read_all()) == ["edge/web"]
    assert api.lists[1:] == [_path("addons"), _ALL]
    await after.remember()
    api.objects = [each for each in api.objects if each["metadata"]["namespace"] == "addons"]
    assert await after.read_all() == {}
    await after.remember()
    target = f"{_path('addons')}/{release_namespaces.NAME}"
    assert api.writes == [f"APPLY {target}", f"DELETE {target}"]


async def test_what_another_operator_or_nobody_of_ours_made_elsewhere_does_not_count(api: Api) -> None:
    api.put("edge", "theirs", operator="other")
    api.put("edge", "foreign")
    api.put("edge", "web", operator="other")
    api.put("addons", "guest", operator="other")
    api.put("addons", "own")
    records = started(api, ("web", "edge"))
    found = await records.read_all()
    assert set(found) == {"web", "own"}
    with pytest.raises(helm_errors.HelmError, match="belongs to the operator in namespace other"):
        records.check_operator(found["web"])
    records.check_operator(found["own"])


async def test_without_the_right_to_list_the_cluster_each_namespace_is_listed(api: Api) -> None:
    api.forbidden = {_ALL, _path("locked")}
    api.put("edge", "web", operator="addons")
    api.put("locked", "db", operator="addons")
    records = started(api, ("web", "edge"), ("db", "locked"))
    assert list(await records.read_all()) == ["web"]
    assert api.lists == [_ALL, _path("addons"), _path("edge"), _path("locked")]
    assert records.unreadable == {"locked"}
    with pytest.raises(helm_errors.HelmError, match="releaseNamespaces"):
        await records.get(ModuleName("db"))


async def test_a_namespace_that_may_not_be_read_now_is_not_forgotten(api: Api) -> None:
    first = started(api, ("db", "locked"))
    await first.read_all()
    await first.remember()
    api.forbidden = {_ALL, _path("locked")}
    second = started(api)
    assert await second.read_all() == {}
    await second.remember()
    assert len(api.writes) == 1


async def test_objects_of_that_name_in_other_namespaces_say_nothing(api: Api) -> None:
    metadata = {
        "namespace": "edge",
        "name": release_namespaces.NAME,
        "annotations": {"addon-operator.io/release-namespaces": "kube-system"},
    }
    assert release_namespaces.find([{"metadata": metadata}], "addons") == frozenset()
    assert release_namespaces.find([{"metadata": metadata}], "edge") == {"kube-system"}
