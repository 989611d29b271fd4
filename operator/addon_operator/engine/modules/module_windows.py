"""What waits for a window: remembered, shown, and done when one opens.

Nobody holds a worker or looks again and again: a task that finds its window closed ends, and a timer goes off
at the next opening. What opens runs the modules whose upgrade waits; for removals, modules converge.
"""

import asyncio
import datetime as dt
import math
from collections.abc import Collection
from typing import Final

from msgspec import structs

from addon_operator.aio import waiting
from addon_operator.engine import events, intents, module_states
from addon_operator.kernel import clock as clocks
from addon_operator.kernel import names
from addon_operator.modules import windows

ACTIVATION: Final = "WindowOpened"
LONGEST_SLEEP: Final = 3600.0
"""Seconds until the clock is looked at again, which somebody may have set meanwhile."""


class ModuleWindows:
    """Says when what runs may be changed, and has done then what was held back."""

    def __init__(
        self,
        states: module_states.ModuleStates,
        inbox: intents.Inbox,
        tell: events.Listener,
        clock: clocks.Clock,
        *,
        default: windows.Windows | None = None,
        timers: waiting.Timers | None = None,
    ) -> None:
        """``default``: the windows of modules that have none of their own, and of releases without one."""
        self._states = states
        self._inbox = inbox
        self._tell = tell
        self._clock = clock
        self._default = default
        self._timers = timers
        self._timer: asyncio.TimerHandle | None = None
        self._held: dict[names.ModuleName, windows.HeldBack] = {}
        self._asked: set[names.ModuleName] = set()
        """Those of which it has been asked that what waits is done, since their window is open."""
        self._passes: set[names.ModuleName] = set()

    def opening(self, name: names.ModuleName) -> float | None:
        """Return when what runs of the module, or of the release without one, may be changed.

        In seconds since the epoch; ``None`` for now.
        """
        if name in self._passes:
            return None
        own = self._states[name].module.config.windows if name in self._states else None
        chosen = windows.chosen(own, self._default)
        opens = chosen.next_opening(dt.datetime.fromtimestamp(self._clock.time(), dt.UTC))
        return None if opens is None else opens.timestamp()

    @property
    def sentences(self) -> list[str]:
        """What waits of releases without a module."""
        return [f"release {name} {held}" for name, held in self._held.items() if name not in self._states]

    def held(self, name: names.ModuleName) -> windows.HeldBack | None:
        """Return what waits of the module, or of the release without one; ``None`` if nothing does."""
        return self._held.get(name)

    def hold(self, name: names.ModuleName, held: windows.HeldBack) -> None:
        """Remember what waits of a module, or of a release without one, and have it done in time."""
        before = self._held.get(name)
        is_same = before is not None and before.is_removal is held.is_removal
        since = before.since if before is not None and is_same else self._clock.time()
        self._take(name, structs.replace(held, since=since))
        self._arm()

    def go_on(self) -> None:
        """Go on holding back what the states of modules have of an operator before this one."""
        for state in self._states:
            name, held = state.module.name, state.held_back
            opens = self.opening(name)
            if held is not None and opens is not None:
                self._take(name, structs.replace(held, until=opens))
            else:
                state.held_back = None
        self._arm()

    def done(self, name: names.ModuleName) -> None:
        """Note that nothing of it waits any more."""
        if name in self._held:
            self._take(name, None)

    def keep_only(self, enabled: Collection[str], removed: Collection[str]) -> None:
        """Forget what waits of all others: somebody else did it, or it is not wanted any more."""
        for name, held in list(self._held.items()):
            if name not in (removed if held.is_removal else enabled):
                self._take(name, None)

    def let_pass(self, name: names.ModuleName) -> None:
        """Let the next run of the module, or its removal, go past its windows."""
        self._passes.add(name)

    def may_pass(self, name: names.ModuleName) -> bool:
        """Say whether a run that begins now goes past the windows; it says :meth:`has_passed` then."""
        return name in self._passes

    def has_passed(self, name: names.ModuleName) -> None:
        """Note that a run went past the windows, and that the next one does not."""
        self._passes.discard(name)

    def _take(self, name: names.ModuleName, held: windows.HeldBack | None) -> None:
        if held == self._held.get(name):
            return
        self._held.pop(name, None)
        self._asked.discard(name)
        if held is not None:
            self._held[name] = held
        self._states.hold_back(name, held)
        self._tell(events.HeldBack(name, held, has_module=name in self._states))

    def _arm(self) -> None:
        """Set the timer for the first opening."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        now = self._clock.time()
        later = [held.until for held in self._held.values() if now < held.until < math.inf]
        if later:
            timers = asyncio.get_running_loop() if self._timers is None else self._timers
            self._timer = timers.call_later(min(min(later) - now, LONGEST_SLEEP), self._look)

    def _look(self) -> None:
        """Have done what waits no longer, in the order in which modules run."""
        now = self._clock.time()
        due = {
            name: held for name, held in self._held.items() if held.until <= now and name not in self._asked
        }
        self._asked |= due.keys()
        for name in due.keys() - {module.module.name for module in self._states}:
            self._take(name, None)
        if any(held.is_removal for held in due.values()):
            self._inbox.put_nowait(intents.ConvergeWanted(ACTIVATION))
        else:
            for name in self._states.enabled:
                if name in due:
                    self._inbox.put_nowait(intents.RunWanted(name, ACTIVATION, at_once=True))
        self._arm()
