"""Metrics of hooks: series, groups, clashes, and how they look to Prometheus."""

import json
import tracemalloc
from typing import Any

import pytest
from prometheus_client import parser
from prometheus_client.openmetrics import parser as openmetrics

from addon_operator.hook_contract.outputs import metric_operations
from addon_operator.telemetry import hook_metrics, metrics
from tests.unit import costs


class Bench:
    """The operator's metrics with those of hooks beside them."""

    def __init__(self) -> None:
        self.meters = metrics.Metrics()
        self.hooks = hook_metrics.HookMetrics(self.meters.registry)

    def run(self, hook: str, *operations: dict[str, Any], module: str = "") -> None:
        text = "\n".join(map(json.dumps, operations))
        added = {"hook": hook} | ({"module": module} if module else {})
        plan = self.hooks.plan(metric_operations.parse(text, "METRICS_PATH"), added)
        assert self.hooks.carry_out(plan)

    def lines(self, *names: str) -> list[str]:
        """Lines of the text format about these metrics, sorted."""
        lines = self.meters.render().decode().splitlines()
        words = [line.removeprefix("# TYPE ").removeprefix("# HELP ") for line in lines]
        return sorted(
            line for line, word in zip(lines, words, strict=True) if word.startswith(names or ("hook", "m"))
        )

    def values(self) -> dict[str, float]:
        """All series of hooks by their text."""
        found = [line for line in self.meters.render().decode().splitlines() if "hook=" in line]
        return {line.rpartition(" ")[0]: float(line.rpartition(" ")[2]) for line in found}


@pytest.fixture
def bench() -> Bench:
    return Bench()


def add(name: str, value: float = 1, group: str = "", **labels: str) -> dict[str, Any]:
    return {"name": name, "action": "add", "value": value, "group": group, "labels": labels}


def gauge(name: str, value: float = 1, group: str = "", **labels: str) -> dict[str, Any]:
    return {"name": name, "action": "set", "value": value, "group": group, "labels": labels}


def observe(
    name: str, value: float, buckets: list[float] | None = None, group: str = "", **labels: str
) -> dict[str, Any]:
    given = {} if buckets is None else {"buckets": buckets}
    return {"name": name, "action": "observe", "value": value, "group": group, "labels": labels, **given}


def expire(group: str) -> dict[str, Any]:
    return {"group": group, "action": "expire"}


def test_the_worked_example_of_the_documentation(bench: Bench) -> None:
    bench.run(
        "hook1.sh",
        add("hook_metric", group="hook1", kind="pod"),
        add("hook_metric", group="hook1", kind="replicaset"),
        add("hook_metric", group="hook1", kind="deployment"),
        gauge("hook1_special_metric", 12, group="hook1", label1="value1"),
        gauge("common_metric", 300, group="hook1", source="source3"),
        gauge("common_metric", 100, source="source1"),
    )
    bench.run(
        "hook2.sh",
        add("hook_metric", group="hook2", kind="configmap"),
        add("hook_metric", group="hook2", kind="secret"),
        gauge("hook2_special_metric", 42, group="hook2"),
        gauge("common_metric", 200, source="source2"),
    )
    names = ("hook_metric", "hook1_special", "hook2_special", "common_metric")
    of_hook2 = [
        'hook_metric{hook="hook2.sh",kind="configmap"} 1.0',
        'hook_metric{hook="hook2.sh",kind="secret"} 1.0',
        "# HELP hook2_special_metric hook2_special_metric",
        "# TYPE hook2_special_metric gauge",
        'hook2_special_metric{hook="hook2.sh"} 42.0',
    ]
    without_group = [
        "# HELP common_metric common_metric",
        "# TYPE common_metric gauge",
        'common_metric{hook="hook1.sh",source="source1"} 100.0',
        'common_metric{hook="hook2.sh",source="source2"} 200.0',
    ]
    counter = ["# HELP hook_metric hook_metric", "# TYPE hook_metric counter"]
    assert bench.lines(*names) == sorted(
        [
            *counter,
            'hook_metric{hook="hook1.sh",kind="pod"} 1.0',
            'hook_metric{hook="hook1.sh",kind="replicaset"} 1.0',
            'hook_metric{hook="hook1.sh",kind="deployment"} 1.0',
            "# HELP hook1_special_metric hook1_special_metric",
            "# TYPE hook1_special_metric gauge",
            'hook1_special_metric{hook="hook1.sh",label1="value1"} 12.0',
            'common_metric{hook="hook1.sh",source="source3"} 300.0',
            *of_hook2,
            *without_group,
        ]
    )
    bench.run("hook1.sh", add("hook_metric", group="hook1", kind="pod"))
    counted = 'hook_metric{hook="hook1.sh",kind="pod"} 2.0'
    assert bench.lines(*names) == sorted([*counter, counted, *of_hook2, *without_group])
    bench.run("hook2.sh", expire("hook2"))
    assert bench.lines(*names) == sorted([*counter, counted, *without_group])


def test_series_without_a_group_accumulate_over_runs(bench: Bench) -> None:
    for _ in range(3):
        bench.run("a.sh", add("m", 1.5, kind="pod"), gauge("g", 7), module="web")
    bench.run("a.sh", module="web")
    assert bench.values() == {
        'm{hook="a.sh",kind="pod",module="web"}': 4.5,
        'g{hook="a.sh",module="web"}': 7,
    }


def test_one_batch_may_add_to_a_counter_several_times(bench: Bench) -> None:
    bench.run("a.sh", add("m", group="g"), add("m", 2, group="g"))
    bench.run("a.sh", add("m", group="g"))
    assert bench.values() == {'m{hook="a.sh"}': 4}


def test_a_group_spans_hooks(bench: Bench) -> None:
    bench.run("a.sh", add("m", group="shared"))
    bench.run("b.sh", add("n", group="shared"))
    assert bench.values() == {'n{hook="b.sh"}': 1}


def test_a_batch_that_empties_its_group_first_begins_anew(bench: Bench) -> None:
    bench.run("a.sh", add("m", 5, group="g"), add("other", group="h"))
    bench.run("a.sh", expire("g"), add("m", group="g"))
    assert bench.values() == {'m{hook="a.sh"}': 1, 'other{hook="a.sh"}': 1}


def test_a_group_that_is_emptied_last_stays_empty(bench: Bench) -> None:
    bench.run("a.sh", add("m", group="g"), expire("g"))
    assert bench.values() == {}


def test_an_unknown_group_expires_to_nothing(bench: Bench) -> None:
    bench.run("a.sh", gauge("m", 1))
    bench.run("a.sh", expire("g"))
    assert bench.values() == {'m{hook="a.sh"}': 1}


def test_a_name_whose_series_are_gone_is_free_for_another_type(bench: Bench) -> None:
    bench.run("a.sh", add("m", group="g", kind="pod"))
    bench.run("b.sh", expire("g"), gauge("m", 3))
    assert bench.lines("m{", "m ") == ["# HELP m m", "# TYPE m gauge", 'm{hook="b.sh"} 3.0']


def test_a_histogram_counts_by_buckets(bench: Bench) -> None:
    bench.run("a.sh", *(observe("seconds", value, [1, 2.5, 5], kind="x") for value in (0.5, 1, 2, 5, 9)))
    assert bench.values() == {
        'seconds_bucket{hook="a.sh",kind="x",le="1.0"}': 2,
        'seconds_bucket{hook="a.sh",kind="x",le="2.5"}': 3,
        'seconds_bucket{hook="a.sh",kind="x",le="5.0"}': 4,
        'seconds_bucket{hook="a.sh",kind="x",le="+Inf"}': 5,
        'seconds_count{hook="a.sh",kind="x"}': 5,
        'seconds_sum{hook="a.sh",kind="x"}': 17.5,
    }


def test_a_histogram_in_a_group_expires_with_it(bench: Bench) -> None:
    bench.run("a.sh", observe("s", 1, [1], "g", kind="x"), observe("s", 1, [1], "g", kind="y"))
    bench.run("a.sh", observe("s", 3, [1], "g", kind="x"))
    assert bench.values() == {
        's_bucket{hook="a.sh",kind="x",le="1.0"}': 1,
        's_bucket{hook="a.sh",kind="x",le="+Inf"}': 2,
        's_count{hook="a.sh",kind="x"}': 2,
        's_sum{hook="a.sh",kind="x"}': 4,
    }


def test_buckets_need_to_be_written_only_once(bench: Bench) -> None:
    bench.run("a.sh", observe("s", 1, [7]))
    bench.run("b.sh", observe("s", 8))
    assert bench.values()['s_bucket{hook="b.sh",le="7.0"}'] == 0


def test_a_histogram_without_buckets_has_those_of_prometheus(bench: Bench) -> None:
    bench.run("a.sh", observe("s", 0.3))
    bounds = [series.partition('le="')[2].rstrip('"}') for series in bench.values() if "_bucket" in series]
    assert bounds[:3] == ["0.005", "0.01", "0.025"]
    assert bounds[-2:] == ["10.0", "+Inf"]


CLASHES = [
    (
        gauge("m"),
        add("m"),
        (
            "metric m of hook b.sh of module web (document [0]) is a counter, but that of hook a.sh is a "
            "gauge; make them alike, or rename one of them"
        ),
    ),
    (add("m"), observe("m", 1), "is a histogram, but that of hook a.sh is a counter"),
    (
        add("m", kind="x"),
        add("m", kind="x", size="y"),
        "has the labels kind, size, but that of hook a.sh has the labels kind;",
    ),
    (add("m", kind="x"), add("m"), "has no labels, but that of hook a.sh has the labels kind"),
    (
        observe("m", 1, [1, 2.5]),
        observe("m", 1, [1, 3]),
        "has the buckets 1, 3, but that of hook a.sh has the buckets 1, 2.5",
    ),
    (observe("m", 1), add("m_count"), "metric m_count of hook b.sh of module web, a counter, would have"),
    (gauge("m"), add("m_total"), "series in common with m of hook a.sh, a gauge"),
]


@pytest.mark.parametrize(
    ("first", "second", "message"),
    CLASHES,
    ids=["type", "type2", "labels", "none", "buckets", "parts", "bare"],
)
def test_a_clash_is_refused_and_names_both(
    bench: Bench, first: dict[str, Any], second: dict[str, Any], message: str
) -> None:
    bench.run("a.sh", first)
    before = bench.values()
    with pytest.raises(hook_metrics.HookMetricError) as caught:
        bench.run("b.sh", second, module="web")
    assert message in str(caught.value)
    assert bench.values() == before


def test_a_clash_within_one_batch_is_refused(bench: Bench) -> None:
    with pytest.raises(hook_metrics.HookMetricError, match=r"\(document \[1\]\) is a gauge"):
        bench.run("a.sh", add("m"), gauge("m"))
    assert bench.values() == {}


@pytest.mark.parametrize(
    "name",
    [
        "addon_operator_live_ticks",
        "addon_operator_module_run_seconds",
        "addon_operator_module_run_seconds_count",
        "addon_operator_convergence_total",
        "process_cpu_seconds_total",
    ],
)
def test_a_name_of_the_operator_is_refused(bench: Bench, name: str) -> None:
    with pytest.raises(
        hook_metrics.HookMetricError, match=f"metric {name} of hook a.sh: the operator itself"
    ):
        bench.run("a.sh", gauge(name))


def test_hooks_of_modules_and_global_hooks_may_share_a_metric(bench: Bench) -> None:
    bench.run("a.sh", add("m", kind="x"))
    bench.run("a.sh", add("m", kind="x"), module="web")
    assert bench.values() == {'m{hook="a.sh",kind="x"}': 1, 'm{hook="a.sh",kind="x",module="web"}': 1}


def test_a_label_that_the_operator_sets_is_refused_unless_it_says_the_same(bench: Bench) -> None:
    bench.run("a.sh", add("m", module="web"), module="web")
    bench.run("a.sh", add("m", module="anything"))
    with pytest.raises(hook_metrics.HookMetricError, match="sets the label 'module' itself"):
        bench.run("a.sh", add("m", module="api"), module="web")


def test_a_plan_changes_nothing(bench: Bench) -> None:
    bench.run("a.sh", add("m"))
    operations = metric_operations.parse(json.dumps(add("m")), "METRICS_PATH")
    bench.hooks.plan(operations, {"hook": "a.sh"})
    assert bench.values() == {'m{hook="a.sh"}': 1}


def test_a_plan_that_another_run_made_out_of_date_is_not_carried_out(bench: Bench) -> None:
    operations = metric_operations.parse(json.dumps(add("m")), "METRICS_PATH")
    plan = bench.hooks.plan(operations, {"hook": "a.sh"})
    bench.run("b.sh", add("m"))
    assert not bench.hooks.carry_out(plan)
    assert bench.values() == {'m{hook="b.sh"}': 1}


def test_what_is_wrong_in_a_batch_keeps_all_of_it_out(bench: Bench) -> None:
    bench.run("a.sh", add("old", group="g"))
    with pytest.raises(hook_metrics.HookMetricError):
        bench.run("a.sh", add("old", group="g"), add("new", group="g"), add("process_cpu_seconds_total"))
    assert bench.values() == {'old{hook="a.sh"}': 1}


def test_awkward_label_values_survive_the_text_format(bench: Bench) -> None:
    text = 'a "quoted"\\ \n ü'
    bench.run("a.sh", gauge("m", 1, kind=text))
    families = parser.text_string_to_metric_families(bench.meters.render().decode())
    (sample,) = [sample for family in families for sample in family.samples if sample.name == "m"]
    assert sample.labels == {"hook": "a.sh", "kind": text}


def test_open_metrics_can_be_read(bench: Bench) -> None:
    bench.run("a.sh", add("m"), add("n_total"), gauge("g_total"), observe("s", 1, [1]), gauge("i_info"))
    text = bench.meters.render(metrics.Form.wanted("application/openmetrics-text; version=1.0.0")).decode()
    families = openmetrics.text_string_to_metric_families(text)  # type: ignore[no-untyped-call]  # the library has no types here
    types = {family.name: family.type for family in families}
    assert types["m"] == "unknown"
    assert types["n"] == "counter"
    assert types["s"] == "histogram"
    plain = bench.meters.render().decode()
    assert "# TYPE n_total counter" in plain
    assert "# TYPE m counter" in plain


@pytest.mark.parametrize("name", ["up", "ALERTS", "ALERTS_FOR_STATE", "scrape_duration_seconds"])
def test_names_of_prometheus_itself_are_refused(bench: Bench, name: str) -> None:
    with pytest.raises(hook_metrics.HookMetricError, match=f"metric {name} of hook h.sh: Prometheus itself"):
        bench.run("h.sh", gauge(name))


def test_labels_that_prometheus_sets_are_passed_on(bench: Bench) -> None:
    # The monitors do not honour them: Prometheus calls them exported_namespace and so on.
    bench.run("h.sh", gauge("m", namespace="a", job="b", instance="c", pod="d"))
    assert list(bench.values()) == ['m{hook="h.sh",instance="c",job="b",namespace="a",pod="d"}']


def test_a_hook_has_a_bound_and_others_do_not_feel_it(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hook_metrics, "MAX_LINES", 10)
    bench.run("many.sh", *(gauge("m", group="g", number=str(number)) for number in range(10)))
    with pytest.raises(hook_metrics.HookMetricError) as raised:
        bench.run("many.sh", gauge("m", number="one more"), module="")
    assert str(raised.value) == (
        "metric m of hook many.sh: the hook's metrics would take 11 lines of /metrics, and a hook may take "
        "10; use fewer and shorter values of labels, or a group whose series expire"
    )
    assert len(bench.values()) == 10
    bench.run("many.sh", gauge("m", 2, number="0", group="g2"))
    bench.run("many.sh", *(gauge("m", number=str(number)) for number in range(1, 10)), module="web")


def test_series_that_expire_make_room(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hook_metrics, "MAX_LINES", 3)
    for batch in range(3):
        bench.run("h.sh", *(gauge("m", group="g", number=f"{batch}-{number}") for number in range(3)))
    bench.run("h.sh", expire("g"))
    bench.run("h.sh", *(add("c", number=str(number)) for number in range(3)))
    assert len(bench.values()) == 3


def test_each_line_of_a_histogram_counts(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hook_metrics, "MAX_LINES", 10)
    bench.run("h.sh", observe("m", 1, [1, 2], a="1"), observe("m", 1, [1, 2], a="2"))
    assert len(bench.values()) == 10
    with pytest.raises(hook_metrics.HookMetricError, match="would take 15 lines"):
        bench.run("h.sh", observe("m", 1, [1, 2], a="3"))


def test_a_long_line_counts_as_several(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hook_metrics, "MAX_LINES", 10)
    bench.run("h.sh", gauge("m", group="g", text="x" * 4600))
    with pytest.raises(hook_metrics.HookMetricError, match="would take 11 lines"):
        bench.run("h.sh", gauge("m", text="short"))
    bench.run("h.sh", expire("g"))
    bench.run("h.sh", *(gauge("m", text=str(number)) for number in range(10)))


@pytest.mark.slow
def test_many_metrics_take_time_in_proportion_to_them() -> None:
    def made(count: int) -> list[dict[str, Any]]:
        return [gauge(f"m{number}") for number in range(count)]

    assert costs.is_linear(made, lambda operations: Bench().run("a.sh", *operations), 150)


@pytest.mark.slow
def test_many_expired_groups_take_time_in_proportion_to_them() -> None:
    def made(count: int) -> list[dict[str, Any]]:
        series = [gauge("m", group="a", n=str(number)) for number in range(count)]
        return [*series, *({"action": "expire", "group": f"g{number}"} for number in range(count))]

    assert costs.is_linear(made, lambda operations: Bench().run("a.sh", *operations), 150)


@pytest.mark.slow
def test_a_histogram_is_refused_before_its_buckets_take_the_memory(bench: Bench) -> None:
    buckets: list[float] = list(range(5000))
    first = observe("m", 1, buckets, n="first")
    tracemalloc.start()
    try:
        with pytest.raises(hook_metrics.HookMetricError, match="lines of /metrics"):
            bench.run("a.sh", first, *(observe("m", 1, n=str(number)) for number in range(100)))
        assert tracemalloc.get_traced_memory()[1] < 20_000_000
    finally:
        tracemalloc.stop()


def test_a_group_that_is_set_again_after_it_expired_is_there(bench: Bench) -> None:
    bench.run(
        "a.sh", gauge("m", group="a", n="1"), {"action": "expire", "group": "a"}, gauge("m", 2, "a", n="2")
    )
    assert bench.values() == {'m{hook="a.sh",n="2"}': 2}
    bench.run("a.sh", {"action": "expire", "group": "a"})
    assert bench.values() == {}


def test_any_name_is_taken_and_escaped_for_scrapers_that_do_not_take_it(bench: Bench) -> None:
    bench.run("h", add("stub-add-metric", 2, **{"node-found": "x"}), observe("stub-time", 1, [5]))
    assert bench.lines("stub_add") == [
        "# HELP stub_add_metric stub-add-metric",
        "# TYPE stub_add_metric counter",
        'stub_add_metric{hook="h",node_found="x"} 2.0',
    ]
    assert "stub_time_count{" in "".join(bench.values())
    asked = metrics.Form.wanted("text/plain;version=1.0.0;escaping=allow-utf-8")
    text = bench.meters.render(asked).decode()
    assert '# TYPE "stub-add-metric" counter' in text
    assert '{"stub-add-metric",hook="h","node-found"="x"} 2.0' in text
    assert '{"stub-time_bucket",hook="h",le="5.0"} 1.0' in text or 'le="5"' in text


@pytest.mark.parametrize(
    ("first", "second", "said"),
    [
        (add("a-b"), gauge("a_b"), "would have series in common with a-b of hook h"),
        (gauge("a.b"), gauge("a-b"), "would have series in common with a.b of hook h"),
        (gauge("m"), gauge("scrape-x"), "Prometheus itself writes metrics of that name"),
        (gauge("m"), gauge("addon-operator-live-ticks"), "the operator itself exports a metric of that name"),
    ],
)
def test_names_that_are_one_for_many_scrapers_clash(
    bench: Bench, first: dict[str, Any], second: dict[str, Any], said: str
) -> None:
    bench.run("h", first)
    with pytest.raises(hook_metrics.HookMetricError, match=said):
        bench.run("h", second)
