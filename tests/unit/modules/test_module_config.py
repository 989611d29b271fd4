"""``module.yaml``: what is read of it, and how a mistake is shown."""

import pathlib
from collections.abc import Mapping

import jsonschema
import pytest

from addon_operator.kernel.names import ModuleName
from addon_operator.modules import module_config, module_schema, windows
from addon_operator.modules.drift import drift_config
from addon_operator.modules.health import health_config
from addon_operator.modules.patching import manifest_changes
from tests.support import rows

SPEC = """
description: Ingress controller for public traffic
namespace: ingress-nginx
createNamespace: true
chart:
  repository: oci://registry.example.com/charts/
  name: ingress-nginx
  version: 4.12.1
  digest: sha256:%s
  values: root
  global: []
releaseName: ingress
sensitive: [auth.password, "*.secretKey"]
requires:
  kubernetes: ">= 1.30"
  modules: [cert-manager]
  apis: [monitoring.coreos.com/v1]
health:
  wait: true
  timeout: 3m
  deadline: 1h
  test: true
  rules:
  - {apiVersion: example.com/v1, kind: Shop, healthy: self.status.open, failed: self.status.burnt}
  ignore: [{kind: Job, name: "migrate-*"}]
drift:
  mode: correct
  ignore: [{kind: Deployment, name: "*", paths: [/spec/replicas]}]
remediation: {rollback: true}
removal: {data: delete, confirm: true}
""" % ("0" * 64)


def parse(text: str) -> module_config.ModuleConfig:
    return module_config.parse(ModuleName("web"), text, "010-web/module.yaml")


def test_windows_are_read_and_an_empty_list_is_not_none() -> None:
    found = parse('windows: [{schedule: "0 22 * * 1-5", duration: 4h, timezone: Europe/Berlin}]').windows
    assert found == windows.parse(
        [{"schedule": "0 22 * * 1-5", "duration": "4h", "timezone": "Europe/Berlin"}]
    )
    assert parse("windows: []").windows == windows.Windows()
    assert parse("").windows is None


@rows.each(
    ("windows", "told"),
    [
        ('[{schedule: "@daily", duration: 4h, timezone: Berlin}]', "windows[0].timezone: 'Berlin' is not a"),
        ('\n- {schedule: "0 22 31 2 *", duration: 4h}', "line 2, column 4, windows[0].schedule: "),
        (
            '\n- {schedule: "@every 1h", duration: 4h}',
            "line 2, column 3, windows[0]: schedule '@every 1h' is",
        ),
        ("[{duration: 4h}]", "windows[0]: the key 'schedule' is missing"),
        ("nightly", 'windows: "nightly" is not a list; write a list'),
        ('\n- {schedule: "@daily", duration: 4h}' * 51, "windows: there are 51 windows, and 50 may be"),
    ],
    ids=["zone", "never", "period", "no schedule", "no list", "too many"],
)
def test_a_wrong_window_is_told_with_its_place(windows: str, told: str) -> None:
    assert told in mistakes(f"windows: {windows}")


def mistakes(text: str) -> str:
    with pytest.raises(module_config.ModuleConfigError) as caught:
        parse(text)
    return str(caught.value)


def test_every_key_is_read() -> None:
    found = parse(SPEC)
    assert found == module_config.ModuleConfig(
        description="Ingress controller for public traffic",
        namespace="ingress-nginx",
        create_namespace=True,
        chart=module_config.ChartConfig(
            reference=module_config.ChartReference(
                "oci://registry.example.com/charts", "ingress-nginx", "4.12.1", f"sha256:{'0' * 64}"
            ),
            values=module_config.ValuesScope.ROOT,
        ),
        release_name="ingress",
        sensitive=("auth.password", "*.secretKey"),
        requires=module_config.Requirements(
            ">= 1.30", (ModuleName("cert-manager"),), ("monitoring.coreos.com/v1",)
        ),
        health=health_config.HealthConfig(
            wait=True,
            timeout=180.0,
            deadline=3600.0,
            test=True,
            rules=(
                health_config.HealthRule("example.com/v1", "Shop", "self.status.open", "self.status.burnt"),
            ),
            ignore=(health_config.ResourcePattern("Job", "migrate-*"),),
        ),
        rollback=True,
        removal_data="delete",
        removal_confirm=True,
        drift=drift_config.DriftConfig(
            drift_config.DriftMode.CORRECT,
            (
                drift_config.IgnoredFields(
                    health_config.ResourcePattern("Deployment"), (("spec", "replicas"),)
                ),
            ),
        ),
    )


def test_a_required_module_is_waited_for_until_it_is_healthy_or_only_ready() -> None:
    found = parse("requires: {modules: [db, {name: dns, until: ready}, {name: log}]}").requires
    assert found.modules == ("db", "dns", "log")
    assert found.until_ready == {"dns"}
    assert "a module cannot require itself" in mistakes("requires: {modules: [{name: web, until: ready}]}")
    assert "the key 'name' is missing" in mistakes("requires: {modules: [{until: ready}]}")


@rows.each("text", ["", "# nothing yet\n", "{}"], ids=["empty", "comment", "mapping"])
def test_a_file_that_says_nothing_changes_nothing(text: str) -> None:
    assert parse(text) == module_config.NOTHING


@rows.each(
    ("text", "sentence"),
    [
        pytest.param(
            "description: x\nnamspace: web",
            "010-web/module.yaml, line 2, column 1, namspace: the key 'namspace' is not known here; "
            "did you mean 'namespace'?",
            id="an unknown key",
        ),
        pytest.param(
            "chart:\n  path: chart\n  vesion: 1.2.3",
            "010-web/module.yaml, line 3, column 3, chart.vesion: the key 'vesion' is not known here; "
            "did you mean 'version'?",
            id="an unknown key within another",
        ),
        pytest.param(
            "chart:\n  repository: oci://example.com/x\n  name: x\n  version: 4.1",
            "line 4, column 3, chart.version: 4.1 is not a text; put it in quotes",
            id="a version that YAML takes for a number",
        ),
        pytest.param(
            "chart: {repository: 'oci://example.com/x', name: x, version: '^4.1'}",
            "chart.version: '^4.1' is not an exact version; write one such as 4.12.1",
            id="a range of versions",
        ),
        pytest.param(
            "chart: {repository: 'oci://example.com/x', version: 1.2.3}",
            "line 1, column 1, chart: the key 'name' is missing; a chart in a repository needs it",
            id="a repository without a name",
        ),
        pytest.param(
            "chart: {repository: 'http://example.com', name: x, version: 1.2.3}",
            "chart.repository: plain HTTP is only for this machine itself; write https://",
            id="plain HTTP",
        ),
        pytest.param(
            "chart: {repository: 'https://me:secret@example.com', name: x, version: 1.2.3}",
            "chart.repository: credentials do not belong in the address",
            id="credentials in the address",
        ),
        pytest.param(
            "chart: {repository: 'oci://example.com/x', name: x, version: 1.2.3, path: chart}",
            "chart.path: the chart comes from the repository; remove path or repository",
            id="two places of a chart",
        ),
        pytest.param(
            "chart: {version: 1.2.3}",
            "chart.version: this is of a chart in a repository; add the key repository, or remove this one",
            id="a version of nothing",
        ),
        pytest.param(
            "chart: {path: ../other}",
            "chart.path: the path must lead into the module's directory; copy the chart into it",
            id="a path that leads out",
        ),
        pytest.param(
            "chart: {global: some}", 'chart.global: "some" is not known here', id="a word for global"
        ),
        pytest.param("releaseName: Web", "'Web' is not a name that a Helm release can have", id="release"),
        pytest.param("namespace: a.b", "'a.b' is not a name that can stand here", id="namespace"),
        pytest.param("createNamespace: true", "say which namespace with the key", id="which namespace"),
        pytest.param("requires: {modules: [web]}", "a module cannot require itself; remove it", id="itself"),
        pytest.param("requires: {apis: [a/b/c]}", "'a/b/c' is not an apiVersion", id="an API that is none"),
        pytest.param(
            "requires:\n  kubernetes: newest",
            "line 2, column 3, requires.kubernetes: 'newest' is not a range of versions; write one such as",
            id="a range that is none",
        ),
        pytest.param("- a", '["a"] is not a mapping', id="a list"),
        pytest.param("chart: podinfo", "write path, or repository, name and version", id="a text for chart"),
        pytest.param("chart: {values: {a: 1}}", "belong in values.yaml, below the key", id="values"),
        pytest.param("chart: {global: true}", "write a list of keys, such as [domain]", id="global"),
        pytest.param(
            "version: 1.2.3",
            "line 1, column 1, version: the key 'version' is not known here; write it below chart",
            id="a wrong indent",
        ),
        pytest.param("requires: {modules: a}", '"a" is not a list; write a list', id="a text for a list"),
        pytest.param("requires: {apis: [apps]}", "write group and version, such as apps/v1", id="no version"),
        pytest.param(
            "requires: {kubernetes: 1.30}", "put it in quotes (without them", id="an unquoted version"
        ),
        pytest.param("sensitive: [/a/b]", "another kind of path; write keys with dots", id="a JSON pointer"),
        pytest.param("sensitive: ['a[0]']", "another kind of path; write keys with dots", id="a JSONPath"),
        pytest.param(
            "sensitive: [" + "a," * 101 + "]", "there are 101 paths, and 100 may be", id="too many paths"
        ),
        pytest.param("".join(f"a{n}: 1\n" for n in range(30)), "; 10 more mistakes", id="many mistakes"),
        pytest.param("#" * 300_000, "it has more than 256 KiB; values belong in values.yaml", id="too large"),
        *(
            pytest.param(f"chart: {{repository: '{address}', name: x, version: 1.2.3}}", sentence, id=address)
            for address, sentence in (
                ("https://[::1", "its host or port cannot be read"),
                ("oci://example.com:port/x", "its host or port cannot be read"),
                ("ghcr.io/charts", "write oci://… for a registry, or https://…"),
                ("OCI://example.com/x", "write oci://… for a registry, or https://…"),
                (
                    "https://example.com/x?token=canary",
                    "chart.repository: an address ends before '?' and '#'",
                ),
                ("oci://example.com/x:1.2.3", "use chart.version and chart.digest"),
            )
        ),
        pytest.param(
            "chart: {repository: 'oci://a.b/x', name: x/x, version: 1.2.3}",
            "chart.name: 'x/x' is not the name of a chart",
            id="a path as name",
        ),
    ],
)
def test_a_mistake_is_shown_with_file_line_and_remedy(text: str, sentence: str) -> None:
    assert sentence in mistakes(text)


def test_all_mistakes_are_shown_at_once() -> None:
    text = mistakes("description: 1\nreleaseName: Web\nsensitive: auth")
    assert [text.count(key) for key in ("description", "releaseName", "sensitive")] == [1, 1, 1]


def test_no_password_of_an_address_is_shown() -> None:
    assert "secret" not in mistakes(
        "chart: {repository: 'https://me:secret@example.com', name: x, version: 1.2.3}"
    )


def test_plain_http_is_allowed_on_loopback() -> None:
    reference = parse(
        "chart: {repository: 'http://127.0.0.1:5000/x', name: x, version: 1.2.3}"
    ).chart.reference
    assert reference is not None
    assert reference.repository == "http://127.0.0.1:5000/x"


def test_the_address_of_an_index_may_have_its_name() -> None:
    found = parse("chart: {repository: 'https://example.com/x/index.yaml', name: x, version: 1.2.3}")
    assert found.chart.reference is not None
    assert found.chart.reference.repository == "https://example.com/x"


def test_a_sensitive_path_that_probably_hides_nothing_is_a_warning() -> None:
    start = "010-web/module.yaml, line 1, column"
    slash = "is one key with '/' in its name; for two keys, write a dot"
    remedy = "remove 'web' unless the chart has such a key, too"
    assert parse("sensitive: [web.password, auth/password, a.password]").warnings == (
        f"{start} 13, sensitive[0]: paths begin below the section 'web'; {remedy}",
        f"{start} 27, sensitive[1]: 'auth/password' {slash}",
    )


def test_a_description_is_one_line() -> None:
    assert parse("description: |\n  Ingress\n  controller\n").description == "Ingress controller"


def test_all_of_global_can_be_asked_for() -> None:
    assert parse("chart: {global: all}").chart.global_keys is None


def test_the_schema_is_one_that_editors_can_use() -> None:
    jsonschema.Draft202012Validator.check_schema(module_schema.SCHEMA)


def test_the_page_of_the_file_names_every_key() -> None:
    page = pathlib.Path("docs/reference/module-yaml.md").read_text()
    keys = [key for key, _ in _keys(module_schema.SCHEMA)]
    assert [key for key in keys if f"`{key}`" not in page] == []


def _keys(schema: Mapping[str, object]) -> list[tuple[str, object]]:
    found: list[tuple[str, object]] = []
    properties = schema.get("properties") or {}
    assert isinstance(properties, Mapping)
    for key, inner in properties.items():
        found += [(key, inner), *_keys(inner)]
    return found


def test_each_required_module_is_known_with_its_place() -> None:
    requires = parse("requires:\n  modules:\n  - a\n  - b\n").requires
    assert requires.places == (
        "010-web/module.yaml, line 3, column 5, requires.modules[0]",
        "010-web/module.yaml, line 4, column 5, requires.modules[1]",
    )


@rows.each(
    ("address", "is_local"),
    [
        ("oci://localhost:5000/x", True),
        ("http://127.0.0.1", True),
        ("oci://[::1]:1/x", True),
        ("oci://a/b", False),
    ],
)
def test_only_this_machine_is_loopback(address: str, is_local: bool) -> None:
    assert module_config.is_loopback(address) == is_local


def test_changes_of_what_the_chart_renders_are_read() -> None:
    found = parse(
        "labels: {team: a}\nannotations: {x.io/y: z}\npatches:\n"
        "- target: {kind: Deployment, labelSelector: app=web}\n  patch: {spec: {replicas: 2}}\n"
    ).changes
    target = manifest_changes.Target(kind="Deployment", label_selector="app=web")
    patch = manifest_changes.Patch(target, {"spec": {"replicas": 2}})
    assert found == manifest_changes.ManifestChanges({"team": "a"}, {"x.io/y": "z"}, (patch,))


@rows.each(
    ("text", "said"),
    [
        ("labels: {a b: c}", "'a b' is not a name that you can give"),
        ("labels: {app.kubernetes.io/managed-by: me}", "is not a name that you can give"),
        ("labels: {a: b c}", "'b c' is not a label value"),
        ("patches: [{target: {labelSelector: 'a ='}, patch: {}}]", "the patch is empty"),
        ("patches: [{target: {labelSelector: 'a=b=c'}, patch: {a: b}}]", "is not a selector"),
        ("patches: [{target: {}, patch: [{op: put, path: /a}]}]", "this is not a JSON patch (RFC 6902)"),
        ("patches: [{target: {}, patch: []}]", "the patch is empty"),
        ("patches: [{target: {}, patch: [{op: add, path: /a}]}]", "operation 0 (add /a) has no 'value'"),
        ("patches: [{target: {}, patch: [{op: copy, path: /a}]}]", "operation 0 (copy /a) has no 'from'"),
        ("patches: [{patch: {a: b}}]", "the key 'target' is missing"),
        ("health: {ignore: [{}]}", "health.ignore[0]: it needs at least 1 key"),
        ("drift: {ignore: [{}]}", "drift.ignore[0]: it needs at least 1 key"),
        ("drift: {ignore: [{kind: Job, paths: []}]}", "drift.ignore[0].paths: it needs at least 1 item"),
        ("patches: [{target: {}, patch: text}]", "write what changes, or a list of operations"),
    ],
)
def test_changes_and_exceptions_that_say_nothing_or_are_wrong_are_told(text: str, said: str) -> None:
    assert said in mistakes(text)
