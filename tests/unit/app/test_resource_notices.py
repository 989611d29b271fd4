"""What people are told of a module's resources, in the log and in Events."""

from addon_operator.app import resource_notices
from addon_operator.engine import events
from addon_operator.kernel.names import ModuleName
from addon_operator.modules.drift import drift_report
from addon_operator.modules.health import module_health
from addon_operator.modules.health.resource_health import HealthState
from tests.support import rows

WEB = ModuleName("web")


@rows.each(
    ("event", "told"),
    [
        (
            events.HealthStands(WEB, module_health.ModuleHealth(HealthState.FAILED, "failed: Job x")),
            ("Warning", "Unhealthy", "failed: Job x"),
        ),
        (
            events.HealthStands(WEB, module_health.ModuleHealth(HealthState.HEALTHY)),
            ("Normal", "Healthy", "all resources are healthy again"),
        ),
        (
            events.DriftChanged(WEB, drift_report.DriftReport(1, "ConfigMap web: /data/a")),
            ("Warning", "Drifted", "changed by others: ConfigMap web: /data/a"),
        ),
        (
            events.ResourcesCorrected(WEB, ("ConfigMap web",)),
            ("Normal", "Corrected", "changed by others, put back as the chart says: ConfigMap web"),
        ),
        (events.CureAwaited(WEB, ("namespace x",)), ("Normal", "Waits", "waits for namespace x")),
    ],
    ids=lambda value: value[1] if isinstance(value, tuple) else "",
)
def test_each_is_one_sentence(event: events.Event, told: tuple[str, str, str]) -> None:
    assert resource_notices.of(event) == told


def test_who_insists_is_named() -> None:
    notice = resource_notices.of(events.CorrectionsGivenUp(WEB, "ConfigMap web", "mallory"))
    assert notice is not None
    assert notice.text.startswith("ConfigMap web is changed again and again by mallory; ")


def test_nothing_is_told_of_what_is_as_it_should_be() -> None:
    assert resource_notices.of(events.DriftChanged(WEB, drift_report.DriftReport())) is None
    assert resource_notices.of(events.DriftChanged(WEB, None)) is None
