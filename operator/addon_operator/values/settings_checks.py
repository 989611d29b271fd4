"""Checks of settings that go beyond schemas: programs of modules are asked whether they take them.

Who asks bounds the time of all answers together, and gets what is odd besides what is wrong.
"""

import abc
import contextlib
import contextvars
import pathlib
import time
from collections.abc import Iterator
from typing import Final

import msgspec

from addon_operator.kernel import json_types, names


class SettingsVerdict(msgspec.Struct, frozen=True):
    """What a program says of settings."""

    program: str
    """Its file."""
    error: str = ""
    """What is wrong with them; empty if they are right."""
    is_answer: bool = True
    """Whether the program said it; otherwise :attr:`error` is why it did not."""
    warnings: tuple[str, ...] = ()


class SettingsChecks(abc.ABC):
    """Whoever asks the programs of modules. A seam: values are pure, and do not start anything."""

    @abc.abstractmethod
    def verdicts(
        self, hooks: pathlib.Path, module: names.ModuleName, settings: json_types.JsonObject
    ) -> list[SettingsVerdict]:
        """Return what the programs among the hooks of a module say; to be called in a thread."""


class _NoPrograms(SettingsChecks):
    def verdicts(
        self,
        hooks: pathlib.Path,  # noqa: ARG002 - no program is asked
        module: names.ModuleName,  # noqa: ARG002 - as above
        settings: json_types.JsonObject,  # noqa: ARG002 - as above
    ) -> list[SettingsVerdict]:
        return []


NO_PROGRAMS: Final = _NoPrograms()
"""For tests, and where no program must be started."""


class Question(msgspec.Struct, frozen=True):
    """What is asked together, and what turned up besides what is wrong."""

    until: float
    """When all of it has to be answered, by the monotonic clock."""
    warnings: list[str] = msgspec.field(default_factory=list)
    compared: set[str] = msgspec.field(default_factory=set)
    """Sections of which rules or programs saw values of the Secret beside those of the ConfigMap."""


_QUESTION: Final = contextvars.ContextVar[Question | None]("_QUESTION", default=None)


@contextlib.contextmanager
def within(seconds: float) -> Iterator[Question]:
    """Bound all that the block asks for together to so many seconds."""
    question = Question(time.monotonic() + seconds)
    token = _QUESTION.set(question)
    try:
        yield question
    finally:
        _QUESTION.reset(token)


def seconds_left(most: float) -> float:
    """Return how long a program may take that may take ``most`` seconds by itself."""
    question = _QUESTION.get()
    return most if question is None else min(most, question.until - time.monotonic())


def warn(text: str) -> None:
    """Note what is odd for whoever asks."""
    question = _QUESTION.get()
    if question is not None and text not in question.warnings:
        question.warnings.append(text)


def note_compared(key: str) -> None:
    """Note that what is said of a section may depend on values of the Secret."""
    question = _QUESTION.get()
    if question is not None:
        question.compared.add(key)
