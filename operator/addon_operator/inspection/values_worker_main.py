"""The program of the values worker: calls functions of ours over what people hand in, one after the other.

It runs in a process of its own, which can be ended however long a rule or a pattern takes. A request is a
function with its arguments, as the operator pickled them; an answer is JSON behind a letter that says what it
is, so that nothing that went wrong here reaches further than this process. It keeps the schemas that it was
given.
"""

import importlib
import io
import pathlib
import pickle
import resource
import sys
from typing import Any

RESULT, REFUSED, MEMORY, DEPTH, DEFECT = b"r", b"e", b"m", b"d", b"x"


class Worker(pickle.Unpickler):
    """Answers requests; in place of a schema stands its digest."""

    _schemas: dict[str, Any] = {}  # noqa: RUF012 - those of this process

    def persistent_load(self, digest: Any) -> Any:  # noqa: ANN401  # pickle's
        """Return the schema that was learnt under the digest."""
        return self._schemas[digest]

    @classmethod
    def answer(cls, request: bytes) -> bytes:
        """Answer; every error is an answer, too."""
        from addon_operator.kernel import errors

        try:
            return cls._called(request)
        except MemoryError:
            return MEMORY
        except RecursionError:
            return DEPTH
        except errors.AddonOperatorError as error:
            return REFUSED + str(error).encode(errors="replace")
        except Exception as error:  # noqa: BLE001 - a defect is reported, without a text that may hold values
            return DEFECT + _places(error).encode()

    @classmethod
    def _called(cls, request: bytes) -> bytes:
        import msgspec

        from addon_operator.inspection import questions
        from addon_operator.values.schema import chart_schemas, schemas

        learnt, body = pickle.loads(request)  # noqa: S301 - the operator's own
        for digest, (definition, source) in learnt.items():
            cls._schemas[digest] = (
                chart_schemas.ChartSchemas(definition)
                if isinstance(definition, chart_schemas.CheckedChart)
                else schemas.Schema(definition, source, questions.evaluator())
            )
        module, name, arguments = cls(io.BytesIO(body)).load()
        result = getattr(importlib.import_module(module), name)(*arguments)
        return RESULT + msgspec.json.encode(result)


def _places(error: BaseException) -> str:
    frames, trace = [], error.__traceback__
    while trace is not None:
        frames.append(f"{pathlib.Path(trace.tb_frame.f_code.co_filename).name}:{trace.tb_lineno}")
        trace = trace.tb_next
    return f"{type(error).__name__} at {' > '.join(frames)}"


def main(descriptor: int, memory_bytes: int) -> None:
    """Serve on the inherited socket, with no more memory than that."""
    sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
    from addon_operator.process.children import worker_frames

    worker_frames.limit(resource.RLIMIT_DATA, memory_bytes)
    worker_frames.serve(descriptor, Worker.answer)


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
