"""Texts with several YAML documents."""

import pytest

from addon_operator.documents import yaml_reading
from tests.support import rows


def test_each_document_knows_its_number_and_its_positions() -> None:
    first, second = yaml_reading.load_documents("a: 1\n---\nb:\n  - c: 2\n", "pods.yaml")
    assert (first.value, second.value) == ({"a": 1}, {"b": [{"c": 2}]})
    assert first.where(("a",)) == "pods.yaml, document 1, line 1, column 1"
    assert second.where(("b", 0, "c")) == "pods.yaml, document 2, line 4, column 5"


@rows.each(
    ("text", "values"),
    [("", []), ("---\n# nothing\n---\na: 1\n", [None, {"a": 1}]), ('{"a": 1}', [{"a": 1}])],
    ids=["no text", "an empty document counts", "JSON"],
)
def test_what_counts_as_a_document(text: str, values: list[object]) -> None:
    assert [one.value for one in yaml_reading.load_documents(text, "f")] == values


@rows.each(
    ("text", "message"),
    [
        ("a: 1\n---\nb: [\n", "f, line 4, column 1: invalid YAML"),
        (
            "a: 1\n---\nb: 1\nb: 2\n",
            "f, document 2, line 4, column 1, key b: the key is already set on line 3",
        ),
        ("a: \x01\n", "f, line 1, column 4: control characters are not allowed; remove it"),
    ],
    ids=["syntax", "a key twice", "a control character"],
)
def test_an_error_in_a_later_document_says_where(text: str, message: str) -> None:
    with pytest.raises(yaml_reading.YamlError) as raised:
        yaml_reading.load_documents(text, "f")
    assert str(raised.value).startswith(message)
