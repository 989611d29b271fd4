"""Expressions in jq."""

import pytest

from addon_operator.hook_contract import jq_programs
from addon_operator.kernel.json_types import JsonValue


@pytest.mark.parametrize(
    ("text", "value", "results"),
    [
        (".a", {"a": [1]}, [[1]]),
        (".[]", [1, "a"], [1, "a"]),
        ("empty", None, []),
        ("# all of it\n.", {"a": None}, [{"a": None}]),
        ("def twice: . * 2; twice", 3, [6]),
        (".", ["a\u2028b\nc"], [["a\u2028b\nc"]]),
    ],
    ids=["field", "many", "none", "comment", "definition", "line-ends"],
)
def test_an_expression_gives_its_results(text: str, value: JsonValue, results: list[JsonValue]) -> None:
    assert jq_programs.JqProgram(text).results(value) == results


def test_large_integers_that_are_left_alone_stay_exact() -> None:
    value: JsonValue = {"a": 9007199254740993, "b": 1}
    assert jq_programs.JqProgram(".b = 2").results(value) == [{"a": 9007199254740993, "b": 2}]


@pytest.mark.parametrize("text", [".a[", "1) | (2", "nothing_of_that_name"])
def test_an_invalid_jq_program_is_refused_on_one_line(text: str) -> None:
    with pytest.raises(jq_programs.JqError, match=r"line 1, column \d+") as caught:
        jq_programs.JqProgram(text)
    assert "\n" not in str(caught.value)


def test_a_failure_says_what_the_expression_says() -> None:
    with pytest.raises(jq_programs.JqError, match="no such luck"):
        jq_programs.JqProgram('error("no such luck")').results(1)


def test_equal_texts_are_equal_programs() -> None:
    assert jq_programs.JqProgram(".a") == jq_programs.JqProgram(".a")
    assert len({jq_programs.JqProgram(".a"), jq_programs.JqProgram(".a"), jq_programs.JqProgram(".b")}) == 2
