"""The program of a jq worker process: reads batches of documents from a socket and answers each batch.

libjq holds the interpreter's lock while it works, and a program may never end: so it runs in a process that
can be killed. Nothing but the standard library and jq is imported: a worker is there within milliseconds and
takes few megabytes.

A frame is its length (big-endian) and its lines. Request: a line of JSON with the alarm's seconds and the
program, and a line for each document. Answer: for each document a line that begins with what became of it.
"""

import contextlib
import json
import os
import resource
import signal
import struct
import sys
from collections.abc import Sequence
from typing import IO, Any, Final, NamedTuple

LENGTH: Final = struct.Struct("!I")
FAILURE: Final = b"!"
RESULTS: Final = b"="
MAX_RESULT_BYTES: Final = 8 << 20
"""What a program may make of one document: whoever asked keeps it."""
_KEPT_PROGRAMS: Final = 64
_BUFFER_BYTES: Final = 1 << 18


class JqRequest(NamedTuple):
    """One batch."""

    alarm_seconds: float
    """After this time the worker ends itself, should its parent not live to do so."""
    program: str
    documents: Sequence[bytes]


def pack_request(request: JqRequest) -> bytes:
    """Pack the frame of a batch."""
    head = json.dumps([request.alarm_seconds, request.program]).encode()
    # In JSON the end of a line stands between words only, where a space means the same.
    return frame([head, *(document.replace(b"\n", b" ") for document in request.documents)])


def unpack_request(body: bytes) -> JqRequest:
    """Back from the frame's body."""
    head, *documents = body.split(b"\n")
    alarm_seconds, program = json.loads(head)
    return JqRequest(alarm_seconds, program, documents)


def frame(lines: Sequence[bytes]) -> bytes:
    """Return the lines of a request or an answer with their length before them."""
    body = b"\n".join(lines)
    return LENGTH.pack(len(body)) + body


class JqWorker:
    """Compiles programs and keeps the last ones."""

    def __init__(self, library: Any) -> None:  # noqa: ANN401 - an extension module without types
        self._library = library
        self._programs: dict[str, Any] = {}

    def answer(self, request: JqRequest) -> list[bytes]:
        """Run the program on each document: its results as a JSON array, or what libjq says first."""
        try:
            program = self._compiled(request.program)
        except ValueError as error:
            return [_failure(error)] * len(request.documents)
        return [_results(program, document) for document in request.documents]

    def _compiled(self, text: str) -> Any:  # noqa: ANN401 - see above
        program = self._programs.pop(text, None)
        if program is None:
            # The library hands numbers over as doubles; as JSON text they keep all their digits.
            program = self._library.compile(f"(\n{text}\n) | tojson")
            if len(self._programs) >= _KEPT_PROGRAMS:
                del self._programs[next(iter(self._programs))]
        self._programs[text] = program
        return program


def _results(program: Any, document: bytes) -> bytes:  # noqa: ANN401 - see above
    try:
        results = program.input_text(document.decode()).all()
    except ValueError as error:
        return _failure(error)
    answer = RESULTS + f"[{','.join(results)}]".encode()
    if len(answer) > MAX_RESULT_BYTES:
        return FAILURE + f"it gives more than {MAX_RESULT_BYTES >> 20} MiB".encode()
    return answer


def _failure(error: ValueError) -> bytes:
    return FAILURE + str(error).strip().partition("\n")[0].encode()


def serve(requests: IO[bytes], answers: IO[bytes], worker: JqWorker) -> None:
    """Answer requests until the other side closes the connection."""
    while len(head := requests.read(LENGTH.size)) == LENGTH.size:
        body = requests.read(LENGTH.unpack(head)[0])
        request = unpack_request(body)
        # The default action of the signal ends the process even in the midst of libjq.
        signal.setitimer(signal.ITIMER_REAL, request.alarm_seconds)
        results = worker.answer(request)
        signal.setitimer(signal.ITIMER_REAL, 0)
        answers.write(frame(results))
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
