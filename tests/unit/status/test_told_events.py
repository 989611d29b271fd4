"""The last Events about modules: told by this process, and read once of those before it."""

from typing import Any

import pytest

from addon_operator.kube.client import client
from addon_operator.status import module_status, told_events
from tests.support import api_server

EVENTS = "/api/v1/namespaces/addons/events"


def told(at: int, reason: str = "Failed", message: str = "A run failed.") -> module_status.ToldEvent:
    return {"time": f"2026-11-25T03:{at:02}:00Z", "type": "Warning", "reason": reason, "message": message}


def stored(
    at: int, module: str = "web", message: str = "A run failed.", component: str = "addon-operator"
) -> dict[str, Any]:
    event = told(at, message=message)
    return {
        "involvedObject": {"name": module},
        "source": {"component": component},
        "lastTimestamp": event["time"],
        **{key: event[key] for key in ("type", "reason", "message")},
    }


@pytest.fixture
def events(kube: client.KubeClient, pauses: api_server.Pauses) -> told_events.ToldEvents:
    return told_events.ToldEvents(kube, "addons", pauses)


async def test_after_a_restart_the_events_of_before_are_read_once_and_only_when_somebody_looks(
    events: told_events.ToldEvents, server: api_server.ApiServer
) -> None:
    server.on(
        "GET", EVENTS, {"items": [stored(1, message="one"), stored(3, "api"), stored(2, message="two")]}
    )
    events.add("web", told(5, "Ready", "The module is ready."))
    assert server.asked == []
    await events.recall()
    assert [each["message"] for each in events.of("web")] == ["The module is ready.", "two", "one"]
    assert events.of("api") == [told(3)]
    assert server.asked[0].query["fieldSelector"] == (
        "involvedObject.apiVersion=addon-operator.io/v1alpha1,involvedObject.kind=Module"
    )
    await events.recall()
    assert len(server.asked) == 1


async def test_of_each_module_the_newest_few_are_kept_and_the_same_event_once(
    events: told_events.ToldEvents, server: api_server.ApiServer
) -> None:
    server.on("GET", EVENTS, {"items": [stored(n, message=f"number {n}") for n in range(20)]})
    events.add("web", told(30, message="number 19"))
    await events.recall()
    assert [each["message"] for each in events.of("web")] == [f"number {n}" for n in (19, 18, 17, 16, 15)]
    events.add("web", told(31, message="new"))
    assert [each["message"] for each in events.of("web")] == [
        "new",
        *(f"number {n}" for n in (19, 18, 17, 16)),
    ]


async def test_what_others_tell_of_a_module_is_not_shown(
    events: told_events.ToldEvents, server: api_server.ApiServer
) -> None:
    server.on("GET", EVENTS, {"items": [stored(1, message="s3cret", component="flux"), {"reason": "x"}]})
    await events.recall()
    assert events.of("web") == []


async def test_so_many_events_are_not_all_read(
    events: told_events.ToldEvents, server: api_server.ApiServer
) -> None:
    page = {"items": [stored(1)] * 500, "metadata": {"continue": "more"}}
    server.on("GET", EVENTS, page)
    await events.recall()
    assert len(server.asked) == told_events.READ_MOST / 500


@pytest.mark.parametrize("status", [403, 500])
async def test_without_an_answer_those_of_this_process_are_there_and_it_is_asked_again_later(
    events: told_events.ToldEvents,
    server: api_server.ApiServer,
    pauses: api_server.Pauses,
    status: int,
) -> None:
    server.on("GET", EVENTS, api_server.status(status, "Forbidden"))
    events.add("web", told(5))
    await events.recall()
    asked = len(server.asked)
    await events.recall()
    assert len(server.asked) == asked
    assert events.of("web") == [told(5)]
    pauses.now += told_events.AGAIN_SECONDS
    server.on("GET", EVENTS, {"items": [stored(1, message="before")]})
    await events.recall()
    assert [each["message"] for each in events.of("web")] == ["A run failed.", "before"]


async def test_a_replica_that_stands_by_reads_again_and_again_what_the_leader_tells(
    kube: client.KubeClient, server: api_server.ApiServer, pauses: api_server.Pauses
) -> None:
    events = told_events.ToldEvents(kube, "addons", pauses, again=30.0)
    server.on("GET", EVENTS, {"items": [stored(1, message="one"), stored(2, "api")]})
    for _ in range(3):
        await events.recall()
    assert len(server.asked) == 1, "however many look"
    known = [events.is_known]
    pauses.now += 30
    server.on("GET", EVENTS, {"items": [stored(3, message="one"), stored(4, message="two")]})
    await events.recall()
    assert [(each["time"], each["message"]) for each in events.of("web")] == [
        (told(4)["time"], "two"),
        (told(3)["time"], "one"),
    ]
    assert events.of("api") == [], "the cluster has forgotten it"
    pauses.now += 30
    server.on("GET", EVENTS, api_server.status(403, "Forbidden"))
    await events.recall()
    assert [*known, events.is_known] == [True, False]
    assert len(events.of("web")) == 2


async def test_whoever_looks_does_not_wait_long_for_an_api_server_that_does_not_answer(
    events: told_events.ToldEvents, server: api_server.ApiServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(told_events, "_WITHIN_SECONDS", 0.0)
    server.on("GET", EVENTS, {"items": [stored(1)]})
    await events.recall()
    assert events.of("web") == []
