"""Who holds the event loop, seen from within an operator: see ``test_foreign_content.py``.

Measured is processor time and not time, so that other work of the machine does not count:

* a *piece* is what one callback of the main thread's loop takes of that thread;
* a *lock* is what one other thread takes while a thread that wants nothing but to look cannot: it holds the
  interpreter's lock, as a pattern, a parser or a filter in C does, and the loop stands still all the same.
"""

import asyncio
import collections
import contextlib
import dataclasses
import gc
import json
import pathlib
import sys
import threading
import time
import types
from collections.abc import Iterator
from typing import Any, Final

import addon_operator

NOTED: Final = 0.02
"""Seconds of processor time from which on a hold is written down: the project's limit for a piece."""
_EACH: Final = 0.004
_DEPTH: Final = 6
_OURS: Final = str(pathlib.Path(addon_operator.__file__).parent)


@dataclasses.dataclass(frozen=True, slots=True)
class Hold:
    """What kept the loop from going on."""

    kind: str
    """``piece`` or ``lock``."""
    seconds: float
    """Processor time."""
    who: str
    """The callback or the thread."""
    frames: list[str]
    """Where it was seen most often, the innermost last."""

    def __str__(self) -> str:
        return f"{self.kind} of {1000 * self.seconds:.0f} ms: {self.who}: {' > '.join(self.frames)}"


def read(path: pathlib.Path) -> list[Hold]:
    """What was written down so far."""
    text = path.read_text() if path.exists() else ""
    return [Hold(**json.loads(line)) for line in text.splitlines(keepends=True) if line.endswith("\n")]


class Watch:
    """Writes down what holds the loop of the thread that makes it."""

    def __init__(self, path: pathlib.Path) -> None:
        self._path = path
        self._own = threading.current_thread()
        self._began: float | None = None
        self._collected = 0.0
        self._samples: collections.Counter[tuple[str, ...]] = collections.Counter()
        self._over = threading.Event()

    @contextlib.contextmanager
    def watching(self) -> Iterator[None]:
        """Watch until the block ends."""
        plain = asyncio.events.Handle._run

        def run(handle: asyncio.Handle) -> None:
            if threading.current_thread() is not self._own:
                plain(handle)
                return
            self._began = began = time.thread_time()
            try:
                plain(handle)
            finally:
                self._began = None
                if (spent := time.thread_time() - began) >= NOTED:
                    self._note("piece", spent, _name_of(handle))
                self._samples.clear()

        looking = threading.Thread(target=self._look, name="looking", daemon=True)
        setattr(asyncio.events.Handle, "_run", run)  # noqa: B010
        gc.callbacks.append(self._collect)
        looking.start()
        try:
            yield
        finally:
            self._over.set()
            looking.join()
            gc.callbacks.remove(self._collect)
            setattr(asyncio.events.Handle, "_run", plain)  # noqa: B010

    def _collect(self, phase: str, _info: dict[str, int]) -> None:
        if phase == "start":
            self._collected = time.thread_time()
        elif (spent := time.thread_time() - self._collected) >= NOTED:
            self._write(Hold("gc", spent, threading.current_thread().name, []))

    def _look(self) -> None:
        own = threading.current_thread()
        before = _clocks(own)
        while not self._over.wait(_EACH):
            now = _clocks(own)
            longest = max(now, key=lambda thread: now[thread] - before.get(thread, 0.0))
            spent = now[longest] - before.get(longest, 0.0)
            if longest is not self._own and spent >= NOTED:
                frames = _frames(sys._current_frames().get(longest.ident or 0))
                self._write(Hold("lock", spent, longest.name, list(frames)))
            began = self._began
            if began is not None and now[self._own] - began >= NOTED / 2:
                self._samples[_frames(sys._current_frames().get(self._own.ident or 0))] += 1
            before = now

    def _note(self, kind: str, spent: float, who: str) -> None:
        frames = self._samples.most_common(1)
        self._write(Hold(kind, spent, who, list(frames[0][0]) if frames else []))

    def _write(self, hold: Hold) -> None:
        with self._path.open("a") as file:
            file.write(json.dumps(dataclasses.asdict(hold)) + "\n")


def _clocks(but: threading.Thread) -> dict[threading.Thread, float]:
    """Return the processor time of each thread."""
    found = {}
    for thread in threading.enumerate():
        if thread is but or thread.native_id is None:
            continue
        with contextlib.suppress(OSError):  # It has just ended.
            # As pthread_getcpuclockid(3) makes it, which is not for threads that may have ended.
            found[thread] = time.clock_gettime(~thread.native_id << 3 | 6)
    return found


def _name_of(handle: asyncio.Handle) -> str:
    callback: Any = handle._callback  # type: ignore[attr-defined]
    owner = getattr(callback, "__self__", None)
    if isinstance(owner, asyncio.Task):
        return f"task {owner.get_name()} of {getattr(owner.get_coro(), '__qualname__', owner)}"
    return getattr(callback, "__qualname__", None) or repr(callback)[:200]


def _frames(frame: types.FrameType | None) -> tuple[str, ...]:
    """Return the innermost frames of ours, and the innermost of all."""
    found: list[str] = []
    innermost = True
    while frame is not None and len(found) < _DEPTH:
        name = frame.f_code.co_filename
        if innermost or name.startswith(_OURS):
            place = name.removeprefix(_OURS).lstrip("/")
            found.append(f"{'/'.join(place.split('/')[-3:])}:{frame.f_lineno} {frame.f_code.co_name}")
        innermost = False
        frame = frame.f_back
    return tuple(reversed(found))
