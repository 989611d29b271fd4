"""Only who knows the random part of a path, which changes, is answered there."""

import asyncio
import base64
import pathlib

import pytest
from typing_extensions import override

from addon_operator.admission import reviews
from addon_operator.admission.certificates import certificate_store, certificate_store_files, path_keys
from addon_operator.admission.server import site
from addon_operator.aio import waiting
from tests.support import api_server, logs, review_handlers
from tests.unit.admission import tls_clients

PATH = "/hooks/validating/{name}"
HOOK = "/hooks/validating/a.b.c"


class Replica(path_keys.PathKeys):
    """One of several that share a Secret."""

    def __init__(self, server: api_server.ApiServer, clock: api_server.Pauses) -> None:
        super().__init__(api_server.client_of(server, clock), "system", "webhook", clock)


@pytest.fixture
def clock() -> api_server.Pauses:
    return api_server.Pauses()


async def test_replicas_agree_and_a_restarted_one_takes_what_is_registered(
    server: api_server.ApiServer, clock: api_server.Pauses
) -> None:
    first = Replica(server, clock)
    key = await first.load()
    again = Replica(server, clock)
    assert await again.load() == key == await first.load()
    assert len(key) == 32
    assert again.accepts(key)
    assert not again.accepts("0" * 32)
    assert not again.accepts("")


async def test_who_leads_changes_it_at_once_and_hourly_and_others_never_do(
    server: api_server.ApiServer, clock: api_server.Pauses
) -> None:
    leads, other = Replica(server, clock), Replica(server, clock)
    first = await other.load()
    clock.now += 7200
    assert await other.load() == first
    leads.lead()
    second = await leads.load()
    assert second != first
    assert await other.load() == second == await leads.load()
    clock.now += 3500
    assert await leads.load() == second
    clock.now += 100
    assert await leads.load() != second


async def test_the_one_before_is_taken_until_two_minutes_after_all_registrations_follow(
    server: api_server.ApiServer, clock: api_server.Pauses
) -> None:
    leads, other = Replica(server, clock), Replica(server, clock)
    first = await leads.load()
    leads.registered = {"pods": first, "hooks": first}
    leads.lead()
    second = await leads.load()
    leads.registered["pods"] = second
    clock.now += 1000
    assert await leads.load() == second
    assert leads.accepts(first), "what asks hooks is not written yet"
    leads.registered["hooks"] = second
    await leads.load()
    assert not leads.accepts(first)
    await other.load()
    assert (other.accepts(first), other.accepts(second)) == (False, True)


async def test_one_that_was_exposed_at_any_replica_changes_within_a_minute_and_no_faster(
    server: api_server.ApiServer, clock: api_server.Pauses
) -> None:
    leads, other = Replica(server, clock), Replica(server, clock)
    leads.lead()
    first = await leads.load()
    await other.load()
    other.expose()
    assert await other.load() == first
    assert await leads.load() == first
    clock.now += 60
    second = await leads.load()
    assert second != first
    clock.now += 600
    assert await leads.load() == second


async def test_a_secret_that_was_deleted_gets_what_is_in_use_and_keeps_what_others_put_there(
    server: api_server.ApiServer, clock: api_server.Pauses
) -> None:
    replica = Replica(server, clock)
    key = await replica.load()
    server.delete("Secret", "webhook", "system")
    assert await replica.load() == key
    stored = server.get("Secret", "webhook", "system")
    server.put({**stored, "data": {"tls.crt": "eA==", "path-keys": base64.b64encode(b"x\n\xff").decode()}})
    assert await replica.load() == key
    assert server.get("Secret", "webhook", "system")["data"]["tls.crt"] == "eA=="


class Guard(certificate_store.CertificateStore):
    """Knows the keys of a Secret, without certificates."""

    def __init__(self, keys: path_keys.PathKeys, clock: api_server.Pauses) -> None:
        nowhere = certificate_store_files.FileSource(pathlib.Path("nowhere"))
        self.exposed = asyncio.Event()
        super().__init__(nowhere, tls_clients.shared_tls(), keys, logs.Lines(), clock)

    @override
    async def refresh(self) -> certificate_store.Calling:
        return certificate_store.Calling(None, await self.keys.load())

    @override
    def expose(self) -> None:
        super().expose()
        self.exposed.set()


async def test_a_path_without_its_random_part_gets_403_and_one_that_another_replica_made_is_looked_up(
    server: api_server.ApiServer, clock: api_server.Pauses
) -> None:
    asked: list[str] = []

    is_slow = asyncio.Event()

    async def allowing(review: reviews.Review) -> reviews.ReviewVerdict:
        asked.append(review.path)
        if is_slow.is_set():
            await waiting.wait_within(asyncio.Event(), 0.3)
        return reviews.ALLOWED

    leads, other = Replica(server, clock), Replica(server, clock)
    await other.load()
    leads.lead()
    key = await leads.load()
    guard = Guard(other, clock)
    routes = {PATH: site.Route(review_handlers.Calling(allowing), raw=True, guard=guard)}
    async with tls_clients.running(routes) as running:
        for wrong in (HOOK, f"/{'0' * 32}{HOOK}", f"/%2e{HOOK}"):
            assert (await running.ask(path=wrong))[0] == 403
        assert asked == []
        assert (await running.ask(path=f"/{key}{HOOK}"))[0] == 200
        assert asked == [HOOK]
        assert (await running.ask(b"no JSON", path=f"/{key}{HOOK}"))[0] == 400
        clock.now += 60
        await other.load()
        assert await leads.load() == key
        is_slow.set()
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.05):
                await running.ask(path=f"/{key}{HOOK}")
        await guard.exposed.wait()
    await other.load()
    assert await leads.load() != key, "who asked quotes the address when the time is up"
