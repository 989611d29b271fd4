"""Series of kubernetes bindings: there while the binding is, gone with it."""

import json
import pathlib

import pytest
import structlog

from addon_operator.app import engine_listeners
from addon_operator.engine import events, state
from addon_operator.engine.bindings import binding_events
from addon_operator.hook_contract.configuration import bindings, hook_config
from addon_operator.telemetry import metrics

CONFIG = {"configVersion": "v1", "kubernetes": [{"name": "pods", "kind": "Pod", "jqFilter": ".spec"}]}
LABELS = 'binding="pods",hook="a.sh",module="",queue="main"'
WITH_KIND = 'binding="pods",hook="a.sh",kind="Pod",module="",queue="main"'


@pytest.fixture
def meters() -> metrics.Metrics:
    return metrics.Metrics()


@pytest.fixture
def tell(meters: metrics.Metrics) -> events.Listener:
    return engine_listeners.shown(meters, structlog.get_logger())


@pytest.fixture
def hook() -> state.Hook:
    return state.Hook(
        "a.sh",
        pathlib.Path("a.sh"),
        hook_config.parse(json.dumps(CONFIG), hook_config.HookKind.GLOBAL, "a.sh"),
    )


def series(meters: metrics.Metrics) -> dict[str, float]:
    """Series of bindings by name and labels in the order of the alphabet."""
    return {
        f"{sample.name.removeprefix('addon_operator_')}{{{_labels(sample.labels)}}}": sample.value
        for family in meters.registry.collect()
        for sample in family.samples
        if "binding" in sample.labels and "le" not in sample.labels
    }


def _labels(labels: dict[str, str]) -> str:
    return ",".join(f'{key}="{value}"' for key, value in sorted(labels.items()))


def test_each_fact_is_a_series_until_the_binding_is_gone(
    meters: metrics.Metrics, tell: events.Listener, hook: state.Hook
) -> None:
    binding: bindings.KubernetesBinding = hook.config.kubernetes[0]
    tell(binding_events.BindingWaits(hook, binding, "there is no such kind"))
    tell(binding_events.BindingWaits(hook, binding, None))
    tell(binding_events.SnapshotChanged(hook, binding, 3, 999))
    tell(binding_events.ObjectsFiltered(hook, binding, 4, 2.0))
    tell(binding_events.ChangesHandled(hook, binding, 2, 0.5))
    assert series(meters) == {
        f"kube_binding_waiting{{{LABELS}}}": 0,
        f"kube_snapshot_objects{{{LABELS}}}": 3,
        f"kube_snapshot_bytes{{{LABELS}}}": 999,
        f"kube_jq_filter_duration_seconds_count{{{WITH_KIND}}}": 4,
        f"kube_jq_filter_duration_seconds_sum{{{WITH_KIND}}}": 2.0,
        f"kube_event_duration_seconds_count{{{WITH_KIND}}}": 2,
        f"kube_event_duration_seconds_sum{{{WITH_KIND}}}": 0.5,
    }
    tell(binding_events.BindingGone(hook, binding))
    assert series(meters) == {}
