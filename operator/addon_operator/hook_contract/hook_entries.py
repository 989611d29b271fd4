"""Bindings by which the API server asks hooks, as both sides know them: who answers, and what is asked."""

import math
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Generic, TypeAlias, TypeVar

import msgspec

from addon_operator.hook_contract import conversions
from addon_operator.hook_contract.configuration import conversion_bindings, webhook_bindings
from addon_operator.hook_contract.outputs import review_answers
from addon_operator.kernel import errors
from addon_operator.kernel.json_types import JsonObject


class NotAnsweredError(errors.AddonOperatorError):
    """There is no answer now, and none is to be made up: the API server does as ``failurePolicy`` says."""


class WebhookNameError(errors.AddonOperatorError):
    """Two hooks have a webhook of one name."""


Binding = TypeVar("Binding", bound=webhook_bindings.WebhookBinding | conversion_bindings.ConversionBinding)
Request = TypeVar("Request")
Answer = TypeVar("Answer")


@dataclass(frozen=True, slots=True)
class Entry(Generic[Binding, Request, Answer]):
    """One binding of a hook that is loaded."""

    owner: str
    """The module; empty for the global hooks."""
    hook: str
    binding: Binding
    answer: Callable[[Request], Awaitable[Answer]] = field(compare=False)
    """Answers within the time of the binding; what it raises depends on the kind."""

    def __str__(self) -> str:
        place = f"module {self.owner}" if self.owner else "the global hooks"
        return f"{self.binding.key} {self.binding.name} of hook {self.hook} of {place}"


class ReviewRequest(msgspec.Struct, frozen=True):
    """A request that a hook is to allow or to deny."""

    sent: bytes
    """The ``AdmissionReview`` as it was sent."""
    arrived: float
    """When that was, on the monotonic clock, in seconds."""
    seconds: float = math.inf
    """How long the API server waits, as far as it says so."""
    dry_run: bool = False
    """Nothing will be stored."""
    namespace: str = ""
    """Of the object."""
    user: str = ""
    """Who wants it."""


class StepRequest(msgspec.Struct, frozen=True):
    """Objects of one version that a hook is to bring to another."""

    rule: conversion_bindings.ConversionRule
    version: str
    """The wanted one: ``group/version``."""
    uid: str
    """Of the review."""
    objects: list[JsonObject]
    arrived: float
    """When the review came, on the monotonic clock, in seconds."""
    seconds: float = math.inf
    """How long the API server waits for all of it, as far as it says so."""


WebhookEntry: TypeAlias = Entry[
    webhook_bindings.WebhookBinding, ReviewRequest, review_answers.AdmissionAnswer
]
"""A webhook. It answers what the hook answers, or raises :class:`NotAnsweredError`."""
ConversionEntry: TypeAlias = Entry[
    conversion_bindings.ConversionBinding, StepRequest, conversions.ConversionAnswer
]
"""Conversions. It raises :class:`.ConversionError` with a sentence for the user."""
