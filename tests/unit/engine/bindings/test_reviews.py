"""Hooks that answer the API server: what is registered when, what they are asked, what they may answer."""

import asyncio
import contextlib
import json
import math
import re
import time
from collections.abc import Callable, Mapping
from typing import Any

import pytest

from addon_operator.engine import events
from addon_operator.engine.bindings import hook_answers, process_slots, review_runs, webhooks
from addon_operator.hook_contract import conversions, hook_entries
from addon_operator.hook_contract.configuration import conversion_bindings
from addon_operator.hook_contract.outputs import review_answers
from addon_operator.kernel import clock, errors
from addon_operator.kernel.json_types import JsonValue
from tests.support import api_server, clocks, engine, hooks, programs

RULE = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"]}
QUIET = {"executeHookOnSynchronization": False, "executeHookOnEvent": []}
PODS = {"name": "pods", "kind": "Pod", "apiVersion": "v1", **QUIET}
LATE = {"name": "late", "kind": "Late", "apiVersion": "example.com/v1", **QUIET}
SIMPLE = {"name": "simple.shop.example"}
ON_PODS = {"name": "pods.shop.example", "includeSnapshotsFrom": ["pods"]}
ON_LATE = {"name": "late.shop.example", "includeSnapshotsFrom": ["late"]}
POD = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}}
REVIEW = json.dumps({"request": {"uid": "1", "object": POD}}).encode()
CONVERSION = {
    "name": "up",
    "crdName": "crons.example.com",
    "includeSnapshotsFrom": ["pods"],
    "conversions": [{"fromVersion": "v1alpha1", "toVersion": "example.com/v1"}],
}
CRON: dict[str, Any] = {"apiVersion": "example.com/v1alpha1", "kind": "Cron", "metadata": {"name": "a"}}


def says(document: object) -> hooks.Act:
    """Answer with that."""

    def act(run: hooks.Run) -> None:
        for variable in ("VALIDATING_RESPONSE_PATH", "CONVERSION_RESPONSE_PATH"):
            if variable in run.call.env:
                run.write(variable, json.dumps(document))

    return act


ALLOWS, DENIES = says({"allowed": True}), says({"allowed": False, "message": "no"})


def fails(text: str) -> hooks.Act:
    def act(_: hooks.Run) -> None:
        raise programs.ProgramError(text)

    return act


def guard(
    op: engine.Operator, *reviews: Mapping[str, object], kind: str = "kubernetesValidating"
) -> hooks.Hook:
    """A hook of the module ``shop`` that answers, and follows Pods and a kind that is not served."""
    answering = [{"rules": [RULE], **each} for each in reviews]
    return op.hook("shop/guard.sh", {"kubernetes": [PODS, LATE], kind: answering}, ALLOWS)


async def started(op: engine.Operator, hook: hooks.Hook) -> hooks.Hook:
    await op.start()
    hook.runs.clear()
    return hook


async def ask(
    op: engine.Operator,
    name: str = "simple.shop.example",
    seconds: float = math.inf,
    *,
    dry_run: bool = False,
) -> review_answers.AdmissionAnswer:
    request = hook_entries.ReviewRequest(REVIEW, time.monotonic(), seconds, dry_run=dry_run)
    return await op.webhooks.entry("shop", name).answer(request)


async def failure(op: engine.Operator, name: str = "simple.shop.example", seconds: float = math.inf) -> str:
    """What a call that has no answer of the hook fails with."""
    with pytest.raises(hook_entries.NotAnsweredError) as raised:
        await ask(op, name, seconds)
    return str(raised.value)


def not_registered(op: engine.Operator) -> dict[str, str]:
    rows = op.row("shop")["answering"]
    return {row["name"]: row["notRegistered"] for row in rows if row["notRegistered"]}


def unanswered(op: engine.Operator) -> list[str]:
    return [row["unanswered"].partition("; that was at ")[0] for row in op.row("shop")["answering"]]


# Registered.


async def test_webhooks_are_registered_when_their_own_snapshots_are_there(op: engine.Operator) -> None:
    guard(op, SIMPLE, ON_PODS, ON_LATE)
    await op.start()
    assert op.webhooks.registered["shop"] == ["simple.shop.example", "pods.shop.example"]
    assert not_registered(op) == {"late.shop.example": "the objects of its snapshots are not listed yet"}
    op.server.serve("Late", "example.com/v1")
    await op.advance(30)
    assert op.webhooks.registered["shop"][2:] == ["late.shop.example"]
    assert not_registered(op) == {}


async def test_what_was_registered_before_a_restart_is_answered_before_the_module_runs(
    op: engine.Operator,
) -> None:
    guard(op, SIMPLE, ON_LATE)
    op.hook("shop/first.sh", {"kubernetes": [{"kind": "Pod"}]}).hold()
    await op.start()
    assert op.webhooks.answering("shop") == ["simple.shop.example", "late.shop.example"]
    assert "shop" not in op.webhooks.registered
    assert not_registered(op)["simple.shop.example"] == webhooks.DUE


async def test_an_error_at_the_first_registration_fails_the_run_and_one_of_a_late_one_is_shown(
    op: engine.Operator,
) -> None:
    guard(op, SIMPLE, ON_LATE)
    refused = errors.AddonOperatorError("it is not taken")
    op.webhooks.refuse = [refused]
    await op.start()
    assert "it is not taken" in op.module("shop").last_error
    await op.advance(10)
    assert op.statuses == {"shop": "Ready"}
    op.webhooks.refuse = [refused] * 100
    op.server.serve("Late", "example.com/v1")
    await op.advance(30)
    assert not_registered(op) == {"late.shop.example": "it is not taken"}
    op.webhooks.refuse.clear()
    await op.advance(2)
    assert not_registered(op) == {}
    assert op.webhooks.registered["shop"] == ["simple.shop.example", "late.shop.example"]


async def test_a_row_says_why_the_api_server_does_not_ask(op: engine.Operator) -> None:
    guard(op, SIMPLE)
    await op.start()
    (row,) = op.row("shop")["answering"]
    assert row == {
        "hook": "guard.sh",
        "binding": "kubernetesValidating",
        "name": "simple.shop.example",
        "notRegistered": "",
        "unanswered": "",
    }
    op.webhooks.troubles = {"simple.shop.example": "a right is missing"}
    assert not_registered(op) == {"simple.shop.example": "a right is missing"}
    await op.edit(shopEnabled="false")
    assert op.row("shop")["answering"] == []


async def test_what_is_disabled_is_registered_no_more_whatever_becomes_complete(op: engine.Operator) -> None:
    guard(op, SIMPLE, ON_LATE)
    await op.start()
    await op.edit(shopEnabled="false")
    assert op.webhooks.answering("shop") == []
    op.server.serve("Late", "example.com/v1")
    await op.advance(30)
    assert "shop" not in op.webhooks.registered


async def test_without_an_admission_server_a_webhook_is_an_error_that_says_what_to_set() -> None:
    registry = webhooks.NoRegistry()
    await registry.open("shop", [])
    with pytest.raises(
        errors.ConfigurationError,
        match=r"^it cannot be registered: this operator serves no admission; set WEBHOOK_URL or "
        "ADMISSION_SERVER_ENABLED",
    ):
        await registry.open("shop", ["it"])


# Asked.


async def test_a_hook_gets_the_review_and_the_snapshots_that_it_asks_for(op: engine.Operator) -> None:
    op.server.put(api_server.an_object("Pod", "there"))
    hook = await started(op, guard(op, ON_PODS))
    assert (await ask(op, "pods.shop.example")).allowed
    (context,) = hook.runs[0].contexts
    assert (context["binding"], context["type"]) == ("pods.shop.example", "Validating")
    assert context["review"]["request"]["object"] == POD
    assert [each["object"]["metadata"]["name"] for each in context["snapshots"]["pods"]] == ["there"]


@pytest.mark.parametrize(
    ("act", "allowed", "message", "result"),
    [
        (ALLOWS, True, "", "allowed"),
        (DENIES, False, "no", "denied"),
        (says({"message": "no"}), False, "no", "denied"),
        (fails("the password is x"), None, "failed; the operator's log says more", "error"),
        (says("x"), None, "gave a wrong answer; the operator's log says more", "error"),
        (says({}), None, "gave a wrong answer; the operator's log says more", "error"),
    ],
    ids=["allows", "denies", "denies by a message", "fails", "wrong", "empty"],
)
async def test_only_an_answer_denies_and_who_asked_is_told_one_sentence_and_the_log_the_details(
    op: engine.Operator, act: hooks.Act, allowed: bool | None, message: str, result: str
) -> None:
    (await started(op, guard(op, SIMPLE))).act = act
    if allowed is None:
        assert await failure(op) == f"hook guard.sh of module shop {message}"
    else:
        answer = await ask(op)
        assert (answer.allowed, answer.message) == (allowed, message)
    (told,) = op.heard.of(events.ReviewAnswered)
    assert told.result == result
    assert ("password" in told.details) is (message.startswith("failed"))


async def test_who_asked_is_told_which_place_of_a_patch_is_wrong(op: engine.Operator) -> None:
    hook = await started(op, guard(op, SIMPLE, kind="kubernetesMutating"))
    hook.act = says({"allowed": True, "patch": [{"op": "remove", "path": "/a"}]})
    said = await failure(op)
    assert said.startswith("hook guard.sh of module shop gave a wrong answer: patch[0] (remove /a): ")
    hook.act = says({"allowed": True, "patch": [{"op": "add", "path": "/metadata/labels", "value": {}}]})
    assert (await ask(op)).patch
    assert [told.result for told in op.heard.of(events.ReviewAnswered)] == ["error", "patched"]


async def test_a_row_says_what_went_wrong_with_the_last_request_until_one_is_answered(
    op: engine.Operator,
) -> None:
    hook = await started(op, guard(op, SIMPLE, ON_PODS))
    assert unanswered(op) == ["", ""]
    hook.act = fails("token=abc")
    await failure(op)
    wrong = "hook guard.sh of module shop failed; the operator's log says more"
    assert unanswered(op) == [wrong, ""], "nothing of what the hook wrote"
    when, _, where = op.row("shop")["answering"][0]["unanswered"].rpartition("at ")[2].partition(", ")
    assert abs(clock.parse_rfc3339(when) - time.time()) < 60
    assert where == "on this replica"
    hook.act = DENIES
    await ask(op)
    assert unanswered(op) == ["", ""], "to deny is an answer"


async def test_values_that_an_answer_changes_make_the_module_run(op: engine.Operator) -> None:
    hook = await started(op, guard(op, SIMPLE, kind="kubernetesMutating"))
    hook.act = ALLOWS
    await ask(op)
    await clocks.settle()
    assert op.helm.changes == ["upgrade shop"]

    def changes(run: hooks.Run) -> None:
        run.set_values(shop={"size": 1})
        run.write("VALIDATING_RESPONSE_PATH", '{"allowed": true}')

    hook.act = changes
    await ask(op)
    await clocks.settle()
    assert op.helm.changes == ["upgrade shop"] * 2


@pytest.mark.parametrize(
    ("side_effects", "dry_run", "measured"),
    [("None", True, False), ("NoneOnDryRun", True, False), ("NoneOnDryRun", False, True)],
)
async def test_other_outputs_of_a_dry_run_are_dropped(
    op: engine.Operator, side_effects: str, dry_run: bool, measured: bool
) -> None:
    hook = await started(op, guard(op, {**SIMPLE, "sideEffects": side_effects}, kind="kubernetesMutating"))

    def measures(run: hooks.Run) -> None:
        run.measure({"name": "asked", "action": "set", "value": 1})
        run.write("VALIDATING_RESPONSE_PATH", '{"allowed": true}')

    hook.act = measures
    assert (await ask(op, dry_run=dry_run)).allowed
    assert (
        op.meters.registry.get_sample_value("asked", {"hook": "guard.sh", "module": "shop"}) == 1
    ) is measured


async def test_who_asked_a_replica_that_has_lost_its_lease_is_told_to_try_again(op: engine.Operator) -> None:
    hook = await started(op, guard(op, SIMPLE))

    def creates(run: hooks.Run) -> None:
        run.operate({"operation": "Create", "object": api_server.an_object("ConfigMap", "made")})
        ALLOWS(run)

    hook.act = creates
    op.fence.is_lost = True
    said = await failure(op)
    assert "was asked by a replica that does not lead" in said
    assert said.endswith("try again")


# In time.


def stubborn(ended: asyncio.Event) -> hooks.Act:
    """Answer only then, and end when asked to no sooner."""

    async def act(run: hooks.Run) -> None:
        while not ended.is_set():
            with contextlib.suppress(asyncio.CancelledError):
                await ended.wait()
        ALLOWS(run)

    return act


async def test_a_question_that_waited_while_its_hook_ended_gets_no_empty_snapshots(
    op: engine.Operator,
) -> None:
    op.places = 1
    hook, ended = await started(op, guard(op, SIMPLE, ON_PODS)), asyncio.Event()
    hook.act = stubborn(ended)
    first = asyncio.create_task(ask(op))
    await clocks.settle()
    second = asyncio.create_task(failure(op, "pods.shop.example", review_runs.MARGIN + 0.2))
    await clocks.settle()
    await op.edit(shopEnabled="false")
    ended.set()
    assert (await first).allowed
    assert re.search("was not asked|did not answer", await second)
    assert len(hook.runs) == 1


async def test_who_asked_is_answered_in_time_and_the_place_stays_taken_until_the_process_is_gone(
    op: engine.Operator,
) -> None:
    op.places = 1
    hook, ended = await started(op, guard(op, SIMPLE)), asyncio.Event()
    hook.act = stubborn(ended)
    first = asyncio.create_task(failure(op, SIMPLE["name"], 3.0))
    await clocks.settle()
    second = asyncio.create_task(failure(op, SIMPLE["name"], 3.0))
    await clocks.settle()
    await op.advance(2.6)
    assert await first == "hook guard.sh of module shop did not answer within 2.5s"
    assert "within 2.5s" in await second
    assert {told.result for told in op.heard.of(events.ReviewAnswered)} == {"timeout"}
    assert len(hook.runs) == 1
    ended.set()
    assert (await ask(op)).allowed


async def test_a_request_that_leaves_no_time_fails_without_a_time_before_its_beginning(
    op: engine.Operator,
) -> None:
    (await started(op, guard(op, SIMPLE))).hold()
    assert (await failure(op, SIMPLE["name"], 0.001)).endswith("within 0s")


async def test_a_webhook_of_which_too_many_requests_wait_leaves_the_decision_to_its_failure_policy(
    op: engine.Operator,
) -> None:
    op.places = 1
    hook = await started(op, guard(op, SIMPLE))
    hook.hold()
    waiting = [asyncio.create_task(ask(op)) for _ in range(1 + process_slots.MOST_WAITING)]
    await clocks.settle()
    with pytest.raises(hook_entries.NotAnsweredError, match="256 requests wait for it already"):
        await ask(op)
    assert [told.result for told in op.heard.of(events.ReviewAnswered)] == ["overload"]
    await hook.release()
    assert {answer.allowed for answer in await asyncio.gather(*waiting)} == {True}


# Conversions.


async def convert(
    op: engine.Operator, seconds: float = math.inf, **fields: JsonValue
) -> conversions.ConversionAnswer:
    rule = conversion_bindings.ConversionRule("v1alpha1", "example.com/v1")
    request = hook_entries.StepRequest(
        rule, "example.com/v1", "7", [{**CRON, **fields}], time.monotonic(), seconds
    )
    return await op.conversions.entry("cron", "up").answer(request)


def converter(op: engine.Operator, act: hooks.Act | None = None) -> hooks.Hook:
    config = {"kubernetes": [PODS], "kubernetesCustomResourceConversion": [CONVERSION]}
    converted = {**CRON, "apiVersion": "example.com/v1"}
    return op.hook("cron/convert.sh", config, act or says({"convertedObjects": [converted]}))


async def test_a_hook_gets_the_objects_the_versions_as_it_writes_them_and_its_snapshots(
    op: engine.Operator,
) -> None:
    op.server.put(api_server.an_object("Pod", "there"))
    hook = await started(op, converter(op))
    assert [each["apiVersion"] for each in (await convert(op)).objects] == ["example.com/v1"]
    (context,) = hook.runs[0].contexts
    assert (context["binding"], context["type"]) == ("up", "Conversion")
    assert (context["fromVersion"], context["toVersion"]) == ("v1alpha1", "example.com/v1")
    asked = {"uid": "7", "desiredAPIVersion": "example.com/v1", "objects": [CRON]}
    assert context["review"]["request"] == asked
    assert [each["object"]["metadata"]["name"] for each in context["snapshots"]["pods"]] == ["there"]
    assert [told.result for told in op.heard.of(events.ReviewAnswered)] == ["converted"]
    entry = op.conversions.entry("cron", "up")
    assert str(entry) == "kubernetesCustomResourceConversion up of hook convert.sh of module cron"


async def test_what_a_hook_says_against_it_is_an_answer(op: engine.Operator) -> None:
    await started(op, converter(op, says({"failedMessage": "it is odd"})))
    assert (await convert(op)).failed_message == "it is odd"
    assert [told.result for told in op.heard.of(events.ReviewAnswered)] == ["denied"]


@pytest.mark.parametrize(
    ("act", "said"),
    [
        (fails("the password is x"), "hook convert.sh of module cron failed; the operator's log says more"),
        (says("x"), "hook convert.sh of module cron: its answer is not a mapping"),
        (
            says({"convertedObjects": [{**CRON, "apiVersion": "example.com/v1", "metadata": {"name": "b"}}]}),
            "hook convert.sh of module cron: ",
        ),
    ],
    ids=["failed", "wrong", "wrong objects"],
)
async def test_a_conversion_that_goes_wrong_is_one_sentence(
    op: engine.Operator, act: Callable[[hooks.Run], None], said: str
) -> None:
    await started(op, converter(op, act))
    with pytest.raises(conversions.ConversionError) as raised:
        await convert(op)
    assert str(raised.value).startswith(said)
    assert "password" not in str(raised.value)
    assert [told.result for told in op.heard.of(events.ReviewAnswered)] == ["error"]


@pytest.mark.parametrize(("seconds", "told"), [(math.inf, "9.5s"), (3.0, "2.")])
async def test_one_step_has_ten_seconds_at_most_and_less_if_the_api_server_waits_for_less(
    op: engine.Operator, seconds: float, told: str
) -> None:
    (await started(op, converter(op))).hold()
    converting = asyncio.create_task(convert(op, seconds))
    await clocks.settle()
    await op.advance(hook_answers.STEP_SECONDS)
    with pytest.raises(conversions.ConversionError, match=f"did not answer within {told}"):
        await converting


async def test_an_object_that_cannot_be_handed_to_a_hook_is_named_and_no_defect(op: engine.Operator) -> None:
    deep: JsonValue = 1
    for _ in range(300):
        deep = {"a": deep}
    await started(op, converter(op))
    with pytest.raises(conversions.ConversionError, match="a nests too deep to be handed to a hook"):
        await convert(op, spec=deep)


async def test_a_question_waits_for_snapshots_and_says_that_it_did_when_the_time_is_over(
    op: engine.Operator,
) -> None:
    listed = op.server.hold(lambda asked: asked.path.endswith("/pods"))
    converter(op)
    await op.start()
    with pytest.raises(conversions.ConversionError, match="was not asked: its snapshots are not complete"):
        await convert(op, review_runs.MARGIN + 0.02)
    waiting = asyncio.create_task(convert(op))
    await clocks.settle()
    listed.set()
    await op.advance(1)
    assert (await waiting).objects
    assert [told.result for told in op.heard.of(events.ReviewAnswered)] == ["timeout", "converted"]
