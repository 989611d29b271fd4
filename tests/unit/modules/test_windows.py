"""Windows open when their crontab says so, and stay open for their duration."""

import datetime as dt

import pytest

from addon_operator.modules import windows
from tests.support import rows

NIGHTS = {"schedule": "0 22 * * 1-5", "duration": "4h", "timezone": "Europe/Berlin"}


def at(text: str) -> dt.datetime:
    return dt.datetime.fromisoformat(text)


@rows.each(
    ("moment", "is_open"),
    [
        ("2026-11-23T21:59:59+01:00", False),
        ("2026-11-23T22:00:00+01:00", True),
        ("2026-11-24T01:59:59+01:00", True),
        ("2026-11-24T02:00:00+01:00", False),
        ("2026-11-28T01:00:00+01:00", True),
        ("2026-11-28T23:00:00+01:00", False),
        ("2026-07-01T22:30:00+02:00", True),
        ("2026-07-01T20:30:00+00:00", True),
        ("2026-07-01T19:30:00+00:00", False),
    ],
    ids=[
        "a second before",
        "as it opens",
        "a second before it closes",
        "as it closes",
        "past midnight on the day after the last",
        "on a day that is not named",
        "in summer",
        "by another clock",
        "too early by another clock",
    ],
)
def test_a_window_is_open_from_its_schedule_on_for_its_duration(moment: str, is_open: bool) -> None:
    assert windows.parse([NIGHTS]).is_open(at(moment)) is is_open


def test_without_windows_nothing_has_to_wait() -> None:
    none = windows.parse([])
    assert none.is_open(at("2026-11-23T12:00:00+00:00"))
    assert none.next_opening(at("2026-11-23T12:00:00+00:00")) is None


def test_what_has_to_wait_waits_for_the_first_of_all_windows() -> None:
    both = windows.parse([NIGHTS, {"schedule": "30 13 * * *", "duration": "30m"}])
    assert both.next_opening(at("2026-11-23T12:00:00+00:00")) == at("2026-11-23T13:30:00+00:00")
    assert both.next_opening(at("2026-11-23T14:00:00+00:00")) == at("2026-11-23T21:00:00+00:00")
    assert both.next_opening(at("2026-11-23T13:45:00+00:00")) is None


def test_the_clocks_change_within_a_window() -> None:
    (night,) = windows.parse([{**NIGHTS, "schedule": "0 1 * * *"}]).windows
    opened = at("2026-03-29T01:00:00+01:00")
    assert night.is_open(opened + dt.timedelta(hours=3.9)), "4 h are 4 h, whatever the clock shows"
    assert not night.is_open(opened + dt.timedelta(hours=4))


@rows.each(
    ("window", "told"),
    [
        ({**NIGHTS, "timezone": "Berlin"}, "'Berlin' is not a time zone; write an IANA name"),
        ({**NIGHTS, "schedule": "0 22 31 2 *"}, "names a time that never comes"),
        ({**NIGHTS, "schedule": "22:00"}, "has 1 field; write 5"),
        ({**NIGHTS, "schedule": "@every 1h"}, "is not bound to a clock"),
        ({**NIGHTS, "duration": "0s"}, "is no time at all; write one such as 4h"),
        ({**NIGHTS, "duration": "four hours"}, "duration: "),
    ],
    ids=["a zone that is none", "never", "no crontab", "a period", "no duration", "a duration in words"],
)
def test_a_wrong_window_is_an_error_that_says_which_and_why(window: dict[str, str], told: str) -> None:
    with pytest.raises(windows.WindowError) as raised:
        windows.parse([NIGHTS, window])
    assert str(raised.value).startswith("windows[1]: ")
    assert told in str(raised.value)


def test_too_many_windows_are_refused() -> None:
    with pytest.raises(windows.WindowError, match="51 windows, and 50 may be"):
        windows.parse([NIGHTS] * 51)
