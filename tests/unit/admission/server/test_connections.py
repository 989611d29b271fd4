"""How many may be connected to a site, for how long, and who goes first."""

import asyncio
import contextlib
import socket
from collections.abc import AsyncIterator

import pytest
from aiohttp import web
from msgspec import structs

from addon_operator.admission.server import connections, site
from tests.unit.admission import tls_clients

Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]
GET = b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"


class Site:
    """A site whose clock a test moves on, and whose answers it lets go."""

    def __init__(self, bounds: connections.Bounds) -> None:
        self.now = 1000.0
        self.closed: list[str] = []
        self.text = "fine"
        self.gate = asyncio.Event()
        self.gate.set()
        self.entered = asyncio.Semaphore(0)
        self._open = contextlib.AsyncExitStack()
        app = web.Application()
        app.router.add_get("/", self._answer)
        self.served = connections.Connections(
            app,
            bounds,
            shutdown_seconds=0.1,
            closed=lambda reason, _: self.closed.append(reason),
            now=lambda: self.now,
        )

    async def _answer(self, _: web.Request) -> web.Response:
        self.entered.release()
        await self.gate.wait()
        return web.Response(text=self.text)

    async def start(self) -> None:
        (listener,) = await connections.bind("127.0.0.1", 0, 100)
        self.port = listener.getsockname()[1]
        await self.served.start([listener])

    async def connect(self) -> Streams:
        """One more connection, which the site has taken note of."""
        taken = self.served.number + len(self.closed)
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        self._open.callback(writer.close)
        while self.served.number + len(self.closed) == taken:  # noqa: ASYNC110 - only the socket knows
            await asyncio.sleep(0)
        return reader, writer

    async def stop(self) -> None:
        self.gate.set()
        await self._open.aclose()
        await self.served.stop()


@contextlib.asynccontextmanager
async def serving(**bounds: float) -> AsyncIterator[Site]:
    site = Site(connections.Bounds(**{"connections": 3} | bounds))  # type: ignore[arg-type]  # one of them is not a float
    await site.start()
    try:
        yield site
    finally:
        await site.stop()


async def ask(streams: Streams) -> bytes:
    """The header of an answer."""
    streams[1].write(GET)
    header = await streams[0].readuntil(b"\r\n\r\n")
    await streams[0].readexactly(len(b"fine"))
    return header


def is_reading(site: Site) -> bool:
    return any(each.stage is connections.ConnectionStage.READING for each in site.served.members.values())


async def is_closed(streams: Streams) -> bool:
    try:
        async with asyncio.timeout(60):
            return await streams[0].read() == b""
    except ConnectionError:
        return True
    except TimeoutError:
        return False


async def test_for_one_too_many_the_one_goes_that_was_of_no_use_for_longest() -> None:
    async with serving() as site:
        useful, idle = await site.connect(), await site.connect()
        await ask(useful)
        site.now += 1
        younger = await site.connect()
        newest = await site.connect()
        assert await is_closed(idle)
        assert site.closed == ["made room"]
        assert [(await ask(each))[:15] for each in (useful, younger, newest)] == [b"HTTP/1.1 200 OK"] * 3


async def test_who_is_being_answered_never_goes_and_one_too_many_is_turned_away() -> None:
    async with serving(connections=2) as site:
        site.gate.clear()
        asked = [asyncio.create_task(ask(await site.connect())) for _ in range(2)]
        for _ in asked:
            await site.entered.acquire()
        assert await is_closed(await site.connect())
        assert site.closed == ["no room"]
        site.gate.set()
        assert [answer[:15] for answer in await asyncio.gather(*asked)] == [b"HTTP/1.1 200 OK"] * 2


async def test_a_header_that_trickles_in_is_not_waited_for() -> None:
    async with serving(header=10) as site:
        slow, idle = await site.connect(), await site.connect()
        slow[1].write(b"GET / HTTP/1.1\r\nX-")
        await slow[1].drain()
        while not is_reading(site):  # noqa: ASYNC110 - only the socket knows
            await asyncio.sleep(0)
        site.now += 11
        site.served.sweep()
        assert await is_closed(slow)
        assert (site.closed, (await ask(idle))[:15]) == (["slow"], b"HTTP/1.1 200 OK")


async def test_idle_connections_stay_while_there_is_room_and_go_early_when_there_is_little() -> None:
    async with serving(connections=4, idle_when_crowded=95, unused_when_crowded=10) as site:
        useful, unused = await site.connect(), await site.connect()
        await ask(useful)
        site.now += 90
        site.served.sweep()
        assert site.closed == []
        newest = await site.connect()
        site.served.sweep()
        assert await is_closed(unused)
        assert site.closed == ["made room"]
        await site.connect()
        site.now += 6
        site.served.sweep()
        assert await is_closed(useful)
        assert await ask(newest)


async def test_who_does_not_take_the_answer_goes_early_when_there_is_little_room() -> None:
    async with serving(connections=4, request=60, unread_when_crowded=2) as site:
        site.text = "x" * 30_000_000
        slow = [await site.connect() for _ in range(2)]
        for each in slow:
            each[1].write(GET)
        while not all(each.is_unread for each in site.served.members.values()):  # noqa: ASYNC110
            await asyncio.sleep(0)
        site.now += 3
        site.served.sweep()
        assert site.closed == []
        await site.connect()
        site.served.sweep()
        assert site.closed == ["slow", "slow"]


async def test_an_idle_connection_outlives_the_idle_time_of_the_api_server() -> None:
    bounds = connections.Bounds(connections=1)
    assert min(bounds.idle, bounds.idle_when_crowded) > 90


async def test_no_answer_names_the_server_nor_repeats_what_it_does_not_understand() -> None:
    async with serving() as site:
        assert b"server:" not in (await ask(await site.connect())).lower()
        reader, writer = await site.connect()
        writer.write(b"NO-HTTP-\x1b[31m\r\n\r\n")
        answer = await reader.read()
    assert b" 400 Bad Request\r\n" in answer.splitlines(keepends=True)[0]
    assert answer.endswith(b"\r\n\r\n400 Bad Request\n")
    assert b"server:" not in answer.lower()


async def test_a_handshake_counts_as_a_connection_and_makes_room_for_the_api_server(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # Both ends of each are this process's, and many a machine allows 1024 open files.
    monkeypatch.setattr(site, "CONNECTIONS", structs.replace(site.CONNECTIONS, connections=20))
    async with tls_clients.running() as run, contextlib.AsyncExitStack() as stack:
        for _ in range(site.CONNECTIONS.connections + 1):
            _, writer = await asyncio.open_connection("127.0.0.1", run.site.port)
            stack.callback(writer.close)
        assert (await run.ask())[0] == 200
        assert ("made room", "") in run.watcher.closed


async def test_nothing_stays_open_of_a_connection_that_came_with_the_end() -> None:
    site_ = Site(connections.Bounds(connections=3))
    await site_.start()
    reader, writer = await site_.connect()
    await site_.served.stop()
    assert site_.served.number == 0
    assert await is_closed((reader, writer))
    writer.close()


async def test_an_address_of_a_name_that_the_machine_lacks_is_skipped(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    found = [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (host, 0)) for host in ("192.0.2.1", "127.0.0.1")]

    async def of_two(*_: object, **__: object) -> object:
        return found

    monkeypatch.setattr(asyncio.get_running_loop(), "getaddrinfo", of_two)
    (listener,) = await connections.bind("two.example", 0, 1)
    with listener:
        assert listener.getsockname()[0] == "127.0.0.1"
    del found[1]
    with pytest.raises(OSError, match="Cannot assign"):
        await connections.bind("two.example", 0, 1)
