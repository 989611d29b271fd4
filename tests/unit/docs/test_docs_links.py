"""Links between pages lead somewhere, and every page can be found."""

import functools
import pathlib
import re
from collections.abc import Iterator

from tests.unit.docs.pages import PAGES, ROOT, name

LINK = re.compile(r"(?<!!)\[(?:[^\]\[]|\[[^\]]*\])*\]\((?P<target>[^)\s]+)\)")
HEADING = re.compile(r"^#{1,6} +(?P<text>.+?) *#*$", re.MULTILINE)
ELSEWHERE = ("https://", "http://", "mailto:")
FENCE = re.compile(r"^(```|~~~).*?^\1", re.MULTILINE | re.DOTALL)


@functools.cache
def prose(page: pathlib.Path) -> str:
    """The page without its blocks of code."""
    return FENCE.sub("", page.read_text("utf-8"))


def links(page: pathlib.Path) -> Iterator[str]:
    for found in LINK.finditer(prose(page)):
        if not found["target"].startswith(ELSEWHERE):
            yield found["target"]


@functools.cache
def anchors(page: pathlib.Path) -> set[str]:
    """The anchors that GitHub gives to headings."""
    return {anchor(found["text"]) for found in HEADING.finditer(prose(page))}


def anchor(heading: str) -> str:
    text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).strip().lower()
    return re.sub(r"[^\w\- ]", "", text).replace(" ", "-")


def broken(page: pathlib.Path) -> list[str]:
    found = []
    for target in links(page):
        path, _, fragment = target.partition("#")
        there = (page.parent / path).resolve() if path else page
        if not there.exists():
            found.append(f"{target}: there is no such file")
        elif fragment and fragment not in anchors(there):
            found.append(f"{target}: there is no such heading")
    return found


def test_links_lead_somewhere() -> None:
    assert {name(page): found for page in PAGES if (found := broken(page))} == {}


def reachable(page: pathlib.Path) -> set[pathlib.Path]:
    """All pages that links lead to from this one, over others too."""
    found, ahead = {page}, [page]
    while ahead:
        here = ahead.pop()
        linked = {(here.parent / target.partition("#")[0]).resolve() for target in links(here)}
        pages = {there for path in linked for there in (path.glob("*.md") if path.is_dir() else [path])}
        new = {there for there in pages - found if there.suffix == ".md"}
        found |= new
        ahead += new
    return found


def test_every_page_can_be_found_from_the_readme() -> None:
    assert sorted(name(page) for page in set(PAGES) - reachable(ROOT / "README.md")) == []


def test_links_to_nowhere_are_found(tmp_path: pathlib.Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(
        "# A `b`, c\n[a](#a-b-c) [b](#nowhere) [c](page.md#a-b-c) [d](none.md)\n```\n[e](no)\n```\n"
    )
    assert broken(page) == ["#nowhere: there is no such heading", "none.md: there is no such file"]
