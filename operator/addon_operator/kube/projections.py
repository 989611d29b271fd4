"""What a subscriber keeps of each object, and what counts as a change of it."""

from collections.abc import Sequence
from typing import NamedTuple, Protocol

from addon_operator.kernel import errors


class ProjectionError(errors.AddonOperatorError):
    """Nothing could be made of an object: a jqFilter fails on it; the text says why."""


class Reduced(NamedTuple):
    """What is kept of an object."""

    entry: bytes
    """A JSON document."""
    digest: bytes
    """Equal digests mean that nothing changed for this subscriber."""


class Projection(Protocol):
    """Makes entries of objects. Hashable: equal projections of one selection share their entries."""

    async def reduce(self, objects: Sequence[bytes]) -> Sequence[Reduced | ProjectionError]:
        """An answer for each object (a JSON document as the API server wrote it), in the same order."""
        ...

    def __hash__(self) -> int: ...

    def __eq__(self, other: object, /) -> bool: ...
