"""Patterns written for Go mean the same here."""

import re

import pytest

from addon_operator.values import go_patterns

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
]


def test_a_pattern_finds_what_go_finds() -> None:
    found = [
        (pattern, text, re.search(go_patterns.translate(pattern), text) is not None)
        for pattern, text, _ in FOUND
    ]
    assert found == FOUND


@pytest.mark.parametrize(
    "pattern", ["(", "a)", "[a", "*", r"\pL", r"[[:^alpha:]]", "(?U)a+", "a{2,1}", "(?<1>a)"]
)
def test_what_is_no_pattern_or_not_supported_is_refused(pattern: str) -> None:
    with pytest.raises(ValueError, match=r"is no regular expression|not supported"):
        go_patterns.translate(pattern)
