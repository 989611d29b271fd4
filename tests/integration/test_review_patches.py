"""Patches of hooks are checked as the API server applies them: as those that it is sent itself."""

import json
from typing import Any

import pytest

from addon_operator.devcluster import handle
from addon_operator.hook_contract.outputs import patch_check
from addon_operator.kube import api_errors, paths
from addon_operator.kube.access import auth
from addon_operator.kube.client import client

pytestmark = pytest.mark.integration

PLACES = (
    *("/data/a", "/data/none", "/data", "/data/a/inner", "/metadata/none/x", "/metadata/finalizers/x"),
    *(f"/metadata/finalizers/{index}" for index in ("0", "1", "2", "3", "-", "", "-1", "-2", "-3", "-4")),
    *(f"/metadata/finalizers/{index}" for index in ("+1", "01", "0" * 20 + "1", "9223372036854775808")),
)
MORE: list[list[dict[str, Any]]] = [
    [{"op": "move", "from": "/metadata/finalizers/0", "path": f"/metadata/finalizers/{index}"}]
    for index in ("0", "1", "2", "-1", "-2", "-3")
] + [
    [{"op": "move", "from": "/data", "path": "/data/inner"}],
    [{"op": "test", "path": "/data", "value": {"a": "1", "b": "2"}}],
    [{"op": "test", "path": "/data", "value": {}}],
    [{"op": "add", "path": "/data/c", "value": None}, {"op": "add", "path": "/data/c/d", "value": "1"}],
]


def patches() -> list[list[dict[str, Any]]]:
    """Each operation at each place, and some more."""
    found: list[list[dict[str, Any]]] = [
        [{"op": op, "path": place, "value": "example.com/a"}]
        for op in ("add", "replace", "test")
        for place in PLACES
    ]
    found += [[{"op": "test", "path": place, "value": None}] for place in PLACES]
    found += [[{"op": "remove", "path": place}] for place in PLACES]
    found += [[{"op": "copy", "from": place, "path": "/metadata/x"}] for place in PLACES]
    found += [[{"op": "move", "from": place, "path": "/metadata/x"}] for place in PLACES]
    whole = ("add", "remove", "copy", "move")
    found += [[{"op": op, "path": "", "from": "/data", "value": {}}] for op in whole]
    return found + MORE


def applies(document: dict[str, Any], patch: list[dict[str, Any]]) -> bool:
    try:
        patch_check.check(json.dumps({"request": {"object": document}}).encode(), patch)
    except patch_check.PatchError:
        return False
    return True


async def test_what_does_not_apply_is_what_the_api_server_cannot_apply(
    devcluster: handle.DevCluster, namespace: str
) -> None:
    path = paths.of("v1", "configmaps", namespace=namespace, name="x")
    metadata = {"name": "x", "finalizers": ["example.com/a", "example.com/b"]}
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"a": "1", "b": "2"}}
    differing, seen = list[str](), set[bool]()
    async with client.KubeClient(auth.load_access(devcluster.kubeconfig, None, None, {})) as kube:
        stored = await kube.create(paths.of("v1", "configmaps", namespace=namespace), body)
        for patch in patches():
            taken, said = True, ""
            try:
                await kube.patch(path, patch, client.PatchType.JSON, query={"dryRun": "All"})
            except api_errors.KubernetesError as error:
                # What it makes of the object may still be wrong: that is another question.
                taken, said = "error in our request" not in str(error), str(error)
            seen.add(taken)
            if applies(dict(stored), patch) is not taken:
                differing.append(f"{json.dumps(patch)}: {taken} {said}")
    assert (differing, seen) == ([], {True, False})
