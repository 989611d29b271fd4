"""Informers while the API server is killed, started again, and etcd forgets its past."""

import asyncio
import base64
import contextlib
import dataclasses
import os
import pathlib
import secrets
from collections.abc import AsyncIterator, Iterator

import aiohttp
import orjson
import pytest
from typing_extensions import override

from addon_operator.aio import waiting
from addon_operator.devcluster import (
    cluster,
    handle,
    layout,
    locations,
    reporters,
    state,
)
from addon_operator.devcluster.binaries import binaries, components
from addon_operator.kube import paths
from addon_operator.kube.informers import informers, object_selections, projections, reflector
from addon_operator.process import daemons
from tests.integration import informing
from tests.support import histories, listeners

pytestmark = pytest.mark.integration

FAST = reflector.Tuning(backoff=waiting.Backoff(0.1, 0.5))


@dataclasses.dataclass(frozen=True, slots=True)
class Plane:
    """A control plane of this test's own."""

    manager: cluster.ClusterManager
    where: layout.Layout
    started: handle.DevCluster

    def kill_api_server(self) -> None:
        daemons.ProcessTable().kill([self._state().components[components.KUBE_APISERVER].process])

    async def start_again(self) -> None:
        await asyncio.to_thread(start, self.manager, self.where.name)

    async def compact(self) -> None:
        """Let etcd forget every state but the newest."""
        connector = aiohttp.UnixConnector(str(self.where.root / layout.ETCD_SOCKET))
        async with aiohttp.ClientSession("http://etcd", connector=connector) as session:
            key = base64.b64encode(b"/").decode()
            async with session.post("/v3/kv/range", json={"key": key}) as answer:
                revision = (await answer.json())["header"]["revision"]
            compaction = {"revision": revision, "physical": True}
            async with session.post("/v3/kv/compaction", json=compaction) as answer:
                assert answer.status == 200, await answer.text()

    def _state(self) -> state.ClusterState:
        found = state.load(self.where.state)
        assert found is not None
        return found


def start(manager: cluster.ClusterManager, name: layout.ClusterName) -> handle.DevCluster:
    where = locations.locate(os.environ)
    with binaries.workshop(where, os.environ, reporters.Reporter()) as store:
        return manager.up(cluster.ClusterRequest(name), store)


@pytest.fixture(scope="module")
def plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Plane]:
    root: pathlib.Path = tmp_path_factory.mktemp("planes") / "clusters"
    manager = cluster.ClusterManager(root, reporters.Reporter())
    name = layout.ClusterName(f"informers-{secrets.token_hex(3)}")
    try:
        yield Plane(manager, layout.Layout(root / name), start(manager, name))
    finally:
        manager.down(name)


class Gate(waiting.SystemTime):
    """Pauses between tries that last until a test lets them end."""

    def __init__(self) -> None:
        self.opened = asyncio.Event()
        self.opened.set()
        self.reached = asyncio.Event()

    @override
    async def sleep(self, seconds: float) -> None:
        self.reached.set()
        await self.opened.wait()
        await asyncio.sleep(min(seconds, 0.5))


@pytest.fixture
def gate() -> Gate:
    return Gate()


@pytest.fixture
async def world(plane: Plane, gate: Gate) -> AsyncIterator[informing.World]:
    async with informing.world(plane.started.kubeconfig, FAST, gate) as opened:
        yield opened


async def follow(world: informing.World, namespace: str) -> tuple[informers.Subscription, listeners.Recorder]:
    await world.kube.create(paths.of("v1", "namespaces"), {"metadata": {"name": namespace}})
    recorder = listeners.Recorder()
    selection = object_selections.ObjectSelection(
        "ConfigMap", label_selector="mine=yes", namespaces=(namespace,)
    )
    projection = projections.JqFiltered(".data.value", False, world.jq)
    subscription = world.informers.subscribe(selection, projection, recorder)
    await recorder.until_synced()
    return subscription, recorder


async def stored(world: informing.World, namespace: str) -> dict[histories.Key, str]:
    found = await world.kube.list_all(
        paths.of("v1", "configmaps", namespace=namespace), label_selector="mine=yes"
    )
    return {(namespace, item["metadata"]["name"]): item["data"]["value"] for item in found.items}


@pytest.mark.slow
@pytest.mark.parametrize("kills", [1, 4], ids=["once", "four times"])
async def test_an_api_server_that_is_killed_under_load_costs_no_event_and_doubles_none(
    plane: Plane, world: informing.World, kills: int, record_testsuite_property: informing.RecordProperty
) -> None:
    namespace = f"load-{kills}"
    subscription, recorder = await follow(world, namespace)
    writers = [informing.Writer(world.kube, namespace, prefix, seed) for seed, prefix in enumerate("abcd")]
    for _ in range(kills):
        stop = asyncio.Event()
        storms = [asyncio.create_task(informing.storm(writer, stop)) for writer in writers]
        await until_told_more(recorder, 50)
        plane.kill_api_server()
        await plane.start_again()
        await until_told_more(recorder, 50)
        stop.set()
        await asyncio.gather(*storms)
    before = await stored(world, namespace)
    await until_told_all(recorder, before)
    stormy = [write for writer in writers for write in writer.writes]
    # Only a list may fold the versions of an object into its last one, and only those since the watch broke.
    lists = world.failures.counted.count("ConfigMap expired")
    assert max(histories.gaps(stormy, recorder.changes).values(), default=0) <= lists
    # What is written from here on is written in peace: every version of it has to be told.
    for writer in writers:
        writer.writes.clear()
        writer.state = {key: value for key, value in before.items() if key[1].startswith(writer.prefix)}
    calm = len(recorder.changes)
    await asyncio.gather(*(writer.write(30) for writer in writers))
    writes = [write for writer in writers for write in writer.writes]
    await recorder.until(lambda: len(recorder.changes) >= calm + len(writes), informing.PATIENCE)
    histories.check_every_version(writes, recorder.changes[calm:], before)
    wanted = await stored(world, namespace)
    assert [orjson.loads(entry)["filterResult"] for entry in subscription.snapshot()] == [
        wanted[key] for key in sorted(wanted)
    ]
    assert subscription.reason is None
    record_testsuite_property(f"writes, {kills} restarts", len(stormy) + len(writes))
    record_testsuite_property(f"changes told, {kills} restarts", len(recorder.changes))
    record_testsuite_property(f"lists after restarts, {kills} restarts", lists)


async def until_told_all(recorder: listeners.Recorder, stored: dict[histories.Key, str]) -> None:
    """Wait until the changes lead to what is stored; none of them may contradict those before it."""
    with contextlib.suppress(TimeoutError):
        await recorder.until(
            lambda: histories.check_sequence({}, recorder.changes) == stored, informing.PATIENCE
        )
    assert histories.check_sequence({}, recorder.changes) == stored


async def until_told_more(recorder: listeners.Recorder, count: int) -> None:
    wanted = len(recorder.changes) + count
    await recorder.until(lambda: len(recorder.changes) >= wanted, informing.PATIENCE)


@pytest.mark.slow
async def test_what_happened_before_a_compaction_is_reported_as_the_differences(
    plane: Plane, world: informing.World, gate: Gate
) -> None:
    namespace = "past"
    _, recorder = await follow(world, namespace)
    writer = informing.Writer(world.kube, namespace, "a", 1)
    await writer.write(30)
    await recorder.until_told(len(writer.writes))
    gate.opened.clear()
    plane.kill_api_server()
    await gate.reached.wait()
    await plane.start_again()
    async with informing.world(plane.started.kubeconfig) as other:
        unseen = informing.Writer(other.kube, namespace, "a", 2)
        unseen.state.update(writer.state)
        await unseen.write(60)
        for name in ("left", "right"):
            await other.kube.create(
                paths.of("v1", "configmaps", namespace=namespace),
                {"metadata": {"name": name, "labels": {"mine": "yes"}}, "data": {"value": name}},
            )
    await plane.compact()
    plane.kill_api_server()
    await plane.start_again()
    gate.opened.set()
    wanted = await stored(world, namespace)
    await until_told_all(recorder, wanted)
    assert "ConfigMap expired" in world.failures.counted
    last: dict[str, int] = {}
    for change in recorder.changes[len(writer.writes) :]:
        last[change.key.name] = last.get(change.key.name, 0) + 1
    # A difference is one change; an object that was deleted and made anew is two.
    assert max(last.values()) <= 2
