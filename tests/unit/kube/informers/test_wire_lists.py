"""Pages of lists, object by object."""

import itertools
from collections.abc import Callable
from typing import Any

import hypothesis
import hypothesis.strategies as st
import orjson
import pytest

from addon_operator.kube import api_errors, paths
from addon_operator.kube.informers import wire
from tests.support import rows

TARGET = paths.target("GET", "/api/v1/pods")
METADATA = {"resourceVersion": "7", "continue": "next"}
TEXTS = ['},{"metadata":', '"items":[', "]}", '],"kind":"', "é", "\\", '"', "x"]
KEYS = st.sampled_from([*TEXTS, "metadata"])
VALUES = st.recursive(
    st.sampled_from([*TEXTS, 0, 9, None]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3),
    max_leaves=8,
)


def item(number: int, spec: object = None) -> dict[str, Any]:
    named = {"name": f"x{number}", "namespace": "a", "uid": f"u{number}", "resourceVersion": str(number)}
    return {"metadata": named, "spec": spec}


def own_kind(items: list[dict[str, Any]]) -> bytes:
    """As the server writes lists of its own kinds."""
    return orjson.dumps({"kind": "PodList", "apiVersion": "v1", "metadata": METADATA, "items": items}) + b"\n"


def custom(items: list[dict[str, Any]]) -> bytes:
    """As it writes those of custom resources."""
    said = [{"apiVersion": "e.io/v1", "kind": "Widget", **item} for item in items]
    return orjson.dumps({"apiVersion": "e.io/v1", "items": said, "kind": "WidgetList", "metadata": METADATA})


@hypothesis.given(st.lists(VALUES, max_size=4))
@pytest.mark.parametrize(
    ("write", "kind"), [(own_kind, {"kind": "Pod", "apiVersion": "v1"}), (custom, {})], ids=["own", "custom"]
)
def test_items_come_one_by_one_whatever_stands_in_them(
    write: Callable[[list[dict[str, Any]]], bytes], kind: dict[str, str], specs: list[Any]
) -> None:
    items = [item(number, spec) for number, spec in enumerate(specs)]
    page = wire.read_page(TARGET, write(items))
    assert (page.version, page.next) == ("7", "next")
    events = list(page.events())
    wanted = {} if kind else {"apiVersion": "e.io/v1", "kind": "Widget"}
    assert [orjson.loads(event.data) for event in events] == [{**kind, **wanted, **item} for item in items]
    assert [(event.key, event.uid, event.version) for event in events] == [
        (("a", f"x{number}"), f"u{number}", str(number)) for number in range(len(items))
    ]


@rows.each("order", list(itertools.permutations(["kind", "apiVersion", "metadata", "items"])), ids=",".join)
def test_a_list_is_read_in_any_order_of_keys(order: tuple[str, ...]) -> None:
    lists = {"kind": "PodList", "apiVersion": "v1", "metadata": METADATA, "items": [item(1)]}
    (event,) = wire.read_page(TARGET, orjson.dumps({key: lists[key] for key in order})).events()
    assert event[1:4] == (("a", "x1"), "u1", "1")
    assert orjson.loads(event.data) == {"kind": "Pod", "apiVersion": "v1", **item(1)}


def test_an_item_that_holds_a_list_like_its_own_is_not_cut() -> None:
    inner = [{"metadata": {"name": "in"}}, {"metadata": {"name": "in"}}]
    page = wire.read_page(TARGET, own_kind([item(1, inner), item(2, inner)]))
    assert [event.key[1] for event in page.events()] == ["x1", "x2"]


@rows.each("items", [b"null", b"[ ]"], ids=["null", "blank"])
def test_an_unusual_way_to_write_a_list_is_read_too(items: bytes) -> None:
    body = (
        b'{"kind": "PodList", "apiVersion": "v1", "metadata": {"resourceVersion": "7"}, "items": %b}' % items
    )
    page = wire.read_page(TARGET, body)
    assert (page.next, list(page.events())) == ("", [])


@rows.each("body", [b"<html>", b"[]", b'{"kind":"Status"}', b'{"kind":"PodList","items":[]}'], ids=repr)
def test_what_is_not_a_list_is_reported(body: bytes) -> None:
    with pytest.raises(api_errors.BrokenAnswer, match=r"to list pods is not a list: \w"):
        wire.read_page(TARGET, body)


def test_items_that_are_not_json_are_reported() -> None:
    body = own_kind([item(1), item(2)]).replace(b'"x2"', b'"x2')
    with pytest.raises(api_errors.BrokenAnswer, match="is not a list: JSON is malformed"):
        wire.read_page(TARGET, body)


def test_an_item_without_metadata_is_reported() -> None:
    page = wire.read_page(TARGET, own_kind([{"spec": 1}]))
    with pytest.raises(api_errors.BrokenAnswer, match="an object without metadata"):
        list(page.events())


def test_an_item_that_is_nested_too_deep_to_be_read_is_reported() -> None:
    body = own_kind([item(1)]).replace(b"null", b"[" * 100_000 + b"]" * 100_000)
    with pytest.raises(wire.NestsTooDeep):
        wire.read_page(TARGET, body)
