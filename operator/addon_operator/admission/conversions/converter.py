"""Converts the objects of reviews, step by step, with the hooks that say they can."""

import asyncio
import collections
import contextlib
import math
import time
from collections.abc import Awaitable, Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Final, TypeAlias

import msgspec

from addon_operator.admission.conversions import conversion_reviews
from addon_operator.hook_contract import conversions, hook_entries
from addon_operator.hook_contract.configuration import conversion_bindings
from addon_operator.kernel import errors
from addon_operator.kernel.json_types import JsonObject

SECONDS: Final = 28.0
"""For all steps of a review: clients of the API server seldom wait much longer."""
_LAST_STEP_SECONDS: Final = 2.0
"""With less than this left, no further step begins: its hook would be blamed for the others."""


class DeclaredTwiceError(errors.AddonOperatorError):
    """Two hooks declare the same conversion."""


class Declared(msgspec.Struct, frozen=True):
    """A conversion that a hook declares."""

    entry: hook_entries.ConversionEntry
    rule: conversion_bindings.ConversionRule

    @property
    def crd_name(self) -> str:
        """Name of the definition."""
        return self.entry.binding.crd_name

    @property
    def edge(self) -> conversions.Edge:
        """From one ``group/version`` to another."""
        return self.rule.full(self.crd_name)


StandIn: TypeAlias = Callable[[str], Awaitable[Iterable[hook_entries.ConversionEntry]]]
"""Finds who converts a definition of which nothing was said here."""


async def nobody(_crd_name: str) -> Iterable[hook_entries.ConversionEntry]:
    """Find nobody."""
    return ()


class DeclaredConversions:
    """All conversions that hooks declare, by who owns the hooks."""

    def __init__(self) -> None:
        self.stand_in: StandIn = nobody
        """Who is asked for steps that lead further, and were not begun here."""
        self._by_owner: dict[str, tuple[Declared, ...]] = {}
        self._converting: collections.Counter[str] = collections.Counter()
        self._converted = asyncio.Event()

    def replace(self, owner: str, entries: Iterable[hook_entries.ConversionEntry]) -> None:
        """Take these for the owner's, and no others any more."""
        self._by_owner.pop(owner, None)
        if found := tuple(each for entry in entries for each in _declared(entry)):
            self._by_owner[owner] = found

    async def keep_only(self, owners: Collection[str]) -> None:
        """Forget the conversions of all other owners; returns when they convert nothing any more."""
        for owner in self._by_owner.keys() - set(owners):
            await self.idle(owner)
            self._by_owner.pop(owner, None)

    async def idle(self, owner: str) -> None:
        """Wait until nothing is being converted that hooks of the owner may have a part in."""
        crds = {each.crd_name for each in self._by_owner.get(owner, ())}
        while any(self._converting[crd] for crd in crds):
            self._converted.clear()
            await self._converted.wait()

    @contextlib.contextmanager
    def converting(self, crd_name: str) -> Iterator[None]:
        """Note that objects of a definition are being converted."""
        self._converting[crd_name] += 1
        try:
            yield
        finally:
            self._converting[crd_name] -= 1
            self._converted.set()

    @property
    def places(self) -> set[tuple[str, str]]:
        """Owner and name of each hook that converts."""
        return {
            (each.entry.owner, each.entry.hook) for declared in self._by_owner.values() for each in declared
        }

    def check(self, owner: str) -> None:
        """Raise :class:`DeclaredTwiceError` if a conversion of the owner's is one of another hook, too."""
        for each in self._by_owner.get(owner, ()):
            counts = self.of(each.crd_name)[each.edge]
            if counts is not each:
                before, after = each.edge
                raise DeclaredTwiceError(
                    f"{each.entry} converts {each.crd_name} from {before} to {after}, and so does "
                    f"{counts.entry}, which counts; remove one of the two"
                )

    def of(self, crd_name: str) -> Mapping[conversions.Edge, Declared]:
        """Return the conversions of a definition by owner and order; of equal ones the first counts."""
        found: dict[conversions.Edge, Declared] = {}
        for _, declared in sorted(self._by_owner.items()):
            for each in declared:
                if each.crd_name == crd_name:
                    found.setdefault(each.edge, each)
        return found


class Converter:
    """Converts the objects of reviews."""

    def __init__(self, declared: DeclaredConversions) -> None:
        self._declared = declared

    async def convert(
        self, review: conversion_reviews.ConversionReview, arrived: float, seconds: float = math.inf
    ) -> Sequence[JsonObject]:
        """Return the objects in the version that is wanted, in their order.

        ``seconds`` is how long the API server waits. Raises :class:`.ConversionError`.
        """
        with self._declared.converting(review.crd_name):
            return await self._convert(review, arrived, seconds)

    async def _convert(
        self, review: conversion_reviews.ConversionReview, arrived: float, seconds: float
    ) -> Sequence[JsonObject]:
        objects = list(review.objects)
        declared, steps = await self._way(review)
        limit = min(seconds, SECONDS)
        for done, step in enumerate(steps):
            _check_time(review, len(steps), done, arrived + limit)
            numbers = [number for number, each in enumerate(objects) if each["apiVersion"] == step.before]
            found = declared[step.before, step.after]
            request = hook_entries.StepRequest(
                found.rule,
                step.after,
                review.uid,
                [objects[number] for number in numbers],
                arrived,
                limit,
            )
            answer = await found.entry.answer(request)
            if answer.failed_message:
                raise conversions.ConversionError(answer.failed_message)
            for number, each in zip(numbers, answer.objects, strict=True):
                objects[number] = each
        return objects

    async def _way(
        self, review: conversion_reviews.ConversionReview
    ) -> tuple[Mapping[conversions.Edge, Declared], list[conversions.Step]]:
        versions = dict.fromkeys(str(each["apiVersion"]) for each in review.objects)
        declared = self._declared.of(review.crd_name)
        try:
            return declared, conversions.steps([*declared], versions, review.version, review.crd_name)
        except conversions.NoChainError:
            entries = await self._declared.stand_in(review.crd_name)
        found = (
            each
            for entry in entries
            if entry.binding.crd_name == review.crd_name
            for each in _declared(entry)
        )
        known = {each.edge: each for each in found} | dict(declared)
        return known, conversions.steps([*known], versions, review.version, review.crd_name)


def _declared(entry: hook_entries.ConversionEntry) -> list[Declared]:
    return [Declared(entry, rule) for rule in entry.binding.rules]


def _check_time(review: conversion_reviews.ConversionReview, steps: int, done: int, deadline: float) -> None:
    if done and time.monotonic() > deadline - _LAST_STEP_SECONDS:
        raise conversions.ConversionError(
            f"the way to {review.version} has {steps} steps, and the time was over after {done}: "
            f"declare conversions of {review.crd_name} that lead there in fewer"
        )
