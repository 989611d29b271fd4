"""Latency of the admission of pods, beside that of a handler that does nothing, in the same server."""

import asyncio
import collections
import dataclasses
import datetime as dt
import json
import sys
import time
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from typing_extensions import override

from addon_operator.admission import events, review_budget, reviews
from addon_operator.admission.certificates import certificates, tls
from addon_operator.admission.pods import env_sources_reader, pod_handler
from addon_operator.admission.presets import preset_cache, preset_notices
from addon_operator.admission.server import site
from addon_operator.kernel import clock
from addon_operator.kube.access import auth, credentials
from addon_operator.kube.client import client
from addon_operator.podpreset import model
from tests.benchmarks import load, measures, pods
from tests.support import review_handlers

PRESETS: Final = "/mutate-pods"
EMPTY: Final = "/empty"
BASELINE: Final = "empty handler"

_DAY: Final = dt.timedelta(days=1)
_ROUNDS: Final = 3
_AIMS: Final[Mapping[int, float]] = {50: 10, 200: 50}
"""Highest p99 in the server, in milliseconds, by the number of concurrent creates."""
_SAMPLES: Final[Mapping[int, int]] = {1: 400, 50: 2000, 200: 2000}
_FLOOD: Final = 500
_HANDLER_CALLS: Final = 1000


class _Observer:
    """Keeps what the server tells, by path, and what became of pods."""

    def __init__(self) -> None:
        self.clear()

    def clear(self) -> None:
        self.seconds: dict[str, list[float]] = collections.defaultdict(list)
        self.processor_seconds: dict[str, list[float]] = collections.defaultdict(list)
        self.results: collections.Counter[str] = collections.Counter()
        self._last = ("", 0.0)

    def __call__(self, event: events.Event) -> None:
        match event:
            case events.ReviewAnswered():
                self._answered(event.path, event.seconds)
            case events.ReviewRefused():
                self.results[event.reason] += 1
            case events.HandlerFailed():
                self.results[repr(event.error)] += 1
            case events.ConnectionClosed():
                self.results[f"{event.reason} {event.details}"] += 1
            case events.PodAdmitted():
                self.results[event.result] += 1

    def _answered(self, path: str, seconds: float) -> None:
        self.seconds[path].append(seconds)
        # Since the answer before: reading, TLS and writing are in it, and other processes are not.
        now = time.process_time()
        if self._last[0] == path:
            self.processor_seconds[path].append(now - self._last[1])
        self._last = (path, now)


class _NoSources(env_sources_reader.EnvSources):
    """The presets of the benchmark name no ConfigMap or Secret with envFrom."""

    def __init__(self) -> None:
        """There is no API server."""

    @override
    async def read(
        self, namespace: str, wanted: Iterable[model.SourceRef], budget: float
    ) -> dict[model.SourceRef, env_sources_reader.EnvSource]:
        raise AssertionError("a source was read")


async def _empty(review: reviews.Review) -> reviews.ReviewVerdict:
    return reviews.ALLOWED


@dataclasses.dataclass(frozen=True, slots=True)
class _Server:
    site: site.AdmissionSite
    handler: pod_handler.PodHandler
    observer: _Observer
    authority: str


def _server() -> _Server:
    observer = _Observer()
    cache = preset_cache.PresetCache(observer)
    for preset in pods.presets():
        cache.put(preset)
    # No change of a preset is under way, so nothing is ever asked of this API server.
    nowhere = "http://127.0.0.1:9"
    kube = client.KubeClient(auth.ClusterAccess("none", nowhere, credentials.AnonymousSource(nowhere, {})))
    notices = preset_notices.PresetNotices(cache, preset_notices.FreshLists(kube, cache))
    handler = pod_handler.PodHandler(pod_handler.Merger(notices, _NoSources()), observer, clock.SystemClock())
    now = dt.datetime.now(dt.UTC)
    authority = certificates.make_authority(now, _DAY)
    live = tls.LiveTls()
    live.use(certificates.make_server(authority, ["127.0.0.1"], now, _DAY))
    routes = {PRESETS: site.Route(handler), EMPTY: site.Route(review_handlers.Calling(_empty))}
    served = site.AdmissionSite(
        routes,
        live,
        site.ListenOptions("127.0.0.1", 0),
        observer,
        review_budget.MemoryBudget(review_budget.Limits()),
    )
    return _Server(served, handler, observer, authority.certificate.decode())


async def run() -> list[measures.Row]:
    """All measurements; takes about half a minute."""
    server = _server()
    await server.site.start()
    try:
        await _load(server, 50, 500)
        rows = [row for number in _SAMPLES for row in await _latencies(server, number)]
        return [*rows, await _flood(server), *await _many_presets(server)]
    finally:
        await server.site.stop()


async def _load(server: _Server, concurrency: int, requests: int) -> load.Outcome:
    server.observer.clear()
    body = pods.review(pods.FEW).decode()
    plan = load.Plan(
        server.site.port, server.authority, [EMPTY, PRESETS], body, concurrency, requests // _ROUNDS, _ROUNDS
    )
    child = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "tests.benchmarks.load",
        stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE,
    )  # fmt: skip
    output, _ = await child.communicate(json.dumps(dataclasses.asdict(plan)).encode())
    if child.returncode:
        raise RuntimeError(f"the load generator ended with exit code {child.returncode}")
    return load.Outcome(**json.loads(output))


async def _latencies(server: _Server, concurrency: int) -> list[measures.Row]:
    outcome = await _load(server, concurrency, _SAMPLES[concurrency])
    _check(server, outcome)
    inside, outside, processor = server.observer.seconds, outcome.seconds, server.observer.processor_seconds
    case = f"{concurrency} concurrent, 10 presets"
    aim = _AIMS.get(concurrency)
    return [
        _row(case, "in the server, p50", inside, 50, None),
        _row(case, "in the server, p99", inside, 99, aim),
        _row(case, "processor time in the server, p50", processor, 50, None),
        _row(case, "round trip, p50", outside, 50, None),
        _row(case, "round trip, p99", outside, 99, None),
    ]


def _row(
    case: str, quantity: str, seconds: Mapping[str, Sequence[float]], percent: int, aim: float | None
) -> measures.Row:
    value = measures.milliseconds(seconds[PRESETS], percent)
    return measures.Row(
        "admission",
        case,
        f"{quantity} (ms)",
        value,
        BASELINE,
        measures.milliseconds(seconds[EMPTY], percent),
        f"< {aim:g}" if aim else "",
        value < aim if aim else None,
    )


async def _flood(server: _Server) -> measures.Row:
    outcome = await _load(server, _FLOOD, 3 * _FLOOD)
    case = f"{_FLOOD} concurrent, 10 presets"
    failures = outcome.failures + sum(server.observer.results.values()) - server.observer.results["injected"]
    return measures.Row("admission", case, "failures", failures, "", None, "0", failures == 0)


def _check(server: _Server, outcome: load.Outcome) -> None:
    """A benchmark of refusals would be fast and worth nothing."""
    if outcome.failures or set(server.observer.results) != {"injected"}:
        raise RuntimeError(f"{outcome.failures} requests failed: {dict(server.observer.results)}")


async def _many_presets(server: _Server) -> list[measures.Row]:
    """What a pod costs without the network, among few presets and among many, in turns."""
    asked = {name: reviews.parse(pods.review(name)) for name in (pods.FEW, pods.MANY)}
    seconds: dict[str, list[float]] = {name: [] for name in asked}
    for _ in range(_HANDLER_CALLS):
        for name, review in asked.items():
            began = time.perf_counter()
            await server.handler.decide(review)
            seconds[name].append(time.perf_counter() - began)
    value, baseline = (measures.milliseconds(seconds[name], 50) for name in (pods.MANY, pods.FEW))
    case = "1000 presets, 10 of them match"
    return [
        measures.Row("admission", case, "handler, p50 (ms)", value, "10 presets", baseline,
                     "< 2 baselines", value < 2 * baseline)
    ]  # fmt: skip
