"""Expressions in jq, checked once and run on JSON values."""

import functools
import json
from typing import Any, cast

import jq  # type: ignore[import-not-found]  # an extension module without stubs

from addon_operator.kernel import errors
from addon_operator.kernel.json_types import JsonValue


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
        return "the program fails; what jq says is not shown, since it may quote the Secret"


class JqProgram:
    """A compiled expression."""

    def __init__(self, text: str) -> None:
        """Compile ``text``; raises :class:`JqError` with the place of the mistake."""
        self.text = text
        self._program = _compiled(text)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, JqProgram) and other.text == self.text

    def __hash__(self) -> int:
        return hash(self.text)

    def results(self, value: JsonValue) -> list[JsonValue]:
        """Return all results of the expression on ``value``; integers beyond 2^53 that it leaves stay exact.

        libjq holds the interpreter's lock while it works. Raises :class:`JqError` when the expression fails.
        """
        try:
            written = self._program.input_text(json.dumps(value)).all()
        except ValueError as error:
            raise error_of(str(error)) from error
        return [cast("JsonValue", json.loads(text)) for text in written]


@functools.lru_cache(maxsize=32)
def _compiled(text: str) -> Any:  # noqa: ANN401 - an extension module without types
    # Hooks write the same expressions in each run, and libjq needs milliseconds for each.
    check(text)
    try:
        # The library hands numbers over as doubles; as JSON text they keep all their digits.
        return jq.compile(f"(\n{text}\n) | tojson")
    except ValueError as error:
        raise error_of(str(error)) from error


def check(text: str) -> None:
    """Raise :class:`JqError` with the place of the mistake if ``text`` is not an expression."""
    try:
        jq.compile(text)
    except ValueError as error:
        raise error_of(str(error)) from error


def error_of(text: str) -> JqFailure:
    """Return the error for what libjq says."""
    first = text.strip().splitlines()[0] if text.strip() else "it fails without a message"
    return JqFailure(first.removeprefix("jq: error: ").rstrip(": "))
