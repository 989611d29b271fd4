"""What healing and maintenance tell: metrics, log records, the state of the module."""

import pathlib

import pytest
import structlog
from structlog.testing import capture_logs
from typing_extensions import override

from addon_operator.app import engine_listeners, module_objects
from addon_operator.engine import events, module_states, state
from addon_operator.kernel import names
from addon_operator.kube.objects import events as kube_events
from addon_operator.modules import model
from addon_operator.status import module_status_writer
from addon_operator.telemetry import metrics
from tests.support import clocks, unused
from tests.unit.engine import fakes

WEB = names.ModuleName("web")
MODE = "NoResourceReconciliation"


class Writer(module_status_writer.ModuleStatusWriter):
    """Takes down which Events it is told to write about modules."""

    def __init__(self) -> None:
        self.heard: list[tuple[str, str, str]] = []

    @override
    def tell(
        self, module: names.ModuleName, reason: str, text: str, type_: kube_events.EventType = "Warning"
    ) -> None:
        self.heard.append((module, reason, text))


class Bench:
    def __init__(self) -> None:
        self.meters = metrics.Metrics()
        self.changes: list[str] = []
        self.writer = Writer()
        self.states = module_states.ModuleStates([model.Module(WEB, 1, pathlib.Path("web"))], self._changed)
        self.tell_of = engine_listeners.all_of(
            engine_listeners.states_listener(self.states, clocks.Clock()),
            engine_listeners.shown(self.meters, structlog.get_logger()),
            module_objects.ModuleObjects(
                self.writer,
                unused.unused(kube_events.EventWriter),
                fakes.ignore,
            ).show,
        )

    def _changed(self, event: state.ModuleChanged) -> None:
        self.changes.append(event.state.maintenance)

    def value(self, name: str, **labels: str) -> float | None:
        return self.meters.registry.get_sample_value(f"addon_operator_{name}", {"module": WEB, **labels})


@pytest.fixture
def bench() -> Bench:
    return Bench()


def test_what_is_restored_is_counted_by_resource(bench: Bench) -> None:
    with capture_logs() as logs:
        bench.tell_of(
            events.ResourcesHealed(WEB, [f"ConfigMap x/{number}" for number in range(7)], by_helm=False)
        )
    assert bench.value("resources_healed_total") == 7
    assert logs[0]["event"].endswith("ConfigMap x/4 and 2 more")
    assert "restored from the record of the release" in logs[0]["event"]


def test_what_is_absent_is_logged_with_the_module(bench: Bench) -> None:
    with capture_logs() as logs:
        bench.tell_of(events.AbsentFound(WEB, ["ConfigMap x/a"], "because"))
    told = "absent in the cluster: ConfigMap x/a; the module runs, because it cannot be restored: because"
    assert logs[0]["event"] == told
    assert logs[0]["module"] == WEB


def test_who_is_healed_again_and_again_is_warned_of(bench: Bench) -> None:
    with capture_logs() as logs:
        bench.tell_of(events.HealPostponed(WEB, ["ConfigMap x/a"], 4.6))
    assert logs[0]["log_level"] == "warning"
    assert "ConfigMap x/a disappears again and again; it is restored in 5 s" in logs[0]["event"]


def test_kinds_without_a_watch_are_warned_of_with_their_modules(bench: Bench) -> None:
    with capture_logs() as logs:
        bench.tell_of(events.KindNotWatched([WEB, names.ModuleName("db")], "Secret", "no right"))
    assert logs[0]["log_level"] == "warning"
    assert logs[0]["event"].startswith("resources of the kind Secret of module web, db are not watched")
    assert logs[0]["event"].endswith("no right")


def test_maintenance_has_a_series_as_long_as_it_lasts(bench: Bench) -> None:
    with capture_logs() as logs:
        bench.tell_of(events.MaintenanceChanged(WEB, MODE))
        assert bench.value("mm_module_maintenance", state=MODE) == 1
        bench.tell_of(events.MaintenanceChanged(WEB, ""))
    assert bench.value("mm_module_maintenance", state=MODE) is None
    assert bench.changes == [MODE, ""]
    assert [record["log_level"] for record in logs] == ["warning", "info"]


def test_an_object_of_two_modules_is_a_warning_and_an_event_on_both(bench: Bench) -> None:
    with capture_logs() as logs:
        bench.tell_of(events.ResourcesShared([WEB, names.ModuleName("db")], ["ConfigMap x/a"]))
    assert "modules web and db both have ConfigMap x/a" in logs[0]["event"]
    assert [(module, reason) for module, reason, _ in bench.writer.heard] == [
        ("web", "SharedObject"),
        ("db", "SharedObject"),
    ]
