"""The schemas that stock charts have of their own."""

import json
import pathlib
import subprocess
from collections.abc import Mapping
from typing import Any, Final

import pytest

from addon_operator.devcluster import handle
from addon_operator.loading import module_files, stock_schemas
from tests.integration import admitting, module_objects, operator_process, operator_site
from tests.integration.stock import seen, write_chart

pytestmark = pytest.mark.integration

_NESTED: Final = {"properties": {"b": {"properties": {"a": {"type": "string"}}}}}
_SCHEMA: Final[Mapping[str, Any]] = {
    "$schema": "http://json-schema.org/draft-07/schema#",
    "type": "object",
    "required": ["replicas"],
    "properties": {
        "replicas": {"type": "integer", "minimum": 1, "default": 7},
        "auth": {"properties": {"password": {"type": "string", "minLength": 8}}},
        "spare": {"default": "from the schema"},
        "global": {"properties": {"zone": {"type": "string"}}},
    },
}


def write_schema(chart: pathlib.Path, schema: Mapping[str, Any] = _SCHEMA) -> None:
    (chart / "values.schema.json").write_text(json.dumps(schema))


@pytest.fixture
def module(site: operator_site.Site) -> pathlib.Path:
    """A stock chart with a schema, which has a chart within it with another."""
    path = site.module("010-web", values="webEnabled: true")
    dependency = "dependencies:\n- {name: db, version: 1.2.3, alias: store, condition: store.enabled}\n"
    chart = write_chart(path / "chart", more=dependency)
    (chart / "values.yaml").write_text("replicas: 1\nstore: {enabled: true}\n")
    (path / "module.yaml").write_text("chart: {global: [zone]}")
    write_schema(chart)
    below = write_chart(chart / "charts" / "db", "db")
    (below / "templates" / "seen.yaml").unlink()
    write_schema(below, {"properties": {"size": {"type": "string"}}})
    return path


@pytest.mark.slow
def test_the_charts_schema_finds_a_wrong_edit_and_the_last_good_values_stay(
    site: operator_site.Site, module: pathlib.Path
) -> None:
    # What a schema refers to elsewhere is never fetched: Helm would fail, because nobody answers there.
    nowhere = {"size": {"type": "string"}, "other": {"$ref": "http://127.0.0.1:1/other.json"}}
    write_schema(module / "chart" / "charts" / "db", {"properties": nowhere})
    site.config(web="replicas: 2", **{"global": "zone: a"})
    operator = site.start().wait_ready().wait_idle()
    try:
        assert seen(site)["replicas"] == 2
        assert "spare" not in seen(site)
        calls = len(site.helm_calls())
        for wrong, told in (
            ("replicas: 0", "web.replicas: must be at least 1, not 0"),
            ("replicas: null", "web: must have the key 'replicas'"),
            ("store: {size: 5}", "web.store.size: must be a string, not 5"),
            ("auth: {password: hunter2}", "web.auth.password: must have at least 8 characters, not ***"),
        ):
            site.config(web=wrong)
            operator.wait_logged(told)
        site.config(web="replicas: 0\nstore: {enabled: false, size: 5}")
        site.config(web="replicas: 3\nstore: {enabled: false, size: 5}")
        operator_process.wait_until(lambda: seen(site)["replicas"] == 3, "the right edit is taken")
        assert site.revisions() == {"web": 2}
        site.config(**{"global": "zone: 5"})
        operator.wait_logged("global.zone: must be a string, not 5", "set in ConfigMap")
        site.config(**{"global": "zone: b"})
        operator_process.wait_until(
            lambda: seen(site)["global"] == {"zone": "b"}, "the right edit of global is taken"
        )
        assert site.revisions() == {"web": 3}, "what the wrong edit said was never released"
        assert "hunter2" not in operator.log
        assert len(site.helm_calls()) > calls
    finally:
        operator.stop()


def test_the_webhook_refuses_what_the_charts_schema_does_not_allow(
    site: operator_site.Site, devcluster: handle.DevCluster, module: pathlib.Path
) -> None:
    shown = module_objects.Modules(site, devcluster)
    site.config(web="replicas: 1")
    with admitting.admitting(site, devcluster) as operator:
        with pytest.raises(operator_site.RefusedError) as refused:
            site.config(web="replicas: nine")
        assert "web.replicas: must be an integer, not" in str(refused.value)
        assert f"{module}/chart/values.schema.json" in str(refused.value)
        with pytest.raises(operator_site.RefusedError, match=r"global\.zone: must be a string, not 5"):
            site.config(**{"global": "zone: 5"})
        # A key that the schema leaves open is allowed, and may be a slip.
        edit = json.dumps({"data": {"web": "{replicas: 2, stor: {enabled: false}}"}})
        in_namespace = f"--namespace={site.namespace}"
        told = devcluster.run_kubectl(
            in_namespace, "patch", "configmap", operator_site.CONFIG_MAP, "-p", edit
        )
        slip = "the chart has no value web.stor; did you mean 'store'?"
        assert slip in told.stderr, told.stderr
        operator.wait_until(
            lambda: slip in shown.condition("web", "Warnings")["message"], "the Module says it, too"
        )
        site.config(web="replicas: 2")
        operator.wait_until(
            lambda: slip not in shown.condition("web", "Warnings")["message"], "until it is put right"
        )


def test_values_that_hooks_make_are_checked_before_helm_is_started(
    site: operator_site.Site, module: pathlib.Path
) -> None:
    site.first_retry = operator_site.SOON
    hook = """
    if [ -e "$TRACE.right" ]; then value='"a.example"'; else value=5; fi
    echo '{"op": "add", "path": "/web/domain", "value": '"$value"'}' > "$VALUES_JSON_PATCH_PATH"
    """
    site.hook(module, "domain.sh", {"beforeHelm": 1}, hook)
    write_schema(module / "chart", {"required": ["domain"], "properties": {"domain": {"type": "string"}}})
    operator = site.start()
    try:
        operator.wait_logged("web.domain: must be a string, not 5")
        assert not [call for call in site.helm_calls() if call.startswith("upgrade")]
        (site.root / "trace.right").touch()
        operator_process.wait_until(
            lambda: site.deployed() == {"web": 1}, "what the hook fills in now is allowed"
        )
        assert seen(site)["domain"] == "a.example"
    finally:
        operator.stop()


@pytest.mark.parametrize(
    ("own", "schema", "below", "given", "is_right"),
    [
        ({"a": 1}, {"required": ["a"]}, None, {"a": None}, False),
        ({"b": {"c": 1}}, {"properties": {"b": {"required": ["c"]}}}, None, {"b": {"x": 1}}, True),
        ({}, _NESTED, None, {"b": {"a": None}}, False),
        ({"b": {"c": 1}}, _NESTED, None, {"b": {"a": None}}, False),
        ({}, None, {"additionalProperties": False}, {}, False),
        ({"global": {"a": "x"}}, None, {"properties": {"global": {"required": ["a"]}}}, {}, True),
        ({"store": {"enabled": False}}, None, {"required": ["nothing"]}, {}, True),
        ({}, None, {"properties": {"size": {"minimum": 5}}}, {"store": {"size": 7}}, True),
        ({}, None, {"properties": {"size": {"minimum": 5}}}, {"store": {"size": 3}}, False),
        ({}, {"properties": {"a": {"type": "integer"}}}, None, {"a": 1.0}, True),
        ({}, None, {"required": []}, {"store": "text"}, False),
        ({"a": None}, {"required": ["a"], "properties": {"a": {"type": "string"}}}, None, {}, False),
    ],
    ids=["null", "merge", "nested null", "null of an unknown key", "global is there", "global", "disabled",
         "alias", "wrong by alias", "integer", "no mapping", "own null"],
)  # fmt: skip
def test_the_verdict_is_that_of_helm(  # a row of the table
    devcluster: handle.DevCluster,
    tmp_path: pathlib.Path,
    own: dict[str, Any],
    schema: dict[str, Any] | None,
    below: dict[str, Any] | None,
    given: dict[str, Any],
    *,
    is_right: bool,
) -> None:
    listed = "dependencies:\n- {name: db, version: 1.2.3, alias: store, condition: store.enabled}\n"
    chart = write_chart(tmp_path / "010-web" / "chart", more=listed if below else "")
    (chart / "values.yaml").write_text(json.dumps(own))
    if schema:
        write_schema(chart, schema)
    if below:
        write_schema(write_chart(chart / "charts" / "db", "db"), below)
        (chart / "charts" / "db" / "values.yaml").write_text("size: 1\n")
    (tmp_path / "given.json").write_text(json.dumps(given))
    command = [str(devcluster.helm), "template", "web", str(chart), f"--values={tmp_path / 'given.json'}"]
    ran = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    found = stock_schemas.read(module_files.module_of(tmp_path / "010-web", 50))
    assert found is not None
    assert (ran.returncode == 0, found.violations(given) == []) == (is_right, is_right), ran.stderr
