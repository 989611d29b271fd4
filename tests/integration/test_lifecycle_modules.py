"""Modules that come, fail, change and go while the operator runs, with both versions of Helm."""

import json
import pathlib
import shutil

import pytest

from tests.integration import operator_process, operator_site

pytestmark = pytest.mark.integration

DELETE_HOOKS = {"beforeDeleteHelm": 1, "afterDeleteHelm": 1}


def module(site: operator_site.Site, directory: str, **more: str) -> pathlib.Path:
    """A module that is on and shows its color and the global size."""
    name = directory.lstrip("0123456789-")
    data = {"color": f"{{{{ .Values.{name}.color }}}}", "size": '"{{ .Values.global.size }}"'}
    site_values = f"{name}: {{color: green}}\n{name}Enabled: true\n"
    return site.module(directory, data, values=site_values, **more)


def statuses(site: operator_site.Site) -> dict[str, list[str]]:
    """Status of each revision of each release, in no order."""
    found: dict[str, list[str]] = {}
    for secret in site.objects("secrets", labelSelector="owner=helm"):
        labels = secret["metadata"]["labels"]
        found.setdefault(labels["name"], []).append(labels["status"])
    return found


def wait_data(
    operator: operator_process.OperatorProcess, site: operator_site.Site, name: str, **data: str
) -> None:
    operator.wait_until(lambda: site.data(name) == data, f"{name} has {data}")


def test_a_removal_goes_on_after_failures_restarts_and_second_thoughts(
    site: operator_site.Site, helm: pathlib.Path
) -> None:
    site.values("global: {size: 1}")
    web, api = module(site, "010-web"), module(site, "020-api")
    gate = site.root / "gate"
    only_after = f'! grep -q afterDeleteHelm "$BINDING_CONTEXT_PATH" || [[ -e {gate} ]]'
    for each, name in ((web, "web.sh"), (api, "api.sh")):
        site.hook(each, name, {**DELETE_HOOKS, "onStartup": 1}, f"{only_after} || exit 1")
    site.use_helm(helm)
    first = site.start().wait_ready()
    assert statuses(site) == {"web": ["deployed"], "api": ["deployed"]}

    # The hook after the uninstallation fails; one module is wanted again meanwhile, the other one is not.
    site.config(webEnabled="false", apiEnabled="false")
    first.wait_metric(1, "module_delete_errors_total", module="web")
    first.wait_metric(1, "module_delete_errors_total", module="api")
    assert (site.data("web"), site.data("api")) == (None, None)
    site.config(webEnabled="true")
    wait_data(first, site, "web", color="green", size="1")
    first.wait_until(lambda: statuses(site)["web"][-1:] == ["deployed"], "installed anew")
    first.stop()

    gate.touch()
    second = site.start().wait_ready().wait_idle()
    assert "api" not in statuses(site), "the record of the removed release is gone"
    assert statuses(site)["web"].count("deployed") == 1
    labels = site.labels()
    assert labels.count("api.sh beforeDeleteHelm") == 1, "it succeeded, and there was no release any more"
    assert sorted(labels[-2:]) == ["api.sh afterDeleteHelm", "web.sh onStartup"], "side by side"

    # Both go in reverse order, and nothing of them is left.
    site.config(apiEnabled="true")
    second.wait_until(lambda: site.data("api"), "it is back")
    second.wait_idle()
    before = len(site.labels())
    site.config(webEnabled="false", apiEnabled="false")
    second.wait_until(lambda: statuses(site) == {}, "both are removed")
    second.wait_idle()
    assert site.labels()[before:] == [
        "api.sh beforeDeleteHelm",
        "api.sh afterDeleteHelm",
        "web.sh beforeDeleteHelm",
        "web.sh afterDeleteHelm",
    ]
    second.stop()


@pytest.mark.slow
def test_a_failing_module_holds_up_no_edits_removals_and_healing_of_others(site: operator_site.Site) -> None:
    site.values("global: {size: 1}")
    for directory in ("010-bad", "010-web", "010-api"):
        module(site, directory)
    module(site, "020-late")
    site.hook(site.modules / "010-bad", "bad.sh", {"beforeHelm": 1}, f"[[ -e {site.root}/mended ]] || exit 1")
    operator = site.start()
    operator.wait_metric(1, "module_run_errors_total", module="bad")
    operator.wait_until(lambda: set(site.revisions()) == {"web", "api"}, "those of its order are installed")
    site.config(web="color: red")
    wait_data(operator, site, "web", color="red", size="1")
    site.delete("configmap", "web")
    wait_data(operator, site, "web", color="red", size="1")
    site.config(apiEnabled="false")
    operator.wait_until(lambda: set(site.revisions()) == {"web"}, "another one is removed")
    assert operator.get("/readyz").status == 503
    site.config(badEnabled="false", **{"global": "size: 2"})
    operator.wait_ready().wait_idle()
    assert set(site.revisions()) == {"web", "late"}, "what was held up goes on"
    assert site.data("late") == {"color": "green", "size": "2"}

    # Once all went through, a module that begins to fail holds up nothing.
    (site.root / "mended").touch()
    site.config(badEnabled="true")
    wait_data(operator, site, "bad", color="green", size="2")
    (site.root / "mended").unlink()
    site.config(bad="color: black")
    failures = operator.metrics().total("module_run_errors_total", module="bad")
    operator.wait_metric(failures + 1, "module_run_errors_total", module="bad")
    site.config(late="color: red")
    wait_data(operator, site, "late", color="red", size="2")
    (site.root / "mended").touch()
    site.config(bad="color: white")
    wait_data(operator, site, "bad", color="white", size="2")
    operator.stop()


def test_a_module_that_is_wanted_again_while_it_is_removed_starts_up_again(site: operator_site.Site) -> None:
    site.values("global: {size: 1}")
    web = module(site, "010-web")
    gate = site.root / "gate"
    site.hook(web, "slow.sh", {"beforeDeleteHelm": 1}, f"while [[ ! -e {gate} ]]; do sleep 0.05; done")
    site.hook(web, "start.sh", {"onStartup": 1, "afterDeleteHelm": 1})
    operator = site.start().wait_ready()
    site.config(webEnabled="false")
    operator.wait_until(lambda: "slow.sh beforeDeleteHelm" in site.labels(), "the removal began")
    site.config(webEnabled="true", web="color: red")
    changed = "values ConfigMap changed"
    operator.wait_until(lambda: operator.log.count(changed) == 2, "the second edit was applied")
    gate.touch()
    wait_data(operator, site, "web", color="red", size="1")
    operator.wait_idle()
    assert site.labels() == ["start.sh onStartup", "slow.sh beforeDeleteHelm", "start.sh onStartup"]
    assert site.revisions() == {"web": 2}
    operator.stop()


@pytest.mark.slow
def test_an_enabled_script_is_asked_again_when_values_of_its_module_change(site: operator_site.Site) -> None:
    site.values("global: {size: 1}")
    module(site, "010-base")
    answer = """
        color="$(jq -r '.web.color' "$VALUES_PATH")"
        if [[ "$color" == black ]]; then
          echo "no black here" > "$MODULE_ENABLED_REASON"
          echo false > "$MODULE_ENABLED_RESULT"
        else
          echo true > "$MODULE_ENABLED_RESULT"
        fi
    """
    web = module(site, "020-web", enabled=answer)
    site.hook(web, "life.sh", {"onStartup": 1, "afterDeleteHelm": 1})
    site.hook(site.global_hooks, "all.sh", {"beforeAll": 1})
    operator = site.start().wait_ready()
    site.config(base="color: blue")
    wait_data(operator, site, "base", color="blue", size="1")
    assert site.labels().count("all.sh beforeAll") == 1, "no converge without an enabled script"
    site.config(web="color: black")
    operator.wait_until(lambda: "web" not in site.revisions(), "it is removed")
    operator.wait_idle()
    assert "no black here" in operator.get("/discovery").text + operator.get("/").text
    site.config(web="color: white")
    wait_data(operator, site, "web", color="white", size="1")
    operator.wait_idle()
    assert [label for label in site.labels() if label.startswith("life")] == [
        "life.sh onStartup",
        "life.sh afterDeleteHelm",
        "life.sh onStartup",
    ]
    assert site.revisions() == {"base": 2, "web": 1}
    operator.stop()


@pytest.mark.slow
def test_flags_of_global_hooks_switch_modules_on_events_and_after_all(site: operator_site.Site) -> None:
    site.values("global: {size: 1}\nlateEnabled: false")
    web, late = module(site, "010-web"), module(site, "020-late")
    (late / "values.yaml").write_text("late: {color: green}\n")
    site.hook(web, "life.sh", {"onStartup": 1})
    binding = {
        "name": "switch",
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "nameSelector": {"matchNames": ["switch"]},
        "namespace": {"nameSelector": {"matchNames": [site.namespace]}},
        "executeHookOnSynchronization": False,
        "jqFilter": ".data.web",
    }
    site.hook(
        site.global_hooks,
        "switch.sh",
        {"kubernetes": [binding]},
        """
        flag="$(jq -c '.[0].filterResult | fromjson' "$BINDING_CONTEXT_PATH")"
        echo '[{"op": "add", "path": "/webEnabled", "value": '$flag'}]' > "$VALUES_JSON_PATCH_PATH"
        """,
    )
    site.hook(
        site.global_hooks,
        "after.sh",
        {"afterAll": 1},
        """
        echo '[{"op": "add", "path": "/lateEnabled", "value": true}]' > "$VALUES_JSON_PATCH_PATH"
        """,
    )
    operator = site.start().wait_ready().wait_idle()
    operator.wait_until(lambda: site.deployed() == {"web": 1, "late": 1}, "afterAll switched one on")
    operator.wait_idle()
    assert site.labels().count("after.sh afterAll") == 2, "and then there was nothing left to change"
    site.create("configmap", "switch", {"data": {"web": "false"}})
    operator.wait_until(lambda: site.deployed() == {"late": 1}, "the event switched it off")
    site.config(webEnabled="true")
    operator.wait_until(lambda: site.deployed() == {"late": 1, "web": 1}, "the ConfigMap has the last word")
    operator.wait_idle()
    assert site.labels().count("life.sh onStartup") == 2
    operator.stop()


@pytest.mark.slow
def test_a_module_directory_that_is_gone_fails_its_module_until_it_is_back(site: operator_site.Site) -> None:
    site.values("global: {size: 1}")
    web = module(site, "010-web")
    module(site, "020-api")
    site.hook(web, "run.sh", {"beforeHelm": 1})
    operator = site.start().wait_ready()
    kept = web.rename(site.root / "elsewhere")
    site.config(web="color: red")
    operator.wait_metric(1, "module_run_errors_total", module="web")
    site.config(api="color: red")
    wait_data(operator, site, "api", color="red", size="1")
    assert site.data("web") == {"color": "green", "size": "1"}
    assert "Traceback" not in operator.log
    kept.rename(web)
    wait_data(operator, site, "web", color="red", size="1")
    # Without its directory a module can still be removed, and at the next start its release is purged.
    shutil.rmtree(web)
    operator.stop()
    second = site.start().wait_ready()
    second.wait_until(lambda: set(site.revisions()) == {"api"}, "its release is purged")
    second.stop()


@pytest.mark.slow
def test_a_first_run_that_fails_after_helm_is_repeated_from_its_startup_and_others_from_what_failed(
    site: operator_site.Site,
) -> None:
    site.values("global: {size: 1}")
    web = module(site, "010-web")
    once = "[[ -e {file} ]] || {{ touch {file}; exit 1; }}"
    site.hook(web, "a.sh", {"onStartup": 1, "beforeHelm": 1})
    site.hook(web, "b.sh", {"afterHelm": 1}, once.format(file=site.root / "once"))
    operator = site.start().wait_ready()
    first = ["a.sh onStartup", "a.sh beforeHelm", "b.sh afterHelm"]
    assert site.labels() == first * 2
    (site.root / "once").unlink()
    site.config(web="color: red")
    operator.wait_until(lambda: len(site.labels()) == 9, "the second run and what of it had to be repeated")
    operator.wait_idle()
    assert site.labels()[6:] == ["a.sh beforeHelm", "b.sh afterHelm", "b.sh afterHelm"]
    assert site.revisions() == {"web": 2}
    operator.stop()


@pytest.mark.slow
def test_what_a_hook_writes_after_its_module_was_removed_has_no_effect(site: operator_site.Site) -> None:
    site.values("global: {size: 1}")
    web = module(site, "010-web")
    gate = site.root / "gate"
    note = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "late", "namespace": site.namespace},
    }
    binding = {
        "name": "switch",
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "queue": "slow",
        "nameSelector": {"matchNames": ["switch"]},
        "namespace": {"nameSelector": {"matchNames": [site.namespace]}},
        "executeHookOnSynchronization": False,
    }
    site.hook(
        web,
        "slow.sh",
        {"kubernetes": [binding]},
        f"""
        while [[ ! -e {gate} ]]; do sleep 0.05; done
        echo '{{"op": "add", "path": "/web/color", "value": "late"}}' > "$VALUES_JSON_PATCH_PATH"
        echo '{{"op": "add", "path": "/web/late", "value": 1}}' > "$CONFIG_VALUES_JSON_PATCH_PATH"
        echo '{json.dumps({"operation": "CreateOrUpdate", "object": note})}' > "$KUBERNETES_PATCH_PATH"
        """,
    )
    operator = site.start().wait_ready()
    site.create("configmap", "switch")
    operator.wait_until(lambda: site.labels() == ["slow.sh switch"], "the hook runs")
    site.config(webEnabled="false")
    operator.wait_until(lambda: site.revisions() == {}, "the module is removed")
    operator.wait_until(lambda: "CONVERGE_DONE" in operator.get("/status/converge").text, "and settled")
    # A removal goes on beside the converge; enabled before its end, the module would be taken back.
    operator.wait_until(lambda: "REMOVALS" not in operator.get("/status/converge").text, "to its end")
    site.config(webEnabled="true")
    wait_data(operator, site, "web", color="green", size="1")
    gate.touch()
    operator.wait_idle()
    site.config(web="other: 1")
    operator.wait_metric(1, "helm_upgrades_skipped_total", module="web", by="manifest")
    assert site.data("web") == {"color": "green", "size": "1"}
    assert site.data("late") is None
    assert (site.data(operator_site.CONFIG_MAP) or {})["web"] == "other: 1"
    assert operator.metrics().total("module_hook_run_errors_total", hook="slow.sh") == 0
    operator.stop()


@pytest.mark.slow
def test_what_is_mended_or_removed_on_disk_does_not_keep_the_first_converge_from_its_end(
    site: operator_site.Site,
) -> None:
    site.values("global: {size: 1}")
    bad = [module(site, f"010-{name}") for name in ("bad", "worse")]
    for each in bad:
        site.hook(each, "fail.sh", {"beforeHelm": 1}, "exit 1")
    web = module(site, "010-web")
    site.hook(web, "web.sh", {"beforeHelm": 1})
    module(site, "020-late")
    site.hook(site.global_hooks, "all.sh", {"afterAll": 1})
    operator = site.start(WATCH_MODULES="yes")
    for name in ("bad", "worse"):
        operator.wait_metric(1, "module_run_errors_total", module=name)
    site.hook(bad[0], "fail.sh", {"beforeHelm": 1})
    operator.wait_until(lambda: site.data("bad"), "one is mended")
    assert operator.get("/readyz").status == 503
    shutil.rmtree(bad[1])
    site.hook(web, "more.sh", {"onStartup": 1})
    operator.wait_ready().wait_idle()
    assert set(site.revisions()) == {"bad", "web", "late"}
    assert {"all.sh afterAll", "more.sh onStartup"} <= set(site.labels())
    operator.stop()
