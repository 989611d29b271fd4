"""Texts of hooks as people see them, wherever they do."""

import json

import pytest

from addon_operator.hook_contract import conversions
from addon_operator.hook_contract.configuration import webhook_bindings
from addon_operator.hook_contract.outputs import review_answers
from addon_operator.kernel import shown_texts

HOSTILE = "no\x1b[31m red\x00 \u202ebackwards\u2066 \x9b2J \x7f"
"""Colours, an end, an order of letters, and what clears the screen."""


def deny(text: str) -> str:
    answer = json.dumps({"allowed": False, "message": text})
    return review_answers.parse(answer, webhook_bindings.ReviewType.VALIDATING).message


def warn(text: str) -> str:
    answer = json.dumps([{"allowed": True, "warnings": [text]}, {"allowed": True}])
    return review_answers.parse(answer, webhook_bindings.ReviewType.VALIDATING).warnings[0]


def fail_conversion(text: str) -> str:
    return conversions.parse_answer(json.dumps({"failedMessage": text})).failed_message


@pytest.mark.parametrize("told", [shown_texts.shown, deny, warn, fail_conversion])
def test_what_a_terminal_would_obey_reaches_nobody(told: object) -> None:
    assert callable(told)
    assert told(HOSTILE) == "no�[31m red� �backwards� �2J �"


def test_letters_and_lines_stay_and_a_warning_is_one_line() -> None:
    text = "Größe 日本 👩‍💻\n\tsecond"
    assert deny(text) == fail_conversion(text) == text
    assert warn(text) == "Größe 日本 👩‍💻 second"
