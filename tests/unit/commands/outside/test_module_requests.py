"""Requests about modules through their objects, as the operator answers them in the status."""

import asyncio
import functools
from collections.abc import Callable
from typing import Any

import pytest

from addon_operator.commands.outside import module_requests, place
from addon_operator.kube import api_errors
from addon_operator.kube.objects import module_objects, suspension
from tests.support import api_server, rows

PATH = module_objects.path_of("addons", "web")
Object = dict[str, Any]
Answers = Callable[[Object], Object]
"""The status that an operator gives to a Module with these annotations."""


class Module:
    """A Module object, and an operator that answers at once."""

    def __init__(self, server: api_server.ApiServer, operator: Answers, **status: object) -> None:
        self._operator, self._status = operator, dict(status)
        self.annotations: Object = {}
        server.on("GET", PATH, lambda _: api_server.Answer(self.body))
        server.on("PATCH", PATH, self._patched)

    @property
    def body(self) -> Object:
        status = self._status | self._operator(self.annotations)
        return {"metadata": {"name": "web", "annotations": self.annotations}, "status": status}

    def _patched(self, asked: api_server.Asked) -> api_server.Answer:
        changed = self.annotations | asked.body["metadata"]["annotations"]
        self.annotations = {key: value for key, value in changed.items() if value is not None}
        return api_server.Answer(self.body)


def follows(annotations: Object) -> Object:
    found = suspension.read(annotations, 0.0)
    answered = {"lastHandledRun": annotations.get(suspension.RUN)}
    return answered | ({} if found is None else {"suspended": {"since": annotations[suspension.SINCE]}})


async def requests(server: api_server.ApiServer) -> module_requests.ModuleRequests:
    where = place.Place(api_server.access_to(server.url), "addons", "lease")
    return module_requests.ModuleRequests(where)


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module_requests, "_LOOK_SECONDS", 0.001)
    monkeypatch.setattr(module_requests, "_ANSWER_SECONDS", 0.02)
    monkeypatch.setattr(module_requests, "RUN_SECONDS", 0.02)


async def done(server: api_server.ApiServer, request: str, *arguments: object, **flags: object) -> Object:
    """Ask as the command line does, outside of this loop."""
    asked = functools.partial(getattr(await requests(server), request), *arguments, **flags)
    found: Object = await asyncio.to_thread(asked)
    return found


async def test_a_module_is_suspended_and_resumed_by_its_annotations() -> None:
    async with api_server.running() as server:
        user = {"status": {"userInfo": {"username": "alice"}}}
        server.on("POST", "/apis/authentication.k8s.io/v1/selfsubjectreviews", user)
        module = Module(server, follows, state="Ready")
        told = await done(server, "suspend", "web", "new disks", 60.0)
        assert list(module.annotations) == list(suspension.ALL)
        assert told["suspended"].startswith("suspended: new disks (by alice, since ")
        assert (await done(server, "run", "web", waits=True))["suspended"] == told["suspended"]
        with pytest.raises(module_requests.RequestError) as caught:
            await done(server, "suspend", "web", "newer disks", None)
        assert str(caught.value) == (
            f"module web is already {told['suspended']}; ask whoever did that, or replace it with --replace"
        )
        again = await done(server, "suspend", "web", "newer disks", 60.0, replaces=True)
        assert again["suspended"].startswith("suspended: newer disks (by alice")
        assert await done(server, "resume", "web") == {"name": "web"}
        assert list(module.annotations) == [suspension.RUN]
        with pytest.raises(module_requests.RequestError, match=r"^module web is not suspended$"):
            await done(server, "resume", "web")


async def test_an_operator_that_does_not_answer_is_said() -> None:
    async with api_server.running() as server:
        Module(server, lambda _: {}, state="Ready")
        with pytest.raises(module_requests.RequestError) as caught:
            await done(server, "suspend", "web", "new disks", None)
        assert str(caught.value).startswith(
            "the annotations that suspend module web are written to the Module object addons/web, but no "
            "operator has taken that in within "
        )
        with pytest.raises(module_requests.RequestError) as caught:
            await done(server, "run", "web", waits=True)
        assert str(caught.value).startswith(
            "the Module object addons/web asks for a run, but no operator has said within "
        )
        assert (await done(server, "run", "web", waits=False))["name"] == "web"


async def test_what_no_operator_had_taken_in_is_not_said_to_be_looked_after_again() -> None:
    async with api_server.running() as server:
        module = Module(server, lambda _: {}, state="Ready")
        module.annotations = {suspension.SUSPENDED: "new disks", "other": "x"}
        told = await done(server, "resume", "web")
        written = "the annotations that suspend module web are removed from the Module object addons/web"
        assert told == {"name": "web", "unseen": written}
        assert module.annotations == {"other": "x"}


async def test_an_operator_that_does_not_take_in_that_a_module_is_resumed_is_said() -> None:
    async with api_server.running() as server:
        since = {"suspended": {"since": "2026-01-01T00:00:00Z"}}
        module = Module(server, lambda _: since, state="Ready")
        module.annotations = {suspension.SUSPENDED: "new disks"}
        with pytest.raises(module_requests.RequestError) as caught:
            await done(server, "resume", "web")
        assert str(caught.value).startswith(
            "the annotations that suspend module web are removed from the Module object addons/web, but no "
        )
        assert module.annotations == {}


async def test_a_run_is_waited_for_until_it_has_ended() -> None:
    async with api_server.running() as server:
        found = [{"type": "Unhealthy", "message": "no pods: Deployment web"}]
        told: Object = {"state": "Failed", "lastError": "no such image", "findings": found}
        Module(server, follows, **told)
        expected: Object = {"name": "web", **told, "suspended": ""}
        assert await done(server, "run", "web", waits=True) == expected


async def test_a_disabled_module_is_not_run() -> None:
    async with api_server.running() as server:
        module = Module(server, follows, state="Disabled")
        with pytest.raises(module_requests.RequestError, match=r"^module web is disabled: enable it"):
            await done(server, "run", "web", waits=False)
        assert module.annotations == {}


@rows.each(
    ("answer", "said"),
    [
        (api_server.Answer({"items": [{"metadata": {"name": "api"}}], "metadata": {}}), "there is no module"),
        (api_server.Answer({"items": [], "metadata": {}}), "there are no modules in namespace addons of "),
        (api_server.NOT_SERVED, "there are no Module objects in the cluster of the fake server"),
    ],
    ids=["another", "none", "no definition"],
)
async def test_a_module_that_is_not_there_is_said(answer: api_server.Answer, said: str) -> None:
    async with api_server.running() as server:
        server.on("GET", module_objects.path_of("addons"), answer)
        with pytest.raises(module_requests.RequestError, match=said):
            await done(server, "run", "web", waits=False)


async def test_a_right_that_is_missing_is_the_clients_error() -> None:
    async with api_server.running() as server:
        Module(server, follows, state="Ready")
        server.on("PATCH", PATH, api_server.status(403, "Forbidden"))
        with pytest.raises(api_errors.Forbidden):
            await done(server, "run", "web", waits=False)
