"""The level of the log is changed while the operator runs, and changed back."""

import pytest

from addon_operator.debug import runtime_config
from tests.support import rows, timers


class Bench:
    def __init__(self, level: str = "info") -> None:
        self.now = 0.0
        self.timers = timers.Timers()
        self.levels: list[str] = []
        self.config = runtime_config.RuntimeConfig(
            level, self.timers.call_later, clock=self, set_level=self.levels.append
        )

    def monotonic(self) -> float:
        return self.now

    def time(self) -> float:
        return self.now


def test_a_level_is_set_for_good() -> None:
    bench = Bench()
    row = bench.config.set("log.level", "error")
    assert bench.levels == ["error"]
    assert (row["value"], row["default"], row["expiresIn"]) == ("error", "info", None)
    assert bench.timers == []


def test_a_level_for_a_time_ends_with_the_level_of_the_settings() -> None:
    bench = Bench()
    bench.config.set("log.level", "debug", 10.0)
    bench.now = 4.0
    assert bench.config.rows()[0]["expiresIn"] == 6.0
    (timer,) = bench.timers
    assert timer.seconds == 10.0
    timer.call()
    assert bench.levels == ["debug", "info"]
    assert bench.config.rows()[0]["expiresIn"] is None


def test_debug_without_a_time_lasts_half_an_hour() -> None:
    bench = Bench()
    bench.config.set("log.level", "debug")
    assert [timer.seconds for timer in bench.timers] == [1800.0]


def test_debug_stays_if_the_settings_say_debug() -> None:
    bench = Bench("debug")
    bench.config.set("log.level", "debug")
    assert bench.timers == []


def test_a_new_level_makes_the_end_of_the_one_before_void() -> None:
    bench = Bench()
    bench.config.set("log.level", "debug", 10.0)
    bench.config.set("log.level", "warn")
    assert bench.timers[0].is_cancelled
    assert bench.config.rows()[0]["expiresIn"] is None


@rows.each(("written", "level"), [("WARNING", "warn"), (" Info ", "info")])
def test_levels_are_read_like_the_setting(written: str, level: str) -> None:
    assert Bench().config.set("log.level", written)["value"] == level


def test_a_wrong_level_changes_nothing_and_names_the_levels() -> None:
    bench = Bench()
    with pytest.raises(
        runtime_config.RuntimeConfigError, match="'loud' is not a level; give one of debug, info"
    ):
        bench.config.set("log.level", "loud")
    assert bench.levels == []


@rows.each(("name", "hint"), [("log.levle", "did you mean 'log.level'"), ("zzz", "there is 'log.level'")])
def test_an_unknown_parameter_is_reported_with_the_one_that_there_is(name: str, hint: str) -> None:
    with pytest.raises(runtime_config.RuntimeConfigError, match=hint):
        Bench().config.set(name, "info")
