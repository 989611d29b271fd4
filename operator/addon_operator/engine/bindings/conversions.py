"""Conversions by hooks: what a hook answers when objects are wanted in another version.

:class:`.Webhooks` begins and ends them, as it does with webhooks.
"""

import asyncio
import functools
import time
from collections.abc import Iterable
from typing import Final

import orjson

from addon_operator.engine import events, state
from addon_operator.engine.bindings import review_runs, triggers
from addon_operator.engine.hooks import questions
from addon_operator.hook_contract import binding_contexts, conversion_entries, conversions
from addon_operator.hook_contract.configuration import conversion_bindings
from addon_operator.kernel.json_types import JsonObject

VARIABLES: Final = ("CONVERSION_RESPONSE_PATH",)
STEP_SECONDS: Final = 10.0
"""For one run; a chain of several has more."""
_LOOK_SECONDS: Final = 0.05


class HookConversions:
    """Makes the conversions of hooks, and converts with them."""

    def __init__(
        self, runs: review_runs.ReviewRuns, objects: triggers.FollowedObjects, tell: events.Listener
    ) -> None:
        """``objects`` are those of which hooks get snapshots."""
        self._runs = runs
        self._objects = objects
        self._tell = tell

    def entries(self, hooks: Iterable[state.Hook]) -> list[conversion_entries.ConversionEntry]:
        """Return the conversions of these hooks."""
        return [
            conversion_entries.ConversionEntry(
                hook.module or "", hook.name, binding, functools.partial(self._convert, hook, binding)
            )
            for hook in hooks
            for binding in hook.config.conversions
        ]

    def complete(self, hook: state.Hook) -> list[conversion_entries.ConversionEntry]:
        """Return the conversions of a hook whose snapshots are there."""
        return [entry for entry in self.entries([hook]) if self._is_complete(hook, entry.binding)]

    def _is_complete(self, hook: state.Hook, binding: conversion_bindings.ConversionBinding) -> bool:
        return self._objects.are_listed(hook, binding.include_snapshots_from)

    async def _convert(
        self,
        hook: state.Hook,
        binding: conversion_bindings.ConversionBinding,
        request: conversion_entries.StepRequest,
    ) -> conversions.ConversionAnswer:
        began = time.monotonic()
        deadline = min(request.arrived + request.seconds, began + STEP_SECONDS) - review_runs.MARGIN
        asked = review_runs.Asked(hook, binding.name, deadline, max(0.0, deadline - began))
        try:
            answer = await self._answer(asked, binding, request)
        except review_runs.UnansweredError as error:
            self._say(asked, error.result, began, error.details)
            wrong = _wrong_answer(error)
            told = f"{review_runs.named(hook)}: {wrong}" if wrong else str(error)
            raise conversions.ConversionError(told) from error
        self._say(asked, "denied" if answer.failed_message else "converted", began)
        return answer

    async def _answer(
        self,
        asked: review_runs.Asked,
        binding: conversion_bindings.ConversionBinding,
        request: conversion_entries.StepRequest,
    ) -> conversions.ConversionAnswer:
        await self._await_snapshots(asked, binding)
        sent = await asyncio.to_thread(orjson.dumps, review(request))
        versions = request.rule.from_version, request.rule.to_version
        read = functools.partial(conversions.read_answer, before=request.objects, version=request.version)
        return await self._runs.answer(
            asked,
            lambda: binding_contexts.conversion(
                binding.name,
                versions,
                sent,
                self._objects.named(asked.hook, binding.include_snapshots_from),
            ),
            questions.Question(VARIABLES, read),
        )

    async def _await_snapshots(
        self, asked: review_runs.Asked, binding: conversion_bindings.ConversionBinding
    ) -> None:
        """Wait for what a hook that has just begun, or begins anew, has to know."""
        while not self._is_complete(asked.hook, binding):
            if not asked.left:
                raise review_runs.UnansweredError(
                    f"{review_runs.named(asked.hook)} was not asked: its snapshots are not complete",
                    "timeout",
                )
            await asyncio.sleep(min(_LOOK_SECONDS, asked.left))

    def _say(
        self, asked: review_runs.Asked, result: events.ReviewResult, began: float, details: str = ""
    ) -> None:
        self._tell(events.ReviewAnswered(asked.labels, result, time.monotonic() - began, details))


def _wrong_answer(error: BaseException) -> str:
    """Return what is wrong with the objects that a hook gave back; empty if something else went wrong."""
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, conversions.ConversionError):
            return str(cause)
        cause = cause.__cause__
    return ""


def review(request: conversion_entries.StepRequest) -> JsonObject:
    """Return the ``ConversionReview`` that a hook sees."""
    asked: JsonObject = {
        "uid": request.uid,
        "desiredAPIVersion": request.version,
        "objects": [*request.objects],
    }
    return {"apiVersion": "apiextensions.k8s.io/v1", "kind": "ConversionReview", "request": asked}
