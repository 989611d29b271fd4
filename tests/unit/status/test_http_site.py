"""The HTTP site, asked over a socket."""

import asyncio
import contextlib
import dataclasses
import gzip
import itertools
import socket
import threading
from collections.abc import AsyncIterator

import aiohttp
import pytest
from typing_extensions import override

from addon_operator.kernel import clock
from addon_operator.settings import settings
from addon_operator.status import converge_words, health, http_site, page_content, page_site, status_page
from addon_operator.telemetry import metrics
from tests.support import rows


@dataclasses.dataclass
class Reported(health.OperatorStatus):
    """A status that a test sets."""

    unhealthy: str | None = None
    unready: str | None = None
    admission_unready: str | None = None
    state: tuple[str, int] = (converge_words.NOT_STARTED, 0)

    @override
    def unhealthy_reason(self) -> str | None:
        return self.unhealthy

    @override
    def unready_reason(self) -> str | None:
        return self.unready

    @override
    def admission_unready_reason(self) -> str | None:
        return self.admission_unready

    wrong: tuple[str, ...] = ()

    @override
    def details(self) -> tuple[str, ...]:
        return self.wrong

    @override
    def converge(self) -> tuple[str, int]:
        return self.state

    under_way = 0

    @property
    @override
    def removals(self) -> int:
        return self.under_way


def settings_for(address: str = "127.0.0.1", port: int = 0) -> settings.Settings:
    return settings.Settings(namespace="addons", listen_address=address, listen_port=port)


class Content(page_content.PageContent):
    """Says that all is fine, and how often it was asked."""

    def __init__(self) -> None:
        """It asks nobody."""
        self.gathered = 0
        self.state = "FINE"

    @override
    async def gather(self) -> page_content.Content:
        self.gathered += 1
        return page_content.Content(state=self.state)


@pytest.fixture
def reported() -> Reported:
    return Reported()


@pytest.fixture
def content() -> Content:
    return Content()


@pytest.fixture
async def session(reported: Reported, content: Content) -> AsyncIterator[aiohttp.ClientSession]:
    async with http_site.serving(settings_for(), metrics.Metrics(), reported, content) as site:
        base = f"http://{site.address}:{site.port}"
        async with aiohttp.ClientSession(base, auto_decompress=False) as opened:
            yield opened


async def get(session: aiohttp.ClientSession, path: str) -> tuple[int, str]:
    async with session.get(path) as answer:
        return answer.status, await answer.text()


async def test_a_healthy_operator_says_so(session: aiohttp.ClientSession) -> None:
    assert await get(session, "/healthz") == (200, "ok\n")


async def test_an_unhealthy_operator_says_why(session: aiohttp.ClientSession, reported: Reported) -> None:
    reported.unhealthy = "a watch has ended"
    assert await get(session, "/healthz") == (503, "a watch has ended\n")


async def test_readiness_has_its_reason(session: aiohttp.ClientSession, reported: Reported) -> None:
    reported.unready = "the first converge is not done"
    assert await get(session, "/readyz") == (503, "the first converge is not done\n")
    reported.unready = None
    assert await get(session, "/readyz") == (200, "ok\n")


async def test_whether_pods_are_admitted_is_a_question_of_its_own(
    session: aiohttp.ClientSession, reported: Reported
) -> None:
    reported.unready = "the first converge is not done"
    assert await get(session, "/readyz/admission") == (200, "ok\n")
    reported.admission_unready = "the PodPresets have not been listed yet"
    assert await get(session, "/readyz/admission") == (503, "the PodPresets have not been listed yet\n")


CONVERGE = [
    (converge_words.NOT_STARTED, 0, "STARTUP_CONVERGE_NOT_STARTED\n"),
    (converge_words.STARTING, 3, "STARTUP_CONVERGE_IN_PROGRESS: 3 tasks\n"),
    (converge_words.DONE, 0, "STARTUP_CONVERGE_DONE\nCONVERGE_WAIT_TASK\n"),
    (converge_words.RUNNING, 2, "STARTUP_CONVERGE_DONE\nCONVERGE_IN_PROGRESS: 2 tasks\n"),
]


async def test_the_converge_is_reported_in_the_words_of_the_go_operator(
    session: aiohttp.ClientSession, reported: Reported
) -> None:
    found = []
    for state, tasks, _ in CONVERGE:
        reported.state = (state, tasks)
        found.append((state, tasks, (await get(session, "/status/converge"))[1]))
    assert found == CONVERGE
    reported.state, reported.under_way = (converge_words.DONE, 0), 2
    assert (await get(session, "/status/converge"))[1] == f"{CONVERGE[2][2]}REMOVALS_UNDER_WAY: 2\n"


NOTHING: dict[str, bool | int | None] = {
    converge_words.NOT_STARTED: False,
    converge_words.STARTING: None,
    converge_words.DONE: False,
    converge_words.RUNNING: None,
    converge_words.WAITING: False,
    converge_words.REMOVALS: 0,
}
CONVERGE_AS_JSON: list[tuple[str, int, dict[str, bool | int | None]]] = [
    (converge_words.NOT_STARTED, 0, NOTHING | {converge_words.NOT_STARTED: True}),
    (converge_words.STARTING, 3, NOTHING | {converge_words.STARTING: 3}),
    (converge_words.DONE, 0, NOTHING | {converge_words.DONE: True, converge_words.WAITING: True}),
    (converge_words.RUNNING, 0, NOTHING | {converge_words.DONE: True, converge_words.RUNNING: 0}),
]


async def test_the_converge_is_reported_as_json(session: aiohttp.ClientSession, reported: Reported) -> None:
    found = []
    for state, tasks, _ in CONVERGE_AS_JSON:
        reported.state = (state, tasks)
        async with session.get("/status/converge?output=json") as answer:
            assert answer.content_type == "application/json"
            found.append((state, tasks, await answer.json()))
    assert found == CONVERGE_AS_JSON


async def test_metrics_are_text_without_wishes(session: aiohttp.ClientSession) -> None:
    async with session.get("/metrics", headers={"Accept-Encoding": "identity"}) as answer:
        assert answer.headers["Content-Type"].startswith("text/plain; version=0.0.4")
        assert "Content-Encoding" not in answer.headers
        assert "\naddon_operator_live_ticks 0.0\n" in await answer.text()


async def test_metrics_are_negotiated(session: aiohttp.ClientSession) -> None:
    wishes = {"Accept": "application/openmetrics-text; version=1.0.0", "Accept-Encoding": "gzip"}
    async with session.get("/metrics", headers=wishes) as answer:
        assert answer.headers["Content-Type"].startswith("application/openmetrics-text; version=1.0.0")
        assert answer.headers["Content-Encoding"] == "gzip"
        assert gzip.decompress(await answer.read()).endswith(b"# EOF\n")


class Threads(metrics.Metrics):
    """Remembers in which thread it was asked."""

    def __init__(self) -> None:
        super().__init__()
        self.names: list[str] = []

    @override
    def render(self, form: metrics.Form | None = None) -> bytes:
        self.names.append(threading.current_thread().name)
        return b""

    @override
    def connection_closed(self, site: str, reason: str) -> None:
        raise AssertionError(reason)


async def test_metrics_are_rendered_beside_the_event_loop(reported: Reported) -> None:
    threads = Threads()
    async with (
        http_site.serving(settings_for(), threads, reported, Content()) as site,
        aiohttp.ClientSession() as session,
    ):
        await get(session, f"http://127.0.0.1:{site.port}/metrics")
    assert threads.names
    assert threading.main_thread().name not in threads.names


class Held(Threads):
    """Renders only when it is let."""

    def __init__(self) -> None:
        super().__init__()
        self.begun = threading.Event()
        self.go = threading.Event()

    @override
    def render(self, form: metrics.Form | None = None) -> bytes:
        found = super().render(form)
        self.begun.set()
        self.go.wait(60)
        return found


async def test_scrapes_at_the_same_time_share_one_render(reported: Reported) -> None:
    held = Held()
    async with (
        http_site.serving(settings_for(), held, reported, Content()) as site,
        aiohttp.ClientSession() as session,
    ):
        url = f"http://127.0.0.1:{site.port}/metrics"
        scrapes = [asyncio.create_task(get(session, url)) for _ in range(20)]
        await asyncio.to_thread(held.begun.wait, 10)
        # Answered by the same loop after all scrapes that were sent before it.
        scrapes.append(asyncio.create_task(get(session, url)))
        await get(session, f"http://127.0.0.1:{site.port}/healthz")
        held.go.set()
        assert {status for status, _ in await asyncio.gather(*scrapes)} == {200}
        rendered = len(held.names)
        await get(session, url)
    assert rendered <= 2
    assert len(held.names) == rendered + 1


@rows.each("version", ["1.0.0.1", "9.9.9", "x", ""])
def test_no_wish_makes_a_form_of_its_own(version: str) -> None:
    known = {metrics.Form.wanted(f"application/openmetrics-text; version={each}") for each in ("1.0.0", "")}
    wanted = metrics.Form.wanted(f"application/openmetrics-text; version={version}; escaping=made-up")
    assert wanted in known | {metrics.Form.wanted()}


async def test_no_answer_names_the_server(session: aiohttp.ClientSession) -> None:
    for path in ("/healthz", "/metrics", "/nothing"):
        async with session.get(path) as answer:
            assert "Server" not in answer.headers


async def test_other_paths_are_not_found(session: aiohttp.ClientSession) -> None:
    assert [(await get(session, path))[0] for path in ("/nothing", "/status")] == [404, 404]


async def test_the_root_is_a_page_that_only_runs_what_is_its_own(session: aiohttp.ClientSession) -> None:
    async with session.get("/") as answer:
        assert answer.content_type == "text/html"
        assert answer.headers["Content-Security-Policy"].startswith("default-src 'none'")
        assert "unsafe" not in answer.headers["Content-Security-Policy"]
        assert "<p><b>ready</b>, FINE</p>" in gzip.decompress(await answer.read()).decode()


async def test_all_who_look_within_a_second_share_one_page(
    session: aiohttp.ClientSession, content: Content, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(clock.SystemClock, "monotonic", lambda _: 100.0)

    async def look() -> int:
        async with session.get("/") as answer:
            return answer.status

    assert set(await asyncio.gather(*(look() for _ in range(30)))) == {200}
    assert content.gathered == 1


async def test_the_page_is_rendered_beside_the_event_loop(
    session: aiohttp.ClientSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    threads = []

    def render(_: page_content.Content, __: status_page.Link) -> str:
        threads.append(threading.current_thread())
        return "page"

    monkeypatch.setattr(status_page, "render", render)
    async with session.get("/", headers={"Accept-Encoding": "identity"}) as answer:
        assert await answer.read() == b"page"
    assert threads
    assert threading.main_thread() not in threads


async def _lines(answer: aiohttp.ClientResponse, number: int) -> AsyncIterator[bytes]:
    while number:
        line = await answer.content.readline()
        if line.startswith(b"data: "):
            number -= 1
            yield line


async def test_who_follows_the_page_is_told_its_version_again_and_again(
    session: aiohttp.ClientSession, content: Content, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(page_site, "LOOK_SECONDS", 0.01)
    # Whoever looks at the clock finds the page too old.
    times = itertools.count(100.0, 2 * page_site.PAGE_SECONDS)
    monkeypatch.setattr(clock.SystemClock, "monotonic", lambda _: next(times))
    async with session.get("/live") as answer:
        assert answer.content_type == "text/event-stream"
        told = _lines(answer, 1000)
        first = await anext(told)
        assert await anext(told) == first
        content.state = "OTHER"
        async for version in told:
            if version != first:
                break
        else:
            pytest.fail("no other version was told")


async def test_so_many_may_follow_that_probes_have_their_connections(
    session: aiohttp.ClientSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(page_site, "FOLLOWERS", 1)
    monkeypatch.setattr(page_site, "LOOK_SECONDS", 0.01)
    async with session.get("/live") as followed:
        assert followed.status == 200
        assert await get(session, "/live") == (503, "too many follow the page: load it again\n")
        assert await get(session, "/healthz") == (200, "ok\n")


async def test_a_stream_ends_before_the_site_ends_it(
    session: aiohttp.ClientSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert http_site.CONNECTIONS.request > page_site.FOLLOW_SECONDS
    monkeypatch.setattr(page_site, "FOLLOW_SECONDS", 0.02)
    monkeypatch.setattr(page_site, "LOOK_SECONDS", 0.01)
    async with session.get("/live") as answer:
        assert (await answer.read()).count(b"data: ") == 2


async def test_without_the_page_its_paths_are_not_found(reported: Reported, content: Content) -> None:
    off = dataclasses.replace(settings_for(), page=False)
    async with (
        http_site.serving(off, metrics.Metrics(), reported, content) as site,
        aiohttp.ClientSession(f"http://{site.address}:{site.port}") as session,
    ):
        assert [(await get(session, path))[0] for path in ("/", "/live", "/healthz")] == [404, 404, 200]
        assert "GET /\n" not in (await get(session, "/discovery"))[1]


async def test_readiness_says_on_demand_what_is_wrong_beside_it(
    session: aiohttp.ClientSession, reported: Reported
) -> None:
    reported.wrong = ("ConfigMap a/b is invalid since today",)
    assert await get(session, "/readyz") == (200, "ok\n")
    assert await get(session, "/readyz?verbose") == (200, "ok\nConfigMap a/b is invalid since today\n")
    reported.unready = "the operator is starting"
    status, text = await get(session, "/readyz?verbose")
    assert (status, text.splitlines()[0]) == (503, "the operator is starting")


async def test_all_paths_are_discovered(session: aiohttp.ClientSession) -> None:
    status, text = await get(session, "/discovery")
    assert status == 200
    assert text.splitlines() == [
        "GET /",
        "GET /discovery",
        "GET /healthz",
        "GET /live",
        "GET /metrics",
        "GET /readyz",
        "GET /readyz/admission",
        "GET /status/converge",
    ]


async def test_nothing_can_be_posted(session: aiohttp.ClientSession) -> None:
    async with session.post("/readyz") as answer:
        assert answer.status == 405


async def test_a_taken_port_is_one_sentence_with_address_port_and_settings(reported: Reported) -> None:
    with contextlib.closing(socket.socket()) as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(http_site.SiteListenError) as refused:
            async with http_site.serving(settings_for(port=port), metrics.Metrics(), reported, Content()):
                pytest.fail("it must not serve")
    text = str(refused.value)
    assert text.startswith(f"cannot listen on 127.0.0.1 port {port}: another process listens there; ")
    assert "ADDON_OPERATOR_LISTEN_PORT" in text
    assert "\n" not in text


async def test_an_address_of_another_machine_is_one_sentence(reported: Reported) -> None:
    with pytest.raises(http_site.SiteListenError, match="this machine has no such address"):
        async with http_site.serving(settings_for("192.0.2.1"), metrics.Metrics(), reported, Content()):
            pytest.fail("it must not serve")


async def test_the_port_is_free_again_afterwards(reported: Reported) -> None:
    async with http_site.serving(settings_for(), metrics.Metrics(), reported, Content()) as first:
        pass
    async with http_site.serving(
        settings_for(port=first.port), metrics.Metrics(), reported, Content()
    ) as second:
        assert second.port == first.port
