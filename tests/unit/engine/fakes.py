"""Fakes that the engine's tests share: a clock that is moved by hand, a log of what queues tell."""

import asyncio

from addon_operator.engine import task_queue, tasks


async def settle() -> None:
    """Let everything run that can run without time passing."""
    for _ in range(50):
        await asyncio.sleep(0)


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def monotonic(self) -> float:
        return self.now

    def time(self) -> float:
        return self.now

    async def advance(self, seconds: float, *queues: task_queue.TaskQueue) -> None:
        """Move the time, and make the queues look at it."""
        self.now += seconds
        for queue in queues:
            queue.drop(lambda _task: False)
        await settle()


class QueueLog:
    def __init__(self) -> None:
        self.failures: list[tuple[str, str, float | None]] = []

    def changed(self, queue: task_queue.TaskQueue) -> None:
        pass

    def started(self, queue: task_queue.TaskQueue, task: tasks.Task, waited: float) -> None:
        pass

    def failed(
        self, queue: task_queue.TaskQueue, task: tasks.Task, error: BaseException, delay: float | None
    ) -> None:
        self.failures.append((task.owner, str(error), delay))
