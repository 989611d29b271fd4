"""Messages on their way: gathered, tried again, given up, and what a sender never does."""

import asyncio
import contextlib
import dataclasses
import pathlib
import socket
from collections.abc import AsyncIterator, Sequence

import prometheus_client
import pytest
from aiohttp import web
from msgspec import structs
from typing_extensions import override

from addon_operator.aio import turns, waiting
from addon_operator.engine import state
from addon_operator.kernel import fencing, names
from addon_operator.modules import findings, model
from addon_operator.status.notifications import notifier as notifying
from addon_operator.status.notifications import notify_config, sender, texts, transitions
from addon_operator.telemetry import metrics
from tests.support import clocks, logs, rows
from tests.unit import costs

Answer = sender.Answer
STEP = 5.0
"""Seconds of each step in time."""
BUSY = Answer("hooks.example answers with status 500")
REFUSED = Answer("hooks.example answers with status 404; look at the target's url", is_final=True)


class Time(clocks.Clock, waiting.Time):
    @override
    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)

    @override
    def jitter(self) -> float:
        return 0.5


class Post(sender.Sender):
    """Remembers what is sent, and answers as a test says."""

    def __init__(self) -> None:
        super().__init__()
        self.sent: list[tuple[str, str]] = []
        self.tries = 0
        self.answer = Answer()

    @override
    async def send(self, target: notify_config.Target, made: texts.Body) -> Answer:
        self.tries += 1
        await asyncio.sleep(0)
        if not self.answer.problem:
            self.sent.append((target.url, made.content.decode().split("*")[1]))
        return self.answer


class Closed(fencing.Fence):
    is_open = True

    @override
    def check(self) -> None:
        if not self.is_open:
            raise fencing.FencedError("another one leads")


def a_target(
    name: str = "ops", url: str = "https://hooks.example/canary", after: float = 60.0
) -> notify_config.Target:
    return notify_config.Target(name, url, notify_config.Format.SLACK, after=after)


class Bench:
    def __init__(self) -> None:
        self.time = Time()
        self.post = Post()
        self.fence = Closed()
        self.log = logs.Lines()
        self.kept: dict[str, transitions.NotificationsDocument] = {}
        self.meters = metrics.Metrics().notifications
        total: prometheus_client.Counter = self.meters.notifications_total
        self.total = total
        self.told: list[str] = []
        outcomes = notifying.Outcomes(
            self.log, total, self.meters.targets, self.meters.unmatched_patterns, self.told.append
        )
        self.notifier = notifying.Notifier(
            "addons", self.post, self.kept.__setitem__, outcomes, self.fence, self.time
        )

    def configure(self, *targets: notify_config.Target) -> None:
        self.notifier.configure(notify_config.NotifyConfig(tuple(targets)))

    def see(self, status: state.ModuleStatus, *modules: str) -> None:
        for name in modules:
            found = state.ModuleState(model.Module(names.ModuleName(name), 1, pathlib.Path("/m")), status)
            found.last_error_without_values = "hook failed" if status is state.ModuleStatus.FAILED else ""
            self.notifier.ledger.saw_state(found, "addons", self.time.now)
        self.notifier.wake()

    def fail(self, *modules: str) -> None:
        self.see(state.ModuleStatus.FAILED, *modules)

    def mend(self, *modules: str) -> None:
        self.see(state.ModuleStatus.READY, *modules)

    async def after(self, seconds: float, step: float = STEP) -> Sequence[str]:
        """Let time pass; the titles that were sent meanwhile."""
        before = len(self.post.sent)
        for _ in range(round(seconds / step)):
            await self.time.advance(step)
        return [title for _, title in self.post.sent[before:]]

    def count(self, result: str) -> float:
        return float(self.total.labels(target="ops", result=result)._value.get())


@pytest.fixture
async def bench() -> AsyncIterator[Bench]:
    made = Bench()
    made.configure(a_target())
    work = asyncio.create_task(made.notifier.work())
    yield made
    work.cancel()
    await asyncio.gather(work, return_exceptions=True)
    await made.notifier.close()


async def test_what_is_due_at_about_the_same_time_is_one_message(bench: Bench) -> None:
    bench.fail(*(f"module-{number}" for number in range(150)))
    await bench.after(5)
    bench.fail(*(f"module-{number}" for number in range(150, 200)))
    assert await bench.after(120) == ["200 modules failed"]
    bench.mend(*(f"module-{number}" for number in range(200)))
    assert await bench.after(120) == ["200 modules work again"]
    assert bench.count(notifying.SENT) == 2


async def test_news_of_several_kinds_are_one_message_whatever_came_first(bench: Bench) -> None:
    bench.fail("web", "api")
    lost = state.ModuleState(model.Module(names.ModuleName("db"), 1, pathlib.Path("/m")))
    lost.status = state.ModuleStatus.RUNNING
    lost.note(findings.CHART_LOST, "put Chart.yaml back")
    bench.notifier.ledger.saw_state(lost, "addons", bench.time.now)
    assert await bench.after(180) == ["db has lost its chart, api and web failed"]


async def test_a_module_that_fails_for_seconds_again_and_again_is_told(bench: Bench) -> None:
    told: list[str] = []
    for _ in range(20):
        bench.fail("web")
        told += await bench.after(5, step=1)
        bench.mend("web")
        told += await bench.after(60)
    assert told == ["web failed, 13 times"]
    assert await bench.after(300) == ["web works again, after 21 min"]


async def test_more_than_fits_into_a_message_follows_in_the_next(bench: Bench) -> None:
    bench.fail(*(f"module-{number}" for number in range(250)))
    assert await bench.after(180) == ["200 modules failed", "50 modules failed"]


async def test_a_receiver_that_is_busy_is_asked_again_for_an_hour_at_most(bench: Bench) -> None:
    bench.post.answer = BUSY
    bench.fail("web")
    assert await bench.after(1800) == []
    assert 8 < bench.post.tries < 25
    assert bench.notifier.rows()[0]["problem"] == BUSY.problem
    bench.post.answer = Answer()
    assert await bench.after(600) == ["web failed"]
    assert bench.log.warnings == [
        f"notifications do not reach target ops, and are tried again: {BUSY.problem}"
    ]
    assert ("info", "notifications reach target ops again") in bench.log.lines


async def test_what_a_receiver_did_not_take_for_an_hour_is_given_up_and_told_once_it_takes_something(
    bench: Bench,
) -> None:
    bench.post.answer = BUSY
    bench.fail("web")
    await bench.after(4200)
    assert bench.count(notifying.GIVEN_UP) == 1
    tries = bench.post.tries
    bench.post.answer = Answer()
    assert await bench.after(600) == []
    assert bench.post.tries == tries
    assert [each["told"] for each in bench.kept["web"]["problems"]] == [[]], "it does not know"
    await bench.notifier.test("ops")
    assert await bench.after(60) == ["web failed"]
    bench.mend("web")
    assert await bench.after(120) == ["web works again, after 1 h 21 min"]


async def test_a_refusal_is_final_until_the_target_is_corrected(bench: Bench) -> None:
    bench.post.answer = REFUSED
    bench.fail("web")
    await bench.after(600)
    assert (bench.post.tries, bench.count(notifying.GIVEN_UP)) == (1, 1)
    assert bench.log.warnings == [f"target ops was not told: web failed: {REFUSED.problem}"]
    bench.post.answer = Answer()
    bench.configure(a_target(url="https://hooks.example/right"))
    assert await bench.after(120) == ["web failed"]
    assert bench.post.sent[-1][0] == "https://hooks.example/right"


async def test_a_receiver_says_itself_when_to_ask_again(bench: Bench) -> None:
    bench.post.answer = structs.replace(BUSY, retry_after=300.0)
    bench.fail("web")
    await bench.after(340)
    assert bench.post.tries == 1


async def test_a_slow_receiver_holds_up_nobody_else(bench: Bench) -> None:
    class Slow(Post):
        @override
        async def send(self, target: notify_config.Target, made: texts.Body) -> Answer:
            if target.name == "slow":
                await asyncio.get_running_loop().create_future()
            return await super().send(target, made)

    bench.post = Slow()
    bench.notifier._post = bench.post
    bench.configure(a_target(), a_target("slow"))
    for number in range(80):
        bench.fail(f"module-{number}")
        await bench.after(20)
    assert len(bench.post.sent) > 35
    waiting_ = {row["name"]: row["waiting"] for row in bench.notifier.rows()}
    assert waiting_ == {"ops": 0, "slow": notifying.MOST_WAITING}


async def test_a_replica_that_does_not_lead_sends_nothing(bench: Bench) -> None:
    bench.fence.is_open = False
    bench.fail("web")
    await bench.after(300)
    assert bench.post.tries == 0


async def test_what_was_told_is_kept_and_is_not_before_it_was_taken(bench: Bench) -> None:
    bench.post.answer = BUSY
    bench.fail("web")
    await bench.after(300)
    assert [each["told"] for each in bench.kept["web"]["problems"]] == [[]]
    bench.post.answer = Answer()
    await bench.after(300)
    assert [told["target"] for told in bench.kept["web"]["problems"][0]["told"]] == ["ops"]
    bench.mend("web")
    await bench.after(120)
    assert bench.kept["web"] == {}


@pytest.mark.slow
async def test_many_failing_modules_and_all_targets_are_looked_at_in_small_pieces(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # Others have a turn whenever they may.
    monkeypatch.setattr(turns, "PIECE_SECONDS", 0.0)
    bench = Bench()
    targets = [a_target(f"target-{number}") for number in range(notify_config.MOST_TARGETS)]
    modules = [f"module-{number}" for number in range(transitions.MOST_DUE // 5)]
    for status in (state.ModuleStatus.FAILED, state.ModuleStatus.READY):
        bench.see(status, *modules)
        with costs.pieces_of_the_loop() as pieces:
            bench.configure(*targets)
            for _ in range(16):
                bench.time.now += 60.0
                await bench.notifier.turn()
                await asyncio.sleep(0)
        assert max(pieces) < 8_000 < sum(pieces) / 5
    assert len(bench.post.sent) == 2 * 20
    assert bench.kept.keys() == set(modules)
    await bench.notifier.close()


async def test_targets_that_change_while_modules_are_looked_at_are_told_with_the_next_look(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(turns, "PIECE_SECONDS", 0.0)
    bench.fail("web", "db")
    bench.time.now += 60.0
    turn = asyncio.ensure_future(bench.notifier.turn())
    await asyncio.sleep(0)
    bench.configure(a_target("other"))
    assert await turn == 0.0
    await bench.after(120)
    assert bench.post.sent == [("https://hooks.example/canary", "db and web failed")]


async def test_without_a_right_file_nothing_is_sent_and_nothing_is_forgotten() -> None:
    bench = Bench()
    bench.fail("web")
    assert await bench.notifier.turn() is None
    assert bench.kept == {}
    assert bench.notifier.rows() == []


async def test_without_targets_nothing_is_kept_of_modules_that_nobody_was_told_of(bench: Bench) -> None:
    bench.configure()
    bench.fail("web")
    await bench.after(10)
    assert bench.kept["web"] == {}


async def test_a_pattern_that_matches_no_module_is_told_where_one_looks(bench: Bench) -> None:
    bench.mend("web", "db")
    patterns = dataclasses.replace(a_target(), modules=("wbe", "d*"))
    bench.configure(patterns, a_target("all"))
    await bench.after(30)
    told = "'wbe' in modules matches no module; did you mean 'web'?"
    assert [row["problem"] for row in bench.notifier.rows()] == [told, ""]
    assert bench.log.warnings == [f"target ops may hear of fewer modules than it should: {told}"]
    assert bench.told == bench.log.warnings
    assert bench.meters.targets._value.get() == 2
    assert bench.meters.unmatched_patterns._value.get() == 1
    bench.mend("wbe")
    await bench.after(30)
    assert [row["problem"] for row in bench.notifier.rows()] == ["", ""]
    assert bench.meters.unmatched_patterns._value.get() == 0


async def test_a_target_that_is_removed_gets_nothing_more_and_its_series_go(bench: Bench) -> None:
    bench.post.answer = BUSY
    bench.fail("web")
    await bench.after(120)
    bench.configure()
    tries = bench.post.tries
    assert await bench.after(600) == []
    assert bench.post.tries == tries
    assert not next(iter(bench.total.collect())).samples


async def test_a_test_is_sent_at_once_and_an_unknown_target_is_told_with_the_nearest(bench: Bench) -> None:
    assert await bench.notifier.test("ops") == {"name": "ops", "format": "slack", "host": "hooks.example"}
    assert [title for _, title in bench.post.sent] == ["This is a test of notifications"]
    with pytest.raises(
        notifying.NotifyError, match=r"there is no target 'op' in notify.yaml; did you mean 'ops'\?"
    ):
        await bench.notifier.test("op")
    bench.configure()
    bench.notifier.source = {"secret": "addons/notify", "problem": "there is no Secret addons/notify"}
    with pytest.raises(notifying.NotifyError, match="no target 'op': there is no Secret addons/notify"):
        await bench.notifier.test("op")


async def test_a_test_that_the_receiver_does_not_take_says_why(bench: Bench) -> None:
    bench.post.answer = REFUSED
    with pytest.raises(
        notifying.NotifyError, match=r"target ops did not take the test: hooks\.example answers with"
    ):
        await bench.notifier.test("ops")


@contextlib.asynccontextmanager
async def served(
    status: int, delay: float = 0.0, headers: dict[str, str] | None = None
) -> AsyncIterator[notify_config.Target]:
    async def answer(request: web.Request) -> web.StreamResponse:
        await request.read()
        await asyncio.sleep(delay)
        return web.Response(status=status, headers=headers, body=b"x" * (1 << 20))

    app = web.Application()
    app.router.add_post("/canary", answer)
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    (port,) = [address[1] for address in runner.addresses]
    try:
        yield a_target(url=f"http://127.0.0.1:{port}/canary")
    finally:
        await runner.cleanup()


BODY = texts.Body(b"{}", {})


@rows.each(
    ("status", "headers", "told"),
    [
        (200, {}, Answer()),
        (202, {}, Answer()),
        (
            302,
            {"Location": "http://127.0.0.1:1/"},
            Answer(
                "127.0.0.1 answers with status 302 and another address, which is not followed", is_final=True
            ),
        ),
        (
            404,
            {},
            Answer("127.0.0.1 answers with status 404; look at the target's url", is_final=True),
        ),
        (429, {"Retry-After": "30"}, Answer("127.0.0.1 answers with status 429", retry_after=30.0)),
        (500, {}, Answer("127.0.0.1 answers with status 500")),
        (503, {"Retry-After": "1e99"}, Answer("127.0.0.1 answers with status 503", retry_after=600.0)),
        (503, {"Retry-After": "tomorrow"}, Answer("127.0.0.1 answers with status 503")),
    ],
)
async def test_the_status_decides_what_becomes_of_a_message(
    status: int, headers: dict[str, str], told: Answer
) -> None:
    post = sender.Sender()
    async with served(status, headers=headers) as target:
        assert await post.send(target, BODY) == told
    await post.close()


async def test_a_receiver_that_refuses_a_signed_message_makes_one_look_at_the_key() -> None:
    post = sender.Sender()
    async with served(403) as target:
        answer = await post.send(dataclasses.replace(target, hmac_key="canary"), BODY)
    await post.close()
    assert answer.problem == "127.0.0.1 answers with status 403; look at the target's url and hmacKey"


@rows.each(
    ("environ", "asked"),
    [
        ({}, "POST /canary"),
        ({"http_proxy": "http://me:word@127.0.0.1:{port}"}, "POST http://127.0.0.1:{port}/canary"),
        ({"http_proxy": "127.0.0.1:1", "no_proxy": "127.0.0.1"}, "POST /canary"),
    ],
    ids=["no proxy", "a proxy", "a proxy for others"],
)
async def test_of_the_environment_proxies_are_taken_and_nothing_else(
    environ: dict[str, str], asked: str, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    got: list[str] = []

    async def receive(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        got.append((await reader.readuntil(b"\r\n\r\n")).decode())
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
        writer.close()

    (tmp_path / "netrc").write_text("machine 127.0.0.1 login me password canary-of-netrc\n")
    monkeypatch.setenv("NETRC", str(tmp_path / "netrc"))
    post = sender.Sender()
    server = await asyncio.start_server(receive, "127.0.0.1", 0)
    async with server:
        port = server.sockets[0].getsockname()[1]
        for name in ("http_proxy", "no_proxy"):
            monkeypatch.delenv(name, raising=False)
            monkeypatch.delenv(name.upper(), raising=False)
        for name, text in environ.items():
            monkeypatch.setenv(name, text.format(port=port))
        assert await post.send(a_target(url=f"http://127.0.0.1:{port}/canary"), BODY) == Answer()
    await post.close()
    assert got[0].startswith(f"{asked.format(port=port)} HTTP/1.1")
    assert "\nAuthorization:" not in got[0]
    assert ("\nProxy-Authorization: Basic bWU6d29yZA==" in got[0]) is ("http://" in asked)


LARGE = sender.ANSWER_BYTES
CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"


@rows.each(
    ("answer", "told"),
    [
        (CONTINUE * LARGE, "sends more than 64 KiB before its answer is complete"),
        (b"HTTP/1.1 200 OK\r\nX: " + b"x" * 2 * LARGE, "not one of HTTP"),
        (b"\x1b[31mcanary\r\n\r\n", "not one of HTTP"),
        (b"", "closes the connection without an answer"),
        (b"HTTP/1.1 099 Fine\r\nContent-Length: 0\r\n\r\n", "status 99"),
        (b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: upgrade\r\n\r\n", "101"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 9999999999\r\n\r\n" + b"x" * 4 * LARGE, ""),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + b"1\r\nx\r\n" * LARGE, ""),
    ],
    ids=[
        "endless 1xx",
        "endless header",
        "not HTTP",
        "nothing",
        "099",
        "101",
        "endless body",
        "endless chunks",
    ],
)
async def test_a_receiver_may_send_what_it_likes_and_only_the_beginning_is_read(
    answer: bytes, told: str
) -> None:
    async def receive(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        await reader.readexactly(len(BODY.content))
        with contextlib.suppress(ConnectionError):
            writer.write(answer)
            await writer.drain()
        writer.close()

    post = sender.Sender()
    server = await asyncio.start_server(receive, "127.0.0.1", 0)
    async with server:
        target = a_target(url=f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/canary")
        found = await post.send(target, BODY)
    await post.close()
    assert told in found.problem
    assert bool(told) == bool(found.problem)
    assert "canary" not in found.problem


async def test_a_receiver_that_never_answers_or_is_not_there_is_told_by_its_host_alone() -> None:
    hurried, post = sender.Sender(seconds=0.05), sender.Sender()
    async with served(200, delay=0.2) as target:
        assert await hurried.send(target, BODY) == Answer("127.0.0.1 does not answer within 0.05 s")
    await hurried.close()
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        nobody = a_target(url=f"http://127.0.0.1:{taken.getsockname()[1]}/canary")
        assert await post.send(nobody, BODY) == Answer("127.0.0.1 cannot be reached: Connection refused")
    await post.close()
