"""Informers when all goes well: what is shared, what is told, and what is in the snapshot."""

from collections.abc import AsyncIterator, Sequence

import orjson
import pytest
from typing_extensions import override

from addon_operator.kube.informers import object_changes, object_selections, projections
from tests.support import listeners
from tests.unit.kube import informing

Selection = object_selections.ObjectSelection


@pytest.fixture
async def world() -> AsyncIterator[informing.World]:
    async with informing.world() as opened:
        yield opened


async def test_the_snapshot_holds_whole_objects_by_namespace_and_name(world: informing.World) -> None:
    for namespace, name in (("b", "x"), ("a", "z"), ("a", "y")):
        world.put(name, namespace, data={"k": "v"})
    subscription, recorder = await world.synced()
    assert recorder.calls == ["synced"]
    assert subscription.synced
    assert subscription.keys() == [("a", "y"), ("a", "z"), ("b", "x")]
    assert [orjson.loads(entry) for entry in subscription.snapshot()] == [
        {"object": world.state()[key]} for key in (("a", "y"), ("a", "z"), ("b", "x"))
    ]
    assert list(subscription.lazy_snapshot()) == subscription.snapshot()


async def test_nothing_is_delivered_before_subscribe_returns(world: informing.World) -> None:
    await world.synced()
    subscription, recorder = world.subscribe()
    assert (recorder.calls, subscription.synced) == ([], False)
    await recorder.until_synced()


async def test_changes_come_in_order_and_are_in_the_snapshot_already(
    world: informing.World, monkeypatch: pytest.MonkeyPatch
) -> None:
    subscription, recorder = await world.synced()
    seen: list[list[str]] = []

    def changed(changes: Sequence[object_changes.Change]) -> None:
        listeners.Recorder.changed(recorder, changes)
        seen.append(listeners.names(subscription.snapshot()))

    monkeypatch.setattr(recorder, "changed", changed)
    world.put("x", data={"k": "1"})
    await recorder.until_told(1)
    world.put("x", data={"k": "2"})
    await recorder.until_told(2)
    world.delete("x")
    await recorder.until_told(3)
    assert recorder.reported == ["Added a/x", "Modified a/x", "Deleted a/x"]
    assert seen == [["x"], ["x"], []]
    assert [int(change.resource_version) for change in recorder.changes] == sorted(
        change.version for change in world.server.history[-3:]
    )
    assert orjson.loads(recorder.changes[2].entry)["object"]["data"] == {"k": "2"}


async def test_every_version_of_an_object_is_delivered_even_if_they_come_at_once(
    world: informing.World,
) -> None:
    _, recorder = await world.synced(projection=informing.jq(".data.k"))
    for number in range(50):
        world.put("x", data={"k": str(number)})
    await recorder.until_told(50)
    results = [orjson.loads(change.entry)["filterResult"] for change in recorder.changes]
    assert results == [str(number) for number in range(50)]


async def test_what_every_write_changes_is_not_a_change_but_the_snapshot_has_it(
    world: informing.World,
) -> None:
    world.put("x", data={"k": "1"})
    subscription, recorder = await world.synced()
    world.put("x", data={"k": "1"}, metadata={"managedFields": [{"manager": "me"}]})
    world.put("y")
    await recorder.until_told(1)
    assert recorder.reported == ["Added a/y"]
    metadata = orjson.loads(subscription.snapshot()[0])["object"]["metadata"]
    stored = world.state()["a", "x"]["metadata"]
    assert (metadata["resourceVersion"], metadata["managedFields"]) == (
        stored["resourceVersion"],
        [{"manager": "me"}],
    )


@pytest.mark.parametrize(
    ("keep_full", "keys"),
    [(False, {"filterResult"}), (True, {"object", "filterResult"})],
    ids=["lean", "full"],
)
async def test_a_filter_decides_what_is_kept_and_what_is_a_change(
    world: informing.World, *, keep_full: bool, keys: set[str]
) -> None:
    world.put("x", data={"k": "1", "other": "a"})
    subscription, recorder = await world.synced(projection=informing.jq(".data.k", keep_full=keep_full))
    world.put("x", data={"k": "1", "other": "b"})
    world.put("x", data={"k": "2", "other": "b"})
    await recorder.until_told(1)
    assert recorder.reported == ["Modified a/x"]
    (entry,) = map(orjson.loads, subscription.snapshot())
    assert entry.keys() == keys
    assert entry["filterResult"] == "2"


async def test_presence_notes_only_that_an_object_comes_and_goes(world: informing.World) -> None:
    world.put("x")
    subscription, recorder = await world.synced(projection=projections.Presence())
    world.put("x", data={"k": "1"})
    world.delete("x")
    await recorder.until_told(1)
    assert recorder.reported == ["Deleted a/x"]
    assert subscription.snapshot() == []


async def test_bindings_that_ask_for_the_same_share_one_list_and_one_watch(world: informing.World) -> None:
    world.put("x")
    other_words = Selection("cm", namespaces=None)
    subscriptions = [await world.synced(selection) for selection in (informing.CONFIG_MAPS, other_words)]
    assert len(world.server.lists("configmaps")) == 1
    assert world.informers.watches == ["configmaps"]
    world.put("y")
    for subscription, recorder in subscriptions:
        await recorder.until_told(1)
        assert listeners.names(subscription.snapshot()) == ["x", "y"]


async def test_another_projection_on_a_running_watch_costs_one_list_and_tells_nobody_else(
    world: informing.World,
) -> None:
    world.put("x", data={"k": "1"})
    _, first = await world.synced()
    subscription, _ = await world.synced(projection=informing.jq(".data.k"))
    assert subscription.snapshot() == [b'{"filterResult":"1"}']
    assert len(world.server.lists("configmaps")) == 2
    await world.server.until(lambda: len(world.server.streams) == 1)
    world.put("y")
    await first.until_told(1)
    assert first.reported == ["Added a/y"]


async def test_different_selectors_are_different_watches(world: informing.World) -> None:
    world.put("x", labels={"app": "web"})
    world.put("y", "b")
    labelled, _ = await world.synced(Selection("ConfigMap", label_selector="app=web"))
    placed, _ = await world.synced(Selection("ConfigMap", namespaces=("b",)))
    assert (labelled.keys(), placed.keys()) == ([("a", "x")], [("b", "y")])
    assert len(world.informers.watches) == 2


async def test_the_watch_ends_with_the_last_who_needs_it(world: informing.World) -> None:
    first, _ = await world.synced()
    second, recorder = await world.synced()
    first.close()
    world.put("x")
    await recorder.until_told(1)
    assert len(world.server.streams) == 1
    second.close()
    second.close()
    await world.server.until(lambda: not world.server.streams)
    assert world.informers.watches == []


async def test_a_closed_subscription_gets_nothing_more(world: informing.World) -> None:
    closing, closed = await world.synced()
    _, recorder = await world.synced()
    never, unheard = world.subscribe()
    never.close()
    assert closing.synced
    closing.close()
    assert (closing.synced, closing.snapshot()) == (False, []), "nothing is known, not that there is nothing"
    world.put("x")
    await recorder.until_told(1)
    assert (closed.calls, unheard.calls) == (["synced"], [])


async def test_a_binding_comes_anew_after_the_last_one_went(world: informing.World) -> None:
    first, _ = await world.synced()
    first.close()
    world.put("x")
    second, _ = await world.synced()
    assert second.keys() == [("a", "x")]


async def test_each_name_has_a_watch_and_the_snapshot_is_sorted_over_all(world: informing.World) -> None:
    for namespace in ("a", "b"):
        for name in ("x", "y", "z"):
            world.put(name, namespace)
    subscription, recorder = await world.synced(Selection("ConfigMap", names=("z", "x", "x")))
    assert subscription.keys() == [("a", "x"), ("a", "z"), ("b", "x"), ("b", "z")]
    fields = [asked.query.get("fieldSelector") for asked in world.server.lists("configmaps")]
    assert sorted(map(str, fields)) == ["metadata.name=x", "metadata.name=z"]
    world.delete("x", "b")
    await recorder.until_told(1)
    assert recorder.reported == ["Deleted b/x"]


async def test_an_object_that_leaves_the_selector_is_deleted_and_added_when_it_is_back(
    world: informing.World,
) -> None:
    world.put("x", labels={"app": "web"})
    subscription, recorder = await world.synced(Selection("ConfigMap", label_selector="app=web"))
    world.put("x", labels={"app": "db"})
    await recorder.until_told(1)
    assert subscription.snapshot() == []
    world.put("x", labels={"app": "web"})
    await recorder.until_told(2)
    assert recorder.reported == ["Deleted a/x", "Added a/x"]


async def test_metadata_alone_is_asked_for_by_media_type(world: informing.World) -> None:
    world.put("x")
    await world.synced(Selection("ConfigMap", metadata_only=True), projections.Presence())
    assert "as=PartialObjectMetadata;" in world.server.streams[0].asked.headers["accept"]


async def test_namespaces_come_and_go_with_their_labels(world: informing.World) -> None:
    world.put("a", kind="Namespace", labels={"team": "x"})
    world.put("b", kind="Namespace")
    for namespace in ("a", "b", "c"):
        world.put("object", namespace)
    selection = Selection("ConfigMap", namespaces=("c",), namespace_labels="team=x")
    subscription, recorder = await world.synced(selection)
    assert subscription.keys() == [("a", "object"), ("c", "object")]
    world.put("b", kind="Namespace", labels={"team": "x"})
    await recorder.until_told(1)
    world.put("a", kind="Namespace", labels={})
    await recorder.until_told(2)
    world.put("other", "a")
    world.put("other", "b")
    await recorder.until_told(3)
    world.delete("b", kind="Namespace")
    await recorder.until_told(5)
    came = ["Added b/object", "Deleted a/object", "Added b/other"]
    assert recorder.reported == [*came, "Deleted b/object", "Deleted b/other"]
    assert subscription.keys() == [("c", "object")]
    await world.server.until(lambda: len(world.server.streams) == 2)


async def test_namespaces_that_are_named_and_selected_are_followed_once(world: informing.World) -> None:
    world.put("a", kind="Namespace", labels={"team": "x"})
    world.put("object", "a")
    subscription, recorder = await world.synced(
        Selection("ConfigMap", namespaces=("a",), namespace_labels="team=x")
    )
    assert subscription.keys() == [("a", "object")]
    world.put("a", kind="Namespace")
    world.put("later", "a")
    await recorder.until_told(1)
    assert recorder.reported == ["Added a/later"]


async def test_an_empty_choice_of_namespaces_is_complete_at_once(world: informing.World) -> None:
    subscription, recorder = world.subscribe(Selection("ConfigMap", namespaces=()))
    await recorder.until_synced()
    assert subscription.snapshot() == []


async def test_an_object_on_which_the_filter_fails_is_skipped_with_a_reason(
    world: informing.World, caplog: pytest.LogCaptureFixture
) -> None:
    world.put("bad", data={"k": 1})
    world.put("good", data={"k": {"in": "x"}})
    subscription, recorder = await world.synced(projection=informing.jq(".data.k.in"))
    assert subscription.keys() == [("a", "good")]
    assert subscription.reason is not None
    assert subscription.reason.startswith("skips ConfigMap a/bad: jqFilter: the program fails on it")
    assert 'ConfigMap a/bad: jqFilter: Cannot index number with string ("in")' in caplog.text
    world.put("worse", data={"k": 2})
    await recorder.until(lambda: str(subscription.reason).endswith("; so it is with 1 more"))
    world.delete("worse")
    world.put("bad", data={"k": {"in": "y"}})
    await recorder.until(lambda: recorder.troubles[-1:] == [None])
    assert recorder.reported == ["Added a/bad"]


async def test_what_jq_says_of_a_secret_is_not_reported(
    world: informing.World, caplog: pytest.LogCaptureFixture
) -> None:
    world.put("x", kind="Secret", data={"k": "czNjcmV0"})
    selection = Selection("Secret", "v1")
    subscription, _ = await world.synced(selection, informing.jq(".data.k | @base64d | tonumber"))
    assert subscription.reason is not None
    assert subscription.reason.startswith("skips Secret a/x: jqFilter: the program fails on it")
    assert "cannot be parsed" not in caplog.text


async def test_an_object_keeps_its_last_good_entry_while_the_filter_fails(world: informing.World) -> None:
    world.put("x", data={"k": {"in": "1"}})
    subscription, recorder = await world.synced(projection=informing.jq(".data.k.in"))
    world.put("x", data={"k": 1})
    await recorder.until(lambda: bool(recorder.troubles))
    assert subscription.snapshot() == [b'{"filterResult":"1"}']
    world.delete("x")
    await recorder.until_told(1)
    assert (recorder.reported, subscription.reason) == (["Deleted a/x"], None)


async def test_a_listener_that_fails_harms_only_itself(
    world: informing.World, caplog: pytest.LogCaptureFixture
) -> None:
    class Broken(listeners.Recorder):
        @override
        def changed(self, changes: Sequence[object_changes.Change]) -> None:
            raise ZeroDivisionError

    world.informers.subscribe(informing.CONFIG_MAPS, projections.FullObject(), Broken())
    _, recorder = await world.synced()
    world.put("x")
    await recorder.until_told(1)
    assert "a listener failed" in caplog.text
    assert world.informers.alive


async def test_closing_ends_every_watch(world: informing.World) -> None:
    _, recorder = await world.synced(Selection("ConfigMap", namespace_labels="team=x"))
    await world.informers.close()
    await world.server.until(lambda: not world.server.streams)
    assert recorder.calls == ["synced"]
