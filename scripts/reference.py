"""Writes the tables of ``docs/reference/settings.md`` and ``metrics.md`` from the code.

Names, flags, defaults, labels and types are the code's; the last column is the page's, and for what is new
the help text of the code, to be worded there. ``--check`` writes nothing and ends with code 1 when a page is
not what it would write.
"""

import pathlib
import re
import sys
from collections.abc import Iterable, Mapping
from typing import Final

from addon_operator.settings import setting_resolution, settings
from addon_operator.telemetry import families, metrics

PAGES: Final = pathlib.Path(__file__).resolve().parents[1] / "docs" / "reference"
_SETTINGS_HEAD: Final = "| variable | flag | default | |\n|---|---|---|---|\n"
_METRICS_HEAD: Final = "| name | labels | type | |\n|---|---|---|---|\n"
_ROW: Final = re.compile(
    r"^\| `(?P<name>\w+)` \| (?P<middle>.*?) ?\| (?P<text>[^|]*(?:\\\|[^|]*)*) \|$", re.MULTILINE
)


def settings_page(page: str) -> str:
    """Return the page with the tables of all groups as the code has them."""
    texts = {row["name"]: row["text"] for row in _ROW.finditer(page)}
    for group in dict.fromkeys(row.group for row in settings.TABLE.values()):
        rows = [row for row in settings.TABLE.values() if row.group == group]
        page = _with_table(page, f"## {group}\n", _SETTINGS_HEAD, map(_setting, rows, [texts] * len(rows)))
    return page


def _setting(row: setting_resolution.Setting, texts: Mapping[str, str]) -> str:
    flags = ", ".join(f"`{flag}`" for flag in row.flags)
    default = "required" if row.default is None else f"`{row.default}`" if row.default else ""
    cells = (f"`{row.documented}`", flags, default, texts.get(row.documented, row.help))
    return _row(cells)


def metrics_page(page: str) -> str:
    """Return the page with its tables as the code has them; what is new comes to the end of the last one."""
    known = {metric.name: metric for metric in metrics.Metrics().descriptions}
    texts = {row["name"]: row["text"] for row in _ROW.finditer(page)}
    new = [name for name in known if name not in texts]
    head, *parts = re.split(r"(?<=\n)(?=## )", page)
    tables = [part for part in parts if _METRICS_HEAD in part]
    for part in tables:
        names = [row["name"] for row in _ROW.finditer(part) if row["name"] in known]
        rows = [_metric(known[name], texts) for name in names + (new if part is tables[-1] else [])]
        parts[parts.index(part)] = _with_table(part, "", _METRICS_HEAD, rows)
    return head + "".join(parts)


def _metric(metric: families.Description, texts: Mapping[str, str]) -> str:
    labels = ", ".join(f"`{label}`" for label in metric.labels)
    return _row((f"`{metric.name}`", labels, metric.type, texts.get(metric.name, metric.help)))


def _with_table(page: str, heading: str, head: str, rows: Iterable[str]) -> str:
    """Return the page with the rows of the first table with that head below the heading."""
    start = page.index(head, page.index(heading)) + len(head)
    end = start
    while page.startswith("|", end):
        end = page.find("\n", end) + 1 or len(page)
    return page[:start] + "".join(rows) + page[end:]


def _row(cells: Iterable[str]) -> str:
    return "|" + "|".join(f" {cell} " if cell else " " for cell in cells) + "|\n"


def main() -> int:
    """Write, or check; the exit code."""
    stale = False
    for name, made_page in (("settings.md", settings_page), ("metrics.md", metrics_page)):
        path = PAGES / name
        page = path.read_text("utf-8")
        wanted = made_page(page)
        stale |= page != wanted
        if "--check" not in sys.argv[1:]:
            path.write_text(wanted, "utf-8")
        elif page != wanted:
            print(f"docs/reference/{name} is not in step with the code: run 'make reference'")
    return int(stale and "--check" in sys.argv[1:])


if __name__ == "__main__":
    sys.exit(main())
