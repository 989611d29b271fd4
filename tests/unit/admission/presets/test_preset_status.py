"""The status of presets: what is written, and how often."""

import asyncio
from typing import Any

import pytest

from addon_operator.admission import events as admission_events
from addon_operator.admission.presets import preset_status
from addon_operator.kube.client import client
from addon_operator.kube.objects import events
from addon_operator.podpreset import model
from tests.support import clocks
from tests.support.api_server import Answer, ApiServer, Asked, Pauses, status
from tests.unit.admission.objects import EVENTS, IN_SHOP, Gate, Object, preset

P = model.PresetName("p")
VALID: Object = {
    "injected": 0,
    "conflicts": 0,
    "observedGeneration": 1,
    "conditions": [
        {
            "type": "Valid",
            "status": "True",
            "reason": "Accepted",
            "message": "The preset is used.",
            "observedGeneration": 1,
            "lastTransitionTime": "2026-01-01T00:00:00Z",
        }
    ],
}
INVALID = preset(selector={})


class Store:
    """One preset in a fake API server, whose status can be patched."""

    def __init__(self, server: ApiServer, stored: Object) -> None:
        self.stored = stored
        self.patches: list[Object] = []
        self.conflicts = 0
        server.on("GET", f"{IN_SHOP}/p", lambda _: Answer(self.stored))
        server.on("PATCH", f"{IN_SHOP}/p/status", self._patch)

    def _patch(self, asked: Asked) -> Answer:
        if self.conflicts:
            self.conflicts -= 1
            self.change(injected=self.status.get("injected", 0) + 100)
            return status(409, "Conflict")
        assert asked.body["metadata"]["resourceVersion"] == self.stored["metadata"]["resourceVersion"]
        self.patches.append(asked.body["status"])
        self.change(**asked.body["status"])
        return Answer(self.stored)

    @property
    def status(self) -> Object:
        found: Object = self.stored["status"]
        return found

    def change(self, **fields: Any) -> None:  # noqa: ANN401 - of any field
        metadata = self.stored["metadata"]
        version = str(int(metadata["resourceVersion"]) + 1)
        self.stored = {
            **self.stored,
            "metadata": {**metadata, "resourceVersion": version},
            "status": {**self.status, **fields},
        }


@pytest.fixture
def recorder(kube: client.KubeClient, pauses: Pauses) -> events.EventWriter:
    return events.EventWriter(kube, pauses)


@pytest.fixture
def statuses(
    kube: client.KubeClient, recorder: events.EventWriter, pauses: Pauses
) -> preset_status.PresetStatuses:
    return preset_status.PresetStatuses(kube, recorder, pauses)


def see(statuses: preset_status.PresetStatuses, stored: Object) -> None:
    statuses.note(admission_events.PresetStored(stored, model.parse(stored)))


async def test_a_new_preset_becomes_valid_with_counts(
    statuses: preset_status.PresetStatuses, server: ApiServer
) -> None:
    store = Store(server, preset())
    see(statuses, store.stored)
    await statuses.flush()
    (condition,) = store.status.pop("conditions")
    assert store.status == {"injected": 0, "conflicts": 0, "observedGeneration": 1}
    assert condition == {
        "type": "Valid",
        "status": "True",
        "reason": "Accepted",
        "message": "The preset is used.",
        "observedGeneration": 1,
        "lastTransitionTime": "1970-01-12T13:46:40Z",
    }


async def test_a_preset_whose_status_says_so_already_is_not_asked_for(
    statuses: preset_status.PresetStatuses, server: ApiServer
) -> None:
    see(statuses, preset(status=VALID))
    await statuses.flush()
    assert server.asked == []


async def test_an_invalid_preset_says_why_and_has_an_event(
    statuses: preset_status.PresetStatuses, recorder: events.EventWriter, server: ApiServer
) -> None:
    store = Store(server, INVALID)
    server.on("POST", EVENTS, lambda asked: Answer(asked.body, 201))
    see(statuses, INVALID)
    await statuses.flush()
    await recorder.flush()
    (condition,) = store.status["conditions"]
    assert (condition["status"], condition["reason"]) == ("False", "InvalidSpec")
    assert condition["message"].startswith("spec.selector")
    event = server.asked[-1].body
    assert (event["type"], event["reason"]) == ("Warning", "InvalidSpec")
    assert event["involvedObject"]["kind"] == "PodPreset"
    assert "spec.selector" in event["message"]


async def test_an_invalid_preset_is_reported_once(
    statuses: preset_status.PresetStatuses, recorder: events.EventWriter, server: ApiServer
) -> None:
    store = Store(server, INVALID)
    server.on("POST", EVENTS, lambda asked: Answer(asked.body, 201))
    for _ in range(2):
        see(statuses, store.stored)
        await statuses.flush()
        await recorder.flush()
    assert server.requests.count(f"POST {EVENTS}") == 1
    assert len(store.patches) == 1


async def test_the_time_of_a_condition_stays_when_only_its_message_changes(
    statuses: preset_status.PresetStatuses, server: ApiServer
) -> None:
    old = {**VALID, "conditions": [{**VALID["conditions"][0], "message": "of an older version"}]}
    store = Store(server, preset(status=old))
    see(statuses, store.stored)
    await statuses.flush()
    (condition,) = store.status["conditions"]
    assert (condition["message"], condition["lastTransitionTime"]) == (
        "The preset is used.",
        "2026-01-01T00:00:00Z",
    )


async def test_conditions_of_others_stay(statuses: preset_status.PresetStatuses, server: ApiServer) -> None:
    other = {"type": "Audited", "status": "True"}
    store = Store(server, preset(status={"conditions": [other]}))
    see(statuses, store.stored)
    await statuses.flush()
    assert [each["type"] for each in store.status["conditions"]] == ["Audited", "Valid"]


async def test_a_burst_of_pods_is_one_write(
    statuses: preset_status.PresetStatuses, server: ApiServer
) -> None:
    store = Store(server, preset(status={**VALID, "injected": 5}))
    for _ in range(600):
        statuses.note(admission_events.PresetsAnswered("shop", [P], "injected"))
    for _ in range(400):
        statuses.note(admission_events.PresetsAnswered("shop", [P], "conflicts"))
    await statuses.flush()
    assert (store.status["injected"], store.status["conflicts"]) == (605, 400)
    assert server.requests == [f"GET {IN_SHOP}/p", f"PATCH {IN_SHOP}/p/status"]


async def test_counts_of_another_replica_are_added_to(
    statuses: preset_status.PresetStatuses, server: ApiServer
) -> None:
    store = Store(server, preset(status=VALID))
    store.conflicts = 2
    statuses.note(admission_events.PresetsAnswered("shop", [P], "injected"))
    await statuses.flush()
    assert store.status["injected"] == 201


async def test_counts_that_cannot_be_written_wait_for_the_next_time(
    statuses: preset_status.PresetStatuses, server: ApiServer
) -> None:
    store = Store(server, preset(status=VALID))
    store.conflicts = 8
    statuses.note(admission_events.PresetsAnswered("shop", [P], "injected"))
    await statuses.flush()
    assert store.patches == []
    statuses.note(admission_events.PresetsAnswered("shop", [P], "injected"))
    await statuses.flush()
    assert store.status["injected"] == 802


async def test_a_preset_that_is_gone_is_not_written(
    statuses: preset_status.PresetStatuses, server: ApiServer
) -> None:
    statuses.note(admission_events.PresetsAnswered("shop", [P], "injected"))
    statuses.note(admission_events.PresetGone("shop", P))
    await statuses.flush()
    assert server.asked == []
    statuses.note(admission_events.PresetsAnswered("shop", [P], "injected"))
    await statuses.flush()
    await statuses.flush()
    assert server.requests == [f"GET {IN_SHOP}/p"]


async def test_a_missing_right_is_one_warning(
    statuses: preset_status.PresetStatuses, server: ApiServer, caplog: pytest.LogCaptureFixture
) -> None:
    server.on("GET", f"{IN_SHOP}/p", preset(status=VALID))
    server.on("PATCH", f"{IN_SHOP}/p/status", status(403, "Forbidden"))
    for _ in range(3):
        statuses.note(admission_events.PresetsAnswered("shop", [P], "injected"))
        await statuses.flush()
    assert len([each for each in caplog.records if each.levelname == "WARNING"]) == 1
    assert "podpresets/status" in caplog.text


async def test_batches_are_written_with_pauses_in_between(
    kube: client.KubeClient,
    recorder: events.EventWriter,
    pauses: Pauses,
    server: ApiServer,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    gate = Gate()
    monkeypatch.setattr(pauses, "sleep", gate.sleep)
    statuses = preset_status.PresetStatuses(kube, recorder, pauses)
    running = asyncio.create_task(statuses.run())
    await clocks.settle()
    assert gate.asked == []
    statuses.note(admission_events.PresetsAnswered("shop", [P], "injected"))
    await clocks.settle()
    statuses.note(admission_events.PresetsAnswered("shop", [P], "injected"))
    await clocks.settle()
    assert gate.asked == [preset_status.FIRST_SECONDS]
    assert server.asked == []
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running


async def test_thousands_of_presets_are_not_thousands_of_tasks(
    statuses: preset_status.PresetStatuses, server: ApiServer
) -> None:
    tasks: set[int] = set()

    def answer(asked: Asked) -> Answer:
        tasks.add(len(asyncio.all_tasks()))
        return status(404, "NotFound")

    for number in range(300):
        server.on("GET", f"{IN_SHOP}/p{number}", answer)
        see(statuses, preset(f"p{number}"))
    await statuses.flush()
    assert len(server.asked) == 300
    assert max(tasks) < 20
