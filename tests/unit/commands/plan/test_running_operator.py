"""Asking a running operator what hooks gave."""

import json
import pathlib
import socket
import tempfile
from collections.abc import AsyncIterator
from typing import Any

import pytest
import structlog

from addon_operator.commands.plan import running_operator
from addon_operator.debug import debug_site
from addon_operator.kube.client import client
from addon_operator.settings import settings
from tests.support import api_server, pod_server
from tests.support.api_server import Pauses
from tests.support.pod_server import PodServer, Ran
from tests.unit.debug import inspected

ANSWER: dict[str, Any] = {
    "version": "1",
    "namespace": "addons",
    "server": "https://cluster",
    "global": {
        "patches": [[{"op": "add", "path": "/global/zone", "value": "a"}]],
        "switches": {"webEnabled": True},
    },
    "modules": {
        "web": {"patches": [[{"op": "add", "path": "/web/size", "value": 3}]], "hasRun": True},
        "db": {"patches": [], "hasRun": False},
    },
}
TOLD = Ran(json.dumps(ANSWER))
STANDS_BY = Ran(errors="Error: this replica stands by; ask two, which leads", message="exit code 1")


@pytest.fixture
async def server() -> AsyncIterator[PodServer]:
    async with pod_server.running() as running:
        yield running


@pytest.fixture
async def kube(server: PodServer, pauses: Pauses) -> AsyncIterator[client.KubeClient]:
    async with api_server.client_of(server.url, pauses) as opened:
        yield opened


async def test_an_operator_answers_on_its_socket_what_its_hooks_gave() -> None:
    world = inspected.make()
    with tempfile.TemporaryDirectory(prefix="ao-") as directory:
        path = pathlib.Path(directory) / "debug.socket"
        named = settings.Settings(
            namespace="addons", debug_unix_socket=path, origins={"debug_unix_socket": "flag"}
        )
        async with debug_site.serving(named, world.api, structlog.get_logger()):
            with pytest.raises(running_operator.NotToldError) as starting:
                await running_operator.on_socket(path)
            world.api.serve(world.engine)
            told = await running_operator.on_socket(path)
        with pytest.raises(running_operator.NotToldError) as ended:
            await running_operator.on_socket(path)
    given = [patch.operations[0] for patch in told.modules["web"]]
    assert given == [{"op": "add", "path": "/web/password", "value": inspected.SECRET}]
    assert [patch.operations[0]["path"] for patch in told.shared] == ["/global/zone"]
    assert (told.namespace, told.server) == inspected.HOME
    assert told.pending == {"web", "kube-dns"}
    assert str(starting.value) == (
        f"the operator on {path} does not tell what hooks gave: the operator is starting; "
        "ask again in a moment"
    )
    assert "no operator runs" in str(ended.value)
    assert inspected.SECRET not in repr(told)


async def test_a_socket_that_hangs_is_not_waited_for() -> None:
    with tempfile.TemporaryDirectory(prefix="ao-") as directory:
        path = pathlib.Path(directory) / "debug.socket"
        with socket.socket(socket.AF_UNIX) as listening:
            listening.bind(str(path))
            listening.listen()
            with pytest.raises(running_operator.NotToldError) as caught:
                await running_operator.on_socket(path, seconds=0.05)
    assert str(caught.value).startswith(
        f"the operator on {path} does not tell what hooks gave: the operator on {path} does not answer within"
    )


@pytest.mark.parametrize(
    ("target", "asked"),
    [("one", "one"), ("addons/one", "one"), ("pod/one", "one"), ("addons/pod/one", "one")],
)
async def test_an_operator_is_asked_in_its_pod(
    server: PodServer, kube: client.KubeClient, target: str, asked: str
) -> None:
    server.pod("one", TOLD, "sidecar", "addon-operator")
    told = await running_operator.in_pod(kube, target, "addons")
    assert told.who == "the operator in pod addons/one"
    assert (told.switches, told.pending) == ({"webEnabled": True}, frozenset({"db"}))
    assert server.commands == [
        (asked, "addon-operator", ["addon-operator", "raw", "/hook-values.json?showSensitive=true"])
    ]


async def test_of_a_deployment_the_leader_answers(server: PodServer, kube: client.KubeClient) -> None:
    pods = [
        server.pod("zero", TOLD, phase="Pending"),
        server.pod("one", STANDS_BY),
        server.pod("two", TOLD),
    ]
    server.on(
        "GET",
        "/apis/apps/v1/namespaces/addons/deployments/ao",
        {"spec": {"selector": {"matchLabels": {"app": "ao"}}}},
    )
    server.on("GET", "/api/v1/namespaces/addons/pods", {"items": pods})
    told = await running_operator.in_pod(kube, "deployment/ao", "addons")
    assert told.who == "the operator in pod addons/two"
    assert server.asked[-1].query["labelSelector"] == "app=ao"


@pytest.mark.parametrize(
    ("target", "ran", "sentence"),
    [
        ("one", STANDS_BY, "does not tell what hooks gave: this replica stands by; ask two, which leads"),
        ("one", Ran(errors="Error: this process only admits pods; ask the operator", message="1"),
         "does not tell what hooks gave: this process only admits pods; ask the operator"),
        ("one", Ran(errors="Error: there is nothing at /hook-values.json; /discovery lists", message="1"),
         "the operator in pod addons/one does not tell what hooks gave: it is of another version than this"),
        ("one", Ran('{"modules": {}}'), "its answer is not one of this version"),
        ("one", Ran("[]"), "its answer is not one of this version"),
        ("one", Ran("hello"), "its answer is not JSON"),
        ("one", Ran(json.dumps({**ANSWER, "global": {"patches": [[{"op": "x"}]], "switches": {}}})),
         "its answer is not one of this version"),
        ("two", TOLD, "there is no pod addons/two; for a Deployment, write addons/deployment/two"),
        ("a/b/c", TOLD, "a/b/c cannot be asked what hooks gave: write [NAMESPACE/]POD or "),
    ],
    ids=["stands by", "admission only", "older", "newer", "no object", "no JSON", "no patch", "no pod",
         "no name"],
)  # fmt: skip
async def test_an_operator_that_cannot_tell_is_one_sentence(
    server: PodServer, kube: client.KubeClient, target: str, ran: Ran, sentence: str
) -> None:
    server.pod("one", ran)
    with pytest.raises(running_operator.NotToldError) as caught:
        await running_operator.in_pod(kube, target, "addons")
    assert sentence in str(caught.value)


async def test_a_pod_that_does_not_run_cannot_tell(server: PodServer, kube: client.KubeClient) -> None:
    server.pod("one", TOLD, phase="Pending")
    with pytest.raises(running_operator.NotToldError, match="there is no running pod of one"):
        await running_operator.in_pod(kube, "one", "addons")
