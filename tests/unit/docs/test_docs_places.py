"""Pages that start an operator do it where only its own modules and global hooks lie."""

import re
from collections.abc import Iterator

from tests.unit.docs.pages import PAGES, name

BLOCK = re.compile(r"^```bash\n(.*?)^```$", re.DOTALL | re.MULTILINE)
START = re.compile(r"addon-operator start (?:.*\\\n)*.*")
AWAY, BACK = re.compile(r"\bcd (?!\.\.|-)\S+"), re.compile(r"\bcd (?:\.\.|-)")


def starts_in_the_checkout(page: str) -> Iterator[str]:
    """Operators that a page starts in the checkout, with the global hooks that lie there."""
    for section in re.split(r"^## .*\n(?=(?:(?!^## ).*\n)*?make \.venv)", page, flags=re.MULTILINE):
        typed = "".join(BLOCK.findall(section))
        for found in START.finditer(typed):
            before = typed[: found.start()]
            is_away = len(AWAY.findall(before)) > len(BACK.findall(before))
            if not is_away and "--global-hooks-dir" not in found[0]:
                yield found[0]


def test_no_page_starts_an_operator_with_the_examples_of_the_checkout_by_mistake() -> None:
    wrong = [
        f"{name(page)}: {start}"
        for page in PAGES
        for start in starts_in_the_checkout(page.read_text("utf-8"))
    ]
    assert wrong == []


def test_such_a_start_is_found() -> None:
    page = "## A\n```bash\nwork=$(mktemp -d)\naddon-operator start --modules-dir \\\n  $work &\n```\n"
    assert [*starts_in_the_checkout(page)] == ["addon-operator start --modules-dir \\\n  $work &"]
    assert [*starts_in_the_checkout(page.replace("-d)", "-d) && cd $work"))] == []
