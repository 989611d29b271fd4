"""Runs of hooks that answer the API server: beside all queues, with few processes, within a time.

A question waits for a place, its snapshots are taken, and the hook runs. Who asked is answered when the time
is up, whatever the hook does: its process group is ended then, and its place stays taken until it is gone.
What went wrong is told in full to the log, and in one sentence to who asked.
"""

import asyncio
import dataclasses
import time
from collections.abc import Callable
from typing import Final

import msgspec

from addon_operator.engine import events, intents, state
from addon_operator.engine.bindings import process_slots, triggers
from addon_operator.engine.hooks import hook_outputs, hook_processes, hook_run, questions
from addon_operator.hook_contract import binding_contexts
from addon_operator.hook_contract.outputs import patch_check
from addon_operator.kernel import clock, errors, fencing, names
from addon_operator.kube import api_errors

ACTIVATION: Final = "Webhook"
QUEUE: Final = "webhooks"
"""What stands for a queue in logs: such runs have none."""
_ERROR: Final[events.ReviewResult] = "error"
_TIMEOUT: Final[events.ReviewResult] = "timeout"
_LOOK_SECONDS: Final = 0.05
MARGIN: Final = 0.5
"""Seconds of the API server's time that are kept for the way back."""

_NOT_LEADING: Final = (
    "was asked by a replica that does not lead, and changes values or objects, which only the one that leads "
    "may do; try again"
)

Changed = Callable[[state.Hook], None]
"""Is called when a run changed values."""


class Asked(msgspec.Struct, frozen=True):
    """A binding that is asked something, and for how long."""

    hook: state.Hook
    binding: str
    """Its name."""
    deadline: float
    """When an answer is of no use any more, on the monotonic clock."""
    seconds: float
    """The time of the binding, for messages."""
    namespace: str = ""
    """Of the object that it is asked about."""
    user: str = ""
    """Who wants it."""

    @property
    def began(self) -> float:
        """When it was asked, on the monotonic clock."""
        return self.deadline - self.seconds

    @property
    def left(self) -> float:
        """Seconds until then."""
        return max(0.0, self.deadline - time.monotonic())

    @property
    def labels(self) -> events.HookLabels:
        """Its run in metrics and logs."""
        return events.HookLabels(self.hook.name, self.binding, QUEUE, ACTIVATION, self.hook.module)


class UnansweredError(errors.AddonOperatorError):
    """A hook gave no answer; the text is for who asked, and has nothing of what the hook wrote."""

    def __init__(self, text: str, result: events.ReviewResult, cause: Exception | None = None) -> None:
        super().__init__(text)
        self.result = result
        """The word for it in metrics."""
        self.details = str(cause or text)
        """For the log."""


class ReviewRuns:
    """Has questions answered by hooks."""

    def __init__(
        self,
        executor: hook_run.HookExecutor,
        slots: process_slots.ProcessSlots,
        changed: Changed,
    ) -> None:
        self._executor = executor
        self._slots = slots
        self._changed = changed
        self._running: set[asyncio.Task[object]] = set()

    async def answer(
        self,
        asked: Asked,
        context: Callable[[], binding_contexts.Context],
        question: questions.Question[questions.Answer],
    ) -> questions.Answer:
        """Run the hook and return its answer; ``context`` is made when its turn has come.

        Raises :class:`UnansweredError`.
        """
        run = asyncio.create_task(self._run(asked, context, question), name=f"review {asked.binding}")
        self._running.add(run)
        run.add_done_callback(self._ended)
        done, _ = await asyncio.wait({run}, timeout=asked.left)
        if done:
            return run.result()
        raise UnansweredError(
            f"{named(asked.hook)} did not answer within {clock.duration_text(asked.seconds)}", "timeout"
        )

    def _ended(self, run: "asyncio.Task[object]") -> None:
        self._running.discard(run)
        if not run.cancelled():
            # Nobody may have waited so long.
            run.exception()

    async def _run(
        self,
        asked: Asked,
        context: Callable[[], binding_contexts.Context],
        question: questions.Question[questions.Answer],
    ) -> questions.Answer:
        try:
            async with asyncio.timeout(asked.left) as waiting, self._slots.taken(self._asker(asked)):
                waiting.reschedule(None)
                return await self._ask(asked, await _made(asked, context), question)
        except TimeoutError:
            waits = (
                f"no process was free for it within {clock.duration_text(asked.seconds)}; raise "
                "WEBHOOK_HOOKS_PARALLELISM, or timeoutSeconds if it is a webhook"
            )
            raise UnansweredError(f"{named(asked.hook)} was not asked: {waits}", "timeout") from None
        except process_slots.TooManyWaitingError as error:
            raise UnansweredError(f"{named(asked.hook)} was not asked: {error}", "overload") from None

    async def _ask(
        self,
        asked: Asked,
        context: binding_contexts.Context,
        question: questions.Question[questions.Answer],
    ) -> questions.Answer:
        limited = dataclasses.replace(question, seconds=asked.left)
        try:
            answer, effects = await self._executor.ask(asked.hook, context, asked.labels, limited)
        except errors.AddonOperatorError as error:
            raise _failure(asked, error) from error
        if effects != hook_outputs.HookEffects():
            self._changed(asked.hook)
        return answer

    @staticmethod
    def _asker(asked: Asked) -> process_slots.Asker:
        binding = (asked.hook.module, asked.hook.name, asked.binding)
        return process_slots.Asker(binding, asked.namespace, asked.user)


async def _made(asked: Asked, context: Callable[[], binding_contexts.Context]) -> binding_contexts.Context:
    """Make it as soon as its snapshots are there: the hook may have begun anew while the question waited."""
    while True:
        try:
            return context()
        except triggers.IncompleteError as error:
            if not asked.left:
                raise UnansweredError(f"{named(asked.hook)} was not asked: {error}", "timeout") from None
        await asyncio.sleep(min(_LOOK_SECONDS, asked.left))


def put_into(inbox: intents.Inbox) -> Changed:
    """Have the engine react to changed values."""
    return lambda hook: inbox.put_nowait(intents.ValuesChanged(hook))


def named(hook: state.Hook) -> str:
    """Return how a hook is called where its module is not known."""
    return f"hook {hook.name} of {_owner(hook.module)}"


def _owner(module: names.ModuleName | None) -> str:
    return f"module {module}" if module else "the global hooks"


def _failure(asked: Asked, error: errors.AddonOperatorError) -> UnansweredError:
    what, result = "failed", _ERROR
    if isinstance(error, hook_processes.HookRunError) and error.result.timed_out:
        what, result = f"did not answer within {clock.duration_text(asked.seconds)}", _TIMEOUT
    elif isinstance(error, questions.AnswerError):
        what = "gave a wrong answer"
    text = _openly(error) or f"{what}; the operator's log says more"
    return UnansweredError(f"{named(asked.hook)} {text}", result, error)


def _openly(error: BaseException) -> str:
    """Return what who asked may know of an error: nothing that a hook wrote, but for places in a patch."""
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, patch_check.PatchError):
            return f"gave a wrong answer: {cause}"
        if isinstance(cause, questions.NotLeadingError | fencing.FencedError | api_errors.Fenced):
            return _NOT_LEADING
        cause = cause.__cause__
    return ""
