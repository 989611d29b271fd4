"""A cluster in memory answers as an API server does."""

from typing import Any

import pytest

from addon_operator.kernel import clock
from addon_operator.kube import api_errors, paths
from addon_operator.kube.client import client
from addon_operator.kube.discovery import discovery
from addon_operator.testing.given import api, given_objects, kinds, object_selectors
from tests.support import rows


def body(kind: str, name: str, namespace: str | None = None, **more: object) -> dict[str, Any]:
    extra = more.pop("metadata", {})
    assert isinstance(extra, dict)
    metadata = {"name": name} | ({"namespace": namespace} if namespace else {}) | extra
    return {"apiVersion": "v1", "kind": kind, "metadata": metadata, **more}


def cluster(*objects: dict[str, Any]) -> api.GivenApi:
    return api.GivenApi(given_objects.GivenObjects(objects), "v1.36.0")


WEB = paths.of("v1", "configmaps", namespace="default", name="web")
ALL = paths.of("v1", "configmaps", namespace="default")


async def test_an_object_without_a_namespace_is_in_the_default_one() -> None:
    async with api.client_of(cluster(body("ConfigMap", "web"))) as kube:
        assert (await kube.get(WEB))["metadata"]["namespace"] == "default"


async def test_an_object_that_is_not_there_is_not_found() -> None:
    async with api.client_of(cluster()) as kube:
        with pytest.raises(api_errors.NotFound):
            await kube.get(WEB)


async def test_a_name_that_is_taken_is_refused() -> None:
    async with api.client_of(cluster(body("ConfigMap", "web"))) as kube:
        with pytest.raises(api_errors.AlreadyExists):
            await kube.create(ALL, body("ConfigMap", "web"))


async def test_a_replacement_of_an_old_state_is_a_conflict() -> None:
    async with api.client_of(cluster(body("ConfigMap", "web"))) as kube:
        old = await kube.get(WEB)
        await kube.replace(WEB, {**old, "data": {"a": "1"}})
        with pytest.raises(api_errors.Conflict):
            await kube.replace(WEB, {**old, "data": {"a": "2"}})


@rows.each(
    ("patch", "type_", "data"),
    [
        ({"data": {"a": None, "b": "2"}}, client.PatchType.MERGE, {"b": "2"}),
        ([{"op": "add", "path": "/data/b", "value": "2"}], client.PatchType.JSON, {"a": "1", "b": "2"}),
        ({"data": {"b": "2"}}, client.PatchType.APPLY, {"a": "1", "b": "2"}),
    ],
    ids=["merge", "json", "apply"],
)
async def test_patches_change_what_they_say(patch: object, type_: client.PatchType, data: object) -> None:
    given = cluster(body("ConfigMap", "web", data={"a": "1"}))
    async with api.client_of(given) as kube:
        await kube.patch(WEB, patch, type_)  # type: ignore[arg-type]

    assert given.given.all() == [body("ConfigMap", "web", "default", data=data)]


async def test_a_patch_that_does_not_fit_changes_nothing() -> None:
    given = cluster(body("ConfigMap", "web"))
    async with api.client_of(given) as kube:
        with pytest.raises(api_errors.ApiError, match="the patch cannot be applied"):
            await kube.patch(WEB, [{"op": "remove", "path": "/data/b"}], client.PatchType.JSON)

    assert given.given.all() == [body("ConfigMap", "web", "default")]


async def test_a_patch_of_the_status_changes_nothing_else() -> None:
    given = cluster(body("Pod", "web", spec={"a": 1}))
    path = paths.of("v1", "pods", namespace="default", name="web", subresource="status")
    async with api.client_of(given) as kube:
        await kube.patch(path, {"spec": {"a": 2}, "status": {"phase": "Running"}})

    assert given.given.all() == [body("Pod", "web", "default", spec={"a": 1}, status={"phase": "Running"})]


async def test_finalizers_hold_what_is_deleted() -> None:
    held = body("ConfigMap", "web", metadata={"finalizers": ["x/y"]})
    given = cluster(held, body("ConfigMap", "other"))
    async with api.client_of(given) as kube:
        await kube.delete(WEB)
        await kube.delete(paths.of("v1", "configmaps", namespace="default", name="other"))

    assert [each["metadata"].get("deletionTimestamp") is not None for each in given.given.all()] == [True]


@rows.each(
    ("selector", "found"),
    [
        ("app=web", True),
        ("app==web,tier!=db", True),
        ("app in (web, api),tier notin (db)", True),
        ("app notin (web)", False),
        ("app,!tier", True),
        ("tier", False),
        ("", True),
    ],
)
def test_labels_are_selected_as_the_api_server_does(selector: str, found: bool) -> None:
    assert object_selectors.has_labels(selector, {"app": "web"}) is found


def test_fields_are_selected_by_those_that_the_api_server_knows() -> None:
    pod = body("Pod", "web", "default", spec={"nodeName": "one"})

    assert object_selectors.has_fields("spec.nodeName=one,metadata.name!=x", "pods", pod)
    assert not object_selectors.has_fields("spec.nodeName=two", "pods", pod)
    with pytest.raises(object_selectors.SelectorError, match=r"not supported: spec\.replicas"):
        object_selectors.has_fields("spec.replicas=1", "pods", pod)
    told = body("Event", "web", source={"component": "kubelet"})
    assert object_selectors.has_fields("source=kubelet", "events", told)


async def test_kinds_come_from_definitions_and_from_the_objects() -> None:
    names = {"kind": "Gizmo", "plural": "gizmi", "shortNames": ["gz"]}
    spec = {"group": "x.io", "scope": "Cluster", "names": names, "versions": [{"name": "v1"}]}
    definition = {"apiVersion": "apiextensions.k8s.io/v1", "kind": kinds.DEFINITION, "spec": spec}
    definition["metadata"] = {"name": "gizmi.x.io"}
    policy = {"apiVersion": "y.io/v1", "kind": "Policy", "metadata": {"name": "p", "namespace": "a"}}
    async with api.client_of(cluster(definition, policy)) as kube:
        catalog = discovery.Catalog(kube, clock.SystemClock())
        gizmo, guessed = await catalog.find("gz"), await catalog.find("Policy", "y.io/v1")
        versions = (await catalog.look()).api_versions

    assert (gizmo.plural, gizmo.namespaced) == ("gizmi", False)
    assert (guessed.plural, guessed.namespaced) == ("policies", True)
    assert {"x.io/v1/Gizmo", "y.io/v1", "apps/v1/Deployment"} <= versions


@rows.each(
    ("given", "said"),
    [
        ({"kind": "Pod", "metadata": {"name": "x"}}, "kind: Pod, name: x.*'apiVersion' is missing"),
        ({"apiVersion": "v1", "kind": "Pod"}, "'metadata' is missing"),
        ("Pod", "is a mapping"),
        (body("Pod", "x") | {"apiVersion": "v1/Pod"}, "apiVersion: 'v1/Pod' is not an apiVersion"),
        (body("pod", "x"), "kind: 'pod' is not a kind; write it as manifests have it"),
        (body("Pod", "a/b"), "metadata.name: 'a/b' is not a name"),
        (body("Pod", "x", namespace="A"), "metadata.namespace: 'A' is not a name"),
        (
            body("Pod", "x", metadata={"labels": ["app"]}),
            r'metadata.labels: \["app"\] is not a mapping; write name: value',
        ),
        (
            body("Pod", "x", metadata={"labels": {"app": 1.10}}),
            "labels.app: 1.1 is not a text; put it in quotes",
        ),
        (body("Pod", "x", metadata={"labels": {"app": "a b"}}), "labels.app: 'a b' is not a label value"),
        (body("Pod", "x", metadata={"annotations": {"a b": ""}}), "annotations: 'a b' is not a label name"),
    ],
)
def test_what_is_not_an_object_is_told(given: object, said: str) -> None:
    with pytest.raises(kinds.GivenObjectError, match=said):
        given_objects.GivenObjects([given])  # type: ignore[list-item]


def test_keys_with_nothing_behind_them_are_as_charts_leave_them() -> None:
    given = body("Pod", "x", metadata={"labels": None, "annotations": None})

    assert given_objects.GivenObjects([given]).all()[0]["metadata"]["name"] == "x"


def test_an_object_is_given_once() -> None:
    with pytest.raises(kinds.GivenObjectError, match="Node one is given twice"):
        given_objects.GivenObjects([body("Node", "one"), body("Node", "one")])
