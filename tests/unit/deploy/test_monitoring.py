"""The dashboard and the alerts: they ask for series that there are, and every alert has its runbook."""

import functools
import json
import pathlib
import re
from collections.abc import Iterator
from typing import Any

import yaml

from addon_operator.telemetry import metrics

ROOT = pathlib.Path(__file__).parents[3]
CHART = ROOT / "deploy" / "chart" / "addon-operator"
RUNBOOKS = ROOT / "docs" / "runbooks"
RULES: list[dict[str, Any]] = [
    rule
    for group in yaml.safe_load((CHART / "alerts" / "rules.yaml").read_text("utf-8"))["groups"]
    for rule in group["rules"]
]
DASHBOARD: dict[str, Any] = json.loads((CHART / "dashboards" / "addon-operator.json").read_text("utf-8"))
PANELS: list[dict[str, Any]] = [panel for panel in DASHBOARD["panels"] if panel["type"] != "row"]
SUFFIXES = ("", "_total", "_bucket", "_sum", "_count")


@functools.cache
def series() -> set[str]:
    families = metrics.Metrics().registry.collect()
    return {family.name + suffix for family in families for suffix in SUFFIXES}


def asked(expression: str) -> Iterator[str]:
    yield from re.findall(r"(?:addon_operator|process)_\w+", expression)


def labels_asked(expression: str) -> set[str]:
    """Labels that an expression chooses or sums by."""
    grouped = ",".join(re.findall(r"\b(?:by|on) \(([^)]*)\)", expression))
    chosen = re.findall(r"[{,]\s*(\w+)\s*(?:=~|!~|!=|=)", expression)
    return {each.strip() for each in grouped.split(",") if each.strip()} | set(chosen)


def labels_there(expression: str) -> set[str]:
    """Labels of the series that it asks for, and those that every scrape adds."""
    by_name = {
        f"addon_operator_{each.name}".removesuffix("_total"): each.labels for each in metrics.Metrics().rows
    }
    found = {label for name in asked(expression) for label in by_name.get(_family(name), ())}
    return found | {"namespace", "pod", "job", "instance", "le", "__name__"}


def _family(name: str) -> str:
    return re.sub(r"_(total|bucket|sum|count)$", "", name)


def test_alerts_ask_for_series_that_there_are() -> None:
    names = {rule["alert"]: set(asked(rule["expr"])) for rule in RULES}
    assert [alert for alert, found in names.items() if not found] == []
    assert {(alert, name) for alert, found in names.items() for name in found - series()} == set()


def test_an_alert_says_what_it_is_about_and_where_its_runbook_is() -> None:
    assert [rule["annotations"]["runbook_url"] for rule in RULES] == [
        f"RUNBOOKS/{rule['alert']}.md" for rule in RULES
    ]
    assert [
        rule["alert"] for rule in RULES if not {"summary", "description"} <= set(rule["annotations"])
    ] == []
    assert {rule["labels"]["severity"] for rule in RULES} <= {"warning", "critical"}


def test_a_runbook_says_what_the_alert_means_and_what_to_do() -> None:
    texts = {rule["alert"]: (RUNBOOKS / f"{rule['alert']}.md").read_text("utf-8") for rule in RULES}
    headings = {alert: re.findall(r"(?m)^#.*", text) for alert, text in texts.items()}
    assert {alert: found[0] for alert, found in headings.items()} == {alert: f"# {alert}" for alert in texts}
    wanted = {"## Meaning", "## What to do"}
    assert [alert for alert, found in headings.items() if not wanted <= set(found)] == []


def test_the_index_of_runbooks_has_each_alert_with_its_severity() -> None:
    index = (RUNBOOKS / "README.md").read_text("utf-8")
    rows = re.findall(r"(?m)^\| \[(\w+)\]\(\1\.md\) \| (\w+) \|", index)
    assert sorted(rows) == sorted((rule["alert"], rule["labels"]["severity"]) for rule in RULES)


def test_no_runbook_is_left_of_an_alert_that_is_gone() -> None:
    pages = {path.stem for path in RUNBOOKS.glob("*.md")} - {"README"}
    assert pages == {rule["alert"] for rule in RULES}


def test_panels_ask_for_series_that_there_are() -> None:
    names = {
        panel["title"]: {name for target in panel["targets"] for name in asked(target["expr"])}
        for panel in PANELS
    }
    assert [title for title, found in names.items() if not found] == []
    assert {(title, name) for title, found in names.items() for name in found - series()} == set()


def test_alerts_and_panels_choose_and_sum_by_labels_that_there_are() -> None:
    assert {
        (expression, label)
        for expression in expressions()
        for label in labels_asked(expression) - labels_there(expression)
    } == set()
    assert labels_asked('sum by (a, b) (x{c=~"1",d!="2"} and on (e) y)') == set("abcde")


def expressions() -> Iterator[str]:
    yield from (rule["expr"] for rule in RULES)
    yield from (target["expr"] for panel in PANELS for target in panel["targets"])


def test_no_expression_takes_several_metrics_by_a_pattern_of_names() -> None:
    """Functions drop the name: two counters without labels are then one series twice, which is an error."""
    assert [each for each in expressions() if "__name__" in each] == []


def test_an_alert_about_the_first_time_asks_for_a_counter_that_is_there_before() -> None:
    """A series that appears with 1 has not increased for Prometheus; those of modules are there from 0 on."""
    found = {
        name
        for rule in RULES
        if re.search(r"\bincrease\(", rule["expr"]) and re.search(r"> 0$", rule["expr"])
        for name in asked(rule["expr"])
    }
    assert found >= {"addon_operator_podpreset_admission_errors_total"}
    by_name = {f"addon_operator_{each.name}": each.labels for each in metrics.Metrics().rows}
    assert {name for name in found if set(by_name[name]) - {"module"}} == set()


def test_panels_do_not_cover_each_other() -> None:
    places = [panel["gridPos"] for panel in DASHBOARD["panels"]]
    fields = [
        (x, y)
        for place in places
        for x in range(place["x"], place["x"] + place["w"])
        for y in range(place["y"], place["y"] + place["h"])
    ]
    assert len(fields) == len(set(fields))
    assert max(x for x, _ in fields) < 24


def test_panels_have_ids_of_their_own() -> None:
    ids = [panel["id"] for panel in DASHBOARD["panels"]]
    assert len(ids) == len(set(ids))


def test_monitors_let_no_hook_pass_for_another_job_namespace_or_instance() -> None:
    template = (ROOT / "deploy/chart/addon-operator/templates/monitor.yaml").read_text()
    endpoints = template.count("path: /metrics")
    assert endpoints == 2
    assert template.count("honorLabels: false") == endpoints


def test_no_panel_chooses_by_a_label_that_a_metric_has_for_something_else() -> None:
    """The label namespace of some metrics is that of pods, and not of the operator."""
    registry = metrics.Metrics()
    of_pods = {description.name for description in registry.rows if "namespace" in description.labels}
    assert of_pods
    expressions = [target["expr"] for panel in PANELS for target in panel["targets"]]
    wrong = [
        (name, expression)
        for name in of_pods
        for expression in expressions
        if re.search(rf"{re.escape(name)}\{{[^}}]*\$namespace", expression)
    ]
    assert wrong == []
