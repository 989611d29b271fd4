"""Reads the lines of a watch, and tells what stands in them without decoding whole objects.

Source: "Efficient detection of changes" and "Streaming lists" in "Kubernetes API Concepts".
"""

import asyncio
import dataclasses
import re
from collections.abc import AsyncIterable, AsyncIterator
from typing import Any, Final, NamedTuple

import orjson

from addon_operator.kube import errors

DELETED: Final = "DELETED"
_CHANGES: Final = frozenset({"ADDED", "MODIFIED", DELETED})
_INITIAL_END: Final = "k8s.io/initial-events-end"
# The beginnings of a line and of an object as the API server writes those of its own kinds. Both are
# anchored: what matches is structure, never something that a user wrote into a string.
_LINE: Final = re.compile(rb'\{"type":"([A-Z]+)","object":(?=\{)')
_METADATA: Final = re.compile(
    rb'\{"kind":"[^"\\]*","apiVersion":"[^"\\]*","metadata":\{"name":"([^"\\]*)"'
    rb'(?:,"generateName":"[^"\\]*")?(?:,"namespace":"([^"\\]*)")?'
    rb',"uid":"([^"\\]*)","resourceVersion":"([^"\\]*)"'
)


class ObjectEvent(NamedTuple):
    """One object at one moment: of a watch or of a list."""

    deleted: bool
    key: tuple[str, str]
    """Namespace (empty for objects of the cluster) and name."""
    uid: str
    version: str
    """The resourceVersion."""
    data: bytes
    """The object as JSON."""


@dataclasses.dataclass(frozen=True, slots=True)
class Bookmark:
    """Where the watch is; nothing has happened to any object."""

    version: str
    ends_initial_events: bool


class WatchFailed(errors.KubernetesError):
    """The API server ended a watch with an ERROR event."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(f"the API server ended the watch ({code}): {message}")
        self.code = code
        """Of the Status; 410 when the watch's resourceVersion is too old."""


class SilentStream(errors.KubernetesError):
    """Nothing came for so long, bookmarks neither, that the connection must be dead."""


async def batches(chunks: AsyncIterable[bytes], silence: float) -> AsyncIterator[list[bytes]]:
    """The complete lines of a stream, as many at a time as have come in.

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
        head, newline, rest = chunk.rpartition(b"\n")
        if not newline:
            pieces.append(chunk)
            continue
        lines = b"".join([*pieces, head]).split(b"\n")
        pieces = [rest] if rest else []
        yield [line for line in lines if line]


def read(line: bytes) -> ObjectEvent | Bookmark:
    """What a line of a watch says.

    Raises :class:`WatchFailed` for an ERROR event, ``BrokenAnswer`` for what is no event.
    """
    found = _LINE.match(line)
    type_ = found[1].decode() if found else ""
    if found and type_ in _CHANGES and line.endswith(b"}"):
        return object_event(line[found.end() : -1], deleted=type_ == DELETED)
    return _read_whole(line)


def _read_whole(line: bytes) -> ObjectEvent | Bookmark:
    try:
        document = orjson.loads(line)
        type_, body = document["type"], document["object"]
        metadata = body.get("metadata") or {}
        if type_ in _CHANGES:
            return _event(metadata, orjson.dumps(body), deleted=type_ == DELETED)
        if type_ == "BOOKMARK":
            annotations = metadata.get("annotations") or {}
            return Bookmark(metadata["resourceVersion"], annotations.get(_INITIAL_END) == "true")
    except (orjson.JSONDecodeError, KeyError, TypeError, AttributeError) as error:
        raise errors.BrokenAnswer(f"a line of a watch is no event: {line[:100]!r}") from error
    if type_ == "ERROR":
        raise WatchFailed(int(body.get("code") or 0), str(body.get("message") or "no explanation was given"))
    raise errors.BrokenAnswer(f"the API server sent a watch event of the unknown type {type_!r}")


def object_event(data: bytes, *, deleted: bool = False) -> ObjectEvent:
    """What the metadata of an object says; raises ``BrokenAnswer`` when there is none."""
    found = _METADATA.match(data)
    if found:
        name, namespace, uid, version = found.groups(b"")
        return ObjectEvent(deleted, (namespace.decode(), name.decode()), uid.decode(), version.decode(), data)
    try:
        document = orjson.loads(data)
    except orjson.JSONDecodeError as error:
        raise errors.BrokenAnswer(f"the API server sent what is no JSON: {data[:100]!r}") from error
    return event_of(document, data, deleted=deleted)


def event_of(document: dict[str, Any], data: bytes, *, deleted: bool = False) -> ObjectEvent:
    """The same for an object that is decoded already."""
    try:
        return _event(document["metadata"], data, deleted=deleted)
    except (KeyError, TypeError, AttributeError) as error:
        text = f"the API server sent an object without metadata: {data[:100]!r}"
        raise errors.BrokenAnswer(text) from error


def _event(metadata: dict[str, Any], data: bytes, *, deleted: bool) -> ObjectEvent:
    key = (metadata.get("namespace") or "", metadata["name"])
    return ObjectEvent(deleted, key, metadata.get("uid") or "", metadata["resourceVersion"], data)
