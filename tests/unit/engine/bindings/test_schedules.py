"""Ticks of schedules: at the time on the wall, never piled up, and made up for by one."""

import datetime as dt

from addon_operator.engine.bindings import schedules
from addon_operator.hook_contract import crontab
from tests.support import clocks, engine, rows

# In Berlin the clocks go from 2:00 to 3:00 on 31 March and from 3:00 back to 2:00 on 27 October 2024.
SPRING = dt.datetime(2024, 3, 30, 12, 0, tzinfo=dt.UTC)
AUTUMN = dt.datetime(2024, 10, 26, 12, 0, tzinfo=dt.UTC)


class Ticks:
    """Schedules that were opened at noon, and who ticked."""

    def __init__(self, noon: dt.datetime = SPRING, *, opened: bool = True) -> None:
        self.clock, self._begin = clocks.Clock(), noon.timestamp()
        self.clock.now = self._begin
        self.schedules = schedules.Schedules(self.clock)
        self._called: list[str] = []
        if opened:
            self.schedules.open()

    def add(self, name: str, text: str, zone: str = "UTC") -> None:
        self.schedules.add(name, crontab.parse(text, zone), lambda: self._called.append(name))

    def at(self, seconds: float) -> list[str]:
        """Who has ticked by so many seconds after noon."""
        self.clock.now = self._begin + seconds
        self.schedules.tick()
        found, self._called = self._called, []
        return found


@rows.each(
    ("text", "moments", "ticking"),
    [
        ("* * * * *", [59.9, 60, 60, 119.9, 120], [60, 120]),
        ("*/10 * * * * *", [9, 10, 20], [10, 20]),
        ("* * * * * *", [100, 100.5, 101], [100, 101]),
        ("@every 10s", [10.4, 19.9, 20, 47, 49.9, 50.1], [10.4, 20, 47, 50.1]),
    ],
    ids=["minutes", "seconds first", "missed ones are made up for by one", "equal steps do not drift"],
)
def test_a_rhythm_ticks_once_at_each_of_its_moments(
    text: str, moments: list[float], ticking: list[float]
) -> None:
    ticks = Ticks()
    ticks.add("it", text)
    assert [moment for moment in moments if ticks.at(moment)] == ticking


def test_what_is_due_earlier_comes_first_and_together_in_the_order_in_which_it_was_added() -> None:
    ticks = Ticks()
    for name, text in (("late", "@every 20s"), ("c", "@every 15s"), ("a", "@every 15s")):
        ticks.add(name, text)
    assert ticks.at(25) == ["c", "a", "late"]


def test_nothing_ticks_before_the_schedules_are_opened_and_nothing_is_made_up_for() -> None:
    ticks = Ticks(opened=False)
    ticks.add("a", "@every 10s")
    assert ticks.at(25) == []
    ticks.schedules.open()
    assert ticks.at(34) == []
    ticks.schedules.open()
    assert ticks.at(35) == ["a"]


def test_what_is_added_later_begins_then_and_what_is_removed_ends() -> None:
    ticks = Ticks()
    ticks.add("gone", "@every 10s")
    ticks.at(4)
    ticks.add("late", "@every 10s")
    ticks.schedules.remove("gone")
    ticks.schedules.remove("unknown")
    assert ticks.at(10) == []
    assert ticks.at(14) == ["late"]


def test_a_clock_that_is_set_back_makes_nothing_tick_twice() -> None:
    ticks = Ticks()
    ticks.add("a", "@every 10s")
    assert [ticks.at(moment) for moment in (10, 5, 10, 20)] == [["a"], [], [], ["a"]]


@rows.each(
    ("text", "noon", "expected"),
    [
        ("0 4 * * *", SPRING, ["31 02:00", "01 02:00"]),
        ("0 4 * * *", AUTUMN, ["27 03:00", "28 03:00"]),
        ("0 1 * * *", SPRING, ["31 00:00", "31 23:00"]),
        ("0 0 * * *", AUTUMN, ["26 22:00", "27 23:00"]),
    ],
    ids=["spring", "autumn", "the night of spring", "the night of autumn"],
)
def test_a_daily_tick_keeps_to_the_clock_on_the_wall(
    text: str, noon: dt.datetime, expected: list[str]
) -> None:
    ticks = Ticks(noon)
    ticks.add("it", text, "Europe/Berlin")
    found = [noon + dt.timedelta(minutes=30 * step) for step in range(88) if ticks.at(1800 * step)]
    assert [f"{moment:%d %H:%M}" for moment in found] == expected


@rows.each("noon", [SPRING, AUTUMN], ids=["spring", "autumn"])
def test_an_hourly_tick_comes_every_hour_when_the_clocks_change(noon: dt.datetime) -> None:
    ticks = Ticks(noon)
    ticks.add("it", "0 * * * *", "Europe/Berlin")
    assert [hour for hour in range(25) if ticks.at(3600 * hour)] == list(range(1, 25))


# Hooks.


def every_minute(*names: str) -> dict[str, object]:
    return {"schedule": [{"name": name, "crontab": "* * * * *"} for name in names]}


async def test_schedules_tick_after_the_first_converge(op: engine.Operator) -> None:
    op.hook("a.sh", every_minute("often"))
    waiting = op.hook("web/b.sh", {"beforeHelm": 1})
    waiting.hold()
    await op.start()
    await op.advance(20)
    assert op.told == ["b.sh: beforeHelm"]
    await waiting.release()
    await op.advance(120)
    assert op.told == ["a.sh: often Schedule"] * 2


async def test_a_tick_that_comes_while_the_one_before_waits_is_not_queued_again(op: engine.Operator) -> None:
    hook = op.hook("a.sh", every_minute("often", "too"))
    await op.start()
    hook.hold()
    await op.advance(60)
    assert op.told == ["a.sh: often Schedule, too Schedule"]
    await op.advance(180)
    await hook.release()
    assert op.told == ["a.sh: often Schedule, too Schedule"]


async def test_a_tick_that_waits_behind_another_hook_is_not_queued_again(op: engine.Operator) -> None:
    other = op.hook("b.sh", every_minute("first"))
    op.hook("c.sh", every_minute("often"))
    await op.start()
    other.hold()
    await op.advance(240)
    await other.release()
    assert op.told == ["b.sh: first Schedule", "c.sh: often Schedule", "b.sh: first Schedule"]
