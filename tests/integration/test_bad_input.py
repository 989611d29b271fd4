"""Mistakes of a user's that only show against a cluster: one sentence each, and no harm done."""

import json
import pathlib
import socket
from typing import Any

import pytest
import yaml

from tests.integration import admitting, operator_process, operator_site

pytestmark = pytest.mark.integration


@pytest.fixture(autouse=True)
def web(site: operator_site.Site) -> pathlib.Path:
    """A module in which nothing is wrong."""
    site.values("webEnabled: true\nweb: {color: green}")
    return site.module("010-web", {"color": "{{ .Values.web.color }}"})


def refusal(operator: operator_process.OperatorProcess) -> str:
    """The one sentence with which an operator refuses to start."""
    ended = operator.wait_end()
    assert ended.exit_code != 0
    assert "Traceback" not in ended.output
    sentences = [line for line in ended.output.splitlines() if "level=error" in line]
    assert len(sentences) == 1, ended.output
    return sentences[0]


def warnings(site: operator_site.Site) -> list[dict[str, Any]]:
    """The Warning Events on the values ConfigMap."""
    selector = f"type=Warning,involvedObject.kind=ConfigMap,involvedObject.name={operator_site.CONFIG_MAP}"
    return site.objects("events", fieldSelector=selector)


def test_a_broken_config_map_is_waited_for_until_it_is_mended(
    site: operator_site.Site, web: pathlib.Path
) -> None:
    site.hook(site.global_hooks, "early.sh", {"onStartup": 1})
    site.config(web="color: [red\n", webEnabled="yes", **{"global": "- 1"})
    operator = site.start()
    line = operator.wait_logged("nothing runs until it is fixed", operator_site.CONFIG_MAP)
    assert "line" in line
    for key in ("web", "webEnabled", "global"):
        assert f"'{key}'" in line
        operator.wait_until(lambda: f"'{key}'" in operator.get("/readyz").text, "/readyz says why")  # noqa: B023
    assert operator.get("/readyz").status == 503
    assert operator.get("/healthz").status == 200
    assert operator.metrics().total("config_values_invalid") == 1
    events = operator.wait_until(lambda: warnings(site), "a Warning Event on the ConfigMap")
    assert "Nothing runs until it is fixed" in events[0]["message"]
    assert site.command("module", "list").returncode != 0
    site.config(web="color: [blue\n", webEnabled=None, **{"global": "- 2"})
    operator.wait_metric(2, "config_values_errors_total")
    assert site.labels() == [], "a hook ran"
    assert site.revisions() == {}
    site.config(web="color: blue", **{"global": None})
    operator.wait_ready()
    assert operator.metrics().total("config_values_invalid") == 0
    assert site.data("web") == {"color": "blue"}
    operator.stop()


@pytest.mark.slow
def test_a_stored_bomb_keeps_no_operator_from_starting(site: operator_site.Site) -> None:
    bomb = "".join(f"a{n}: &a{n} {{<<: [{', '.join([f'*a{n - 1}'] * 10)}]}}\n" for n in range(1, 40))
    site.config(web=f"a0: &a0 {{}}\n{bomb}")
    operator = site.start()
    assert "aliases expand to more than 250000 nodes" in operator.wait_logged("nothing is done with web")
    assert operator.get("/healthz").status == 200
    site.config(web="color: blue")
    operator.wait_ready()
    operator.stop()


def test_an_operator_that_waits_for_the_config_map_ends_cleanly(site: operator_site.Site) -> None:
    site.config(**{"global": "["})
    operator = site.start()
    operator.wait_logged("nothing runs until it is fixed")
    operator.stop()


def test_no_permission_for_the_config_map_is_reported_with_what_to_grant(site: operator_site.Site) -> None:
    site.account("powerless", "get,create,update,patch secrets")
    token = site.token("powerless")
    sentence = refusal(site.start(KUBE_CONFIG=str(kubeconfig(site, {"token": token}))))
    assert f"system:serviceaccount:{site.namespace}:powerless" in sentence
    assert "configmaps" in sentence
    assert site.namespace in sentence


def test_a_refused_token_is_reported_with_the_kubeconfig(site: operator_site.Site) -> None:
    path = kubeconfig(site, {"token": "made-up"})
    sentence = refusal(site.start(KUBE_CONFIG=str(path)))
    assert "401" in sentence or "nauthorized" in sentence


def kubeconfig(site: operator_site.Site, user: dict[str, str]) -> pathlib.Path:
    """The kubeconfig of the cluster with other credentials."""
    document = yaml.safe_load(pathlib.Path(site.environment()["KUBE_CONFIG"]).read_text())
    document["users"] = [{"name": entry["name"], "user": user} for entry in document["users"]]
    path = site.root / "kubeconfig"
    path.write_text(json.dumps(document))
    return path


def test_no_api_server_is_reported_with_its_address(site: operator_site.Site) -> None:
    address = f"https://127.0.0.1:{operator_process.free_port()}"
    sentence = refusal(site.start(KUBE_SERVER=address))
    assert address.removeprefix("https://") in sentence


def test_an_unknown_context_is_reported_with_those_that_there_are(site: operator_site.Site) -> None:
    sentence = refusal(site.start(KUBE_CONTEXT="staging"))
    assert "staging" in sentence
    known = yaml.safe_load(pathlib.Path(site.environment()["KUBE_CONFIG"]).read_text())["current-context"]
    assert known in sentence


def test_a_taken_port_is_reported_with_its_address(site: operator_site.Site) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port: int = taken.getsockname()[1]
        sentence = refusal(site.start_with((), site.environment(), port=port))
    for word in ("127.0.0.1", str(port), "another process", "--listen-port"):
        assert word in sentence


def test_a_helm_that_is_too_old_or_deletes_what_it_should_keep_is_reported_with_its_version(
    site: operator_site.Site,
) -> None:
    helm = site.root / "some-helm"
    for version, why in (("v2.17.0", "too old"), ("v4.1.0", "deletes")):
        site.script(helm, f"echo {version}")
        sentence = refusal(site.start(HELM_BIN_PATH=str(helm)))
        assert f"{helm} is Helm {version}, which" in sentence
        assert why in sentence


def test_no_helm_is_reported_with_where_it_was_looked_for(site: operator_site.Site) -> None:
    sentence = refusal(site.start(PATH="/nowhere"))
    assert "helm" in sentence
    assert "PATH" in sentence


def test_a_directory_for_temporary_files_that_cannot_be_made_is_reported(site: operator_site.Site) -> None:
    (site.root / "file").touch()
    sentence = refusal(site.start(ADDON_OPERATOR_TMP_DIR=str(site.root / "file" / "tmp")))
    assert f"{site.root}/file/tmp" in sentence
    assert "--tmp-dir" in sentence


def test_a_namespace_that_is_not_there_is_reported(site: operator_site.Site) -> None:
    sentence = refusal(site.start(ADDON_OPERATOR_NAMESPACE="mistyped"))
    assert "mistyped" in sentence
    assert "kubectl create namespace" in sentence


def test_a_global_hook_without_configuration_stops_the_start(site: operator_site.Site) -> None:
    site.script(site.global_hooks / "hooks" / "broken.sh", "echo 'no interpreter for this' >&2; exit 1")
    sentence = refusal(site.start())
    assert "broken.sh" in sentence
    assert "no interpreter for this" in sentence


ODD_CHARTS = {
    "nonsense": ("values.schema.json", '{"allOf": 5}'),
    "number": ("values.schema.json", '{"$id": 5}'),
    "address": ("values.schema.json", '{"$id": "http://["}'),
    "dependencies": ("Chart.yaml", "apiVersion: v2\nname: x\nversion: 1.0.0\ndependencies: 5\n"),
}
"""A file of a chart by the name of the module."""


def write_odd_modules(site: operator_site.Site) -> None:
    """Modules of one order in each of which something else is wrong."""
    for name, (file, text) in ODD_CHARTS.items():
        chart = site.module(f"020-{name}", values=f"{name}Enabled: true") / "chart"
        (chart / "templates").mkdir(parents=True)
        (chart / "Chart.yaml").write_text("apiVersion: v2\nname: x\nversion: 1.0.0\n")
        (chart / file).write_text(text)
    site.module("020-Hello", {"a": "b"})
    site.module("020-off", {"a": "b"}, values="replicaCount: 1")
    hook = site.module("020-hook", {"a": "b"}, values="hookEnabled: true") / "hooks" / "broken.sh"
    site.script(hook, "echo 'beforeHelm: [' ")
    site.module("020-render", {"a": '{{ fail "no color" }}'}, values="renderEnabled: true")
    for name, values in (("schema", ""), ("broken", "broken: {size: 10}\n")):
        openapi = site.module(f"020-{name}", values=f"{name}Enabled: true\n{values}") / "openapi"
        openapi.mkdir()
        text = "properties: {size: {maximum: 9}}" if values else "type: 7"
        (openapi / "config-values.yaml").write_text(text)


def test_what_is_wrong_in_the_files_of_one_module_is_the_state_of_that_module(
    site: operator_site.Site, web: pathlib.Path
) -> None:
    write_odd_modules(site)
    site.values("webEnabled: true\nweb: {color: green}\nhelloEnabled: true")
    operator = site.start()

    def settled() -> bool:
        states = {name: each["state"] for name, each in site.module_rows().items()}
        failed = {*ODD_CHARTS, "hello", "hook", "render", "schema", "broken"}
        return states == {"web": "Ready", "off": "Disabled", **dict.fromkeys(failed, "Failed")}

    operator.wait_until(settled, "each module has its own state")
    found = site.module_rows()
    assert "values.yaml, line 1, column 1, key replicaCount" in found["off"]["reason"]
    for name, said in {
        "nonsense": "allOf",
        "dependencies": "020-dependencies/chart/Chart.yaml: dependencies must be a list",
        "hello": "rename it",
        "hook": "broken.sh",
        "render": "no color",
        "schema": "020-schema/openapi/config-values.yaml, line 1",
        "broken": "broken.size: must be at most 9, not 10",
    }.items():
        assert said in found[name]["lastError"], name
    assert site.data("web") == {"color": "green"}
    assert "Traceback" not in operator.log
    planned = site.command("plan")
    assert "Traceback" not in planned.stderr
    assert "020-schema/openapi/config-values.yaml, line 1" in planned.stdout
    linted = site.command("module", "lint", str(site.modules))
    assert linted.returncode == 1
    for said in ("020-Hello", "key replicaCount", "020-address", "broken.size"):
        assert said in linted.stdout
    assert operator.metrics().total("module_discover_errors_total") >= 1
    assert "hook" in operator.get("/readyz").text
    (site.modules / "020-broken" / "values.yaml").write_text("brokenEnabled: true")
    site.hook(site.modules / "020-hook", "broken.sh", {"beforeHelm": 1})
    site.chart(site.modules / "020-render", {"a": "b"})
    note = "note: an edit ends the wait for the next try"
    site.config(broken="size: 8", hook=note, render=note)
    for name in ("broken", "hook", "render"):
        operator.wait_until(lambda: site.module_rows()[name]["state"] == "Ready", "an edit mends it")  # noqa: B023
    operator.stop()


@pytest.mark.slow
def test_an_enabled_script_that_gives_no_answer_is_reported_and_tried_again(site: operator_site.Site) -> None:
    api = site.module("020-api", {"color": "blue"}, values="apiEnabled: true", enabled="echo perhaps")
    operator = site.start()
    operator.wait_metric(1, "module_run_errors_total", module="api")
    operator.wait_logged("its enabled script wrote nothing", "it has to write true or false")
    operator.wait_until(lambda: site.deployed() == {"web": 1}, "the other module is installed")
    site.script(api / "enabled", 'echo true > "$MODULE_ENABLED_RESULT"')
    operator.wait_until(lambda: site.deployed() == {"web": 1, "api": 1}, "it is asked again")


ENDLESS = {
    "loop": "{{ range until 1000000000 }}{{ end }}",
    "growth": '{{ $x := "0123456789" }}{{ range until 40 }}{{ $x = print $x $x }}{{ end }}',
    "nesting": '{{ define "b" }}{{ tpl `{{ include "b" . }}` . }}{{ end }}{{ include "b" . }}',
    "documents": "{{ range until 9000000 }}---\nkind: ConfigMap\n{{ end }}",
}
"""Templates by the names of modules: each takes as much memory as it gets."""


@pytest.mark.slow
def test_a_template_without_end_is_the_trouble_of_its_module_alone(site: operator_site.Site) -> None:
    for name, template in ENDLESS.items():
        chart = site.module(f"010-{name}", {"color": "blue"}, values=f"{name}Enabled: true")
        (chart / "templates" / "endless.yaml").write_text(template)
    site.first_retry = 60.0
    operator = site.start(HELM_MEMORY="192Mi")
    operator.wait_until(lambda: site.deployed() == {"web": 1}, "the other module is installed")
    for name in ENDLESS:
        operator.wait_logged("level=error", f"module={name}", "192 MiB of memory", "HELM_MEMORY")
    for name in ENDLESS:
        (site.modules / f"010-{name}" / "templates" / "endless.yaml").unlink()
        site.config(**{name: "note: an edit ends the wait for the next try"})
    operator.wait_ready()
    assert site.revisions() == {"web": 1, **dict.fromkeys(ENDLESS, 1)}


WRONG_EDITS = {
    "broken YAML": ("web", "color: [red"),
    "broken otherwise": ("web", "color: [blue"),
    "a list": ("web", "- red"),
    "a switch that is not a boolean": ("webEnabled", "off"),
    "an unknown maintenance mode": ("webMaintenance", "later"),
}


def test_wrong_edits_leave_the_last_good_values_in_force(site: operator_site.Site, web: pathlib.Path) -> None:
    site.hook(web, "look.sh", {"beforeHelm": 1})
    operator = site.start().wait_ready()
    for count, (key, text) in enumerate(WRONG_EDITS.values(), start=1):
        site.config(**{key: text})
        operator.wait_metric(count, "config_values_errors_total")
        operator.wait_logged(operator_site.CONFIG_MAP, f"'{key}'")
        assert operator.metrics().total("config_values_invalid") == 1
    operator.wait_until(lambda: warnings(site), "a Warning Event on the ConfigMap")
    site.config(**{key: None for key, _ in WRONG_EDITS.values()} | {"web": "color: blue"})
    operator.wait_until(lambda: site.data("web") == {"color": "blue"}, "the next good edit is in force")
    assert operator.metrics().total("config_values_errors_total") == len(WRONG_EDITS), "counted once per edit"
    assert operator.metrics().total("config_values_invalid") == 0
    assert site.labels() == ["look.sh beforeHelm"] * 2, "a wrong edit made a task"
    assert site.revisions() == {"web": 2}


@pytest.mark.parametrize(
    "settings",
    [
        pytest.param({"HELM_BIN_PATH": "/nowhere/helm"}, id="after the start of the log"),
        pytest.param({"HELM_TIMEOUT": "soon"}, id="wrong settings"),
    ],
)
def test_the_reason_of_the_end_is_a_record_where_the_log_is_json(
    site: operator_site.Site, settings: dict[str, str]
) -> None:
    ended = site.start(LOG_TYPE="json", **settings).wait_end()
    assert ended.exit_code == 1
    records = [json.loads(line) for line in ended.output.splitlines()]
    assert records[-1]["level"] == "error"
    assert next(iter(settings.values())) in records[-1]["msg"]


def test_the_reason_of_the_end_is_a_record_of_level_error_in_a_text_log(site: operator_site.Site) -> None:
    ended = site.start(HELM_BIN_PATH="/nowhere/helm").wait_end()
    (line,) = [line for line in ended.output.splitlines() if "/nowhere/helm" in line]
    assert "level=error" in line


def test_a_helm_that_deletes_what_it_should_keep_is_warned_of_by_commands(site: operator_site.Site) -> None:
    told = f'case "$1" in version) echo v4.1.0 ;; *) exec "{site.cluster.helm}" "$@" ;; esac\n'
    site.script(site.helm, told)
    done = site.command("plan")
    assert "install Helm 4.1.1 or newer" in done.stderr
    assert "web" in done.stdout


def test_a_file_of_the_api_servers_authority_that_holds_none_is_one_sentence(
    site: operator_site.Site, tmp_path: pathlib.Path
) -> None:
    authority = tmp_path / "ca.crt"
    authority.write_text("no certificate")
    environment = admitting.webhook_environment(operator_process.free_port())
    sentence = refusal(site.start(**environment, WEBHOOK_CLIENT_CA=str(authority)))
    assert f"WEBHOOK_CLIENT_CA names {authority}, which has no certificate in PEM form" in sentence
