"""Regular expressions of users: RE2, as in Kubernetes and OpenAPI, by RE2 itself.

It takes time in proportion to the text, whatever the pattern: there is no backtracking. What a pattern may
take of memory is bounded, too.
"""

import functools
from collections.abc import Iterator
from typing import Any, Final

import re2  # type: ignore[import-untyped]  # has no stubs

MAX_CHARS: Final = 10_000
"""How long a pattern may be."""
MAX_MEMORY: Final = 8 << 20
"""Bytes for a pattern and its automaton; with less than it wants, RE2 is slower, but never backtracks."""
MAX_STEPS: Final = 1_000_000
"""How many steps all patterns of a schema may have, as RE2 counts them; ``\\pL{100}`` has 120 000."""
_KEPT: Final = 1024
_TOO_LARGE: Final = "pattern too large"


class PatternError(ValueError):
    """A text is not a pattern; the sentence says why."""


class TooLargeError(PatternError):
    """A pattern takes more than :data:`MAX_MEMORY`."""


class PatternBudget:
    """What the patterns of one schema may take together: each of them may take a quarter of a second."""

    def __init__(self) -> None:
        self._left = MAX_STEPS
        self._known: set[str] = set()

    def check(self, pattern: str) -> None:
        """Raise :class:`PatternError` for what is not a pattern, and for one for which there is no room."""
        if self._left <= 0:
            raise PatternError(
                f"with those before it, the patterns have more than {MAX_STEPS} steps; repeat less in them"
            )
        if pattern in self._known:
            return
        self._known.add(pattern)
        try:
            self._left -= int(_compiled(pattern).programsize)
        except TooLargeError:
            self._left -= MAX_STEPS // 10
            raise


def found(pattern: str, text: str) -> bool:
    """Say whether the pattern is found anywhere in the text.

    Raises :class:`PatternError`.
    """
    return _compiled(pattern).search(text) is not None


def all_found(pattern: str, text: str) -> Iterator[str]:
    """Return all that the pattern matches, from left to right and without overlaps.

    Raises :class:`PatternError`.
    """
    return (str(match[0]) for match in _compiled(pattern).finditer(text))


@functools.lru_cache(maxsize=_KEPT)
def _compiled(pattern: str) -> Any:  # noqa: ANN401  # the library has no types
    if len(pattern) > MAX_CHARS:
        raise PatternError(
            f"the pattern has {len(pattern)} characters, and may have {MAX_CHARS}; make it shorter"
        )
    options = re2.Options()
    options.max_mem = MAX_MEMORY
    options.log_errors = False
    options.never_capture = True
    try:
        return re2.compile(pattern, options)
    except re2.error as error:
        reason = error.args[0].decode(errors="replace") if error.args else "it cannot be read"
        kind = TooLargeError if _TOO_LARGE in reason else PatternError
        raise kind(f"{pattern!r} is not a regular expression (RE2): {reason}") from None
    except UnicodeEncodeError:
        raise PatternError("the pattern is not valid Unicode") from None
