"""The examples of the reference page."""

import doctest
import pathlib
import re

from addon_operator import expansion

PAGE = pathlib.Path(__file__).parents[3] / "docs" / "reference" / "expansion.md"


def test_the_examples_of_the_reference_page_hold() -> None:
    text = PAGE.read_text(encoding="utf-8")
    blocks = "\n".join(re.findall(r"^```pycon\n(.*?)^```$", text, re.DOTALL | re.MULTILINE))
    examples = doctest.DocTestParser().get_doctest(blocks, {}, PAGE.name, str(PAGE), 0)
    told: list[str] = []
    results = doctest.DocTestRunner().run(examples, out=told.append)
    assert "".join(told) == ""
    assert results.attempted == text.count("\n>>> ") > 0


def test_the_reference_page_tells_of_everything_that_is_exported() -> None:
    text = PAGE.read_text(encoding="utf-8")
    assert [name for name in expansion.__all__ if name not in text] == []
