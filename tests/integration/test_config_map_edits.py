"""Edits of the values ConfigMap while the operator runs."""

import pathlib

import pytest

from addon_operator.devcluster import handle
from tests.integration import module_objects, operator_site

pytestmark = pytest.mark.integration


def module(site: operator_site.Site, directory: str) -> pathlib.Path:
    """A module that is on and shows its color."""
    name = directory.lstrip("0123456789-")
    template = {"color": f"{{{{ .Values.{name}.color }}}}"}
    return site.module(directory, template, values=f"{name}: {{color: green}}\n{name}Enabled: true\n")


def test_edits_of_one_section_after_the_other_have_their_effect_and_no_more(
    site: operator_site.Site,
) -> None:
    site.hook(module(site, "010-web"), "web.sh", {"beforeHelm": 1})
    site.hook(module(site, "020-api"), "api.sh", {"beforeHelm": 1})
    operator = site.start().wait_ready()
    assert site.data(operator_site.CONFIG_MAP) is None, "one that never was is an empty one"
    assert site.data("web") == {"color": "green"}

    site.config(web="color: red")
    operator.wait_until(lambda: site.data("web") == {"color": "red"}, "the chart has the new value")
    operator.wait_idle()
    assert site.revisions() == {"web": 2, "api": 1}
    assert sorted(site.labels()) == ["api.sh beforeHelm", "web.sh beforeHelm", "web.sh beforeHelm"]

    site.config(web="# as before\ncolor: 'red'\n")
    site.config(api="color: red")
    operator.wait_until(lambda: site.data("api") == {"color": "red"}, "the later edit is in force")
    assert site.labels().count("web.sh beforeHelm") == 2, "an edit that changes no value ran a module"

    site.config(web="color: red\nnote: nobody reads this")
    operator.wait_metric(1, "helm_upgrades_skipped_total", module="web", by="manifest")
    assert site.revisions() == {"web": 2, "api": 2}, "a manifest that is as it was makes no revision"

    site.config(web=None)
    operator.wait_until(lambda: site.data("web") == {"color": "green"}, "the module's own value is back")

    site.config(web="false")
    operator.wait_until(lambda: site.revisions() == {"api": 2}, "the word false switches it off")


@pytest.mark.slow
def test_a_change_of_global_values_converges_all_modules(site: operator_site.Site) -> None:
    site.values("global: {domain: old}")
    for directory in ("010-web", "020-api"):
        site.chart(module(site, directory), {"domain": "{{ .Values.global.domain }}"})
    site.hook(site.global_hooks, "all.sh", {"beforeAll": 1})
    operator = site.start().wait_ready()
    site.config(**{"global": "domain: new"})
    operator.wait_until(lambda: site.data("api") == {"domain": "new"}, "the last module has it")
    assert site.revisions() == {"web": 2, "api": 2}
    assert site.labels() == ["all.sh beforeAll", "all.sh beforeAll"]


def test_a_module_switched_on_and_off_is_installed_and_uninstalled(site: operator_site.Site) -> None:
    web = site.module("010-web", {"color": "green"})
    hooks = {"onStartup": 1, "beforeDeleteHelm": 1, "afterDeleteHelm": 1}
    site.hook(web, "life.sh", hooks)
    operator = site.start().wait_ready()
    assert site.revisions() == {}
    site.config(webEnabled="true")
    operator.wait_until(lambda: site.deployed() == {"web": 1}, "it is installed")
    site.config(webEnabled="false")
    operator.wait_until(lambda: site.data("web") is None, "it is uninstalled")
    operator.wait_idle()
    assert site.revisions() == {}
    site.config(web="color: red", webEnabled="true")
    operator.wait_until(lambda: site.deployed() == {"web": 1}, "it is installed again")
    assert [run.contexts[0]["binding"] for run in site.runs()] == [
        "onStartup",
        "beforeDeleteHelm",
        "afterDeleteHelm",
        "onStartup",
    ]


@pytest.mark.slow
def test_disabling_a_failing_module_ends_its_retries(site: operator_site.Site) -> None:
    web = module(site, "010-web")
    module(site, "020-api")
    site.hook(web, "broken.sh", {"beforeHelm": 1}, "exit 1")
    operator = site.start()
    operator.wait_metric(1, "module_run_errors_total", module="web")
    site.config(webEnabled="false")
    operator.wait_ready()
    assert site.revisions() == {"api": 1}


def test_config_values_written_by_a_hook_stand_in_the_config_map_and_trigger_no_run(
    site: operator_site.Site,
) -> None:
    written = "# mine\nkept: 1\n"
    site.config(web=written, api="# untouched\ncolor:   green\n")
    web = module(site, "010-web")
    module(site, "020-api")
    patch = '{"op": "add", "path": "/web/color", "value": "generated"}'
    site.hook(web, "write.sh", {"onStartup": 1, "beforeHelm": 1}, f"""
        if grep -q onStartup "$BINDING_CONTEXT_PATH"; then
          echo '{patch}' > "$CONFIG_VALUES_JSON_PATCH_PATH"
        fi
    """)  # fmt: skip
    operator = site.start().wait_ready()
    config = site.data(operator_site.CONFIG_MAP) or {}
    assert "generated" in config["web"]
    assert config["api"] == "# untouched\ncolor:   green\n"
    assert site.data("web") == {"color": "generated"}
    site.config(api="color: red")
    operator.wait_until(lambda: site.data("api") == {"color": "red"}, "a later edit is in force")
    assert site.labels() == ["write.sh onStartup", "write.sh beforeHelm"]
    assert site.runs()[-1].config["web"] == {"kept": 1, "color": "generated"}


@pytest.mark.slow
def test_a_burst_of_edits_ends_with_the_last_state(site: operator_site.Site) -> None:
    site.config(web="color: c0")
    site.hook(module(site, "010-web"), "slow.sh", {"beforeHelm": 1}, "sleep 0.3")
    operator = site.start().wait_ready()
    for count in range(1, 11):
        site.config(web=f"color: c{count}")
    operator.wait_until(lambda: site.data("web") == {"color": "c10"}, "the last edit is in force")
    operator.wait_idle()
    assert site.data("web") == {"color": "c10"}
    assert site.revisions()["web"] < 11


def test_an_edit_during_a_converge_wins_over_what_had_not_begun(site: operator_site.Site) -> None:
    site.hook(module(site, "010-web"), "gate.sh", {"beforeHelm": 1}, f"""
        while [[ ! -e {site.root}/open ]]; do sleep 0.05; done
    """)  # fmt: skip
    module(site, "020-api")
    operator = site.start()
    operator.wait_until(lambda: site.labels() == ["gate.sh beforeHelm"], "the first module runs")
    site.config(api="color: red", web="color: blue")
    operator.wait_logged("ConfigMap")
    (site.root / "open").touch()
    operator.wait_ready()
    assert site.data("api") == {"color": "red"}
    assert site.data("web") == {"color": "blue"}
    assert site.revisions()["api"] == 1, "the old values were installed first"


WRONG = "ConfigMap {}/addon-operator is invalid since "
WHERE = "key 'web', line 1, column 11"


def test_a_wrong_edit_is_seen_wherever_people_look_until_it_is_right(
    site: operator_site.Site, devcluster: handle.DevCluster
) -> None:
    module(site, "010-web")
    module(site, "020-api")
    operator = site.start().wait_ready()
    objects = module_objects.Modules(site, devcluster)
    objects.wait(operator, "web", ConfigValid="True", Ready="True")
    site.config(web="color: red: dark", api="color: red")
    objects.wait(operator, "web", ConfigValid="False", Ready="True")
    operator.wait_until(lambda: site.data("api") == {"color": "red"}, "the right section is applied")
    said = WRONG.format(site.namespace)
    message = objects.condition("web", "ConfigValid")["message"]
    assert said in message
    assert WHERE in message
    assert objects.conditions("api")["ConfigValid"] == "True"
    for text in (
        operator.get("/").text.replace("&#x27;", "'"),
        operator.get("/readyz?verbose").text,
        site.command("module", "list").stdout,
        site.command("module", "describe", "web").stdout,
    ):
        assert said in text
        assert WHERE in text
    assert operator.get("/readyz").text == "ok\n"
    assert operator.metrics().total("config_values_invalid") == 1
    site.config(**{"global": "[", "api": "color: blue"})
    operator.wait_until(
        lambda: objects.condition("api", "Ready")["reason"] == "WrongValues", "global holds all"
    )
    assert site.data("api") == {"color": "red"}
    site.config(web="color: red", wbe="color: blue", **{"global": None})
    objects.wait(operator, "web", ConfigValid="True", Ready="True")
    operator.wait_until(lambda: site.data("api") == {"color": "blue"}, "what global held is applied")
    ignored = "key 'wbe' is unknown and ignored; did you mean 'web'?"
    assert ignored in operator.get("/readyz?verbose").text
    assert ignored in site.command("module", "list").stdout
    assert said not in operator.get("/readyz?verbose").text + site.command("module", "list").stdout
    assert operator.metrics().total("config_values_invalid") == 0
