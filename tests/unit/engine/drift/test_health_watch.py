"""Which kinds are worth a watch of their health, and what is kept of their objects."""

import json

import orjson

from addon_operator.engine.drift import health_watch
from addon_operator.kube.discovery import api_resources
from addon_operator.modules.health.resource_health import HealthState
from tests.support import rows


def kind(api_version: str, name: str, *, has_status: bool = False) -> api_resources.Resource:
    return api_resources.Resource(api_version, name, f"{name.lower()}s", True, has_status=has_status)


@rows.each(
    ("resource", "is_watched"),
    [
        (kind("apps/v1", "Deployment", has_status=True), True),
        (kind("v1", "Service", has_status=True), True),
        (kind("v1", "ConfigMap"), False),
        (kind("v1", "Secret"), False),
        (kind("v1", "ServiceAccount"), False),
        (kind("batch/v1", "CronJob", has_status=True), False),
        (kind("rbac.authorization.k8s.io/v1", "ClusterRole"), False),
        (kind("networking.k8s.io/v1", "Ingress", has_status=True), True),
        (kind("example.com/v1", "Shop"), True),
        (kind("gateway.networking.k8s.io/v1", "Gateway", has_status=True), True),
    ],
    ids=lambda value: value.kind if isinstance(value, api_resources.Resource) else "",
)
def test_only_kinds_whose_objects_can_be_otherwise_are_watched(
    resource: api_resources.Resource, *, is_watched: bool
) -> None:
    assert health_watch.is_watched(resource) is is_watched


async def test_of_an_object_only_the_verdict_is_kept() -> None:
    job = {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": "x", "creationTimestamp": "2023-11-14T22:13:20Z", "labels": {"a": "b" * 999}},
        "status": {"conditions": [{"type": "Failed", "status": "True", "message": "late"}]},
    }
    projection = health_watch.Verdicts(has_status=True)
    (kept,) = await projection.reduce([json.dumps(job).encode()])
    assert orjson.loads(kept.entry) == [
        [HealthState.FAILED, "failed: late", None, "late", None],
        1_700_000_000.0,
    ]
    job["metadata"] = {"name": "x", "creationTimestamp": "2023-11-15T22:13:20Z"}
    (again,) = await projection.reduce([json.dumps(job).encode()])
    assert again.digest == kept.digest, "another time alone is no change"


async def test_objects_that_are_healthy_share_one_entry() -> None:
    shop = b'{"apiVersion": "example.com/v1", "kind": "Shop", "metadata": {"name": "x"}}'
    first, second = await health_watch.Verdicts(has_status=False).reduce([shop, shop])
    assert first is second
    (unseen,) = await health_watch.Verdicts(has_status=True).reduce([shop])
    assert orjson.loads(unseen.entry)[0][1] == "has no status yet"
    old = shop.replace(b'"x"', b'"x", "creationTimestamp": "2023-11-14T22:13:20Z"')
    (silent,) = await health_watch.Verdicts(has_status=True).reduce([old])
    assert silent.entry != first.entry, "it says nothing of its kind"
