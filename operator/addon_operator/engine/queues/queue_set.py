"""All queues: ``main``, that of removals, and named ones that come and go with the bindings that use them."""

import asyncio
import collections
import random
from collections.abc import Callable
from typing import Final

from addon_operator.engine import events, tasks
from addon_operator.engine.queues import task_queue
from addon_operator.hook_contract.configuration import bindings
from addon_operator.kernel import clock as clocks

REMOVALS: Final = "removals"


class QueueSet:
    """Makes, works and removes queues.

    A named queue is strict: while its first task waits for another try, nothing behind it runs.
    """

    def __init__(
        self,
        tell: events.Listener,
        *,
        clock: clocks.Clock,
        parallelism: int = 1,
        rng: random.Random | None = None,
    ) -> None:
        self._tell = tell
        self._clock = clock
        self._rng = rng
        self._is_closed = False
        self._uses: collections.Counter[str] = collections.Counter()
        self._workers: dict[str, asyncio.Task[None]] = {}
        self._group: asyncio.TaskGroup | None = None
        self.main = task_queue.TaskQueue(
            bindings.MAIN_QUEUE, tell=tell, clock=clock, parallelism=parallelism, rng=self._rng
        )
        """The queue of all that has no queue of its own."""
        self.removals = task_queue.TaskQueue(
            REMOVALS, tell=tell, clock=clock, parallelism=parallelism, descends=True, rng=self._rng
        )
        """Modules and releases that are being removed, beside all that runs in ``main``."""
        self._queues = {bindings.MAIN_QUEUE: self.main}

    @property
    def all(self) -> tuple[task_queue.TaskQueue, ...]:
        """All queues that there are now, ``main`` first, the others by name."""
        used = (each for each in self._each if each.tasks or each is not self.removals)
        return tuple(sorted(used, key=lambda each: (each is not self.main, each.name)))

    @property
    def _each(self) -> tuple[task_queue.TaskQueue, ...]:
        return (*self._queues.values(), self.removals)

    def __getitem__(self, name: str) -> task_queue.TaskQueue:
        """Return the queue of that name; make it if there is none."""
        if name not in self._queues:
            self._make(name)
        return self._queues[name]

    def use(self, name: str) -> None:
        """Note that one more binding uses the queue."""
        self._uses[name] += 1

    def leave(self, name: str) -> None:
        """Note that one binding less uses the queue; after the last one it ends with its last task."""
        self._uses[name] -= 1
        if name in self._queues:
            self._end_if_unused(self._queues[name])

    def drop(self, unwanted: Callable[[tasks.Task], bool]) -> None:
        """Remove unwanted tasks from all queues; see :meth:`task_queue.TaskQueue.drop`."""
        for queue in self.all:
            queue.drop(unwanted)

    async def work(self) -> None:
        """Work all queues until cancelled."""
        async with asyncio.TaskGroup() as group:
            self._group = group
            for queue in self._each:
                self._start(queue)

    async def drain(self, grace: float) -> None:
        """Begin nothing more in any queue, and wait up to ``grace`` seconds for what runs."""
        self._is_closed = True
        await asyncio.gather(*(queue.drain(grace) for queue in self._each))

    def _pass_on(self, event: events.Event) -> None:
        self._tell(event)
        if isinstance(event, events.QueueChanged) and event.queue in self._queues:
            self._end_if_unused(self._queues[event.queue])

    def _make(self, name: str) -> None:
        queue = task_queue.TaskQueue(
            name, tell=self._pass_on, clock=self._clock, is_strict=True, rng=self._rng
        )
        self._queues[name] = queue
        if self._is_closed:
            queue.close()
        elif self._group is not None:
            self._start(queue)

    def _start(self, queue: task_queue.TaskQueue) -> None:
        if self._group is not None:
            self._workers[queue.name] = self._group.create_task(queue.work(), name=f"queue {queue.name}")

    def _end_if_unused(self, queue: task_queue.TaskQueue) -> None:
        if queue is self.main or queue.tasks or self._uses[queue.name] > 0:
            return
        if self._queues.get(queue.name) is not queue:
            return
        del self._queues[queue.name]
        if (worker := self._workers.pop(queue.name, None)) is not None:
            worker.cancel()
        self._tell(events.QueueGone(queue.name))
