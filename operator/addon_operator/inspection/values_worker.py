"""Reads and checks values in a worker process, which is ended when it takes too long or too much.

Who may edit the ConfigMap, or make a hook write values, decides what patterns and rules are tried on. None of
that can hold up the operator, or the API server that waits for the verdict on an edit.
"""

import contextlib
import contextvars
import io
import pathlib
import pickle
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final, Self

import msgspec

from addon_operator.documents import document_stream
from addon_operator.hook_contract import jq_programs
from addon_operator.inspection import questions, values_worker_main
from addon_operator.kernel import errors, json_types
from addon_operator.modules.health import health_config, resource_health
from addon_operator.process import start_errors
from addon_operator.process.children import spawning, worker_frames
from addon_operator.values import inspectors
from addon_operator.values.schema import chart_schemas, schemas

SECONDS: Final = 20.0
"""For one section when nobody waits."""
OUTPUT_SECONDS: Final = 60.0
"""For one output of a hook."""
JQ_SECONDS: Final = 5.0
"""For all jq expressions of one configuration, or of one output."""
MEMORY_BYTES: Final = 512 << 20
"""How much data the worker may have."""
_START_SECONDS: Final = 30.0
_ALARM_MARGIN: Final = 5.0
_MOST_SCHEMAS: Final = 1000
"""From so many on, counting those of modules that changed, the worker begins anew."""


class ValuesWorker(inspectors.Inspector):
    """Reads and checks in another process; any thread but the loop's may ask.

    The process is started with the first question, and again after it was ended. It answers one question at a
    time. What takes it too long is wrong, in a sentence that names the bound.
    """

    def __init__(self, seconds: float = SECONDS, memory_bytes: int = MEMORY_BYTES) -> None:
        """``seconds`` are for one question outside of :meth:`within`; ``memory_bytes`` for the process."""
        super().__init__()
        self._seconds = seconds
        self._memory_bytes = memory_bytes
        self._one_by_one = threading.Lock()
        self._worker: _Connection | None = None
        self._closed = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End the worker for good; who waits for an answer gets none."""
        self._closed = True
        if (worker := self._worker) is not None:
            worker.kill()
        with self._one_by_one:
            self._end()

    @contextlib.contextmanager
    def within(self, seconds: float, *, waiting: bool = True) -> Iterator[None]:
        """Bound all that the block asks for to so many seconds, ``waiting`` for its turn included."""
        token = _BUDGET.set(_Budget(seconds, waiting=waiting))
        try:
            yield
        finally:
            _BUDGET.reset(token)

    def call(self, function: Callable[..., Any], *arguments: Any, gives: Any = Any) -> Any:  # noqa: ANN401
        """See :class:`.Inspector`; the result is handed over as JSON."""
        shared = _BUDGET.get()
        began = time.monotonic()
        if not self._one_by_one.acquire(timeout=-1 if shared is None else shared.wait_seconds):
            raise inspectors.LostError(_BUSY)
        try:
            worker = self._started()
            if shared is not None:
                shared.waited(time.monotonic() - began)
            own = _Budget(self._seconds)
            budget = own if shared is None or own.left < shared.left else shared
            if budget.left <= 0:
                raise inspectors.LostError(budget.exceeded)
            with self._ending(budget):
                answer = worker.call(function, arguments, budget.left)
        finally:
            self._one_by_one.release()
        match answer[:1]:
            case values_worker_main.RESULT:
                return msgspec.json.decode(answer[1:], type=gives)
            case values_worker_main.REFUSED:
                raise errors.ConfigurationError(answer[1:].decode())
            case values_worker_main.MEMORY:
                raise inspectors.LostError(_too_much(self._memory_bytes))
            case values_worker_main.DEPTH:
                raise inspectors.LostError("mappings, lists or references of the schema nest too deep")
            case _:
                raise inspectors.LostError(f"a defect of the operator: {answer[1:].decode()}")

    def load_stream(self, text: str) -> list[json_types.JsonValue]:
        """Return the documents of what a hook wrote, see :func:`.load_stream`.

        Raises :class:`.DocumentError`.
        """
        try:
            answer = self.call(questions.documents, text)
        except inspectors.LostError as error:
            raise document_stream.DocumentError(f"it cannot be read: {error}") from None
        if "error" in answer:
            raise document_stream.StreamError(*answer["error"])
        documents: list[json_types.JsonValue] = answer["documents"]
        return documents

    @contextlib.contextmanager
    def checking_jq(self) -> Iterator[None]:
        """Have the block's jq expressions compiled by the worker, all of them in :data:`JQ_SECONDS`."""
        # That others are checked, or the machine is busy while the process starts, says nothing of them.
        with self.within(JQ_SECONDS, waiting=False), jq_programs.checking_with(self.check_jq):
            yield

    def check_jq(self, text: str) -> None:
        """See :data:`.jq_programs.Check`."""
        try:
            self.call(jq_programs.check_here, text)
        except inspectors.LostError:
            raise jq_programs.JqError(_JQ_TOO_LARGE) from None
        except errors.ConfigurationError as error:
            raise jq_programs.JqError(str(error)) from None

    def judge_health(
        self, rule: health_config.HealthRule, objects: Sequence[json_types.KubernetesObject]
    ) -> list[resource_health.ResourceHealth]:
        """Return how objects are by a rule, in their order."""
        try:
            answers = self.call(questions.judged, rule.healthy, rule.failed, list(objects))
        except inspectors.LostError as error:
            answers = [(resource_health.HealthState.PROGRESSING, f"its rule: {error}")] * len(objects)
        return [
            resource_health.ResourceHealth(resource_health.HealthState(state), message)
            for state, message in answers
        ]

    def read_index(self, path: pathlib.Path, name: str, version: str) -> json_types.JsonObject:
        """Return what the ``index.yaml`` in a file says of a version, see :func:`.chart_index.find`.

        Raises :class:`.ConfigurationError`.
        """
        try:
            entry: json_types.JsonObject = self.call(questions.index_entry, path, name, version)
        except inspectors.LostError as error:
            raise errors.ConfigurationError(f"index.yaml cannot be read: {error}") from None
        return entry

    @contextlib.contextmanager
    def _ending(self, budget: "_Budget") -> Iterator[None]:
        """End the worker whatever keeps it from answering."""
        try:
            yield
        except BaseException as error:
            self._end()
            if isinstance(error, TimeoutError):
                raise inspectors.LostError(budget.exceeded) from None
            if isinstance(error, OSError | EOFError):
                raise inspectors.LostError(_too_much(self._memory_bytes)) from None
            raise

    def _started(self) -> "_Connection":
        if self._closed:
            raise inspectors.LostError("the operator ends")
        if self._worker is not None and self._worker.knows < _MOST_SCHEMAS:
            return self._worker
        self._end()
        try:
            self._worker = _Connection(self._memory_bytes)
            self._worker.call(questions.hello, (), _START_SECONDS)
        except (OSError, EOFError) as error:
            self._end()
            raise inspectors.LostError(f"the process for it cannot be started: {error}") from None
        except start_errors.ChildStartError as error:
            raise inspectors.LostError(str(error)) from None
        return self._worker

    def _end(self) -> None:
        worker, self._worker = self._worker, None
        if worker is not None:
            worker.close()


class _Budget:
    """Until when what belongs together has to be done."""

    def __init__(self, seconds: float, *, waiting: bool = True) -> None:
        self._seconds = seconds
        self._until = time.monotonic() + seconds
        self._waiting = waiting

    @property
    def left(self) -> float:
        return self._until - time.monotonic()

    @property
    def wait_seconds(self) -> float:
        """How long to wait for the lock; below 0 without an end."""
        return max(0.0, self.left) if self._waiting else -1

    def waited(self, seconds: float) -> None:
        """Note for how long the worker was waited for."""
        if not self._waiting:
            self._until += seconds

    @property
    def exceeded(self) -> str:
        return (
            f"it took more than {self._seconds:g} s, the time limit; make the values smaller, or the "
            "patterns and rules of the schema simpler"
        )


_BUDGET: Final = contextvars.ContextVar[_Budget | None]("values budget", default=None)
_JQ_TOO_LARGE: Final = (
    "to compile it takes too much time or memory; make it shorter, or its constants smaller"
)
_BUSY: Final = "others are being checked for as long as this may take; try again in a minute"


def _too_much(memory_bytes: int) -> str:
    return f"it takes more than {memory_bytes >> 20} MiB of memory, the limit; make the values smaller"


class _Arguments(pickle.Pickler):
    """Writes arguments with the digest of each schema in its place."""

    def __init__(self, file: io.BytesIO) -> None:
        super().__init__(file)
        self.schemas: dict[str, schemas.Schema | chart_schemas.ChartSchemas] = {}

    def persistent_id(self, part: object) -> str | None:
        """Return the digest of a schema."""
        if not isinstance(part, schemas.Schema | chart_schemas.ChartSchemas):
            return None
        self.schemas[part.digest] = part
        return part.digest


class _Connection:
    """One process and the socket to it."""

    def __init__(self, memory_bytes: int) -> None:
        script = pathlib.Path(values_worker_main.__file__)
        self._process, self._socket = spawning.start_python(script, memory_bytes)
        self._learnt: set[str] = set()

    @property
    def knows(self) -> int:
        """How many schemas it was given."""
        return len(self._learnt)

    def call(self, function: Callable[..., Any], arguments: tuple[Any, ...], seconds: float) -> bytes:
        """Return the answer, see :mod:`.values_worker_main`.

        Raises :class:`TimeoutError`, and :class:`OSError` or :class:`EOFError` if the process died.
        """
        until = time.monotonic() + seconds
        pickled = _Arguments(body := io.BytesIO())
        pickled.dump((function.__module__, function.__name__, arguments))
        new = {digest: each for digest, each in pickled.schemas.items() if digest not in self._learnt}
        learnt = {digest: (each.definition, each.source) for digest, each in new.items()}
        request = pickle.dumps((learnt, body.getvalue()))
        self._socket.settimeout(max(0.001, until - time.monotonic()))
        self._socket.sendall(worker_frames.request(request, seconds + _ALARM_MARGIN))
        size = worker_frames.answer_size(self._receive(worker_frames.HEAD_BYTES, until))
        answer = bytes(self._receive(size, until))
        self._learnt.update(new)
        return answer

    def _receive(self, count: int, until: float) -> bytearray:
        received = bytearray(count)
        view = memoryview(received)
        while view:
            self._socket.settimeout(max(0.001, until - time.monotonic()))
            got = self._socket.recv_into(view)
            if not got:
                raise EOFError
            view = view[got:]
        return received

    def kill(self) -> None:
        """End the process; may be called from another thread than :meth:`ask`."""
        self._process.kill()

    def close(self) -> None:
        """End the process and give back what it held."""
        self._process.kill()
        self._process.wait()
        self._socket.close()
