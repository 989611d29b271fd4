"""What is done with the bytes of a child."""

import pathlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from addon_operator.process.children import groups, output
from tests.support import rows


def lines_of(*pieces: bytes, max_chars: int = output.MAX_LINE_CHARS) -> list[str]:
    lines: list[str] = []
    splitter = output.Lines(lines.append, max_chars)
    for piece in pieces:
        splitter.feed(piece)
    splitter.close()
    return lines


@rows.each(
    ("pieces", "lines"),
    [
        pytest.param([b"a\nb\n"], ["a", "b"], id="two lines"),
        pytest.param([b"a\nb"], ["a", "b"], id="no end at the end"),
        pytest.param([b"a", b"b\nc"], ["ab", "c"], id="a line in pieces"),
        pytest.param([b"a\r\nb\r\n"], ["a", "b"], id="ends of Windows"),
        pytest.param([b"a\n\nb\n"], ["a", "", "b"], id="an empty line"),
        pytest.param([b"\xc3", b"\xa4\n"], ["ä"], id="a character in pieces"),
        pytest.param([b"a\xffb\n"], ["a�b"], id="no UTF-8"),
        pytest.param([b"\xc3"], ["�"], id="half a character at the end"),
        pytest.param([], [], id="nothing"),
    ],
)
def test_a_stream_is_cut_into_lines(pieces: list[bytes], lines: list[str]) -> None:
    assert lines_of(*pieces) == lines


@given(st.text(alphabet="ab\n€", max_size=40), st.integers(min_value=1, max_value=7))
def test_where_the_pieces_end_changes_nothing(text: str, size: int) -> None:
    data = text.encode()
    pieces = [data[at : at + size] for at in range(0, len(data), size)]
    expected = text.split("\n")
    assert lines_of(*pieces) == (expected if expected[-1] else expected[:-1])


def test_a_long_line_is_cut_and_the_next_one_is_whole() -> None:
    assert lines_of(b"123", b"456789", b"0\nnext\n", max_chars=5) == ["12345" + output.CUT_MARK, "next"]


def test_a_line_of_exactly_the_limit_is_not_cut() -> None:
    assert lines_of(b"12345\n", max_chars=5) == ["12345"]


def test_of_an_endless_line_only_the_limit_is_kept() -> None:
    (line,) = lines_of(*[b"x" * 65536] * 100)
    assert line == "x" * 10_000 + output.CUT_MARK


def test_the_tail_keeps_the_last_lines_that_say_something() -> None:
    tail = output.Tail(lines=2)
    for line in ["one", "two", "", "three", "  "]:
        tail.add(line)
    assert tail.text == "two\nthree"


def test_the_tail_is_bounded_in_characters_too() -> None:
    tail = output.Tail(chars=5)
    tail.add("x" * 100)
    tail.add("end")
    assert tail.text == "x\nend"


@rows.each(
    ("pieces", "kept", "is_cut"),
    [([b"12", b"345"], b"12345", False), ([b"1234", b"56"], b"12345", True), ([], b"", False)],
)
def test_a_capture_keeps_the_beginning(pieces: list[bytes], kept: bytes, is_cut: bool) -> None:
    capture = output.Capture(5)
    for piece in pieces:
        capture.feed(piece)
    assert (capture.data, capture.is_cut) == (kept, is_cut)


@rows.each(
    ("stat", "is_alive"),
    [
        pytest.param("7 (sleep) S 1 42 42 0", True, id="sleeping member"),
        pytest.param("7 (sleep) Z 1 42 42 0", False, id="zombie"),
        pytest.param("7 (sleep) S 1 41 41 0", False, id="other group"),
        pytest.param("7 (a) S 1 42 b) R 1 42 42 0", True, id="a name that looks like fields"),
        pytest.param("", False, id="ended while it was read"),
    ],
)
def test_a_living_member_of_a_group_is_found_by_its_state_and_group(
    tmp_path: pathlib.Path, stat: str, is_alive: bool
) -> None:
    (tmp_path / "7").mkdir()
    (tmp_path / "7" / "stat").write_text(stat)
    (tmp_path / "self").mkdir()
    assert groups.living_member(42, proc=tmp_path) == (7 if is_alive else None)
    assert groups.living_member(42, 7, tmp_path) == (7 if is_alive else None)


def test_another_member_is_found_when_the_likely_one_is_gone(tmp_path: pathlib.Path) -> None:
    (tmp_path / "8").mkdir()
    (tmp_path / "8" / "stat").write_text("8 (sleep) S 1 42 42 0")
    assert groups.living_member(42, 7, tmp_path) == 8
