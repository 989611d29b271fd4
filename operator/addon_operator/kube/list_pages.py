"""Reads pages of lists object by object: decoding a page at once would hold up the event loop.

The page is cut where its items begin, and each piece is decoded on its own. A cut within an item leaves a
piece that is no JSON, which is then joined with the next one. So nothing depends on how objects are written;
only the pace does.
"""

import dataclasses
import re
from collections.abc import Iterator
from typing import Any, Final

import orjson

from addon_operator.kube import errors, paths, watch_lines

_ITEMS: Final = b'"items":['
_FIRST_KEY: Final = re.compile(rb'\{"[^"\\]*":')
_ENDS: Final = (b"]}", b'],"kind":"')
"""What follows the last item: nothing, or what the server writes after the items of custom resources."""


@dataclasses.dataclass(frozen=True, slots=True)
class ListPage:
    """One page of a list."""

    version: str
    """Where a watch goes on from."""
    next: str
    """The ``continue`` token; empty on the last page."""
    kind: str
    """Of the items, which do not say it when they are of the server's own kinds."""
    api_version: str
    items: Iterator[tuple[dict[str, Any], bytes]]
    """Each decoded and as it was written; decoded while they are read."""

    def events(self) -> Iterator[watch_lines.ObjectEvent]:
        """The objects; raises ``BrokenAnswer`` for what is none."""
        missing = orjson.dumps({"kind": self.kind, "apiVersion": self.api_version})[:-1] + b","
        try:
            for item, data in self.items:
                yield watch_lines.event_of(item, data if "kind" in item else missing + data[1:])
        except orjson.JSONDecodeError as error:
            raise errors.BrokenAnswer("the API server sent a list whose items are no JSON") from error


def read(target: paths.Target, body: bytes) -> ListPage:
    """The answer to a list; raises ``BrokenAnswer`` when it is none."""
    try:
        return _page(*(_cut(body) or _whole(body)))
    except (orjson.JSONDecodeError, KeyError, TypeError, AttributeError) as error:
        raise errors.BrokenAnswer(f"the answer of the API server to list {target} is no list") from error


def _page(envelope: dict[str, Any], items: Iterator[tuple[dict[str, Any], bytes]]) -> ListPage:
    metadata = envelope["metadata"]
    kind = envelope["kind"].removesuffix("List")
    return ListPage(
        metadata["resourceVersion"], metadata.get("continue") or "", kind, envelope["apiVersion"], items
    )


def _whole(body: bytes) -> tuple[dict[str, Any], Iterator[tuple[dict[str, Any], bytes]]]:
    document = orjson.loads(body)
    return document, ((item, orjson.dumps(item)) for item in document.get("items") or ())


def _cut(body: bytes) -> tuple[dict[str, Any], Iterator[tuple[dict[str, Any], bytes]]] | None:
    """The page without its items, and the items; ``None`` when it is written in an unknown way."""
    start = body.find(_ITEMS) + len(_ITEMS)
    if start < len(_ITEMS):
        return None
    for mark in _ENDS:
        end = body.rfind(mark)
        try:
            envelope = orjson.loads(body[:start] + body[end:])
        except orjson.JSONDecodeError:
            continue
        if end >= start:
            return envelope, _items(body, start, end)
    return None


def _items(body: bytes, start: int, end: int) -> Iterator[tuple[dict[str, Any], bytes]]:
    first = _FIRST_KEY.match(body, start)
    separator = b"}," + (first[0] if first else b"{")
    while start < end:
        item, piece = _first_item(body, start, end, separator)
        yield item, piece
        start += len(piece) + len(b",")


def _first_item(body: bytes, start: int, end: int, separator: bytes) -> tuple[dict[str, Any], bytes]:
    cut = start
    while (cut := body.find(separator, cut, end)) >= 0:
        piece = body[start : cut + 1]
        try:
            return orjson.loads(piece), piece
        except orjson.JSONDecodeError:
            # The cut is within the item.
            cut += 1
    return orjson.loads(body[start:end]), body[start:end]
