"""``addon-operator health explain``."""

import json

from click import testing

from addon_operator.cli import main

SHOPS = """
apiVersion: x.io/v1
kind: Shop
metadata: {name: a}
status: {phase: Open, conditions: [{type: Ready, status: "True"}]}
---
apiVersion: v1
kind: List
items:
- apiVersion: x.io/v1
  kind: Shop
  metadata: {name: b}
  status: {phase: Burnt, conditions: [{type: Ready, status: "False", reason: Failed, message: it burns}]}
- {apiVersion: gateway.solo.io/v1, kind: RouteTable, metadata: {name: c}, status: {state: 1}}
"""


def explain(text: str, *options: str) -> testing.Result:
    return testing.CliRunner().invoke(
        main.cli, ["health", "explain", "-", *options], input=text, standalone_mode=False
    )


def test_each_object_of_a_file_has_its_verdict_and_the_rule_that_decides() -> None:
    result = explain(SHOPS, "-o", "json")
    assert [tuple(row.values()) for row in json.loads(result.stdout)] == [
        ("Shop a", "Healthy", "", "status.conditions: Ready=True"),
        ("Shop b", "Failed", "it burns", "status.conditions: Ready=False, reason Failed"),
        (
            "RouteTable c",
            "Healthy",
            "",
            "kinds.yaml, *.solo.io/* *: has(self.status.state) || has(self.status.statuses)",
        ),
    ]
    assert result.return_value == 3


def test_nothing_is_found_where_all_is_healthy() -> None:
    result = explain(SHOPS.partition("---")[0])
    assert (result.return_value, result.stdout.split()[:6]) == (
        0,
        ["RESOURCE", "HEALTH", "MESSAGE", "RULE", "Shop", "a"],
    )


def test_what_is_no_object_is_an_error() -> None:
    result = explain("[1]")
    assert str(result.exception).endswith("a manifest must be a mapping with apiVersion and kind")
