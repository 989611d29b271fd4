"""Questions to the debug endpoint that are asked in the leader's pod."""

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import TypeVar

import pytest

from addon_operator.commands.outside import leader, place, pod_client
from addon_operator.debug import debug_client
from addon_operator.kube import api_errors
from tests.support import api_server, pod_server

LEASE = "/apis/coordination.k8s.io/v1/namespaces/addons/leases/addon-operator-leader-election"
T = TypeVar("T")


@pytest.fixture
async def server() -> AsyncIterator[pod_server.PodServer]:
    async with pod_server.running() as running:
        running.on("GET", LEASE, {"metadata": {"name": "l"}, "spec": {"holderIdentity": "ao-0_0a1b2c3d"}})
        yield running


async def asked(server: pod_server.PodServer, question: Callable[[pod_client.PodClient], T]) -> T:
    """Ask as the command line does, outside of this loop."""
    where = place.Place(api_server.access_to(server.url), "addons", "addon-operator-leader-election")
    return await asyncio.to_thread(question, pod_client.PodClient(where))


async def test_an_answer_is_what_the_command_in_the_pod_prints(server: pod_server.PodServer) -> None:
    server.pod("ao-0", pod_server.Ran('{"a": 1}'), "sidecar", "addon-operator")
    assert await asked(server, lambda ask: ask.get("/x.json", {"showEmpty": "true"})) == {"a": 1}
    assert await asked(server, lambda ask: ask.post("/module/web/retry", {})) == {"a": 1}
    assert await asked(server, lambda ask: ask.post("/config/set", {"name": "a b", "value": "c"})) == {"a": 1}
    assert server.commands == [
        ("ao-0", "addon-operator", ["addon-operator", "raw", *rest])
        for rest in (
            ["/x.json?showEmpty=true"],
            ["/module/web/retry", "--post", ""],
            ["/config/set", "--post", "name=a+b&value=c"],
        )
    ]


async def test_an_error_of_the_command_in_the_pod_is_the_error_here(server: pod_server.PodServer) -> None:
    server.pod("ao-0", pod_server.Ran(errors="Error: there is no module 'wbe'\n", message="exit code 1"))
    with pytest.raises(debug_client.DebugClientError, match=r"^there is no module 'wbe'$"):
        await asked(server, lambda ask: ask.get_text("/x"))


async def test_an_answer_that_is_not_json_is_said(server: pod_server.PodServer) -> None:
    server.pod("ao-0", pod_server.Ran("hello"))
    with pytest.raises(
        debug_client.DebugClientError, match=r"the answer in namespace addons of .* is not JSON"
    ):
        await asked(server, lambda ask: ask.get("/x.json"))


async def test_a_connection_that_breaks_is_an_error(server: pod_server.PodServer) -> None:
    server.pod("ao-0", pod_server.Ran("half", hangs_up=True))
    with pytest.raises(debug_client.DebugClientError, match="broke before the command ended"):
        await asked(server, lambda ask: ask.get_text("/x"))


async def test_without_the_right_to_run_commands_the_rule_is_named(server: pod_server.PodServer) -> None:
    server.pod("ao-0", pod_server.Ran("{}"))
    server.refusal = 403
    server.on(
        "GET", "/api/v1/namespaces/addons/pods/ao-0/exec", api_server.status(400, "", "Upgrade request")
    )
    with pytest.raises(debug_client.DebugClientError, match=r'resources: \["pods/exec"\], verbs: \["create"'):
        await asked(server, lambda ask: ask.get_text("/x"))


async def test_without_a_leader_nobody_is_asked(server: pod_server.PodServer) -> None:
    with pytest.raises(leader.NoOperatorError, match="the leader is gone"):
        await asked(server, lambda ask: ask.get_text("/x"))
    server.on("GET", LEASE, api_server.status(401, "Unauthorized"))
    with pytest.raises(api_errors.Unauthorized):
        await asked(server, lambda ask: ask.get_text("/x"))
