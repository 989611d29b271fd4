"""The reason of an upgrade names the values that changed."""

from collections.abc import Mapping
from typing import Any

from addon_operator.commands.plan import plan_causes
from addon_operator.modules import release
from tests.support import rows

BOTH = (release.CHART_CHANGED, release.VALUES_CHANGED)
OLD = {"global": {"a": 1}, "web": {"color": "green", "size": 1, "list": [1]}}


def given(values: Mapping[str, Any], defaults: Mapping[str, Any] | None = None) -> plan_causes.Given:
    return plan_causes.Given(values, defaults or {})


@rows.each("reason", BOTH)
def test_keys_of_values_are_named_and_never_what_they_hold(reason: str) -> None:
    now = {"global": {"a": True}, "web": {"color": "red", "list": [2], "more": {"x": "secret"}}}
    said = plan_causes.named(reason, given(OLD), given(now))
    assert said == "values changed: global.a, web.color, web.list and 2 more"


@rows.each("reason", BOTH)
def test_a_changed_default_of_the_chart_is_called_so(reason: str) -> None:
    before, now = given(OLD, {"replicas": 1, "image": {"tag": "1"}}), given(OLD, {"image": {"tag": "2"}})
    said = plan_causes.named(reason, before, now)
    assert said == "values.yaml of the chart changed: image.tag, replicas"


def test_what_remains_is_said_if_no_value_changed() -> None:
    chart, other = (plan_causes.named(reason, given(OLD, {"a": 1}), given(OLD, {"a": 1})) for reason in BOTH)
    assert (chart, other) == ("templates or other files of the chart changed", "Helm or the cluster changed")


@rows.each("reason", [*BOTH, "absent in the cluster: ConfigMap web"])
def test_nothing_is_said_that_the_record_does_not_tell(reason: str) -> None:
    assert plan_causes.named(reason, given({}), given(OLD)) == reason


def test_other_reasons_stay() -> None:
    assert plan_causes.named("revision 3 is failed", given(OLD), given({})) == "revision 3 is failed"


def test_enabled_modules_count_for_charts_that_read_them() -> None:
    reads = {"global": {"enabledModules": ["web"]}}
    assert plan_causes.with_enabled({"global": {}}, ["web", "db"], reads) == {
        "global": {"enabledModules": ["web", "db"]}
    }
    assert plan_causes.with_enabled({"global": {}}, ["web"], OLD) == {"global": {}}
