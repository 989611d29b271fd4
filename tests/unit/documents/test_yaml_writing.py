"""Values written as YAML: readable, and read back the same."""

import yaml
from hypothesis import given
from hypothesis import strategies as st

from addon_operator.documents import json_documents, yaml_reading, yaml_writing
from addon_operator.kernel import json_types
from tests.unit.values.json_strategies import KEYS, OBJECTS

_TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=12) | st.text(
    "\n\t -:#'\"|>yes01.", max_size=12
)


def test_sections_are_written_in_block_style_with_their_keys_in_order() -> None:
    section: json_types.JsonObject = {
        "z": {"b": 1, "a": [1, {"c": None}]},
        "a": "text",
        "empty": {},
        "none": [],
    }
    assert yaml_writing.dump(section) == (
        "z:\n  b: 1\n  a:\n  - 1\n  - c: null\na: text\nempty: {}\nnone: []\n"
    )


def test_lines_of_a_text_are_written_as_a_block() -> None:
    assert yaml_writing.dump({"key": "one\ntwo\n"}) == "key: |\n  one\n  two\n"


def test_a_long_line_stays_one_line() -> None:
    assert yaml_writing.dump({"key": "word " * 100 + "end"}).count("\n") == 1


AMBIGUOUS = [
    "yes",
    "y",
    "Off",
    "017",
    "0o17",
    "0b1",
    "1_000",
    "1e3",
    "null",
    "~",
    "",
    "2020-01-01",
    "12:30",
    "=",
    "<<",
]


def test_a_string_that_looks_like_something_else_is_quoted() -> None:
    written = [yaml_writing.dump({"key": text, text: "value"}) for text in AMBIGUOUS]
    assert written == [f"key: '{text}'\n'{text}': value\n" for text in AMBIGUOUS]


@given(OBJECTS)
def test_sections_read_back_the_same(section: json_types.JsonObject) -> None:
    assert json_documents.equal(yaml_reading.load(yaml_writing.dump(section), "f"), section)


@given(
    st.dictionaries(
        _TEXTS,
        _TEXTS | st.lists(_TEXTS, max_size=2) | st.floats(allow_nan=False, allow_infinity=False),
        max_size=5,
    )
)
def test_any_text_and_number_reads_back_the_same(section: json_types.JsonObject) -> None:
    written = yaml_writing.dump(section)
    assert yaml_reading.load(written, "f") == section


@given(st.dictionaries(KEYS, _TEXTS, max_size=4))
def test_other_readers_see_the_same_strings(section: dict[str, str]) -> None:
    assert yaml.load(yaml_writing.dump({**section}), Loader=yaml.CSafeLoader) == section
