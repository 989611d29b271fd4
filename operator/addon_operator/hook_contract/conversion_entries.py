"""Conversions of hooks as both sides know them: who converts, and what is asked."""

import math
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import TypeAlias

from addon_operator.hook_contract import conversions
from addon_operator.hook_contract.configuration import conversion_bindings
from addon_operator.kernel.json_types import JsonObject


@dataclass(frozen=True, slots=True)
class StepRequest:
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


Converting: TypeAlias = Callable[[StepRequest], Awaitable[conversions.ConversionAnswer]]
"""Answers within the time of the binding; raises :class:`.ConversionError` with a sentence for the user."""


@dataclass(frozen=True, slots=True)
class ConversionEntry:
    """One binding of a hook that is loaded."""

    owner: str
    """The module; empty for the global hooks."""
    hook: str
    binding: conversion_bindings.ConversionBinding
    convert: Converting = field(compare=False)

    def __str__(self) -> str:
        place = f"module {self.owner}" if self.owner else "the global hooks"
        return f"{conversion_bindings.KEY} {self.binding.name} of hook {self.hook} of {place}"
