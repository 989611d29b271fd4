"""Webhooks of hooks as both sides know them: who answers them, and what is asked and answered."""

import math
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import TypeAlias

from addon_operator.hook_contract.configuration import webhook_bindings
from addon_operator.hook_contract.outputs import review_answers
from addon_operator.kernel import errors


class NotAnsweredError(errors.AddonOperatorError):
    """There is no answer now, and none is to be made up: the API server does as ``failurePolicy`` says."""


class WebhookNameError(errors.AddonOperatorError):
    """Two hooks have a webhook of one name."""


@dataclass(frozen=True, slots=True)
class ReviewRequest:
    """One question of the API server."""

    sent: bytes
    """The ``AdmissionReview`` as it was sent."""
    arrived: float
    """When that was, on the monotonic clock, in seconds."""
    seconds: float = math.inf
    """How long the API server waits, as far as it says so."""
    dry_run: bool = False
    """Nothing will be stored."""


Answering: TypeAlias = Callable[[ReviewRequest], Awaitable[review_answers.AdmissionAnswer]]
"""Answers within the time of the binding, whatever happens; raises :class:`NotAnsweredError`."""


@dataclass(frozen=True, slots=True)
class WebhookEntry:
    """One webhook: a binding of a hook that is loaded."""

    owner: str
    """The module; empty for the global hooks."""
    hook: str
    binding: webhook_bindings.WebhookBinding
    answer: Answering = field(compare=False)

    def __str__(self) -> str:
        place = f"module {self.owner}" if self.owner else "the global hooks"
        return f"{self.binding.type.key} {self.binding.name} of hook {self.hook} of {place}"
