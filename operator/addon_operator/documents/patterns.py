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
_KEPT: Final = 1024


class PatternError(ValueError):
    """A text is not a pattern; the sentence says why."""


def check(pattern: str) -> None:
    """Raise :class:`PatternError` for what is not a pattern."""
    _compiled(pattern)


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
        raise PatternError(f"{pattern!r} is not a regular expression (RE2): {reason}") from None
    except UnicodeEncodeError:
        raise PatternError("the pattern is not valid Unicode") from None
