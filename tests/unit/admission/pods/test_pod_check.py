"""Events about pods, told after the pods were stored."""

import asyncio
from typing import Any

import msgspec
import pytest

from addon_operator.admission import review_budget
from addon_operator.admission.pods import env_sources_reader, expansion_check, pod_check
from addon_operator.kube.client import client
from addon_operator.kube.objects import events
from addon_operator.podpreset import merge
from tests.support import clocks
from tests.support.api_server import Answer, ApiServer, Asked, Pauses, status
from tests.unit.admission.objects import EVENTS, PODS, Gate, Object, container, pod, preset, review
from tests.unit.admission.pods.pod_fakes import Observer, Presets, merger

CONFLICTING = pod(container(env=[{"name": "A", "value": "2"}]))
STORED = {"metadata": {"name": "web-1", "uid": "u1"}}
OTHER = {"metadata": {"name": "web-1", "uid": "of another pod"}}
WEB = f"{PODS}/web-1"


class World:
    """A check with everything around it."""

    def __init__(self, kube: client.KubeClient, server: ApiServer, pauses: Pauses) -> None:
        self.server = server
        self.observer = Observer()
        self.presets = Presets(preset())
        self.events: list[dict[str, Any]] = []
        self._kube = kube
        self._pauses = pauses
        self._recorder = events.EventWriter(kube, pauses)
        server.on("POST", EVENTS, self._create)
        server.on("GET", "/api/v1/namespaces/shop/services", {"items": []})
        server.on("GET", WEB, STORED)

    def _create(self, asked: Asked) -> Answer:
        self.events.append(asked.body)
        return Answer(asked.body, 201)

    def check(
        self,
        sleep: Any = None,  # noqa: ANN401 - a sleep of any kind
        account: review_budget.MemoryBudget | None = None,
    ) -> pod_check.PodCheck:
        sources = env_sources_reader.EnvSources(self._kube, self._pauses, self.observer)
        return pod_check.PodCheck(
            pod_check.PodFindings(merger(self.presets), expansion_check.ExpansionCheck(sources)),
            self._kube,
            self._recorder,
            self.observer,
            account or review_budget.MemoryBudget(review_budget.Limits()),
            sleep or self._pauses.sleep,
        )

    async def tell(self, *given: Object, dry_run: bool = False) -> list[tuple[str, str, str]]:
        """Reason, source and message of the Events about pods."""
        check = self.check()
        for each in given:
            assert (await check.decide(review(each, dry_run=dry_run))).allowed
        await check.idle()
        await self._recorder.flush()
        return [(each["reason"], each["source"]["component"], each["message"]) for each in self.events]


@pytest.fixture
def world(kube: client.KubeClient, server: ApiServer, pauses: Pauses) -> World:
    return World(kube, server, pauses)


async def test_a_conflict_is_reported_on_the_pod_by_its_preset(world: World) -> None:
    assert await world.tell(CONFLICTING) == [
        (
            "conflict",
            "podpreset.admission.kubernetes.io/p",
            "Conflict on pod preset. Duplicate env A.",
        )
    ]
    (event,) = world.events
    assert event["type"] == "Warning"
    assert event["involvedObject"] == {
        "apiVersion": "v1", "kind": "Pod", "name": "web-1", "namespace": "shop", "uid": "u1",
    }  # fmt: skip
    assert world.observer.conflicted == ["shop/p"]


async def test_each_preset_in_conflict_has_its_own_event(world: World) -> None:
    world.presets = Presets(preset("p"), preset("q"), preset("fits", env=[{"name": "Z", "value": "1"}]))
    told = await world.tell(CONFLICTING)
    assert sorted(source for _, source, _ in told) == [
        "podpreset.admission.kubernetes.io/p",
        "podpreset.admission.kubernetes.io/q",
    ]
    assert world.observer.conflicted == ["shop/p", "shop/q"]


async def test_the_longest_name_of_a_preset_is_the_source_in_full(world: World) -> None:
    name = "n" * 253
    world.presets = Presets(preset(name))
    ((_, source, _),) = await world.tell(CONFLICTING)
    assert source == f"podpreset.admission.kubernetes.io/{name}"


async def test_unresolved_references_are_reported_for_each_container(world: World) -> None:
    given = pod(container("a", args=["$(X)", "$(Y)"]), container("b", args=["$(X)"]))
    assert await world.tell(given) == [
        (
            "UnresolvedVariable",
            "addon-operator",
            "Container a: cannot expand $(X) in args[0], $(Y) in args[1]",
        ),
        ("UnresolvedVariable", "addon-operator", "Container b: cannot expand $(X) in args[0]"),
    ]
    assert world.observer.unresolved == 3


async def test_a_path_of_a_mount_that_keeps_the_container_from_starting_is_reported(world: World) -> None:
    held = {"metadata": {"name": "c"}, "data": {"EMPTY": "", "FULL": "x"}}
    world.server.on("GET", "/api/v1/namespaces/shop/configmaps/c", held)
    mounts = [{"name": "v", "mountPath": "/v", "subPathExpr": "$(FULL)/$(EMPTY)/$()"}]
    sources = [{"configMapRef": {"name": "c"}}]
    ((_, _, text),) = await world.tell(pod(container(envFrom=sources, volumeMounts=mounts)))
    assert text == (
        "Container app: cannot expand $(EMPTY) in subPathExpr of volumeMounts[0], "
        "$() in subPathExpr of volumeMounts[0]"
    )


async def test_presets_that_are_too_many_are_reported_beside_what_is_unresolved(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(merge, "ENTRIES_MAX", 1)
    world.presets = Presets(preset("p"), preset("q"))
    told = await world.tell(pod(container(args=["$(X)"])))
    assert [(reason, message) for reason, _, message in told] == [
        (
            "PresetsTooLarge",
            (
                "No preset was injected: the presets that match the pod have 2 entries for its containers, "
                "and 1 may be."
            ),
        ),
        ("UnresolvedVariable", "Container app: cannot expand $(X) in args[0]"),
    ]


async def test_nothing_is_read_or_reported_for_a_pod_without_problems(world: World) -> None:
    assert await world.tell(pod()) == []
    assert world.server.asked == []


async def test_a_dry_run_leaves_no_trace(world: World) -> None:
    assert await world.tell(CONFLICTING, dry_run=True) == []
    assert world.server.asked == []


async def test_an_event_waits_until_the_pod_is_stored(world: World, pauses: Pauses) -> None:
    world.server.on("GET", WEB, status(404, "NotFound"), OTHER, STORED)
    assert len(await world.tell(CONFLICTING)) == 1
    assert pauses.seconds == [0.1, 0.4, 1.5]


async def test_a_pod_that_others_refuse_gives_no_event_and_no_count(world: World, pauses: Pauses) -> None:
    world.server.on("GET", WEB, status(404, "NotFound"))
    assert await world.tell(CONFLICTING) == []
    assert world.observer.conflicted == []
    assert sum(pauses.seconds) > 30


async def test_without_the_right_to_read_pods_the_event_is_reported_all_the_same(world: World) -> None:
    world.server.on("GET", WEB, status(403, "Forbidden"))
    assert len(await world.tell(CONFLICTING)) == 1


async def test_the_same_finding_about_the_same_pod_is_one_event(world: World) -> None:
    named: list[str] = []

    def create(asked: Asked) -> Answer:
        named.append(asked.body["metadata"]["name"])
        world.server.on("PATCH", f"{EVENTS}/{named[0]}", {})
        return Answer(asked.body, 201)

    world.server.on("POST", EVENTS, create)
    await world.tell(CONFLICTING, CONFLICTING)
    assert len(named) == 1


async def test_an_error_is_logged_and_nothing_else(world: World, caplog: pytest.LogCaptureFixture) -> None:
    world.presets.error = RuntimeError("a defect")
    assert await world.tell(CONFLICTING) == []
    assert "pod shop/web-1 was not checked" in caplog.text
    assert "a defect" in caplog.text


async def test_a_missing_right_is_one_line_without_a_traceback(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    world.server.on("GET", "/api/v1/namespaces/shop/services", status(403, "Forbidden"))
    await world.tell(pod(container(args=["$(X)"])))
    assert "services" in caplog.text
    assert "Traceback" not in caplog.text


async def test_too_many_pods_at_once_are_skipped_and_counted(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pod_check, "PENDING_MAX", 2)
    gate = Gate()
    check = world.check(gate.sleep)
    for _ in range(5):
        await check.decide(review(CONFLICTING))
    assert world.observer.dropped == 3
    gate.open()
    await check.idle()
    await check.decide(review(CONFLICTING))
    assert world.observer.dropped == 3
    await check.close()


async def test_what_is_not_done_is_given_up_at_the_end(world: World) -> None:
    gate = Gate()
    check = world.check(gate.sleep)
    await check.decide(review(CONFLICTING))
    await clocks.settle()
    await asyncio.wait_for(check.close(), 60)
    gate.open()
    assert world.observer.conflicted == []


@pytest.mark.parametrize(("operation", "sub_resource"), [("UPDATE", ""), ("CREATE", "binding")])
async def test_other_reviews_are_allowed_and_not_looked_at(
    world: World, operation: str, sub_resource: str
) -> None:
    check = world.check()
    given = review(CONFLICTING, operation=operation, sub_resource=sub_resource)
    assert (await check.decide(given)).allowed
    await check.idle()
    assert world.server.asked == []


async def test_a_pod_without_a_uid_was_not_sent_by_the_api_server(world: World) -> None:
    given = {**CONFLICTING, "metadata": {**CONFLICTING["metadata"], "uid": ""}}
    assert await world.tell(given) == []
    assert world.server.asked == []


async def test_pods_that_wait_are_on_the_account_until_they_were_looked_at(world: World) -> None:
    gate = Gate()
    account = review_budget.MemoryBudget(review_budget.Limits(memory_bytes=25))
    check = world.check(gate.sleep, account)
    for _ in range(3):
        await check.decide(msgspec.structs.replace(review(CONFLICTING), memory=10))
    assert (world.observer.dropped, account.memory) == (1, 20)
    await clocks.settle()
    # What is waited for now is the pod in the API server, for which the one in memory is not needed.
    assert account.memory == 0
    gate.open()
    await check.idle()


async def test_the_end_gives_back_what_was_held(world: World) -> None:
    account = review_budget.MemoryBudget(review_budget.Limits())
    check = world.check(None, account)
    await check.decide(msgspec.structs.replace(review(CONFLICTING), memory=10))
    await check.close()
    await clocks.settle()
    assert account.memory == 0
