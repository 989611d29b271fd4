"""What hooks answer the API server: one way for both kinds of questions, webhooks and conversions.

A question waits for the snapshots of its binding, the hook runs, and what it said is told. The kinds differ
in how long that may take, in what the hook gets, and in what becomes of a question without an answer.
"""

import abc
import asyncio
import functools
import time
from collections.abc import Iterable, Sequence
from typing import Final, Generic, NoReturn

import orjson

from addon_operator.engine import events, state
from addon_operator.engine.bindings import review_runs, triggers
from addon_operator.engine.hooks import questions
from addon_operator.hook_contract import binding_contexts, conversions, hook_entries
from addon_operator.hook_contract.configuration import conversion_bindings, hook_config, webhook_bindings
from addon_operator.hook_contract.hook_entries import Answer, Binding, Request
from addon_operator.hook_contract.outputs import patch_check, review_answers
from addon_operator.kernel import clock
from addon_operator.kernel.json_types import JsonObject

WEBHOOK_VARIABLES: Final = ("VALIDATING_RESPONSE_PATH", "ADMISSION_RESPONSE_PATH")
"""Both hold the path of the file for the answer."""
CONVERSION_VARIABLES: Final = ("CONVERSION_RESPONSE_PATH",)
STEP_SECONDS: Final = 10.0
"""For one run that converts; a chain of several has more."""
_LOOK_SECONDS: Final = 0.05
"""Between two looks at whether snapshots are complete: nobody tells that of all bindings of a hook."""


class HookAnswers(abc.ABC, Generic[Binding, Request, Answer]):
    """Makes the entries of hooks for one kind of question, and answers for them."""

    def __init__(
        self, runs: review_runs.ReviewRuns, objects: triggers.FollowedObjects, tell: events.Listener
    ) -> None:
        """``objects`` are those of which hooks get snapshots."""
        self._runs = runs
        self._objects = objects
        self._tell = tell
        self._wrong: dict[tuple[str, str, str, str], str] = {}

    def unanswered(self, entry: hook_entries.Entry[Binding, Request, Answer]) -> str:
        """Say what went wrong with the last request that this replica got, and when.

        Empty if it was answered, or there was none.
        """
        return self._wrong.get(_place(entry.owner, entry.hook, entry.binding), "")

    def forget(self, owner: str) -> None:
        """Forget what went wrong with requests for hooks of the owner: they end, or others come."""
        self._wrong = {place: text for place, text in self._wrong.items() if place[0] != owner}

    def entries(self, hooks: Iterable[state.Hook]) -> list[hook_entries.Entry[Binding, Request, Answer]]:
        """Return what these hooks answer."""
        return [
            hook_entries.Entry(
                hook.module or "", hook.name, binding, functools.partial(self._answer, hook, binding)
            )
            for hook in hooks
            for binding in self._bindings(hook.config)
        ]

    def complete(self, hook: state.Hook) -> list[hook_entries.Entry[Binding, Request, Answer]]:
        """Return what a hook answers of which the snapshots are there."""
        return [entry for entry in self.entries([hook]) if self._is_complete(hook, entry.binding)]

    @abc.abstractmethod
    def _bindings(self, config: hook_config.HookConfig) -> Sequence[Binding]:
        """Return the bindings of this kind."""

    @abc.abstractmethod
    def _asked(self, hook: state.Hook, binding: Binding, request: Request) -> review_runs.Asked:
        """Say until when the hook may answer."""

    @abc.abstractmethod
    async def _sent(self, request: Request) -> bytes:
        """Return the review for the hook."""

    @abc.abstractmethod
    def _context(
        self, binding: Binding, request: Request, sent: bytes, snapshots: binding_contexts.Snapshots
    ) -> binding_contexts.Context:
        """Return what the hook is given."""

    @abc.abstractmethod
    def _question(self, binding: Binding, request: Request) -> questions.Question[Answer]:
        """Say how the answer is read, and what else is taken of the run."""

    @abc.abstractmethod
    def _word(self, answer: Answer) -> events.ReviewResult:
        """Return the word for an answer in metrics."""

    @abc.abstractmethod
    def _unanswered(self, asked: review_runs.Asked, error: review_runs.UnansweredError) -> Answer:
        """Return the answer in place of the hook's, or raise that there is none."""

    def _is_complete(self, hook: state.Hook, binding: Binding) -> bool:
        return self._objects.are_listed(hook, binding.include_snapshots_from)

    async def _answer(self, hook: state.Hook, binding: Binding, request: Request) -> Answer:
        asked = self._asked(hook, binding, request)
        place = _place(hook.module or "", hook.name, binding)
        try:
            answer = await self._run(asked, binding, request)
        except review_runs.UnansweredError as error:
            when = clock.rfc3339(time.time())
            self._wrong[place] = f"{error}; that was at {when}, on this replica"
            self._say(asked, error.result, error.details)
            return self._unanswered(asked, error)
        self._wrong.pop(place, None)
        self._say(asked, self._word(answer))
        return answer

    async def _run(self, asked: review_runs.Asked, binding: Binding, request: Request) -> Answer:
        await self._await_snapshots(asked, binding)
        sent = await self._sent(request)

        def context() -> binding_contexts.Context:
            snapshots = self._objects.named(asked.hook, binding.include_snapshots_from)
            return self._context(binding, request, sent, snapshots)

        return await self._runs.answer(asked, context, self._question(binding, request))

    async def _await_snapshots(self, asked: review_runs.Asked, binding: Binding) -> None:
        """Wait for what a hook that has just begun, or begins anew, has to know."""
        while not self._is_complete(asked.hook, binding):
            if not asked.left:
                raise review_runs.UnansweredError(
                    f"{review_runs.named(asked.hook)} was not asked: its snapshots are not complete",
                    "timeout",
                )
            await asyncio.sleep(min(_LOOK_SECONDS, asked.left))

    def _say(self, asked: review_runs.Asked, result: events.ReviewResult, details: str = "") -> None:
        waited = time.monotonic() - asked.began
        self._tell(events.ReviewAnswered(asked.labels, result, waited, details))


class WebhookAnswers(
    HookAnswers[webhook_bindings.WebhookBinding, hook_entries.ReviewRequest, review_answers.AdmissionAnswer]
):
    """Allows and denies requests. For what a hook does not answer, the binding's failurePolicy decides."""

    def _bindings(self, config: hook_config.HookConfig) -> Sequence[webhook_bindings.WebhookBinding]:
        return config.webhooks

    def _asked(
        self, hook: state.Hook, binding: webhook_bindings.WebhookBinding, request: hook_entries.ReviewRequest
    ) -> review_runs.Asked:
        seconds = max(0.0, min(binding.timeout_seconds, request.seconds) - review_runs.MARGIN)
        return review_runs.Asked(
            hook, binding.name, request.arrived + seconds, seconds, request.namespace, request.user
        )

    async def _sent(self, request: hook_entries.ReviewRequest) -> bytes:
        return request.sent

    def _context(
        self,
        binding: webhook_bindings.WebhookBinding,
        request: hook_entries.ReviewRequest,  # noqa: ARG002 - it is in the review
        sent: bytes,
        snapshots: binding_contexts.Snapshots,
    ) -> binding_contexts.Context:
        return binding_contexts.review(binding.name, binding.type.value, sent, snapshots)

    def _question(
        self, binding: webhook_bindings.WebhookBinding, request: hook_entries.ReviewRequest
    ) -> questions.Question[review_answers.AdmissionAnswer]:
        return questions.Question(
            WEBHOOK_VARIABLES,
            functools.partial(_read, asked=binding.type, sent=request.sent),
            drops_outputs=request.dry_run,
            may_patch_values=binding.type is webhook_bindings.ReviewType.MUTATING,
            # A patch would be applied to what was sent, to see that it can be.
            is_plain=binding.type is webhook_bindings.ReviewType.VALIDATING,
        )

    def _word(self, answer: review_answers.AdmissionAnswer) -> events.ReviewResult:
        if not answer.allowed:
            return "denied"
        return "patched" if answer.patch else "allowed"

    def _unanswered(
        self,
        asked: review_runs.Asked,  # noqa: ARG002 - the error names it
        error: review_runs.UnansweredError,
    ) -> NoReturn:
        raise hook_entries.NotAnsweredError(str(error)) from error


class ConversionAnswers(
    HookAnswers[conversion_bindings.ConversionBinding, hook_entries.StepRequest, conversions.ConversionAnswer]
):
    """Converts objects by one step. What a hook does not answer is an error for who wants the objects."""

    def _bindings(self, config: hook_config.HookConfig) -> Sequence[conversion_bindings.ConversionBinding]:
        return config.conversions

    def _asked(
        self,
        hook: state.Hook,
        binding: conversion_bindings.ConversionBinding,
        request: hook_entries.StepRequest,
    ) -> review_runs.Asked:
        began = time.monotonic()
        deadline = min(request.arrived + request.seconds, began + STEP_SECONDS) - review_runs.MARGIN
        return review_runs.Asked(hook, binding.name, deadline, max(0.0, deadline - began))

    async def _sent(self, request: hook_entries.StepRequest) -> bytes:
        try:
            return await asyncio.to_thread(orjson.dumps, conversion_review(request))
        except TypeError:
            raise review_runs.UnansweredError(conversions.too_deep(request.objects), "error") from None

    def _context(
        self,
        binding: conversion_bindings.ConversionBinding,
        request: hook_entries.StepRequest,
        sent: bytes,
        snapshots: binding_contexts.Snapshots,
    ) -> binding_contexts.Context:
        versions = request.rule.from_version, request.rule.to_version
        return binding_contexts.conversion(binding.name, versions, sent, snapshots)

    def _question(
        self,
        binding: conversion_bindings.ConversionBinding,  # noqa: ARG002 - all are asked alike
        request: hook_entries.StepRequest,
    ) -> questions.Question[conversions.ConversionAnswer]:
        read = functools.partial(conversions.read_answer, before=request.objects, version=request.version)
        return questions.Question(CONVERSION_VARIABLES, read)

    def _word(self, answer: conversions.ConversionAnswer) -> events.ReviewResult:
        return "denied" if answer.failed_message else "converted"

    def _unanswered(self, asked: review_runs.Asked, error: review_runs.UnansweredError) -> NoReturn:
        wrong = _wrong_answer(error)
        told = f"{review_runs.named(asked.hook)}: {wrong}" if wrong else str(error)
        raise conversions.ConversionError(told) from error


def _place(
    owner: str, hook: str, binding: webhook_bindings.WebhookBinding | conversion_bindings.ConversionBinding
) -> tuple[str, str, str, str]:
    return owner, hook, binding.key, binding.name


def _read(text: str, asked: webhook_bindings.ReviewType, sent: bytes) -> review_answers.AdmissionAnswer:
    answer = review_answers.parse(text, asked)
    patch_check.check(sent, answer.patch)
    return answer


def _wrong_answer(error: BaseException) -> str:
    """Return what is wrong with the objects that a hook gave back; empty if something else went wrong."""
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, conversions.ConversionError):
            return str(cause)
        cause = cause.__cause__
    return ""


def conversion_review(request: hook_entries.StepRequest) -> JsonObject:
    """Return the ``ConversionReview`` that a hook sees."""
    asked: JsonObject = {
        "uid": request.uid,
        "desiredAPIVersion": request.version,
        "objects": [*request.objects],
    }
    return {"apiVersion": "apiextensions.k8s.io/v1", "kind": "ConversionReview", "request": asked}
