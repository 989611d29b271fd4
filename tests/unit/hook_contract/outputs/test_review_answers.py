"""What a hook answers to the API server."""

import base64
import json
import re

import pytest

from addon_operator.hook_contract.configuration.webhook_bindings import ReviewType
from addon_operator.hook_contract.outputs import review_answers
from tests.support import rows

OPERATION = {"op": "add", "path": "/spec/replicas", "value": 2}


def read(answer: object, asked: ReviewType = ReviewType.MUTATING) -> review_answers.AdmissionAnswer:
    return review_answers.parse(json.dumps(answer), asked)


@rows.each(
    "patch",
    [[OPERATION], base64.b64encode(json.dumps([OPERATION]).encode()).decode()],
    ids=["a list", "base64 of one"],
)
def test_a_patch_is_a_list_or_base64_of_one(patch: object) -> None:
    assert read({"allowed": True, "patch": patch}).patch == (OPERATION,)


def test_one_response_that_denies_is_enough_and_warnings_are_joined() -> None:
    answer = read(
        [
            {"allowed": True, "warnings": ["a"], "patch": [OPERATION]},
            {"allowed": False, "message": "no", "warnings": ["b"]},
            {"allowed": False, "message": "never"},
        ]
    )
    assert answer == review_answers.AdmissionAnswer(
        allowed=False, message="no; never", warnings=("a", "b"), patch=()
    )


def test_responses_may_stand_one_a_line_as_deckhouses_library_writes_them() -> None:
    text = '{"allowed": true, "warnings": ["a"]}\r\n\n{"allowed": false, "message": "no"}\n'
    answer = review_answers.parse(text, ReviewType.VALIDATING)
    assert answer == review_answers.AdmissionAnswer(allowed=False, message="no", warnings=("a",))


@rows.each(
    ("text", "said"),
    [
        ('{"allowed": true}\n{"allowed"', "it is not JSON: "),
        ('{"allowed": true}\n1', "[1]: it is not a mapping"),
        ('{"allowed": true}\n' * 101, "it is a list of 101 responses; write 1 to 100"),
    ],
    ids=["one is cut", "one is not a response", "too many"],
)
def test_a_wrong_line_is_never_passed_over(text: str, said: str) -> None:
    with pytest.raises(review_answers.AnswerError, match=re.escape(said)):
        review_answers.parse(text, ReviewType.VALIDATING)


def test_patches_of_several_responses_are_one_in_their_order() -> None:
    other = {"op": "remove", "path": "/spec/old"}
    answer = read([{"allowed": True, "patch": [OPERATION]}, {"allowed": True, "patch": [other]}])
    assert answer.patch == (OPERATION, other)


@rows.each(
    ("text", "said"),
    [
        ("", 'it is empty; write one such as {"allowed": true}'),
        ("{", "it is not JSON: "),
        ("[]", "it is a list of 0 responses; write 1 to 100"),
        ('"yes"', "it is not a mapping"),
        ('{"alowed": true}', "the key 'alowed' of the hook's answer is not known; did you mean 'allowed'?"),
        ("{}", "the key 'allowed' is missing; write true or false"),
        ('{"allowed": "yes"}', "'allowed' is not true or false"),
        ('{"allowed": true, "message": 1}', "'message' is not a text"),
        ('{"allowed": true, "warnings": "w"}', "'warnings' is not a list of texts"),
        ('[{"allowed": true}, 1]', "[1]: it is not a mapping"),
        ('{"allowed": true, "patch": "%"}', "'patch' is not base64 of a JSON patch"),
        ('{"allowed": true, "patch": {"a": 1}}', "'patch' is not a list of operations"),
        ('{"allowed": true, "patch": [{"op": "set"}]}', "patch[0]: 'set' is not one of add, remove"),
        (
            '{"allowed": true, "patch": [{"op": "add", "path": "/a"}]}',
            "patch[0] (add): the key 'value' is missing",
        ),
        (
            '{"allowed": true, "patch": [{"op": "remove", "path": "a"}]}',
            "patch[0].path: 'a' is not a JSON pointer: a path must begin with '/'",
        ),
    ],
)
def test_a_wrong_answer_says_where_and_what(text: str, said: str) -> None:
    with pytest.raises(review_answers.AnswerError) as raised:
        review_answers.parse(text, ReviewType.MUTATING)
    assert said in str(raised.value)


def test_a_hook_that_only_validates_cannot_patch() -> None:
    with pytest.raises(review_answers.AnswerError, match="only hooks of kubernetesMutating change"):
        read({"allowed": True, "patch": [OPERATION]}, ReviewType.VALIDATING)


def test_an_answer_has_bounds() -> None:
    for answer, said in (
        ({"allowed": True, "patch": [OPERATION] * 20_001}, "20001 operations, and may have 20000"),
        ([{"allowed": True}] * 101, "a list of 101 responses"),
        ({"allowed": True, "message": "m" * review_answers.MAX_BYTES}, "may have 3145728"),
    ):
        with pytest.raises(review_answers.AnswerError, match=said):
            read(answer)
    long = read({"allowed": False, "message": "m" * 9000, "warnings": ["w" * 5000]})
    assert (len(long.message), len(long.warnings[0])) == (4096, 256)
