"""The program of a jq worker process: reads batches of documents from a socket and answers each batch.

libjq holds the interpreter's lock while it works, and a program may never end: so it runs in a process that
can be killed. Nothing but the standard library and jq is imported: a worker is there within milliseconds and
takes few megabytes.

A frame is its length and its body. JqRequest: alarm seconds, number of documents, length of the program,
lengths of the documents; the program, the documents. Answer: kind and length of each result; the results. All
numbers are big-endian.
"""

import contextlib
import os
import resource
import signal
import struct
import sys
from collections.abc import Iterable, Sequence
from typing import IO, Final, NamedTuple, Protocol

LENGTH: Final = struct.Struct("!I")
HEAD: Final = struct.Struct("!dII")
RESULT: Final = struct.Struct("!BI")
RESULTS, FAILURE = 0, 1
_KEPT_PROGRAMS: Final = 64
_BUFFER_BYTES: Final = 1 << 18


class JqRequest(NamedTuple):
    """One batch."""

    alarm_seconds: float
    """After this time the worker ends itself, should its parent not live to do so."""
    program: str
    documents: Sequence[bytes]


class Answer(NamedTuple):
    """What became of one document."""

    failed: bool
    data: bytes
    """A JSON array of the results, or the text of libjq."""


class Program(Protocol):
    """A compiled program of the jq library."""

    def input_text(self, text: str) -> "Run":
        """Bind it to a document."""
        ...


class Run(Protocol):
    """A program that is bound to a document."""

    def all(self) -> list[str]:
        """All results; raises :class:`ValueError` when the program fails."""
        ...


class Library(Protocol):
    """What is used of the jq library."""

    def compile(self, program: str) -> Program:
        """Raises :class:`ValueError` for what is not a program."""
        ...


def pack_request(request: JqRequest) -> bytes:
    """The frame of a batch."""
    program = request.program.encode()
    lengths = [len(document) for document in request.documents]
    head = HEAD.pack(request.alarm_seconds, len(lengths), len(program))
    return _frame([head, struct.pack(f"!{len(lengths)}I", *lengths), program, *request.documents])


def unpack_request(body: bytes) -> JqRequest:
    """Back from the frame's body."""
    seconds, count, program_length = HEAD.unpack_from(body)
    lengths = struct.unpack_from(f"!{count}I", body, HEAD.size)
    position = HEAD.size + LENGTH.size * count
    program = body[position : position + program_length].decode()
    return JqRequest(seconds, program, _cut(body, position + program_length, lengths))


def pack_answers(answers: Sequence[Answer]) -> bytes:
    """The frame of a batch's answers."""
    heads = [RESULT.pack(FAILURE if answer.failed else RESULTS, len(answer.data)) for answer in answers]
    return _frame([*heads, *(answer.data for answer in answers)])


def unpack_answers(body: bytes, count: int) -> list[Answer]:
    """Back from the frame's body."""
    heads = [RESULT.unpack_from(body, RESULT.size * index) for index in range(count)]
    data = _cut(body, RESULT.size * count, [length for _, length in heads])
    return [Answer(kind == FAILURE, piece) for (kind, _), piece in zip(heads, data, strict=True)]


def _frame(parts: Sequence[bytes]) -> bytes:
    return b"".join([LENGTH.pack(sum(map(len, parts))), *parts])


def _cut(body: bytes, position: int, lengths: Iterable[int]) -> list[bytes]:
    pieces = []
    for length in lengths:
        pieces.append(body[position : position + length])
        position += length
    return pieces


class JqWorker:
    """Compiles programs and keeps the last ones."""

    def __init__(self, library: Library) -> None:
        self._library = library
        self._programs: dict[str, Program] = {}

    def answer(self, request: JqRequest) -> list[Answer]:
        """Run the program on each document."""
        try:
            program = self._compiled(request.program)
        except ValueError as error:
            return [Answer(True, str(error).encode())] * len(request.documents)
        return [_results(program, document) for document in request.documents]

    def _compiled(self, text: str) -> Program:
        program = self._programs.pop(text, None)
        if program is None:
            # The library hands numbers over as doubles; as JSON text they keep all their digits.
            program = self._library.compile(f"(\n{text}\n) | tojson")
            if len(self._programs) >= _KEPT_PROGRAMS:
                del self._programs[next(iter(self._programs))]
        self._programs[text] = program
        return program


def _results(program: Program, document: bytes) -> Answer:
    try:
        results = program.input_text(document.decode()).all()
    except ValueError as error:
        return Answer(True, str(error).encode())
    return Answer(False, f"[{','.join(results)}]".encode())


def serve(requests: IO[bytes], answers: IO[bytes], worker: JqWorker) -> None:
    """Answer requests until the other side closes the connection."""
    while len(head := requests.read(LENGTH.size)) == LENGTH.size:
        body = requests.read(LENGTH.unpack(head)[0])
        request = unpack_request(body)
        # The default action of the signal ends the process even in the midst of libjq.
        signal.setitimer(signal.ITIMER_REAL, request.alarm_seconds)
        results = worker.answer(request)
        signal.setitimer(signal.ITIMER_REAL, 0)
        answers.write(pack_answers(results))
        answers.flush()


def main(descriptor: int, libraries: str, memory_bytes: int) -> None:
    """Serve on the inherited socket, with jq from that directory and no more memory than that."""
    sys.path.insert(0, libraries)
    import jq  # type: ignore[import-not-found]  # an extension module without stubs

    # Python sets a locale of its own, and a program can read the environment.
    os.environ.clear()
    # A program may ask for any amount of memory; libjq then ends the process.
    resource.setrlimit(resource.RLIMIT_AS, (memory_bytes, memory_bytes))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    with (
        open(descriptor, "rb", buffering=_BUFFER_BYTES, closefd=False) as requests,
        open(descriptor, "wb", buffering=_BUFFER_BYTES) as answers,
        contextlib.suppress(OSError),
    ):
        serve(requests, answers, JqWorker(jq))


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2], int(sys.argv[3]))
