"""Expressions in jq: what is none, and what fails."""

import contextlib
import contextvars
from collections.abc import Callable, Iterator
from typing import Final, TypeAlias

import jq  # type: ignore[import-not-found]  # an extension module without stubs

from addon_operator.kernel import errors


class JqError(errors.AddonOperatorError):
    """An expression is not jq, or fails on a value; the text is what libjq says, on one line."""

    @property
    def discreet(self) -> str:
        """The text for a value that must not be shown."""
        return str(self)


class JqFailure(JqError):  # noqa: N818 - next to JqError, of which it is one case
    """What libjq says of an expression and a value; it may quote the value."""

    @property
    def discreet(self) -> str:
        """The text for a value that must not be shown."""
        return "the program fails on it; the log shows what jq says, but for a Secret, which it may quote"


Check: TypeAlias = Callable[[str], None]
"""Raises :class:`JqError` for a text that is not an expression."""


def check(text: str) -> None:
    """Raise :class:`JqError` with the place of the mistake if ``text`` is not an expression."""
    _CHECK.get()(text)


@contextlib.contextmanager
def checking_with(compiles: Check) -> Iterator[None]:
    """Have :func:`check` ask another one, such as one in another process, within the block."""
    token = _CHECK.set(compiles)
    try:
        yield
    finally:
        _CHECK.reset(token)


def check_here(text: str) -> None:
    """Do as :func:`check` in this process.

    libjq keeps the interpreter's lock meanwhile. It takes time in proportion to the square of the text, and
    works out constants: a few characters can ask for gigabytes.
    """
    try:
        jq.compile(text)
    except ValueError as error:
        raise error_of(str(error)) from error


_CHECK: Final = contextvars.ContextVar[Check]("check of jq expressions", default=check_here)


def error_of(text: str) -> JqFailure:
    """Return the error for what libjq says."""
    first = text.strip().splitlines()[0] if text.strip() else "it fails without a message"
    return JqFailure(first.removeprefix("jq: error: ").rstrip(": "))
