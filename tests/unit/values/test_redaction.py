"""Sensitive values never show in texts that were made of them."""

import base64
import json

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from addon_operator.kernel import json_types
from addon_operator.values import redaction


def test_sensitive_texts_are_the_leaves_that_the_masked_document_hides() -> None:
    value: json_types.JsonValue = {
        "a": "shown",
        "b": "hidden",
        "c": [{"d": 12345, "e": "shown"}, {"d": 67890}],
        "f": {"g": {"h": ["deep", None, True]}},
    }
    masked: json_types.JsonValue = {
        "a": "shown",
        "b": "***",
        "c": [{"d": "***", "e": "shown"}, {"d": "***"}],
        "f": "***",
    }
    assert redaction.sensitive_texts(value, masked) == {"hidden", "12345", "67890", "deep"}


def test_nothing_is_sensitive_in_a_document_that_hides_nothing() -> None:
    assert redaction.sensitive_texts({"a": ["b"]}, {"a": ["b"]}) == frozenset()
    assert redaction.redactor([])("a text") == "a text"


SECRET = 'it\'s "quoted"\nand has\ttwo lines ü'


@pytest.mark.parametrize(
    "written",
    [
        SECRET,
        json.dumps(SECRET),
        json.dumps(SECRET, ensure_ascii=False),
        base64.b64encode(SECRET.encode()).decode(),
        'key: |\n  it\'s "quoted"\n  and has\ttwo lines ü\n',
    ],
    ids=["plain", "json", "json with unicode", "base64", "yaml block"],
)
def test_a_secret_is_found_however_it_is_written(written: str) -> None:
    shown = redaction.redactor([SECRET])(f"before {written} after")
    assert "quoted" not in shown
    assert "two lines" not in shown
    assert base64.b64encode(SECRET.encode()).decode() not in shown
    assert shown.startswith("before ")
    assert shown.endswith(" after")


def test_a_secret_in_single_quotes_of_yaml_is_found() -> None:
    written = yaml.safe_dump({"key": "it's: secret"}, default_style="'")
    assert "secret" not in redaction.redactor(["it's: secret"])(written)


def test_the_longest_of_two_overlapping_secrets_is_hidden_whole() -> None:
    assert redaction.redactor(["pass", "password-1"])("password-1 pass") == "*** ***"


def test_texts_too_short_to_be_secret_are_left_alone() -> None:
    assert redaction.redactor(["on", "1"])("version: 1.0, on") == "version: 1.0, on"


@given(st.text(min_size=redaction.MIN_LENGTH), st.text(), st.text())
def test_no_text_around_a_secret_keeps_it_from_being_hidden(secret: str, before: str, after: str) -> None:
    assert "***" in redaction.redactor([secret])(before + secret + after)
