"""Answers to requests of the API server, with the library for hooks in Python, as the operator reads them."""

from collections.abc import Callable

import pytest

from addon_operator import hook
from addon_operator.hook_contract.configuration.webhook_bindings import ReviewType
from addon_operator.hook_contract.outputs import review_answers
from tests.support import rows

PATCH = [{"op": "add", "path": "/spec/replicas", "value": 2}]


def run() -> hook.Run:
    return hook.Run(contexts=[{"binding": "guard.shop.example", "type": "Mutating", "review": {}}])


def read(made: hook.Run) -> review_answers.AdmissionAnswer:
    return review_answers.parse(made.outputs()["ADMISSION_RESPONSE_PATH"], ReviewType.MUTATING)


def test_a_hook_denies_and_says_why() -> None:
    made = run()
    made.answers.deny('host "a" is taken')
    assert read(made) == review_answers.AdmissionAnswer(allowed=False, message='host "a" is taken')


def test_a_hook_allows_with_and_without_warnings() -> None:
    made, other = run(), run()
    made.answers.allow()
    other.answers.allow(warnings=("it is old", "it is large"))
    assert read(made) == review_answers.ALLOWED
    assert read(other) == review_answers.AdmissionAnswer(warnings=("it is old", "it is large"))


def test_a_patch_is_that_of_the_moment_it_was_given() -> None:
    made, operations = run(), [dict(each) for each in PATCH]
    made.answers.patch_object(operations)
    operations[0]["value"] = 3
    assert read(made) == review_answers.AdmissionAnswer(patch=tuple(PATCH))


def test_of_several_answers_one_that_denies_is_enough() -> None:
    made = run()
    made.answers.allow(warnings=["it is old"])
    made.answers.patch_object(PATCH)
    assert read(made) == review_answers.AdmissionAnswer(warnings=("it is old",), patch=tuple(PATCH))
    made.answers.deny("no")
    assert read(made) == review_answers.AdmissionAnswer(allowed=False, message="no", warnings=("it is old",))


def test_a_hook_that_answers_nothing_writes_nothing() -> None:
    assert run().outputs()["ADMISSION_RESPONSE_PATH"] == ""


@rows.each(
    ("call", "said"),
    [
        (lambda made: made.answers.allow(warnings="it is old"), r"warnings is a list of texts; write"),
        (lambda made: made.answers.patch_object([{"op": "add", "value": {1}}]), "the patch of the object"),
    ],
)
def test_what_cannot_be_an_answer_is_an_error_of_the_hook(
    call: Callable[[hook.Run], None], said: str
) -> None:
    made = run()
    with pytest.raises(hook.HookError, match=said):
        call(made)
    assert made.outputs()["ADMISSION_RESPONSE_PATH"] == ""
