"""Follows the objects of one path: list, watch, and list again when the watch cannot go on.

What comes in goes through the projections of all views, is taken in by all of them in the same order, and
only then moves the place from which the watch goes on after a break.
"""

import asyncio
import dataclasses
import random
from collections.abc import AsyncGenerator, Callable, Iterable, Iterator, Sequence
from typing import Final, Protocol, TypeAlias

from addon_operator.aio import read_ahead, waiting
from addon_operator.kernel import clock
from addon_operator.kube.client import api_errors, client
from addon_operator.kube.informers import (
    feed_paths,
    informer_cache,
    list_pages,
    watch_failures,
    watch_lines,
)

_BATCH_OBJECTS: Final = 100
_BATCH_BYTES: Final = 1 << 19
_PAGE_BYTES: Final = 8 << 20
_SHORT_WATCH_SECONDS: Final = 1.0
_BACKOFF: Final = waiting.Backoff(0.1, 30.0)
_STREAM_TRIES: Final = 2

Part: TypeAlias = Sequence[watch_lines.ObjectEvent] | watch_lines.Bookmark
"""Some events, or none when the API server has just begun to answer; or where the feed is now."""


@dataclasses.dataclass(frozen=True, slots=True)
class Tuning:
    """Times and sizes, with the values of a running operator; times are in seconds."""

    silence: float = 75.0
    """A watch on which nothing came for so long is dead; bookmarks come every minute."""
    backoff: waiting.Backoff = _BACKOFF
    """Between tries; up to a half of each pause is left to chance."""
    gone_after: float = 30.0
    """How long the API server may not know a kind before its objects count as gone."""
    kind_poll: float = 5.0
    """How often a kind that is not there yet is looked for."""
    page_size: int = 500
    stream_lists: bool = True
    """Whether to ask for the first state as a stream, where the API server can do that."""


class WatchObserver(Protocol):
    """Who wants to know of broken watches: metrics."""

    def watch_failed(self, kind: str, reason: str) -> None:
        """A list or watch of that kind failed; ``reason`` is one word of a small set."""
        ...


@dataclasses.dataclass(frozen=True, slots=True)
class Surroundings:
    """What every feed needs."""

    kube: client.KubeClient
    clock: clock.Clock
    observer: WatchObserver
    tuning: Tuning = dataclasses.field(default_factory=Tuning)
    sleep: waiting.Sleep = asyncio.sleep
    jitter: Callable[[], float] = random.random


class _NewViewError(Exception):
    """Not a mistake: a view has come that needs a list."""


class Feed:
    """The list and watch of one path for all views on it."""

    def __init__(self, path: feed_paths.FeedPath, around: Surroundings) -> None:
        self.path = path
        self.views: list[informer_cache.View] = []
        self._around = around
        self._version = ""
        self._listing: list[informer_cache.View] | None = None
        self._new_view = False
        self._reading: read_ahead.ReadAhead[Part] | None = None
        self._stream_tries = _STREAM_TRIES if around.tuning.stream_lists else 0
        self._page_size = around.tuning.page_size
        self._failures = 0
        self._was_answered = False
        self._missing_since: float | None = None

    def add(self, view: informer_cache.View) -> None:
        """A further view, which gets everything from a list that is made for it."""
        self.views.append(view)
        self._new_view = True
        if self._reading is not None and self._listing is None:
            self._reading.stop()

    def remove(self, view: informer_cache.View) -> None:
        """A view that nobody needs any more."""
        self.views.remove(view)

    async def run(self) -> None:
        """List and watch until cancelled."""
        self._version = ""
        while True:
            try:
                await self._list_and_watch()
            except _NewViewError:
                continue
            except api_errors.KubernetesError as error:
                await self._fail(error)

    async def _list_and_watch(self) -> None:
        if not self._version or self._new_view:
            await self._list()
        while not self._new_view:
            began = self._around.clock.monotonic()
            await self._follow(self._watch(self._version))
            if self._around.clock.monotonic() - began < _SHORT_WATCH_SECONDS:
                raise api_errors.Unreachable(f"the API server ends each watch of {self.path} at once")

    async def _list(self) -> None:
        self._version = ""
        try:
            if self._stream_tries > 0:
                await self._follow(self._watch(""), is_list=True)
            else:
                await self._follow(self._pages(), is_list=True)
        finally:
            for view in self._listing or ():
                view.abandon_list()
            self._listing = None
        if not self._version:
            raise api_errors.Unreachable(f"the API server ended a list of {self.path} too early")

    async def _follow(self, source: AsyncGenerator[Part, None], *, is_list: bool = False) -> None:
        must_list = is_list
        self._was_answered = False
        async with read_ahead.ReadAhead(source) as parts:
            self._reading = parts
            try:
                async for part in parts:
                    if must_list:
                        self._begin_list()
                        must_list = False
                    await self._take(part)
            finally:
                self._reading = None
        if self._new_view:
            raise _NewViewError

    def _begin_list(self) -> None:
        self._new_view = False
        self._listing = list(self.views)
        for view in self._listing:
            view.begin_list()

    async def _take(self, part: Part) -> None:
        if isinstance(part, watch_lines.Bookmark):
            await self._mark(part)
        elif part:
            await self._take_events(part)
        else:
            self._answered()

    async def _take_events(self, events: Sequence[watch_lines.ObjectEvent]) -> None:
        takers = self._takers()
        batches = await asyncio.gather(*(view.prepare(events) for view in takers))
        for view, batch in zip(takers, batches, strict=True):
            view.take(batch)
        if self._listing is None:
            self._version = events[-1].version
            self._failures = 0

    def _takers(self) -> list[informer_cache.View]:
        if self._listing is not None:
            return self._listing
        return [view for view in self.views if view.synced]

    async def _mark(self, bookmark: watch_lines.Bookmark) -> None:
        if self._listing is not None:
            if not bookmark.ends_initial_events:
                return
            listed, self._listing = self._listing, None
            for view in listed:
                await view.end_list()
            self._stream_tries = _STREAM_TRIES if self._stream_tries else 0
            self._page_size = self._around.tuning.page_size
        self._version = bookmark.version
        self._failures = 0
        if self._new_view and self._reading is not None:
            # It came while the list was on its way.
            self._reading.stop()

    def _answered(self) -> None:
        self._was_answered = True
        self._missing_since = None
        for view in self.views:
            view.set_trouble(None)

    async def _watch(self, version: str) -> AsyncGenerator[Part, None]:
        tuning = self._around.tuning
        async with self._around.kube.stream(self.path.watch_request(version)) as content:
            yield ()
            async for lines in watch_lines.batches(content.iter_any(), tuning.silence):
                for part in _parts(lines):
                    yield part
                    await asyncio.sleep(0)

    async def _pages(self) -> AsyncGenerator[Part, None]:
        limit, token = self._page_size, ""
        while True:
            response = await self._around.kube.request(self.path.list_request(limit, token))
            page = list_pages.read(self.path.target, response.body)
            count = 0
            yield ()
            for events in _slices(page.events()):
                yield events
                count += len(events)
                await asyncio.sleep(0)
            token = page.next
            if not token:
                yield watch_lines.Bookmark(page.version, ends_initial_events=True)
                return
            limit = _next_limit(self._page_size, count, len(response.body))

    async def _fail(self, error: api_errors.KubernetesError) -> None:
        failure = watch_failures.assess(error)
        self._around.observer.watch_failed(self.path.resource.kind, failure.reason)
        self._failures += 1
        if not self._version:
            self._change_way_to_list(failure)
        if failure.starts_anew:
            self._version = ""
        if failure.is_lasting or (self._failures > 1 and not self._was_answered):
            for view in self.views:
                view.set_trouble(str(error))
        self._note_absence(is_missing=failure.reason == "not_found")
        jitter = self._around.jitter() / 2
        await self._around.sleep(self._around.tuning.backoff.after(self._failures, jitter))

    def _change_way_to_list(self, failure: watch_failures.Failure) -> None:
        """A list failed: a stream that is not understood, or breaks again, gives way to pages."""
        if self._stream_tries > 0:
            self._stream_tries = 0 if failure.is_refusal else self._stream_tries - 1
        elif failure.starts_anew:
            # The pages took longer than the API server keeps the state that they show.
            self._page_size = 0

    def _note_absence(self, *, is_missing: bool) -> None:
        now = self._around.clock.monotonic()
        if not is_missing:
            self._missing_since = None
        elif self._missing_since is None:
            self._missing_since = now
        elif now - self._missing_since >= self._around.tuning.gone_after:
            self._missing_since = None
            for view in tuple(self.views):
                view.tell_gone()


def _parts(lines: Iterable[bytes]) -> Iterator[Part]:
    """Runs of events, and bookmarks, in their order; an error comes after what stands before it."""
    batch: list[watch_lines.ObjectEvent] = []
    size = 0
    for line in lines:
        try:
            event = watch_lines.read(line)
        except api_errors.KubernetesError:
            if batch:
                yield batch
            raise
        if isinstance(event, watch_lines.Bookmark):
            if batch:
                yield batch
            yield event
            batch, size = [], 0
            continue
        batch.append(event)
        size += len(line)
        if len(batch) == _BATCH_OBJECTS or size > _BATCH_BYTES:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch


def _slices(events: Iterable[watch_lines.ObjectEvent]) -> Iterator[list[watch_lines.ObjectEvent]]:
    iterator = iter(events)
    while True:
        batch: list[watch_lines.ObjectEvent] = []
        size = 0
        for event in iterator:
            batch.append(event)
            size += len(event.data)
            if len(batch) == _BATCH_OBJECTS or size > _BATCH_BYTES:
                break
        if not batch:
            return
        yield batch


def _next_limit(limit: int, count: int, size: int) -> int:
    """Fewer objects when they are large: a page is held whole."""
    if not limit or not count:
        return limit
    return max(1, min(limit, _PAGE_BYTES * count // max(size, 1)))
