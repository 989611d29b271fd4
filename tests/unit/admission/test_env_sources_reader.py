"""ConfigMaps, Secrets and Services as admission reads them."""

import asyncio

import pytest

from addon_operator.admission import env_sources_reader
from addon_operator.kube import client, errors
from addon_operator.podpreset import defaults
from tests.fakes.api_server import ApiServer, Pauses, status

CONFIG = defaults.SourceRef("ConfigMap", "c")
SECRET = defaults.SourceRef("Secret", "s")
CONFIG_PATH = "/api/v1/namespaces/shop/configmaps/c"
SECRET_PATH = "/api/v1/namespaces/shop/secrets/s"


@pytest.fixture
def warnings() -> list[str]:
    return []


@pytest.fixture
def sources(kube: client.KubeClient, pauses: Pauses, warnings: list[str]) -> env_sources_reader.EnvSources:
    return env_sources_reader.EnvSources(kube, pauses, warnings.append)


async def test_the_keys_of_both_kinds_come_as_text(
    sources: env_sources_reader.EnvSources, server: ApiServer
) -> None:
    server.on("GET", CONFIG_PATH, {"data": {"A": "1"}, "binaryData": {"B": "AAA="}})
    server.on("GET", SECRET_PATH, {"data": {"P": "aHVudGVyMg==", "BROKEN": "x"}})
    found = await sources.read("shop", [CONFIG, SECRET], 1.0)
    assert found[CONFIG].data == {"A": "1"}
    assert found[SECRET].data == {"P": "hunter2", "BROKEN": ""}


async def test_a_source_without_data_is_there_and_empty(
    sources: env_sources_reader.EnvSources, server: ApiServer
) -> None:
    server.on("GET", CONFIG_PATH, {})
    assert (await sources.read("shop", [CONFIG], 1.0))[CONFIG].data == {}


async def test_a_missing_source_is_looked_for_again_with_the_next_pod(
    sources: env_sources_reader.EnvSources, server: ApiServer
) -> None:
    server.on("GET", CONFIG_PATH, status(404, "NotFound"), {"data": {"A": "1"}})
    assert await sources.read("shop", [CONFIG], 1.0) == {CONFIG: env_sources_reader.MISSING}
    assert (await sources.read("shop", [CONFIG], 1.0))[CONFIG].data == {"A": "1"}


async def test_a_source_is_read_once_for_pods_that_come_together(
    sources: env_sources_reader.EnvSources, server: ApiServer, pauses: Pauses
) -> None:
    server.on("GET", CONFIG_PATH, {"data": {}})
    await asyncio.gather(*(sources.read("shop", [CONFIG, CONFIG], 1.0) for _ in range(5)))
    pauses.now += env_sources_reader.SOURCE_SECONDS
    await sources.read("shop", [CONFIG], 1.0)
    assert server.requests == [f"GET {CONFIG_PATH}"] * 2


async def test_a_source_that_may_not_be_read_is_told_and_counts_as_unreadable(
    sources: env_sources_reader.EnvSources, server: ApiServer, warnings: list[str]
) -> None:
    server.on("GET", SECRET_PATH, status(403, "Forbidden"))
    assert await sources.read("shop", [SECRET], 1.0) == {SECRET: env_sources_reader.UNREADABLE}
    assert "secrets" in warnings[0]


async def test_a_source_that_does_not_come_in_time_is_unreadable(
    sources: env_sources_reader.EnvSources, server: ApiServer
) -> None:
    server.on("GET", CONFIG_PATH, {"data": {"A": "1"}})
    assert await sources.read("shop", [CONFIG], 0.0) == {CONFIG: env_sources_reader.UNREADABLE}


async def test_a_source_without_a_name_is_not_asked_for(
    sources: env_sources_reader.EnvSources, server: ApiServer
) -> None:
    assert await sources.read("shop", [defaults.SourceRef("ConfigMap", "")], 1.0) == {}
    assert server.asked == []


async def test_a_name_that_no_object_can_have_is_a_missing_source(
    sources: env_sources_reader.EnvSources,
) -> None:
    dots = defaults.SourceRef("ConfigMap", "..")
    assert await sources.read("shop", [dots], 1.0) == {dots: env_sources_reader.MISSING}


async def test_secrets_do_not_show_in_a_representation(
    sources: env_sources_reader.EnvSources, server: ApiServer
) -> None:
    server.on("GET", SECRET_PATH, {"data": {"P": "aHVudGVyMg=="}})
    assert "hunter2" not in repr(await sources.read("shop", [SECRET], 1.0))


async def test_services_of_a_namespace_are_listed_once_in_a_while(
    sources: env_sources_reader.EnvSources, server: ApiServer, pauses: Pauses
) -> None:
    server.on("GET", "/api/v1/namespaces/shop/services", {"items": [{"metadata": {"name": "db"}}]})
    for _ in range(2):
        assert [each["metadata"]["name"] for each in await sources.services("shop")] == ["db"]
    assert len(server.asked) == 1
    pauses.now += env_sources_reader.SERVICES_SECONDS
    await sources.services("shop")
    assert len(server.asked) == 2


@pytest.mark.parametrize(
    ("answer", "names"),
    [({"metadata": {"name": "kubernetes"}}, ["kubernetes"]), (status(404, "NotFound"), [])],
    ids=["there", "missing"],
)
async def test_the_service_of_the_api_server_is_read_alone(
    sources: env_sources_reader.EnvSources, server: ApiServer, answer: object, names: list[str]
) -> None:
    server.on("GET", "/api/v1/namespaces/default/services/kubernetes", answer)  # type: ignore[arg-type]  # both kinds are answers
    assert [each["metadata"]["name"] for each in await sources.master_services()] == names


async def test_services_that_may_not_be_read_are_an_error(
    sources: env_sources_reader.EnvSources, server: ApiServer
) -> None:
    server.on("GET", "/api/v1/namespaces/shop/services", status(403, "Forbidden"))
    with pytest.raises(errors.Forbidden):
        await sources.services("shop")
