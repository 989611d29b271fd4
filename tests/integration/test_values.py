"""Values and their schemas on a real control plane: sources, the ConfigMap both ways, and what fails when."""

import json
import pathlib
import textwrap
from collections.abc import Mapping

import pytest

from tests.integration import operator_process, operator_site

pytestmark = pytest.mark.integration

CONFIG_SCHEMA = """
    x-kubernetes-validations:
    - rule: "!has(self.min) || !has(self.size) || self.min <= self.size"
      message: min must not be above size
    - rule: "!has(oldSelf.min) || self.min == oldSelf.min"
      message: min cannot be changed
    properties:
      color: {type: string, default: green}
      min: {type: integer}
      size: {type: integer, maximum: 9}
      password: {type: string, minLength: 8, x-sensitive: true}
"""
VALUES_SCHEMA = """
    x-extend: {schema: config-values.yaml}
    properties:
      internal:
        type: object
        default: {}
        x-required-for-helm: [token]
        properties: {token: {type: string, maxLength: 8}}
"""
TOKEN = '{"op": "add", "path": "/web/internal/token", "value": "t0ken"}'


def schema(owner: pathlib.Path, **texts: str) -> None:
    """Write schemas by the name of their file: ``config_values`` or ``values``."""
    (owner / "openapi").mkdir(exist_ok=True)
    for name, text in texts.items():
        path = owner / "openapi" / f"{name.replace('_', '-')}.yaml"
        path.write_text(textwrap.dedent(text))


def values_patch(*operations: Mapping[str, object]) -> str:
    """The body of a hook that writes a values patch."""
    return f"echo '{json.dumps(operations)}' > \"$VALUES_JSON_PATCH_PATH\""


@pytest.fixture
def web(site: operator_site.Site) -> pathlib.Path:
    """A module with both schemas, whose hook sets what its chart needs."""
    path = site.module(
        "010-web",
        {"color": "{{ .Values.web.color }}", "token": "{{ .Values.web.internal.token }}"},
        values="web: {min: 1}\nwebEnabled: true\n",
    )
    schema(path, config_values=CONFIG_SCHEMA, values=VALUES_SCHEMA)
    site.hook(path, "token.sh", {"beforeHelm": 1}, f"echo '{TOKEN}' > \"$VALUES_JSON_PATCH_PATH\"")
    return path


def refusal(operator: operator_process.OperatorProcess) -> str:
    """What an operator says that refuses to start."""
    ended = operator.wait_end()
    assert ended.exit_code != 0
    assert "Traceback" not in ended.output
    return ended.output


def test_at_the_start_all_violations_end_it_with_path_rule_and_source(
    site: operator_site.Site, web: pathlib.Path
) -> None:
    schema(site.global_hooks, config_values="required: [domain]\nproperties: {domain: {type: string}}")
    site.config(web="{size: 10, password: hidden, nosuch: 1}")
    site.values("webEnabled: true\nweb: {min: x}\n")
    (web / "values.yaml").unlink()
    said = refusal(site.start())
    assert "global: must have the key 'domain'" in said
    assert "web.size: must be at most 9, not 10" in said
    assert "web.min: must be an integer, not " in said
    assert f" ({web}/openapi/config-values.yaml" in said
    assert f"set in {site.modules}/values.yaml" in said
    assert "web.password: must have at least 8 characters, not ***" in said
    assert "web.nosuch: the schema does not know this key" in said
    assert "hidden" not in said
    assert site.revisions() == {}


@pytest.mark.slow
def test_at_the_start_a_section_that_breaks_a_schema_keeps_its_module_from_running(
    site: operator_site.Site, web: pathlib.Path
) -> None:
    site.config(web="{size: 10, password: hidden}")
    operator = site.start()
    operator.wait_logged("web.size: must be at most 9, not 10", "nothing is done with web")
    operator.wait_until(
        lambda: "web.size: must be at most 9" in operator.get("/readyz?verbose").text, "it says why"
    )
    assert "hidden" not in operator.log + operator.get("/readyz?verbose").text
    assert operator.metrics().total("config_values_invalid") == 1
    site.config(web="size: 9")
    operator.wait_until(lambda: site.labels() == ["token.sh beforeHelm"], "it runs when it is mended")
    operator.stop()


def test_an_edit_that_breaks_a_schema_leaves_the_last_good_values_and_makes_no_task(
    site: operator_site.Site, web: pathlib.Path
) -> None:
    site.config(web="size: 10", webEnabled="false")
    operator = site.start().wait_ready()
    # Values of a module that is disabled keep nobody from starting.
    site.config(webEnabled="true")
    operator.wait_metric(1, "config_values_errors_total")
    site.config(web=None)
    operator.wait_until(lambda: site.deployed() == {"web": 1}, "the corrected module is installed")
    operator.wait_idle()
    # Defaults fill what no source sets, and hooks add to it.
    assert site.data("web") == {"color": "green", "token": "t0ken"}
    (run,) = site.runs()
    assert run.values["web"] == {"min": 1, "color": "green", "internal": {}}
    assert run.config["web"] == {}

    for count, text in enumerate(
        ("size: 10", "password: hidden", "{size: 0}", "min: 2", "nosuch: 1"), start=2
    ):
        site.config(web=text)
        operator.wait_metric(count, "config_values_errors_total")
    operator.wait_logged("min must not be above size")
    operator.wait_logged("min cannot be changed")
    assert "hidden" not in operator.log
    selector = f"type=Warning,involvedObject.kind=ConfigMap,involvedObject.name={operator_site.CONFIG_MAP}"
    events = operator.wait_until(lambda: site.objects("events", fieldSelector=selector), "a Warning Event")
    assert "web" in events[0]["message"]
    assert events[0]["involvedObject"]["uid"]
    operator.wait_idle()
    assert site.labels() == ["token.sh beforeHelm"], "a wrong edit made a task"
    site.config(web="color: blue")
    operator.wait_until(lambda: (site.data("web") or {}).get("color") == "blue", "the next good edit works")
    assert operator.metrics().total("config_values_errors_total") == 6, "counted once per edit"


def test_a_hook_whose_patch_breaks_the_schema_fails_and_nothing_of_it_is_applied(
    site: operator_site.Site, web: pathlib.Path
) -> None:
    site.first_retry = operator_site.SOON
    config = '{"op": "add", "path": "/web/color", "value": "written"}'
    long = {"op": "add", "path": "/web/internal/token", "value": "much too long"}
    site.hook(web, "token.sh", {"beforeHelm": 1}, f"""
        if [[ -e {site.root}/good ]]; then {values_patch({**long, "value": "short"})}
        else {values_patch(long)}; fi
        echo '{config}' > "$CONFIG_VALUES_JSON_PATCH_PATH"
    """)  # fmt: skip
    operator = site.start()
    operator.wait_metric(2, "module_hook_run_errors_total", module="web")
    operator.wait_logged("hook", "token.sh", "web.internal.token: must have at most 8 characters")
    assert site.data(operator_site.CONFIG_MAP) is None, "half of the output was applied"
    assert site.revisions() == {}
    (site.root / "good").touch()
    operator.wait_ready()
    assert site.data("web") == {"color": "written", "token": "short"}
    assert "written" in (site.data(operator_site.CONFIG_MAP) or {})["web"], "a missing ConfigMap is made"


def test_values_that_the_chart_needs_or_that_are_wrong_fail_the_run_before_helm(
    site: operator_site.Site, web: pathlib.Path
) -> None:
    (web / "hooks" / "token.sh").unlink()
    api = site.module("010-api", {"color": "{{ .Values.api.color }}"})
    schema(api, config_values=CONFIG_SCHEMA)
    site.config(api="size: 10")
    enable = {"op": "add", "path": "/apiEnabled", "value": True}
    site.hook(site.global_hooks, "enable.sh", {"onStartup": 1}, values_patch(enable))
    operator = site.start()
    for module in ("web", "api"):
        operator.wait_metric(1, "module_run_errors_total", module=module)
    operator.wait_logged("web.internal: must have the key 'token'")
    operator.wait_logged("api.size: must be at most 9")
    assert "install" not in site.helm_calls()
    assert "upgrade" not in site.helm_calls()
    site.config(api="{size: 9, min: 1}")
    operator.wait_until(lambda: site.deployed() == {"api": 1}, "the corrected module is installed")


def test_a_schema_of_global_values_that_is_wrong_itself_stops_the_start_with_file_and_position(
    site: operator_site.Site, web: pathlib.Path
) -> None:
    rule = "properties:\n  a:\n    x-kubernetes-validations:\n    - {rule: slef > 1}\n"
    schema(site.global_hooks, config_values=rule)
    said = refusal(site.start())
    assert f"{site.global_hooks}/openapi/config-values.yaml, line 4, column 7" in said
    assert "undeclared reference to 'slef'" in said


@pytest.mark.slow
def test_an_edit_close_to_the_limit_of_the_api_server_works(site: operator_site.Site) -> None:
    big = site.module("010-big", {"last": "{{ .Values.big.key9999 }}"}, values="bigEnabled: true\n")
    schema(big, config_values="additionalProperties: {type: string}")
    operator = site.start().wait_ready()
    text = "".join(f"key{number}: {'x' * 80}\n" for number in range(10_000))
    site.create("configmap", operator_site.CONFIG_MAP, {"data": {"big": text}})
    operator.wait_until(lambda: site.data("big") == {"last": "x" * 80}, "the large values are in force")
    assert operator.metrics().total("config_values_errors_total") == 0


def test_modules_of_several_directories_share_their_global_values(site: operator_site.Site) -> None:
    other = site.root / "more-modules"
    (other / "020-api" / "templates").mkdir(parents=True)
    site.values("global: {domain: one, first: 1}\nwebEnabled: true\napiEnabled: false")
    (other / "values.yaml").write_text("global: {domain: two}\napiEnabled: true\nwebEnabled: false")
    shown = {"global": "{{ toJson .Values.global | quote }}"}
    site.module("010-web", shown)
    site.chart(other / "020-api", shown)
    site.start(MODULES_DIR=f"{site.modules}:{other}").wait_ready()
    expected = {"domain": "two", "first": 1}
    assert [json.loads((site.data(name) or {})["global"]) for name in ("web", "api")] == [expected] * 2


@pytest.mark.slow
def test_what_the_chart_needs_may_come_with_the_third_run_of_a_hook(
    site: operator_site.Site, web: pathlib.Path
) -> None:
    site.first_retry = operator_site.SOON
    runs = site.root / "runs"
    count = f'echo >> {runs}; [ "$(wc -l < {runs})" -lt 3 ] || '
    site.hook(web, "token.sh", {"beforeHelm": 1}, count + f"echo '{TOKEN}' > \"$VALUES_JSON_PATCH_PATH\"")
    operator = site.start()
    operator.wait_metric(2, "module_run_errors_total", module="web")
    operator.wait_ready()
    assert site.data("web") == {"color": "green", "token": "t0ken"}
    assert site.labels() == ["token.sh beforeHelm"] * 3


GROWS = """
    x-kubernetes-validations: [{rule: self.min >= oldSelf.min, message: min must not shrink}]
    x-deckhouse-validations: [{expression: self.nowhere > 1}]
    properties:
      min: {$ref: 'common.yaml#/definitions/number'}
      color: {type: [string, 'null'], default: ~, descripton: of the page}
      kind: {type: string, default: ~}
      node: {type: object, properties: {kind: {type: string}, size: {type: integer}}}
    oneOf:
    - {properties: {node: {properties: {kind: {enum: [a]}}}}}
    - {properties: {node: {properties: {kind: {enum: [b]}}}}}
"""


def test_a_schema_as_the_original_reads_it_takes_first_values_and_compares_with_them_later(
    site: operator_site.Site, web: pathlib.Path
) -> None:
    schema(web, config_values=GROWS, common="definitions: {number: {type: [integer, string]}}")
    site.config(web="{min: 3, color: ~, node: {kind: a, size: 3}}")
    operator = site.start().wait_ready()
    assert "did you mean 'description'?" in operator.log
    site.config(web="{min: 2, color: red, node: {kind: a, size: 3}}")
    operator.wait_metric(1, "config_values_errors_total")
    operator.wait_logged("min must not shrink")
    site.config(web="{min: 4, color: red, node: {kind: a, size: 3}}")
    operator.wait_until(lambda: (site.data("web") or {}).get("color") == "red", "a larger one is taken")


def test_charts_that_read_the_list_of_enabled_modules_get_it_and_follow_it(site: operator_site.Site) -> None:
    listed = '{{ .Values.global.enabledModules | default list | join " " | quote }}'
    reader = site.module("010-reader", {"all": listed}, values="readerEnabled: true")
    (reader / "crds").mkdir()
    site.module("020-other", {"a": "b"}, values="otherEnabled: true")
    site.module("030-more", {"a": "b"})
    operator = site.start(ENABLED_MODULES_CRD_NAMES="true").wait_ready()
    assert site.data("reader") == {"all": "reader-crd reader other"}
    site.config(moreEnabled="true")
    operator.wait_until(lambda: site.revisions().get("more"), "the third module is installed")
    operator.wait_idle()
    assert site.data("reader") == {"all": "reader-crd reader other more"}
    assert site.revisions() == {"reader": 2, "other": 1, "more": 1}
