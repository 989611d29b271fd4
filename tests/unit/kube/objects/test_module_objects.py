"""Module objects that somebody annotates."""

import pytest

from addon_operator.kernel import clock
from addon_operator.kube import api_errors
from addon_operator.kube.objects import module_objects, suspension
from tests.support import api_server

LIST = "/apis/addon-operator.io/v1alpha1/namespaces/addons/modules"


def module(name: str, **annotations: str) -> dict[str, object]:
    return {"metadata": {"name": name, "annotations": annotations or None}}


async def test_modules_are_suspended_that_are_so_now() -> None:
    server = api_server.ApiServer()
    items = [
        module("web", **{suspension.SUSPENDED: "x", suspension.UNTIL: clock.rfc3339(101)}),
        module("over", **{suspension.SUSPENDED: "x", suspension.UNTIL: clock.rfc3339(100)}),
        module("for-ever", **{suspension.SUSPENDED: "x"}),
        module("managed"),
    ]
    server.on("GET", LIST, {"items": items, "metadata": {}})
    async with api_server.client_of(server, api_server.Pauses()) as kube:
        assert await module_objects.suspended(kube, "addons", 100.0) == {"web", "for-ever"}


async def test_without_module_objects_none_is_and_without_the_right_nobody_knows() -> None:
    server = api_server.ApiServer()
    server.on("GET", LIST, api_server.NOT_SERVED)
    async with api_server.client_of(server, api_server.Pauses()) as kube:
        assert await module_objects.suspended(kube, "addons", 100.0) == frozenset()
        server.on("GET", LIST, api_server.status(403, "Forbidden"))
        with pytest.raises(api_errors.Forbidden):
            await module_objects.suspended(kube, "addons", 100.0)


async def test_annotations_are_set_and_removed_in_one_request() -> None:
    server = api_server.ApiServer()
    server.on("PATCH", f"{LIST}/web", module("web"))
    async with api_server.client_of(server, api_server.Pauses()) as kube:
        await module_objects.annotate(kube, "addons", "web", {"a": "b", "c": None})
        await module_objects.remove_annotations(kube, "addons", "web", {"a/b~c": "d"})
    first, second = server.asked
    assert first.body == {"metadata": {"annotations": {"a": "b", "c": None}}}
    path = "/metadata/annotations/a~1b~0c"
    assert second.body == [
        {"op": "test", "path": path, "value": "d"},
        {"op": "remove", "path": path},
    ]
    assert [asked.headers["content-type"] for asked in server.asked] == [
        "application/merge-patch+json",
        "application/json-patch+json",
    ]
