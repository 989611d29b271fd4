"""The pages of the documentation."""

import pathlib

ROOT = pathlib.Path(__file__).parents[3]
PAGES = sorted(
    [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), ROOT / "modules" / "README.md"],
    key=lambda page: page.as_posix(),
)


def name(page: pathlib.Path) -> str:
    return page.relative_to(ROOT).as_posix()
