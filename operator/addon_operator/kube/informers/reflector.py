"""Follows the objects of one path: list, watch, and list again when the watch cannot go on.

What comes in goes through the projections of all caches, which keep it in the same order, and only then
moves the place from which the watch goes on after a break.
"""

import asyncio
import collections
from collections.abc import AsyncGenerator, Callable, Iterable, Iterator, Sequence
from typing import Final, TypeAlias

import msgspec

from addon_operator.aio import read_ahead, waiting
from addon_operator.kube import api_errors
from addon_operator.kube.client import client
from addon_operator.kube.informers import deep_objects, informer_cache, object_selections, wire

_BATCH_OBJECTS: Final = 100
_BATCH_BYTES: Final = 1 << 19
_PAGE_BYTES: Final = 8 << 20
_SHORT_WATCH_SECONDS: Final = 1.0
_BACKOFF: Final = waiting.Backoff(0.1, 30.0)
_STREAM_TRIES: Final = 2
_BY_CLASS: Final[tuple[tuple[type[Exception], str], ...]] = (
    (wire.SilentStream, "silent"),
    (api_errors.Unreachable, "unreachable"),
    (api_errors.Unauthorized, "unauthorized"),
    (api_errors.Forbidden, "forbidden"),
    (api_errors.NotFound, "not_found"),
    (api_errors.NotServed, "not_found"),
    (api_errors.Gone, "expired"),
    (api_errors.TooManyRequests, "too_many_requests"),
    (api_errors.BrokenAnswer, "broken_answer"),
)
_LASTING: Final = frozenset({"forbidden", "not_found", "unauthorized", "refused"})
"""Reasons about which somebody has to do something, so that they are reported at once."""
_STARTING_ANEW: Final = frozenset({"expired", "broken_answer", "refused"})
"""Reasons for which the watch cannot go on from where it was."""
_REFUSED: Final = frozenset({400, 422})
"""How API servers answer to parameters that they do not know."""
_GONE: Final = 410
_SERVER_ERRORS: Final = 500

Part: TypeAlias = Sequence[wire.ObjectEvent] | wire.Bookmark
"""Some events, or none when the API server has just begun to answer; or where the watch is now."""

OnFailure = Callable[[str, str], None]
"""Counts a list or watch that failed: its kind, and the reason in one word of a small set."""


class Tuning(msgspec.Struct, frozen=True):
    """Times and sizes, with the values of a running operator; times are in seconds."""

    silence: float = 75.0
    """A watch on which nothing came for so long is dead; bookmarks come every minute."""
    backoff: waiting.Backoff = _BACKOFF
    """Between tries; up to a half of each pause is left to chance."""
    kind_poll: float = 5.0
    """How often a kind that is not there is looked for."""
    page_size: int = 500
    stream_lists: bool = True
    """Whether to ask for the first state as a stream, where the API server can do that."""


class _NewCacheError(Exception):
    """Not a mistake: a cache has come that needs a list."""


class Reflector:
    """The list and watch of one path for all caches of it."""

    def __init__(
        self,
        path: object_selections.WatchPath,
        kube: client.KubeClient,
        time: waiting.Time,
        failed: OnFailure,
        tuning: Tuning,
    ) -> None:
        self.path = path
        self.caches: list[informer_cache.InformerCache] = []
        self._kube = kube
        self._time = time
        self._failed = failed
        self._tuning = tuning
        self._version = ""
        self._listing: list[informer_cache.InformerCache] | None = None
        self._new_cache = False
        self._reading: read_ahead.ReadAhead[Part] | None = None
        self._stream_tries = _STREAM_TRIES if self._tuning.stream_lists else 0
        self._page_size = self._tuning.page_size
        self._failures = 0
        self._is_paging = False
        self._was_answered = False
        self._answered_at = 0.0

    def add(self, cache: informer_cache.InformerCache) -> None:
        """Add a cache, which gets everything from a list that is made for it."""
        self.caches.append(cache)
        self._new_cache = True
        self.break_off()

    def remove(self, cache: informer_cache.InformerCache) -> None:
        """Remove a cache that nobody needs any more."""
        self.caches.remove(cache)

    def break_off(self) -> None:
        """Ask for the watch anew, from where it is."""
        if self._reading is not None and self._listing is None:
            self._reading.stop()

    async def run(self) -> None:
        """List and watch until cancelled."""
        self._version = ""
        while True:
            try:
                await self._list_and_watch()
            except _NewCacheError:
                continue
            except api_errors.KubernetesError as error:
                await self._fail(error)

    async def _list_and_watch(self) -> None:
        if not self._version or self._new_cache:
            await self._list()
        while not self._new_cache:
            began = self._time.monotonic()
            await self._follow(self._watch(self._version))
            if self._time.monotonic() - began < _SHORT_WATCH_SECONDS:
                raise api_errors.Unreachable(f"the API server ends each watch of {self.path} at once")

    async def _list(self) -> None:
        self._version = ""
        try:
            if self._stream_tries > 0:
                await self._follow(self._watch(""), is_list=True)
            else:
                self._is_paging = True
                await self._follow(self._pages(), is_list=True)
        finally:
            self._is_paging = False
            for cache in self._listing or ():
                cache.abandon_list()
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
        if self._new_cache:
            raise _NewCacheError

    def _begin_list(self) -> None:
        self._new_cache = False
        self._listing = list(self.caches)
        for cache in self._listing:
            cache.begin_list()

    async def _take(self, part: Part) -> None:
        if isinstance(part, wire.Bookmark):
            await self._mark(part)
        elif part:
            await self._take_events(part)
        else:
            self._answered()

    async def _take_events(self, events: Sequence[wire.ObjectEvent]) -> None:
        takers = self._takers()
        batches = await asyncio.gather(*(cache.prepare(events) for cache in takers))
        for cache, batch in zip(takers, batches, strict=True):
            cache.take(batch)
        if self._listing is None:
            self._version = events[-1].version
            self._failures = 0

    def _takers(self) -> list[informer_cache.InformerCache]:
        if self._listing is not None:
            return self._listing
        return [cache for cache in self.caches if cache.synced]

    async def _mark(self, bookmark: wire.Bookmark) -> None:
        if self._listing is not None:
            if not bookmark.ends_initial_events:
                return
            listed, self._listing = self._listing, None
            for cache in listed:
                await cache.end_list()
            self._stream_tries = _STREAM_TRIES if self._stream_tries else 0
            self._page_size = self._tuning.page_size
        self._version = bookmark.version
        self._failures = 0
        if self._new_cache and self._reading is not None:
            # It came while the list was on its way.
            self._reading.stop()

    def _answered(self) -> None:
        self._was_answered = True
        self._answered_at = self._time.monotonic()
        # A list that is read in pages does not show that a watch is possible.
        if not self._is_paging:
            for cache in self.caches:
                cache.set_trouble(None)

    async def _watch(self, version: str) -> AsyncGenerator[Part, None]:
        async with self._kube.stream(self.path.watch_request(version)) as content:
            yield ()
            async for lines in wire.batches(content.iter_any(), self._tuning.silence):
                unread = collections.deque(lines)
                while unread:
                    try:
                        for part in _parts(_read(unread)):
                            yield part
                            await asyncio.sleep(0)
                    except wire.NestsTooDeep:
                        cut = await asyncio.to_thread(deep_objects.cut, unread.popleft())
                        for part in _parts([wire.read_cut_line(cut)]):
                            yield part

    async def _pages(self) -> AsyncGenerator[Part, None]:
        limit, token = self._page_size, ""
        while True:
            response = await self._kube.request(self.path.list_request(limit, token))
            try:
                page = wire.read_page(self.path.target, response.body)
            except wire.NestsTooDeep:
                body = await asyncio.to_thread(deep_objects.cut, response.body)
                page = wire.read_page(self.path.target, body, is_cut=True)
            yield ()
            for part in _parts(page.events()):
                yield part
                await asyncio.sleep(0)
            token = page.next
            if not token:
                yield wire.Bookmark(page.version, ends_initial_events=True)
                return
            limit = _next_limit(self._page_size, len(page.items), len(response.body))

    async def _fail(self, error: api_errors.KubernetesError) -> None:
        reason = _reason(error)
        self._failed(self.path.resource.kind, reason)
        if self._was_answered and self._time.monotonic() - self._answered_at >= _SHORT_WATCH_SECONDS:
            # It stood: what failed before is over, although nothing may have happened since.
            self._failures = 0
        self._failures += 1
        if not self._version:
            self._change_way_to_list(reason)
        if reason in _STARTING_ANEW:
            self._version = ""
        if reason in _LASTING or (self._failures > 1 and not self._was_answered):
            for cache in self.caches:
                cache.set_trouble(str(error))
        pause = self._tuning.backoff.after(self._failures, self._time.jitter() / 2)
        if reason == "not_found":
            # Whether the kind is gone, is served in another version or comes back is for others to find out.
            pause = min(pause, self._tuning.kind_poll)
            for cache in tuple(self.caches):
                cache.note_not_served()
        await self._time.sleep(pause)

    def _change_way_to_list(self, reason: str) -> None:
        """Ask for pages when streamed lists fail, and for the list as a whole when pages take too long."""
        if self._stream_tries > 0:
            self._stream_tries = 0 if reason == "refused" else self._stream_tries - 1
        elif reason in _STARTING_ANEW:
            # The pages took longer than the API server keeps the state that they show.
            self._page_size = 0


def _read(lines: collections.deque[bytes]) -> Iterator[wire.ObjectEvent | wire.Bookmark]:
    """Take lines off and yield what they are; one that cannot be read stays the first."""
    while lines:
        event = wire.read_line(lines[0])
        lines.popleft()
        yield event


def _parts(events: Iterable[wire.ObjectEvent | wire.Bookmark]) -> Iterator[Part]:
    """Yield runs of events, and bookmarks, in order; an error comes after what stands before it."""
    batch: list[wire.ObjectEvent] = []
    size = 0
    try:
        for event in events:
            if isinstance(event, wire.Bookmark):
                if batch:
                    yield batch
                yield event
                batch, size = [], 0
                continue
            batch.append(event)
            size += len(event.data)
            if len(batch) == _BATCH_OBJECTS or size > _BATCH_BYTES:
                yield batch
                batch, size = [], 0
    except api_errors.KubernetesError:
        if batch:
            yield batch
        raise
    if batch:
        yield batch


def _next_limit(limit: int, count: int, size: int) -> int:
    """Ask for fewer objects when they are large: a page is held whole."""
    if not limit or not count:
        return limit
    return max(1, min(limit, _PAGE_BYTES * count // max(size, 1)))


def _reason(error: api_errors.KubernetesError) -> str:
    if isinstance(error, wire.WatchFailed):
        return "expired" if error.code == _GONE else "error_event"
    for class_, reason in _BY_CLASS:
        if isinstance(error, class_):
            return reason
    if not isinstance(error, api_errors.ApiError):
        return "error"
    if error.status in _REFUSED:
        return "refused"
    return "server_error" if error.status >= _SERVER_ERRORS else "error"
