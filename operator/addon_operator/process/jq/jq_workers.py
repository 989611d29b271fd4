"""Runs jq programs in worker processes: neither slow nor endless ones hold up the event loop."""

import asyncio
import pathlib
import subprocess
from collections.abc import Iterator, Sequence
from typing import Final, Self

import jq  # type: ignore[import-not-found]  # an extension module without stubs

from addon_operator.hook_contract import jq_programs
from addon_operator.process import start_errors
from addon_operator.process.children import spawning, worker_frames
from addon_operator.process.jq import jq_worker_main

WORKERS: Final = 2
MEMORY_BYTES: Final = 1 << 30
_BATCH_DOCUMENTS: Final = 50
_BATCH_BYTES: Final = 1 << 19
_ANSWER_BYTES: Final = 2 * jq_worker_main.MAX_RESULT_BYTES
"""A larger answer to a batch is not read: its documents are asked for one by one."""
_READ_BUFFER: Final = 1 << 20
_START_SECONDS: Final = 30.0
_ALARM_MARGIN: Final = 5.0
_LATE_MAX: Final = 3
"""How many documents of a batch may use up their time one by one before the rest is given up."""
_LEAST_SECONDS: Final = 0.25
"""Time that every program gets for a document."""


_DIED: Final = jq_programs.JqError("the process that ran it was killed twice; does it need too much memory?")
_GREETING: Final = jq_worker_main.JqRequest(".", (b"null",))


class _WorkerLostError(Exception):
    """The worker died or did not answer; it is gone now."""

    def __init__(self, *, late: bool) -> None:
        super().__init__("late" if late else "dead")
        self.late = late


class _Worker:
    """One process and the connection to it."""

    def __init__(
        self,
        process: "subprocess.Popen[bytes]",
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
    ) -> None:
        self._process = process
        self._reader = reader
        self._writer = writer

    @classmethod
    async def start(cls, memory_bytes: int) -> Self:
        script, libraries = pathlib.Path(jq_worker_main.__file__), pathlib.Path(jq.__file__).parent
        process, ours = spawning.start_python(script, libraries, memory_bytes, options=("-I", "-S"))
        try:
            reader, writer = await asyncio.open_connection(sock=ours, limit=_READ_BUFFER)
        except BaseException:
            process.kill()
            process.wait()
            raise
        worker = cls(process, reader, writer)
        try:
            # The time that a program gets does not begin before the worker can work.
            await worker.ask(_GREETING, _START_SECONDS)
        except BaseException:
            await worker.end()
            raise
        return worker

    async def ask(self, request: jq_worker_main.JqRequest, timeout: float) -> list[bytes]:
        try:
            async with asyncio.timeout(timeout):
                body = jq_worker_main.pack_request(request)
                self._writer.write(worker_frames.request(body, timeout + _ALARM_MARGIN))
                size = worker_frames.answer_size(await self._reader.readexactly(worker_frames.HEAD_BYTES))
                if size > _ANSWER_BYTES:
                    raise _WorkerLostError(late=False)
                body = await self._reader.readexactly(size)
        except TimeoutError as error:
            raise _WorkerLostError(late=True) from error
        except (asyncio.IncompleteReadError, OSError) as error:
            raise _WorkerLostError(late=False) from error
        return body.split(b"\n")

    async def end(self) -> None:
        self._process.kill()
        self._writer.close()
        await asyncio.to_thread(self._process.wait)


class JqWorkers:
    """A pool of worker processes, started when they are first needed; to be used in one event loop."""

    def __init__(self, workers: int = WORKERS, memory_bytes: int = MEMORY_BYTES) -> None:
        """``workers`` is how many processes may run at once, ``memory_bytes`` the address space of each."""
        self._memory_bytes = memory_bytes
        self._places = asyncio.Semaphore(workers)
        self._idle: list[_Worker] = []
        self._shares: dict[str, float] = {}
        """Of programs that did not end in time: what part of it they get. Each time that one is late halves
        it, each end in time doubles it."""
        self._slow_place = asyncio.Lock()
        self._closed = False

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """End all workers; one that works now ends with its batch."""
        self._closed = True
        while self._idle:
            await self._idle.pop().end()

    async def run(
        self, program: str, documents: Sequence[bytes], timeout: float
    ) -> list[bytes | jq_programs.JqError]:
        """Return the program's results on each document, in order: a JSON array, or why there are none.

        ``documents`` are JSON. ``timeout`` is in seconds and for one document: a program that takes longer is
        stopped, by killing its worker. What a killed worker had in hand is run once more, one by one. A
        program that is stopped again and again gets less and less time, since others wait for its answers.
        """
        batches = list(_batches(documents))
        answers = await asyncio.gather(*(self._batch(program, batch, timeout) for batch in batches))
        return [answer for batch in answers for answer in batch]

    async def _batch(
        self, program: str, documents: Sequence[bytes], timeout: float
    ) -> list[bytes | jq_programs.JqError]:
        if program not in self._shares:
            try:
                return await self._ask(program, documents, timeout)
            except _WorkerLostError as error:
                if error.late:
                    self._shares[program] = 1.0
            except start_errors.ChildStartError as error:
                return [jq_programs.JqError(str(error))] * len(documents)
        if program not in self._shares:
            return await self._one_by_one(program, documents, timeout)
        # All such programs share one worker: the others are for programs that end.
        async with self._slow_place:
            return await self._one_by_one(program, documents, timeout)

    async def _one_by_one(
        self, program: str, documents: Sequence[bytes], timeout: float
    ) -> list[bytes | jq_programs.JqError]:
        answers: list[bytes | jq_programs.JqError] = []
        late = 0
        for document in documents:
            share = self._shares.get(program, 1.0)
            seconds = max(timeout * share, min(timeout, _LEAST_SECONDS))
            if late == _LATE_MAX:
                answers.append(_too_slow(seconds))
                continue
            try:
                answers += await self._ask(program, [document], seconds)
                if share < 1:
                    self._shares[program] = share * 2
            except _WorkerLostError as error:
                answers.append(_too_slow(seconds) if error.late else _DIED)
                if error.late:
                    late += 1
                    self._shares[program] = share / 2 if seconds > _LEAST_SECONDS else share
            except start_errors.ChildStartError as error:
                answers.append(jq_programs.JqError(str(error)))
        return answers

    async def _ask(
        self, program: str, documents: Sequence[bytes], timeout: float
    ) -> list[bytes | jq_programs.JqError]:
        request = jq_worker_main.JqRequest(program, documents)
        async with self._places:
            worker = self._idle.pop() if self._idle else await _Worker.start(self._memory_bytes)
            try:
                answers = await worker.ask(request, timeout)
            except BaseException:
                await worker.end()
                raise
            if self._closed:
                await worker.end()
            else:
                self._idle.append(worker)
        return [
            answer[1:]
            if answer.startswith(jq_worker_main.RESULTS)
            else jq_programs.error_of(answer[1:].decode(errors="replace"))
            for answer in answers
        ]


def _batches(documents: Sequence[bytes]) -> Iterator[list[bytes]]:
    batch: list[bytes] = []
    size = 0
    for document in documents:
        if batch and (len(batch) == _BATCH_DOCUMENTS or size + len(document) > _BATCH_BYTES):
            yield batch
            batch, size = [], 0
        batch.append(document)
        size += len(document)
    if batch:
        yield batch


def _too_slow(timeout: float) -> jq_programs.JqError:
    return jq_programs.JqError(
        f"it was stopped because it did not end within {timeout:g} s; look for endless recursion or repeat"
    )
