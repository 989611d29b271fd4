"""Every pattern of the operator takes time in proportion to the text that it reads, whatever that text is.

``re`` holds the interpreter's lock while it searches: what takes long there stops the whole operator.
"""

import re
from typing import Final

import pytest

import addon_operator
from tests.unit import pattern_pumps

BOUNDED: Final = {
    "documents.quotations._AGAINST": "tried at one place: where it fails, the rest of the text is hidden",
    "documents.quotations._VALUES": "the same",
    "expansion.references._TOKEN": "applied up to the last closing bracket: each opening one finds an end",
    "expansion.references._AFTER_DOLLAR": "the same",
    "helm.repositories.chart_pull._QUERY": "reads 1000 characters",
    "helm.repositories.chart_pull._NO_INDEX": "reads 1000 characters",
    "podpreset.crd._MATCHES": "reads the definition that this project writes",
}
"""Patterns that take longer, and what bounds the texts that they read."""


def test_each_pattern_is_linear_in_the_text_that_it_reads() -> None:
    slow = {
        where: found
        for where, pattern, uses in pattern_pumps.of_package(addon_operator)
        if where.removeprefix("addon_operator.") not in BOUNDED
        and (found := pattern_pumps.goes_back(pattern, uses)) is not None
    }
    assert not slow, "\n".join(f"{where}: {found}" for where, found in slow.items())


@pytest.mark.parametrize("pattern", [r"a*b", r"\$\(([^)]*)\)", r"\s+-", r"(?:a|b|ab)*c"])
def test_a_pattern_that_goes_back_is_found(pattern: str) -> None:
    assert pattern_pumps.goes_back(re.compile(pattern), ["findall"]) is not None
