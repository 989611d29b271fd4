"""What a subscriber keeps of each object, and what counts as a change of it."""

import asyncio
import dataclasses
import hashlib
import time
from collections.abc import Callable, Sequence
from typing import Final, NamedTuple, Protocol

import msgspec
import orjson

from addon_operator.documents import json_documents
from addon_operator.hook_contract import jq_programs
from addon_operator.kernel import errors

JQ_SECONDS: Final = 5.0
"""How long a jqFilter may take for one object."""
_DIGEST_BYTES: Final = 8
_INLINE_BYTES: Final = 1 << 15
"""Below this much JSON a thread costs more than it spares the event loop."""


class ProjectionError(errors.AddonOperatorError):
    """Nothing could be made of an object: a jqFilter fails on it; the text says why."""

    def __init__(self, text: str, discreet: str = "") -> None:
        super().__init__(text)
        self.discreet = discreet or text
        """The text for an object whose content must not be shown."""


class Reduced(NamedTuple):
    """What is kept of an object."""

    entry: bytes
    """A JSON document, as it is or packed by :mod:`.json_documents`."""
    digest: bytes
    """Equal digests mean that nothing changed for this subscriber."""


class Projection(Protocol):
    """Makes entries of objects. Equal projections of one selection share their entries.

    A seam: an object is kept whole, as the result of a jqFilter, or not at all.
    """

    async def reduce(self, objects: Sequence[bytes]) -> Sequence[Reduced | ProjectionError]:
        """Return an answer for each object (a JSON document as the API server wrote it), in order."""
        ...


class JqRunner(Protocol):
    """Runs jq programs. A seam: :class:`.JqFilters` picks fields, :class:`.JqWorkers` asks processes."""

    async def run(
        self, program: str, documents: Sequence[bytes], timeout: float
    ) -> list[bytes | jq_programs.JqError]:
        """Return for each document a JSON array of the program's results, or why there is none."""
        ...


class FullObject(msgspec.Struct, frozen=True):
    """Keeps ``{"object": …}``; a change is one of the object apart from what every write changes.

    That is ``resourceVersion`` and ``managedFields`` of its metadata.
    """

    keep: bool = True
    """Whether to keep the object, or ``{}`` in its place."""

    async def reduce(self, objects: Sequence[bytes]) -> Sequence[Reduced]:
        """See :class:`Projection`."""
        return await reduced(objects, self._reduced)

    def _reduced(self, data: bytes) -> Reduced:
        return Reduced(self._entry(data), _digest_of_object(data))

    def _entry(self, data: bytes) -> bytes:
        return json_documents.pack(b'{"object":%b}' % data) if self.keep else b"{}"


def _unmeasured(_count: int, _seconds: float) -> None:
    pass


@dataclasses.dataclass(frozen=True, slots=True)
class JqFiltered:
    """Keeps ``{"filterResult": …}``, with the object before it if wanted; a change is one of the result.

    One result of the program stands for itself, several are an array, none is ``null``.
    """

    program: str
    keep_full: bool
    pool: JqRunner = dataclasses.field(compare=False, repr=False)
    timeout: float = dataclasses.field(default=JQ_SECONDS, compare=False)
    measured: Callable[[int, float], None] = dataclasses.field(default=_unmeasured, compare=False, repr=False)
    """Is called with how many objects were filtered, and the seconds that it took."""

    async def reduce(self, objects: Sequence[bytes]) -> Sequence[Reduced | ProjectionError]:
        """See :class:`Projection`."""
        began = time.perf_counter()
        results = await self.pool.run(self.program, objects, self.timeout)
        self.measured(len(objects), time.perf_counter() - began)
        full_bytes = sum(map(len, objects)) if self.keep_full else 0
        if full_bytes + sum(len(each) for each in results if isinstance(each, bytes)) >= _INLINE_BYTES:
            return await asyncio.to_thread(self._entries, objects, results)
        return self._entries(objects, results)

    def _entries(
        self, objects: Sequence[bytes], results: Sequence[bytes | jq_programs.JqError]
    ) -> list[Reduced | ProjectionError]:
        return [self._entry(*pair) for pair in zip(objects, results, strict=True)]

    def _entry(self, data: bytes, result: bytes | jq_programs.JqError) -> Reduced | ProjectionError:
        if isinstance(result, jq_programs.JqError):
            return ProjectionError(f"jqFilter: {result}", f"jqFilter: {result.discreet}")
        value = filter_result(result)
        if self.keep_full:
            entry = json_documents.pack(b'{"object":%b,"filterResult":%b}' % (data, value))
        else:
            entry = b'{"filterResult":%b}' % value
        return Reduced(entry, digest(value))


class Presence(msgspec.Struct, frozen=True):
    """Keeps nothing but that the object is there; a change is another object of the same name."""

    async def reduce(self, objects: Sequence[bytes]) -> Sequence[Reduced]:
        """See :class:`Projection`."""
        return [_PRESENT] * len(objects)


class Content(msgspec.Struct, frozen=True):
    """Keeps of an object whether others wrote it; a change is one of its content, as the metadata tell.

    Of a kind with a generation, that counts, and who manages which field; what was written to status and
    scale does not. Of others every write is a change.
    """

    is_ours: Callable[[str], bool] = lambda _: True
    """Whether a field manager is none of the others."""

    async def reduce(self, objects: Sequence[bytes]) -> Sequence[Reduced]:
        """See :class:`Projection`."""
        return await reduced(objects, self._written)

    def _written(self, data: bytes) -> Reduced:
        metadata = orjson.loads(data).get("metadata") or {}
        entries = [each for each in metadata.get("managedFields") or () if isinstance(each, dict)]
        writers = (str(each.get("manager")) for each in entries if each.get("subresource") != "status")
        entry = b"{}" if all(map(self.is_ours, writers)) else BY_OTHERS
        if not (generation := metadata.get("generation")):
            return Reduced(entry, str(metadata.get("resourceVersion")).encode())
        managers = [each for each in entries if not each.get("subresource")]
        content = [generation, metadata.get("labels"), metadata.get("annotations"), managers]
        return Reduced(entry, digest(orjson.dumps(content, option=orjson.OPT_SORT_KEYS)))


async def reduced(objects: Sequence[bytes], one: Callable[[bytes], Reduced]) -> list[Reduced]:
    """Reduce each of the objects; beside the event loop if that takes a while."""
    if sum(map(len, objects)) < _INLINE_BYTES:
        return [one(data) for data in objects]
    return await asyncio.to_thread(lambda: [one(data) for data in objects])


BY_OTHERS: Final = b'{"others":true}'
"""The entry of :class:`Content` for an object that others wrote."""
_PRESENT: Final = Reduced(b"{}", b"")


def filter_result(results: bytes) -> bytes:
    """Return what stands as ``filterResult`` for a JSON array of results."""
    values = orjson.loads(results)
    if not values:
        return b"null"
    return results[1:-1] if len(values) == 1 else results


def _digest_of_object(data: bytes) -> bytes:
    document = orjson.loads(data)
    metadata = document.get("metadata") or {}
    metadata.pop("resourceVersion", None)
    metadata.pop("managedFields", None)
    return digest(orjson.dumps(document, option=orjson.OPT_SORT_KEYS))


def digest(data: bytes) -> bytes:
    """Return what tells one entry from another."""
    return hashlib.blake2b(data, digest_size=_DIGEST_BYTES).digest()
