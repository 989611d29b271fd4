"""Informers on the real control plane."""

import asyncio
from collections.abc import AsyncIterator, Callable

import orjson
import pytest

from addon_operator.aio import waiting
from addon_operator.devcluster.pytest_plugin import DevCluster
from addon_operator.kube import paths
from addon_operator.kube.client import connection
from addon_operator.kube.informers import object_selections, projections, reflector
from tests.integration import informing
from tests.support import histories, listeners

pytestmark = pytest.mark.integration

Selection = object_selections.ObjectSelection


@pytest.fixture
async def world(devcluster: DevCluster) -> AsyncIterator[informing.World]:
    async with informing.world(devcluster.kubeconfig) as opened:
        yield opened


def config_map(name: str, **data: str) -> dict[str, object]:
    metadata = {"name": name, "labels": {"mine": "yes"}}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}


async def test_a_hook_sees_every_version_of_every_object_once_and_in_order(
    world: informing.World, namespace: str
) -> None:
    filtered = projections.JqFiltered(".data.value", False, world.jq)
    mine = Selection("ConfigMap", "v1", label_selector="mine=yes", namespaces=(namespace,))
    every = Selection("cm", namespaces=(namespace,))
    recorders = [listeners.Recorder() for _ in range(3)]
    subscriptions = [
        world.informers.subscribe(mine, filtered, recorders[0]),
        world.informers.subscribe(mine, filtered, recorders[1]),
        world.informers.subscribe(every, projections.FullObject(), recorders[2]),
    ]
    for recorder in recorders:
        await recorder.until_synced()
    assert len(world.informers.watches) == 2
    writers = [informing.Writer(world.kube, namespace, prefix, seed) for seed, prefix in enumerate("abcd")]
    await asyncio.gather(*(writer.write(60) for writer in writers))
    writes = [write for writer in writers for write in writer.writes]
    for recorder in recorders:
        await recorder.until_told(len(writes))
    for recorder in recorders[:2]:
        histories.check_every_version(writes, recorder.changes)
    wanted = {key: value for writer in writers for key, value in writer.state.items()}
    entries = [orjson.loads(entry)["filterResult"] for entry in subscriptions[0].snapshot()]
    assert entries == [wanted[key] for key in sorted(wanted)]
    assert world.failures.counted == []


@pytest.mark.parametrize("stream", [True, False], ids=["streamed", "paged"])
async def test_lists_have_everything_in_the_form_that_hooks_know(
    devcluster: DevCluster, namespace: str, *, stream: bool
) -> None:
    tuning = reflector.Tuning(stream_lists=stream, page_size=4)
    async with informing.world(devcluster.kubeconfig, tuning) as world:
        collection = paths.of("v1", "configmaps", namespace=namespace)
        for number in range(9):
            await world.kube.create(collection, config_map(f"c{number}", value=str(number)))
        recorder, late = listeners.Recorder(), listeners.Recorder()
        selection = Selection("ConfigMap", label_selector="mine=yes", namespaces=(namespace,))
        full = world.informers.subscribe(selection, projections.FullObject(), recorder)
        await recorder.until_synced()
        expected = [await world.kube.get(f"{collection}/c{number}") for number in range(9)]
        assert [orjson.loads(entry)["object"] for entry in full.snapshot()] == expected
        lean = world.informers.subscribe(
            selection, projections.JqFiltered(".data.value", False, world.jq), late
        )
        await late.until_synced()
        assert [orjson.loads(entry)["filterResult"] for entry in lean.snapshot()] == list("012345678")
        await world.kube.patch(f"{collection}/c0", {"data": {"value": "new"}})
        await recorder.until_told(1)
        await late.until_told(1)
        assert recorder.reported == late.reported == [f"Modified {namespace}/c0"]
        assert world.failures.counted == []


def definition(plural: str, kind: str) -> dict[str, object]:
    schema = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
    version = {"name": "v1", "served": True, "storage": True, "schema": schema}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.informers.example.com"},
        "spec": {
            "group": "informers.example.com",
            "scope": "Namespaced",
            "names": {"plural": plural, "singular": kind.lower(), "kind": kind},
            "versions": [version],
        },
    }


@pytest.mark.slow
async def test_objects_that_nest_as_deep_as_the_api_server_takes_stop_no_other_of_their_kind(
    world: informing.World, namespace: str
) -> None:
    plural = f"d{namespace.replace('-', '')}s"
    kind, api = plural.upper(), "informers.example.com/v1"
    definitions = paths.of("apiextensions.k8s.io/v1", "customresourcedefinitions")
    collection = paths.of(api, plural, namespace=namespace)
    selection = Selection(kind, api, namespaces=(namespace,))
    await world.kube.create(definitions, definition(plural, kind))
    recorder, late = listeners.Recorder(), listeners.Recorder()
    world.informers.subscribe(selection, projections.FullObject(), recorder)
    await recorder.until(lambda: recorder.is_synced, informing.PATIENCE)
    try:
        for depth in (300, 600, 1100, 9000):
            head = b'{"apiVersion":"%b","kind":"%b","metadata":{"name":"d%d"},"a":'
            deep = b'{"a":' * depth + b"1" + b"}" * depth
            body = head % (api.encode(), kind.encode(), depth) + deep + b"}"
            headers = {"Content-Type": "application/json"}
            await world.kube.request(connection.Request("POST", collection, {}, headers, body))
        await world.kube.create(collection, {"apiVersion": api, "kind": kind, "metadata": {"name": "flat"}})
        await recorder.until(lambda: f"Added {namespace}/flat" in recorder.reported, informing.PATIENCE)
        listed = world.informers.subscribe(selection, projections.Presence(), late)
        await late.until(lambda: late.is_synced, informing.PATIENCE)
        assert "flat" in {key.name for key in listed.keys()}  # noqa: SIM118 - it is not a mapping
        assert world.failures.counted.count(f"{kind} broken_answer") == 0
    finally:
        await world.kube.delete(f"{definitions}/{plural}.informers.example.com")


@pytest.mark.slow
async def test_a_kind_comes_goes_and_comes_again(devcluster: DevCluster, namespace: str) -> None:
    tuning = reflector.Tuning(kind_poll=0.5, backoff=waiting.Backoff(0.1, 0.5))
    async with informing.world(devcluster.kubeconfig, tuning, absence=1.0) as world:
        kind, plural = f"W{namespace.replace('-', '')}", f"w{namespace.replace('-', '')}s"
        api = "informers.example.com/v1"
        recorder = listeners.Recorder()
        subscription = world.informers.subscribe(
            Selection(kind, api, namespaces=(namespace,)), projections.FullObject(), recorder
        )
        await recorder.until(lambda: bool(recorder.troubles), informing.PATIENCE)
        assert f"the API server has no kind '{kind}' in {api}" in str(subscription.reason)
        definitions = paths.of("apiextensions.k8s.io/v1", "customresourcedefinitions")
        widget = {"apiVersion": api, "kind": kind, "metadata": {"name": "one"}, "spec": {"size": 1}}

        def has_told(count: int) -> Callable[[], bool]:
            return lambda: len(recorder.changes) >= count

        for told in (1, 3):
            await world.kube.create(definitions, definition(plural, kind))
            await recorder.until(lambda: subscription.reason is None, informing.PATIENCE)
            await recorder.until_synced()
            await world.kube.create(paths.of(api, plural, namespace=namespace), widget)
            await recorder.until(has_told(told), informing.PATIENCE)
            await world.kube.delete(f"{definitions}/{plural}.informers.example.com")
            await recorder.until(has_told(told + 1), informing.PATIENCE)
            await recorder.until(lambda: subscription.reason is not None, informing.PATIENCE)
        assert recorder.reported == [f"Added {namespace}/one", f"Deleted {namespace}/one"] * 2
        body = orjson.loads(recorder.changes[0].entry)["object"]
        assert (body["kind"], body["spec"]) == (kind, {"size": 1})


async def test_namespaces_are_followed_by_their_labels(world: informing.World, namespace: str) -> None:
    collection = paths.of("v1", "configmaps", namespace=namespace)
    home = paths.of("v1", "namespaces", name=namespace)
    await world.kube.create(collection, config_map("here"))
    recorder = listeners.Recorder()
    label = f"informers-{namespace}"
    selection = Selection("ConfigMap", label_selector="mine=yes", namespace_labels=f"{label}=yes")
    subscription = world.informers.subscribe(selection, projections.FullObject(), recorder)
    await recorder.until_synced()
    assert subscription.keys() == []
    await world.kube.patch(home, {"metadata": {"labels": {label: "yes"}}})
    await recorder.until_told(1)
    await world.kube.create(collection, config_map("later"))
    await recorder.until_told(2)
    await world.kube.patch(home, {"metadata": {"labels": {label: None}}})
    await recorder.until_told(4)
    told = [f"Added {namespace}/here", f"Added {namespace}/later"]
    assert recorder.reported == [*told, f"Deleted {namespace}/here", f"Deleted {namespace}/later"]
    assert subscription.keys() == []


async def test_metadata_is_enough_to_notice_what_is_there(world: informing.World, namespace: str) -> None:
    collection = paths.of("v1", "configmaps", namespace=namespace)
    await world.kube.create(collection, config_map("here"))
    recorder = listeners.Recorder()
    selection = Selection("ConfigMap", names=("here",), namespaces=(namespace,), metadata_only=True)
    subscription = world.informers.subscribe(selection, projections.Presence(), recorder)
    await recorder.until_synced()
    assert subscription.keys() == [(namespace, "here")]
    await world.kube.delete(f"{collection}/here")
    await recorder.until_told(1)
    assert recorder.reported == [f"Deleted {namespace}/here"]
