"""Schemas of stock charts, read from disk."""

import json
import pathlib
from collections.abc import Mapping
from typing import Any

import pytest

from addon_operator.kernel import json_types, names
from addon_operator.loading import module_files, module_schemas, stock_schemas
from addon_operator.values import checks, sources, store
from addon_operator.values.schema import cel_rules, schema_violations
from tests.support import rows


def module_directory(root: pathlib.Path, schema: str = "") -> pathlib.Path:
    chart = root / "010-web" / "chart"
    chart.mkdir(parents=True)
    (chart / "Chart.yaml").write_text("apiVersion: v2\nname: upstream\nversion: 1.0.0\n")
    (chart / "values.yaml").write_text("replicas: 1\n")
    if schema:
        (chart / "values.schema.json").write_text(schema)
    return root / "010-web"


def test_the_schema_of_a_chart_is_read_once_it_is_there(tmp_path: pathlib.Path) -> None:
    directory = module_directory(tmp_path, json.dumps({"properties": {"replicas": {"minimum": 2}}}))
    part = stock_schemas.section_chart(module_files.module_of(directory, 50))
    away = directory / "chart" / "Chart.yaml"
    text = away.read_text()
    away.unlink()
    assert part.read() is None
    away.write_text(text)
    found = part.read()
    assert found is not None
    assert [str(one) for one in found.violations({})] == [
        f"replicas: must be at least 2, not 1 ({directory}/chart/values.schema.json)"
    ]
    assert part.read() is found


@rows.each("place", ["values.schema.json", "charts/db/values.schema.json"])
@rows.each("above", ["", "chart"], ids=["the module itself", "a stock chart"])
def test_nobody_fetches_what_a_schema_refers_to_wherever_it_lies(
    tmp_path: pathlib.Path, above: str, place: str
) -> None:
    chart = tmp_path / "010-web" / above
    for directory in (chart, chart / "charts" / "db"):
        directory.mkdir(parents=True)
        (directory / "Chart.yaml").write_text(f"apiVersion: v2\nname: {directory.name}\nversion: 1.0.0\n")
    below = "db" if "db" in place else "web"
    elsewhere = {"$ref": "http://127.0.0.1:9/a.json"}
    schema: Any = {"properties": {"size": {"type": "integer"}, "other": elsewhere}}
    if below == "web" and not above:
        schema = {"properties": {"web": schema}}
    (chart / place).write_text(json.dumps(schema))
    read = module_files.load([tmp_path], 1)
    made = read.store()
    section = made.section_of(names.ModuleName("web"))
    assert section.chart_leads_outside
    if below == "web":
        wrong = section.chart_violations({"size": "x"}, {}, is_complete=True)
        assert [one.rule for one in wrong] == ["must be an integer"], wrong
    assert any("127.0.0.1:9" in text for text in read.warnings), read.warnings


def test_a_chart_whose_schemas_refer_to_nothing_is_left_to_helm(tmp_path: pathlib.Path) -> None:
    directory = tmp_path / "010-web"
    directory.mkdir()
    (directory / "Chart.yaml").write_text("apiVersion: v2\nname: web\nversion: 1.0.0\n")
    (directory / "values.schema.json").write_text('{"properties": {"web": {"type": "object"}}}')
    assert stock_schemas.chart_of(module_files.module_of(directory, 50)) is None


@rows.each(
    "text", ["{", "[" * 100_000, '{"not":' * 150 + "{}" + "}" * 150], ids=["not JSON", "deep", "deep schema"]
)
def test_a_schema_that_is_not_json_or_nests_too_deep_checks_nothing(
    tmp_path: pathlib.Path, text: str
) -> None:
    module = module_files.module_of(module_directory(tmp_path, text), 50)
    found = stock_schemas.read(module)
    assert found is not None
    assert not found.chart.has_schemas


def test_violations_of_a_schema_of_ours_hide_what_module_yaml_calls_sensitive(tmp_path: pathlib.Path) -> None:
    directory = module_directory(tmp_path)
    (directory / "module.yaml").write_text("sensitive: [auth.login, '*.pin']")
    (directory / "values.yaml").write_text(
        "webEnabled: true\nweb: {auth: {login: hunter2}, spare: {pin: 1}}\n"
    )
    (directory / "openapi").mkdir()
    (directory / "openapi" / "config-values.yaml").write_text(
        "properties:\n  auth: {properties: {login: {type: string, maxLength: 3}}}\n"
        "  spare: {type: object, minProperties: 2, properties: {pin: {type: integer}}}\n"
    )
    made = module_files.load([tmp_path], 50).store()
    found = [str(one).split(" (")[0] for one in checks.Checks(made).section_violations(made.modules[0])]
    assert sorted(found) == [
        "web.auth.login: must have at most 3 characters, not ***",
        "web.spare: must have at least 2 keys, not ***",
    ]
    assert made.masked_values(made.modules[0])["web"] == {"auth": {"login": "***"}, "spare": {"pin": "***"}}


def test_values_of_a_chart_without_any_schema_are_not_read(tmp_path: pathlib.Path) -> None:
    module = module_files.module_of(module_directory(tmp_path), 50)
    (module.chart_directory / "values.yaml").unlink()
    (module.chart_directory / "values.yaml").mkdir()
    found = stock_schemas.read(module)
    assert found is not None
    assert not found.chart.has_schemas
    assert found.violations({"a": 1}) == []


def test_what_a_chart_without_schema_of_ours_hides_follows_names_and_paths(tmp_path: pathlib.Path) -> None:
    directory = module_directory(tmp_path)
    (directory / "module.yaml").write_text("sensitive: [auth.login]")
    given: json_types.JsonObject = {"auth": {"login": "a", "password": "b"}}
    evaluator = cel_rules.CelEvaluator()
    by_name = module_schemas.schemas_of(module_files.module_of(directory, 50), evaluator)
    assert by_name.masked(given) == {"auth": {"login": "***", "password": "***"}}
    (directory / "openapi").mkdir()
    (directory / "openapi" / "values.yaml").write_text("type: object\n")
    by_schema = module_schemas.schemas_of(module_files.module_of(directory, 50), evaluator)
    assert by_schema.masked(given) == {"auth": {"login": "***", "password": "b"}}


@pytest.fixture
def shares(tmp_path: pathlib.Path) -> pathlib.Path:
    """A module whose chart, with one within it, has a schema for keys of the shared ``global``."""
    domain = {"properties": {"domain": {"type": "string"}, "pin": {"type": "string"}}, "required": ["domain"]}
    directory = module_directory(tmp_path, json.dumps({"properties": {"global": domain}}))
    (directory / "values.yaml").write_text("webEnabled: true\nweb: {}\n")
    (directory / "module.yaml").write_text("chart: {global: [domain, pin, zone]}\n")
    below = directory / "chart" / "charts" / "db"
    below.mkdir(parents=True)
    (below / "Chart.yaml").write_text("apiVersion: v2\nname: db\nversion: 1.0.0\n")
    (below / "values.schema.json").write_text(
        json.dumps({"properties": {"global": {"properties": {"zone": {"type": "string"}}}}})
    )
    return tmp_path


def edits(made: store.ValuesStore, sections: Mapping[str, Any]) -> list[str]:
    proposed = sources.ConfigValues({names.ValuesKey(key): each for key, each in sections.items()})
    return [str(one).split(" (")[0] for one in checks.Checks(made).edit_violations(proposed)]


def test_an_edit_of_global_alone_is_checked_by_the_charts_that_get_what_changes(shares: pathlib.Path) -> None:
    made = module_files.load([shares], 50).store()
    good: json_types.JsonObject = {"domain": "a.example", "other": 1}
    made.set_config(sources.ConfigValues({names.GLOBAL_KEY: good}))
    assert edits(made, {"global": {**good, "domain": 5}}) == ["global.domain: must be a string, not 5"]
    assert edits(made, {"global": {**good, "zone": 6}}) == ["global.zone: must be a string, not 6"]
    assert edits(made, {"global": {"zone": "z"}}) == ["web.global: must have the key 'domain'"]
    assert edits(made, {"global": {**good, "domain": "b.example"}}) == []
    own: json_types.JsonObject = {"global": {"domain": "of the section"}}
    assert edits(made, {"global": {**good, "domain": 5}, "web": own}) == []
    wrong: json_types.JsonObject = {"global": {"domain": 7}}
    assert edits(made, {"global": good, "web": wrong}) == ["web.global.domain: must be a string, not 7"]
    made.set_config(sources.ConfigValues({names.GLOBAL_KEY: {"domain": 5}}))
    assert edits(made, {"global": {"domain": 5, "other": 2}}) == [], "nothing that the chart gets changes"


def test_what_is_secret_in_global_is_shown_by_no_chart(shares: pathlib.Path) -> None:
    made = module_files.load([shares], 50).store()
    secret = sources.ConfigValues({names.GLOBAL_KEY: {"pin": 4711}}, source="Secret addons/x")
    shared: json_types.JsonObject = {"domain": "a.example"}
    proposed = sources.ConfigValues({names.GLOBAL_KEY: shared}, source="ConfigMap addons/x", secret=secret)
    (found,) = checks.Checks(made).edit_violations(proposed)
    assert (found.path, found.value, found.origin) == ("global.pin", "***", "Secret addons/x")
    made.set_config(proposed)
    with pytest.raises(
        schema_violations.InvalidValuesError, match=r"global\.pin: must be a string, not \*\*\* "
    ):
        checks.Checks(made).checking_helm_values(made.modules[0])()
