"""The webhooks of hooks: begun when their snapshots are there, and gone before their module goes.

Where the API server's requests come in, and how they are registered, is the business of the
:class:`WebhookRegistry` that this is given; here it is found out what a hook answers.
"""

import asyncio
import functools
import time
from collections.abc import Collection, Iterable, Sequence
from typing import Final, Generic, Protocol, TypeVar

from addon_operator.engine import events, state
from addon_operator.engine.bindings import review_runs, triggers
from addon_operator.engine.hooks import questions
from addon_operator.hook_contract import binding_contexts, webhook_entries
from addon_operator.hook_contract.configuration import webhook_bindings
from addon_operator.hook_contract.outputs import patch_check, review_answers
from addon_operator.kernel import errors

VARIABLES: Final = ("VALIDATING_RESPONSE_PATH", "ADMISSION_RESPONSE_PATH")
"""Both hold the path of the file for the answer."""

_LOOK_SECONDS: Final = 0.05
"""Between two looks at whether snapshots are complete: nobody tells that of all bindings of a hook."""
_LATE_SECONDS: Final = 1.0
"""The same for objects that cannot be followed yet, such as those of a kind that does not exist."""


Entry = TypeVar("Entry")
"""A binding by which the API server asks: :class:`.WebhookEntry` or :class:`.ConversionEntry`."""
_Taken_contra = TypeVar("_Taken_contra", contravariant=True)


class WebhookRegistry(Protocol[_Taken_contra]):
    """Registers webhooks with the API server and passes requests to them; the site of admission does."""

    def replace(self, owner: str, entries: Sequence[_Taken_contra]) -> None:
        """Let these answer from now on what is registered of the owner; what is not among them allows."""
        ...

    async def open(self, owner: str, entries: Sequence[_Taken_contra]) -> None:
        """Register these, and none else of the owner.

        Returns when that is written. Raises an :class:`.AddonOperatorError`.
        """
        ...

    async def keep_only(self, owners: Collection[str]) -> None:
        """Remove what is registered of all others, whoever did that.

        Returns when that is written and nobody is asked any more. Raises an :class:`.AddonOperatorError`.
        """
        ...


class NoRegistry:
    """Stands for the site of admission where there is none."""

    def replace(self, owner: str, entries: Sequence[object]) -> None:
        """There is nothing to replace."""

    async def open(self, owner: str, entries: Sequence[object]) -> None:  # noqa: ARG002
        """Raise :class:`.ConfigurationError` if there is something to register."""
        if entries:
            raise errors.ConfigurationError(
                f"{entries[0]} cannot be registered: this operator serves no admission; set WEBHOOK_URL or "
                "ADMISSION_SERVER_ENABLED"
            )

    async def keep_only(self, owners: Collection[str]) -> None:
        """There is nothing to remove."""


class Answers(Protocol[Entry]):
    """Makes the entries of hooks: those of admission, or those of conversions."""

    def entries(self, hooks: Iterable[state.Hook]) -> list[Entry]:
        """Return what these hooks answer."""
        ...

    def complete(self, hook: state.Hook) -> list[Entry]:
        """Return the same of a hook, of which the snapshots are there."""
        ...


class HookAnswers:
    """Makes the webhooks of hooks, and answers for them."""

    def __init__(
        self, runs: review_runs.ReviewRuns, objects: triggers.FollowedObjects, tell: events.Listener
    ) -> None:
        """``objects`` are those of which hooks get snapshots."""
        self._runs = runs
        self._objects = objects
        self._tell = tell

    def entries(self, hooks: Iterable[state.Hook]) -> list[webhook_entries.WebhookEntry]:
        """Return the webhooks of these hooks."""
        return [
            webhook_entries.WebhookEntry(
                hook.module or "", hook.name, binding, functools.partial(self._answer, hook, binding)
            )
            for hook in hooks
            for binding in hook.config.webhooks
        ]

    def complete(self, hook: state.Hook) -> list[webhook_entries.WebhookEntry]:
        """Return the webhooks of a hook whose snapshots are there."""
        return [entry for entry in self.entries([hook]) if self.is_complete(hook, entry.binding)]

    def is_complete(self, hook: state.Hook, binding: webhook_bindings.WebhookBinding) -> bool:
        """Say whether the snapshots of a webhook are there."""
        return self._objects.are_listed(hook, binding.include_snapshots_from)

    async def _answer(
        self,
        hook: state.Hook,
        binding: webhook_bindings.WebhookBinding,
        request: webhook_entries.ReviewRequest,
    ) -> review_answers.AdmissionAnswer:
        seconds = min(binding.timeout_seconds, request.seconds)
        asked = review_runs.Asked(
            hook, binding.name, request.arrived + seconds - review_runs.MARGIN, seconds - review_runs.MARGIN
        )
        details = ""
        try:
            await self._await_snapshots(asked, binding)
            answer = await self._runs.answer(
                asked,
                lambda: self._context(hook, binding, request),
                questions.Question(
                    VARIABLES,
                    functools.partial(_read, asked=binding.type, sent=request.sent),
                    drops_outputs=request.dry_run and binding.side_effects != "None",
                    may_patch_values=binding.type is webhook_bindings.ReviewType.MUTATING,
                ),
            )
            result = _word(answer)
        except review_runs.UnansweredError as error:
            answer = review_answers.AdmissionAnswer(allowed=False, message=str(error))
            result, details = error.result, error.details
        waited = time.monotonic() - request.arrived
        self._tell(events.ReviewAnswered(asked.labels, result, waited, details))
        if result == "overload":
            # No hook said no: the API server does as the binding's failurePolicy says.
            raise webhook_entries.NotAnsweredError(answer.message)
        return answer

    async def _await_snapshots(
        self, asked: review_runs.Asked, binding: webhook_bindings.WebhookBinding
    ) -> None:
        """Wait for what a hook that has just begun, or begins anew, has to know."""
        while not self.is_complete(asked.hook, binding):
            if not asked.left:
                raise review_runs.UnansweredError(
                    f"{review_runs.named(asked.hook)} was not asked: its snapshots are not complete",
                    "timeout",
                )
            await asyncio.sleep(min(_LOOK_SECONDS, asked.left))

    def _context(
        self,
        hook: state.Hook,
        binding: webhook_bindings.WebhookBinding,
        request: webhook_entries.ReviewRequest,
    ) -> binding_contexts.Context:
        snapshots = self._objects.named(hook, binding.include_snapshots_from)
        return binding_contexts.review(binding.name, binding.type.value, request.sent, snapshots)


class Webhooks(Generic[Entry]):
    """Begins and ends the webhooks of the hooks of an owner, as :class:`.HookBindings` asks for."""

    def __init__(
        self, answers: Answers[Entry], registry: WebhookRegistry[Entry], tell: events.Listener
    ) -> None:
        self._answers = answers
        self._registry = registry
        self._tell = tell
        self._late: dict[str, asyncio.Task[None]] = {}

    def begin(self, owner: str, hooks: Sequence[state.Hook]) -> None:
        """Let these hooks answer, from now on, what is registered of the owner."""
        self._registry.replace(owner, self._answers.entries(hooks))

    async def open(self, owner: str, hooks: Sequence[state.Hook]) -> None:
        """Register those whose snapshots are there, and the others as soon as theirs are.

        Raises an :class:`.AddonOperatorError` when that cannot be written, or a name is taken.
        """
        self._forget_late(owner)
        complete = [entry for hook in hooks for entry in self._answers.complete(hook)]
        await self._registry.open(owner, complete)
        if len(complete) < len(self._answers.entries(hooks)):
            self._late[owner] = asyncio.create_task(
                self._open_late(owner, hooks, len(complete)), name=f"webhooks of {owner or 'global hooks'}"
            )

    def end(self, owner: str) -> None:
        """Let everything pass that the API server still asks of the owner."""
        self._forget_late(owner)
        self._registry.replace(owner, ())

    async def keep_only(self, owners: Collection[str]) -> None:
        """Remove what is registered of all others, before they go.

        Raises an :class:`.AddonOperatorError` when that cannot be written.
        """
        for owner in self._late.keys() - owners:
            self._forget_late(owner)
        await self._registry.keep_only(owners)

    async def _open_late(self, owner: str, hooks: Sequence[state.Hook], opened: int) -> None:
        """Register what more becomes complete, until all is."""
        wanted, trouble = len(self._answers.entries(hooks)), ""
        while opened < wanted:
            await asyncio.sleep(_LATE_SECONDS)
            complete = [entry for hook in hooks for entry in self._answers.complete(hook)]
            if len(complete) <= opened:
                continue
            try:
                await self._registry.open(owner, complete)
            except errors.AddonOperatorError as error:
                if str(error) != trouble:
                    trouble = str(error)
                    self._tell(events.Warned(trouble))
            else:
                opened = len(complete)

    def _forget_late(self, owner: str) -> None:
        if (late := self._late.pop(owner, None)) is not None:
            late.cancel()


def _read(text: str, asked: webhook_bindings.ReviewType, sent: bytes) -> review_answers.AdmissionAnswer:
    answer = review_answers.parse(text, asked)
    patch_check.check(sent, answer.patch)
    return answer


def _word(answer: review_answers.AdmissionAnswer) -> events.ReviewResult:
    if not answer.allowed:
        return "denied"
    return "patched" if answer.patch else "allowed"
