"""When schedules tick."""

import datetime as dt
import re

import pytest

from addon_operator.hook_contract import crontab
from tests.support import rows

START = dt.datetime(2026, 1, 1, 0, 0, 30, tzinfo=dt.UTC)


def next_of(text: str, timezone: str | None = None, after: dt.datetime = START) -> str:
    return crontab.parse(text, timezone).next_after(after).isoformat()


TICKS = [
    ("* * * * *", "2026-01-01T00:01:00+00:00"),
    ("*/5 * * * * *", "2026-01-01T00:00:35+00:00"),
    ("10 0 3 * * *", "2026-01-01T03:00:10+00:00"),
    ("30 4 1,15 * *", "2026-01-01T04:30:00+00:00"),
    ("0 9-17/4 * * *", "2026-01-01T09:00:00+00:00"),
    ("0 0 1 feb *", "2026-02-01T00:00:00+00:00"),
    ("0 0 * * MON", "2026-01-05T00:00:00+00:00"),
    ("0 0 ? * 1", "2026-01-05T00:00:00+00:00"),
    ("? ? * * *", "2026-01-01T00:01:00+00:00"),
    ("0 0 29 2 *", "2028-02-29T00:00:00+00:00"),
    ("@hourly", "2026-01-01T01:00:00+00:00"),
    ("@daily", "2026-01-02T00:00:00+00:00"),
    ("@midnight", "2026-01-02T00:00:00+00:00"),
    ("@weekly", "2026-01-04T00:00:00+00:00"),
    ("@monthly", "2026-02-01T00:00:00+00:00"),
    ("@yearly", "2027-01-01T00:00:00+00:00"),
    ("@annually", "2027-01-01T00:00:00+00:00"),
    ("@every 30s", "2026-01-01T00:01:00+00:00"),
    ("@every 1h30m", "2026-01-01T01:30:30+00:00"),
    ("@every 10ms", "2026-01-01T00:00:31+00:00"),
    ("  @hourly ", "2026-01-01T01:00:00+00:00"),
]


def test_the_next_tick() -> None:
    assert {text: next_of(text) for text, _ in TICKS} == dict(TICKS)


def test_ticks_follow_one_another() -> None:
    tab = crontab.parse("0 */20 * * * *")
    first = tab.next_after(START)
    assert [first, tab.next_after(first)] == [
        dt.datetime(2026, 1, 1, 0, minute, tzinfo=dt.UTC) for minute in (20, 40)
    ]


@rows.each(
    ("text", "timezone"),
    [("0 6 * * *", "Europe/Berlin"), ("TZ=Europe/Berlin 0 6 * * *", None),
     ("CRON_TZ=Europe/Berlin 0 6 * * *", "Europe/Berlin")],
)  # fmt: skip
def test_fields_are_read_on_the_clock_of_the_time_zone(text: str, timezone: str | None) -> None:
    assert next_of(text, timezone) == "2026-01-01T05:00:00+00:00"
    summer = dt.datetime(2026, 7, 1, tzinfo=dt.UTC)
    assert next_of(text, timezone, after=summer) == "2026-07-01T04:00:00+00:00"


@rows.each(
    ("after", "ticks"),
    [
        pytest.param(
            dt.datetime(2026, 3, 28, 22, tzinfo=dt.UTC),
            ["2026-03-28T23:00:00+00:00", "2026-03-29T22:00:00+00:00"],
            id="a day of 23 hours",
        ),
        pytest.param(
            dt.datetime(2026, 10, 24, 21, tzinfo=dt.UTC),
            ["2026-10-24T22:00:00+00:00", "2026-10-25T23:00:00+00:00"],
            id="a day of 25 hours",
        ),
    ],
)
def test_a_daily_schedule_keeps_its_hour_when_the_clocks_change(after: dt.datetime, ticks: list[str]) -> None:
    tab = crontab.parse("@daily", "Europe/Berlin")
    first = tab.next_after(after)
    assert [first.isoformat(), tab.next_after(first).isoformat()] == ticks


def ticks_of(text: str, timezone: str, after: str, count: int) -> list[str]:
    tab, moment = crontab.parse(text, timezone), dt.datetime.fromisoformat(after)
    found: list[str] = []
    for _ in range(count):
        moment = tab.next_after(moment)
        found.append(moment.strftime("%m-%d %H:%M"))
    return found


SPRING, AUTUMN = "2026-03-28T22:50+00:00", "2026-10-24T22:50+00:00"
CHANGING_CLOCKS = [
    ("30 2 * * *", "Europe/Berlin", SPRING, ["03-29 01:00", "03-30 00:30"]),
    ("*/20 2-3 * * *", "Europe/Berlin", SPRING, ["03-29 01:00", "03-29 01:20", "03-29 01:40", "03-30 00:00"]),
    ("0 * * * *", "Europe/Berlin", SPRING, ["03-28 23:00", "03-29 00:00", "03-29 01:00", "03-29 02:00"]),
    ("30 2 * * *", "Europe/Berlin", AUTUMN, ["10-25 00:30", "10-26 01:30"]),
    ("*/30 2 * * *", "Europe/Berlin", AUTUMN, ["10-25 00:00", "10-25 00:30", "10-26 01:00"]),
    ("0 * * * *", "Europe/Berlin", AUTUMN, ["10-24 23:00", "10-25 00:00", "10-25 01:00", "10-25 02:00"]),
    ("*/30 0-23 * * *", "Europe/Berlin", AUTUMN, ["10-24 23:00", "10-24 23:30", "10-25 00:00", "10-25 00:30",
                                                  "10-25 01:00"]),
    ("@daily", "America/Havana", "2026-10-31T12:00+00:00", ["11-01 04:00", "11-02 05:00"]),
    ("15 2 * * *", "Australia/Lord_Howe", "2026-10-03T00:50+00:00", ["10-03 15:30", "10-04 15:15"]),
    ("45 1 * * *", "Australia/Lord_Howe", "2026-04-04T00:50+00:00", ["04-04 14:45", "04-05 15:15"]),
]  # fmt: skip


def test_a_time_that_the_clocks_skip_ticks_after_the_gap_and_one_that_comes_twice_once() -> None:
    found = [
        (text, zone, after, ticks_of(text, zone, after, len(ticks)))
        for text, zone, after, ticks in CHANGING_CLOCKS
    ]
    assert found == CHANGING_CLOCKS


NOT_PORTABLE = {
    "0 0 * * 5-1": ["the Go operator refuses '5-1', which wraps; write two ranges"],
    "0 22-4/2 * nov-feb *": [
        "the Go operator refuses '22-4/2', which wraps; write two ranges",
        "the Go operator refuses 'nov-feb', which wraps; write two ranges",
    ],
    "0 0 0 * * fri-mon,3": ["the Go operator refuses 'fri-mon', which wraps; write two ranges"],
    "TZ=Europe/Berlin 0 0 * * 1,7": ["the Go operator refuses '7', where 7 is Sunday; write 0"],
    "0 0 * * 5-7": ["the Go operator refuses '5-7', where 7 is Sunday; write 0"],
    "7 7 7 7 1-5": [],
    "*/7 9-17 ? jan-feb sun": [],
    "@every 7m": [],
}


def test_what_only_some_readers_of_crontabs_take_is_told() -> None:
    assert {text: [*crontab.not_portable(text)] for text in NOT_PORTABLE} == NOT_PORTABLE


REFUSED = [
    ("* * * *", "has 4 fields; write 5"),
    ("* * * * * * *", "has 7 fields; write 5"),
    ("hourly", "has 1 field; write 5"),
    ("", "has 0 fields"),
    ("60 * * * *", "is not a crontab: a field is out of range; write minute 0-59, hour 0-23"),
    ("0 22 * * 1-9", "is not a crontab: a field is out of range; .*day of week 0-7"),
    ("*/0 * * * *", "is not a crontab: a field is out of range; .*steps from 1"),
    ("0 0 31 2 *", "names a time that never comes"),
    ("0 0 L * *", "the field 'L' is not a list"),
    ("0 0 * * 1#2", "the field '1#2' is not a list"),
    ("H * * * *", "the field 'H' is not a list"),
    ("R * * * *", "the field 'R' is not a list"),
    ("0 0 15W * *", "the field '15W' is not a list"),
    ("0 0 1 foo *", "is not a crontab"),
    ("@reboot", "is not a descriptor; known are .*@hourly"),
    ("@every", "needs a period"),
    ("@every 30", "needs a period .*add a unit"),
    ("@every 0s", "needs a period longer than 0"),
    ("@every -1m", "needs a period longer than 0"),
    ("TZ=Mars/Olympus * * * * *", "'Mars/Olympus' is not a time zone"),
    ("TZ=../../etc/passwd * * * * *", "is not a time zone"),
]


def refusal(text: str) -> str:
    with pytest.raises(crontab.CrontabError) as caught:
        crontab.parse(text)
    return str(caught.value)


def test_what_is_not_a_crontab_is_refused_with_the_reason() -> None:
    told = [(text, reason, refusal(text)) for text, reason in REFUSED]
    assert [row for row in told if not re.search(row[1], row[2]) or "\n" in row[2]] == []


def test_two_different_time_zones_are_refused() -> None:
    with pytest.raises(crontab.CrontabError, match="another time zone"):
        crontab.parse("TZ=UTC @hourly", "Europe/Berlin")


def test_a_time_zone_of_many_parts_is_refused() -> None:
    with pytest.raises(crontab.CrontabError, match="is not a time zone") as caught:
        crontab.check_timezone("a/" * 3000)
    assert len(str(caught.value)) < 300


def test_a_crontab_that_takes_long_to_read_is_refused() -> None:
    with pytest.raises(crontab.CrontabError, match="it has 2009 characters, and may have 1000"):
        crontab.parse(",".join(["1"] * 1001) + " * * * *")
