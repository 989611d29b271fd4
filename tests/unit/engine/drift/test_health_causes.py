"""Why something is not healthy, as the cluster is asked for it."""

from collections.abc import Mapping
from typing import Any

from typing_extensions import override

from addon_operator.engine.drift import health_causes, watched_resources
from addon_operator.kube import api_errors
from addon_operator.kube.client import client, connection
from addon_operator.kube.discovery import api_resources
from addon_operator.kube.informers import object_changes
from tests.support import rows
from tests.unit.engine import watching

POD = api_resources.Resource("v1", "Pod", "pods", True, watching.ALL)
CLAIM = api_resources.Resource("v1", "PersistentVolumeClaim", "persistentvolumeclaims", True, watching.ALL)
LABELS = {"selector": {"matchLabels": {"app": "web"}}}


def pod(name: str, **status: Any) -> dict[str, Any]:  # noqa: ANN401 - whatever a pod may have
    return {"metadata": {"name": name}, "status": status}


def waits(reason: str) -> dict[str, Any]:
    return {"containerStatuses": [{"name": "main", "state": {"waiting": {"reason": reason}}}]}


class Kube(client.KubeClient):
    def __init__(self, found: Mapping[str, Any] | None = None, **lists: list[dict[str, Any]]) -> None:
        self.found = dict(found or {})
        self.lists = lists
        self.queries: list[Mapping[str, str]] = []
        self.error: Exception | None = None

    @override
    async def get(
        self, path: str, *, query: Mapping[str, str] | None = None, metadata_only: bool = False
    ) -> client.Object:
        if self.error is not None:
            raise self.error
        return self.found

    @override
    async def document(self, request: connection.Request, *, limited: bool = True) -> client.Object:
        self.queries.append(request.query)
        assert request.most_bytes == 4 << 20
        plural = request.path.rpartition("/")[2]
        if plural == "pods" and "fieldSelector" in request.query:
            running = [each for each in self.lists["pods"] if each["status"].get("phase") != "Running"]
            return {"items": running}
        return {"items": self.lists.get(plural, [])}


async def cause(
    kube: Kube, resource: api_resources.Resource = watching.DEPLOYMENT, since: float = 0.0
) -> str:
    watched = watched_resources.Watched(resource, object_changes.ObjectKey("addons", "web"))
    return (await health_causes.HealthCauses(kube).cause(watched, since)).text


@rows.each(
    ("selector", "asked"),
    [
        ({"matchLabels": {"app": "web", "a": "b"}}, "app=web,a=b"),
        (
            {
                "matchLabels": {"app": "web"},
                "matchExpressions": [
                    {"key": "a", "operator": "In", "values": ["b", "c"]},
                    {"key": "d", "operator": "NotIn", "values": ["e"]},
                    {"key": "f", "operator": "Exists"},
                    {"key": "g", "operator": "DoesNotExist"},
                ],
            },
            "app=web,a in (b,c),d notin (e),f,!g",
        ),
    ],
    ids=["labels", "expressions"],
)
async def test_pods_are_found_by_the_whole_selector(selector: dict[str, Any], asked: str) -> None:
    kube = Kube({"spec": {"selector": selector}}, pods=[pod("web-1", **waits("ErrImagePull"))])
    assert (await cause(kube)).startswith("ErrImagePull")
    assert kube.queries[0]["labelSelector"] == asked


async def test_one_that_crashes_is_found_among_many_that_run() -> None:
    fine = [pod(f"web-{number}", phase="Running") for number in range(50)]
    kube = Kube({"spec": LABELS}, pods=[*fine, pod("web-x", phase="Running", **waits("CrashLoopBackOff"))])
    assert await cause(kube) == "CrashLoopBackOff (pod web-x)"
    assert all("limit" in query for query in kube.queries)


async def test_a_warning_tells_what_pods_do_not() -> None:
    warning = {"type": "Warning", "reason": "ProvisioningFailed", "message": "no class"}
    assert await cause(Kube(events=[warning]), CLAIM) == "ProvisioningFailed: no class"


async def test_a_claim_waits_for_its_first_consumer_until_a_newer_event_says_otherwise() -> None:
    waits = {"type": "Normal", "reason": "WaitForFirstConsumer", "lastTimestamp": "2026-01-01T00:00:10Z"}
    old = {
        "type": "Warning",
        "reason": "ProvisioningFailed",
        "message": "no class",
        "lastTimestamp": "2026-01-01T00:00:00Z",
    }
    new = old | {"lastTimestamp": "2026-01-01T00:00:20Z"}
    assert await cause(Kube(events=[old, waits]), CLAIM) == "waits for its first consumer"
    assert await cause(Kube(events=[waits, new]), CLAIM) == "ProvisioningFailed: no class"


async def test_that_no_node_takes_a_pod_is_not_told_twice() -> None:
    conditions = [{"type": "PodScheduled", "status": "False", "message": "0/1 nodes"}]
    warning = {"type": "Warning", "reason": "FailedScheduling", "message": "0/1 nodes"}
    assert await cause(Kube(pod("web", conditions=conditions), events=[warning]), POD) == ""
    assert await cause(Kube(pod("web", **waits("CrashLoopBackOff"))), POD) == "CrashLoopBackOff"


async def test_without_an_answer_nothing_is_told() -> None:
    kube = Kube()
    kube.error = api_errors.Unreachable("away")
    assert await cause(kube) == ""


@rows.each("selector", ["text", ["a"], {"matchLabels": "x"}, {"matchExpressions": [5]}])
async def test_a_selector_of_a_kind_that_is_only_called_the_same_is_not_read(selector: object) -> None:
    strange = api_resources.Resource("shop.io/v1", "Deployment", "deployments", True, watching.ALL)
    assert await cause(Kube({"spec": {"selector": selector}}), strange) == ""
