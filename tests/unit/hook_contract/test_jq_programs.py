"""Expressions in jq."""

import pytest

from addon_operator.hook_contract import jq_programs
from tests.support import rows


@rows.each("text", [".a[", "1) | (2", "nothing_of_that_name"])
def test_an_invalid_jq_program_is_refused_on_one_line(text: str) -> None:
    with pytest.raises(jq_programs.JqError, match=r"line 1, column \d+") as caught:
        jq_programs.check(text)
    assert "\n" not in str(caught.value)


def test_another_process_may_be_asked_in_the_place_of_this_one() -> None:
    asked: list[str] = []
    with jq_programs.checking_with(asked.append):
        jq_programs.check("nothing_of_that_name")
    assert asked == ["nothing_of_that_name"]
