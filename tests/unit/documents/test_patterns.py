"""Patterns are those of RE2, as in Kubernetes, and none takes long."""

import pytest

from addon_operator.documents import patterns
from addon_operator.hook_contract import violations
from addon_operator.values.schema import schemas
from tests.support import rows

FOUND = [
    ("^[a-z]+$", "abc", True),
    ("^[a-z]+$", "abc\n", False),
    ("b", "abc", True),
    (r"^\d+$", "٣", False),
    (r"^\w$", "é", False),
    ("^(?i)abc$", "ABC", True),
    ("a(?i)b|c", "C", True),
    ("a(?i)b|c", "Ab", False),
    ("(a(?i)b)c", "aBc", True),
    ("(a(?i)b)c", "abC", False),
    ("(?m)^b$", "a\nb", True),
    ("(?s)a.b", "a\nb", True),
    ("(?i:a)b", "Ab", True),
    ("^(?P<name>a)$", "a", True),
    ("^(?<name>a)$", "a", True),
    (r"^a\z", "a\n", False),
    (r"^\Qa.b\E$", "a.b", True),
    (r"^\Qa.b\E$", "axb", False),
    ("^[[:alpha:]]+$", "abc", True),
    ("^[[:digit:]_]+$", "1_2", True),
    ("^[a[]$", "[", True),
    ("^[]a]$", "]", True),
    (r"^[\]$]$", "$", True),
    (r"^\$$", "$", True),
    (r"^\(\)$", "()", True),
    ("", "anything", True),
    (r"^\pL+$", "añ", True),
    ("^[[:^alpha:]]+$", "12", True),
    (r"^\p{Greek}$", "λ", True),
    ("(?U)^a+$", "aa", True),
    (r"\bfoo\b", "éfooé", True),
    ("^.{3}$", "añ€", True),
    ("^[^a]$", "😀", True),
    ("a$", "a\nb", False),
    ("a{1000}", "a" * 999, False),
]


def test_a_pattern_finds_what_re2_finds() -> None:
    assert [(pattern, text, patterns.found(pattern, text)) for pattern, text, _ in FOUND] == FOUND


@rows.each(
    ("pattern", "reason"),
    [
        ("(", "missing ): ("),
        ("a)", "unexpected )"),
        ("[a", "missing ]"),
        ("*", "no argument for repetition operator"),
        ("a{2,1}", "invalid repetition size"),
        ("a{1001}", "invalid repetition size"),
        (r"(a)\1", "invalid escape sequence"),
        ("(?=a)", "invalid perl operator"),
        (r"(\pL{1,100}|\pN{1,100}){1,10}", "pattern too large"),
        ("a" * 10_001, "10001 characters, and may have 10000"),
        ("\ud800", "not valid Unicode"),
    ],
)
def test_an_invalid_or_too_large_pattern_is_refused_with_the_reason(pattern: str, reason: str) -> None:
    with pytest.raises(patterns.PatternError) as caught:
        patterns.PatternBudget().check(pattern)
    assert reason in str(caught.value)


def test_the_whole_text_of_each_match_is_found() -> None:
    assert list(patterns.all_found("(a)(b*)", "abb a xa")) == ["abb", "a", "a"]


SCHEMA = """
type: object
properties: {text: {type: string, pattern: '(x+x+)+y'}}
patternProperties:
  '(x+x+)+y$': {type: integer}
"""


@rows.each("values", [{"text": "x" * 20_000}, {"x" * 20_000: 1}], ids=["pattern", "patternProperties"])
def test_a_pattern_that_would_backtrack_for_ever_takes_no_time(values: dict[str, str | int]) -> None:
    schema = schemas.load_schema(SCHEMA, "config-values.yaml")
    assert len(schema.violations("web", dict(values))) == 1


def test_hooks_outputs_have_the_same_keywords() -> None:
    schema = {"type": "object", "additionalProperties": {"type": "string", "pattern": r"\A\pL+\z"}}
    assert len(violations.Checker(schema).find({"a": "ñ", "b": "1"})) == 1
