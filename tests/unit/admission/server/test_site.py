"""What the admission server answers, to the API server and to others."""

import asyncio
import contextlib
import io
import json
from collections.abc import AsyncIterator

import aiohttp
import msgspec
import pytest
from msgspec import structs
from typing_extensions import override

from addon_operator.admission import review_budget, review_shapes, reviews
from addon_operator.admission.server import site
from addon_operator.app import admission_webhooks
from tests.support import clocks, review_handlers, rows
from tests.unit.admission import tls_clients

PATH = tls_clients.PATH


async def test_a_review_is_answered_by_the_handler_of_its_path() -> None:
    async def patching(review: reviews.Review) -> reviews.ReviewVerdict:
        return reviews.ReviewVerdict(patch=({"op": "remove", "path": f"/{review.namespace}"},))

    async def refusing(review: reviews.Review) -> reviews.ReviewVerdict:
        return reviews.ReviewVerdict(allowed=False, message=f"not {review.namespace}")

    routes = {
        "/a": site.Route(review_handlers.Calling(patching)),
        "/b": site.Route(review_handlers.Calling(refusing)),
    }
    async with tls_clients.running(routes) as run:
        a, b = [(await run.ask(path=path))[1]["response"] for path in ("/a", "/b")]
    assert a["patchType"] == "JSONPatch"
    assert b["status"]["message"] == "not shop"


OUTSIDE = {
    ("POST", "/"): 404,
    ("POST", "/mutate-pods/x"): 404,
    ("GET", PATH): 405,
    ("PUT", PATH): 405,
}


async def test_nothing_is_allowed_outside_the_routes() -> None:
    found = {}
    async with tls_clients.running() as run:
        for method, path in OUTSIDE:
            url = run.url + path
            async with run.session.request(method, url, json=tls_clients.review()) as answer:
                found[method, path] = answer.status
    assert found == OUTSIDE


async def test_other_content_types_are_refused() -> None:
    given = ["text/plain", "application/yaml", "application/octet-stream"]
    async with tls_clients.running() as run:
        found = [await run.ask(b"{}", headers={"Content-Type": one}) for one in given]
    sentences = [f"the Content-Type is {one!r}: send application/json" for one in given]
    assert found == [(415, f"{sentence}\n") for sentence in sentences]
    assert run.watcher.reasons == sentences


async def test_a_charset_in_the_content_type_is_fine() -> None:
    async with tls_clients.running() as run:
        body = json.dumps(tls_clients.review()).encode()
        status, _ = await run.ask(body, headers={"Content-Type": "application/json; charset=utf-8"})
    assert status == 200


async def test_a_malformed_review_is_refused_with_the_reason() -> None:
    async with tls_clients.running() as run:
        status, text = await run.ask({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview"})
    assert (status, text) == (400, "the AdmissionReview has no request\n")


async def test_a_review_of_two_large_objects_is_taken() -> None:
    large = {"data": "<" * (3 << 19)}
    async with tls_clients.running() as run:
        status, _ = await run.ask(tls_clients.review(object=large, oldObject=large))
    assert status == 200


async def in_chunks(size: int) -> AsyncIterator[bytes]:
    for _ in range(size >> 16):
        yield b" " * (1 << 16)
    yield b" "


@rows.each(
    ("announced", "limit"),
    [pytest.param(True, 20 << 20, id="announced"), pytest.param(False, 1 << 20, id="in chunks")],
)
async def test_a_body_over_the_limit_is_refused(announced: bool, limit: int) -> None:
    assert site.MAX_BODY_BYTES == 20 << 20
    routes = {PATH: site.Route(review_handlers.Calling(tls_clients.allowing), max_body=limit)}
    data = io.BytesIO(b" " * (limit + 1)) if announced else in_chunks(limit)
    async with tls_clients.running(routes) as run:
        # Whoever is still writing may see the connection closed before the answer.
        with contextlib.suppress(aiohttp.ClientConnectionError):
            status, text = await run.ask(data)
            assert (status, text) == (413, f"the body is over {limit} bytes\n")
        assert (await run.ask())[0] == 200
    assert run.watcher.statuses == [413, 200]


async def failing(review: reviews.Review) -> reviews.ReviewVerdict:
    raise KeyError("a mistake of ours")


async def never(review: reviews.Review) -> reviews.ReviewVerdict:
    await asyncio.Event().wait()
    return reviews.ALLOWED


async def unwritable(review: reviews.Review) -> reviews.ReviewVerdict:
    return reviews.ReviewVerdict(patch=({"op": "add", "path": "/a", "value": object()},))


async def test_an_error_of_ours_refuses_no_pod() -> None:
    handlers = {"/failing": failing, "/never": never, "/unwritable": unwritable}
    routes = {
        path: site.Route(review_handlers.Calling(handler), timeout=0.01) for path, handler in handlers.items()
    }
    async with tls_clients.running(routes) as run:
        found = {path: await run.ask(path=path) for path in routes}
    told = {path: (status, answer["response"]["allowed"]) for path, (status, answer) in found.items()}
    assert told == dict.fromkeys(routes, (200, True))
    assert [path for path, (_, answer) in found.items() if "patch" in answer["response"]] == []
    assert len(run.watcher.failures) == 3
    assert "mistake" not in json.dumps(found)
    assert isinstance(run.watcher.failures[0], KeyError)


@rows.each("query", ["?timeout=300ms", "?timeout=0.1s"])
async def test_the_handler_gets_no_more_time_than_the_api_server_gives(query: str) -> None:
    async with tls_clients.running({PATH: site.Route(review_handlers.Calling(never), timeout=3600)}) as run:
        async with asyncio.timeout(60):
            status, _ = await run.ask(path=PATH + query)
    assert status == 200
    assert isinstance(run.watcher.failures[0], TimeoutError)


async def test_a_timeout_that_is_none_is_not_a_mistake_of_the_review() -> None:
    async with tls_clients.running() as run:
        assert (await run.ask(path=f"{PATH}?timeout=soon"))[0] == 200


@pytest.mark.parametrize(
    "sent",
    [
        pytest.param(b"Transfer-Encoding: chunked\r\n\r\nxyz\r\n", id="a broken chunk"),
        pytest.param(b"Content-Length: -1\r\n\r\n", id="a negative length"),
        pytest.param(b"Content-Length: 100\r\n\r\n{}", id="a body that breaks off"),
    ],
)
async def test_broken_requests_leave_the_server_as_it_was(
    sent: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    async with tls_clients.running() as run:
        context = tls_clients.trusting_authority()
        reader, writer = await asyncio.open_connection("127.0.0.1", run.site.port, ssl=context)
        head = f"POST {PATH} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
        writer.write(head.encode() + sent)
        await writer.drain()
        writer.close()
        await reader.read()
        assert (await run.ask())[0] == 200
    assert [record for record in caplog.records if record.exc_info] == []


async def test_nothing_is_answered_before_the_operator_is_ready() -> None:
    async with tls_clients.running(ready=False) as run:
        status, text = await run.ask()
        assert not run.site.ready
    assert (status, text) == (503, "the operator has not read all that it needs for an answer yet\n")


async def test_many_reviews_at_once_are_all_answered() -> None:
    gate = tls_clients.Gate()
    async with tls_clients.running({PATH: site.Route(review_handlers.Calling(gate), timeout=60)}) as run:
        asked = [asyncio.create_task(run.ask()) for _ in range(12)]
        for _ in range(12):
            await gate.entered.acquire()
        gate.open.set()
        answers = await asyncio.gather(*asked)
    assert {status for status, _ in answers} == {200}


async def test_a_flood_beyond_the_limit_is_turned_away_at_once() -> None:
    gate = tls_clients.Gate()
    routes = {PATH: site.Route(review_handlers.Calling(gate), timeout=60)}
    async with tls_clients.running(routes, limits=review_budget.Limits(requests=1)) as run:
        first = asyncio.create_task(run.ask())
        await gate.entered.acquire()
        assert await run.ask() == (503, "too many reviews are being answered\n")
        gate.open.set()
        assert (await first)[0] == 200
        assert (await run.ask())[0] == 200


def of(user: str, namespace: str = "a") -> dict[str, object]:
    return tls_clients.review(userInfo={"username": user}, namespace=namespace, object={"a": "x" * 10_000})


@rows.each(
    "limits",
    [
        review_budget.Limits(requests=8),
        review_budget.Limits(memory_bytes=9 * review_budget.Estimate().add(json.dumps(of("flood")).encode())),
    ],
    ids=["many", "large"],
)
async def test_who_floods_hooks_leaves_half_of_the_room_to_others(limits: review_budget.Limits) -> None:
    gate = tls_clients.Gate()
    routes = {PATH: site.Route(review_handlers.Calling(gate), timeout=60, raw=True)}
    async with tls_clients.running(routes, limits=limits) as run:

        def asked(user: str, namespace: str = "a") -> asyncio.Task[tuple[int, object]]:
            return asyncio.create_task(run.ask(of(user, namespace)))

        flood = [asked("flood") for _ in range(4)]
        for _ in flood:
            await gate.entered.acquire()
        assert await asked("flood") == (503, "too many reviews are being answered\n")
        # A controller asks for all namespaces, of which one floods.
        others = [asked("other"), asked("flood", "b")]
        for _ in others:
            await gate.entered.acquire()
        gate.open.set()
        assert {status for status, _ in await asyncio.gather(*flood, *others)} == {200}
        assert (await asked("flood"))[0] == 200


async def test_who_floods_conversions_leaves_half_of_the_room_to_requests() -> None:
    gate = tls_clients.Gate()

    class Converting(reviews.BodyHandler):
        @override
        async def answer(self, name: str, body: bytes, seconds: float) -> bytes:
            await gate(reviews.parse(body))
            return b"{}"

    routes = {
        "/convert": site.Route(Converting(), timeout=60),
        PATH: site.Route(review_handlers.Calling(gate), timeout=60, raw=True),
    }
    async with tls_clients.running(routes, limits=review_budget.Limits(requests=4)) as run:
        flood = [asyncio.create_task(run.ask(path="/convert")) for _ in range(2)]
        for _ in flood:
            await gate.entered.acquire()
        assert (await run.ask(path="/convert"))[0] == 503
        other = asyncio.create_task(run.ask())
        await gate.entered.acquire()
        gate.open.set()
        assert {status for status, _ in await asyncio.gather(*flood, other)} == {200}


async def test_stopping_answers_what_was_asked_and_takes_nothing_more() -> None:
    gate = tls_clients.Gate()
    async with tls_clients.running({PATH: site.Route(review_handlers.Calling(gate), timeout=60)}) as run:
        asked = asyncio.create_task(run.ask())
        await gate.entered.acquire()
        stopping = asyncio.create_task(run.site.stop())
        await clocks.settle()
        gate.open.set()
        assert (await asked)[0] == 200
        await stopping
        with pytest.raises(aiohttp.ClientConnectorError):
            await run.ask()


class Goodbye:
    """What happens in the pauses of a site that leaves, and for how long they were to be."""

    def __init__(self) -> None:
        self.pauses: list[float] = []
        self.run: tls_clients.Running
        self.seen: list[object] = []

    async def sleep(self, seconds: float) -> None:
        self.pauses.append(seconds)
        try:
            async with self.run.session.post(
                self.run.url + PATH, json=tls_clients.review(), headers={"Connection": "keep-alive"}
            ) as answer:
                self.seen.append((answer.status, answer.headers.get("Connection")))
        except aiohttp.ClientConnectorError:
            self.seen.append("refused")


async def test_a_site_that_was_used_ends_connections_before_it_takes_no_more() -> None:
    goodbye = Goodbye()
    leaving = site.Leaving(accepting=2.0, answering=0.5, sleep=goodbye.sleep)
    async with tls_clients.running(leaving=leaving) as run:
        goodbye.run = run
        assert (await run.ask())[0] == 200
        await run.site.stop()
    assert goodbye.pauses == [2.0, 0.5]
    assert goodbye.seen == [(200, "close"), "refused"]


async def test_a_site_that_nobody_asked_leaves_at_once() -> None:
    goodbye = Goodbye()
    leaving = site.Leaving(accepting=2.0, answering=0.5, sleep=goodbye.sleep)
    async with tls_clients.running(leaving=leaving) as run:
        await run.site.stop()
    assert goodbye.pauses == []


async def test_a_port_that_is_taken_is_reported() -> None:
    async with tls_clients.running() as run:
        other = site.AdmissionSite(
            {},
            run.tls,
            site.ListenOptions("127.0.0.1", run.site.port),
            run.watcher,
            review_budget.MemoryBudget(review_budget.Limits()),
        )
        with pytest.raises(site.AdmissionListenError) as told:
            await other.start()
    assert str(told.value) == (
        f"the admission server cannot listen on 127.0.0.1 port {other.port}: another process listens there; "
        "choose others with ADMISSION_SERVER_LISTEN_ADDRESS and ADMISSION_SERVER_LISTEN_PORT"
    )


async def test_bodies_that_take_too_much_together_are_turned_away_with_503() -> None:
    gate = tls_clients.Gate()
    routes = {PATH: site.Route(review_handlers.Calling(gate), timeout=60)}
    async with tls_clients.running(routes, limits=review_budget.Limits(memory_bytes=60_000)) as run:
        first = asyncio.create_task(run.ask(tls_clients.review(object={"a": "x" * 10_000})))
        await gate.entered.acquire()
        assert await run.ask(tls_clients.review(object={"a": "x" * 10_000})) == (
            503,
            "too many reviews are being answered\n",
        )
        gate.open.set()
        assert (await first)[0] == 200
        assert (await run.ask(tls_clients.review(object={"a": "x" * 10_000})))[0] == 200


async def test_a_body_that_would_become_too_much_memory_is_refused_before_it_is_parsed() -> None:
    async with tls_clients.running() as run:
        with contextlib.suppress(aiohttp.ClientConnectionError):
            status, text = await run.ask(io.BytesIO(b"[" + b"[]," * (2 << 20) + b"[]]"))
            assert (status, text) == (413, "the review would take too much memory\n")
        assert (await run.ask())[0] == 200
    assert run.watcher.statuses == [413, 200]


async def test_a_compressed_body_is_refused() -> None:
    async with tls_clients.running() as run:
        status, _ = await run.ask(b"x", headers={"Content-Encoding": "deflate"})
    assert status == 415


async def test_a_path_may_take_less_than_the_others() -> None:
    routes = {
        "/small": site.Route(review_handlers.Calling(tls_clients.allowing), max_body=1000),
        "/large": site.Route(review_handlers.Calling(tls_clients.allowing)),
    }
    given = tls_clients.review(object={"a": "x" * 1000})
    async with tls_clients.running(routes) as run:
        assert [(await run.ask(given, path=path))[0] for path in ("/large", "/small")] == [200, 413]


async def test_no_answer_names_the_server() -> None:
    async with (
        tls_clients.running() as run,
        run.session.post(f"{run.url}{PATH}", json=tls_clients.review()) as found,
        run.session.get(f"{run.url}/nothing") as missing,
    ):
        assert {"Server"} & {*found.headers, *missing.headers} == set()


async def test_a_review_that_the_api_server_would_not_send_reaches_no_handler() -> None:
    routes = {
        "/any": site.Route(review_handlers.Calling(failing)),
        "/pods": site.Route(review_handlers.Calling(failing), shape=review_shapes.ReviewShape("", "pods")),
    }
    async with tls_clients.running(routes) as run:
        nowhere = await run.ask(tls_clients.review(namespace="."), path="/any")
        nobody = await run.ask(tls_clients.review(userInfo=None), path="/pods")
    assert nowhere == (400, "request.namespace is not the name of a namespace\n")
    assert nobody == (400, "the AdmissionReview has no request.userInfo.username\n")
    assert run.watcher.failures == []


async def test_requests_that_wait_for_hooks_leave_connections_to_pods(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # However long the machine takes for all of these handshakes, of which there are fewer here.
    bounds = structs.replace(site.CONNECTIONS, request=600.0, connections=site.CONNECTIONS.connections // 16)
    monkeypatch.setattr(site, "CONNECTIONS", bounds)
    gate = tls_clients.Gate()
    limits = msgspec.structs.replace(
        admission_webhooks.HOOK_LIMITS, requests=admission_webhooks.HOOK_LIMITS.requests // 16
    )
    most = limits.requests
    routes = {
        "/hooks": site.Route(
            review_handlers.Calling(gate),
            timeout=3600,
            account=review_budget.MemoryBudget(limits),
        ),
        PATH: site.Route(review_handlers.Calling(tls_clients.allowing)),
    }
    async with tls_clients.running(routes) as run:
        waiting = []
        # Not all at once: a busy machine takes its time for a handshake.
        for _ in range(most):
            waiting.append(asyncio.create_task(run.ask(path="/hooks")))
            entered = asyncio.create_task(gate.entered.acquire())
            await asyncio.wait([entered, *waiting], return_when=asyncio.FIRST_COMPLETED)
            assert entered.done(), "one was answered before"
        over = await asyncio.gather(*(run.ask(path="/hooks") for _ in range(3)))
        pods = await asyncio.gather(*(run.ask() for _ in range(6)))
        gate.open.set()
        answered = await asyncio.gather(*waiting)
    assert set(over) == {(503, "too many reviews are being answered\n")}
    assert {status for status, _ in pods} == {200}
    assert {status for status, _ in answered} == {200}
