"""Reading what a hook prints."""

import pytest

from addon_operator.documents import document_stream
from addon_operator.kernel.json_types import JsonValue
from tests.support import rows


@rows.each(
    ("text", "value"),
    [
        pytest.param('{"a": [1, true, null, "x"]}', {"a": [1, True, None, "x"]}, id="JSON"),
        pytest.param('\n{\t"a": 1}', {"a": 1}, id="JSON with a tab"),
        pytest.param("a: 1\nb: [x]", {"a": 1, "b": ["x"]}, id="YAML"),
        pytest.param("{a: 1}", {"a": 1}, id="YAML in braces"),
        pytest.param("a: 2024-01-01", {"a": "2024-01-01"}, id="a date stays text"),
        pytest.param("x: n\ny: 12:30", {"x": "n", "y": "12:30"}, id="letters and times are texts"),
        pytest.param("a: 1e3\nb: 0o17\nc: 017", {"a": 1000, "b": 15, "c": 15}, id="numbers as in values"),
        pytest.param("a: " + "1" * 40, {"a": 1.1111111111111111e39}, id="an integer beyond 64 bits"),
        pytest.param("a: =", {"a": "="}, id="an equals sign is text"),
        pytest.param("a: !!python/object:os.system x", {"a": "x"}, id="a tag of others is ignored"),
        pytest.param("a: {b: 1}\na: {b: 1}", {"a": {"b": 1}}, id="a mapping twice"),
        pytest.param("a: .metadata.labels", {"a": ".metadata.labels"}, id="a jq filter"),
        pytest.param(
            "x: &x {a: 1}\ny: {<<: *x, b: 2}", {"x": {"a": 1}, "y": {"a": 1, "b": 2}}, id="merge key"
        ),
        pytest.param("a: x\nb: 1\na: x", {"a": "x", "b": 1}, id="twice the same in YAML"),
        pytest.param('{"a": 1, "a": 1}', {"a": 1}, id="twice the same in JSON"),
        pytest.param("", None, id="nothing"),
        pytest.param("# only a comment\n", None, id="a comment"),
    ],
)
def test_json_and_yaml_are_read(text: str, value: JsonValue) -> None:
    assert document_stream.load(text) == value


@rows.each(
    ("text", "reason"),
    [
        pytest.param('{"a": 1, "a": 2}', "key 'a' occurs twice", id="twice in JSON"),
        pytest.param("a: 1\nb: 2\na: 3", "line 3, column 1: the key 'a' occurs twice", id="twice in YAML"),
        pytest.param("a: [1]\na: [2]", "line 2, column 1: the key 'a' occurs twice", id="two lists"),
        pytest.param(
            "a: {b: 1}\na: {b: 1, c: 2}", "line 2, column 1: the key 'a' occurs twice", id="two mappings"
        ),
        pytest.param("a: 1\na: '1'", "line 2, column 1: the key 'a' occurs twice", id="number and text"),
        pytest.param('{"a": 1, "a": true}', "key 'a' occurs twice", id="number and flag in JSON"),
        pytest.param(
            "a:\n  on: 1", "line 2, column 3: the key 'on' is not a text; quote it", id="key that is not text"
        ),
        pytest.param(
            "? [a]\n: 1", "line 1, column 3: a key must be .*, not a collection", id="key that is a list"
        ),
        pytest.param('{"a": NaN}', "NaN is not a JSON number", id="not a number"),
        pytest.param("a: b: c", "line 1, column 5: a second ': ' stands in the value", id="bad YAML"),
        pytest.param('{"a": 1,,}', "neither JSON nor YAML: .*line 1 column 9", id="bad JSON"),
        pytest.param(
            "a: 1\n---\nb: 2", "line 2, column 1: a second document begins here", id="two documents"
        ),
        pytest.param("a: \x00", "special characters are not allowed|control characters", id="a null byte"),
    ],
)
def test_what_is_wrong_or_ambiguous_is_refused_with_its_place(text: str, reason: str) -> None:
    with pytest.raises(document_stream.DocumentError, match=reason) as caught:
        document_stream.load(text)
    assert "\n" not in str(caught.value)


def test_numbers_of_hooks_have_a_bound() -> None:
    assert document_stream.load(f'{{"a": {"1" * 1000}}}')
    with pytest.raises(document_stream.DocumentError, match="more than 1000 digits; quote it"):
        document_stream.load(f'{{"a": {"1" * 1001}}}')
