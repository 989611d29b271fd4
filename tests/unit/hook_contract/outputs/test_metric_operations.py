"""Reading what hooks write to METRICS_PATH."""

import json
from typing import Any

import pytest

from addon_operator.hook_contract.outputs import metric_operations
from addon_operator.hook_contract.outputs.metric_operations import Expire, MetricAction, MetricChange
from tests.support import rows


def parse(text: str) -> tuple[metric_operations.Operation, ...]:
    return metric_operations.parse(text, "hook a.sh: METRICS_PATH")


def test_the_examples_of_the_documentation_are_read() -> None:
    text = """
        {"name":"metric_name","action":"add","value":1,"labels":{"label1":"value1"}}
        {"name":"metric_name","action":"set","value":33,"labels":{"label1":"value1"}}
        {"name":"metric_name","action":"observe","value":42, "buckets": [1,2,5,10,20,50], "labels":{"label1":"value1"}}
        {"name":"metric_name","add":1,"labels":{"label1":"value1"}}
        {"group":"group1", "name":"hook_metric_count",  "action":"add", "value":1, "labels":{"label1":"value1"}}
        {"group":"group_name_1", "action":"expire"}
    """  # noqa: E501  # as the documentation has them
    labels = {"label1": "value1"}
    assert parse(text) == (
        MetricChange(0, MetricAction.ADD, "metric_name", 1, labels),
        MetricChange(1, MetricAction.SET, "metric_name", 33, labels),
        MetricChange(2, MetricAction.OBSERVE, "metric_name", 42, labels, (1, 2, 5, 10, 20, 50)),
        MetricChange(3, MetricAction.ADD, "metric_name", 1, labels),
        MetricChange(4, MetricAction.ADD, "hook_metric_count", 1, labels, group="group1"),
        Expire(5, "group_name_1"),
    )


@rows.each(
    ("document", "action"),
    [
        ({"set": 2}, MetricAction.SET),
        ({"add": 2}, MetricAction.ADD),
        ({"action": "set", "set": 2}, MetricAction.SET),
    ],
    ids=["set", "add", "both-agree"],
)
def test_a_shortcut_is_action_and_value(document: dict[str, Any], action: MetricAction) -> None:
    (change,) = parse(json.dumps({"name": "m", **document}))
    assert change == MetricChange(0, action, "m", 2, {})


def test_an_empty_group_is_not_a_group() -> None:
    (change,) = parse('{"name":"m","set":1,"group":""}')
    assert isinstance(change, MetricChange)
    assert change.group == ""


def test_documents_may_stand_on_one_line() -> None:
    assert len(parse('{"name":"m","set":1}{"name":"m","set":2} {"name":"m","set":3}')) == 3


@rows.each("text", ["", "\n \n"])
def test_nothing_is_not_an_operation(text: str) -> None:
    assert parse(text) == ()


def test_null_in_a_field_counts_as_absent_and_in_a_label_as_empty() -> None:
    unset = {"group": None, "buckets": None, "action": None, "labels": {"node": None, "zone": "a"}}
    assert parse(json.dumps({"name": "m", "set": 1, **unset})) == parse(
        json.dumps({"name": "m", "set": 1, "labels": {"node": "", "zone": "a"}})
    )


def test_a_key_that_is_not_known_is_named_and_does_no_harm() -> None:
    (change,) = parse(json.dumps({"name": "m", "set": 1, "lables": {"a": "b"}}))
    assert isinstance(change, MetricChange)
    assert change.labels == {}
    assert change.ignored == ("the key 'lables' is not known here; did you mean 'labels'?",)


REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "no-name": ({"set": 1}, ", the key 'name' is missing"),
    "no-action": ({"name": "m", "value": 1}, ", the key 'action' is missing; write one of add, set,"),
    "no-value": ({"name": "m", "action": "set"}, ", the key 'value' is missing"),
    "unknown-action": (
        {"name": "m", "action": "inc", "value": 1},
        ', action: "inc" is not known here; known are add, expire, observe, set',
    ),
    "misspelt-value": (
        {"name": "m", "action": "set", "valeu": 1},
        ", the key 'value' is missing; the key 'valeu' is not known here; did you mean 'value'?",
    ),
    "no-value-but-null": ({"name": "m", "action": "set", "value": None}, ", the key 'value' is missing"),
    "value-as-text": ({"name": "m", "action": "set", "value": "1"}, ", value: a text is not a number"),
    "value-as-flag": ({"name": "m", "set": True}, ", set: true is not a number"),
    "value-too-large": ({"name": "m", "set": 10**400}, ", set: 1000000000000"),
    "two-shortcuts": ({"name": "m", "add": 1, "set": 1}, ", set: there is another value"),
    "shortcut-and-value": ({"name": "m", "add": 1, "value": 1}, ", add: there is another value"),
    "shortcut-against-action": (
        {"name": "m", "action": "observe", "add": 1},
        ", add: the action is 'observe'",
    ),
    "negative-add": ({"name": "m", "action": "add", "value": -1}, ", value: a counter cannot go down"),
    "negative-shortcut": ({"name": "m", "add": -0.5}, ", value: a counter cannot go down"),
    "bad-name": ({"name": "a\tb", "set": 1}, ", name: 'a\\tb' is not a name of a metric"),
    "same-labels": (
        {"name": "a", "set": 1, "labels": {"a-b": "x", "a_b": "y"}},
        ", labels: 'a-b' and 'a_b' are the same for many scrapers; rename one of them",
    ),
    "empty-name": ({"name": "", "set": 1}, ", name: "),
    "bad-label": (
        {"name": "m", "set": 1, "labels": {"a\nb": "x"}},
        ", labels: 'a\\nb' is not a name of a label",
    ),
    "reserved-label": (
        {"name": "m", "set": 1, "labels": {"__a": "x"}},
        ", labels: '__a' is not a name of a label",
    ),
    "number-as-label": (
        {"name": "m", "set": 1, "labels": {"a": 5}},
        ", labels.a: 5 is not a text; put it in quotes",
    ),
    "le": (
        {"name": "m", "action": "observe", "value": 1, "labels": {"le": "5"}},
        ", labels: the buckets of a histogram have the label 'le'",
    ),
    "empty-buckets": (
        {"name": "m", "action": "observe", "value": 1, "buckets": []},
        ", buckets: it needs at least 1 item",
    ),
    "unsorted-buckets": (
        {"name": "m", "action": "observe", "value": 1, "buckets": [1, 3, 2]},
        ", buckets: each bound must be larger than the one before it",
    ),
    "buckets-of-a-gauge": (
        {"name": "m", "action": "set", "value": 1, "buckets": [1]},
        ", buckets: only the action 'observe' has them",
    ),
    "expire-without-group": ({"action": "expire"}, ", group: 'expire' needs a group"),
    "expire-with-empty-group": ({"action": "expire", "group": ""}, ", group: 'expire' needs a group"),
}


def refusal(document: dict[str, Any]) -> str:
    with pytest.raises(metric_operations.MetricOperationError) as caught:
        parse('{"name":"good","set":1}\n' + json.dumps(document))
    return str(caught.value).removeprefix("hook a.sh: METRICS_PATH, document [1]")


def test_a_wrong_document_is_refused_with_its_index_and_field() -> None:
    told = [(name, message, refusal(document)) for name, (document, message) in REFUSED.items()]
    assert [row for row in told if not row[2].startswith(row[1])] == []


@rows.each(
    ("text", "message"),
    [
        ('{"name":"m","set":1}\n{"name"', "document [1]: invalid JSON in line 2, column 8"),
        ('{"name":"m","set":NaN}', "document [0]: NaN is not a JSON number"),
        ('{"name":"m","set":1,"set":2}', "document [0]: the key 'set' occurs twice"),
        ("[1]", "document [0]: it is not a mapping"),
        ("name: m", "document [0]: invalid JSON in line 1, column 1"),
    ],
    ids=["broken", "nan", "twice", "list", "yaml"],
)
def test_what_is_not_a_stream_of_json_objects_is_refused(text: str, message: str) -> None:
    with pytest.raises(metric_operations.MetricOperationError) as caught:
        parse(text)
    assert message in str(caught.value)
