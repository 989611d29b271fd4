"""Hooks that convert: what they are asked, and what becomes of what they say. The rest is as for webhooks."""

import asyncio
import math
import time
from collections.abc import Callable
from typing import Any, NoReturn

import pytest

from addon_operator.engine import events, state
from addon_operator.engine.bindings import hook_answers, process_slots, review_runs, triggers
from addon_operator.engine.hooks import questions
from addon_operator.hook_contract import conversions, hook_entries
from addon_operator.hook_contract.configuration import conversion_bindings
from addon_operator.kernel import errors
from addon_operator.kernel.json_types import JsonValue
from tests.support import clocks
from tests.unit.engine import bound_fakes, fakes

RULE = conversion_bindings.ConversionRule("v1alpha1", "example.com/v1")
OBJECT: dict[str, Any] = {"apiVersion": "example.com/v1alpha1", "kind": "Cron", "metadata": {"name": "a"}}
HOOK = bound_fakes.hook(
    "convert.sh",
    {
        "kubernetes": [{"name": "pods", "kind": "Pod", "apiVersion": "v1"}],
        "kubernetesCustomResourceConversion": [
            {
                "name": "up",
                "crdName": "crons.example.com",
                "includeSnapshotsFrom": ["pods"],
                "conversions": [{"fromVersion": "v1alpha1", "toVersion": "example.com/v1"}],
            }
        ],
    },
    "cron",
)


class Bench:
    """A hook that converts, and answers what the test says."""

    def __init__(self, answer: Callable[[], Any] = lambda: conversions.ConversionAnswer(())) -> None:
        self.clock, self.heard = clocks.Clock(), fakes.Heard()
        self.hooks, self.cluster = bound_fakes.AnsweringHooks(answer), bound_fakes.Cluster()
        objects = triggers.FollowedObjects()
        runs = review_runs.ReviewRuns(self.hooks, process_slots.ProcessSlots(1), fakes.ignore)
        self.answers = hook_answers.ConversionAnswers(runs, objects, self.heard.append)
        self.cluster.objects["Pod"] = {"p": bound_fakes.entry("p")}
        self.pods = bound_fakes.Subscription(self.cluster, "Pod", None, synced=True)  # type: ignore[arg-type]
        objects.add(HOOK, HOOK.config.kubernetes[0], self.pods)

    async def convert(
        self, seconds: float = math.inf, spec: JsonValue = None
    ) -> conversions.ConversionAnswer:
        (entry,) = self.answers.entries([HOOK])
        arrived = asyncio.get_running_loop().time()
        assert arrived == pytest.approx(time.monotonic(), abs=1.0)
        objects = [OBJECT if spec is None else {**OBJECT, "spec": spec}]
        request = hook_entries.StepRequest(RULE, "example.com/v1", "7", objects, arrived, seconds)
        return await entry.answer(request)

    @property
    def results(self) -> list[events.ReviewResult]:
        return [told.result for told in self.heard.of(events.ReviewAnswered)]


def fail(error: Exception) -> Callable[[], Any]:
    def answer() -> NoReturn:
        raise error

    return answer


async def test_a_hook_gets_the_objects_the_versions_as_it_writes_them_and_its_snapshots() -> None:
    bench = Bench()
    await bench.convert()
    (context,) = bench.hooks.contexts
    assert (context["binding"], context["type"]) == ("up", "Conversion")
    assert (context["fromVersion"], context["toVersion"]) == ("v1alpha1", "example.com/v1")
    assert context["review"]["request"] == {
        "uid": "7",
        "desiredAPIVersion": "example.com/v1",
        "objects": [OBJECT],
    }
    assert [each["object"]["metadata"]["name"] for each in context["snapshots"]["pods"]] == ["p"]
    assert bench.hooks.asked[0].variables == ("CONVERSION_RESPONSE_PATH",)
    assert bench.results == ["converted"]


async def test_what_a_hook_says_against_it_is_an_answer() -> None:
    bench = Bench(lambda: conversions.ConversionAnswer((), "it is odd"))
    assert (await bench.convert()).failed_message == "it is odd"
    assert bench.results == ["denied"]


async def test_one_step_has_ten_seconds_at_most_and_less_if_the_api_server_waits_for_less() -> None:
    bench = Bench()
    await bench.convert()
    await bench.convert(3.0)
    longest, shorter = (question.seconds for question in bench.hooks.asked)
    assert longest == pytest.approx(hook_answers.STEP_SECONDS - review_runs.MARGIN, abs=0.3)
    assert shorter == pytest.approx(3.0 - review_runs.MARGIN, abs=0.3)


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (
            errors.ConfigurationError("the password is x"),
            "hook convert.sh of module cron failed; the operator's log says more",
        ),
        (
            questions.AnswerError("it is x"),
            "hook convert.sh of module cron gave a wrong answer; the operator's log says more",
        ),
    ],
)
async def test_who_asked_gets_one_sentence_and_the_log_the_details(error: Exception, said: str) -> None:
    bench = Bench(fail(error))
    with pytest.raises(conversions.ConversionError) as raised:
        await bench.convert()
    assert str(raised.value) == said
    assert bench.results == ["error"]
    assert [told.details for told in bench.heard.of(events.ReviewAnswered)] == [str(error)]


async def test_an_object_that_cannot_be_handed_to_a_hook_is_named_and_no_defect() -> None:
    deep: JsonValue = 1
    for _ in range(300):
        deep = {"a": deep}
    bench = Bench()
    with pytest.raises(conversions.ConversionError, match="a nests too deep to be handed to a hook"):
        await bench.convert(spec=deep)
    assert bench.results == ["error"]


async def test_what_is_wrong_with_converted_objects_is_for_who_asked() -> None:
    wrong = questions.AnswerError("in the file: it changes metadata.name")
    wrong.__cause__ = conversions.ConversionError("it changes metadata.name")
    with pytest.raises(
        conversions.ConversionError, match=r"^hook convert\.sh of module cron: it changes metadata\.name$"
    ):
        await Bench(fail(wrong)).convert()


def test_only_what_has_its_snapshots_is_complete() -> None:
    bench = Bench()
    assert [entry.binding.name for entry in bench.answers.complete(HOOK)] == ["up"]
    bench.pods.synced = False
    assert bench.answers.complete(HOOK) == []


async def out_of_time(seconds: float) -> tuple[Bench, str]:
    """Ask for so long while the snapshots are not complete; what is told."""
    bench = Bench()
    bench.pods.synced = False
    with pytest.raises(conversions.ConversionError) as caught:
        await bench.convert(review_runs.MARGIN + seconds)
    return bench, str(caught.value)


async def test_a_question_waits_for_snapshots_and_says_that_it_did_when_the_time_is_over() -> None:
    bench, told = await out_of_time(0.02)
    for seconds in (0.2, 2.0):
        # On a busy machine, the time may be up before it is looked for snapshots.
        if "snapshots" not in told:
            bench, told = await out_of_time(seconds)
    assert "hook convert.sh of module cron was not asked: its snapshots are not complete" in told
    assert (bench.results, bench.hooks.asked) == (["timeout"], [])
    waiting = asyncio.create_task(bench.convert())
    await asyncio.sleep(0)
    bench.pods.synced = True
    await waiting
    assert bench.results == ["timeout", "converted"]


def test_a_conversion_is_described_with_its_key_and_hook() -> None:
    (entry,) = Bench().answers.entries([HOOK])
    assert str(entry) == "kubernetesCustomResourceConversion up of hook convert.sh of module cron"


def test_hooks_that_are_global_have_no_owner() -> None:
    hook = state.Hook("convert.sh", HOOK.path, HOOK.config, None)
    (entry,) = Bench().answers.entries([hook])
    assert (entry.owner, str(entry).endswith("of the global hooks")) == ("", True)
