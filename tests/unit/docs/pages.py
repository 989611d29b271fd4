"""The pages of the documentation."""

import pathlib
import re
from typing import Any

import yaml

ROOT = pathlib.Path(__file__).parents[3]
PAGES = sorted(
    [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), ROOT / "modules" / "README.md"],
    key=lambda page: page.as_posix(),
)


def name(page: pathlib.Path) -> str:
    return page.relative_to(ROOT).as_posix()


def plan_workflow() -> dict[Any, Any]:
    """Return the workflow of "Show on a pull request what a merge would do"."""
    page = ROOT / "docs" / "how-to" / "plan-before-merge.md"
    (text,) = re.findall(r"```yaml\n(.*?)```", page.read_text("utf-8"), re.DOTALL)
    document: dict[Any, Any] = yaml.safe_load(text)
    return document
