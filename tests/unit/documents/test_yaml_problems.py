"""Mistakes in YAML are told in plain words, and never with what stands there: it may be a secret."""

import pytest

from addon_operator.documents import yaml_reading
from tests.support import rows

ALIGN = "the line is indented like none of the lines above it"


@rows.each(
    ("text", "place", "said"),
    [
        ("a: 1\n b: 2\n", (2, 3), "the line is indented more than line 1, which has a value already"),
        ("a: 1\n\n  b: 2\n", (3, 4), "the line is indented more than line 1, which has a value already"),
        ("a: 1\n# c\n  b: 2\n", (3, 3), ALIGN),
        ("- a: 1\n   b: 2\n", (2, 5), "the line is indented more than line 1, which has a value already"),
        ("a:\n  b: 1\n c: 2\n", (3, 2), ALIGN),
        ("list:\n  - a\n - b\n", (3, 2), ALIGN),
        ("a: |\n  x\n y\n", (3, 2), ALIGN),
        ("  a: 1\nb: 2\n", (2, 1), "the line is indented less than the first one"),
        ("- a\nb: c\n", (2, 1), "the line is no item of the list above it; begin it with '- '"),
        ("a:\n\tb: 1\n", (2, 1), "a tab stands where the line begins; indent with spaces"),
        ("a: hunter2: c\n", (1, 11), "a second ': ' stands in the value; put the value in quotes"),
        ("a\nb: 1\n", (2, 2), "line 1 has no ':' behind its key; write 'key: value'"),
        ("a: 1\nhunter2\n", (3, 1), "line 2 has no ':' behind its key; write 'key: value'"),
        ("a: '\nhunter2\nb: 1\n", (4, 1), "the quote that begins in line 1 does not end; close it"),
        ("b: 1\na: {c: 1\n", (3, 1), "'{' in line 2 is followed by neither ',' nor '}'; close it"),
        ("a: [1, 2\n", (2, 1), "'[' in line 1 is followed by neither ',' nor ']'; close it"),
        ("a: [\n", (2, 1), "a value is missing here; complete it, or put the text in quotes"),
        ("a: @hunter2\n", (1, 4), "a value cannot begin with '@'; put it in quotes"),
        ("a: *hunter2\n", (1, 4), "a value that begins with '*' names an anchor, and there is none"),
        ('a: "hunter2\\q"\n', (1, 12), "a '\\' in a text between double quotes begins nothing known"),
        ("a: &x\n- *x\n- !<\n", (3, 5), "did not find "),
    ],
    ids=repr,
)
def test_a_mistake_is_told_with_its_place_and_what_mends_it(
    text: str, place: tuple[int, int], said: str
) -> None:
    with pytest.raises(yaml_reading.YamlError) as caught:
        yaml_reading.load_document(text, "key 'web'")
    line, column = place
    assert str(caught.value).startswith(f"key 'web', line {line}, column {column}: invalid YAML: {said}")
    assert "hunter2" not in str(caught.value)
