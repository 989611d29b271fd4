"""What is wrong with the files of one module: collected, so that it concerns no other module.

This is the border: whatever goes wrong while files of a module are read ends here, as a sentence.
"""

import logging
import pathlib
from collections.abc import Callable, Sequence
from typing import Final, TypeVar

from addon_operator.kernel import errors

MAX_TEXT: Final = 4000
"""How many characters the sentences together may have: they are shown, and stand in objects."""
MOST_MISTAKES: Final = 100
_log = logging.getLogger(__name__)
_T = TypeVar("_T")


class Problems:
    """The problems of one module, in the order in which they were found."""

    def __init__(self, path: pathlib.Path, known: Sequence[str] = ()) -> None:
        """``path`` is the module's directory, ``known`` what was found before."""
        self._path = path
        self._found = list(known)

    @property
    def text(self) -> str:
        """All of them, each once; empty if there are none."""
        text = errors.writable("; ".join(dict.fromkeys(self._found)))
        return text if len(text) <= MAX_TEXT else f"{text[:MAX_TEXT]} …"

    @property
    def mistakes(self) -> tuple[str, ...]:
        """The same, one sentence each."""
        return tuple(map(errors.writable, dict.fromkeys(self._found)))[:MOST_MISTAKES]

    def add(self, problem: str) -> None:
        """Note a problem; nothing if it is empty."""
        if problem:
            self._found.append(problem)

    def attempt(self, read: Callable[[], _T], otherwise: _T) -> _T:
        """Return what ``read`` gives, or else ``otherwise``, and note why."""
        try:
            return read()
        except Exception as error:  # noqa: BLE001 - see the top of this file
            known = error.mistakes if isinstance(error, errors.ConfigurationError) else ()
            self._found += known or [told(error, self._path)]
            return otherwise


def told(error: Exception, path: pathlib.Path) -> str:
    """Return what went wrong with the files in ``path`` as a sentence; a defect is logged as one."""
    subject = f"reading {errors.writable(str(path))}"
    if errors.is_defect(error):
        _log.error("%s failed", subject, exc_info=error)
    return str(errors.told(error, subject))
