"""A queue of test files that several processes share, and the plugin that lets pytest take them from it."""

import contextlib
import math
import os
import pathlib
import struct
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

import pytest

_PLACE: Final = struct.Struct("H")
_BATCH: Final = 60_000
"""Bytes of the files of one take: each take costs some milliseconds, and the last ones are waited for."""

Batch = Sequence[pathlib.Path]


class Taker:
    """Plugin of one process: runs the tests of files that no other process has taken, until none is left."""

    def __init__(self, queue: int, batches: Sequence[Batch]) -> None:
        self._queue = queue
        self._batches = batches

    def pytest_collection(self) -> bool:
        """Collect nothing yet."""
        return True

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        """Run one test after the other; as pytest's own loop otherwise."""
        items = self._items(session)
        item = next(items, None)
        while item is not None:
            following = next(items, None)
            item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
            if session.shouldfail:
                raise session.Failed(session.shouldfail)
            if session.shouldstop:
                raise session.Interrupted(session.shouldstop)
            item = following
        return True

    def _items(self, session: pytest.Session) -> Iterator[pytest.Item]:
        total = 0
        while taken := os.read(self._queue, _PLACE.size):
            [place] = _PLACE.unpack(taken)
            session.perform_collect([str(file) for file in self._batches[place]])
            total += len(session.items)
            # What pytest decides by whether there were tests at all.
            session.testscollected = total
            yield from session.items


@contextlib.contextmanager
def filled(count: int) -> Iterator[int]:
    """Give the descriptor of a queue of that many places: a pipe whose readers get different ones."""
    reading, writing = os.pipe()
    try:
        with os.fdopen(writing, "wb") as queue:
            queue.writelines(_PLACE.pack(place) for place in range(count))
        yield reading
    finally:
        os.close(reading)


def batches_of(directory: pathlib.Path) -> list[Batch]:
    """All test files in there, some of one directory together.

    The larger ones come first, and before them those that wait for programs, so that the processes end
    together.
    """
    slow = {directory, directory / "process"}
    tops: dict[pathlib.Path, list[pathlib.Path]] = {}
    for file in sorted(directory.rglob("test_*.py")):
        tops.setdefault(_top(file, directory), []).append(file)
    found = [batch for top, files in sorted(tops.items()) for batch in _batches(top, files)]
    return sorted(found, key=lambda batch: (batch[0].parent not in slow, -_size(batch)))


def _top(file: pathlib.Path, directory: pathlib.Path) -> pathlib.Path:
    """Return the topmost directory below that one whose conftest.py the file shares, else the file's own."""
    between = [parent for parent in file.parents if directory in parent.parents]
    return next((parent for parent in reversed(between) if _shares(parent)), file.parent)


def _shares(directory: pathlib.Path) -> bool:
    return (directory / "conftest.py").exists()


def _batches(top: pathlib.Path, files: Sequence[pathlib.Path]) -> Iterator[Batch]:
    # pytest finds the fixtures of a conftest.py in one take only.
    limit = math.inf if _shares(top) else _BATCH
    batch: list[pathlib.Path] = []
    for file in files:
        if batch and _size([*batch, file]) > limit:
            yield batch
            batch = []
        batch.append(file)
    yield batch


def _size(files: Iterable[pathlib.Path]) -> int:
    return sum(file.stat().st_size for file in files)
