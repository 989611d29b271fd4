"""The dashboard and the alerts: they ask for series that there are, and every alert has its runbook."""

import json
import pathlib
import re
from collections.abc import Iterator
from typing import Any

import pytest
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


def series() -> set[str]:
    families = metrics.Metrics().registry.collect()
    return {family.name + suffix for family in families for suffix in SUFFIXES}


def asked(expression: str) -> Iterator[str]:
    alternatives = re.sub(
        r"addon_operator_\((\w+)\|(\w+)\)(\w+)", r"addon_operator_\1\3 addon_operator_\2\3", expression
    )
    yield from re.findall(r"addon_operator_\w+", alternatives)


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule["alert"])
def test_an_alert_asks_for_series_that_there_are(rule: dict[str, Any]) -> None:
    names = set(asked(rule["expr"]))
    assert names
    assert names <= series()


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule["alert"])
def test_an_alert_has_a_runbook_that_says_what_it_means_and_what_to_do(rule: dict[str, Any]) -> None:
    base, name = rule["annotations"]["runbook_url"].split("/")
    assert (base, name) == ("RUNBOOKS", f"{rule['alert']}.md")
    text = (RUNBOOKS / name).read_text("utf-8")
    assert text.startswith(f"# {rule['alert']}\n")
    assert "\n## Meaning\n" in text
    assert "\n## What to do\n" in text
    assert {"summary", "description"} <= set(rule["annotations"])
    assert rule["labels"]["severity"] in {"warning", "critical"}


def test_no_runbook_is_left_of_an_alert_that_is_gone() -> None:
    pages = {path.stem for path in RUNBOOKS.glob("*.md")} - {"README"}
    assert pages == {rule["alert"] for rule in RULES}


@pytest.mark.parametrize("panel", PANELS, ids=lambda panel: panel["title"])
def test_a_panel_asks_for_series_that_there_are(panel: dict[str, Any]) -> None:
    names = {name for target in panel["targets"] for name in asked(target["expr"])}
    assert names
    assert names <= series()


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
