"""Hooks that are asked something beside all queues: their places, their time, what is said when it fails."""

import asyncio
import pathlib
import time
from collections.abc import Callable
from typing import Any, NoReturn

import pytest

from addon_operator.engine import events, state
from addon_operator.engine.bindings import hook_answers, process_slots, review_runs, triggers
from addon_operator.engine.hooks import hook_outputs, questions
from addon_operator.hook_contract import binding_contexts, hook_entries
from addon_operator.hook_contract.configuration import bindings, hook_config, webhook_bindings
from addon_operator.hook_contract.outputs import patch_check, review_answers
from addon_operator.kernel import errors, fencing, names
from addon_operator.kube import api_errors
from tests.unit.engine import bound_fakes, fakes

NAME = "guard.shop.example"
BINDING = webhook_bindings.WebhookBinding(webhook_bindings.ReviewType.VALIDATING, NAME)
HOOK = state.Hook(
    "guard.sh",
    pathlib.Path("guard.sh"),
    hook_config.HookConfig(webhooks=(BINDING,)),
    names.ModuleName("shop"),
)
QUESTION = questions.Question(("ANSWER_PATH",), str)
CHANGED = hook_outputs.HookEffects(values_changed=True)


def fail(error: Exception) -> Callable[[], Any]:
    def answer() -> NoReturn:
        raise error

    return answer


def context() -> binding_contexts.Context:
    return binding_contexts.review(NAME, "Validating", b"{}", {})


async def ask(runs: review_runs.ReviewRuns, seconds: float = 60.0) -> object:
    asked = review_runs.Asked(HOOK, NAME, time.monotonic() + seconds, seconds)
    return await runs.answer(asked, context, QUESTION)


def made(
    executor: bound_fakes.AnsweringHooks, changed: review_runs.Changed = fakes.ignore, places: int = 1
) -> review_runs.ReviewRuns:
    return review_runs.ReviewRuns(executor, process_slots.ProcessSlots(places), changed)


async def test_a_hook_answers_with_the_time_that_is_left() -> None:
    executor = bound_fakes.AnsweringHooks()
    assert await ask(made(executor), 60.0) == "yes"
    assert 59.0 < executor.asked[0].seconds <= 60.0


async def test_only_a_run_that_changed_something_is_told() -> None:
    told: list[state.Hook] = []
    executor = bound_fakes.AnsweringHooks()
    await ask(made(executor, told.append))
    assert told == []
    executor.effects = CHANGED
    await ask(made(executor, told.append))
    assert told == [HOOK]


async def test_who_asked_a_replica_that_has_lost_its_lease_is_told_to_try_again() -> None:
    """Whichever way of a change finds that out."""
    found = [
        errors.AddonOperatorError("hook guard.sh: KUBERNETES_PATCH_PATH: cannot be done") for _ in range(2)
    ]
    found[0].__cause__ = api_errors.Fenced("the Lease is another's")
    found[1].__cause__ = fencing.FencedError("the Lease is another's")
    for error in (*found, questions.NotLeadingError("it patched values")):
        with pytest.raises(review_runs.UnansweredError, match=r"replica that does not lead.*try again"):
            await ask(made(bound_fakes.AnsweringHooks(fail(error))))


async def test_who_asked_is_told_which_place_of_a_patch_is_wrong() -> None:
    error = questions.AnswerError("hook guard.sh: VALIDATING_RESPONSE_PATH: it is wrong")
    error.__cause__ = patch_check.PatchError("patch[0] (remove /a): it does not apply")
    with pytest.raises(review_runs.UnansweredError) as raised:
        await ask(made(bound_fakes.AnsweringHooks(fail(error))))
    said = "hook guard.sh of module shop gave a wrong answer: patch[0] (remove /a): it does not apply"
    assert str(raised.value) == said


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (errors.ConfigurationError("the password is x"), "failed"),
        (questions.AnswerError("it is x"), "gave a wrong answer"),
    ],
)
async def test_who_asked_is_told_one_sentence_and_the_log_the_details(error: Exception, said: str) -> None:
    with pytest.raises(review_runs.UnansweredError) as raised:
        await ask(made(bound_fakes.AnsweringHooks(fail(error))))
    assert str(raised.value) == f"hook guard.sh of module shop {said}; the operator's log says more"
    assert (raised.value.details, raised.value.result) == (str(error), "error")


async def test_who_asked_is_answered_in_time_and_the_place_stays_taken_until_the_process_is_gone() -> None:
    executor = bound_fakes.AnsweringHooks()
    executor.may.clear()
    runs = made(executor)
    with pytest.raises(review_runs.UnansweredError, match="did not answer within 10ms") as first:
        await ask(runs, 0.01)
    with pytest.raises(review_runs.UnansweredError):
        await ask(runs, 0.01)
    assert first.value.result == "timeout"
    assert len(executor.asked) == 1
    executor.may.set()
    assert await ask(runs) == "yes"


async def test_a_webhook_of_which_too_many_requests_wait_leaves_the_decision_to_its_failure_policy() -> None:
    executor = bound_fakes.AnsweringHooks(lambda: review_answers.ALLOWED)
    executor.may.clear()
    heard = fakes.Heard()
    answers = hook_answers.WebhookAnswers(made(executor), triggers.FollowedObjects(), heard.append)
    (entry,) = answers.entries([HOOK])
    waiting: list[asyncio.Task[review_answers.AdmissionAnswer]] = [
        asyncio.create_task(entry.answer(hook_entries.ReviewRequest(b"{}", time.monotonic())))  # type: ignore[arg-type]
        for _ in range(1 + process_slots.MOST_WAITING)
    ]
    for _ in range(5):
        await asyncio.sleep(0)
    with pytest.raises(hook_entries.NotAnsweredError, match="256 requests wait for it already"):
        await entry.answer(hook_entries.ReviewRequest(b"{}", time.monotonic()))
    assert [told.result for told in heard.of(events.ReviewAnswered)] == ["overload"]
    executor.may.set()
    assert {answer.allowed for answer in await asyncio.gather(*waiting)} == {True}


async def test_a_hook_that_fails_denies() -> None:
    answers = hook_answers.WebhookAnswers(
        made(bound_fakes.AnsweringHooks(fail(errors.ConfigurationError("x")))),
        triggers.FollowedObjects(),
        fakes.ignore,
    )
    (entry,) = answers.complete(HOOK)
    answer = await entry.answer(hook_entries.ReviewRequest(b"{}", time.monotonic()))
    assert not answer.allowed
    assert answer.message == "hook guard.sh of module shop failed; the operator's log says more"


@pytest.mark.parametrize(
    ("side_effects", "dry_run", "drops"),
    [("None", True, False), ("NoneOnDryRun", True, True), ("NoneOnDryRun", False, False)],
)
async def test_other_outputs_of_a_dry_run_are_dropped_unless_there_are_no_side_effects(
    side_effects: str, dry_run: bool, drops: bool
) -> None:
    executor = bound_fakes.AnsweringHooks(lambda: review_answers.ALLOWED)
    binding = webhook_bindings.WebhookBinding(
        webhook_bindings.ReviewType.MUTATING,
        NAME,
        side_effects=side_effects,  # type: ignore[arg-type]
    )
    hook = state.Hook("guard.sh", pathlib.Path("guard.sh"), hook_config.HookConfig(webhooks=(binding,)))
    answers = hook_answers.WebhookAnswers(made(executor), triggers.FollowedObjects(), fakes.ignore)
    (entry,) = answers.entries([hook])
    await entry.answer(hook_entries.ReviewRequest(b"{}", time.monotonic(), dry_run=dry_run))
    assert executor.asked[0].drops_outputs is drops
    assert executor.asked[0].may_patch_values


async def test_a_question_that_waited_while_its_hook_began_anew_gets_no_empty_snapshots() -> None:
    kinds = bindings.KubernetesBinding("ConfigMap", "v1", name="objects")
    hook = state.Hook("guard.sh", HOOK.path, hook_config.HookConfig(kubernetes=(kinds,)), HOOK.module)
    objects, executor = triggers.FollowedObjects(), bound_fakes.AnsweringHooks()

    def from_objects() -> binding_contexts.Context:
        return binding_contexts.review(NAME, "Validating", b"{}", objects.named(hook, ["objects"]))

    asked = review_runs.Asked(hook, NAME, time.monotonic() + 0.2, 0.2)
    with pytest.raises(review_runs.UnansweredError, match=r"was not asked|did not answer"):
        await made(executor).answer(asked, from_objects, QUESTION)
    assert executor.asked == []
