"""Reading and changing one ConfigMap while others change it too."""

from collections.abc import Callable, Mapping

import pytest

from addon_operator.kube import api_errors
from addon_operator.kube.client import client
from addon_operator.kube.objects import config_maps
from tests.support.api_server import NOT_SERVED, ApiServer, Pauses, an_object, status

COLLECTION = "/api/v1/namespaces/addons/configmaps"
PATH = f"{COLLECTION}/values"


def later(change: Callable[[Mapping[str, str]], Mapping[str, str]]) -> config_maps.Change:
    async def changed(data: Mapping[str, str]) -> Mapping[str, str]:
        return change(data)

    return changed


def stored(server: ApiServer) -> config_maps.Snapshot:
    found = server.get("ConfigMap", "values")
    return config_maps.Snapshot(
        found["data"], found["metadata"]["resourceVersion"], uid=found["metadata"]["uid"]
    )


def store(server: ApiServer, **data: str) -> config_maps.Snapshot:
    """Let the ConfigMap have this data."""
    server.put(an_object("ConfigMap", "values", data=data))
    return stored(server)


@pytest.fixture
def config_map(kube: client.KubeClient, pauses: Pauses) -> config_maps.ConfigMap:
    return config_maps.ConfigMap(kube, "addons", "values", pauses.sleep)


async def test_what_is_there_is_read(server: ApiServer, config_map: config_maps.ConfigMap) -> None:
    there = store(server, **{"global": "a: 1"})
    assert await config_map.read() == there


async def test_what_is_not_there_is_none(config_map: config_maps.ConfigMap) -> None:
    assert await config_map.read() is None


async def test_a_path_that_is_not_found_is_an_error_and_no_missing_config_map(
    server: ApiServer, config_map: config_maps.ConfigMap
) -> None:
    server.on("GET", PATH, NOT_SERVED)
    with pytest.raises(api_errors.NotServed, match="404 page not found"):
        await config_map.read()


@pytest.mark.parametrize("is_there_at_first", [True, False])
async def test_one_that_is_missing_is_not_created_where_it_was_before(
    server: ApiServer, config_map: config_maps.ConfigMap, is_there_at_first: bool
) -> None:
    if is_there_at_first:
        store(server, a="1")

    def change(data: Mapping[str, str]) -> dict[str, str]:
        if data:
            server.delete("ConfigMap", "values")
        return {**data, "b": "2"}

    with pytest.raises(config_maps.MissingError, match="ConfigMap addons/values is missing"):
        await config_map.update(later(change), may_create=False)
    assert server.names("ConfigMap") == []


async def test_a_config_map_without_data_is_empty(
    server: ApiServer, config_map: config_maps.ConfigMap
) -> None:
    server.on("GET", PATH, {"metadata": {"resourceVersion": "5"}, "data": None})
    assert await config_map.read() == config_maps.Snapshot({}, "5")


async def test_a_missing_right_is_reported(server: ApiServer, config_map: config_maps.ConfigMap) -> None:
    server.on("GET", PATH, status(403, "Forbidden", 'User "u" cannot get resource "configmaps"'))
    with pytest.raises(api_errors.Forbidden, match='u may not get configmaps "values" in namespace "addons"'):
        await config_map.read()


async def test_only_keys_that_changed_are_written(
    server: ApiServer, config_map: config_maps.ConfigMap
) -> None:
    before = store(server, keep="k", change="old", drop="d")
    written = await config_map.update(later(lambda _: {"keep": "k", "change": "new", "add": "a"}))
    assert server.asked[-1].body == {
        "metadata": {"resourceVersion": before.resource_version},
        "data": {"change": "new", "add": "a", "drop": None},
    }
    assert written == stored(server)
    assert written.data == {"keep": "k", "change": "new", "add": "a"}


async def test_without_a_change_nothing_is_written(
    server: ApiServer, config_map: config_maps.ConfigMap
) -> None:
    before = store(server, a="1")
    assert await config_map.update(later(dict)) == before
    assert server.writes == []


async def test_a_change_of_somebody_else_is_kept(
    server: ApiServer, config_map: config_maps.ConfigMap, pauses: Pauses
) -> None:
    store(server, mine="1")
    seen: list[dict[str, str]] = []

    def change(data: Mapping[str, str]) -> dict[str, str]:
        seen.append(dict(data))
        if len(seen) == 1:
            store(server, mine="1", theirs="x")
        return {**data, "mine": "2"}

    written = await config_map.update(later(change))
    assert written.data == stored(server).data == {"mine": "2", "theirs": "x"}
    assert seen == [{"mine": "1"}, {"mine": "1", "theirs": "x"}]
    assert len(pauses.seconds) == 1


async def test_a_missing_config_map_is_created(server: ApiServer, config_map: config_maps.ConfigMap) -> None:
    assert (await config_map.update(later(lambda _: {"a": "1"}))).data == {"a": "1"}
    created = server.asked[-1].body
    assert created["metadata"] == {"name": "values", "namespace": "addons"}
    assert created["kind"] == "ConfigMap"


@pytest.mark.parametrize("data", [{"a": "0"}, None], ids=["change", "create"])
async def test_a_write_says_that_it_is_the_operators(
    server: ApiServer, config_map: config_maps.ConfigMap, data: dict[str, str] | None
) -> None:
    if data is not None:
        store(server, **data)
    await config_map.update(later(lambda _: {"a": "1"}))
    assert server.asked[-1].query == {"fieldManager": "addon-operator"}


async def test_a_missing_config_map_is_not_created_for_nothing(
    server: ApiServer, config_map: config_maps.ConfigMap
) -> None:
    assert await config_map.update(later(dict)) == config_maps.ABSENT
    assert server.writes == []


async def test_somebody_elses_creation_is_changed(
    server: ApiServer, config_map: config_maps.ConfigMap
) -> None:
    def change(data: Mapping[str, str]) -> dict[str, str]:
        if not data:
            store(server, theirs="x")
        return {**data, "mine": "1"}

    assert (await config_map.update(later(change))).data == {"theirs": "x", "mine": "1"}


async def test_a_deletion_in_between_makes_it_anew(
    server: ApiServer, config_map: config_maps.ConfigMap
) -> None:
    store(server, old="x")

    def change(data: Mapping[str, str]) -> dict[str, str]:
        if "old" in data:
            server.delete("ConfigMap", "values")
        return {"mine": "1"}

    assert (await config_map.update(later(change))).data == {"mine": "1"}


async def test_a_namespace_that_is_not_there_is_reported_at_once(
    server: ApiServer, config_map: config_maps.ConfigMap, pauses: Pauses
) -> None:
    server.on("POST", COLLECTION, status(404, "NotFound", 'namespaces "addons" not found'))
    with pytest.raises(api_errors.NotFound, match='namespaces "addons" not found'):
        await config_map.update(later(lambda _: {"a": "1"}))
    assert pauses.seconds == []


async def test_a_conflict_that_does_not_end_is_reported(
    server: ApiServer, config_map: config_maps.ConfigMap, pauses: Pauses
) -> None:
    store(server, a="1")
    server.on("PATCH", PATH, status(409, "Conflict", "a policy says: s3cret"))
    with pytest.raises(api_errors.Conflict, match="a policy says: s3cret") as raised:
        await config_map.update(later(lambda _: {"a": "2"}))
    assert "the operator's log says why" in raised.value.without_values
    assert len(pauses.seconds) == 7


async def test_an_error_of_the_change_goes_through(
    server: ApiServer, config_map: config_maps.ConfigMap
) -> None:
    store(server, a="1")

    def change(_: Mapping[str, str]) -> dict[str, str]:
        raise api_errors.KubernetesError("not so")

    with pytest.raises(api_errors.KubernetesError, match="not so"):
        await config_map.update(later(change))
    assert server.writes == []
