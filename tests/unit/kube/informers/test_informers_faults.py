"""Informers when connections, places, rights and kinds come and go."""

import asyncio
import random
from collections.abc import AsyncIterator, Sequence

import orjson
import pytest

from addon_operator.aio import absences
from addon_operator.kube.informers import object_selections, projections, reflector
from tests.support import api_server, histories, listeners
from tests.unit.kube import informing

Selection = object_selections.ObjectSelection
BETA, STABLE = "example.io/v1beta1", "example.io/v1"


@pytest.fixture
async def world() -> AsyncIterator[informing.World]:
    async with informing.world(reflector.Tuning(silence=5.0, page_size=2)) as opened:
        yield opened


def watches_from(world: informing.World) -> list[str]:
    places = (asked.query.get("resourceVersion") for asked in world.server.asked if asked.is_watch)
    return [place for place in places if place is not None]


async def test_a_watch_that_is_cut_continues_where_it_was(world: informing.World) -> None:
    _, recorder = await world.synced()
    world.put("x")
    await recorder.until_told(1)
    world.server.pause()
    world.put("y")
    world.put("x", data={"k": "1"})
    world.server.resume()
    await recorder.until_told(3)
    assert recorder.reported == ["Added a/x", "Added a/y", "Modified a/x"]
    assert len(watches_from(world)) == 1
    assert len(world.server.lists("configmaps")) == 1
    assert world.failures.counted == ["ConfigMap unreachable"]


async def test_a_line_that_is_cut_within_is_read_again_whole(world: informing.World) -> None:
    _, recorder = await world.synced()
    world.server.pause()
    body = world.put("x", data={"k": "é" * 100})
    line = orjson.dumps({"type": "ADDED", "object": body})
    world.server.send(line[: line.index("é".encode()) + 1])
    world.server.resume()
    await recorder.until_told(1)
    assert orjson.loads(recorder.changes[0].entry)["object"] == body


async def test_a_line_may_come_in_pieces_and_be_large(world: informing.World) -> None:
    _, recorder = await world.synced()
    world.server.pause()
    body = world.put("x", data={"k": "ä€" * 300_000})
    line = orjson.dumps({"type": "ADDED", "object": body}) + b"\n"
    for start in range(0, len(line), 70_001):
        world.server.send(line[start : start + 70_001])
    await recorder.until_told(1)
    assert orjson.loads(recorder.changes[0].entry)["object"] == body


async def test_a_bookmark_moves_the_place_where_the_watch_goes_on(world: informing.World) -> None:
    await world.synced()
    world.server.bookmark()
    place = str(world.server.version)
    world.server.cut()
    await world.server.until(lambda: bool(watches_from(world)))
    assert watches_from(world) == [place]


@pytest.mark.parametrize("told_by", ["status", "event"])
async def test_a_place_that_is_too_old_is_made_good_by_a_list_that_tells_the_differences(
    world: informing.World, told_by: str
) -> None:
    for name in ("gone", "reborn", "same", "changed"):
        world.put(name, data={"k": "1"})
    subscription, recorder = await world.synced()
    world.server.pause()
    world.delete("gone")
    world.delete("reborn")
    world.put("reborn", data={"k": "1"})
    world.put("changed", data={"k": "2"})
    world.put("new")
    world.server.compact()
    if told_by == "event":
        world.server.send_event("ERROR", {"kind": "Status", "code": 410, "message": "too old"})
    world.server.resume()
    await recorder.until_told(5)
    expected = ["Added a/new", "Added a/reborn", "Deleted a/gone", "Deleted a/reborn", "Modified a/changed"]
    assert sorted(recorder.reported) == expected
    assert recorder.reported.index("Deleted a/reborn") < recorder.reported.index("Added a/reborn")
    assert listeners.names(subscription.snapshot()) == ["changed", "new", "reborn", "same"]
    assert "ConfigMap expired" in world.failures.counted
    assert len(world.server.lists("configmaps")) == 2


@pytest.mark.parametrize("code", [500, 504], ids=str)
async def test_another_error_event_is_only_a_break(world: informing.World, code: int) -> None:
    _, recorder = await world.synced()
    world.server.send_event("ERROR", {"kind": "Status", "code": code, "message": "etcd is away"})
    await world.server.until(lambda: bool(watches_from(world)))
    world.put("x")
    await recorder.until_told(1)
    assert world.failures.counted == ["ConfigMap error_event"]
    assert len(world.server.lists("configmaps")) == 1


async def test_what_is_not_an_event_is_made_good_by_a_list(world: informing.World) -> None:
    _, recorder = await world.synced()
    world.server.send(b"<html>\n")
    await world.server.until(lambda: len(world.server.lists("configmaps")) == 2)
    world.put("x")
    await recorder.until_told(1)
    assert world.failures.counted == ["ConfigMap broken_answer"]


async def test_a_silent_watch_is_considered_dead() -> None:
    async with informing.world(reflector.Tuning(silence=0.05)) as world:
        _, recorder = await world.synced()
        world.server.pause()
        world.put("x")
        await recorder.until_told(1)
        assert "ConfigMap silent" in world.failures.counted


async def test_a_server_that_streams_no_lists_is_asked_for_pages(world: informing.World) -> None:
    world.server.streams_lists = False
    for number in range(5):
        world.put(f"x{number}", data={"k": "1"})
    subscription, recorder = await world.synced()
    (first, *_) = (orjson.loads(entry)["object"] for entry in subscription.snapshot())
    assert first == world.state()["a", "x0"]
    pages = [asked.query.get("limit") for asked in world.server.lists("configmaps") if not asked.is_watch]
    assert pages == ["2", "2", "2"]
    world.put("x0", data={"k": "2"})
    await recorder.until_told(1)
    assert recorder.reported == ["Modified a/x0"]


async def test_pages_that_take_longer_than_their_state_is_kept_are_read_as_one(
    world: informing.World,
) -> None:
    world.server.streams_lists = False
    for number in range(5):
        world.put(f"x{number}")
    world.server.refuse(410, lambda asked: "continue" in asked.query)
    subscription, _ = await world.synced()
    assert len(subscription.keys()) == 5
    assert "limit" not in world.server.lists("configmaps")[-1].query


async def test_a_list_that_breaks_off_is_begun_anew_and_tells_nothing_of_its_beginning(
    world: informing.World,
) -> None:
    world.server.streams_lists = False
    for number in range(5):
        world.put(f"x{number}")
    world.server.refuse(400, lambda asked: "continue" in asked.query)
    subscription, recorder = await world.synced()
    assert recorder.calls[-1:] == ["synced"]
    assert recorder.changes == []
    assert len(subscription.keys()) == 5


async def test_a_missing_right_is_reported_and_the_binding_starts_when_it_is_given(
    world: informing.World,
) -> None:
    world.server.refuse(403, lambda asked: asked.path.endswith("configmaps"), times=3)
    subscription, recorder = world.subscribe()
    await recorder.until_synced()
    assert recorder.troubles[0] is not None
    assert "me may not watch configmaps: add to its ClusterRole the rule" in recorder.troubles[0]
    await recorder.until(lambda: recorder.troubles[-1] is None)
    assert (subscription.synced, subscription.reason) == (True, None)
    assert world.failures.counted == ["ConfigMap forbidden"] * 3


async def test_pauses_between_tries_grow_and_have_an_end(world: informing.World) -> None:
    world.server.refuse(403, lambda asked: asked.path.endswith("configmaps"), times=12)
    _, recorder = world.subscribe()
    await recorder.until_synced()
    assert world.pauses.seconds[:3] == pytest.approx([0.075, 0.15, 0.3])
    assert world.pauses.seconds[-1] == 22.5


async def test_pauses_begin_anew_after_a_watch_that_stood_even_if_nothing_happened(
    world: informing.World,
) -> None:
    _, recorder = await world.synced()
    world.server.refuse(503, lambda asked: asked.is_watch, times=6)
    world.server.cut()
    await recorder.until(lambda: recorder.troubles[-1:] == [None])
    before = len(world.pauses.seconds)
    world.pauses.now += 2
    world.server.cut()
    await world.server.until(lambda: len(watches_from(world)) == 8)
    assert world.pauses.seconds[before:] == pytest.approx([0.075])


async def test_a_single_break_is_not_a_problem_but_a_lasting_one_is(world: informing.World) -> None:
    _, recorder = await world.synced()
    world.server.cut()
    await world.server.until(lambda: len(watches_from(world)) == 1)
    assert recorder.troubles == []
    world.server.refuse(503, lambda asked: asked.path.endswith("configmaps"), times=3)
    world.server.cut()
    await recorder.until(lambda: recorder.troubles[-1:] == [None])
    assert recorder.troubles[0] is not None
    assert "503" in recorder.troubles[0]


async def test_refused_credentials_are_read_anew() -> None:
    async with informing.world() as world:
        world.server.refuse(401, lambda asked: asked.is_watch)
        _, recorder = await world.synced()
        assert world.failures.counted == ["ConfigMap unauthorized"]
        world.put("x")
        await recorder.until_told(1)


async def test_a_kind_that_comes_later_is_waited_for(world: informing.World) -> None:
    world.server.stop_serving("ConfigMap")
    subscription, recorder = world.subscribe()
    await recorder.until(lambda: bool(recorder.troubles))
    at_first = subscription.reason
    assert at_first == "the API server has no kind 'ConfigMap' in v1: is its CRD installed?"
    world.server.serve("ConfigMap", "v1")
    world.put("x")
    await recorder.until_synced()
    assert (subscription.keys(), subscription.reason) == ([("a", "x")], None)
    assert world.failures.counted == ["ConfigMap no_such_kind"]


async def test_the_objects_of_a_kind_that_is_gone_are_deleted_at_the_second_look_and_come_back_with_it(
    world: informing.World,
) -> None:
    world.put("x")
    subscription, recorder = await world.synced()
    world.server.stop_serving("ConfigMap")
    world.server.cut()
    await recorder.until_told(1)
    assert sum(world.pauses.seconds) >= absences.SECONDS
    assert subscription.snapshot() == []
    world.server.serve("ConfigMap", "v1")
    await recorder.until_told(2)
    assert recorder.reported == ["Deleted a/x", "Added a/x"]
    assert recorder.troubles[-1] is None


@pytest.mark.parametrize("path", ["configmaps", ""], ids=["of the kind", "everything"])
async def test_paths_that_are_not_served_for_minutes_lose_no_object(
    world: informing.World, path: str
) -> None:
    world.put("x")
    subscription, recorder = await world.synced()
    world.server.refuse(404, lambda asked: asked.path.endswith(path), times=100)
    world.server.cut()
    await recorder.until(lambda: subscription.reason is not None)
    world.put("y")
    await recorder.until_told(1)
    assert sum(world.pauses.seconds) > 60
    assert recorder.reported == ["Added a/y"]
    assert recorder.troubles[-1] is None


async def test_a_definition_that_is_replaced_deletes_only_what_is_not_there_afterwards(
    world: informing.World,
) -> None:
    world.put("x")
    world.put("y")
    subscription, recorder = await world.synced()
    world.server.stop_serving("ConfigMap")
    await recorder.until(lambda: subscription.reason is not None)
    world.server.serve("ConfigMap", "v1")
    world.delete("y")
    await recorder.until_told(1)
    assert recorder.reported == ["Deleted a/y"]


@pytest.mark.parametrize("metadata_only", [False, True], ids=["any version", "metadata of one version"])
async def test_a_kind_that_is_served_in_another_version_is_followed_there_without_a_word(
    world: informing.World, metadata_only: bool
) -> None:
    world.server.serve("Widget", BETA)
    for name in ("same", "gone", "reborn"):
        world.put(name, kind="Widget", api_version=BETA)
    selection = Selection("Widget", BETA if metadata_only else None, metadata_only=metadata_only)
    subscription, recorder = await world.synced(selection, informing.jq(".metadata.uid"))
    world.server.pause()
    world.delete("gone", kind="Widget")
    world.delete("reborn", kind="Widget")
    for name in ("reborn", "new"):
        world.put(name, kind="Widget", api_version=BETA)
    world.server.serve("Widget", STABLE)
    world.server.stop_serving("Widget", BETA)
    world.server.resume()
    await recorder.until_told(4)
    assert sorted(recorder.reported) == [
        "Added a/new",
        "Added a/reborn",
        "Deleted a/gone",
        "Deleted a/reborn",
    ]
    assert recorder.reported.index("Deleted a/reborn") < recorder.reported.index("Added a/reborn")
    assert subscription.reason is None
    assert world.informers.watches == ["apiservices.apiregistration.k8s.io", "widgets.example.io"]
    world.put("later", kind="Widget", api_version=STABLE)
    await recorder.until_told(5)


async def test_a_stream_of_a_version_that_is_not_served_any_more_is_left_although_it_stays_open(
    world: informing.World,
) -> None:
    world.server.serve("Widget", BETA)
    world.put("x", kind="Widget", api_version=BETA)
    service = api_server.an_object("APIService", "v1beta1.example.io", None, "apiregistration.k8s.io/v1")
    world.server.put(service)
    _, recorder = await world.synced(Selection("Widget"))
    await world.server.until(lambda: len(world.server.streams) == 2)
    world.server.serve("Widget", STABLE)
    world.server.stop_serving("Widget", BETA, ends_streams=False)
    world.server.delete("APIService", "v1beta1.example.io", None)
    await world.server.until(lambda: any(STABLE in each.asked.path for each in world.server.streams))
    assert recorder.reported == []


async def test_a_binding_to_a_version_that_is_not_served_any_more_keeps_what_it_knows_and_says_so(
    world: informing.World,
) -> None:
    world.server.serve("Widget", BETA)
    world.put("x", kind="Widget", api_version=BETA)
    subscription, recorder = await world.synced(Selection("Widget", BETA))
    world.server.serve("Widget", STABLE)
    world.server.stop_serving("Widget", BETA)
    await recorder.until(lambda: "it serves it in example.io/v1" in (subscription.reason or ""))
    assert subscription.keys() == [("a", "x")]
    world.server.serve("Widget", BETA)
    await recorder.until(lambda: subscription.reason is None)
    assert recorder.reported == []
    world.server.stop_serving("Widget", STABLE)
    world.server.stop_serving("Widget", BETA)
    await recorder.until_told(1)
    assert recorder.reported == ["Deleted a/x"]


async def test_a_kind_without_namespaces_cannot_be_chosen_by_namespace(world: informing.World) -> None:
    subscription, recorder = world.subscribe(Selection("Namespace", namespaces=("a",)))
    await recorder.until(lambda: bool(recorder.troubles))
    assert subscription.reason == "a Namespace is in no namespace; remove the selection of namespaces"


async def test_a_subscriber_that_comes_while_others_list_gets_everything_too(world: informing.World) -> None:
    world.server.streams_lists = False
    for number in range(9):
        world.put(f"x{number}", data={"k": str(number)})
    _, first = world.subscribe()
    await world.server.until(lambda: any("continue" in asked.query for asked in world.server.asked))
    late, second = world.subscribe(projection=informing.jq(".data.k"))
    await second.until_synced()
    await first.until_synced()
    assert len(late.keys()) == 9
    assert first.changes == []


class Flaky:
    """A projection with a mistake in it, at first."""

    def __init__(self) -> None:
        self.broken = True

    async def reduce(self, objects: Sequence[bytes]) -> list[projections.Reduced]:
        if self.broken:
            self.broken = False
            raise ZeroDivisionError
        return [projections.Reduced(b"{}", b"")] * len(objects)


async def test_a_watch_with_a_mistake_in_it_begins_anew(
    world: informing.World, caplog: pytest.LogCaptureFixture
) -> None:
    world.put("x")
    subscription, _ = await world.synced(projection=Flaky())
    assert len(subscription.keys()) == 1
    assert world.failures.counted == ["ConfigMap crash"]
    assert "the watch of configmaps broke down" in caplog.text
    assert world.informers.alive


def meddle(world: informing.World, dice: random.Random) -> None:
    """Do one thing that happens to clusters."""
    server = world.server
    name, namespace = f"x{dice.randrange(6)}", dice.choice("ab")
    match dice.randrange(12):
        case 0 if (namespace, name) in world.state():
            world.delete(name, namespace)
        case 1 if body := world.state().get((namespace, name)):
            world.delete(name, namespace)
            world.put(name, namespace, data=body["data"])
        case 2:
            server.cut()
        case 3:
            server.bookmark()
        case 4:
            server.send_event("ERROR", {"kind": "Status", "code": dice.choice((410, 500)), "message": "m"})
        case 5:
            server.compact()
            server.cut()
        case 6:
            server.refuse(dice.choice((401, 410, 429, 500, 503)), lambda asked: asked.is_watch)
        case 7:
            server.streams_lists = not server.streams_lists
        case 8:
            server.resume() if server.is_paused else server.pause()
        case _:
            world.put(name, namespace, data={"k": dice.choice("123")})


@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.slow) for seed in (1, 2))])
async def test_events_lead_from_the_first_snapshot_to_what_there_is_whatever_happens(
    world: informing.World, seed: int
) -> None:
    dice = random.Random(seed)
    for number in range(6):
        world.put(f"x{number}", data={"k": "0"})
    subscription, recorder = await world.synced(projection=informing.jq(".data.k"))
    start = dict.fromkeys(world.state(), "0")
    for _ in range(60):
        for _ in range(dice.randrange(4)):
            meddle(world, dice)
        await world.server.until(lambda: bool(world.server.streams))
        for _ in range(dice.randrange(30)):
            await asyncio.sleep(0)
    world.server.accept()
    world.server.resume()
    world.put("last", "z", data={"k": "last"})
    wanted = {key: body["data"]["k"] for key, body in world.state().items()}
    await recorder.until(
        lambda: subscription.keys() == sorted(wanted) and "Added z/last" in recorder.reported
    )
    assert histories.check_sequence(start, recorder.changes) == wanted
    assert [orjson.loads(entry)["filterResult"] for entry in subscription.snapshot()] == [
        wanted[key] for key in sorted(wanted)
    ]
