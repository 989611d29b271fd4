"""The admission server, its certificates and its registration with a real API server."""

import asyncio
import base64
import contextlib
import datetime as dt
import pathlib
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import pytest
import yaml
from msgspec import structs

from addon_operator.admission import reviews
from addon_operator.admission.registration import registration
from addon_operator.admission.registration import registration_specs as specs
from addon_operator.aio import waiting
from addon_operator.devcluster.pytest_plugin import DevCluster
from addon_operator.kube import api_errors, paths
from addon_operator.kube.access import auth
from addon_operator.kube.client import client
from tests.integration.admission_replicas import (
    SECRET,
    Observer,
    Replica,
    configuration,
    replica,
    withdraw,
)
from tests.support import watches

pytestmark = pytest.mark.integration


@pytest.fixture
async def kube(devcluster: DevCluster) -> AsyncIterator[client.KubeClient]:
    async with client.KubeClient(auth.load_access(devcluster.kubeconfig, None, None, {})) as opened:
        yield opened


@pytest.fixture
async def running(kube: client.KubeClient, namespace: str) -> AsyncIterator[Replica]:
    try:
        async with replica(kube, namespace) as started:
            await until(lambda: marked(started))
            yield started
    finally:
        await withdraw(kube, configuration(namespace))


async def marked(running: Replica) -> bool:
    """Whether the API server has taken notice of the registration, which takes it up to a second."""
    query = {"dryRun": "All"}
    collection = paths.of("v1", "configmaps", namespace=running.namespace)
    body = {"metadata": {"name": "probe"}, "data": {"a": "b"}}
    return "marked" in (await running.kube.create(collection, body, query=query))["data"]


async def until(condition: Callable[[], Awaitable[bool]], seconds: float = 10) -> None:
    async with asyncio.timeout(seconds):
        while not await condition():  # noqa: ASYNC110 - what is waited for is in the API server
            await asyncio.sleep(0.05)


async def test_the_api_server_asks_and_obeys(running: Replica) -> None:
    created = await running.create("a")
    assert created["data"] == {"a": "b", "marked": "yes"}
    review = running.handler.reviews[-1]
    assert (review.namespace, review.name, review.operation) == (running.namespace, "a", "CREATE")
    assert review.resource == reviews.GroupVersionName("", "v1", "configmaps")
    assert not review.dry_run
    assert running.handler.reviews[0].dry_run
    assert running.observer.wrong == []


async def test_match_conditions_hold(running: Replica) -> None:
    assert (await running.create("left-out"))["data"] == {"a": "b"}


async def test_the_largest_objects_are_no_trouble(running: Replica) -> None:
    # The API server writes each "<" with six bytes.
    assert "marked" in (await running.create("large", "<" * 1_000_000))["data"]


async def test_what_the_api_server_stores_is_what_is_wanted(running: Replica) -> None:
    before = (await running.kube.get(running.configuration.path))["metadata"]["resourceVersion"]
    for _ in range(3):
        await running.registrar.ensure()
    assert (await running.kube.get(running.configuration.path))["metadata"]["resourceVersion"] == before


@pytest.mark.parametrize(
    "edit",
    [
        pytest.param({"failurePolicy": "Ignore"}, id="policy"),
        pytest.param({"matchConditions": [{"name": "never", "expression": "false"}]}, id="conditions"),
        pytest.param({"objectSelector": {"matchLabels": {"a": "b"}}}, id="selector"),
        pytest.param({"rules": []}, id="rules"),
    ],
)
async def test_an_edit_is_undone_within_seconds(running: Replica, edit: dict[str, Any]) -> None:
    wanted = await running.stored()
    patch = {"webhooks": [{"name": wanted["name"], **edit}]}
    await running.kube.patch(running.configuration.path, patch, client.PatchType.STRATEGIC)

    async def repaired() -> bool:
        return bool(await running.stored() == wanted)

    await until(repaired, 5)


async def test_a_removed_registration_is_back_within_seconds(running: Replica) -> None:
    await running.kube.delete(running.configuration.path)

    async def back() -> bool:
        with contextlib.suppress(api_errors.NotFound):
            return bool(await running.stored())
        return False

    await until(back, 5)


async def test_the_end_of_a_replica_leaves_the_registration(running: Replica) -> None:
    before = await running.stored()
    other = structs.replace(configuration(running.namespace), name=f"other-{running.namespace}")
    async with replica(running.kube, running.namespace, other):
        pass
    assert (await running.kube.get(other.path))["webhooks"]
    assert await running.stored() == before
    await withdraw(running.kube, other)


async def test_replicas_share_one_authority(running: Replica) -> None:
    other = structs.replace(configuration(running.namespace), name=f"other-{running.namespace}")
    async with replica(running.kube, running.namespace, other) as second:
        assert (await second.store.refresh()).bundle == (await running.store.refresh()).bundle
    await withdraw(running.kube, other)


@pytest.mark.slow
async def test_the_certificate_changes_without_one_failed_request_and_then_its_authority(
    running: Replica,
) -> None:
    first = (await running.store.refresh()).bundle
    done = asyncio.Event()
    count = 0

    async def load(worker: int) -> None:
        nonlocal count
        number = 0
        while not done.is_set():
            assert (await running.create(f"c{worker}-{number}"))["data"].get("marked") == "yes"
            number += 1
            count += 1

    async def registered() -> bool:
        config = (await running.stored())["clientConfig"]
        return base64.b64decode(config["caBundle"]) == (await running.store.refresh()).bundle

    async def reach(days: float) -> None:
        running.clock.ahead = dt.timedelta(days=days - 70)
        await running.store.refresh()
        running.store.calling_changed.set()
        await until(registered)

    async def asked() -> bool:
        with contextlib.suppress(api_errors.KubernetesError):
            return bool(await running.create(f"after-{number}"))
        return False

    async with asyncio.TaskGroup() as tasks:
        for worker in range(8):
            tasks.create_task(load(worker))
        await reach(61)
        before = count
        await asyncio.sleep(1)
        assert count > before
        done.set()
    assert (await running.store.refresh()).bundle == first
    # The next authority, and the end of the former one; the API server needs a moment to take notice.
    for number in (67, 69):
        await reach(number)
        await until(asked)
    assert (await running.store.refresh()).bundle != first
    assert running.observer.wrong == []


async def test_a_deleted_secret_is_restored_without_a_new_authority(running: Replica) -> None:
    bundle = (await running.store.refresh()).bundle
    path = paths.of("v1", "secrets", namespace=running.namespace, name=SECRET)
    await running.kube.delete(path)
    assert (await running.store.refresh()).bundle == bundle
    assert {"tls.crt", "tls.key"} <= (await running.kube.get(path))["data"].keys()


async def test_missing_rights_are_one_warning_with_the_rule(
    running: Replica, devcluster: DevCluster, tmp_path: pathlib.Path
) -> None:
    account = paths.of("v1", "serviceaccounts", namespace=running.namespace)
    await running.kube.create(account, {"metadata": {"name": "poor"}})
    request = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}}
    answer = await running.kube.create(f"{account}/poor/token", request)
    config = yaml.safe_load(devcluster.kubeconfig.read_text())
    for user in config["users"]:
        user["user"] = {"token": answer["status"]["token"]}
    (tmp_path / "config").write_text(yaml.safe_dump(config))
    observer = Observer()
    async with client.KubeClient(auth.load_access(tmp_path / "config", None, None, {})) as poor:
        registrar = registration.Registrar(
            poor,
            [running.configuration],
            specs.ServiceAddress("a", "b"),
            running.store,
            observer,
            watches.shared(poor, waiting.SystemTime()),
        )
        task = asyncio.create_task(registrar.keep())

        async def warned() -> bool:
            running.store.calling_changed.set()
            return bool(observer.lines)

        await until(warned)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
    (warning,) = observer.lines
    assert 'resources: ["mutatingwebhookconfigurations"], verbs: ["get"]' in warning
