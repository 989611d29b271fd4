"""Time that passes when a test says so, and the moment when nothing is left to do without it."""

import asyncio
import contextlib
import time
import weakref
from collections.abc import Callable, Iterator
from concurrent import futures
from typing import Any, Final

from typing_extensions import override

from addon_operator.aio import waiting

_THREAD_SECONDS: Final = 0.0005
"""Between two looks at threads that work."""
_PATIENCE: Final = 30.0
"""Seconds until something that never comes to rest is a failure."""


class Clock(waiting.Time):
    """Stands still until a test moves it; then whatever sleeps on the event loop wakes in time, too."""

    def __init__(self) -> None:
        self.now = 100.0

    @override
    def monotonic(self) -> float:
        return self.now

    @override
    def time(self) -> float:
        return self.now

    @override
    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)

    @override
    def jitter(self) -> float:
        return 0.5

    async def advance(self, seconds: float) -> None:
        """Let so much time pass, and everything happen that is due then."""
        self.now += seconds
        _skip(asyncio.get_running_loop(), seconds)
        await settle()


class Pauses(waiting.Time):
    """Instead of sleeping: remembers for how long, and moves the clock on."""

    def __init__(self) -> None:
        self.seconds: list[float] = []
        self.now = 1_000_000.0

    @override
    async def sleep(self, seconds: float) -> None:
        self.seconds.append(seconds)
        self.now += seconds

    @override
    def jitter(self) -> float:
        return 0.5

    @override
    def monotonic(self) -> float:
        return self.now

    @override
    def time(self) -> float:
        return self.now


def _skip(loop: asyncio.AbstractEventLoop, seconds: float) -> None:
    """Move the time of the loop, by which its timers go off, on."""
    inside: dict[str, Any] = vars(loop)
    if "skipped" not in inside:
        before = loop.time
        inside["time"] = lambda: before() + inside["skipped"]
    inside["skipped"] = inside.get("skipped", 0.0) + seconds


async def settle() -> None:
    """Return when nothing is left that can run without time passing, in threads neither."""
    loop = asyncio.get_running_loop()
    ends, is_quiet = time.monotonic() + _PATIENCE, False
    while True:
        # The second turn of two quiet ones has asked the sockets and pipes for news, too.
        was_quiet = is_quiet
        await asyncio.sleep(_THREAD_SECONDS if _threads_work() else 0)
        is_quiet = not _is_busy(loop)
        if is_quiet and was_quiet:
            return
        if time.monotonic() > ends:
            raise AssertionError("it never comes to rest")


def _is_busy(loop: asyncio.AbstractEventLoop) -> bool:
    """Say whether a callback is ready, a timer is due, or a thread works."""
    insides: dict[str, Any] = vars(loop)
    due = (handle.when() <= loop.time() for handle in insides["_scheduled"] if not handle.cancelled())
    return bool(insides["_ready"]) or any(due) or _threads_work()


def _threads_work() -> bool:
    """Say whether a thread has yet to give back what this loop asked of it."""
    asked = _ASKED.get(asyncio.get_running_loop(), ())
    return any(future not in _TOLD for future in list(asked))


_ASKED: Final = weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, weakref.WeakSet[futures.Future[Any]]]()
"""What each loop gave to threads, whose executors may outlive the loop."""
_TOLD: Final = weakref.WeakSet[futures.Future[Any]]()
"""Those of which the loop knows that they are done: a thread may stand still between the two."""
_SUBMIT: Final = futures.ThreadPoolExecutor.submit
_INVOKE_CALLBACKS: Final = futures.Future._invoke_callbacks  # type: ignore[attr-defined]  # not in the stub


_WITHOUT_THREADS: Final = list[object]()
"""Who wants none now."""


@contextlib.contextmanager
def without_threads() -> Iterator[None]:
    """Do in the loop what it gives to threads: that is quicker, and always in the same order."""
    asker = object()
    _WITHOUT_THREADS.append(asker)
    try:
        yield
    finally:
        _WITHOUT_THREADS.remove(asker)


def _submit(pool: futures.ThreadPoolExecutor, /, *args: Any, **kwargs: Any) -> futures.Future[Any]:  # noqa: ANN401
    loop = asyncio._get_running_loop()
    if loop is None:
        return _SUBMIT(pool, *args, **kwargs)
    if _WITHOUT_THREADS:
        return _done(*args, **kwargs)
    future = _SUBMIT(pool, *args, **kwargs)
    _ASKED.setdefault(loop, weakref.WeakSet()).add(future)
    return future


def _done(call: Callable[..., Any], /, *args: Any, **kwargs: Any) -> futures.Future[Any]:  # noqa: ANN401
    future = futures.Future[Any]()
    try:
        future.set_result(call(*args, **kwargs))
    except BaseException as error:  # noqa: BLE001 - whoever waits for it gets it
        future.set_exception(error)
    return future


def _invoke_callbacks(future: futures.Future[Any]) -> None:
    _INVOKE_CALLBACKS(future)
    _TOLD.add(future)


setattr(futures.Future, "_invoke_callbacks", _invoke_callbacks)  # noqa: B010 - not in the stub
setattr(futures.ThreadPoolExecutor, "submit", _submit)  # noqa: B010 - their types differ in generics
