"""The documented metrics of a real run: names, labels, types, and series that go away."""

import pytest
from prometheus_client import parser

from addon_operator.devcluster import handle
from tests.integration import admitting, operator_process, operator_site

pytestmark = pytest.mark.integration

RUN = {"hook", "binding", "activation", "queue"}
BINDING = {"module", "hook", "binding", "queue"}

# "Addon-operator metrics" of the documents of the Go operator: name, labels, type.
DOCUMENTED = [
    ("binding_count", {"module", "hook"}, "gauge"),
    ("config_values_errors_total", set(), "counter"),
    *[
        (f"{owner}_hook_run_{name}", RUN | extra, type_)
        for owner, extra in (("global", set()), ("module", {"module"}))
        for name, type_ in (
            ("seconds", "histogram"),
            ("errors_total", "counter"),
            ("allowed_errors_total", "counter"),
            ("success_total", "counter"),
            ("sys_cpu_seconds", "histogram"),
            ("user_cpu_seconds", "histogram"),
            ("max_rss_bytes", "gauge"),
        )
    ],
    ("module_discover_errors_total", set(), "counter"),
    ("module_run_errors_total", {"module"}, "counter"),
    ("module_delete_errors_total", {"module"}, "counter"),
    ("module_run_seconds", {"module"}, "histogram"),
    ("module_helm_seconds", {"module", "activation"}, "histogram"),
    ("helm_operation_seconds", {"module", "activation", "operation"}, "histogram"),
    ("convergence_seconds", {"activation"}, "counter"),
    ("convergence_total", {"activation"}, "counter"),
    ("tasks_queue_length", {"queue"}, "gauge"),
    ("task_wait_in_queue_seconds_total", BINDING, "counter"),
    ("live_ticks", set(), "counter"),
    ("kube_jq_filter_duration_seconds", BINDING | {"kind"}, "histogram"),
    ("kube_event_duration_seconds", BINDING | {"kind"}, "histogram"),
    ("kube_snapshot_objects", BINDING, "gauge"),
    ("kube_snapshot_bytes", BINDING, "gauge"),
    ("kubernetes_client_request_result_total", {"code", "method"}, "counter"),
    ("kubernetes_client_request_latency_seconds", {"verb", "url"}, "histogram"),
    ("tasks_queue_action_duration_seconds", {"queue_name", "queue_action"}, "histogram"),
]
# What the contract of this operator adds.
ADDED = [
    ("tasks_queue_head_age_seconds", {"queue"}, "gauge"),
    ("tasks_queue_retries", {"queue"}, "gauge"),
    ("module_info", {"module", "state"}, "gauge"),
    ("module_enabled", {"module"}, "gauge"),
    ("helm_upgrades_skipped_total", {"module", "by"}, "counter"),
    ("resources_healed_total", {"module"}, "counter"),
    ("hook_timeouts_total", set(), "counter"),
    ("podpreset_admissions_total", {"namespace", "result"}, "counter"),
    ("podpreset_admission_seconds", set(), "histogram"),
    ("expansion_unresolved_total", set(), "counter"),
    ("leader", set(), "gauge"),
    ("webhook_certificate_expiry_seconds", set(), "gauge"),
    ("watch_errors_total", {"kind", "reason"}, "counter"),
    ("event_loop_lag_seconds", set(), "histogram"),
]
NEVER_IN_A_GOOD_RUN = {"watch_errors_total", "podpreset_admissions_total"}

Series = dict[str, list[frozenset[str]]]


def prepare(site: operator_site.Site) -> None:
    """Hooks that succeed, hooks that fail and hooks that may fail, with bindings of all sorts."""
    config_maps = {
        "name": "maps",
        "kind": "ConfigMap",
        "jqFilter": ".metadata.name",
        "queue": "slow",
        "namespace": {"nameSelector": {"matchNames": [site.namespace]}},
    }
    tick = {"name": "tick", "crontab": "* * * * * *"}
    web = site.module("010-web", {"a": "b"}, values="webEnabled: true\n")
    for owner, name, step in ((site.global_hooks, "all.sh", "beforeAll"), (web, "own.sh", "afterHelm")):
        site.hook(owner, name, {step: 1, "kubernetes": [config_maps]})
        ticks = [
            {**tick, "queue": f"fails-{name}"},
            {**tick, "name": "may", "queue": "may", "allowFailure": True},
        ]
        site.hook(owner, f"fails-{name}", {"schedule": ticks}, "exit 1")


def scrape(operator: operator_process.OperatorProcess) -> tuple[dict[str, str], Series]:
    """Types of all metrics, and the label names of their series; both without the prefix."""
    text = operator.get("/metrics").text
    types = dict(line.split()[2:4] for line in text.splitlines() if line.startswith("# TYPE "))
    series: Series = {}
    for family in parser.text_string_to_metric_families(text):
        for sample in family.samples:
            names = frozenset(sample.labels) - {"le"}
            series.setdefault(sample.name.removeprefix("addon_operator_"), []).append(names)
    return {name.removeprefix("addon_operator_"): type_ for name, type_ in types.items()}, series


def missing(operator: operator_process.OperatorProcess) -> list[str]:
    """Documented metrics without a series yet."""
    _, series = scrape(operator)
    return [name for name, _, _ in (*DOCUMENTED, *ADDED) if not _found(series, name)]


def _found(series: Series, name: str) -> list[frozenset[str]]:
    # The parser writes every counter with _total.
    return series.get(name) or series.get(f"{name}_count") or series.get(f"{name}_total") or []


def hooks_metrics(operator: operator_process.OperatorProcess) -> set[str]:
    """Metrics that tell of hooks and bindings of the module ``web``."""
    of_web = {name for name, labels in operator.metrics().series if ("module", "web") in labels}
    return {name for name in of_web if "hook_run" in name or "kube_" in name or "binding" in name}


def test_a_real_run_has_every_documented_metric_with_its_labels(
    site: operator_site.Site, devcluster: handle.DevCluster
) -> None:
    prepare(site)
    with admitting.admitting(site, devcluster) as operator:
        site.config(web="note: an event for the bindings")
        operator.wait_until(
            lambda: set(missing(operator)) <= NEVER_IN_A_GOOD_RUN, "all metrics have series", deadline=60
        )
        types, series = scrape(operator)
        for name, labels, type_ in (*DOCUMENTED, *ADDED):
            assert types[name] == type_, name
            assert set(_found(series, name)) <= {frozenset(labels)}, name
        metrics = operator.metrics()
        assert metrics.total("module_enabled", module="web") == 1
        assert metrics.total("tasks_queue_length", queue="slow") == 0
        assert metrics.total("kube_snapshot_objects", module="web", binding="maps") >= 1
        assert metrics.total("kube_snapshot_bytes", module="web", binding="maps") >= 20

        site.config(webEnabled="false")
        operator.wait_until(
            lambda: operator.metrics().total("module_info", module="web", state="Disabled"), "web is disabled"
        )
        operator.wait_until(lambda: not hooks_metrics(operator), "the series of the module's hooks are gone")
        assert operator.metrics().total("module_run_seconds_count", module="web") >= 1
        assert operator.metrics().total("module_enabled", module="web") == 0
        operator.stop()


@pytest.mark.slow
def test_series_of_a_queue_go_with_its_last_binding(site: operator_site.Site) -> None:
    web = site.module("010-web", values="webEnabled: true\n")
    site.hook(web, "tick.sh", {"schedule": [{"crontab": "* * * * * *", "queue": "own"}]})
    operator = site.start("--queue-actions-metrics=no").wait_ready()
    operator.wait_metric(1, "module_hook_run_success_total", queue="own")
    assert ("queue", "own") in {pair for _, labels in operator.metrics().series for pair in labels}
    site.config(webEnabled="false")
    operator.wait_until(
        lambda: ("queue", "own") not in {pair for _, labels in operator.metrics().series for pair in labels},
        "the series of the queue are gone",
    )
    assert not [name for name in operator.metrics().names() if "queue_action" in name]
    operator.stop()
