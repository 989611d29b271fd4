"""Each thing that the page on security promises is held by a test, which ``security_page.txt`` names.

A line is ``TEST: PROMISE``, with the promise as it stands on the page. A paragraph, item or row that promises
nothing (advice, a reason, what others can do with a right) has a line ``-: BEGINNING``.
"""

import re
from collections.abc import Iterator
from typing import Final

from tests.support import rows
from tests.unit.docs.pages import ROOT

PAGE: Final = ROOT / "docs" / "explanation" / "security.md"
HELD: Final = ROOT / "tests" / "unit" / "docs" / "security_page.txt"
NOTHING: Final = "-"


def by_section(text: str) -> dict[str, str]:
    parts = re.split(r"^#{2,3} (.+)$", text, flags=re.MULTILINE)[1:]
    return dict(zip(parts[::2], parts[1::2], strict=True))


def promises() -> dict[str, list[tuple[str, str]]]:
    """Test and promise of each line, by section."""
    found = {}
    for title, text in by_section(HELD.read_text("utf-8")).items():
        lines = [line.partition(": ") for line in text.splitlines() if line]
        found[title] = [(test, promise) for test, _, promise in lines]
    return found


def blocks(text: str) -> Iterator[str]:
    """Paragraphs, items of lists, and rows of tables, without their heads."""
    text = re.sub(r"^\|[^\n]*\n\|---[^\n]*\n", "\n", text, flags=re.MULTILINE)
    text = re.sub(r"^```.*?^```", "", text, flags=re.MULTILINE | re.DOTALL)
    for block in re.split(r"\n\s*\n|\n(?=\||\* )", text):
        if plain := " ".join(block.split()):
            yield plain


SECTIONS: Final = by_section(PAGE.read_text("utf-8"))
PROMISES: Final = promises()


def test_each_section_of_the_page_is_held_by_tests() -> None:
    assert SECTIONS.keys() == PROMISES.keys()


@rows.each("title", PROMISES)
def test_each_promise_is_on_the_page_and_nothing_is_said_without(title: str) -> None:
    text, said = " ".join(SECTIONS[title].split()), PROMISES[title]
    assert [promise for _, promise in said if promise not in text] == []
    open_ones = [
        block
        for block in blocks(SECTIONS[title])
        if not any(block.startswith(each) if test == NOTHING else each in block for test, each in said)
    ]
    assert open_ones == []


def test_each_test_that_is_named_is_there() -> None:
    named = {test for said in PROMISES.values() for test, _ in said} - {NOTHING}
    for path in (ROOT / "tests").rglob("test_*.py"):
        named -= {*re.findall(r"^(?:async )?def (test_\w+)\(", path.read_text("utf-8"), re.MULTILINE)}
    assert named == set()
