"""Durations in Go's notation."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from addon_operator.kernel import clock, errors
from tests.support import rows

SECONDS = [
    ("0", 0.0),
    ("-0", 0.0),
    ("5s", 5.0),
    ("30m", 1800.0),
    ("1h30m", 5400.0),
    ("1h15m30.918s", 4530.918),
    ("-1.5h", -5400.0),
    ("+2ms", 0.002),
    (".5s", 0.5),
    ("1.s", 1.0),
    ("3us", 3e-6),
    ("3µs", 3e-6),
    ("3μs", 3e-6),
    ("7ns", 7e-9),
    ("1m1m", 120.0),
    ("2562047h47m16s", 9223372036.0),
]


def test_a_go_duration_is_a_number_of_seconds() -> None:
    parsed = {text: clock.parse_duration(text) for text, _ in SECONDS}
    assert parsed == pytest.approx(dict(SECONDS), rel=1e-15)


REFUSED = [
    ("", "invalid duration"),
    ("-", "invalid duration"),
    ("30", "add a unit"),
    ("1h30", "add a unit"),
    ("1d", "'d' is not a unit"),
    ("1H", "'H' is not a unit"),
    ("1 s", "add a unit"),
    ("s", "invalid duration"),
    (".s", "invalid duration"),
    ("1s ", "invalid duration"),
    ("--1s", "invalid duration"),
    ("1e3s", "'e' is not a unit"),
    ("٣s", "invalid duration"),
    ("inf", "invalid duration"),
    ("2562048h", "292 years"),
    ("9" * 200 + "s", "too long"),
]


def refusal(text: str) -> str:
    with pytest.raises(clock.DurationError) as refused:
        clock.parse_duration(text)
    assert isinstance(refused.value, errors.ConfigurationError)
    return str(refused.value)


def test_what_go_refuses_is_refused_with_one_sentence() -> None:
    told = [(text, complaint, refusal(text)) for text, complaint in REFUSED]
    assert [row for row in told if row[1] not in row[2] or "\n" in row[2]] == []


TEXTS = [
    (0, "0s"),
    (1200, "20m"),
    (25, "25s"),
    (5400.5, "1h30m0.5s"),
    (3601, "1h0m1s"),
    (3600, "1h"),
    (0.25, "250ms"),
    (1.5e-6, "1.5us"),
    (7e-9, "7ns"),
    (-90, "-1m30s"),
]


def test_seconds_are_written_as_a_short_go_duration() -> None:
    assert {seconds: clock.duration_text(seconds) for seconds, _ in TEXTS} == dict(TEXTS)


@rows.each("seconds", [float("nan"), float("inf")])
def test_what_is_not_finite_has_no_text(seconds: float) -> None:
    with pytest.raises(ValueError, match="not a duration"):
        clock.duration_text(seconds)


@given(st.integers(min_value=-(10**15), max_value=10**15))
def test_the_text_of_a_duration_is_read_back_as_the_same_number(microseconds: int) -> None:
    seconds = microseconds / 1e6
    assert clock.parse_duration(clock.duration_text(seconds)) == pytest.approx(seconds, abs=1e-6)


@given(st.text())
def test_any_text_is_either_read_or_refused(text: str) -> None:
    try:
        clock.parse_duration(text)
    except clock.DurationError:
        return
    assert text.lstrip("+-")[:1] in set("0123456789.")
