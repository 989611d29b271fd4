"""Unified diffs of texts."""

import difflib
import random
from collections.abc import Iterator

import hypothesis
import pytest
from hypothesis import strategies as st

from addon_operator.documents import text_diff
from tests.support import rows
from tests.unit import costs

LINES = st.lists(st.sampled_from("abcdef"), max_size=30)


def unified(before: list[str], after: list[str]) -> list[str]:
    return list(text_diff.unified(before, after, "was", "is"))


def patched(before: list[str], lines: list[str]) -> Iterator[str]:
    """What ``patch`` makes of a text: the line numbers of the diff must be right."""
    at = 0
    for line in lines[2:]:
        if line.startswith("@@"):
            first, _, length = line.split()[1].removeprefix("-").partition(",")
            begin = int(first) if length == "0" else int(first) - 1
            yield from before[at:begin]
            at = begin
            continue
        if line[0] in " -":
            assert before[at] == line[1:]
            at += 1
        if line[0] in " +":
            yield line[1:]
    yield from before[at:]


@hypothesis.given(LINES, LINES)
def test_the_difference_makes_one_text_of_the_other(before: list[str], after: list[str]) -> None:
    assert list(patched(before, unified(before, after))) == after


def test_where_texts_differ_in_some_places_it_is_what_difflib_shows() -> None:
    before = [f"line {number}" for number in range(100)]
    for at in range(0, 100, 7):
        after = [*before[:at], "another", *before[at + 1 :]]
        assert unified(before, after) == list(difflib.unified_diff(before, after, "was", "is", lineterm=""))
    after = [*before[:20], "new", *before[20:50], *before[53:]]
    assert unified(before, after) == list(difflib.unified_diff(before, after, "was", "is", lineterm=""))


def test_equal_texts_have_no_difference() -> None:
    assert unified([], []) == unified(["a", "b"], ["a", "b"]) == []


def test_lines_that_are_replaced_stand_together() -> None:
    assert unified(["a", "b", "z"], ["c", "d", "z"])[3:] == ["-a", "-b", "+c", "+d", " z"]


def test_what_differs_over_too_many_lines_is_shown_as_removed_and_added(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    before, after = ["head", *"abab", "foot"], ["head", *"baba", "foot"]
    assert sum(line[0] in "+-" for line in unified(before, after)[2:]) == 2
    monkeypatch.setattr(text_diff, "MAX_PAIRS", 15)
    assert [line for line in unified(before, after)[2:] if line[0] in "+-"] == [
        *("-a", "-b", "-a", "-b"), *("+b", "+a", "+b", "+a")
    ]  # fmt: skip


@rows.each("kinds", [3, 10**6], ids=["alike", "all different"])
def test_many_lines_that_differ_cost_little_more_than_their_number(kinds: int) -> None:
    choice = random.Random(1)

    def texts(size: int) -> tuple[list[str], list[str]]:
        before = [str(choice.randrange(kinds)) for _ in range(size)]
        return before, [line if number % 2 else f"{line}!" for number, line in enumerate(before)]

    assert costs.is_linear(texts, lambda given: unified(*given), 1000)
