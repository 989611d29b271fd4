"""Read what the API server answers to a list and to a watch; of objects only the metadata is decoded.

Source: "Efficient detection of changes" and "Streaming lists" in "Kubernetes API Concepts".
"""

import asyncio
from collections.abc import AsyncIterable, AsyncIterator, Iterator, Sequence
from typing import Any, Final, NamedTuple

import msgspec
import orjson

from addon_operator.documents import json_documents
from addon_operator.kube import api_errors, paths
from addon_operator.kube.informers import deep_objects

DELETED: Final = "DELETED"
_CHANGES: Final = frozenset({"ADDED", "MODIFIED", DELETED})
_HEADS: Final = tuple(
    (b'{"type":"%b","object":' % type_.encode(), type_ == DELETED) for type_ in sorted(_CHANGES)
)
"""What stands before the object in the lines of the API server, and whether such a line is a deletion."""
_INITIAL_END: Final = "k8s.io/initial-events-end"


class _Line(msgspec.Struct, gc=False):
    type: str
    object: msgspec.Raw


class _ObjectMetadata(msgspec.Struct, gc=False, rename="camel"):
    name: str
    resource_version: str
    namespace: str | None = None
    uid: str | None = None


class _KindAndMetadata(msgspec.Struct, gc=False):
    metadata: _ObjectMetadata
    kind: str | None = None


class _MarkMetadata(msgspec.Struct, gc=False, rename="camel"):
    resource_version: str
    annotations: dict[str, Any] | None = None


class _Mark(msgspec.Struct, gc=False):
    metadata: _MarkMetadata


class _WatchStatus(msgspec.Struct, gc=False):
    code: int | None = None
    message: str | None = None


class _ListMetadata(msgspec.Struct, gc=False, rename="camel"):
    resource_version: str
    continue_: str | None = msgspec.field(name="continue", default=None)


class _ObjectList(msgspec.Struct, gc=False, rename="camel"):
    kind: str
    api_version: str
    metadata: _ListMetadata
    items: list[msgspec.Raw] | None = None


_LINE: Final = msgspec.json.Decoder(_Line)
_OBJECT: Final = msgspec.json.Decoder(_KindAndMetadata)
_MARK: Final = msgspec.json.Decoder(_Mark)
_STATUS: Final = msgspec.json.Decoder(_WatchStatus)
_LIST: Final = msgspec.json.Decoder(_ObjectList)


class ObjectEvent(NamedTuple):
    """One object at one moment: of a watch or of a list."""

    deleted: bool
    key: tuple[str, str]
    """Namespace (empty for objects of the cluster) and name."""
    uid: str
    version: str
    """The resourceVersion."""
    data: bytes
    """The object as JSON; empty for one that nests too deep to be read."""


class Bookmark(msgspec.Struct, frozen=True):
    """Where the watch is; nothing has happened to any object."""

    version: str
    ends_initial_events: bool


class ListPage(msgspec.Struct, frozen=True):
    """One page of a list."""

    version: str
    """Where a watch goes on from."""
    next: str
    """The ``continue`` token; empty on the last page."""
    kind: str
    """Of the items, which do not say it when they are of the server's own kinds."""
    api_version: str
    items: Sequence[msgspec.Raw]
    is_cut: bool
    """Whether it went through :func:`.deep_objects.cut`."""

    def events(self) -> Iterator[ObjectEvent]:
        """Yield the objects, decoded while read; raises ``BrokenAnswer`` for what is not an object."""
        missing = orjson.dumps({"kind": self.kind, "apiVersion": self.api_version})[:-1] + b","
        for item in self.items:
            event = object_event(bytes(item), missing=missing)
            is_too_deep = self.is_cut and deep_objects.MARK in event.data
            yield event._replace(data=b"") if is_too_deep else event


class WatchFailed(api_errors.KubernetesError):
    """The API server ended a watch with an ERROR event."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(f"the API server ended the watch ({code}): {message}")
        self.code = code
        """Of the Status; 410 when the watch's resourceVersion is too old."""


class NestsTooDeep(api_errors.BrokenAnswer):
    """Something in an answer nests deeper than can be read; :func:`.deep_objects.cut` makes it readable."""


class SilentStream(api_errors.KubernetesError):
    """Nothing came for so long, bookmarks neither, that the connection must be dead."""


async def batches(chunks: AsyncIterable[bytes], silence: float) -> AsyncIterator[list[bytes]]:
    """Yield the complete lines of a stream, as many at a time as have come in.

    Raises :class:`SilentStream` when nothing comes for ``silence`` seconds. What comes after the last line's
    end is dropped: the connection broke within it.
    """
    iterator = aiter(chunks)
    pieces: list[bytes] = []
    while True:
        try:
            async with asyncio.timeout(silence):
                chunk = await anext(iterator)
        except StopAsyncIteration:
            return
        except TimeoutError as error:
            raise SilentStream(f"the API server has sent nothing on a watch for {silence:g} s") from error
        first, *lines = chunk.split(b"\n")
        pieces.append(first)
        if not lines:
            continue
        lines.insert(0, b"".join(pieces))
        pieces = [lines.pop()]
        yield [line for line in lines if line]


def read_line(line: bytes) -> ObjectEvent | Bookmark:
    """Read a line of a watch.

    Raises :class:`WatchFailed` for an ERROR event, ``BrokenAnswer`` for what is not an event.
    """
    for head, deleted in _HEADS:
        if line.startswith(head) and line.endswith(b"}"):
            # The object is decoded once and copied once; what is not as usual is read again below.
            try:
                return object_event(line[len(head) : -1], deleted=deleted)
            except api_errors.BrokenAnswer:
                break
    try:
        event = _LINE.decode(line)
        if event.type in _CHANGES:
            return object_event(bytes(event.object), deleted=event.type == DELETED)
        if event.type == "BOOKMARK":
            place = _MARK.decode(event.object).metadata
            return Bookmark(place.resource_version, (place.annotations or {}).get(_INITIAL_END) == "true")
        status = _STATUS.decode(event.object) if event.type == "ERROR" else None
    except RecursionError as error:
        raise NestsTooDeep("an object in a watch nests too deep") from error
    except json_documents.BROKEN as error:
        raise api_errors.BrokenAnswer(f"a line of a watch is not an event: {error}") from error
    if status is not None:
        raise WatchFailed(status.code or 0, status.message or "no explanation was given")
    raise api_errors.BrokenAnswer(f"the API server sent a watch event of the unknown type {event.type!r}")


def read_cut_line(line: bytes) -> ObjectEvent | Bookmark:
    """Read a line that went through :func:`.deep_objects.cut`: its object has no data any more."""
    event = read_line(line)
    return event._replace(data=b"") if isinstance(event, ObjectEvent) else event


def object_event(data: bytes, *, deleted: bool = False, missing: bytes = b"") -> ObjectEvent:
    """Read an object's metadata; raises ``BrokenAnswer`` when there is none.

    ``missing`` is the beginning of an object that says its kind, for objects that do not.
    """
    try:
        parsed = _OBJECT.decode(data)
    except RecursionError as error:
        raise NestsTooDeep("an object nests too deep") from error
    except json_documents.BROKEN as error:
        # Nothing of it is quoted: it may be a Secret.
        raise api_errors.BrokenAnswer(f"the API server sent an object without metadata: {error}") from error
    if missing and parsed.kind is None:
        data = missing + data[1:]
    metadata = parsed.metadata
    key = (metadata.namespace or "", metadata.name)
    return ObjectEvent(deleted, key, metadata.uid or "", metadata.resource_version, data)


def read_page(target: paths.Target, body: bytes, *, is_cut: bool = False) -> ListPage:
    """Read the answer to a list; 8 MiB take 4 ms. Raises ``BrokenAnswer`` when it is not a list.

    ``is_cut`` says that :func:`.deep_objects.cut` was necessary: what it cut has no data.
    """
    try:
        page = _LIST.decode(body)
    except RecursionError as error:
        raise NestsTooDeep(
            f"an object in the answer of the API server to list {target} nests too deep"
        ) from error
    except json_documents.BROKEN as error:
        text = f"the answer of the API server to list {target} is not a list: {error}"
        raise api_errors.BrokenAnswer(text) from error
    return ListPage(
        version=page.metadata.resource_version,
        next=page.metadata.continue_ or "",
        kind=page.kind.removesuffix("List"),
        api_version=page.api_version,
        items=page.items or (),
        is_cut=is_cut,
    )
