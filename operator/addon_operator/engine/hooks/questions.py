"""Questions that a hook answers with its run: what the API server asks."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

from addon_operator.kernel import errors

Answer = TypeVar("Answer")


class AnswerError(errors.AddonOperatorError):
    """A hook's process succeeded, and what it answered is wrong."""


class NotLeadingError(AnswerError):
    """A hook's run changed something that only the replica that leads may change, and this one does not."""


@dataclass(frozen=True, slots=True)
class Question(Generic[Answer]):
    """What a run is for besides its outputs, and how its answer is read."""

    variables: tuple[str, ...]
    """Variables that hold the path of the file for the answer; all of them the same."""
    read: Callable[[str], Answer]
    """Reads what was written; raises an :class:`.AddonOperatorError` for what is wrong."""
    seconds: float = math.inf
    """What the process may take, unless the hook's own timeout is shorter."""
    drops_outputs: bool = False
    """Whether nothing but the answer is taken of the run."""
    may_patch_values: bool = True
    """Whether a patch of values is an output like any other, or a mistake."""
    is_plain: bool = False
    """Whether a short answer is read in a short time, whatever was asked."""

    @property
    def file(self) -> str:
        """The variable by which the file is called."""
        return self.variables[0]

    def answer(self, hook: str, text: str) -> Answer:
        """Read what the hook wrote, in a thread if it may be long.

        Raises :class:`AnswerError`.
        """
        try:
            return self.read(text)
        except errors.AddonOperatorError as error:
            raise AnswerError(f"hook {hook}: {self.file}: {error}") from error
