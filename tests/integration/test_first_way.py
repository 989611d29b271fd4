"""The first way of the operator: from an empty namespace to installed modules."""

from collections.abc import Callable

import pytest

from tests.integration import operator_site

pytestmark = pytest.mark.integration

PATCH_VALUES = "cat <<<'{patch}' > \"$VALUES_JSON_PATCH_PATH\""


def bindings_of(site: operator_site.Site, hook: str) -> list[str]:
    return [run.contexts[0]["binding"] for run in site.runs() if run.hook == hook]


def test_an_enabled_module_is_installed_and_probes_and_metrics_tell(site: operator_site.Site) -> None:
    site.values("webEnabled: true\ncronEnabled: true")
    site.hook(site.module("010-web", {"color": "green"}), "one.sh", {"beforeHelm": 1})
    site.hook(site.module("020-cron"), "all.sh", {"onStartup": 1, "beforeHelm": 1, "afterHelm": 1})
    site.module("030-idle", {"color": "grey"})
    operator = site.start()
    operator.wait_until(lambda: operator.get("/healthz").status == 200, "it is alive")
    operator.wait_ready()
    assert site.data("web") == {"color": "green"}
    assert site.revisions() == {"web": 1}
    assert bindings_of(site, "all.sh") == ["onStartup", "beforeHelm", "afterHelm"], "also without a chart"
    assert "STARTUP_CONVERGE_DONE" in operator.get("/status/converge").text
    metrics = operator.metrics()
    assert (
        metrics.total("module_hook_run_success_total", module="web", hook="one.sh", binding="beforeHelm") == 1
    )
    assert metrics.total("module_run_seconds_count", module="web") == 1
    assert metrics.total("helm_operation_seconds_count", module="web", operation="upgrade") == 1
    assert metrics.total("helm_operation_seconds_count", module="cron") == 0
    assert metrics.total("convergence_total", activation="onStartup") == 1
    assert metrics.total("tasks_queue_length", queue="main") == 0
    assert metrics.total("binding_count", module="web", hook="one.sh") == 1


Spelling = Callable[[dict[str, str]], tuple[list[str], dict[str, str]]]
"""Splits a whole environment into arguments and what is left of the environment."""


def flags(environment: dict[str, str]) -> tuple[list[str], dict[str, str]]:
    spelled = {
        "--namespace": environment.pop("ADDON_OPERATOR_NAMESPACE"),
        "--modules-dir": environment.pop("MODULES_DIR"),
        "--global-hooks-dir": environment.pop("GLOBAL_HOOKS_DIR"),
        "--kube-config": environment.pop("KUBE_CONFIG"),
        "--tmp-dir": environment.pop("ADDON_OPERATOR_TMP_DIR"),
        "--listen-address": environment.pop("ADDON_OPERATOR_LISTEN_ADDRESS"),
        "--config-map": "other",
    }
    return [word for pair in spelled.items() for word in pair], environment


def prefixed(environment: dict[str, str]) -> tuple[list[str], dict[str, str]]:
    """Directories are relative to the working directory here."""
    plain = ("MODULES_DIR", "GLOBAL_HOOKS_DIR", "KUBE_CONFIG")
    spelled = {f"ADDON_OPERATOR_{name}": environment.pop(name) for name in plain}
    spelled |= {"ADDON_OPERATOR_MODULES_DIR": "modules", "ADDON_OPERATOR_GLOBAL_HOOKS_DIR": "global-hooks"}
    spelled |= {"ADDON_OPERATOR_CONFIG_MAP": "other", "ADDON_OPERATOR_TMP_DIR": "tmp"}
    return [], environment | spelled


def unprefixed(environment: dict[str, str]) -> tuple[list[str], dict[str, str]]:
    return [], {name.removeprefix("ADDON_OPERATOR_"): text for name, text in environment.items()} | {
        "CONFIG_MAP": "other"
    }


@pytest.mark.parametrize(
    "spell",
    [flags, pytest.param(prefixed, marks=pytest.mark.slow), pytest.param(unprefixed, marks=pytest.mark.slow)],
)
def test_settings_come_from_flags_and_from_both_spellings_of_variables(
    site: operator_site.Site, spell: Spelling
) -> None:
    site.hook(site.module("010-web", {"color": "{{ .Values.web.color }}"}), "one.sh", {"onStartup": 1})
    site.hook(site.global_hooks, "all.sh", {"beforeAll": 1})
    site.create("configmap", "other", {"data": {"webEnabled": "true", "web": "color: red"}})
    arguments, environment = spell(site.environment())
    site.start_with(tuple(arguments), environment).wait_ready()
    assert site.data("web") == {"color": "red"}
    assert site.labels() == ["all.sh beforeAll", "one.sh onStartup"]


def test_values_of_all_four_sources_reach_chart_and_hooks(site: operator_site.Site) -> None:
    site.values(
        """
        global: {domain: example.org}
        web: {a: common, b: common, c: common, d: common}
        webEnabled: true
        """
    )
    web = site.module(
        "010-web",
        {key: f"{{{{ .Values.web.{key} }}}}-{{{{ .Values.global.domain }}}}" for key in "abcd"},
        values="web: {b: module, c: module, d: module}",
    )
    patch = '{"op": "add", "path": "/web/d", "value": "hook"}'
    site.hook(web, "patch.sh", {"onStartup": 1}, PATCH_VALUES.format(patch=patch))
    site.hook(web, "look.sh", {"beforeHelm": 1})
    site.config(web="c: config\nd: config\n")
    site.start().wait_ready()
    expected = {"a": "common", "b": "module", "c": "config", "d": "hook"}
    assert site.data("web") == {key: f"{value}-example.org" for key, value in expected.items()}
    seen = site.runs()[-1]
    assert seen.hook == "look.sh"
    assert seen.values["web"] == expected
    assert seen.values["global"]["domain"] == "example.org"
    assert seen.config["web"] == {"c": "config", "d": "config"}


def test_hooks_run_in_their_order_with_their_contexts(site: operator_site.Site) -> None:
    site.values("webEnabled: true\nlateEnabled: true")
    site.hook(site.global_hooks, "b.sh", {"onStartup": 1, "beforeAll": 1, "afterAll": 2})
    site.hook(site.global_hooks, "a.sh", {"onStartup": 1, "beforeAll": 20, "afterAll": 1})
    web = site.module("010-web", {"color": "green"})
    site.hook(web, "c.sh", {"onStartup": 1, "beforeHelm": 10, "afterHelm": 1})
    site.hook(web, "d.sh", {"beforeHelm": 5, "afterHelm": 2})
    site.hook(site.module("020-late"), "e.sh", {"onStartup": 1})
    site.start().wait_ready()
    assert site.labels() == [
        "a.sh onStartup", "b.sh onStartup",
        "b.sh beforeAll", "a.sh beforeAll",
        "c.sh onStartup",
        "d.sh beforeHelm", "c.sh beforeHelm",
        "c.sh afterHelm", "d.sh afterHelm",
        "e.sh onStartup",
        "a.sh afterAll", "b.sh afterAll",
    ]  # fmt: skip
    startup = [{"binding": "onStartup"}]
    for run in site.runs():
        binding = run.contexts[0]["binding"]
        assert run.contexts == (
            startup if binding == "onStartup" else [{"binding": binding, "snapshots": {}}]
        )


def test_values_changed_after_helm_run_the_module_again_without_its_startup(site: operator_site.Site) -> None:
    site.values("webEnabled: true\nweb: {address: none}")
    web = site.module("010-web", {"address": "{{ .Values.web.address }}"})
    patch = '{"op": "add", "path": "/web/address", "value": "10.0.0.1"}'
    site.hook(web, "learn.sh", {"onStartup": 1, "afterHelm": 1}, f"""
        if grep -q afterHelm "$BINDING_CONTEXT_PATH"; then {PATCH_VALUES.format(patch=patch)}; fi
    """)  # fmt: skip
    site.start().wait_ready()
    assert bindings_of(site, "learn.sh") == ["onStartup", "afterHelm", "afterHelm"]
    assert site.data("web") == {"address": "10.0.0.1"}
    assert site.revisions() == {"web": 2}


def test_global_values_changed_after_all_converge_again(site: operator_site.Site) -> None:
    site.values("webEnabled: true\nglobal: {ready: 0}")
    web = site.module("010-web", {"ready": "{{ .Values.global.ready | quote }}"})
    site.hook(web, "module.sh", {"onStartup": 1})
    patch = '{"op": "add", "path": "/global/ready", "value": 1}'
    site.hook(site.global_hooks, "all.sh", {"beforeAll": 1, "afterAll": 1}, f"""
        if grep -q afterAll "$BINDING_CONTEXT_PATH"; then {PATCH_VALUES.format(patch=patch)}; fi
    """)  # fmt: skip
    operator = site.start().wait_ready()
    operator.wait_until(lambda: site.data("web") == {"ready": "1"}, "the second converge is through")
    operator.wait_idle()
    assert bindings_of(site, "all.sh") == ["beforeAll", "afterAll", "beforeAll", "afterAll"]
    assert bindings_of(site, "module.sh") == ["onStartup"]


def test_an_enabled_script_decides_by_the_modules_before_it(site: operator_site.Site) -> None:
    site.values("webEnabled: true\ndashboardEnabled: true")
    site.module("010-web", {"color": "green"})
    site.module("020-dashboard", {"color": "blue"}, enabled="""
        if grep -q '"enabledModules": *\\["web"\\]' "$VALUES_PATH"; then answer=true; else answer=false; fi
        echo "$answer" > "$MODULE_ENABLED_RESULT"
    """)  # fmt: skip
    operator = site.start().wait_ready()
    assert site.revisions() == {"web": 1, "dashboard": 1}
    site.config(webEnabled="false")
    operator.wait_until(lambda: site.revisions() == {}, "both are uninstalled")
    site.config(webEnabled="true")
    operator.wait_until(lambda: site.deployed() == {"web": 1, "dashboard": 1}, "both are back")


def test_module_hooks_and_charts_see_all_enabled_modules_also_those_that_a_global_hook_switched_on(
    site: operator_site.Site,
) -> None:
    site.values("webEnabled: true")
    patch = '{"op": "add", "path": "/apiEnabled", "value": true}'
    site.hook(site.global_hooks, "decide.sh", {"beforeAll": 1}, PATCH_VALUES.format(patch=patch))
    web = site.module("010-web", {"modules": "{{ .Values.global.enabledModules | toJson | quote }}"})
    site.module("020-api", {"shared": "{{ .Values.global | toJson | quote }}"})
    site.module("030-off")
    site.hook(web, "look.sh", {"beforeHelm": 1})
    site.start().wait_ready()
    assert site.runs()[-1].values["global"]["enabledModules"] == ["web", "api"]
    assert site.data("web") == {"modules": '["web","api"]'}
    assert site.data("api") == {"shared": "{}"}


def test_a_failing_hook_is_retried_while_other_modules_of_its_order_go_on(site: operator_site.Site) -> None:
    site.first_retry = operator_site.SOON
    site.values("webEnabled: true\napiEnabled: true\nlateEnabled: true")
    web = site.module("010-web", {"color": "green"})
    site.module("010-api", {"color": "green"})
    site.module("020-late", {"color": "green"})
    site.hook(web, "flaky.sh", {"onStartup": 1})
    site.hook(
        web,
        "broken.sh",
        {"beforeHelm": 1},
        f'[[ -e {site.root}/repaired ]] || {{ echo "no disk" >&2; exit 3; }}',
    )
    operator = site.start()
    operator.wait_metric(1, "module_run_errors_total", module="web")
    operator.wait_until(lambda: site.deployed() == {"api": 1}, "the other module is installed")
    ready = operator.get("/readyz")
    assert ready.status == 503
    assert "web" in ready.text
    operator.wait_logged("web", "no disk")
    (site.root / "repaired").touch()
    operator.wait_ready()
    assert site.revisions() == {"api": 1, "web": 1, "late": 1}
    assert bindings_of(site, "flaky.sh") == ["onStartup"]
    assert operator.metrics().total("module_hook_run_errors_total", module="web", hook="broken.sh") >= 1


def test_modules_of_one_order_run_side_by_side(site: operator_site.Site) -> None:
    site.values("webEnabled: true\napiEnabled: true")
    for name, other in (("web", "api"), ("api", "web")):
        site.hook(site.module(f"010-{name}"), f"{name}.sh", {"onStartup": 1}, f"""
            touch {site.root}/{name}-began
            for _ in {{1..100}}; do [[ -e {site.root}/{other}-began ]] && exit 0; sleep 0.1; done
            exit 1
        """)  # fmt: skip
    site.start().wait_ready()
    assert sorted(site.labels()) == ["api.sh onStartup", "web.sh onStartup"]


def test_a_failing_module_can_be_set_not_to_hold_up_higher_orders(site: operator_site.Site) -> None:
    site.values("webEnabled: true\nlateEnabled: true")
    site.hook(site.module("010-web", {"color": "green"}), "broken.sh", {"beforeHelm": 1}, "exit 1")
    site.module("020-late", {"color": "green"})
    site.start(CONVERGE_ON_FAILURE="continue").wait_ready()
    assert site.revisions() == {"late": 1}


def test_a_patch_of_another_modules_values_is_refused_whole(site: operator_site.Site) -> None:
    site.values("webEnabled: true\napiEnabled: true\nweb: {color: green}\napi: {color: green}")
    web = site.module("010-web", {"color": "{{ .Values.web.color }}"})
    site.module("010-api", {"color": "{{ .Values.api.color }}"})
    own, foreign = (f'{{"op": "add", "path": "/{key}/color", "value": "red"}}' for key in ("web", "api"))
    site.hook(web, "greedy.sh", {"beforeHelm": 1}, PATCH_VALUES.format(patch=f"[{own}, {foreign}]"))
    operator = site.start()
    operator.wait_metric(1, "module_hook_run_errors_total", module="web", hook="greedy.sh")
    operator.wait_logged("greedy.sh", "/api/color")
    site.hook(web, "greedy.sh", {"beforeHelm": 1})
    site.config(web="note: an edit ends the wait for the next try")
    operator.wait_ready()
    assert site.data("web") == {"color": "green"}
    assert site.data("api") == {"color": "green"}
