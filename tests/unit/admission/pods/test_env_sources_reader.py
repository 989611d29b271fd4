"""ConfigMaps, Secrets and Services as admission reads them."""

import asyncio
from collections.abc import Mapping

import pytest
from typing_extensions import override

from addon_operator.admission import events
from addon_operator.admission.pods import env_sources_reader
from addon_operator.kube import api_errors
from addon_operator.kube.client import client
from addon_operator.podpreset import model
from tests.support import clocks
from tests.support.api_server import ApiServer, Pauses, status
from tests.unit.admission.objects import Object

CONFIG = model.SourceRef("ConfigMap", "c")
SECRET = model.SourceRef("Secret", "s")
CONFIG_PATH = "/api/v1/namespaces/shop/configmaps/c"
SECRET_PATH = "/api/v1/namespaces/shop/secrets/s"


@pytest.fixture
def warnings() -> list[str]:
    return []


@pytest.fixture
def sources(kube: client.KubeClient, pauses: Pauses, warnings: list[str]) -> env_sources_reader.EnvSources:
    return env_sources_reader.EnvSources(kube, pauses, noting(warnings))


def noting(warnings: list[str]) -> events.Listener:
    def tell(event: events.Event) -> None:
        assert isinstance(event, events.SourceUnreadable)
        warnings.append(event.problem)

    return tell


def service(name: str) -> Object:
    return {"metadata": {"name": name}, "spec": {"clusterIP": "10.0.0.1"}}


async def test_of_both_kinds_only_the_keys_are_kept(
    sources: env_sources_reader.EnvSources, server: ApiServer
) -> None:
    server.on("GET", CONFIG_PATH, {"data": {"A": "1"}, "binaryData": {"B": "AAA="}})
    server.on("GET", SECRET_PATH, {"data": {"P": "aHVudGVyMg==", "BROKEN": "x"}})
    found = await sources.read("shop", [CONFIG, SECRET], 1.0)
    assert found[CONFIG].keys == frozenset({"A"})
    assert found[SECRET].keys == frozenset({"P", "BROKEN"})


async def test_a_source_without_data_is_there_and_empty(
    sources: env_sources_reader.EnvSources, server: ApiServer
) -> None:
    server.on("GET", CONFIG_PATH, {})
    assert (await sources.read("shop", [CONFIG], 1.0))[CONFIG].keys == frozenset()


async def test_a_missing_source_is_looked_for_again_with_the_next_pod(
    sources: env_sources_reader.EnvSources, server: ApiServer
) -> None:
    server.on("GET", CONFIG_PATH, status(404, "NotFound"), {"data": {"A": "1"}})
    assert await sources.read("shop", [CONFIG], 1.0) == {CONFIG: env_sources_reader.MISSING}
    assert (await sources.read("shop", [CONFIG], 1.0))[CONFIG].keys == frozenset({"A"})


async def test_a_source_is_read_once_for_pods_that_come_together(
    sources: env_sources_reader.EnvSources, server: ApiServer, pauses: Pauses
) -> None:
    server.on("GET", CONFIG_PATH, {"data": {}})
    await asyncio.gather(*(sources.read("shop", [CONFIG, CONFIG], 1.0) for _ in range(5)))
    pauses.now += env_sources_reader.SOURCE_SECONDS
    await sources.read("shop", [CONFIG], 1.0)
    assert server.requests == [f"GET {CONFIG_PATH}"] * 2


async def test_a_source_that_may_not_be_read_is_reported_and_counts_as_unreadable(
    sources: env_sources_reader.EnvSources, server: ApiServer, warnings: list[str]
) -> None:
    server.on("GET", SECRET_PATH, status(403, "Forbidden"))
    assert await sources.read("shop", [SECRET], 1.0) == {SECRET: env_sources_reader.UNREADABLE}
    assert "secrets" in warnings[0]


async def test_a_kind_that_is_not_to_be_read_is_not_asked_for(
    kube: client.KubeClient, pauses: Pauses, server: ApiServer
) -> None:
    server.on("GET", CONFIG_PATH, {"data": {"A": "1"}})
    warnings: list[str] = []
    sources = env_sources_reader.EnvSources(kube, pauses, noting(warnings), kinds=("configmaps",))
    found = await sources.read("shop", [CONFIG, SECRET], 1.0)
    assert (found[CONFIG].keys, found[SECRET]) == (frozenset({"A"}), env_sources_reader.UNREADABLE)
    assert (server.requests, warnings) == ([f"GET {CONFIG_PATH}"], [])


async def test_a_source_that_does_not_come_in_time_is_unreadable(
    sources: env_sources_reader.EnvSources, server: ApiServer
) -> None:
    server.on("GET", CONFIG_PATH, {"data": {"A": "1"}})
    assert await sources.read("shop", [CONFIG], 0.0) == {CONFIG: env_sources_reader.UNREADABLE}


async def test_a_source_without_a_name_is_not_asked_for(
    sources: env_sources_reader.EnvSources, server: ApiServer
) -> None:
    assert await sources.read("shop", [model.SourceRef("ConfigMap", "")], 1.0) == {}
    assert server.asked == []


async def test_a_name_that_no_object_can_have_is_a_missing_source(
    sources: env_sources_reader.EnvSources,
) -> None:
    dots = model.SourceRef("ConfigMap", "..")
    assert await sources.read("shop", [dots], 1.0) == {dots: env_sources_reader.MISSING}


class Crowd(client.KubeClient):
    """Has any ConfigMap when the test lets it answer, and remembers how many were asked for at once."""

    def __init__(self, count: int, keys: int = 0) -> None:
        self.references = [model.SourceRef("ConfigMap", f"c{number}") for number in range(count)]
        self.gate = asyncio.Event()
        self.asked = 0
        self.at_once = 0
        self.dropped = 0
        self._here = 0
        self._answer = {"data": {f"k{number}": "x" for number in range(keys)}}
        self._reader = env_sources_reader.EnvSources(self, Pauses(), self._tell)

    def _tell(self, event: events.Event) -> None:
        assert event == events.Dropped("sources")
        self.dropped += 1

    @override
    async def get(
        self, path: str, *, query: Mapping[str, str] | None = None, metadata_only: bool = False
    ) -> Object:
        self.asked += 1
        self._here += 1
        self.at_once = max(self.at_once, self._here)
        await self.gate.wait()
        self._here -= 1
        return self._answer

    async def read(self, *span: int, budget: float = 5.0) -> list[env_sources_reader.EnvSource]:
        wanted = self.references[slice(*span)] if span else self.references
        found = await self._reader.read("shop", wanted, budget)
        assert found.keys() == set(wanted)
        return list(found.values())


async def test_a_pod_with_too_many_sources_has_none_of_them_read() -> None:
    crowd = Crowd(env_sources_reader.SOURCES_MAX + 1)
    crowd.gate.set()
    assert set(await crowd.read()) == {env_sources_reader.UNREADABLE}
    assert (crowd.asked, crowd.dropped) == (0, 1)
    assert {each.readable for each in await crowd.read(env_sources_reader.SOURCES_MAX)} == {True}
    assert crowd.dropped == 1


async def test_sources_are_read_a_few_at_a_time() -> None:
    crowd = Crowd(env_sources_reader.SOURCES_MAX)
    reading = asyncio.create_task(crowd.read())
    await clocks.settle()
    crowd.gate.set()
    assert {each.readable for each in await reading} == {True}
    assert crowd.at_once == env_sources_reader.AT_ONCE


async def test_reads_that_nobody_waits_for_any_more_are_not_made() -> None:
    crowd = Crowd(env_sources_reader.SOURCES_MAX)
    assert set(await crowd.read(budget=0.01)) == {env_sources_reader.UNREADABLE}
    crowd.gate.set()
    await clocks.settle()
    assert crowd.asked == env_sources_reader.AT_ONCE


async def test_no_more_reads_wait_than_there_is_room_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(env_sources_reader, "WAITING_MAX", 30)
    crowd = Crowd(40)
    first = asyncio.create_task(crowd.read(20))
    await clocks.settle()
    assert set(await crowd.read(20, 40)) == {env_sources_reader.UNREADABLE}
    crowd.gate.set()
    await first
    assert (crowd.asked, crowd.dropped) == (20, 1)


async def test_keys_for_one_pod_take_no_more_room_than_they_may(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(env_sources_reader, "KEYS_WEIGHT_MAX", 1000)
    crowd = Crowd(10, keys=4)
    crowd.gate.set()
    # Four names of two characters are 328 bytes.
    assert sorted(each.readable for each in await crowd.read()) == [False] * 7 + [True] * 3
    assert crowd.dropped == 1


async def test_services_of_a_namespace_are_listed_once_in_a_while(
    sources: env_sources_reader.EnvSources, server: ApiServer, pauses: Pauses
) -> None:
    server.on("GET", "/api/v1/namespaces/shop/services", {"items": [service("db")]})
    for _ in range(2):
        assert await sources.service_variables("shop") == {"DB_SERVICE_HOST"}
    assert len(server.asked) == 1
    pauses.now += env_sources_reader.SERVICES_SECONDS
    await sources.service_variables("shop")
    assert len(server.asked) == 2


@pytest.mark.parametrize(
    ("answer", "names"),
    [(service("kubernetes"), {"KUBERNETES_SERVICE_HOST"}), (status(404, "NotFound"), set())],
    ids=["there", "missing"],
)
async def test_the_service_of_the_api_server_is_read_alone(
    sources: env_sources_reader.EnvSources, server: ApiServer, answer: object, names: set[str]
) -> None:
    server.on("GET", "/api/v1/namespaces/default/services/kubernetes", answer)  # type: ignore[arg-type]  # both kinds are answers
    assert await sources.master_variables() == names


async def test_services_that_may_not_be_read_are_an_error(
    sources: env_sources_reader.EnvSources, server: ApiServer
) -> None:
    server.on("GET", "/api/v1/namespaces/shop/services", status(403, "Forbidden"))
    with pytest.raises(api_errors.Forbidden):
        await sources.service_variables("shop")
