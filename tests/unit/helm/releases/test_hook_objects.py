"""What hooks of failed tries left goes before the next try, and what their pods wrote last is told."""

from typing import Any

import pytest
import yaml

from addon_operator.helm import helm_errors, places
from addon_operator.helm.releases import hook_objects, live_objects
from addon_operator.kernel import names
from addon_operator.kube.client import client
from tests.support import api_server, kinds

WEB = names.ModuleName("web")
API = {"Job": "batch/v1", "Role": "rbac.authorization.k8s.io/v1"}
KINDS = ("Job", "Pod", "ServiceAccount", "Role", "Secret", "ConfigMap", "PersistentVolumeClaim")
HOOK = {"helm.sh/hook": "pre-upgrade"}
RUNNING = {"phase": "Running", "containerStatuses": [{"name": "a", "state": {"running": {}}}]}
WAITING = {"phase": "Pending", "containerStatuses": [{"name": "a", "state": {"waiting": {}}}]}


def hook(kind: str, name: str, **more: Any) -> dict[str, Any]:  # noqa: ANN401 - of the object
    return api_server.an_object(kind, name, None, API.get(kind, "v1"), annotations=HOOK, **more)


@pytest.fixture
def live(server: api_server.ApiServer, kube: client.KubeClient) -> live_objects.LiveObjects:
    for kind in KINDS:
        server.put(hook(kind, "hook", metadata={"namespace": api_server.NAMESPACE}))
    where = places.ReleaseLocations(api_server.NAMESPACE)
    return live_objects.LiveObjects(kube, kinds.Kinds(), where, {})


def hooks() -> list[str]:
    return [yaml.safe_dump(hook(kind, "hook")) for kind in KINDS]


def pod_of(server: api_server.ApiServer, status: dict[str, Any]) -> None:
    server.put(api_server.an_object("Pod", "hook-x", labels={"job-name": "hook"}, status=status))


def left(server: api_server.ApiServer) -> set[str]:
    return {kind for kind in KINDS if "hook" in server.names(kind)}


async def test_what_may_hold_data_stays(server: api_server.ApiServer, live: live_objects.LiveObjects) -> None:
    await hook_objects.clear(live, WEB, hooks())
    assert left(server) == {"Secret", "ConfigMap", "PersistentVolumeClaim"}


async def test_what_is_no_hook_of_that_time_stays(
    server: api_server.ApiServer, live: live_objects.LiveObjects
) -> None:
    server.put(api_server.an_object("ServiceAccount", "hook"))
    await hook_objects.clear(live, WEB, hooks(), since=1e12)
    assert left(server) == set(KINDS)
    await hook_objects.clear(live, WEB, hooks())
    assert "ServiceAccount" in left(server)


@pytest.mark.parametrize(("status", "stays"), [(RUNNING, True), (WAITING, False)], ids=["running", "waiting"])
async def test_work_that_runs_stays_with_its_rights(
    server: api_server.ApiServer, live: live_objects.LiveObjects, status: dict[str, Any], stays: bool
) -> None:
    pod_of(server, status)
    await hook_objects.clear(live, WEB, hooks())
    assert left(server).issuperset({"Job", "ServiceAccount", "Role"}) is stays
    assert "Pod" not in left(server)


async def test_what_pods_of_a_hook_wrote_last_is_told_without_secrets(
    server: api_server.ApiServer, live: live_objects.LiveObjects
) -> None:
    pod_of(server, {"phase": "Failed"})
    place = f"/api/v1/namespaces/{api_server.NAMESPACE}/pods"
    server.on("GET", f"{place}/hook-x/log", api_server.Answer(text="begins\nno route for geheim\n"))
    server.refuse(404, lambda asked: asked.path == f"{place}/hook/log")
    failed = helm_errors.HelmError(WEB, "pre-upgrade hooks failed: job hook failed")
    told = await hook_objects.explained(failed, live, hooks(), lambda text: text.replace("geheim", "***"))
    assert told.message == f"{failed.message}; pod hook-x wrote last: begins | no route for ***"
    other = helm_errors.HelmError(WEB, "no")
    assert await hook_objects.explained(other, live, hooks(), str) is other
