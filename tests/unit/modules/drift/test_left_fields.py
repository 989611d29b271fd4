"""What a live object still has of manifests that its release no longer has."""

import base64
from typing import Any, Final

import pytest

from addon_operator.modules.drift import left_fields
from tests.support import rows
from tests.unit import costs

A: Final = base64.b64encode(b"1").decode()


def body(kind: str = "ConfigMap", **fields: Any) -> dict[str, Any]:  # noqa: ANN401 - JSON
    return {"apiVersion": "v1", "kind": kind, "metadata": {"name": "one"}, **fields}


def owned(live: dict[str, Any], **fields: Any) -> dict[str, Any]:  # noqa: ANN401 - JSON
    """The object with these fields, by their managers."""
    entries = [
        {"manager": manager, "operation": "Update", "time": "2026-01-01T00:00:00Z", "fieldsV1": each}
        for manager, each in fields.items()
    ]
    return {**live, "metadata": {**live["metadata"], "managedFields": entries}}


PORTS: Final[dict[str, Any]] = {
    "f:spec": {"f:ports": {'k:{"port":53,"protocol":"TCP"}': {}, 'k:{"port":53,"protocol":"UDP"}': {}}}
}
TCP, UDP = ({"port": 53, "protocol": each} for each in ("TCP", "UDP"))
PROBE: Final = {"exec": {"command": ["a"]}}
DEFAULTS: Final = {**PROBE, "periodSeconds": 10}
FINALIZERS: Final[dict[str, Any]] = {"f:spec": {"f:names": {'v:"a"': {}, 'v:"b"': {}}}}
BOTH: Final = {"a": "1", "b": "2"}
CASES: Final[list[tuple[str, dict[str, Any], dict[str, Any], dict[str, Any], list[str]]]] = [
    ("a key", body(data=BOTH), body(data={"a": "1"}), body(data=BOTH), ["/data/b"]),
    ("what is gone already", body(data={"b": "2"}), body(), body(), []),
    ("what others wrote since", body(data={"b": "2"}), body(data={}), body(data={"b": "3"}), []),
    ("another value", body(data={"b": "2"}), body(data={"b": "3"}), body(data={"b": "3"}), []),
    ("an explicit null", body(data={"b": "2"}), body(data={"b": None}), body(data={"b": "2"}), ["/data/b"]),
    (
        "a text of a Secret",
        body("Secret", stringData={"a": "1"}),
        body("Secret"),
        body("Secret", data={"a": A}),
        ["/data"],
    ),
    (
        "a text that went to the other field",
        body("Secret", stringData={"a": "1"}),
        body("Secret", data={"a": A}),
        body("Secret", data={"a": A}),
        [],
    ),
    (
        "an item of two with one port",
        body("Service", spec={"ports": [TCP, UDP]}),
        body("Service", spec={"ports": [UDP]}),
        owned(body("Service", spec={"ports": [TCP, UDP]}), helm=PORTS),
        ["/spec/ports/0"],
    ),
    (
        "an item whose protocol is a default",
        body("Service", spec={"ports": [{"port": 53}, UDP]}),
        body("Service", spec={"ports": [{"port": 53}, UDP]}),
        owned(body("Service", spec={"ports": [TCP, UDP]}), helm=PORTS),
        [],
    ),
    (
        "an item of a set",
        body("Thing", spec={"names": ["a", "b"]}),
        body("Thing", spec={"names": ["b"]}),
        owned(body("Thing", spec={"names": ["a", "b", "c"]}), helm=FINALIZERS),
        ["/spec/names/0"],
    ),
    (
        "a list as a whole",
        body("Thing", spec={"names": ["a", "b"]}),
        body("Thing", spec={"names": ["b"]}),
        body("Thing", spec={"names": ["b"]}),
        [],
    ),
    (
        "with defaults",
        body("Thing", spec={"probe": PROBE}),
        body("Thing", spec={}),
        owned(body("Thing", spec={"probe": DEFAULTS}), old={"f:spec": {"f:probe": {"f:exec": {}}}}),
        ["/spec/probe"],
    ),
    (
        "beside what may be of others, as nobody knows whose it is",
        body("Thing", spec={"probe": PROBE}),
        body("Thing", spec={}),
        body("Thing", spec={"probe": DEFAULTS}),
        ["/spec/probe/exec"],
    ),
    (
        "beside a field of others",
        body("Thing", spec={"probe": PROBE}),
        body("Thing", spec={}),
        owned(
            body("Thing", spec={"probe": DEFAULTS}),
            old={"f:spec": {"f:probe": {"f:exec": {}}}},
            theirs={"f:spec": {"f:probe": {"f:periodSeconds": {}}}},
        ),
        ["/spec/probe/exec"],
    ),
    ("replicas", body(spec={"replicas": 2}), body(spec={}), body(spec={"replicas": 2}), []),
    ("the status", body("Thing", status={"a": 1}), body("Thing"), body("Thing", status={"a": 1}), []),
]  # fmt: skip


@rows.each(("before", "after", "live", "left"), [pytest.param(*case, id=name) for name, *case in CASES])
def test_what_the_manifest_before_had_and_the_next_one_has_not_is_left(
    before: dict[str, Any], after: dict[str, Any], live: dict[str, Any], left: list[str]
) -> None:
    found = left_fields.left(before, after, live)
    assert [each.pointer for each in found] == left
    if left:
        assert left_fields.loses(before, after)


def test_labels_and_annotations_are_left_but_not_those_that_others_write() -> None:
    texts = {"a": "1", "meta.helm.sh/release-name": "x", "kubectl.kubernetes.io/restartedAt": "y"}
    live = {**body(), "metadata": {"name": "one", "labels": {"b": "2"}, "annotations": texts}}
    found = left_fields.left(live, body(), live)
    assert [each.pointer for each in found] == ["/metadata/labels/b", "/metadata/annotations/a"]


def test_an_item_that_both_manifests_have_and_the_object_has_not_is_lost() -> None:
    metrics = {"port": 9153, "protocol": "TCP"}
    before, after, live = (
        body("Service", spec={"ports": ports})
        for ports in ([TCP, UDP, metrics], [UDP, metrics, {"port": 1}], [metrics])
    )
    found = left_fields.lost(before, after, owned(live, helm=PORTS))
    assert [each.expected for each in found] == [UDP]


def test_what_a_failed_manifest_wrote_and_the_next_one_has_otherwise_is_stale() -> None:
    failed = body("Thing", spec={"a": 7, "b": 7, "same": 1})
    after = body("Thing", spec={"a": 1, "b": 1, "same": 1, "new": 1})
    live = body("Thing", spec={"a": 7, "b": 3, "same": 1})
    found = left_fields.stale(failed, after, live)
    assert [(each.pointer, each.expected) for each in found] == [("/spec/a", 1), ("/spec/new", 1)]


def test_items_that_helm_would_take_away_with_another_one_are_left_out_before() -> None:
    metrics = {"port": 9153}
    container = {"name": "a", "ports": [{"containerPort": 1}, {"containerPort": 1, "protocol": "UDP"}]}
    before = {"ports": [TCP, UDP, metrics], "containers": [container, {"name": "b"}]}
    after = {
        "ports": [UDP],
        "containers": [{"name": "a", "ports": [{"containerPort": 1, "protocol": "TCP"}]}],
    }
    assert left_fields.without_twins(before, after) == {
        "ports": [UDP, metrics],
        "containers": [{"name": "a", "ports": [{"containerPort": 1}]}, {"name": "b"}],
    }
    assert left_fields.without_twins(before, before) == before
    assert left_fields.without_twins(before, None) == before


@pytest.mark.slow
def test_manifests_are_compared_in_one_pass() -> None:
    def many(count: int) -> dict[str, Any]:
        return body("Service", spec={"ports": [{"port": n, "protocol": "TCP"} for n in range(count)]})

    def compared(found: dict[str, Any]) -> None:
        live = owned(found, helm=PORTS)
        assert len(left_fields.left(found, body("Service", spec={"ports": []}), live)) > 1

    assert costs.is_linear(many, compared, 1000)
