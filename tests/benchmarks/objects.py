"""What reading objects costs, and picking fields of them, beside the plain way to do it."""

import asyncio
import collections
import time
from collections.abc import Callable, Iterable
from typing import Any, Final

import orjson

from addon_operator.kube import paths
from addon_operator.kube.informers import wire
from addon_operator.process.jq import jq_filters, jq_workers
from tests.benchmarks import measures, pod_server

_PODS: Final = 10_000
_PAGE: Final = 500
_BATCH: Final = 100
_ROUNDS: Final = 3
_PROGRAM: Final = "{name: .metadata.name, phase: .status.phase, ip: .status.podIP}"
_SECONDS: Final = 5.0
_NOTE: Final = f"{_PODS:,} pods of 3 to 9 KB"
_DECODING: Final = "decoding each with orjson"
_TARGET: Final = paths.target("GET", "/api/v1/pods")


async def run() -> list[measures.Row]:
    """All measurements; takes about ten seconds."""
    lines = list(pod_server.lines(_PODS))[:-1]
    objects = [line.removeprefix(b'{"type":"ADDED","object":').removesuffix(b"}\n") for line in lines]
    pages = [_page(objects[start : start + _PAGE]) for start in range(0, _PODS, _PAGE)]
    decoding = _microseconds(lambda: _drain(map(orjson.loads, objects)))
    watching = _microseconds(lambda: _drain(map(wire.read_line, lines)))
    listing = _microseconds(lambda: _drain(_events(pages)))
    picking, by_jq = await _filters(objects)
    return [
        _row("a watch reads it", watching, _DECODING, decoding, 1.0),
        _row("a list reads it", listing, _DECODING, decoding, 1.0),
        _row("a jqFilter that picks fields", picking, "libjq, in two processes", by_jq, 0.2),
    ]


def _page(items: Iterable[bytes]) -> bytes:
    # As the API server writes lists of custom resources.
    return (
        b'{"apiVersion":"v1","items":[%b],"kind":"PodList","metadata":{"resourceVersion":"1"}}'
        % b",".join(items)
    )


def _events(pages: Iterable[bytes]) -> Iterable[wire.ObjectEvent]:
    return (event for page in pages for event in wire.read_page(_TARGET, page).events())


async def _filters(objects: list[bytes]) -> tuple[float, float]:
    """Microseconds for each object: ours, and the same program in the workers."""
    async with jq_workers.JqWorkers() as workers:
        ours = await _filtering(jq_filters.JqFilters(workers), objects)
        return ours, await _filtering(workers, objects)


async def _filtering(runner: jq_filters.JqFilters | jq_workers.JqWorkers, objects: list[bytes]) -> float:
    found = []
    for _ in range(_ROUNDS):
        began = time.perf_counter()
        async with asyncio.TaskGroup() as tasks:
            for start in range(0, _PODS, _BATCH):
                tasks.create_task(runner.run(_PROGRAM, objects[start : start + _BATCH], _SECONDS))
        found.append(time.perf_counter() - began)
    return min(found) / _PODS * 1e6


def _microseconds(call: Callable[[], object]) -> float:
    """For each object, the least of some rounds."""
    found = []
    for _ in range(_ROUNDS):
        began = time.process_time()
        call()
        found.append(time.process_time() - began)
    return min(found) / _PODS * 1e6


def _drain(found: Iterable[Any]) -> None:
    collections.deque(found, maxlen=0)


def _row(case: str, ours: float, name: str, baseline: float, most: float) -> measures.Row:
    aim = f"< {most:g} baselines"
    return measures.Row(
        "objects", f"{_NOTE}: {case}", "µs for each", ours, name, baseline, aim, ours < most * baseline
    )
