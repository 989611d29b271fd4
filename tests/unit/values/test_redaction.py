"""Sensitive values never show in texts that were made of them."""

import base64
import json

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from addon_operator.kernel import json_types
from addon_operator.values import redaction
from addon_operator.values.schema import schema_violations
from tests.support import rows
from tests.unit import costs


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


@rows.each(
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


SET: json_types.JsonObject = {"auth": {"password": "s3cret", "empty": {}}, "list": ["s3cret"], "no": None}


@rows.each(
    ("value", "shown"),
    [
        pytest.param(
            {"auth": {"user": "u", "password": "by-hook"}, "a": 1},
            {"auth": {"user": "u", "password": "***"}, "a": 1},
            id="a value, whoever changed it",
        ),
        pytest.param({"auth": "by-hook"}, {"auth": "***"}, id="what stands in the place of a mapping"),
        pytest.param({"list": ["a", "b"]}, {"list": "***"}, id="a list, whole"),
        pytest.param({"auth": {"empty": {"a": 1}}}, {"auth": {"empty": "***"}}, id="an empty mapping"),
        pytest.param({"no": None}, {"no": "***"}, id="nothing"),
        pytest.param({"other": "a"}, {"other": "a"}, id="nothing of the Secret's"),
    ],
)
def test_each_place_that_the_secret_sets_is_hidden(
    value: json_types.JsonObject, shown: json_types.JsonObject
) -> None:
    assert redaction.without_secrets(value, SET) == shown


@rows.each(
    ("path", "value", "shown"),
    [
        ([], {"auth": {"password": "x", "user": "u"}}, {"auth": {"password": "***", "user": "u"}}),
        (["auth"], {"password": "x", "user": "u"}, {"password": "***", "user": "u"}),
        (["auth", "password"], "x", "***"),
        (["auth", "user"], "u", "u"),
        (["list", "-"], "x", "***"),
        (["list", "0", "deep"], "x", "***"),
        (["other"], {"password": "x"}, {"password": "x"}),
    ],
)
def test_what_is_written_to_a_place_of_the_secret_is_hidden(
    path: list[str], value: json_types.JsonValue, shown: json_types.JsonValue
) -> None:
    assert redaction.without_secrets_at(path, value, SET) == shown


def violation(keys: tuple[str | int, ...], rule: str = "must be") -> schema_violations.Violation:
    return schema_violations.Violation("web", rule, '"shown"', "schema.yaml", ("web", *keys))


def test_what_is_wrong_hides_the_secrets_values_alone() -> None:
    places: list[tuple[str | int, ...]] = [
        (), ("auth",), ("auth", "password"), ("auth", "user"), ("list", 0), ("other",)
    ]  # fmt: skip
    found = redaction.without_secrets_in([violation(keys) for keys in places], SET)
    assert [one.value for one in found] == ["***", "***", "***", '"shown"', "***", '"shown"']
    (told,) = redaction.without_secrets_in([violation((), "cannot be read: s3cret")], SET)
    assert told.rule == "cannot be read: ***"
    assert told.without_value.startswith("web: does not fit values of the Secret")
    # A rule sees what is below its place: beside values of the Secret others that somebody chose.
    assert [one.sees_secret for one in found] == [True, True, False, False, False, False]


def test_long_values_and_many_of_them_are_hidden_in_a_moment() -> None:
    many = [f"password-{number}-of-many" for number in range(300)]

    def hide(long: str) -> None:
        shown = redaction.redactor([long, *many])(f"{long[1:]}\n{long}{many[7]}")
        assert shown == f"{long[1:]}\n******"

    assert costs.is_linear("x".__mul__, hide, 20_000)


def test_a_line_is_searched_once_for_all_secrets() -> None:
    redact = redaction.redactor([f"password-{number}" for number in range(4_000)])
    line = "nothing to hide " * 20
    few = redaction.redactor(["password-1"])
    assert costs.seconds(redact, line) < 20 * costs.seconds(few, line)
    assert redact(f"{line}password-3999") == f"{line}***"


def test_a_line_is_searched_once_for_all_long_secrets() -> None:
    long = "password-{}-that-is-longer-than-what-one-search-is-prepared-for-and-than-a-name"
    redact = redaction.redactor([long.format(number) for number in range(3_000)])
    line = "nothing to hide " * 20
    few = redaction.redactor([long.format(1)])
    assert costs.seconds(redact, line) < 20 * costs.seconds(few, line)
    assert redact(f"{line}{long.format(2999)}") == f"{line}***"


def test_texts_that_are_no_unicode_are_hidden_and_shown_all_the_same() -> None:
    assert (
        redaction.redactor(["s3cret\udcff"])("before \udcfe s3cret\udcff after") == "before \udcfe *** after"
    )
