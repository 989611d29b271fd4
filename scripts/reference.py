"""Writes tables of ``docs/reference`` from the code, and the chart's README and names of settings.

In ``settings.md`` and ``metrics.md``, names, flags, defaults, labels and types are the code's; the last
column is the page's, and for what is new the help text of the code, to be worded there. The chart's README
gets its values from the comments in ``values.yaml``, and the chart the names of all settings. ``--check``
writes nothing and ends with code 1 when a file is not what it would write.
"""

import json
import pathlib
import re
import sys
from collections.abc import Iterable, Mapping
from typing import Final

import yaml

from addon_operator.settings import setting_names, setting_resolution, settings
from addon_operator.telemetry import families, metrics

ROOT: Final = pathlib.Path(__file__).resolve().parents[1]
PAGES: Final = ROOT / "docs" / "reference"
CHART: Final = ROOT / "deploy" / "chart" / "addon-operator"
_VALUES_HEAD: Final = "| value | default | |\n|---|---|---|\n"
_KEY: Final = re.compile(r"^(?P<indent> *)(?P<key>[A-Za-z][\w-]*):(?: (?P<rest>.*))?$")
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
    known = {metric.name: metric for metric in metrics.Metrics().rows}
    texts = {row["name"]: row["text"] for row in _ROW.finditer(page)}
    new = [name for name in known if name not in texts]
    head, *parts = re.split(r"(?<=\n)(?=## )", page)
    tables = [part for part in parts if _METRICS_HEAD in part]
    for part in tables:
        names = [row["name"] for row in _ROW.finditer(part) if row["name"] in known]
        rows = [_metric(known[name], texts) for name in names + (new if part is tables[-1] else [])]
        parts[parts.index(part)] = _with_table(part, "", _METRICS_HEAD, rows)
    return head + "".join(parts)


def _metric(metric: families.Row, texts: Mapping[str, str]) -> str:
    labels = ", ".join(f"`{label}`" for label in metric.labels)
    return _row((f"`{metric.name}`", labels, metric.type, texts.get(metric.name, metric.help)))


def chart_page(page: str) -> str:
    """Return the README of the chart with a row for each value that has one."""
    text = (CHART / "values.yaml").read_text("utf-8")
    return _with_table(page, "## Values\n", _VALUES_HEAD, _value_rows(text))


def _value_rows(text: str) -> Iterable[str]:
    """Yield a row for each key that holds no others; a comment is about the key below it."""
    values = yaml.safe_load(text)
    path: list[str] = []
    comment: list[str] = []
    for line in text.splitlines():
        if line.strip().startswith("#"):
            words = line.strip().removeprefix("#").strip()
            comment = [words.removeprefix("-- ")] if words.startswith("-- ") else [*comment, words]
        elif (found := _KEY.match(line)) is None:
            comment = []
        else:
            path = [*path[: len(found["indent"]) // 2], found["key"]]
            value = _value(values, path)
            if value is not _NOTHING and not (isinstance(value, dict) and value and not found["rest"]):
                yield _row((f"`{'.'.join(path)}`", f"`{json.dumps(value)}`", _cell(comment)))
            elif comment and value is not _NOTHING:
                yield _row((f"`{'.'.join(path)}`", "", _cell(comment)))
            comment = []


_NOTHING: Final = object()


def _value(values: object, path: Iterable[str]) -> object:
    for key in path:
        values = values.get(key, _NOTHING) if isinstance(values, dict) else _NOTHING
    return values


def _cell(comment: Iterable[str]) -> str:
    return " ".join(comment).replace("|", "\\|")


def settings_of_the_chart(_: str) -> str:
    """Return all names of variables that ``settings`` of the chart may have, one in each line."""
    names = {name for row in settings.TABLE.values() for name in row.variables}
    return "".join(f"{name}\n" for name in sorted(names | set(setting_names.WITHOUT_MEANING)))


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
    for path, made_page in (
        (PAGES / "settings.md", settings_page),
        (PAGES / "metrics.md", metrics_page),
        (CHART / "README.md", chart_page),
        (CHART / "settings.txt", settings_of_the_chart),
    ):
        page = path.read_text("utf-8")
        wanted = made_page(page)
        stale |= page != wanted
        if "--check" not in sys.argv[1:]:
            path.write_text(wanted, "utf-8")
        elif page != wanted:
            print(f"{path.relative_to(ROOT)} is not in step with the code: run 'make reference'")
    return int(stale and "--check" in sys.argv[1:])


if __name__ == "__main__":
    sys.exit(main())
