"""An ordered collection of entries that finds the latest one concerning a place in a document."""

import dataclasses
from collections.abc import Iterable, Iterator
from typing import Generic, TypeVar

from addon_operator.documents import json_pointers

_Entry = TypeVar("_Entry")


@dataclasses.dataclass(slots=True)
class _Node:
    """A place: the numbers of the entries that concern it, oldest first, and the places inside it."""

    numbers: dict[int, None] = dataclasses.field(default_factory=dict)
    children: dict[str, "_Node"] = dataclasses.field(default_factory=dict)

    def latest(self) -> int:
        """Return the highest number here, or -1."""
        return next(reversed(self.numbers), -1)


class RegionIndex(Generic[_Entry]):
    """Entries in the order of their arrival, each registered under the places (regions) that it concerns."""

    def __init__(self) -> None:
        self._entries: dict[int, tuple[_Entry, dict[json_pointers.Tokens, None]]] = {}
        self._root = _Node()
        self._next = 0

    def __iter__(self) -> Iterator[_Entry]:
        return (entry for entry, _ in self._entries.values())

    def add(self, entry: _Entry, regions: Iterable[json_pointers.Tokens]) -> None:
        """Append an entry."""
        number = self._next
        self._next += 1
        self._entries[number] = (entry, {})
        self.register(number, regions)

    def register(self, number: int, regions: Iterable[json_pointers.Tokens]) -> None:
        """Note more places that an entry concerns; no later entry may concern them."""
        known = self._entries[number][1]
        for region in regions:
            if region not in known:
                known[region] = None
                self._insert(region, number)

    def discard(self, number: int) -> None:
        """Take an entry out."""
        _, regions = self._entries.pop(number)
        for region in regions:
            self._remove(region, number)

    def latest(self, regions: Iterable[json_pointers.Tokens]) -> tuple[int, _Entry] | None:
        """Return the latest entry that concerns one of the places, or something around or in them."""
        number = max((self._latest_at(region) for region in regions), default=-1)
        return None if number < 0 else (number, self._entries[number][0])

    def _latest_at(self, region: json_pointers.Tokens) -> int:
        node, best = self._root, -1
        for token in region:
            best = max(best, node.latest())
            child = node.children.get(token)
            if child is None:
                return best
            node = child
        return max(best, max((inner.latest() for inner in _subtree(node)), default=-1))

    def _insert(self, region: json_pointers.Tokens, number: int) -> None:
        node = self._root
        for token in region:
            node = node.children.setdefault(token, _Node())
        node.numbers[number] = None

    def _remove(self, region: json_pointers.Tokens, number: int) -> None:
        path = [self._root]
        for token in region:
            path.append(path[-1].children[token])
        path[-1].numbers.pop(number, None)
        for parent, token in zip(reversed(path[:-1]), reversed(region), strict=True):
            child = parent.children[token]
            if child.numbers or child.children:
                return
            del parent.children[token]


def _subtree(root: _Node) -> Iterator[_Node]:
    pending = [root]
    while pending:
        node = pending.pop()
        yield node
        pending.extend(node.children.values())
