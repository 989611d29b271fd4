"""Binding contexts: why a hook runs, as items of ``BINDING_CONTEXT_PATH``.

The shapes are those of the Go operator ("Binding context" of its documentation, and its code where that is
silent). Objects stay the JSON text that the watch made of them: a context is written to a file piece by
piece, and no part of it is ever parsed, or held twice.
"""

import itertools
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final, Protocol, TypeAlias

import msgspec
import orjson

from addon_operator.documents import json_documents
from addon_operator.hook_contract.configuration import bindings
from addon_operator.kernel.json_types import JsonObject, JsonValue

Entries: TypeAlias = Sequence[bytes]
"""Objects, each a JSON document as :func:`entry` makes them."""
Snapshots: TypeAlias = Mapping[str, Entries]
"""Entries by the name of their kubernetes binding."""

_LEGACY_EVENTS: Final = {
    bindings.WatchEvent.ADDED: "add",
    bindings.WatchEvent.MODIFIED: "update",
    bindings.WatchEvent.DELETED: "delete",
}
_EMPTY_DOCUMENT: Final = b"{}"
_FEW_ENTRIES: Final = 500
"""Up to so many, it takes no time to sum up how large they are."""
_HEAD_BYTES: Final = 4 * 1024
"""More than what stands around reviews and entries: names of bindings, and commas."""
_OBJECT: Final = b'"object":'
_FILTER_RESULT: Final = b'"filterResult":'


class Context(Protocol):
    """One item of the array that a hook reads."""

    @property
    def group(self) -> str | None:
        """Name of the group it stands for."""
        ...

    def pieces(self) -> Iterator[bytes]:
        """Return its JSON text, in pieces that are written one after the other."""
        ...

    def is_within(self, most: int) -> bool:
        """Say whether its text is known, without being made, to have at most so many bytes."""
        ...


class PackedEntry:
    """An entry that waits for its run, compressed if it is large."""

    __slots__ = ("_data",)

    def __init__(self, entry: bytes) -> None:
        """``entry`` may be packed already: then it is not copied."""
        self._data = json_documents.pack(entry)

    @property
    def size(self) -> int:
        """Bytes that it takes while it waits."""
        return len(self._data)

    def unpack(self) -> bytes:
        """Unpack the entry."""
        return json_documents.unpack(self._data)


class _Parts(msgspec.Struct, frozen=True):
    """A context of ``head``, then the fields of an entry, a review, and lists of entries."""

    head: JsonObject
    group: str | None = None
    review: bytes | None = None
    changed: PackedEntry | None = None
    objects: Entries | None = None
    snapshots: Snapshots | None = None
    before: PackedEntry | None = None

    def pieces(self) -> Iterator[bytes]:
        yield orjson.dumps(self.head)[:-1]
        if self.changed is not None and (fields := self.changed.unpack()) != _EMPTY_DOCUMENT:
            yield b"," + fields[1:-1]
        if self.before is not None:
            yield from _as_old(self.before.unpack())
        if self.review is not None:
            yield b',"review":' + self.review
        if self.objects is not None:
            yield b',"objects":'
            yield from _array(self.objects)
        if self.snapshots is not None:
            yield b',"snapshots":{'
            yield from _snapshots(self.snapshots)
            yield b"}"
        yield b"}"

    def is_within(self, most: int) -> bool:
        if self.review is None or self.changed is not None or self.objects is not None:
            return False
        snapshots = self.snapshots or {}
        if len(self.review) > most or sum(map(len, snapshots.values())) > _FEW_ENTRIES:
            return False
        return len(self.review) + sum(map(_size, snapshots.values())) + _HEAD_BYTES <= most


class _LegacyEvent(msgspec.Struct, frozen=True):
    """A change, for a configuration without ``configVersion``: only names the object."""

    binding: str
    event: str
    changed: PackedEntry
    group: str | None = None

    def pieces(self) -> Iterator[bytes]:
        changed = _member(json.loads(self.changed.unpack()), "object")
        metadata = _member(changed, "metadata")
        yield orjson.dumps(
            {
                "binding": self.binding,
                "resourceEvent": self.event,
                "resourceNamespace": metadata.get("namespace", ""),
                "resourceKind": changed.get("kind", ""),
                "resourceName": metadata.get("name", ""),
            }
        )

    def is_within(self, most: int) -> bool:  # noqa: ARG002 - the signature of all contexts
        return False


def entry(kubernetes_object: bytes | None = None, filter_result: bytes | None = None) -> bytes:
    """Return an object in a snapshot or context, of JSON documents.

    ``object`` is there if the binding keeps full objects, ``filterResult`` if it has a jqFilter, even when
    the filter gave ``null``.
    """
    fields = {_OBJECT: kubernetes_object, _FILTER_RESULT: filter_result}
    return b"{%b}" % b",".join(key + value for key, value in fields.items() if value is not None)


def lifecycle(binding: bindings.LifecycleBinding, snapshots: Snapshots | None = None) -> Context:
    """Return the context of a lifecycle step; all but ``onStartup`` hold all snapshots of the hook."""
    head: JsonObject = {"binding": binding.value}
    if binding is bindings.LifecycleBinding.ON_STARTUP:
        return _Parts(head)
    return _Parts(head, snapshots=snapshots or {})


def schedule(name: str, snapshots: Snapshots | None = None) -> Context:
    """Return the context of a tick."""
    return _Parts({"binding": name, "type": "Schedule"}, snapshots=snapshots)


def legacy_schedule(name: str) -> Context:
    """Return the context of a tick for a configuration without ``configVersion``."""
    return _Parts({"binding": name})


def synchronization(name: str, objects: Entries, snapshots: Snapshots | None = None) -> Context:
    """Return the context of the run with all objects that exist."""
    return _Parts({"binding": name, "type": "Synchronization"}, objects=objects, snapshots=snapshots)


def event(
    name: str,
    watch_event: bindings.WatchEvent,
    changed: PackedEntry,
    snapshots: Snapshots | None = None,
    before: PackedEntry | None = None,
) -> Context:
    """Return the context of one change; ``before`` is the entry before it, if that is to be shown."""
    head: JsonObject = {"binding": name, "type": "Event", "watchEvent": watch_event.value}
    return _Parts(head, changed=changed, snapshots=snapshots, before=before)


def group(name: str, group_name: str, snapshots: Snapshots | None = None) -> Context:
    """Return the context of any change of a binding with a ``group``: only the snapshots count."""
    head: JsonObject = {"binding": name, "type": "Group", "groupName": group_name}
    return _Parts(head, group_name, snapshots=snapshots or {})


def review(name: str, asked: str, sent: bytes, snapshots: Snapshots) -> Context:
    """Return the context of a request of the API server.

    ``asked`` is the type of the context, ``sent`` the review as JSON.
    """
    return _Parts({"binding": name, "type": asked}, review=sent, snapshots=snapshots)


def conversion(name: str, versions: tuple[str, str], sent: bytes, snapshots: Snapshots) -> Context:
    """Return the context of one step of a conversion; ``sent`` is the review as JSON."""
    head: JsonObject = {"binding": name, "type": "Conversion"}
    before, after = versions
    return _Parts(head | {"fromVersion": before, "toVersion": after}, review=sent, snapshots=snapshots)


def legacy_event(watch_event: bindings.WatchEvent, name: str, changed: PackedEntry) -> Context:
    """Return the context of one change without ``configVersion``; the entry has the object."""
    return _LegacyEvent(name, _LEGACY_EVENTS[watch_event], changed)


def collapse_groups(contexts: Iterable[Context]) -> list[Context]:
    """Return the contexts of one merged run: consecutive ones of a group collapse into the last."""
    collapsed: list[Context] = []
    for context in contexts:
        if collapsed and context.group is not None and collapsed[-1].group == context.group:
            collapsed.pop()
        collapsed.append(context)
    return collapsed


def document(contexts: Iterable[Context]) -> Iterator[bytes]:
    """Yield the text of the whole file, in pieces."""
    yield b"["
    for index, context in enumerate(contexts):
        if index:
            yield b","
        yield from context.pieces()
    yield b"]"


def _as_old(fields: bytes) -> Iterator[bytes]:
    """Yield the members of an entry, each behind a comma, with names that say that they are old."""
    rest = fields[1:-1]
    if rest.startswith(_OBJECT):
        # Only a reader of JSON knows where the object ends; its text stays as it is.
        text = rest[len(_OBJECT) :].decode()
        end = json.JSONDecoder().raw_decode(text)[1]
        yield b',"oldObject":' + text[:end].encode()
        rest = text[end:].encode().removeprefix(b",")
    if rest.startswith(_FILTER_RESULT):
        yield b',"oldFilterResult":' + rest[len(_FILTER_RESULT) :]


def _array(entries: Entries) -> Iterator[bytes]:
    yield b"["
    for separator, item in zip(_separators(), entries, strict=False):
        yield separator + item
    yield b"]"


def _snapshots(snapshots: Snapshots) -> Iterator[bytes]:
    for separator, (name, entries) in zip(_separators(), snapshots.items(), strict=False):
        yield separator + orjson.dumps(name) + b":"
        yield from _array(entries)


def _size(entries: Entries) -> int:
    if isinstance(entries, json_documents.LazyEntries):
        return entries.size
    return sum(map(len, entries))


def _separators() -> Iterator[bytes]:
    return itertools.chain((b"",), itertools.repeat(b","))


def _member(value: JsonValue, key: str) -> JsonObject:
    member = value.get(key) if isinstance(value, dict) else None
    return member if isinstance(member, dict) else {}
