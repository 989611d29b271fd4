"""Lines of a watch, whatever the order of their keys."""

import itertools
from typing import Any

import orjson
import pytest

from addon_operator.kube import api_errors
from addon_operator.kube.informers import wire
from tests.support import rows

METADATA = {"namespace": "a", "uid": "u1", "resourceVersion": "7", "name": "x", "labels": {"name": "no"}}
OBJECT = {"metadata": METADATA, "kind": "Secret", "apiVersion": "v1", "data": {"metadata": "hidden"}}


def line(type_: str, body: object) -> bytes:
    return orjson.dumps({"type": type_, "object": body})


@rows.each("order", list(itertools.permutations(OBJECT)), ids=",".join)
@rows.each("type_", ["ADDED", "DELETED"])
def test_an_event_is_read_in_any_order_of_keys(type_: str, order: tuple[str, ...]) -> None:
    body = {key: OBJECT[key] for key in order}
    wanted = wire.ObjectEvent(type_ == "DELETED", ("a", "x"), "u1", "7", orjson.dumps(body))
    assert wire.read_line(line(type_, body)) == wanted
    assert wire.read_line(b'{ "object": %b, "type": "%b" }' % (orjson.dumps(body), type_.encode())) == wanted


def test_what_stands_behind_the_object_is_left_out() -> None:
    wanted = wire.ObjectEvent(False, ("a", "x"), "u1", "7", orjson.dumps(OBJECT))
    assert wire.read_line(line("ADDED", OBJECT)[:-1] + b',"more":{"metadata":{}}}') == wanted


def test_an_object_of_the_cluster_has_no_namespace() -> None:
    event = wire.read_line(line("MODIFIED", {"metadata": {"name": "x", "resourceVersion": "7", "uid": None}}))
    assert isinstance(event, wire.ObjectEvent)
    assert (event.key, event.uid) == (("", "x"), "")


@rows.each(
    ("annotations", "ends"),
    [(None, False), ({}, False), ({"k8s.io/initial-events-end": "true", "a": "b"}, True)],
    ids=["none", "empty", "end"],
)
def test_a_bookmark_says_where_the_watch_is(annotations: dict[str, str] | None, ends: bool) -> None:
    body = {"kind": "Pod", "metadata": {"annotations": annotations, "resourceVersion": "9"}}
    assert wire.read_line(line("BOOKMARK", body)) == wire.Bookmark("9", ends)


@rows.each(
    ("status", "code", "says"),
    [
        ({"kind": "Status", "code": 410, "message": "too old"}, 410, r"ended the watch \(410\): too old"),
        ({"code": None}, 0, "no explanation was given"),
    ],
    ids=["told", "untold"],
)
def test_an_error_event_ends_the_watch(status: dict[str, Any], code: int, says: str) -> None:
    with pytest.raises(wire.WatchFailed, match=says) as caught:
        wire.read_line(line("ERROR", status))
    assert caught.value.code == code


@rows.each(
    "broken",
    [
        b"<html>",
        b"[]",
        b'{"type": "ADDED"}',
        line("ADDED", None),
        line("ADDED", {"data": {"p": "hidden"}}),
        line("ADDED", {"data": {"p": "hidden"}, "metadata": {"name": 7, "resourceVersion": "1"}}),
        line("ADDED", {"data": {"p": "hidden"}, "metadata": {"name": "x"}}),
        line("BOOKMARK", {"metadata": {}}),
        line("ERROR", {"code": "410"}),
        line("LOST", {}),
        line("ADDED", OBJECT)[:-9],
        b'{"type":"ADDED","object":%b' % (b"[" * 100_000),
        line("ADDED", OBJECT)[:-1],
        line("ADDED", OBJECT)[:-1] + b"]",
    ],
    ids=range(14),
)
def test_what_is_not_an_event_is_reported_without_a_word_of_it(broken: bytes) -> None:
    with pytest.raises(api_errors.BrokenAnswer, match=r"\w+ ") as caught:
        wire.read_line(broken)
    assert "hidden" not in str(caught.value)
