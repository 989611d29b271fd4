"""The inputs of a render."""

import json
import pathlib
import stat

from addon_operator.helm import capabilities
from addon_operator.helm.charts import chart_files
from addon_operator.helm.releases import render_inputs
from addon_operator.kernel import json_types
from addon_operator.modules import release
from tests.support import rows

CHART = chart_files.ChartFiles(release.Checksum("chart"), chart_files.Mention.NOTHING)
CLUSTER = capabilities.Capabilities("v1.36.3", frozenset({"v1", "apps/v1"}))


def test_equal_values_give_equal_bytes_whatever_their_order() -> None:
    assert render_inputs.encode_values({"b": {"y": 1, "x": 2}, "a": []}) == render_inputs.encode_values(
        {"a": [], "b": {"x": 2, "y": 1}}
    )


@rows.each("value", [2**63, 10**30, "\ud800", "ä", None, 1.5, 9007199254740993])
def test_values_survive_the_way_into_the_file(value: json_types.JsonValue) -> None:
    assert json.loads(render_inputs.encode_values({"web": {"x": value}})) == {"web": {"x": value}}


@rows.each(
    ("below", "values", "expected"),
    [
        ({"web": {"a": 1}}, {"web": {"a": 2}}, {"web": {"a": 2}}),
        ({"web": {"a": 1, "b": 2}}, {"web": {"b": 2}}, {"web": {"a": None, "b": 2}}),
        ({"web": {"a": {"x": 1, "y": 2}}}, {"web": {"a": {"y": 3}}}, {"web": {"a": {"x": None, "y": 3}}}),
        ({"webEnabled": True}, {"web": {}}, {"webEnabled": None, "web": {}}),
        ({"web": {"a": {"x": 1}}}, {"web": {"a": [1]}}, {"web": {"a": [1]}}),
        ({"web": {"a": 1}}, {"web": {"a": {"x": 1}}}, {"web": {"a": {"x": 1}}}),
        ({}, {"web": {"a": None}}, {"web": {"a": None}}),
    ],
    ids=[
        "other value",
        "removed",
        "removed below",
        "switch",
        "list for mapping",
        "mapping for scalar",
        "nothing",
    ],
)
def test_what_only_the_charts_own_values_have_is_hidden(
    below: json_types.JsonObject, values: json_types.JsonObject, expected: json_types.JsonObject
) -> None:
    assert render_inputs.hiding(below, values) == expected


@rows.each(
    ("values", "expected"),
    [
        ({"global": {"a": 1}, "web": {}}, {"global": {"a": 1, "enabledModules": ["web"]}, "web": {}}),
        ({"global": {"enabledModules": []}}, {"global": {"enabledModules": []}}),
        ({"web": {}}, {"web": {}}),
    ],
    ids=["added", "there already", "no shared values"],
)
def test_enabled_modules_are_added_unless_the_values_have_them(
    values: json_types.JsonObject, expected: json_types.JsonObject
) -> None:
    assert render_inputs.with_enabled_modules(values, ["web"]) == expected


def test_nobody_else_may_read_the_file(tmp_path: pathlib.Path) -> None:
    path = render_inputs.write_values(b"{}", tmp_path)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert path.read_bytes() == b"{}"


def test_every_input_changes_the_checksum() -> None:
    other_chart = chart_files.ChartFiles(release.Checksum("other"), chart_files.Mention.NOTHING)
    fewer = capabilities.Capabilities("v1.36.3", frozenset({"v1"}))
    newer = capabilities.Capabilities("v1.37.0", CLUSTER.api_versions)
    checksums = {
        render_inputs.checksum(CHART, b"{}", "v3.19.0", None),
        render_inputs.checksum(other_chart, b"{}", "v3.19.0", None),
        render_inputs.checksum(CHART, b'{"a":1}', "v3.19.0", None),
        render_inputs.checksum(CHART, b"{}", "v4.3.1", None),
        render_inputs.checksum(CHART, b"{}", "v3.19.0", CLUSTER),
        render_inputs.checksum(CHART, b"{}", "v3.19.0", fewer),
        render_inputs.checksum(CHART, b"{}", "v3.19.0", newer),
    }
    assert len(checksums) == 7


@rows.each(
    ("chart", "values", "counts"),
    [
        (chart_files.ChartFiles(CHART.checksum, chart_files.Mention.CAPABILITIES), b"{}", False),
        (
            chart_files.ChartFiles(
                CHART.checksum, chart_files.Mention.CAPABILITIES, frozenset({"monitoring.coreos.com"})
            ),
            b"{}",
            True,
        ),
        (
            chart_files.ChartFiles(CHART.checksum, chart_files.Mention.CAPABILITIES),
            b'{"api":"monitoring.coreos.com/v1"}',
            True,
        ),
        (chart_files.ChartFiles(CHART.checksum, chart_files.Mention.ALL_APIS), b"{}", True),
    ],
    ids=["named nowhere", "named by the chart", "named in the values", "the chart looks at all"],
)
def test_apis_count_that_chart_or_values_may_ask_for(
    chart: chart_files.ChartFiles, values: bytes, counts: bool
) -> None:
    more = capabilities.Capabilities(
        "v1.36.3", CLUSTER.api_versions | {"monitoring.coreos.com/v1/ServiceMonitor"}
    )
    before, after = (render_inputs.checksum(chart, values, "v3.19.0", cluster) for cluster in (CLUSTER, more))
    assert (before != after) is counts


@rows.each(
    ("mentions", "values", "expected"),
    [
        (chart_files.Mention.NOTHING, b"{}", False),
        (chart_files.Mention.CAPABILITIES, b"{}", True),
        (chart_files.Mention.NOTHING, b'{"t":"{{ .Capabilities }}"}', False),
        (chart_files.Mention.TPL, b'{"t":"{{ .Capabilities }}"}', True),
        (chart_files.Mention.TPL, b"{}", False),
    ],
    ids=["nothing", "template", "plain value", "value that is a template", "other value"],
)
def test_a_chart_sees_the_cluster_through_templates_and_templates_in_values(
    mentions: chart_files.Mention, values: bytes, expected: bool
) -> None:
    chart = chart_files.ChartFiles(release.Checksum("chart"), mentions)
    assert bool(render_inputs.mentions(chart, values) & chart_files.Mention.CAPABILITIES) is expected


def test_a_value_that_is_a_template_may_look_things_up() -> None:
    chart = chart_files.ChartFiles(release.Checksum("chart"), chart_files.Mention.TPL)
    assert render_inputs.mentions(chart, b'{"t":"{{ lookup }}"}') & chart_files.Mention.LOOKUP
    assert not render_inputs.mentions(chart, b"{}") & chart_files.Mention.LOOKUP
