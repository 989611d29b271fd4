"""The exposition of metrics: exact names, labels, types, and series that go away."""

import gzip
import math

import pytest
from prometheus_client import Counter, Gauge, Histogram, exposition
from prometheus_client.openmetrics import parser as openmetrics

from addon_operator.kube import paths
from addon_operator.telemetry import heartbeat, metrics, series

HOOK = {"hook": "a.sh", "binding": "onStartup", "activation": "OnStartup", "queue": "main"}
MODULE_HOOK = {"module": "web", **HOOK}
BUCKETS = [0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50, 100, 200, 500, math.inf]


@pytest.fixture
def meters() -> metrics.Metrics:
    return metrics.Metrics()


@pytest.fixture(scope="module")
def all_samples() -> dict[str, list[dict[str, str]]]:
    """Labels of all series of an operator in which everything has happened."""
    meters = metrics.Metrics()
    touch_everything(meters)
    return samples(meters)


def samples(meters: metrics.Metrics) -> dict[str, list[dict[str, str]]]:
    """Labels of all series by name."""
    found: dict[str, list[dict[str, str]]] = {}
    for family in meters.registry.collect():
        for sample in family.samples:
            found.setdefault(sample.name, []).append(sample.labels)
    return found


def value(meters: metrics.Metrics, line: str) -> float:
    """Value of the series that is written exactly so."""
    lines = meters.render().decode().splitlines()
    (found,) = [text for text in lines if text.startswith(line + " ")]
    return float(found.rpartition(" ")[2])


def touch_everything(meters: metrics.Metrics) -> None:
    """Make a series of each metric: of the hook ``a.sh`` of the module ``web``, in the queue ``main``."""
    values = MODULE_HOOK | {"queue_name": "main", "state": "Ready"}
    for row, metric in meters.rows.items():
        series_ = metric.labels(*(values.get(name, "x") for name in row.labels)) if row.labels else metric
        assert isinstance(series_, Histogram | Counter | Gauge)
        series_.observe(1) if isinstance(series_, Histogram) else series_.inc()
    meters.bindings.count.labels(module="", hook="a.sh").set(2)


def test_without_an_admission_server_nothing_is_about_to_expire(meters: metrics.Metrics) -> None:
    text = meters.render().decode()
    assert "addon_operator_webhook_certificate_expiry_seconds NaN\n" in text


def test_the_prefix_can_be_another_or_none() -> None:
    assert "dev_cluster_live_ticks" in samples(metrics.Metrics("dev_cluster_"))
    assert "live_ticks" in samples(metrics.Metrics(""))


@pytest.mark.parametrize("name", ["live_ticks", "convergence_seconds", "convergence_total"])
def test_a_counter_is_declared_as_one_under_its_documented_name(meters: metrics.Metrics, name: str) -> None:
    touch_everything(meters)
    assert f"# TYPE addon_operator_{name} counter\n" in meters.render().decode()


@pytest.mark.parametrize(
    "accept", ["", "application/openmetrics-text; version=1.0.0"], ids=["text", "openmetrics"]
)
def test_no_times_of_creation_are_exposed(meters: metrics.Metrics, accept: str) -> None:
    touch_everything(meters)
    assert b"_created" not in meters.render(metrics.Form.wanted(accept))


def test_a_metric_whose_own_name_ends_like_a_time_of_creation_is_kept() -> None:
    registry = series.Registry()
    series.PlainCounter("pods_created", "x", registry=registry)
    (metric,) = registry.collect()
    assert [sample.name for sample in metric.samples] == ["pods_created"]


def test_openmetrics_is_given_to_those_who_ask_for_it(meters: metrics.Metrics) -> None:
    touch_everything(meters)
    form = metrics.Form.wanted("application/openmetrics-text; version=1.0.0; charset=utf-8")
    assert form.content_type.startswith("application/openmetrics-text; version=1.0.0")
    text = meters.render(form).decode()
    parsed = openmetrics.text_string_to_metric_families(text)  # type: ignore[no-untyped-call]  # the library has no types here
    families = {family.name: family.type for family in parsed}
    assert families["addon_operator_convergence_seconds"] == "unknown"
    assert families["addon_operator_convergence"] == "counter"


def test_the_document_is_compressed_for_those_who_accept_it(meters: metrics.Metrics) -> None:
    form = metrics.Form.wanted("", "gzip, deflate")
    assert form.gzipped
    assert b"addon_operator_live_ticks" in gzip.decompress(meters.render(form))
    assert b"addon_operator_live_ticks" in meters.render()


@pytest.mark.parametrize(
    "name",
    [
        "module_run_seconds",
        "module_helm_seconds",
        "global_hook_run_seconds",
        "module_hook_run_seconds",
    ],
)
def test_seconds_have_the_buckets_of_the_contract(
    all_samples: dict[str, list[dict[str, str]]], name: str
) -> None:
    assert [float(labels["le"]) for labels in all_samples[f"addon_operator_{name}_bucket"]] == BUCKETS


def test_counters_without_labels_are_there_from_the_beginning(meters: metrics.Metrics) -> None:
    names = samples(meters)
    for name in (
        "live_ticks",
        "config_values_errors_total",
        "config_values_invalid",
        "module_discover_errors_total",
        "hook_timeouts_total",
    ):
        assert f"addon_operator_{name}" in names


def test_metrics_of_the_process_have_their_usual_names(meters: metrics.Metrics) -> None:
    assert {"process_cpu_seconds_total", "process_resident_memory_bytes", "python_info"} <= set(
        samples(meters)
    )


def test_a_plain_counter_counts_each_series(meters: metrics.Metrics) -> None:
    meters.converges.convergence_seconds.labels("OnStartup").inc(1.5)
    meters.converges.convergence_seconds.labels("OnStartup").inc(2)
    meters.converges.convergence_seconds.labels("Schedule").inc()
    assert value(meters, 'addon_operator_convergence_seconds{activation="OnStartup"}') == 3.5
    assert value(meters, 'addon_operator_convergence_seconds{activation="Schedule"}') == 1


def test_a_module_has_one_state(meters: metrics.Metrics) -> None:
    meters.module_word(meters.modules.info, "web", "Running")
    meters.module_word(meters.modules.info, "db", "Running")
    meters.module_word(meters.modules.info, "web", "Ready")
    states = samples(meters)["addon_operator_module_info"]
    assert sorted((labels["module"], labels["state"]) for labels in states) == [
        ("db", "Running"),
        ("web", "Ready"),
    ]


def test_a_module_that_went_away_leaves_no_series(meters: metrics.Metrics) -> None:
    touch_everything(meters)
    meters.modules.run_errors_total.labels(module="db").inc()
    meters.forget_module("web")
    left = [labels for found in samples(meters).values() for labels in found if labels.get("module") == "web"]
    assert left == []
    assert samples(meters)["addon_operator_module_run_errors_total"] == [{"module": "db"}]
    assert samples(meters)["addon_operator_global_hook_run_success_total"] == [HOOK]


def test_a_global_hook_that_went_away_leaves_no_series(meters: metrics.Metrics) -> None:
    touch_everything(meters)
    meters.forget_hook("a.sh")
    found = samples(meters)
    assert "addon_operator_global_hook_run_success_total" not in found
    assert found["addon_operator_binding_count"] == [{"module": "web", "hook": "a.sh"}]
    assert found["addon_operator_module_hook_run_success_total"] == [MODULE_HOOK]


def test_a_module_hook_that_went_away_leaves_no_series(meters: metrics.Metrics) -> None:
    touch_everything(meters)
    meters.forget_hook("a.sh", "web")
    found = samples(meters)
    assert "addon_operator_module_hook_run_success_total" not in found
    assert found["addon_operator_binding_count"] == [{"module": "", "hook": "a.sh"}]
    assert found["addon_operator_global_hook_run_success_total"] == [HOOK]


def test_a_module_that_is_disabled_keeps_its_own_series_without_those_of_its_hooks(
    meters: metrics.Metrics,
) -> None:
    touch_everything(meters)
    meters.forget_hooks_of("web")
    of_web = {name for name, found in samples(meters).items() if {"web"} & {x.get("module") for x in found}}
    assert "addon_operator_module_run_errors_total" in of_web
    assert not [name for name in of_web if "hook" in name or "kube_" in name or "binding" in name]


def test_the_counters_of_a_module_are_there_before_anything_happens(meters: metrics.Metrics) -> None:
    meters.module_known("web")
    found = samples(meters)
    for name in (
        "module_run_errors_total",
        "module_delete_errors_total",
        "resources_healed_total",
        "helm_upgrades_skipped_total",
        "module_run_seconds_count",
    ):
        assert {labels["module"] for labels in found[f"addon_operator_{name}"]} == {"web"}


def test_a_queue_that_went_away_leaves_no_series(meters: metrics.Metrics) -> None:
    touch_everything(meters)
    meters.queues.length.labels(queue="other").set(1)
    meters.forget_queue("main")
    found = samples(meters)
    assert found["addon_operator_tasks_queue_length"] == [{"queue": "other"}]
    for name in ("tasks_queue_head_age_seconds", "tasks_queue_retries", "task_wait_in_queue_seconds_total"):
        assert f"addon_operator_{name}" not in found
    assert "addon_operator_tasks_queue_action_duration_seconds_count" not in found


def test_operations_of_queues_are_not_measured_when_switched_off() -> None:
    meters = metrics.Metrics(queue_actions=False)
    meters.queue_action("main", "add", 0.1)
    meters.forget_queue("main")
    assert not [name for name in samples(meters) if "queue_action" in name]


def test_requests_are_counted_by_code_and_timed_by_path_without_names(meters: metrics.Metrics) -> None:
    meters.request_done(paths.target("GET", "/api/v1/namespaces/x/pods/y"), "GET", "200", 0.1)
    assert (
        value(meters, 'addon_operator_kubernetes_client_request_result_total{code="200",method="GET"}') == 1
    )
    (labels,) = samples(meters)["addon_operator_kubernetes_client_request_latency_seconds_count"]
    assert labels == {"verb": "get", "url": "/api/v1/namespaces/{namespace}/pods/{name}"}


class Ended(Exception):  # noqa: N818 - ends an endless loop
    pass


class Late:
    """A clock that is late by a tenth of a second after each pause."""

    def __init__(self, pauses: int) -> None:
        self.now = 0.0
        self.left = pauses

    def monotonic(self) -> float:
        return self.now

    def time(self) -> float:
        return self.now

    async def sleep(self, seconds: float) -> None:
        if self.left == 0:
            raise Ended
        self.left -= 1
        self.now += seconds + 0.1


async def test_a_living_process_ticks_every_ten_seconds(meters: metrics.Metrics) -> None:
    late = Late(pauses=3)
    with pytest.raises(Ended):
        await heartbeat.tick(meters, late.sleep)
    assert value(meters, "addon_operator_live_ticks") == 3
    assert late.now == pytest.approx(30.3)


async def test_a_late_event_loop_is_measured(meters: metrics.Metrics) -> None:
    late = Late(pauses=4)
    with pytest.raises(Ended):
        await heartbeat.watch_lag(meters, late, late.sleep)
    assert value(meters, "addon_operator_event_loop_lag_seconds_count") == 4
    assert value(meters, "addon_operator_event_loop_lag_seconds_sum") == pytest.approx(0.4)


def module_with_a_hook(meters: metrics.Metrics) -> None:
    """All that a module with a chart, and a hook of two bindings, shows after two runs."""
    meters.module_known("web")
    labels = {"module": "web", "hook": "web/hooks/a.py", "binding": "pods", "queue": "main"}
    meters.bindings.event_seconds.labels(**labels, kind="Pod").observe(0.1)
    meters.bindings.jq_filter_seconds.labels(**labels, kind="Pod").observe(0.1)
    for activation in ("OperatorStartup", "ConfigMap"):
        meters.releases.helm_seconds.labels(module="web", activation=activation).observe(1)
        for operation in ("template", "check-upgrade", "upgrade"):
            run = {"module": "web", "activation": activation, "operation": operation}
            meters.releases.helm_operation_seconds.labels(**run).observe(1)
        hooks = meters.module_hooks
        for measured in (hooks.seconds, hooks.user_cpu_seconds, hooks.sys_cpu_seconds):
            measured.labels(**labels, activation=activation).observe(1)


def test_a_module_has_a_bounded_number_of_series(meters: metrics.Metrics) -> None:
    before = meters.render().count(b"\n")
    module_with_a_hook(meters)
    assert meters.render().count(b"\n") - before < 230


def test_a_path_of_requests_has_few_series(meters: metrics.Metrics) -> None:
    before = meters.render().count(b"\n")
    meters.process.request_latency_seconds.labels(verb="get", url="/api/v1/pods").observe(1)
    assert meters.render().count(b"\n") - before < 10


@pytest.mark.parametrize(
    "accept", ["", "application/openmetrics-text; version=1.0.0"], ids=["text", "openmetrics"]
)
def test_the_document_is_the_one_of_the_library_whole(meters: metrics.Metrics, accept: str) -> None:
    touch_everything(meters)
    form = metrics.Form.wanted(accept)
    encode, _ = exposition.choose_encoder(form.content_type)
    whole = encode(meters.registry)
    wanted = whole if accept else meters.registry.declare(whole)
    assert names_of(meters.render(form)) == names_of(wanted)
    assert meters.render(form).endswith(b"# EOF\n") is bool(accept)


def names_of(document: bytes) -> list[bytes]:
    """All lines without values, which differ from render to render."""
    return [line if line.startswith(b"#") else line.rpartition(b" ")[0] for line in document.splitlines()]
