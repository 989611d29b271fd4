"""Windows: the times at which changes may be made to what runs.

``windows`` in ``module.yaml`` has the shape of a maintenance window elsewhere: a crontab says when it opens,
``duration`` how long it stays open, ``timezone`` whose clock the crontab is read on.
"""

import dataclasses
import datetime as dt
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, cast

import msgspec

from addon_operator.documents import yaml_reading
from addon_operator.hook_contract import crontab, violations
from addon_operator.kernel import clock, errors
from addon_operator.modules import module_schema

MOST_WINDOWS: Final = 50
"""How many windows one list may have: each is looked at whenever something has to wait."""
_EVERY: Final = "@every"
_CHECKER: Final = violations.Checker(module_schema.WINDOWS)


class WindowError(errors.ConfigurationError):
    """A window is wrong; the sentence says which part of it, and what to write."""


class Window(msgspec.Struct, frozen=True):
    """One window, which opens again and again; made by :func:`parse`."""

    opens: crontab.Crontab
    duration: dt.timedelta

    def is_open(self, moment: dt.datetime) -> bool:
        """Say whether it opened at ``moment``, which knows its time zone, or within its duration before."""
        return self.opens.next_after(moment - self.duration) <= moment


@dataclasses.dataclass(frozen=True, slots=True)
class Windows:
    """All windows of a module; without any, there is no time at which it has to wait."""

    windows: tuple[Window, ...] = ()
    documents: tuple[Mapping[str, Any], ...] = dataclasses.field(default=(), compare=False, repr=False)
    """As they were written."""

    def is_open(self, moment: dt.datetime) -> bool:
        """Say whether changes may be made at ``moment``, which knows its time zone."""
        return not self.windows or any(each.is_open(moment) for each in self.windows)

    def next_opening(self, moment: dt.datetime) -> dt.datetime | None:
        """Return when changes may be made that have to wait at ``moment``, in UTC; ``None`` if none."""
        if self.is_open(moment):
            return None
        return min(each.opens.next_after(moment) for each in self.windows)


class HeldBack(msgspec.Struct, frozen=True):
    """What waits for a window, or for somebody's confirmation; times are seconds since the epoch."""

    what: str
    """For a person, and without values."""
    until: float
    """When the next window opens; infinite for what nobody has confirmed."""
    since: float = 0.0
    is_removal: bool = False
    is_broken: bool = False
    """Whether the last revision failed, so that what runs is not as it should be."""

    confirm: str = ""
    """The module or release whose removal somebody has to confirm; empty if it waits for a window."""

    @property
    def reason(self) -> str:
        """In one word, as conditions have it."""
        return "WaitsForConfirmation" if self.confirm else "WaitsForWindow"

    @property
    def waits(self) -> str:
        """For what it waits."""
        return waiting("" if self.confirm else clock.rfc3339(self.until), self.confirm)

    def __str__(self) -> str:
        return f"{self.waits}: {self.what}"


def waiting(until: str, confirm: str = "") -> str:
    """Say for how long something waits, as RFC 3339 has it, or whose removal somebody has to confirm."""
    if confirm:
        return f"waits until somebody confirms it with 'addon-operator module remove {confirm} --confirm'"
    return f"waits for a window, which opens at {until}"


def chosen(own: Windows | None, default: Windows | None) -> Windows:
    """Return the windows that count: those of the module if it has a list, else those of the setting."""
    return own if own is not None else default or Windows()


def parse(windows: Sequence[Mapping[str, Any]]) -> Windows:
    """Read the list ``windows``.

    Raises :class:`WindowError`, which names the window by its number, from 0 on.
    """
    for number, text in problems(windows):
        raise WindowError(text if number is None else f"windows[{number}]: {text}")
    return Windows(tuple(map(_window, windows)), tuple(windows))


def problems(windows: Sequence[Mapping[str, Any]]) -> Iterator[tuple[int | None, str]]:
    """Yield what is wrong with the list: the number of the window, ``None`` for all of them, and why."""
    if len(windows) > MOST_WINDOWS:
        yield None, f"there are {len(windows)} windows, and {MOST_WINDOWS} may be; join some of them"
        return
    for number, window in enumerate(windows):
        try:
            _window(window)
        except errors.ConfigurationError as error:
            yield number, str(error)


def read(text: str) -> Windows:
    """Read a list as a setting has it, YAML or JSON; raises :class:`WindowError` with all that is wrong."""
    try:
        found = yaml_reading.load_document(text, "the list").value
    except yaml_reading.YamlError as error:
        raise WindowError(str(error)) from None
    if wrong := _CHECKER.find([] if found is None else found):
        raise WindowError("; ".join(wrong))
    return parse(cast("Sequence[Mapping[str, Any]]", found or ()))


def _window(window: Mapping[str, Any]) -> Window:
    text = window["schedule"]
    if text.strip().startswith(_EVERY):
        raise WindowError(
            f"schedule {text!r} is not bound to a clock; write when the window opens: '0 22 * * 1-5'"
        )
    return Window(crontab.parse(text, window.get("timezone")), _duration(window["duration"]))


def _duration(text: str) -> dt.timedelta:
    try:
        seconds = clock.parse_duration(text)
    except clock.DurationError as error:
        raise WindowError(f"duration: {error}") from error
    if seconds <= 0:
        raise WindowError(f"duration {text!r} is no time at all; write one such as 4h")
    return dt.timedelta(seconds=seconds)
