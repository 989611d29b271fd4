"""Thousands of events for one hook that does not get on, and pods that are admitted meanwhile."""

import asyncio
import pathlib
from collections.abc import Awaitable, Callable, Iterable
from typing import Any, Final

import pytest

from addon_operator.devcluster import handle
from addon_operator.kube import paths
from addon_operator.kube.access import auth
from addon_operator.kube.client import client
from tests.integration import admitting, informing, operator_process, operator_site

pytestmark = [pytest.mark.integration, pytest.mark.slow]

OBJECTS: Final = 2000
WRITERS: Final = 16
GROWTH_MEBIBYTES: Final = 64.0
"""Two events of each object, and its snapshot, take a tenth of that."""


def test_thousands_of_events_wait_as_one_run_in_little_memory_while_pods_are_admitted(
    site: operator_site.Site,
    devcluster: handle.DevCluster,
    record_testsuite_property: informing.RecordProperty,
) -> None:
    gate = site.root / "gate"
    binding = {
        "name": "maps",
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "queue": "busy",
        "executeHookOnSynchronization": False,
        "namespace": {"nameSelector": {"matchNames": [site.namespace]}},
        "labelSelector": {"matchLabels": {"bound": "yes"}},
    }
    site.hook(
        site.module("010-web"),
        "busy.sh",
        {"kubernetes": [binding]},
        body=f"until test -e {gate}; do sleep 0.2; done",
    )
    site.config(webEnabled="true")
    with admitting.opened(site, devcluster) as shop:
        shop.preset()
        calm = admit_pods(shop)
        asyncio.run(write(devcluster, site.namespace, ["first"], "1"))
        shop.operator.wait_until(site.runs, "the hook runs, and does not get on")
        before = mebibytes(shop.operator.pid)
        names = [f"m{number:04}" for number in range(OBJECTS)]
        busy = asyncio.run(beside(lambda: admit_pods(shop), devcluster, site.namespace, names))
        wait_listed(shop.operator, OBJECTS + 1)
        growth = mebibytes(shop.operator.pid) - before
        assert shop.operator.metrics().total("tasks_queue_length", queue="busy") == 2
        assert growth < GROWTH_MEBIBYTES
        gate.touch()
        shop.operator.wait_until(lambda: len(site.runs()) == 2, "the rest arrives")
        shop.operator.wait_idle()
        first, rest = site.runs()
        assert [reported(context) for context in first.contexts] == ["Added first 1"]
        seen: dict[str, list[str]] = {}
        for context in rest.contexts:
            seen.setdefault(context["object"]["metadata"]["name"], []).append(reported(context))
        assert seen == {name: [f"Added {name} 1", f"Modified {name} 2"] for name in names}
        site.config(webEnabled="false")
        shop.operator.wait_until(lambda: not has_queue(shop.operator), "the queue is gone with its binding")
    record_testsuite_property("events of one hook", len(rest.contexts))
    record_testsuite_property("runs for them", 1)
    record_testsuite_property("MiB while they wait", round(growth, 1))
    record_testsuite_property("ms to admit a pod, calm", round(1000 * calm, 2))
    record_testsuite_property("ms to admit a pod, under load", round(1000 * busy, 2))


def reported(context: dict[str, Any]) -> str:
    """``Added name value``."""
    changed = context["object"]
    return f"{context['watchEvent']} {changed['metadata']['name']} {changed['data']['value']}"


def admit_pods(shop: admitting.Shop, pods: int = 40) -> float:
    """Create pods, each of which has to get its preset; the mean time that the operator took for one."""
    before = shop.operator.metrics()
    for _ in range(pods):
        pod = shop.pod(dry_run=True)
        assert pod["spec"]["containers"][0]["env"] == [{"name": "DB_PORT", "value": "6379"}]
    after = shop.operator.metrics()
    seconds, count = (
        after.total(f"podpreset_admission_seconds_{part}")
        - before.total(f"podpreset_admission_seconds_{part}")
        for part in ("sum", "count")
    )
    return seconds / count


async def beside(
    measure: Callable[[], float], cluster: handle.DevCluster, namespace: str, names: Iterable[str]
) -> float:
    """Create and change all these objects, and measure again and again until that is done; the worst."""
    names = list(names)
    writing = asyncio.create_task(write(cluster, namespace, names, "1", "2"))
    taken = [await asyncio.to_thread(measure)]
    while not writing.done():
        taken.append(await asyncio.to_thread(measure))
    await writing
    return max(taken)


async def write(cluster: handle.DevCluster, namespace: str, names: Iterable[str], *values: str) -> None:
    """Give each object all these values, one after the other."""
    access = auth.load_access(cluster.kubeconfig, None, None, {})
    async with client.KubeClient(access) as kube:
        waiting = list(names)

        async def work() -> None:
            while waiting:
                name = waiting.pop(0)
                for value in values:
                    await put(kube, namespace, name, value)

        workers: list[Awaitable[None]] = [work() for _ in range(WRITERS)]
        await asyncio.gather(*workers)


async def put(kube: client.KubeClient, namespace: str, name: str, value: str) -> None:
    metadata = {"name": name, "labels": {"bound": "yes"}}
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"value": value}}
    await kube.apply(paths.of("v1", "configmaps", namespace=namespace, name=name), body, force=True)


def wait_listed(operator: operator_process.OperatorProcess, count: int) -> None:
    operator.wait_metric(count, "kube_snapshot_objects", binding="maps")


def mebibytes(pid: int) -> float:
    """Resident memory of a process."""
    status = pathlib.Path(f"/proc/{pid}/status").read_text()
    line = next(line for line in status.splitlines() if line.startswith("VmRSS:"))
    return int(line.split()[1]) / 1024


def has_queue(operator: operator_process.OperatorProcess) -> bool:
    series = operator.metrics().series
    return any(("queue", "busy") in labels for name, labels in series if name.endswith("tasks_queue_length"))
