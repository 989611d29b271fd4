"""Who holds the event loop, seen from within an operator: see ``test_foreign_content.py``.

Measured is processor time and not time, so that other work of the machine does not count:

* a *piece* is what one callback of the main thread's loop takes of that thread;
* a *lock* is what one other thread takes without a pause while a thread that wants nothing but to look
  cannot: it holds the interpreter's lock, as a pattern, a parser or a filter in C does, and the loop stands
  still all the same. Who gives the lock to others when they ask for it, as Python's own code does, pauses;
* a *gc* is what a collection of garbage takes in any thread; it counts in neither of the others.
"""

import asyncio
import collections
import contextlib
import ctypes
import dataclasses
import gc
import json
import os
import pathlib
import re
import sys
import threading
import time
import types
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from typing_extensions import override

import addon_operator
from tests.unit import costs

PIECE: Final = 0.02
"""Seconds of processor time: the project's limit for a piece."""
LIMITS: Final = {"piece": PIECE, "lock": 2 * PIECE, "gc": 10 * PIECE}
"""A thread may do something else before it takes the lock and keeps it. A collection takes as long as there
are objects, and nobody can interrupt it."""
_ONCE: Final = 4
_NUMBER: Final = re.compile(r"\d+")
_NOTED: Final = 0.01
_ROUNDS: Final = 100_000
_ITEMS: Final = 100_000
_ITEMS_SECONDS: Final = 0.03
_ROUNDS_SECONDS: Final = 0.006
"""How long so many rounds take on the machine that the limit is for."""
_EACH: Final = 0.004
_TURN: Final = sys.getswitchinterval() + 0.001
"""Seconds that Python's own code keeps the lock when others want it, and what it takes to notice that."""
_PAUSES: Final = b"\nvoluntary_ctxt_switches:"
_STATUS_BYTES: Final = 4096
# Unlike Python's own functions, these keep the lock: who gives it away gets it back late.
_LIBC: Final = ctypes.PyDLL(None)
_DEPTH: Final = 6
_OURS: Final = str(pathlib.Path(addon_operator.__file__).parent)


@dataclasses.dataclass(frozen=True, slots=True)
class Hold:
    """What kept the loop from going on."""

    kind: str
    """``piece``, ``lock`` or ``gc``."""
    seconds: float
    """Processor time."""
    who: str
    """The callback or the thread."""
    frames: list[str]
    """Where it was seen most often, the innermost last."""

    @property
    def place(self) -> tuple[str, str, str]:
        """What it has in common with others that the same work makes."""
        first = self.frames[0].partition(":")[0] if self.frames else ""
        return self.kind, _NUMBER.sub("", self.who), first

    @override
    def __str__(self) -> str:
        return f"{self.kind} of {1000 * self.seconds:.0f} ms: {self.who}: {' > '.join(self.frames)}"


def too_long(holds: Sequence[Hold], slowness: float) -> list[Hold]:
    """Return those that nothing may take; ``slowness`` is that of the machine, see :func:`slowness`.

    A machine that others use may stand still for a moment, and counts that as processor time: what is too
    long only once may be up to :data:`_ONCE` times as long.
    """
    over = [(hold, hold.seconds / LIMITS[hold.kind] / slowness) for hold in holds]
    places = collections.Counter(hold.place for hold, times in over if times >= 1)
    return [hold for hold, times in over if times >= (1 if places[hold.place] > 1 else _ONCE)]


def slowness() -> float:
    """How many times as long Python takes here as on the machine that the limit is for; at least 1."""
    by_memory = costs.seconds(_use_memory, _ITEMS) / _ITEMS_SECONDS
    return max(1.0, by_memory, costs.seconds(_turn_round, _ROUNDS) / _ROUNDS_SECONDS)


def _use_memory(items: int) -> None:
    found = {number: str(number) for number in range(items)}
    ("".join(found.values()) * 20).encode().find(b"x")


def _turn_round(times: int) -> None:
    for number in range(times):
        _ = [number]


def read(path: pathlib.Path) -> list[Hold]:
    """What was written down so far."""
    text = path.read_text() if path.exists() else ""
    return [Hold(**json.loads(line)) for line in text.splitlines(keepends=True) if line.endswith("\n")]


@dataclasses.dataclass(frozen=True, slots=True)
class _Clock:
    """What a thread has done until some moment."""

    seconds: float
    pauses: int
    file: int
    """Where the kernel tells it."""

    def held_since(self, before: "_Clock | None") -> float:
        """How long it has run without a pause since then, at least: beside it there were turns."""
        seconds = self.seconds - (before.seconds if before else 0.0)
        turns = max(0, self.pauses - (before.pauses if before else 0) - 1)
        return seconds - turns * _TURN


class _Queue:
    """How long a thread that could go on had to wait for a processor: that is nobody's fault here."""

    def __init__(self, thread: threading.Thread, until: contextlib.ExitStack) -> None:
        self._file: int | None = None
        with contextlib.suppress(OSError):  # Not every kernel counts it.
            self._file = _opened(f"/proc/self/task/{thread.native_id}/schedstat", until)
        self._before = 0.0
        self.waited()

    def waited(self) -> float:
        """Seconds since the last time."""
        total = 0.0 if self._file is None else int(_told(self._file).split()[1]) / 1e9
        waited, self._before = total - self._before, total
        return waited


def _opened(path: str, until: contextlib.ExitStack) -> int:
    file: int = _LIBC.open(path.encode(), os.O_RDONLY)
    if file < 0:
        raise ProcessLookupError
    until.callback(os.close, file)
    return file


def _pauses(file: int) -> int:
    """How often the thread has waited, for the lock or for anything else."""
    return int(_told(file).rpartition(_PAUSES)[2].split(b"\n", 1)[0])


def _told(file: int) -> bytes:
    """What the kernel has to say there just now."""
    buffer = ctypes.create_string_buffer(_STATUS_BYTES)
    if _LIBC.pread(file, buffer, _STATUS_BYTES, ctypes.c_long(0)) <= 0:
        raise ProcessLookupError
    return buffer.value


class Watch:
    """Writes down what holds the loop of the thread that makes it."""

    def __init__(self, path: pathlib.Path) -> None:
        self._path = path
        self._own = threading.current_thread()
        self._began: float | None = None
        self._collecting: dict[int | None, float] = {}
        self._collected: dict[int | None, float] = {}
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
            self._began = began = self._without_collections(time.thread_time(), self._own)
            try:
                plain(handle)
            finally:
                self._began = None
                spent = self._without_collections(time.thread_time(), self._own) - began
                if spent >= _NOTED:
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
        own, now = threading.current_thread(), time.thread_time()
        if phase == "start":
            self._collecting[own.ident] = now
        elif (began := self._collecting.pop(own.ident, None)) is not None:
            self._collected[own.ident] = self._collected.get(own.ident, 0.0) + now - began
            if now - began >= _NOTED:
                self._write(Hold("gc", now - began, own.name, []))

    def _without_collections(self, clock: float, thread: threading.Thread) -> float:
        """What the thread has taken at that time, without the collections that began in it."""
        now = self._collecting.get(thread.ident, clock)
        return now - self._collected.get(thread.ident, 0.0)

    def _look(self) -> None:
        own = threading.current_thread()
        with contextlib.ExitStack() as opened:
            before, queue = self._clocks(own, {}, opened), _Queue(own, opened)
            while not self._over.wait(_EACH):
                now, queued = self._clocks(own, before, opened), queue.waited()
                held = {
                    thread: clock.held_since(before.get(thread)) - queued for thread, clock in now.items()
                }
                longest = max(held, key=lambda thread: held[thread])
                if longest is not self._own and held[longest] >= _NOTED:
                    frames = _frames(sys._current_frames().get(longest.ident or 0))
                    self._write(Hold("lock", held[longest], longest.name, list(frames)))
                began = self._began
                if began is not None and now[self._own].seconds - began >= _NOTED / 2:
                    self._samples[_frames(sys._current_frames().get(self._own.ident or 0))] += 1
                before = now

    def _clocks(
        self,
        but: threading.Thread,
        before: Mapping[threading.Thread, "_Clock"],
        opened: contextlib.ExitStack,
    ) -> dict[threading.Thread, "_Clock"]:
        """Return what each thread has taken, and how often it has paused."""
        found = {}
        for thread in threading.enumerate():
            if thread is but or thread.native_id is None:
                continue
            with contextlib.suppress(OSError):  # It has just ended.
                # As pthread_getcpuclockid(3) makes it, which is not for threads that may have ended.
                seconds = time.clock_gettime(~thread.native_id << 3 | 6)
                known = before.get(thread)
                file = known.file if known else _opened(f"/proc/self/task/{thread.native_id}/status", opened)
                found[thread] = _Clock(self._without_collections(seconds, thread), _pauses(file), file)
        return found

    def _note(self, kind: str, spent: float, who: str) -> None:
        frames = self._samples.most_common(1)
        self._write(Hold(kind, spent, who, list(frames[0][0]) if frames else []))

    def _write(self, hold: Hold) -> None:
        with self._path.open("a") as file:
            file.write(json.dumps(dataclasses.asdict(hold)) + "\n")


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
