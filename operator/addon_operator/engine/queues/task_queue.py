"""A task queue: the tasks of each owner one after another, what fails retried with a backoff.

An owner is a module, its run included, or the global hooks together. What one owner does, or fails to do,
holds up no other: who needs an order among owners, as a converge does, queues the next task when the one
before has ended. A strict queue has one worker, and nothing steps over its failing head.
"""

import asyncio
import collections
import contextlib
import itertools
import random
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final

import msgspec

from addon_operator.aio import waiting
from addon_operator.engine import events
from addon_operator.engine.tasks import (
    Outcome,
    PostponedError,
    SupersededError,
    Task,
    TaskKind,
)
from addon_operator.kernel import clock as clocks
from addon_operator.kernel import errors

RETRIES: Final = waiting.Backoff(5.0, 30.0, growth=1.5)
"""Seconds between the tries of a failing task. Source: "Task queues" of the addon-operator documentation."""
_JITTER: Final = 0.1
HOOKS: Final = 16
"""Tasks without a lane, which are mostly runs of hooks, that work at once in one queue."""


def retry_delay(attempt: int, rng: random.Random, longest: float = RETRIES.longest) -> float:
    """Return seconds to wait after failed try number ``attempt`` (1, 2, …): 5 growing to 30, with jitter."""
    backoff = msgspec.structs.replace(RETRIES, longest=longest)
    return min(longest, backoff.after(attempt) * (1 + rng.random() * _JITTER))


def pick(
    pending: Sequence[Task],
    running: Sequence[Task],
    now: float,
    parallelism: int,
    *,
    is_strict: bool = False,
    descends: bool = False,
) -> Task | None:
    """Return the task to start now, or ``None`` when all have to wait.

    A task waits for what runs or stands before it of its owner. ``parallelism`` bounds how many tasks with a
    lane work at once, and :data:`HOOKS` the others; one that waits for something, or runs a hook for long,
    does not count. A postponed task holds up only its own hook; one that comes after a task of another owner
    holds up nothing. With ``is_strict`` tasks run one after another, whoever owns them. With ``descends`` a
    task waits until the first tries of all tasks of higher lanes have ended.
    """
    if is_strict and running:
        return None
    working = [task for task in running if task.is_working]
    room = {True: parallelism, False: HOOKS}
    for task in working:
        room[task.lane is not None] -= 1
    at_work = {task.owner for task in working}
    busy = {task.owner for task in running}.union(*(task.also for task in running))
    postponed: set[tuple[str, str]] = set()
    ahead = {(task.kind, task.owner) for task in running}
    top = _top_lane((*running, *pending)) if descends else None
    for task in pending:
        is_held = any((task.kind, owner) in ahead for owner in task.after) or _is_below(task, top)
        ahead.add((task.kind, task.owner))
        is_busy = task.owner in busy or not at_work.isdisjoint(task.also)
        busy |= task.also
        if is_held or is_busy or (task.owner, task.hook) in postponed:
            continue
        if task.not_before > now:
            if task.postponed:
                postponed.add((task.owner, task.hook))
                continue
            if is_strict:
                return None
        elif room[task.lane is not None] > 0:
            return task
        busy.add(task.owner)
    return None


def _top_lane(tasks: Iterable[Task]) -> int | None:
    """Return the highest lane of those whose first try has not ended."""
    return max((task.lane for task in tasks if task.lane is not None and task.attempts == 0), default=None)


def _is_below(task: Task, top: int | None) -> bool:
    return top is not None and task.lane is not None and task.attempts == 0 and task.lane < top


class TaskQueue:
    """A named queue. :meth:`work` runs until it is cancelled; everything else returns at once."""

    def __init__(
        self,
        name: str,
        *,
        tell: events.Listener,
        clock: clocks.Clock,
        parallelism: int = 1,
        is_strict: bool = False,
        descends: bool = False,
        rng: random.Random | None = None,
    ) -> None:
        self.name = name
        self._is_strict = is_strict
        self._descends = descends
        self._tell = tell
        self._clock = clock
        self._parallelism = parallelism
        self._rng = rng or random.Random()  # noqa: S311 - jitter, not a secret
        self.pending: list[Task] = []
        """The tasks that no try is under way of, in their order."""
        self._alike: dict[object, list[Task]] = collections.defaultdict(list)
        """Those of :attr:`pending` that may be duplicates of each other, in their order."""
        self._running: dict[Task, asyncio.Task[None]] = {}
        self._wake = asyncio.Event()
        self.is_open = True
        """Whether tasks are still started."""

    @property
    def tasks(self) -> tuple[Task, ...]:
        """All tasks in the queue, the running ones first."""
        return (*self._running, *self.pending)

    @property
    def owners(self) -> frozenset[str]:
        """Owners of the tasks in the queue, but for those that stop for a newer intent."""
        return frozenset(task.owner for task in self.tasks if not task.superseded)

    @property
    def awaited(self) -> dict[str, list[str]]:
        """For owners whose next task comes after others' that stand before it: the owners of those."""
        awaited: dict[str, list[str]] = {}
        ahead: set[tuple[TaskKind, str]] = set()
        top = _top_lane(self.tasks) if self._descends else None
        above = sorted(task.owner for task in self.tasks if top is not None and task.lane == top)
        for task in self.tasks:
            before = [owner for owner in sorted(task.after) if (task.kind, owner) in ahead]
            awaited.setdefault(task.owner, before or (above if _is_below(task, top) else []))
            ahead.add((task.kind, task.owner))
        return awaited

    @property
    def head_age(self) -> float:
        """Seconds since the first task was queued; 0 for an empty queue."""
        head = self._head
        return 0.0 if head is None else self._clock.monotonic() - head.queued_at

    @property
    def _head(self) -> Task | None:
        return next(itertools.chain(self._running, self.pending), None)

    def add(self, task: Task) -> Task:
        """Append ``task`` for :meth:`.TaskQueue.work`, or return the pending one that it duplicates."""
        with self._measured("AddLast"):
            if (other := self._duplicate_of(task)) is not None:
                other.wanted_again = True
                return other
            task.queued_at = task.not_before = self._clock.monotonic()
            self.pending.append(task)
            self._alike[task.key, task.converge].append(task)
        self._changed()
        return task

    def _duplicate_of(self, task: Task) -> Task | None:
        alike = self._alike.get((task.key, task.converge))
        return alike[0] if alike and not task.is_distinct else None

    def _take_out(self, task: Task) -> None:
        """Remove it from what may be a duplicate of another one."""
        alike = self._alike[task.key, task.converge]
        alike.remove(task)
        if not alike:
            del self._alike[task.key, task.converge]

    def drop(self, unwanted: Callable[[Task], bool]) -> None:
        """Remove the pending tasks that are unwanted; running ones stop at their next checkpoint."""
        with self._measured("Filter"):
            dropped: list[Task] = []
            kept: list[Task] = []
            for task in self.pending:
                (dropped if unwanted(task) else kept).append(task)
            self.pending = kept
        for task in dropped:
            self._take_out(task)
            task.leave(Outcome.DROPPED)
        for task in filter(unwanted, self._running):
            task.supersede()
        self._changed()

    def hasten(self, is_wanted: Callable[[Task], bool] = lambda _: True) -> None:
        """Try what failed again now: a change may have removed the reason."""
        now = self._clock.monotonic()
        for task in self.pending:
            if task.attempts > 0 and not task.postponed and is_wanted(task):
                task.not_before = min(task.not_before, now)
        self._changed()

    def resume(self, is_wanted: Callable[[Task], bool]) -> None:
        """Try what was put off again now."""
        for task in self.pending:
            if task.postponed and is_wanted(task):
                task.not_before = min(task.not_before, self._clock.monotonic())
                self._wake.set()

    async def work(self) -> None:
        """Run tasks as they become ready, until cancelled; then the running ones are cancelled, too."""
        try:
            while True:
                self._wake.clear()
                self._start_ready()
                await self._sleep()
        finally:
            await self._cancel(self._running.values())

    def report(self) -> None:
        """Report how much waits, and for how long."""
        tries = 0 if (head := self._head) is None else head.attempts
        length = len(self._running) + len(self.pending)
        self._tell(events.QueueChanged(self.name, length, self.head_age, tries))

    def close(self) -> None:
        """Start nothing more; running tasks stop at their next checkpoint."""
        self.is_open = False
        for task in self._running:
            task.supersede()

    async def drain(self, grace: float) -> None:
        """Start nothing more, and wait up to ``grace`` seconds for the steps that run to end."""
        self.close()
        if self._running:
            await asyncio.wait(list(self._running.values()), timeout=grace)

    def _start_ready(self) -> None:
        while self.is_open:
            now = self._clock.monotonic()
            task = self._next(now)
            if task is None:
                return
            waited = now - task.not_before
            task.postponed = False
            task.tell_queue = self._changed
            self._running[task] = asyncio.create_task(self._try(task), name=f"{self.name}: {task.kind}")
            self._tell(events.TaskStarted(self.name, task, waited))
            self.report()

    def _next(self, now: float) -> Task | None:
        with self._measured("RemoveFirst"):
            running = tuple(self._running)
            task = pick(
                self.pending,
                running,
                now,
                self._parallelism,
                is_strict=self._is_strict,
                descends=self._descends,
            )
            if task is not None:
                self.pending.remove(task)
                self._take_out(task)
        return task

    async def _sleep(self) -> None:
        now = self._clock.monotonic()
        later = [task.not_before - now for task in self.pending if task.not_before > now]
        await waiting.wait_within(self._wake, min(later, default=None))

    async def _try(self, task: Task) -> None:
        try:
            await task.run()
        except SupersededError:
            self._finish(task, Outcome.DROPPED)
        except PostponedError as error:
            self._postpone(task, error.delay)
        except errors.AddonOperatorError as error:
            self._fail(task, error)
        except Exception as error:  # noqa: BLE001 - a defect in one task must not end its queue
            self._fail(task, error)
        else:
            self._finish(task, Outcome.DONE)

    def _finish(self, task: Task, outcome: Outcome) -> None:
        del self._running[task]
        task.leave(outcome)
        self._changed()

    def _fail(self, task: Task, error: Exception) -> None:
        task.attempts += 1
        task.last_error = errors.of_module(str(error), task.owner)
        task.last_error_without_values = errors.of_module(errors.without_values(error), task.owner)
        if task.allow_failure or task.superseded:
            self._tell(events.TaskFailed(self.name, task, error, None))
            self._finish(task, Outcome.DROPPED if task.superseded else Outcome.DONE)
            return
        wait = task.fixed_delay or retry_delay(task.attempts, self._rng, task.longest_delay)
        self._tell(events.TaskFailed(self.name, task, error, wait))
        task.has_tried()
        self._put_back(task, wait)

    def _postpone(self, task: Task, delay: float) -> None:
        if task.superseded:
            self._finish(task, Outcome.DROPPED)
            return
        task.postponed = True
        self._put_back(task, delay)

    def _put_back(self, task: Task, delay: float) -> None:
        task.not_before = self._clock.monotonic() + delay
        with self._measured("AddFirst"):
            del self._running[task]
            self.pending.insert(0, task)
            self._alike[task.key, task.converge].insert(0, task)
        self._changed()

    @contextlib.contextmanager
    def _measured(self, action: str) -> Iterator[None]:
        began = time.perf_counter()
        yield
        self._tell(events.QueueOperation(self.name, action, time.perf_counter() - began))

    def _changed(self) -> None:
        if held := {task.owner for task in self._running if task.is_stuck}:
            for task in self.pending:
                if task.owner in held:
                    task.has_tried()
        self.report()
        self._wake.set()

    async def _cancel(self, running: Iterable[asyncio.Task[None]]) -> None:
        tasks = list(running)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
