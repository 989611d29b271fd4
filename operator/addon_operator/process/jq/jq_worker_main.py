"""The program of a jq worker process: reads batches of documents from a socket and answers each batch.

libjq holds the interpreter's lock while it works, and a program may never end: so it runs in a process that
can be killed. Nothing but the standard library, jq and :mod:`.worker_frames` is imported.

A request is a line of JSON with the program, and a line for each document. An answer is, for each document, a
line that begins with what became of it.
"""

import json
import os
import pathlib
import resource
import sys
from collections.abc import Sequence
from typing import Any, Final, NamedTuple

FAILURE: Final = b"!"
RESULTS: Final = b"="
MAX_RESULT_BYTES: Final = 8 << 20
"""What a program may make of one document: whoever asked keeps it."""
_KEPT_PROGRAMS: Final = 64


class JqRequest(NamedTuple):
    """One batch."""

    program: str
    documents: Sequence[bytes]


def pack_request(request: JqRequest) -> bytes:
    """Pack the body of a batch."""
    # In JSON the end of a line stands between words only, where a space means the same.
    documents = (document.replace(b"\n", b" ") for document in request.documents)
    return b"\n".join([json.dumps(request.program).encode(), *documents])


def unpack_request(body: bytes) -> JqRequest:
    """Back from the body."""
    program, *documents = body.split(b"\n")
    return JqRequest(json.loads(program), documents)


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


def main(descriptor: int, libraries: str, memory_bytes: int) -> None:
    """Serve on the inherited socket, with jq from that directory and no more memory than that."""
    sys.path.insert(0, libraries)
    import jq  # type: ignore[import-not-found]  # an extension module without stubs

    sys.path[0] = str(pathlib.Path(__file__).resolve().parents[3])
    from addon_operator.process.children import worker_frames

    # Python sets a locale of its own, and a program can read the environment.
    os.environ.clear()
    # A program may ask for any amount of memory; libjq then ends the process.
    worker_frames.limit(resource.RLIMIT_AS, memory_bytes)
    worker = JqWorker(jq)
    worker_frames.serve(descriptor, lambda body: b"\n".join(worker.answer(unpack_request(body))))


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2], int(sys.argv[3]))
