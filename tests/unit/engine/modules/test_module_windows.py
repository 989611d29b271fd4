"""What waits for a window is remembered, and done when the window opens."""

import datetime as dt
import pathlib

from addon_operator.engine import events, intents, module_states, state
from addon_operator.engine.modules import module_windows
from addon_operator.kernel.names import ModuleName
from addon_operator.modules import model, module_config, windows
from tests.support import clocks, rows, timers
from tests.unit.engine import fakes

WEB, DB, LEFT = ModuleName("web"), ModuleName("db"), ModuleName("left")
MIDNIGHT = dt.datetime(2026, 11, 24, tzinfo=dt.UTC).timestamp()
HOUR = 3600.0
NIGHTS = windows.parse([{"schedule": "0 22 * * *", "duration": "4h"}])
NOON = windows.parse([{"schedule": "0 12 * * *", "duration": "1h"}])


class Bench:
    """web has windows of its own, db has those of the setting."""

    def __init__(self, default: windows.Windows | None = NIGHTS, own: windows.Windows | None = NOON) -> None:
        self.clock, self.timers, self.inbox, self.heard = (
            clocks.Clock(),
            timers.Timers(),
            fakes.Inbox(),
            fakes.Heard(),
        )
        self.clock.now = MIDNIGHT + 3 * HOUR
        web = model.Module(WEB, 20, pathlib.Path("web"), config=module_config.ModuleConfig(windows=own))
        self.states = module_states.ModuleStates(
            [web, model.Module(DB, 10, pathlib.Path("db"))], self.heard.append
        )
        self.states.enabled = (DB, WEB)
        self.windows = module_windows.ModuleWindows(
            self.states, self.inbox, self.heard.append, self.clock, default=default, timers=self.timers
        )

    def hold(self, name: ModuleName, *, is_removal: bool = False) -> None:
        until = self.windows.opening(name)
        assert until is not None
        self.windows.hold(name, windows.HeldBack("upgrade to revision 2", until, is_removal=is_removal))

    def pass_time(self, hours: float) -> None:
        """Let time pass, and the timers that are due go off."""
        end = self.clock.now + hours * HOUR
        while (timer := min(self.timers.running, key=lambda each: each.seconds, default=None)) is not None:
            if self.clock.now + timer.seconds > end:
                break
            self.clock.now += timer.seconds
            timer.cancel()
            timer.call()
        self.clock.now = end

    @property
    def runs(self) -> list[str]:
        return [each.module for each in self.inbox.put_in if isinstance(each, intents.RunWanted)]


@rows.each(
    ("default", "own", "opens"),
    [
        (NIGHTS, NOON, 12.0),
        (NIGHTS, None, 22.0),
        (NIGHTS, windows.Windows(), None),
        (None, NOON, 12.0),
        (None, None, None),
    ],
    ids=["both", "the setting", "an own list that is empty", "an own list", "none"],
)
def test_the_list_of_a_module_wins_over_that_of_the_setting(
    default: windows.Windows | None, own: windows.Windows | None, opens: float | None
) -> None:
    bench = Bench(default, own)
    assert bench.windows.opening(WEB) == (None if opens is None else MIDNIGHT + opens * HOUR)


def test_each_module_runs_when_its_own_window_opens() -> None:
    bench = Bench()
    bench.hold(WEB)
    bench.hold(DB)
    bench.pass_time(8)
    assert bench.runs == []
    bench.pass_time(1)
    assert bench.runs == ["web"]
    assert bench.inbox.put_in[0] == intents.RunWanted(WEB, "WindowOpened", at_once=True)
    bench.pass_time(10)
    assert bench.runs == ["web", "db"]


def test_modules_that_wait_for_the_same_window_run_in_their_order() -> None:
    bench = Bench(own=None)
    bench.hold(WEB)
    bench.hold(DB)
    bench.pass_time(19)
    assert bench.runs == ["db", "web"]


def test_a_release_without_a_module_that_waits_is_shown_and_forgotten_when_its_window_opens() -> None:
    bench = Bench()
    bench.hold(LEFT, is_removal=True)
    assert [event.module for event in bench.heard.of(events.HeldBack)] == ["left"]
    waits = "waits for a window, which opens at 2026-11-24T22:00:00Z"
    assert bench.windows.sentences == [f"release left {waits}: upgrade to revision 2"]
    bench.pass_time(19)
    assert bench.heard.of(events.HeldBack)[-1] == events.HeldBack(LEFT, None, has_module=False)
    assert bench.inbox.put_in == [intents.ConvergeWanted("WindowOpened")]


def test_one_timer_is_enough_and_it_looks_at_the_clock_every_hour_at_least() -> None:
    bench = Bench()
    bench.hold(DB)
    bench.hold(WEB)
    (timer,) = bench.timers.running
    assert timer.seconds == module_windows.LONGEST_SLEEP
    # Somebody sets the clock: the window is open already.
    bench.clock.now = MIDNIGHT + 12.5 * HOUR
    timer.cancel()
    timer.call()
    assert bench.runs == ["web"]


def test_what_has_been_done_is_not_done_again() -> None:
    bench = Bench()
    bench.hold(WEB)
    bench.windows.done(WEB)
    bench.windows.done(WEB)
    bench.pass_time(20)
    assert bench.runs == []
    assert [event.held for event in bench.heard.of(events.HeldBack)][1:] == [None]


def test_the_state_of_the_module_tells_what_waits_and_since_when() -> None:
    bench = Bench()
    bench.states[WEB].discovered = True
    bench.hold(WEB)
    began = bench.clock.now
    bench.clock.now += HOUR
    bench.windows.hold(WEB, windows.HeldBack("upgrade to revision 2: more", MIDNIGHT + 12 * HOUR))
    held = bench.states[WEB].held_back
    assert held is not None
    assert (held.what, held.since) == ("upgrade to revision 2: more", began)
    assert str(held) == (
        "waits for a window, which opens at 2026-11-24T12:00:00Z: upgrade to revision 2: more"
    )
    bench.hold(WEB, is_removal=True)
    held = bench.states[WEB].held_back
    assert held is not None
    assert held.since == bench.clock.now, "a removal is something else"
    assert len(bench.heard.of(state.ModuleChanged)) == 3


def test_after_a_restart_the_same_waits_since_the_same_time_until_the_window_opens() -> None:
    bench = Bench()
    before = windows.HeldBack("upgrade to revision 2", MIDNIGHT + HOUR, MIDNIGHT - HOUR)
    bench.states[WEB].held_back = before
    bench.windows.go_on()
    bench.hold(WEB)
    held = bench.states[WEB].held_back
    assert held == windows.HeldBack("upgrade to revision 2", MIDNIGHT + 12 * HOUR, MIDNIGHT - HOUR)
    bench.pass_time(10)
    assert bench.runs == ["web"]


def test_what_waited_before_a_restart_without_windows_does_not_wait_any_more() -> None:
    bench = Bench(None, None)
    bench.states[WEB].held_back = windows.HeldBack("upgrade to revision 2", MIDNIGHT + HOUR)
    bench.windows.go_on()
    assert bench.states[WEB].held_back is None
    assert bench.heard.of(events.HeldBack) == []


def test_what_nobody_wants_any_more_is_forgotten() -> None:
    bench = Bench()
    bench.hold(WEB)
    bench.hold(DB, is_removal=True)
    bench.hold(LEFT, is_removal=True)
    bench.windows.keep_only([WEB, DB], [LEFT])
    assert bench.windows.held(WEB) is not None
    assert bench.windows.held(DB) is None, "it is enabled again"
    assert bench.windows.held(LEFT) is not None
    bench.windows.keep_only([], [])
    assert bench.windows.held(WEB) is None
