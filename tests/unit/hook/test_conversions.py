"""Functions that convert custom resources, with the library for hooks in Python."""

import copy
from collections.abc import Iterator
from typing import Any

import pytest

from addon_operator import hook
from addon_operator.hook import conversions as hook_conversions
from addon_operator.hook_contract import conversions

ITEM: dict[str, Any] = {
    "apiVersion": "example.com/v1alpha1",
    "kind": "CronTab",
    "metadata": {"name": "a", "uid": "1", "labels": {"x": "y"}, "annotations": {"o": "p"}},
    "spec": {"cron": ["*", "*/5"]},
}


@pytest.fixture(autouse=True)
def _no_steps() -> Iterator[None]:
    hook_conversions.STEPS.clear()
    yield
    hook_conversions.STEPS.clear()


def run(before: str = "v1alpha1", after: str = "v1", *more: dict[str, Any]) -> hook.Run:
    review = {
        "request": {
            "desiredAPIVersion": "example.com/v1",
            "objects": [copy.deepcopy(ITEM), copy.deepcopy(ITEM)],
        }
    }
    asked: dict[str, Any] = {
        "type": "Conversion",
        "fromVersion": before,
        "toVersion": after,
        "review": review,
    }
    return hook.Run(contexts=[{"binding": "up", **asked}, *more])


def answer(made: hook.Run) -> conversions.ConversionAnswer:
    text = made.outputs()["CONVERSION_RESPONSE_PATH"]
    return conversions.read_answer(text, [ITEM, ITEM], "example.com/v1")


@pytest.mark.parametrize(
    ("before", "after"), [("v1alpha1", "v1"), ("example.com/v1alpha1", "example.com/v1")]
)
def test_a_function_changes_each_object(before: str, after: str) -> None:
    @hook.convert("v1alpha1", "v1")
    def up(item: dict[str, Any]) -> None:
        item["spec"]["cron"] = " ".join(item["spec"]["cron"])
        item["metadata"] = {"name": "other", "labels": {"z": "1"}}

    made = run(before, after)
    assert made.convert()
    first, second = answer(made).objects
    assert (first["spec"], second["spec"]) == ({"cron": "* */5"}, {"cron": "* */5"})
    assert first["metadata"] == {"name": "a", "uid": "1", "labels": {"z": "1"}}


def test_a_function_may_return_another_object() -> None:
    hook.convert("v1alpha1", "v1")(lambda item: {"spec": item["spec"]["cron"][0]})
    made = run()
    assert made.convert()
    assert answer(made).objects[0] == {
        "apiVersion": "example.com/v1",
        "kind": "CronTab",
        "metadata": {"name": "a", "uid": "1"},
        "spec": "*",
    }


def test_a_hook_error_is_the_answer() -> None:
    @hook.convert("v1alpha1", "v1")
    def up(item: dict[str, Any]) -> None:
        raise hook.HookError(f"spec.cron of {item['metadata']['name']} is odd")

    made = run()
    assert made.convert()
    assert answer(made).failed_message == "spec.cron of a is odd"


def test_a_step_without_function_fails_and_names_those_that_there_are() -> None:
    hook.convert("v1", "v2")(lambda item: item)
    with pytest.raises(hook.HookError, match="no function converts v1alpha1 to v1, only v1 to v2; write one"):
        run().convert()


def test_two_functions_for_a_step_are_a_mistake() -> None:
    hook.convert("v1", "v2")(lambda item: item)
    with pytest.raises(hook.HookError, match="two functions convert v1 to v2; remove one"):
        hook.convert("v1", "v2")(lambda item: item)


def test_other_runs_are_left_to_main() -> None:
    assert not run().convert()
    hook.convert("v1alpha1", "v1")(lambda item: item)
    assert not run("v1alpha1", "v1", {"binding": "beforeHelm"}).convert()
    assert not hook.Run(contexts=[{"binding": "beforeHelm"}]).convert()


def test_a_context_tells_versions_and_review() -> None:
    (context,) = run().contexts
    assert (context.type, context.from_version, context.to_version) == ("Conversion", "v1alpha1", "v1")
    assert context.review["desiredAPIVersion"] == "example.com/v1"
    with pytest.raises(hook.MissingError, match="or a conversion"):
        _ = hook.Context({"binding": "x"}).review
