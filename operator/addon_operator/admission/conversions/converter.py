"""Answers the conversion reviews of the API server: step by step, with the hooks that say they can."""

import asyncio
import collections
import contextlib
import math
import time
from collections.abc import Awaitable, Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Final, TypeAlias

import msgspec

from addon_operator.admission import reviews
from addon_operator.admission.conversions import conversion_reviews, conversion_specs
from addon_operator.hook_contract import conversions, hook_entries
from addon_operator.hook_contract.configuration import conversion_bindings
from addon_operator.kernel import errors, names
from addon_operator.kernel.json_types import JsonObject

ROUTE: Final = f"{conversion_specs.PATH}{{name}}"
"""The path at which the API server asks; the name of the definition is at its end."""
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


Lookup: TypeAlias = Callable[[str], Awaitable[Iterable[hook_entries.ConversionEntry]]]
"""Finds the hooks that convert a definition, by its name."""


async def _nothing(_crd_name: str) -> Iterable[hook_entries.ConversionEntry]:
    return ()


class DeclaredConversions:
    """All conversions that hooks declare, by who owns the hooks."""

    def __init__(self) -> None:
        self.fallback: Lookup = _nothing
        """Is asked where the conversions of this process lead no further."""
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


class ConversionHandler(reviews.BodyHandler):
    """Has objects converted."""

    def __init__(self, declared: DeclaredConversions) -> None:
        self._conversions = declared

    async def answer(self, name: str, body: bytes, seconds: float) -> bytes:
        """Return all objects converted, or why they cannot be."""
        arrived = time.monotonic()
        if not names.is_crd_name(name):
            raise reviews.MalformedReviewError("the path does not end in the name of a definition")
        # Reviews of many objects take their time.
        review = await asyncio.to_thread(conversion_reviews.parse, body, name)
        try:
            converted = await convert(self._conversions, review, arrived, seconds)
        except conversions.ConversionError as error:
            return conversion_reviews.refusal(review, str(error))
        try:
            return await asyncio.to_thread(conversion_reviews.answer, review, converted)
        except TypeError:
            return conversion_reviews.refusal(review, conversions.too_deep(converted))


async def convert(
    known: DeclaredConversions,
    review: conversion_reviews.ConversionReview,
    arrived: float,
    seconds: float = math.inf,
) -> Sequence[JsonObject]:
    """Return the objects of a review in the version that is wanted, in their order.

    ``seconds`` is how long the API server waits. Raises :class:`.ConversionError`.
    """
    objects, limit = list(review.objects), min(seconds, SECONDS)
    with known.converting(review.crd_name):
        declared, steps = await _chain(known, review)
        for done, step in enumerate(steps):
            if done and time.monotonic() > arrived + limit - _LAST_STEP_SECONDS:
                raise conversions.ConversionError(
                    f"the way to {review.version} has {len(steps)} steps, and the time was over after "
                    f"{done}: declare conversions of {review.crd_name} that lead there in fewer"
                )
            numbers = [number for number, each in enumerate(objects) if each["apiVersion"] == step.before]
            found = declared[step.before, step.after]
            asked = [objects[number] for number in numbers]
            answer = await found.entry.answer(
                hook_entries.StepRequest(found.rule, step.after, review.uid, asked, arrived, limit)
            )
            if answer.failed_message:
                raise conversions.ConversionError(answer.failed_message)
            for number, each in zip(numbers, answer.objects, strict=True):
                objects[number] = each
    return objects


async def _chain(
    known: DeclaredConversions, review: conversion_reviews.ConversionReview
) -> tuple[Mapping[conversions.Edge, Declared], list[conversions.Step]]:
    versions = dict.fromkeys(str(each["apiVersion"]) for each in review.objects)
    declared = known.of(review.crd_name)
    try:
        return declared, conversions.steps([*declared], versions, review.version, review.crd_name)
    except conversions.NoChainError:
        entries = await known.fallback(review.crd_name)
    found = [each for entry in entries for each in _declared(entry) if each.crd_name == review.crd_name]
    edges = {each.edge: each for each in found} | dict(declared)
    return edges, conversions.steps([*edges], versions, review.version, review.crd_name)


def _declared(entry: hook_entries.ConversionEntry) -> list[Declared]:
    return [Declared(entry, rule) for rule in entry.binding.rules]
