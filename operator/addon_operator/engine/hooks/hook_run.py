"""Runs of hooks: values in, outputs checked and applied, successes and failures reported.

1. Take the values of this moment, and write them and the binding contexts to files of the run.
2. Start the hook's process and wait for its end; one that runs long is reported, not ended.
3. Read and check all its outputs: objects, ConfigMap values, values, metrics. The first that is wrong ends
   the run, and nothing of any of them is applied.
4. Apply them: objects, then the ConfigMap, then values and metrics.
5. Report success, and return what changed: whoever wanted the run decides what follows from that.

A hook that fails (2) has only the operations on objects applied that are meant for that, such as status
patches. Between the steps it is looked at whether the hook's module is still there: the process of a module
that was removed meanwhile may still end, but its outputs come to nothing.
"""

import asyncio
import collections
import contextlib
from collections.abc import AsyncIterator, Iterable
from typing import Any, Final

from addon_operator.engine import events, module_states, state, tasks
from addon_operator.engine.hooks import hook_exchange, hook_outputs, hook_processes, questions
from addon_operator.hook_contract import binding_contexts
from addon_operator.kernel import errors, names
from addon_operator.process.children import children
from addon_operator.values import store

HOLDS_AFTER: Final = 30.0
"""Seconds after which it is reported that a hook still runs, and others do not wait for it any more."""


class HookExecutor:
    """Runs hooks and has what they give back applied."""

    def __init__(
        self,
        runner: hook_processes.HookProcesses,
        values: store.ValuesStore,
        outputs: hook_outputs.HookOutputs,
        states: module_states.ModuleStates,
        tell: events.Listener,
    ) -> None:
        self.runner = runner
        """Starts the processes."""
        self._values = values
        self._outputs = outputs
        self._states = states
        self._tell = tell
        self._alone: dict[tuple[names.ModuleName | None, str], asyncio.Lock] = collections.defaultdict(
            asyncio.Lock
        )
        """Held by the run of a hook: it never runs twice at once, whatever queues its bindings have."""
        self._hinted: set[tuple[names.ModuleName | None, str, str]] = set()

    async def run(
        self,
        hook: state.Hook,
        contexts: Iterable[binding_contexts.Context],
        labels: events.HookLabels,
        task: tasks.Task,
        *,
        allow_failure: bool = False,
    ) -> hook_outputs.HookEffects:
        """Run ``hook`` with these binding contexts, in ``task``.

        Raises :class:`.HookRunError` when it fails, and an
        :class:`.AddonOperatorError` when one of its outputs is wrong; nothing of
        a wrong output is applied. Raises :class:`.SupersededError` when the
        module of the hook was removed meanwhile; nothing is applied then, either.
        """
        result: children.ChildResult | None = None
        alone = self._alone[hook.module, hook.name]
        with task.waiting("its other run to end") if alone.locked() else contextlib.nullcontext():
            await alone.acquire()
        try:
            task.checkpoint()
            async with self._reported_when_long(labels, task):
                ran = await self._start(hook, contexts, labels)
            result = ran.result
            self._check_current(hook)
            outputs = await self._outputs.check(hook, ran)
            self._check_current(hook)
            effects = await self._outputs.apply(hook, outputs, self.runner.timeout(hook), task.waiting)
        except tasks.SupersededError:
            raise
        except errors.AddonOperatorError as error:
            self._check_current(hook)
            failed = error.result if isinstance(error, hook_processes.HookRunError) else result
            if isinstance(error, hook_processes.HookRunError):
                await self._apply_after_failure(hook, error)
            self._tell(events.HookFailed(labels, failed, allow_failure))
            raise
        finally:
            alone.release()
        self._tell(events.HookSucceeded(labels, ran.result))
        self._hint(labels, *outputs.hints)
        return effects

    async def ask(
        self,
        hook: state.Hook,
        context: binding_contexts.Context,
        labels: events.HookLabels,
        question: questions.Question[questions.Answer],
    ) -> tuple[questions.Answer, hook_outputs.HookEffects]:
        """Run ``hook`` to have a question answered, which is read before any output is applied.

        Raises :class:`.HookRunError` when it fails, and an :class:`.AddonOperatorError`
        when its answer or one of its outputs is wrong; nothing of either is taken then.
        Who asks says how it went: nothing is reported here.
        """
        try:
            ran = await self._start(hook, [context], labels, question)
        except hook_processes.HookRunError as error:
            if not question.drops_outputs:
                await self._apply_after_failure(hook, error)
            raise
        if question.drops_outputs:
            return ran.answer, hook_outputs.HookEffects()
        outputs = await self._outputs.check(hook, ran)
        self._hint(labels, *outputs.hints)
        if not question.may_patch_values:
            check_without_values(hook, labels.binding, outputs)
        return ran.answer, await self._outputs.apply(hook, outputs, question.seconds)

    async def _start(
        self,
        hook: state.Hook,
        contexts: Iterable[binding_contexts.Context],
        labels: events.HookLabels,
        question: questions.Question[Any] | None = None,
    ) -> hook_processes.HookRunResult:
        fields = {"hook": labels.hook, "binding": labels.binding, "queue": labels.queue}
        enabled = self._states.enabled if hook.module is not None else None
        given = hook_exchange.Given(
            contexts,
            hook_exchange.values_now(self._values, hook.module, enabled),
            question,
            is_short=question is not None and self._is_short(hook, contexts),
        )
        return await self.runner.run(hook, given, fields | ({"module": hook.module} if hook.module else {}))

    def _is_short(self, hook: state.Hook, contexts: Iterable[binding_contexts.Context]) -> bool:
        return hook_exchange.are_at_hand(self._values, hook.module) and all(
            context.is_within(hook_exchange.SHORT_INPUT) for context in contexts
        )

    def _hint(self, labels: events.HookLabels, *hints: str) -> None:
        """Report what a hook may do in each of its runs."""
        for hint in hints:
            # What follows may be another word each time.
            seen = (labels.module, labels.hook, hint.partition(":")[0])
            self._tell(events.HookDoubted(labels, hint, seen not in self._hinted))
            self._hinted.add(seen)

    async def _apply_after_failure(self, hook: state.Hook, failure: hook_processes.HookRunError) -> None:
        """Apply what a failed hook wrote; a mistake in it does not hide that it failed."""
        try:
            await self._outputs.apply_after_failure(hook, failure.kubernetes_patch)
        except errors.AddonOperatorError as error:
            text = f"the hook failed, and its status patches cannot be applied: {error}"
            self._tell(events.Warned(text))

    @contextlib.asynccontextmanager
    async def _reported_when_long(self, labels: events.HookLabels, task: tasks.Task) -> AsyncIterator[None]:
        """Report a hook that holds its owner, at times that double, and let all others go on."""
        loop = asyncio.get_running_loop()
        timer: asyncio.TimerHandle

        def report(seconds: float) -> None:
            nonlocal timer
            self._tell(events.HookHolds(labels, seconds))
            task.set_stuck()
            timer = loop.call_later(seconds, report, 2 * seconds)

        timer = loop.call_later(HOLDS_AFTER, report, HOLDS_AFTER)
        try:
            yield
        finally:
            timer.cancel()
            task.is_stuck = False

    def _check_current(self, hook: state.Hook) -> None:
        if not self._states.is_current(hook):
            raise tasks.SupersededError(f"hook {hook.name}: module {hook.module} was removed while it ran")


def check_without_values(hook: state.Hook, binding: str, outputs: hook_outputs.CheckedOutputs) -> None:
    """Raise :class:`.AnswerError` if a hook patched values in a run for a binding that only reviews."""
    if outputs.values is not None or outputs.config_values is not None:
        raise questions.AnswerError(
            f"hook {hook.name}: it patched values in a run for {binding}, which only reviews; "
            "remove that, or do it in another binding"
        )
