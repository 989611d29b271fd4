"""What people ask of a module in annotations of its Module object: to run it once, or to leave it alone.

An annotation of a person's own is enough to suspend a module: its value is the reason. The others say more.
"""

import contextlib
from collections.abc import Iterable, Mapping
from typing import Final

import msgspec

from addon_operator.kernel import clock, names

_OURS: Final = "addon-operator.io/"
RUN: Final = "addon-operator.io/run"
"""Each new value runs the module once."""
NOW: Final = "addon-operator.io/now"
"""The same, past windows."""
CONFIRM: Final = "addon-operator.io/confirm-removal"
"""Confirms a removal that waits for it; the value is the last revision of the release."""
SUSPENDED: Final = "addon-operator.io/suspended"
"""Suspends the module; the value is the reason."""
BY: Final = f"{SUSPENDED}-by"
SINCE: Final = f"{SUSPENDED}-since"
UNTIL: Final = f"{SUSPENDED}-until"
ALL: Final = (SUSPENDED, BY, SINCE, UNTIL)

_LONGEST: Final = 300
_MOST_TOLD: Final = 3
_NOT_SUSPENDED: Final = "false"


class Suspension(msgspec.Struct, frozen=True):
    """That Helm and healing leave a module alone, because somebody said so; times in seconds since the epoch.

    Everything in it may be shown to everybody who can see the Module object.
    """

    reason: str
    since: float
    by: str = ""
    until: float | None = None
    """When it ends by itself; ``None`` if never."""
    problem: str = ""
    """What is wrong with an end that cannot be read."""

    def is_over(self, now: float) -> bool:
        """Say whether it has ended by itself."""
        return self.until is not None and self.until <= now

    @property
    def annotations(self) -> dict[str, str | None]:
        """The annotations that say this, for a merge patch."""
        return {
            SUSPENDED: self.reason,
            BY: self.by or None,
            SINCE: clock.rfc3339(self.since),
            UNTIL: None if self.until is None else clock.rfc3339(self.until),
        }

    def __str__(self) -> str:
        """Say it: ``suspended: the disk is replaced (by alice, since …, until …)``."""
        until = None if self.until is None else f"until {clock.rfc3339(self.until)}"
        facts = (
            f"by {self.by}" if self.by else None,
            f"since {clock.rfc3339(self.since)}",
            until,
            self.problem,
        )
        return f"suspended: {self.reason or 'no reason given'} ({', '.join(filter(None, facts))})"


def already(module: str, found: Suspension) -> str:
    """Return the sentence for a module that somebody suspends once more: what would be lost."""
    return f"module {module} is already {found}; ask whoever did that, or replace it with --replace"


def read(annotations: Mapping[str, str], seen: float) -> Suspension | None:
    """Return what annotations say, whether or not it is over; ``None`` if the module is not suspended.

    ``seen``: since when, if they do not say it.
    """
    reason = annotations.get(SUSPENDED)
    if reason is None or reason.strip().lower() == _NOT_SUSPENDED:
        return None
    since, until, problem = seen, None, ""
    with contextlib.suppress(ValueError):
        since = clock.parse_rfc3339(annotations.get(SINCE, ""))
    if text := annotations.get(UNTIL):
        try:
            until = clock.parse_rfc3339(text)
        except ValueError:
            problem = (
                f"{UNTIL} is not a time such as {clock.rfc3339(seen)}, so that it does not end by itself"
            )
    return Suspension(_line(reason), since, _line(annotations.get(BY, "")), until, problem)


def unknown(annotations: Mapping[str, str]) -> str:
    """Say which annotations with our prefix ask for nothing, and what was meant; empty if there are none."""
    known = [key.removeprefix(_OURS) for key in (RUN, NOW, CONFIRM, *ALL)]
    words = [key.removeprefix(_OURS) for key in annotations if key.startswith(_OURS)]
    wrong = sorted(set(words).difference(known))
    told = [f"{_OURS}{each} has no effect: {_meant(each, known)}" for each in wrong[:_MOST_TOLD]]
    return names.listed([*told, *wrong[_MOST_TOLD:]], _MOST_TOLD)


def _meant(word: str, known: Iterable[str]) -> str:
    near = names.nearest(word, known)
    return "remove it" if near is None else f"did you mean {_OURS}{near}?"


def _line(text: str) -> str:
    flat = " ".join(text.split())
    return flat if len(flat) <= _LONGEST else flat[: _LONGEST - 1] + "…"
