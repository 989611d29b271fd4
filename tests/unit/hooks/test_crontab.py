"""When schedules tick."""

import datetime as dt

import pytest

from addon_operator.hooks import crontab

START = dt.datetime(2026, 1, 1, 0, 0, 30, tzinfo=dt.UTC)


def next_of(text: str, timezone: str | None = None, after: dt.datetime = START) -> str:
    return crontab.parse(text, timezone).next_after(after).isoformat()


@pytest.mark.parametrize(
    ("text", "tick"),
    [
        pytest.param("* * * * *", "2026-01-01T00:01:00+00:00", id="5 fields"),
        pytest.param("*/5 * * * * *", "2026-01-01T00:00:35+00:00", id="6 fields, seconds first"),
        pytest.param("10 0 3 * * *", "2026-01-01T03:00:10+00:00", id="a second of a minute of an hour"),
        pytest.param("30 4 1,15 * *", "2026-01-01T04:30:00+00:00", id="a list"),
        pytest.param("0 9-17/4 * * *", "2026-01-01T09:00:00+00:00", id="a range with steps"),
        pytest.param("0 0 1 feb *", "2026-02-01T00:00:00+00:00", id="a month by name"),
        pytest.param("0 0 * * MON", "2026-01-05T00:00:00+00:00", id="a day by name"),
        pytest.param("0 0 ? * 1", "2026-01-05T00:00:00+00:00", id="a question mark"),
        pytest.param("? ? * * *", "2026-01-01T00:01:00+00:00", id="a question mark anywhere"),
        pytest.param("0 0 29 2 *", "2028-02-29T00:00:00+00:00", id="a leap day"),
        pytest.param("@hourly", "2026-01-01T01:00:00+00:00", id="hourly"),
        pytest.param("@daily", "2026-01-02T00:00:00+00:00", id="daily"),
        pytest.param("@midnight", "2026-01-02T00:00:00+00:00", id="midnight"),
        pytest.param("@weekly", "2026-01-04T00:00:00+00:00", id="weekly"),
        pytest.param("@monthly", "2026-02-01T00:00:00+00:00", id="monthly"),
        pytest.param("@yearly", "2027-01-01T00:00:00+00:00", id="yearly"),
        pytest.param("@annually", "2027-01-01T00:00:00+00:00", id="annually"),
        pytest.param("@every 30s", "2026-01-01T00:01:00+00:00", id="every"),
        pytest.param("@every 1h30m", "2026-01-01T01:30:30+00:00", id="every, of two units"),
        pytest.param("@every 10ms", "2026-01-01T00:00:31+00:00", id="every, at most once a second"),
        pytest.param("  @hourly ", "2026-01-01T01:00:00+00:00", id="spaces around"),
    ],
)
def test_the_next_tick(text: str, tick: str) -> None:
    assert next_of(text) == tick


def test_ticks_follow_one_another() -> None:
    tab = crontab.parse("0 */20 * * * *")
    first = tab.next_after(START)
    assert [first, tab.next_after(first)] == [
        dt.datetime(2026, 1, 1, 0, minute, tzinfo=dt.UTC) for minute in (20, 40)
    ]


@pytest.mark.parametrize(
    ("text", "timezone"),
    [("0 6 * * *", "Europe/Berlin"), ("TZ=Europe/Berlin 0 6 * * *", None),
     ("CRON_TZ=Europe/Berlin 0 6 * * *", "Europe/Berlin")],
)  # fmt: skip
def test_fields_are_read_on_the_clock_of_the_time_zone(text: str, timezone: str | None) -> None:
    assert next_of(text, timezone) == "2026-01-01T05:00:00+00:00"
    summer = dt.datetime(2026, 7, 1, tzinfo=dt.UTC)
    assert next_of(text, timezone, after=summer) == "2026-07-01T04:00:00+00:00"


@pytest.mark.parametrize(
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


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        pytest.param("* * * *", "has 4 fields; write 5", id="4 fields"),
        pytest.param("* * * * * * *", "has 7 fields; write 5", id="7 fields: a year"),
        pytest.param("hourly", "has 1 field; write 5", id="one word"),
        pytest.param("", "has 0 fields", id="nothing"),
        pytest.param("60 * * * *", "is no crontab: .*out of range", id="minute 60"),
        pytest.param("*/0 * * * *", "is no crontab", id="step 0"),
        pytest.param("0 0 31 2 *", "names a time that never comes", id="31 February"),
        pytest.param("0 0 L * *", "the field 'L' is no list", id="last day"),
        pytest.param("0 0 * * 1#2", "the field '1#2' is no list", id="second Monday"),
        pytest.param("H * * * *", "the field 'H' is no list", id="hashed"),
        pytest.param("R * * * *", "the field 'R' is no list", id="random"),
        pytest.param("0 0 15W * *", "the field '15W' is no list", id="weekday"),
        pytest.param("0 0 1 foo *", "is no crontab", id="no month"),
        pytest.param("@reboot", "is no descriptor; known are .*@hourly", id="reboot"),
        pytest.param("@every", "needs a period", id="every without period"),
        pytest.param("@every 30", "needs a period .*no unit", id="every without unit"),
        pytest.param("@every 0s", "needs a period longer than 0", id="every 0"),
        pytest.param("@every -1m", "needs a period longer than 0", id="every, backwards"),
        pytest.param("TZ=Mars/Olympus * * * * *", "'Mars/Olympus' is no time zone", id="no time zone"),
        pytest.param("TZ=../../etc/passwd * * * * *", "is no time zone", id="a path"),
    ],
)
def test_what_is_no_crontab_is_refused_with_the_reason(text: str, reason: str) -> None:
    with pytest.raises(crontab.CrontabError, match=reason) as caught:
        crontab.parse(text)
    assert "\n" not in str(caught.value)


def test_two_different_time_zones_are_refused() -> None:
    with pytest.raises(crontab.CrontabError, match="another time zone"):
        crontab.parse("TZ=UTC @hourly", "Europe/Berlin")
