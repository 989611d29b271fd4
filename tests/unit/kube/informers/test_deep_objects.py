"""Objects that nest deeper than anything can read are their own trouble: others of their kind go on."""

import dataclasses
from collections.abc import Sequence

import orjson
import pytest

from addon_operator.engine.drift import health_watch, run_causes
from addon_operator.kube import paths
from addon_operator.kube.informers import deep_objects, object_changes, projections, reflector, wire
from addon_operator.modules import failure_causes
from tests.support import rows
from tests.unit import costs
from tests.unit.kube import informing

TARGET = paths.target("GET", "/api/v1/configmaps")
DEPTHS = (100, 300, 600, 980, 1100, 9990)
"""Levels at which one library after the other gives up."""
NAMED = b'{"name":"x","namespace":"a","uid":"u","resourceVersion":"1"}'
CAUSE = failure_causes.Cause(failure_causes.CauseKind.NAMESPACE, "a")
PROJECTIONS: dict[str, projections.Projection] = {
    "whole": projections.FullObject(),
    "jq": informing.jq(".metadata.name", keep_full=True),
    "content": projections.Content(),
    "presence": projections.Presence(),
    "health": health_watch.Verdicts(has_status=True),
    "cause": run_causes._Gist(CAUSE),
}


def nested(depth: int, version: int = 500) -> bytes:
    """An object with as many levels before and behind its metadata, of a name by its depth."""
    deep = b'{"a":' * depth + b"[]" + b"}" * depth
    named = b'{"name":"deep%d","namespace":"a","uid":"u%d","resourceVersion":"%d"}' % (depth, depth, version)
    return b'{"apiVersion":"v1","data":%b,"kind":"ConfigMap","metadata":%b,"spec":%b}' % (deep, named, deep)


def flat(version: int) -> bytes:
    metadata = {"name": "flat", "namespace": "a", "uid": "f", "resourceVersion": str(version)}
    return orjson.dumps({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata})


@pytest.mark.slow
@rows.each("name", PROJECTIONS)
async def test_others_of_the_kind_are_followed_whatever_nests_how_deep(name: str) -> None:
    async with informing.world(reflector.Tuning(silence=5.0)) as world:
        subscription, recorder = await world.synced(projection=PROJECTIONS[name])
        for depth in DEPTHS:
            world.server.send(b'{"type":"ADDED","object":%b}\n' % nested(depth))
        world.server.send(b'{"type":"ADDED","object":%b}\n' % flat(501))
        while "Added a/flat" not in recorder.reported:
            await recorder.until_told(len(recorder.reported) + 1)
        assert subscription.entry(object_changes.ObjectKey("a", "deep100")) is not None
        assert world.failures.counted == [], "the watch goes on"


@rows.each("depth", DEPTHS)
def test_a_page_has_its_other_objects_whatever_nests_how_deep(depth: int) -> None:
    head = b'{"kind":"ConfigMapList","apiVersion":"v1","metadata":{"resourceVersion":"7"},"items":['
    body = head + b",".join([flat(1), nested(depth), flat(2)]) + b"]}"
    try:
        page = wire.read_page(TARGET, body)
    except wire.NestsTooDeep:
        page = wire.read_page(TARGET, deep_objects.cut(body), is_cut=True)
        assert [bool(event.data) for event in page.events()] == [True, False, True]
    assert [event.key[1] for event in page.events()] == ["flat", f"deep{depth}", "flat"]
    assert orjson.loads(next(iter(page.events())).data)["kind"] == "ConfigMap"


def test_a_text_like_the_mark_of_what_was_cut_is_a_text_like_any() -> None:
    event = wire.read_line(b'{"type":"ADDED","object":{"metadata":%b,"data":{"a":"\\u0000"}}}' % NAMED)
    assert isinstance(event, wire.ObjectEvent)
    assert deep_objects.MARK in event.data
    cut = wire.read_cut_line(deep_objects.cut(b'{"type":"ADDED","object":%b}' % nested(1100)))
    assert isinstance(cut, wire.ObjectEvent)
    assert (cut.key, cut.data) == (("a", "deep1100"), b"")


def test_what_is_not_deep_is_not_cut() -> None:
    text = orjson.dumps({"a": ['}]"\\', '[{"', {"b": [[]] * 50}], "é": "\\"})
    assert deep_objects.cut(text) == text
    assert deep_objects.cut(b"[" * 300 + b"]" * 300) == b"[" * 200 + deep_objects.MARK + b"]" * 200


@pytest.mark.slow
@rows.each("piece", [b"[[]],", b'"\\"\\\\",', b'{"a":'])
def test_to_cut_costs_no_more_than_the_size(piece: bytes) -> None:
    assert costs.is_linear(lambda size: b"[" * 300 + piece * size, deep_objects.cut, 5_000)


@dataclasses.dataclass(frozen=True, slots=True)
class _Fails:
    """A projection that fails on some objects with whatever there is."""

    error: Exception

    async def reduce(self, objects: Sequence[bytes]) -> Sequence[projections.Reduced]:
        if any(b'"bad"' in data for data in objects):
            raise self.error
        return [projections.Reduced(b"{}", b"")] * len(objects)


@rows.each("error", [ValueError("x"), TypeError("x"), RecursionError(), AttributeError("x")])
async def test_an_object_that_a_projection_cannot_stand_is_left_out_alone(error: Exception) -> None:
    async with informing.world(reflector.Tuning(silence=5.0)) as world:
        world.put("good")
        world.put("bad", data={"k": "s3cret"})
        world.put("other")
        subscription, _ = await world.synced(projection=_Fails(error))
        assert [
            name
            for (_, name), _ in sorted(world.state().items())
            if subscription.entry(object_changes.ObjectKey("a", name))
        ] == ["good", "other"]
        assert "a/bad: it cannot be read" in (subscription.reason or "")
        assert "s3cret" not in (subscription.reason or "")
