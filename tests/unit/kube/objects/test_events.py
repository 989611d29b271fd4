"""Events: what is written, counted up, combined, and left out."""

import asyncio
import contextlib
import logging
import re
from typing import Any

import pytest

from addon_operator.kube.client import client
from addon_operator.kube.objects import events
from tests.support.api_server import Answer, ApiServer, Asked, Pauses, an_object, status

ABOUT = events.ObjectReference("v1", "ConfigMap", "values", "addons", uid="u", resource_version="7")
COLLECTION = "/api/v1/namespaces/addons/events"


def stored(server: ApiServer) -> list[dict[str, Any]]:
    """Events in the order in which they came."""
    created = [asked.body["metadata"]["name"] for asked in server.asked if asked.method == "POST"]
    return sorted(server.objects("Event"), key=lambda each: created.index(each["metadata"]["name"]))


@pytest.fixture
def recorder(kube: client.KubeClient, pauses: Pauses) -> events.EventWriter:
    return events.EventWriter(kube, pauses, instance="operator-0")


async def test_an_event_says_who_tells_what_about_which_object(
    recorder: events.EventWriter, server: ApiServer, pauses: Pauses
) -> None:
    recorder.record(ABOUT, "Warning", "ValuesInvalid", "The values are wrong.")
    await recorder.flush()
    (event,) = stored(server)
    assert event["metadata"]["namespace"] == "addons"
    assert re.fullmatch(r"values\.[0-9a-f]+", event["metadata"]["name"])
    assert event["involvedObject"] == {
        "apiVersion": "v1", "kind": "ConfigMap", "name": "values", "namespace": "addons",
        "uid": "u", "resourceVersion": "7",
    }  # fmt: skip
    assert (event["type"], event["reason"], event["message"]) == (
        "Warning",
        "ValuesInvalid",
        "The values are wrong.",
    )
    assert event["source"] == {"component": "addon-operator", "host": "operator-0"}
    assert event["reportingComponent"] == "addon-operator"
    assert event["count"] == 1
    assert event["firstTimestamp"] == event["lastTimestamp"] == "1970-01-12T13:46:40Z"


async def test_the_same_event_again_raises_its_count(
    recorder: events.EventWriter, server: ApiServer, pauses: Pauses
) -> None:
    for _ in range(3):
        recorder.record(ABOUT, "Normal", "Seen", "It was seen.")
        await recorder.flush()
        pauses.now += 60
    (event,) = stored(server)
    assert event["count"] == 3
    assert (event["firstTimestamp"], event["lastTimestamp"]) == (
        "1970-01-12T13:46:40Z",
        "1970-01-12T13:48:40Z",
    )


async def test_another_version_of_the_object_is_the_same_object(
    recorder: events.EventWriter, server: ApiServer
) -> None:
    recorder.record(ABOUT, "Normal", "Seen", "It was seen.")
    later = events.ObjectReference("v1", "ConfigMap", "values", "addons", uid="u", resource_version="8")
    recorder.record(later, "Normal", "Seen", "It was seen.")
    await recorder.flush()
    assert [event["count"] for event in stored(server)] == [2]


async def test_other_objects_types_and_reasons_are_other_events(
    recorder: events.EventWriter, server: ApiServer
) -> None:
    other = events.ObjectReference("v1", "ConfigMap", "other", "addons")
    recorder.record(ABOUT, "Normal", "Seen", "x")
    recorder.record(other, "Normal", "Seen", "x")
    recorder.record(ABOUT, "Warning", "Seen", "x")
    recorder.record(ABOUT, "Normal", "Gone", "x")
    await recorder.flush()
    assert [event["count"] for event in stored(server)] == [1, 1, 1, 1]


async def test_an_object_has_a_budget_that_fills_again(
    recorder: events.EventWriter, server: ApiServer, pauses: Pauses
) -> None:
    for _ in range(30):
        recorder.record(ABOUT, "Normal", "Seen", "x")
    await recorder.flush()
    assert stored(server)[0]["count"] == 25
    pauses.now += 300
    for _ in range(2):
        recorder.record(ABOUT, "Normal", "Seen", "x")
    await recorder.flush()
    assert stored(server)[0]["count"] == 26


async def test_an_object_with_too_many_events_takes_nothing_from_others(
    recorder: events.EventWriter, server: ApiServer
) -> None:
    for _ in range(30):
        recorder.record(ABOUT, "Normal", "Seen", "x")
    recorder.record(events.ObjectReference("v1", "ConfigMap", "quiet", "addons"), "Normal", "Seen", "x")
    await recorder.flush()
    assert stored(server)[-1]["involvedObject"]["name"] == "quiet"


async def test_an_event_that_the_server_has_forgotten_is_written_anew(
    recorder: events.EventWriter, server: ApiServer
) -> None:
    recorder.record(ABOUT, "Normal", "Seen", "x")
    await recorder.flush()
    name = stored(server)[0]["metadata"]["name"]
    server.on("PATCH", f"{COLLECTION}/{name}", status(404, "NotFound"))
    for _ in range(2):
        recorder.record(ABOUT, "Normal", "Seen", "x")
    await recorder.flush()
    assert [event["count"] for event in stored(server)] == [1, 2]
    assert stored(server)[1]["metadata"]["name"] != name


async def test_a_failure_to_write_is_logged_and_nothing_else(
    recorder: events.EventWriter, server: ApiServer, caplog: pytest.LogCaptureFixture
) -> None:
    server.on("POST", COLLECTION, status(403, "Forbidden", 'User "u" cannot create resource "events"'))
    with caplog.at_level(logging.WARNING):
        recorder.record(ABOUT, "Normal", "Seen", "x")
        await recorder.flush()
    assert "an Event about ConfigMap values was not written: u may not create events" in caplog.text


async def test_an_object_of_the_cluster_has_its_events_in_default(
    recorder: events.EventWriter, server: ApiServer
) -> None:
    server.put(an_object("Namespace", "default", None))
    about = events.ObjectReference("rbac.authorization.k8s.io/v1", "ClusterRole", "system:Node")
    recorder.record(about, "Normal", "Seen", "x")
    await recorder.flush()
    (event,) = stored(server)
    assert "namespace" not in event["involvedObject"]
    assert re.fullmatch(r"system--ode\.[0-9a-f]+", event["metadata"]["name"])


async def test_long_texts_and_names_are_cut_to_what_the_api_takes(
    recorder: events.EventWriter, server: ApiServer
) -> None:
    about = events.ObjectReference("v1", "ConfigMap", "a" * 253, "addons")
    recorder.record(about, "Normal", "R" * 200, "m" * 5000)
    await recorder.flush()
    (event,) = stored(server)
    assert len(event["metadata"]["name"]) <= 253
    assert len(event["message"]) == 1024
    assert len(event["reason"]) == 128


async def test_the_newest_of_too_many_that_wait_are_kept(
    kube: client.KubeClient, pauses: Pauses, server: ApiServer
) -> None:
    recorder = events.EventWriter(kube, pauses, waiting_max=3)
    for number in range(5):
        recorder.record(events.ObjectReference("v1", "Pod", f"p{number}", "addons"), "Normal", "Seen", "x")
    await recorder.flush()
    assert [event["involvedObject"]["name"] for event in stored(server)] == ["p2", "p3", "p4"]


async def test_events_are_written_as_they_come(recorder: events.EventWriter, server: ApiServer) -> None:
    written = asyncio.Event()

    def create(asked: Asked) -> Answer:
        written.set()
        return Answer(asked.body, 201)

    server.on("POST", COLLECTION, create)
    running = asyncio.create_task(recorder.run())
    for message in ("first", "second"):
        recorder.record(ABOUT, "Normal", "Seen", message)
        await asyncio.wait_for(written.wait(), 60)
        written.clear()
    running.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await running
    assert [asked.body["message"] for asked in server.asked] == ["first", "second"]


def test_what_is_remembered_is_bounded() -> None:
    budget = events.EventBudget(Pauses())
    first = budget.admit("o0", "i0")
    assert first is not None
    first.name = "kept"
    for number in range(1, events.REMEMBERED + 1):
        budget.admit(f"o{number}", f"i{number}")
    again = budget.admit("o0", "i0")
    assert again is not None
    assert again.name == ""


async def test_an_event_can_have_another_source_with_a_budget_of_its_own(
    recorder: events.EventWriter, server: ApiServer
) -> None:
    for number in range(events.BURST):
        recorder.record(ABOUT, "Warning", f"Reason{number}", "Something happened.")
    recorder.record(ABOUT, "Warning", "conflict", "It does not fit.")
    recorder.record(ABOUT, "Warning", "conflict", "It does not fit.", component="presets/p")
    await recorder.flush()
    assert [event["reason"] for event in stored(server)].count("conflict") == 1
    assert stored(server)[-1]["source"]["component"] == "presets/p"
    assert stored(server)[-1]["reportingComponent"] == "addon-operator"


async def test_who_begins_again_after_a_defect_writes_what_waits(
    recorder: events.EventWriter, server: ApiServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    def admit(*_: object) -> None:
        raise TypeError("a bug")

    with monkeypatch.context() as patched:
        patched.setattr(events.EventBudget, "admit", admit)
        recorder.record(ABOUT, "Normal", "Seen", "first")
        recorder.record(ABOUT, "Normal", "Seen", "second")
        with pytest.raises(TypeError):
            await recorder.run()
    running = asyncio.create_task(recorder.run())
    async with asyncio.timeout(60):
        while not stored(server):  # noqa: ASYNC110 - the server says nothing
            await asyncio.sleep(0)
    running.cancel()
    assert [event["message"] for event in stored(server)] == ["second"]
