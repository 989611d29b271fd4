"""How modules are and what others do to them, as metrics."""

import pathlib

from addon_operator.app import event_metrics
from addon_operator.engine import events, state
from addon_operator.kernel.names import ModuleName
from addon_operator.modules import model
from addon_operator.modules.drift import drift_report
from addon_operator.modules.health import module_health
from addon_operator.modules.health.resource_health import HealthState
from addon_operator.telemetry import metrics

WEB = ModuleName("web")


def series(meters: metrics.Metrics, name: str) -> dict[str, float]:
    """The series of a metric, by the values of its labels."""
    return {
        " ".join(sample.labels.values()): sample.value
        for family in meters.registry.collect()
        for sample in family.samples
        if sample.name == f"addon_operator_{name}"
    }


def test_health_has_one_series_at_a_time() -> None:
    meters = metrics.Metrics()
    tell = event_metrics.EventMetrics(meters)
    for health in (HealthState.PROGRESSING, HealthState.HEALTHY):
        tell(events.HealthChanged(WEB, module_health.ModuleHealth(health)))
    assert series(meters, "module_health") == {"web Healthy": 1.0}
    tell(events.HealthChanged(WEB, None))
    assert series(meters, "module_health") == {}


def test_drift_and_corrections_are_counted() -> None:
    meters = metrics.Metrics()
    tell = event_metrics.EventMetrics(meters)
    tell(events.DriftChanged(WEB, drift_report.DriftReport(2, "x")))
    tell(events.ResourcesCorrected(WEB, ("a", "b", "c")))
    tell(events.CorrectionsGivenUp(WEB, "a", "alice"))
    assert series(meters, "module_drifted_resources") == {"web": 2.0}
    assert series(meters, "resources_corrected_total") == {"web": 3.0}
    assert series(meters, "corrections_given_up_total") == {"web": 1.0}
    tell(events.DriftChanged(WEB, None))
    assert series(meters, "module_drifted_resources") == {}


def test_why_and_how_often_a_module_failed_is_there_until_a_run_ends_otherwise() -> None:
    meters = metrics.Metrics()
    tell = event_metrics.EventMetrics(meters)
    module = state.ModuleState(model.Module(WEB, 1, pathlib.Path("web")))
    module.status, module.failure, module.tries = state.ModuleStatus.FAILED, "RolledBack", 3
    tell(state.ModuleChanged(module))
    assert series(meters, "module_failure") == {"web RolledBack": 1.0}
    assert series(meters, "module_failed_tries") == {"web": 3.0}
    module.status = state.ModuleStatus.RUNNING
    tell(state.ModuleChanged(module))
    assert series(meters, "module_failed_tries") == {"web": 3.0}
    module.status = state.ModuleStatus.READY
    tell(state.ModuleChanged(module))
    assert series(meters, "module_failure") == series(meters, "module_failed_tries") == {}
