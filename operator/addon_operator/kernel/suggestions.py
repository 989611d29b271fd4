"""Guess what was meant by a name that is not known."""

import difflib
from collections.abc import Iterable
from typing import Final

_ALIKE: Final = 0.6


def nearest(name: str, known: Iterable[str], alike: float = _ALIKE) -> str | None:
    """The known name that looks most like this one, in capitals or not; ``None`` if none does.

    ``alike`` is from 0 to 1; 1 asks for the same characters.
    """
    names = {each.lower(): each for each in known}
    found = difflib.get_close_matches(name.lower(), names, n=1, cutoff=alike)
    return names[found[0]] if found else None


def did_you_mean(name: str, known: Iterable[str], otherwise: str) -> str:
    """The question whether the nearest name was meant, or ``otherwise`` if there is none."""
    near = nearest(name, known)
    return otherwise if near is None else f"did you mean {near!r}?"
