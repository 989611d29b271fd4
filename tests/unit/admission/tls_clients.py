"""What tests of the admission server talk to it with."""

import asyncio
import contextlib
import dataclasses
import datetime as dt
import functools
import io
import ssl
from collections.abc import AsyncIterator, Mapping
from typing import Any

import aiohttp
import orjson

from addon_operator.admission import events, review_budget, reviews
from addon_operator.admission.certificates import certificates, tls
from addon_operator.admission.server import site
from tests.support import review_handlers

NOW = dt.datetime.now(dt.UTC)
LIFE = dt.timedelta(days=30)
AUTHORITY = certificates.make_authority(NOW, LIFE)
PATH = "/mutate-pods"


def server_pair(authority: certificates.KeyPair = AUTHORITY) -> certificates.KeyPair:
    return certificates.make_server(authority, ["127.0.0.1", "localhost"], NOW, LIFE)


def serving(pair: certificates.KeyPair) -> tls.LiveTls:
    live = tls.LiveTls()
    live.use(pair)
    return live


@functools.cache
def shared_tls() -> tls.LiveTls:
    """For tests that leave the certificate alone."""
    return serving(server_pair())


def trusting(*authorities: certificates.KeyPair) -> ssl.SSLContext:
    context = ssl.create_default_context(cadata=b"\n".join(one.certificate for one in authorities).decode())
    context.verify_flags |= ssl.VERIFY_X509_STRICT
    return context


@functools.cache
def trusting_authority() -> ssl.SSLContext:
    """For clients that leave the context alone."""
    return trusting(AUTHORITY)


def review(**changes: object) -> dict[str, Any]:
    request = {
        "uid": "705ab4f5-6393-11e8-b7cc-42010a800002",
        "kind": {"group": "", "version": "v1", "kind": "Pod"},
        "resource": {"group": "", "version": "v1", "resource": "pods"},
        "name": "",
        "namespace": "shop",
        "operation": "CREATE",
        "userInfo": {"username": "admin", "uid": "014fbff9"},
        "object": {"apiVersion": "v1", "kind": "Pod", "metadata": {"generateName": "web-"}},
        "oldObject": None,
        "dryRun": False,
    }
    return {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request | changes}


class Watcher:
    """Remembers what the site tells."""

    def __init__(self) -> None:
        self.statuses: list[int] = []
        self.reasons: list[str] = []
        self.failures: list[Exception] = []
        self.closed: list[tuple[str, str]] = []

    def __call__(self, event: events.Event) -> None:
        match event:
            case events.ReviewAnswered():
                self.statuses.append(event.status)
            case events.ReviewRefused():
                self.reasons.append(event.reason)
            case events.HandlerFailed():
                self.failures.append(event.error)
            case events.ConnectionClosed():
                self.closed.append((event.reason, event.details))


class Gate:
    """A handler that answers when it is let."""

    def __init__(self) -> None:
        self.entered = asyncio.Semaphore(0)
        self.open = asyncio.Event()

    async def __call__(self, review: reviews.Review) -> reviews.ReviewVerdict:
        self.entered.release()
        await self.open.wait()
        return reviews.ALLOWED


async def allowing(review: reviews.Review) -> reviews.ReviewVerdict:
    return reviews.ALLOWED


@dataclasses.dataclass(frozen=True, slots=True)
class Running:
    site: site.AdmissionSite
    tls: tls.LiveTls
    watcher: Watcher
    session: aiohttp.ClientSession

    @property
    def url(self) -> str:
        return f"https://127.0.0.1:{self.site.port}"

    async def ask(
        self, body: object = None, path: str = PATH, headers: Mapping[str, str] | None = None
    ) -> tuple[int, Any]:
        """Status, and the answer as JSON if it is a good one; bodies but mappings are sent as they are."""
        given = review() if body is None else body
        data = io.BytesIO(orjson.dumps(given)) if isinstance(given, dict) else given
        sent = {"Content-Type": "application/json", **(headers or {})}
        async with self.session.post(self.url + path, data=data, headers=sent) as answer:
            text = await answer.text()
            return answer.status, await answer.json() if answer.status == 200 else text


@contextlib.asynccontextmanager
async def running(
    routes: Mapping[str, site.Route] | None = None,
    *,
    limits: review_budget.Limits | None = None,
    leaving: site.Leaving | None = None,
    ready: bool = True,
    live: tls.LiveTls | None = None,
) -> AsyncIterator[Running]:
    live, watcher = live or shared_tls(), Watcher()
    served = site.AdmissionSite(
        routes or {PATH: site.Route(review_handlers.Calling(allowing))},
        live,
        site.ListenOptions("127.0.0.1", 0, leaving or site.AT_ONCE),
        watcher,
        review_budget.MemoryBudget(limits or review_budget.Limits()),
        ready=lambda: ready,
    )
    await served.start()
    connector = aiohttp.TCPConnector(ssl=trusting_authority(), limit=0)
    async with aiohttp.ClientSession(connector=connector) as session:
        try:
            yield Running(served, live, watcher, session)
        finally:
            await served.stop()
