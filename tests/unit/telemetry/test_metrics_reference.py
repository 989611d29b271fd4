"""The reference page and the code tell of the same metrics, and a linter has nothing to say of them."""

import dataclasses
import pathlib
import re

from addon_operator.telemetry import metrics

PAGE = pathlib.Path(__file__).parents[3] / "docs" / "reference" / "metrics.md"
ROW = re.compile(
    r"^\| `(?P<name>\w+)` \| (?P<labels>[^|]*)\| (?P<type>\w+) \| (?P<text>.+) \|$", re.MULTILINE
)
DOCUMENTED_OTHERWISE = {"convergence_seconds", "live_ticks"}
"""Counters whose documented names have no ``_total``."""
UNBOUNDED = {"uid", "pod", "object", "path", "error", "message", "value", "ip", "user"}
"""Labels of which there may be any number."""


@dataclasses.dataclass(frozen=True, slots=True)
class Metric:
    """What a page or the code says of one metric; names are without the prefix."""

    name: str
    labels: frozenset[str]
    type: str
    text: str


def on_the_page() -> dict[str, Metric]:
    rows = (
        Metric(row["name"], frozenset(re.findall(r"`(\w+)`", row["labels"])), row["type"], row["text"])
        for row in ROW.finditer(PAGE.read_text())
    )
    return {row.name: row for row in rows}


def in_the_code() -> dict[str, Metric]:
    rows = metrics.Metrics().rows
    return {row.name: Metric(row.name, frozenset(row.labels), row.type, row.help) for row in rows}


CODE, DOCUMENTS = in_the_code(), on_the_page()


def test_the_page_has_every_metric_and_no_other() -> None:
    assert DOCUMENTS.keys() == CODE.keys()


def test_the_page_tells_labels_and_type() -> None:
    told, made = (
        {(name, metric.type, *sorted(metric.labels)) for name, metric in metrics_.items()}
        for metrics_ in (DOCUMENTS, CODE)
    )
    assert told == made


def problems(metric: Metric) -> list[str]:
    """What ``promtool check metrics`` says, and what would make too many series."""
    found = []
    if not re.fullmatch(r"[A-Z0-9].*[^ .]\.", metric.text):
        found.append("its help is not a sentence")
    if (metric.type == "counter") != metric.name.endswith(
        "_total"
    ) and metric.name not in DOCUMENTED_OTHERWISE:
        found.append("counters, and nothing else, end in _total")
    if re.search(r"(_milliseconds|_minutes|_kilobytes|_megabytes|_ms|_mb|_percent)(_|$)", metric.name):
        found.append("its unit is not a base unit")
    if metric.type == "histogram" and not metric.name.endswith("_seconds"):
        found.append("a histogram of times ends in _seconds")
    if re.search(r"_(histogram|gauge|counter|summary)(_|$)", metric.name) or metric.name.endswith("_count"):
        found.append("its name says its type")
    if not all(re.fullmatch(r"[a-z][a-z0-9_]*", text) for text in (metric.name, *metric.labels)):
        found.append("its name or a label is not a snake_case")
    if metric.labels & {"le", "quantile", "instance", "job", "namespace_"}:
        found.append("a label is reserved")
    if metric.labels & UNBOUNDED:
        found.append("a label has any number of values")
    return found


def test_a_linter_has_nothing_to_say() -> None:
    found = {name: problems(metric) for name, metric in CODE.items() if name != "binding_count"}
    assert {name: texts for name, texts in found.items() if texts} == {}


def test_the_linter_finds_what_is_wrong() -> None:
    bad = Metric("tasks_total_ms", frozenset({"uid", "le"}), "counter", "no sentence")
    assert len(problems(bad)) == 5


def test_no_two_metrics_have_the_same_help() -> None:
    texts = [metric.text for metric in CODE.values()]
    assert len(set(texts)) == len(texts)
