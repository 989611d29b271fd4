"""What is due when."""

import datetime as dt

import pytest

from addon_operator.engine.bindings import schedules
from addon_operator.hook_contract import crontab

NOON = dt.datetime(2024, 5, 1, 12, 0, tzinfo=dt.UTC)


class Bench:
    def __init__(self) -> None:
        self.table = schedules.Timetable()
        self.called: list[str] = []

    def add(self, name: str, rhythm: crontab.Crontab, owner: str = "web") -> None:
        self.table.add(owner, rhythm, lambda: self.called.append(name), NOON)

    def at(self, seconds: float) -> list[str]:
        """Who is due so many seconds after noon."""
        for due in self.table.take_due(NOON + dt.timedelta(seconds=seconds)):
            due()
        found, self.called = self.called, []
        return found


@pytest.fixture
def bench() -> Bench:
    return Bench()


def test_nothing_is_due_before_its_first_moment(bench: Bench) -> None:
    bench.add("minute", crontab.parse("* * * * *"))
    assert bench.table.next == NOON + dt.timedelta(minutes=1)
    assert bench.at(59.9) == []
    assert bench.at(60) == ["minute"]
    assert bench.at(60) == []


def test_what_is_due_together_comes_in_the_order_it_was_added(bench: Bench) -> None:
    for name in "cab":
        bench.add(name, crontab.parse("*/10 * * * * *"))
    assert bench.at(10) == ["c", "a", "b"]
    assert bench.at(20) == ["c", "a", "b"]


def test_what_is_due_earlier_comes_first(bench: Bench) -> None:
    bench.add("late", crontab.parse("@every 20s"))
    bench.add("early", crontab.parse("@every 15s"))
    assert bench.at(25) == ["early", "late"]


def test_missed_moments_are_made_up_for_by_one(bench: Bench) -> None:
    bench.add("second", crontab.parse("* * * * * *"))
    assert bench.at(100) == ["second"]
    assert bench.at(100.5) == []
    assert bench.at(101) == ["second"]


@pytest.mark.parametrize("rhythm", [crontab.parse("@every 10s"), crontab.every(10.0)], ids=["cron", "period"])
def test_equal_steps_do_not_drift(bench: Bench, rhythm: crontab.Crontab) -> None:
    bench.add("ten", rhythm)
    assert bench.at(10.4) == ["ten"]
    assert bench.at(19.9) == []
    assert bench.at(20) == ["ten"]
    assert bench.at(47) == ["ten"]
    assert bench.at(49.9) == []
    assert bench.at(50.1) == ["ten"]


def test_an_owner_takes_its_entries_along(bench: Bench) -> None:
    bench.add("web", crontab.parse("@every 10s"), "web")
    bench.add("db", crontab.parse("@every 10s"), "db")
    bench.table.remove("web")
    bench.table.remove("unknown")
    assert bench.at(10) == ["db"]


def test_an_empty_table_has_no_next_moment(bench: Bench) -> None:
    bench.add("web", crontab.parse("@hourly"))
    bench.table.remove("web")
    assert bench.table.next is None


def test_a_restart_forgets_what_was_missed(bench: Bench) -> None:
    bench.add("ten", crontab.every(10.0))
    bench.table.restart(NOON + dt.timedelta(seconds=25))
    assert bench.at(34) == []
    assert bench.at(35) == ["ten"]


# In Berlin the clocks go from 2:00 to 3:00 on 31 March and from 3:00 back to 2:00 on 27 October 2024.
SPRING = dt.datetime(2024, 3, 30, 12, 0, tzinfo=dt.UTC)
AUTUMN = dt.datetime(2024, 10, 26, 12, 0, tzinfo=dt.UTC)


def ticks(text: str, start: dt.datetime, hours: int) -> list[str]:
    """The moments within so many hours, in UTC."""
    table = schedules.Timetable()
    table.add("web", crontab.parse(text, "Europe/Berlin"), lambda: None, start)
    found = []
    while (moment := table.next) is not None and moment <= start + dt.timedelta(hours=hours):
        found += [f"{moment:%d %H:%M}" for _ in table.take_due(moment)]
    return found


@pytest.mark.parametrize(
    ("text", "start", "expected"),
    [
        ("0 4 * * *", SPRING, ["31 02:00", "01 02:00"]),
        ("0 4 * * *", AUTUMN, ["27 03:00", "28 03:00"]),
        ("0 1 * * *", SPRING, ["31 00:00", "31 23:00"]),
        ("0 0 * * *", AUTUMN, ["26 22:00", "27 23:00"]),
    ],
    ids=["spring", "autumn", "the night of spring", "the night of autumn"],
)
def test_a_daily_tick_keeps_to_the_clock_on_the_wall(
    text: str, start: dt.datetime, expected: list[str]
) -> None:
    assert ticks(text, start, 44) == expected


@pytest.mark.parametrize("start", [SPRING, AUTUMN], ids=["spring", "autumn"])
def test_an_hourly_tick_comes_every_hour_when_the_clocks_change(start: dt.datetime) -> None:
    assert len(ticks("0 * * * *", start, 24)) == 24
