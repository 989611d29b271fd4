"""The first way of the operator: from an empty namespace to installed modules."""

import json
from collections.abc import Callable
from typing import Final

import pytest

from tests.integration import operator_site

pytestmark = pytest.mark.integration

PATCH_VALUES = "cat <<<'{patch}' > \"$VALUES_JSON_PATCH_PATH\""


def bindings_of(site: operator_site.Site, hook: str) -> list[str]:
    return [run.contexts[0]["binding"] for run in site.runs() if run.hook == hook]


def first_modules(site: operator_site.Site) -> None:
    """Values of four sources, hooks of all kinds of modules, and a module that a global hook enables."""
    site.values(
        """
        global: {domain: example.org}
        web: {a: common, b: common, c: common, d: common}
        webEnabled: true
        lateEnabled: true
        """
    )
    enable = PATCH_VALUES.format(patch='{"op": "add", "path": "/apiEnabled", "value": true}')
    site.hook(site.global_hooks, "b.sh", {"onStartup": 1, "beforeAll": 1, "afterAll": 2})
    site.hook(site.global_hooks, "a.sh", {"onStartup": 1, "beforeAll": 20, "afterAll": 1}, f"""
        if grep -q beforeAll "$BINDING_CONTEXT_PATH"; then {enable}; fi
    """)  # fmt: skip
    data = {key: f"{{{{ .Values.web.{key} }}}}-{{{{ .Values.global.domain }}}}" for key in "abcd"}
    data |= {"modules": "{{ .Values.global.enabledModules | toJson | quote }}"}
    web = site.module("010-web", data, values="web: {b: module, c: module, d: module}")
    set_d = PATCH_VALUES.format(patch='{"op": "add", "path": "/web/d", "value": "hook"}')
    site.hook(web, "c.sh", {"onStartup": 1, "beforeHelm": 10, "afterHelm": 1}, f"""
        if grep -q onStartup "$BINDING_CONTEXT_PATH"; then {set_d}; fi
    """)  # fmt: skip
    site.hook(web, "d.sh", {"beforeHelm": 5, "afterHelm": 2})
    site.hook(site.module("020-late"), "e.sh", {"onStartup": 1, "beforeHelm": 1, "afterHelm": 1})
    site.module("030-api", {"shared": "{{ .Values.global | toJson | quote }}"})
    site.module("040-idle", {"color": "grey"})
    site.config(web="c: config\nd: config\n")


ORDER: Final = [
    "a.sh onStartup", "b.sh onStartup",
    "b.sh beforeAll", "a.sh beforeAll",
    "c.sh onStartup",
    "d.sh beforeHelm", "c.sh beforeHelm",
    "c.sh afterHelm", "d.sh afterHelm",
    "e.sh onStartup", "e.sh beforeHelm", "e.sh afterHelm",
    "a.sh afterAll", "b.sh afterAll",
]  # fmt: skip
"""What hooks of :func:`first_modules` run, also those of a module without a chart."""


def test_a_start_installs_what_is_enabled_with_its_hooks_in_order_and_values_of_all_sources(
    site: operator_site.Site,
) -> None:
    first_modules(site)
    operator = site.start()
    operator.wait_until(lambda: operator.get("/healthz").status == 200, "it is alive")
    operator.wait_ready()
    assert site.revisions() == {"web": 1, "api": 1}, "what is enabled and has a chart"

    assert site.labels() == ORDER, "hooks run in their order"
    startup = [{"binding": "onStartup"}]
    for run in site.runs():
        binding = run.contexts[0]["binding"]
        assert run.contexts == (
            startup if binding == "onStartup" else [{"binding": binding, "snapshots": {}}]
        )

    expected = {"a": "common", "b": "module", "c": "config", "d": "hook"}
    enabled = ["web", "late", "api"]
    given = {key: f"{value}-example.org" for key, value in expected.items()}
    assert site.data("web") == {**given, "modules": json.dumps(enabled, separators=(",", ":"))}
    assert site.data("api") == {"shared": '{"domain":"example.org"}'}, "the list is for charts that read it"
    seen = next(run for run in site.runs() if run.label == "d.sh beforeHelm")
    assert seen.values["web"] == expected
    assert seen.values["global"] == {"domain": "example.org", "enabledModules": enabled}
    assert seen.config["web"] == {"c": "config", "d": "config"}

    assert "STARTUP_CONVERGE_DONE" in operator.get("/status/converge").text
    metrics = operator.metrics()
    assert (
        metrics.total("module_hook_run_success_total", module="web", hook="d.sh", binding="beforeHelm") == 1
    )
    assert metrics.total("module_run_seconds_count", module="web") == 1
    assert metrics.total("helm_operation_seconds_count", module="web", operation="upgrade") == 1
    assert metrics.total("helm_operation_seconds_count", module="late") == 0
    assert metrics.total("convergence_total", activation="onStartup") == 1
    assert metrics.total("tasks_queue_length", queue="main") == 0
    assert metrics.total("binding_count", module="web", hook="d.sh") == 2


def test_values_changed_after_helm_run_the_module_again_and_global_ones_after_all_converge_again(
    site: operator_site.Site,
) -> None:
    site.values("webEnabled: true\napiEnabled: true\nglobal: {ready: 0}\nweb: {address: none}")
    for name, other in (("left", "right"), ("right", "left")):
        module = site.module(f"005-{name}", values=f"{name}Enabled: true")
        site.hook(module, f"{name}.sh", {"onStartup": 1}, f"""
            touch {site.root}/{name}-began
            for _ in {{1..100}}; do [[ -e {site.root}/{other}-began ]] && exit 0; sleep 0.1; done
            exit 1
        """)  # fmt: skip
    web = site.module("010-web", {"address": "{{ .Values.web.address }}"})
    patch = '{"op": "add", "path": "/web/address", "value": "10.0.0.1"}'
    site.hook(web, "learn.sh", {"onStartup": 1, "afterHelm": 1}, f"""
        if grep -q afterHelm "$BINDING_CONTEXT_PATH"; then {PATCH_VALUES.format(patch=patch)}; fi
    """)  # fmt: skip
    api = site.module("020-api", {"ready": "{{ .Values.global.ready | quote }}"})
    site.hook(api, "module.sh", {"onStartup": 1})
    patch = '{"op": "add", "path": "/global/ready", "value": 1}'
    site.hook(site.global_hooks, "all.sh", {"beforeAll": 1, "afterAll": 1}, f"""
        if grep -q afterAll "$BINDING_CONTEXT_PATH"; then {PATCH_VALUES.format(patch=patch)}; fi
    """)  # fmt: skip
    operator = site.start().wait_ready()
    operator.wait_until(lambda: site.data("api") == {"ready": "1"}, "the second converge is through")
    operator.wait_idle()
    assert bindings_of(site, "all.sh") == ["beforeAll", "afterAll", "beforeAll", "afterAll"]
    assert bindings_of(site, "module.sh") == ["onStartup"]
    assert bindings_of(site, "learn.sh") == ["onStartup", "afterHelm", "afterHelm", "afterHelm"]
    assert site.data("web") == {"address": "10.0.0.1"}
    assert site.revisions() == {"web": 2, "api": 2}
    for name in ("left", "right"):
        assert bindings_of(site, f"{name}.sh") == ["onStartup"], "modules of one order run side by side"


def test_a_hook_that_fails_or_is_refused_is_tried_again_while_other_modules_of_its_order_go_on(
    site: operator_site.Site,
) -> None:
    site.first_retry = operator_site.SOON
    site.values(
        "webEnabled: true\napiEnabled: true\nlateEnabled: true\ngreedyEnabled: true\napi: {color: green}"
    )
    web = site.module("010-web", {"color": "green"})
    site.module("010-api", {"color": "{{ .Values.api.color }}"})
    greedy = site.module("010-greedy", {"color": '{{ .Values.greedy.color | default "green" }}'})
    site.module("020-late", {"color": "green"})
    site.hook(web, "flaky.sh", {"onStartup": 1})
    site.hook(
        web,
        "broken.sh",
        {"beforeHelm": 1},
        f'[[ -e {site.root}/repaired ]] || {{ echo "no disk" >&2; exit 3; }}',
    )
    own, foreign = (f'{{"op": "add", "path": "/{key}/color", "value": "red"}}' for key in ("greedy", "api"))
    site.hook(greedy, "greedy.sh", {"beforeHelm": 1}, PATCH_VALUES.format(patch=f"[{own}, {foreign}]"))
    operator = site.start()
    operator.wait_metric(1, "module_run_errors_total", module="web")
    operator.wait_metric(1, "module_hook_run_errors_total", module="greedy", hook="greedy.sh")
    operator.wait_until(lambda: site.deployed() == {"api": 1}, "the other module is installed")
    ready = operator.get("/readyz")
    assert ready.status == 503
    assert "web" in ready.text
    operator.wait_logged("web", "no disk")
    operator.wait_logged("greedy.sh", "/api/color")
    (site.root / "repaired").touch()
    site.hook(greedy, "greedy.sh", {"beforeHelm": 1})
    operator.wait_ready()
    assert site.revisions() == {"api": 1, "web": 1, "greedy": 1, "late": 1}
    assert bindings_of(site, "flaky.sh") == ["onStartup"]
    assert operator.metrics().total("module_hook_run_errors_total", module="web", hook="broken.sh") >= 1
    for name in ("greedy", "api"):
        assert site.data(name) == {"color": "green"}, "a patch of another module's values is refused whole"


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
