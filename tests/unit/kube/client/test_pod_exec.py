"""Commands in pods, over a websocket."""

from collections.abc import AsyncIterator

import pytest

from addon_operator.kube import api_errors
from addon_operator.kube.client import client, pod_exec
from tests.support import api_server, pod_server
from tests.support.api_server import Pauses, status
from tests.support.pod_server import PodServer, Ran

PLACE = pod_exec.Container("addons", "one", "addon-operator")
EXEC = "/api/v1/namespaces/addons/pods/one/exec"


@pytest.fixture
async def server() -> AsyncIterator[PodServer]:
    async with pod_server.running() as running:
        yield running


@pytest.fixture
async def kube(server: PodServer, pauses: Pauses) -> AsyncIterator[client.KubeClient]:
    async with api_server.client_of(server.url, pauses) as opened:
        yield opened


async def test_a_command_gives_what_it_prints(server: PodServer, kube: client.KubeClient) -> None:
    server.pod("one", Ran('{"a": 1}', "a warning"))
    assert await pod_exec.output(kube, PLACE, ["cat", "/a b?c=d&e"]) == b'{"a": 1}'
    assert server.commands == [("one", "addon-operator", ["cat", "/a b?c=d&e"])]


@pytest.mark.parametrize(
    ("ran", "sentence"),
    [
        (Ran(errors="Error: no\n operator", message="exit code 1"), "Error: no operator"),
        (Ran(message='exec: "addon-operator": not found'), 'exec: "addon-operator": not found'),
        (
            Ran("half", hangs_up=True),
            "the connection to pod addons/one broke before the command ended",
        ),
    ],
    ids=["what it says", "what the kubelet says", "broken"],
)
async def test_a_command_that_fails_is_one_sentence(
    server: PodServer, kube: client.KubeClient, ran: Ran, sentence: str
) -> None:
    server.pod("one", ran)
    with pytest.raises(pod_exec.ExecError) as caught:
        await pod_exec.output(kube, PLACE, ["x"])
    assert str(caught.value) == sentence


async def test_a_command_that_does_not_end_is_not_waited_for(
    server: PodServer, kube: client.KubeClient
) -> None:
    server.pod("one", Ran("half", hangs=True))
    with pytest.raises(pod_exec.ExecError, match=r"^pod addons/one did not answer within 0\.05 s$"):
        await pod_exec.output(kube, PLACE, ["x"], seconds=0.05)


async def test_a_missing_right_is_told_with_the_rule_to_add(
    server: PodServer, kube: client.KubeClient
) -> None:
    message = 'pods "one" is forbidden: User "me" cannot get resource "pods/exec" in API group ""'
    server.refusal = 403
    server.on("GET", EXEC, status(403, "Forbidden", message))
    with pytest.raises(api_errors.Forbidden, match=r'me may not get .*resources: \["pods/exec"\]'):
        await pod_exec.output(kube, PLACE, ["x"])


async def test_a_right_that_is_missing_for_websockets_alone_is_told(
    server: PodServer, kube: client.KubeClient
) -> None:
    server.refusal = 403
    server.on("GET", EXEC, status(400, "BadRequest", "Upgrade request required"))
    with pytest.raises(pod_exec.ExecError, match=r'verbs: \["create", "get"\]'):
        await pod_exec.output(kube, PLACE, ["x"])
