"""When the operator is ready."""

import asyncio
from collections.abc import Iterator, Sequence

from typing_extensions import override

from addon_operator.engine import engine
from addon_operator.engine import state as engine_state
from addon_operator.engine.converge import converge
from addon_operator.status import health, page_content, status_page
from tests.support import rows
from tests.unit.debug import inspected


class Converger(converge.Converger):
    """Converges for the first time, or has done so."""

    def __init__(self, *, done: bool) -> None:
        self.first_done = asyncio.Event()
        if done:
            self.first_done.set()

    @property
    @override
    def state(self) -> engine_state.ConvergeState:
        return engine_state.ConvergeState.RUNNING

    @property
    @override
    def remaining(self) -> int:
        return 2


class Part(health.Part):
    """A part with the reasons that a test gives it."""

    def __init__(
        self, unready: str | None = None, trouble: str | None = None, unhealthy: str | None = None
    ) -> None:
        self.reasons = (unready, trouble, unhealthy)

    @override
    def unready_reason(self) -> str | None:
        return self.reasons[0]

    @override
    def trouble(self) -> str | None:
        return self.reasons[1]

    @override
    def unhealthy_reason(self) -> str | None:
        return self.reasons[2]


class Beginning(health.Beginning):
    """An engine that waits for what a test says."""

    def __init__(self, waits_for: str | None, refusals: Sequence[str] = ()) -> None:
        self.waiting, self.wrong = waits_for, refusals

    @property
    @override
    def waits_for(self) -> str | None:
        return self.waiting

    @override
    def refusals(self) -> Sequence[str]:
        return self.wrong

    @override
    def troubles(self) -> Sequence[str]:
        return ["module web failed: no such image"]


class Engine(engine.Engine):
    """The status asks nothing else of an engine."""

    def __init__(self, *, done: bool) -> None:
        self.converger = Converger(done=done)

    @override
    def waiting_for(self) -> Iterator[str]:
        yield "module web"


def serving(*, done: bool) -> health.OperatorStatus:
    found = health.OperatorStatus()
    found.serve(Engine(done=done))
    return found


def test_an_operator_without_an_engine_is_starting() -> None:
    assert health.OperatorStatus().unready_reason() == "the operator is starting"


def test_what_the_start_waits_for_is_the_reason_and_keeps_no_pods_from_being_admitted() -> None:
    found = health.OperatorStatus()
    beginning = Beginning("ConfigMap x/y is wrong")
    found.begin(beginning)
    found.admit()
    assert found.unready_reason() == found.absent_reason() == "ConfigMap x/y is wrong"
    assert found.admission_unready_reason() is None
    assert found.unhealthy_reason() is None
    beginning.waiting = None
    assert found.unready_reason() == "the operator is starting"


def test_an_operator_is_ready_after_its_first_converge() -> None:
    assert serving(done=True).unready_reason() is None
    assert serving(done=False).unready_reason() == "the first converge is not done: module web"


@rows.each("done", [True, False])
def test_a_further_part_that_is_not_ready_is_the_reason(done: bool) -> None:
    found = serving(done=done)
    found.add(Part())
    found.add(Part("the PodPresets have not been listed yet"))
    assert found.unready_reason() == "the PodPresets have not been listed yet"


def test_a_part_that_only_work_needs_keeps_no_pods_from_being_admitted() -> None:
    found = serving(done=True)
    found.admit()
    found.add(Part(trouble="the watch of the values ConfigMap has not come up"))
    assert found.unready_reason() == "the watch of the values ConfigMap has not come up"
    assert found.admission_unready_reason() is None


def test_a_further_part_that_is_ready_changes_nothing() -> None:
    found = serving(done=True)
    found.add(Part())
    assert found.unready_reason() is None


def test_a_stopping_operator_is_not_ready_and_not_unhealthy() -> None:
    found = serving(done=True)
    found.stop()
    assert found.unready_reason() == "the operator is stopping"
    assert found.unhealthy_reason() is None


def test_pods_are_admitted_long_before_the_first_converge_is_done() -> None:
    found = health.OperatorStatus()
    assert found.admission_unready_reason() == "the operator is starting"
    found.admit()
    assert found.admission_unready_reason() is None


def test_pods_are_not_admitted_before_the_presets_are_known() -> None:
    found = health.OperatorStatus()
    found.add(Part("the PodPresets have not been listed yet"))
    found.admit()
    assert found.admission_unready_reason() == "the PodPresets have not been listed yet"


def test_an_operator_that_stops_wants_no_more_pods() -> None:
    found = serving(done=True)
    found.admit()
    found.stop()
    assert found.admission_unready_reason() == "the operator is stopping"


def test_each_part_that_has_to_live_can_be_the_reason_of_a_restart() -> None:
    found = serving(done=True)
    found.add(Part())
    assert found.unhealthy_reason() is None
    found.add(Part(unhealthy="the event loop has been stuck for 31 s"))
    assert found.unhealthy_reason() == "the event loop has been stuck for 31 s"
    found.stop()
    assert found.unhealthy_reason() is None, "a stopping operator ends anyway"


def test_an_operator_without_an_engine_says_what_it_does() -> None:
    found = health.OperatorStatus()
    assert found.absent_reason() == "the operator is starting; ask again in a moment"
    found.stand_by(lambda: "pod-1")
    assert found.absent_reason() == (
        "this replica stands by, and 'pod-1' leads: ask that; 'addon-operator module list -n NAMESPACE' "
        "finds it by itself"
    )
    found.stand_by(lambda: "")
    assert found.absent_reason() == "this replica stands by and nobody leads yet; ask again in a moment"
    found.stop()
    assert found.absent_reason() == "the operator is stopping"


async def rendered(found: health.OperatorStatus) -> str:
    return status_page.render(await page_content.PageContent(found).gather())


async def test_the_page_of_a_starting_operator_has_its_state() -> None:
    page = await rendered(health.OperatorStatus())
    assert (
        "<p><b>not ready</b>, the first converge has not begun</p>\n<p>the operator is starting</p>" in page
    )


async def test_the_page_of_a_replica_that_stands_by_names_the_leader() -> None:
    found = health.OperatorStatus()
    found.stand_by(lambda: "pod-1")
    assert found.unready_reason() is None
    assert "port-forward pod/pod-1" in await rendered(found)


async def test_the_page_says_why_the_operator_is_not_ready() -> None:
    found = serving(done=True)
    found.add(Part("the <PodPresets> have not been listed yet"))
    assert "<p>the &lt;PodPresets&gt; have not been listed yet</p>" in await rendered(found)


async def test_the_page_of_an_operator_that_waits_for_right_values_says_what_is_wrong() -> None:
    found = health.OperatorStatus()
    found.begin(Beginning("it waits", ["ConfigMap x is invalid since <today>: web.size"]))
    assert "<li>ConfigMap x is invalid since &lt;today&gt;: web.size</li>" in await rendered(found)
    assert found.refusals() == ["ConfigMap x is invalid since <today>: web.size"]
    assert found.details() == [*found.refusals(), "module web failed: no such image"]
    assert health.OperatorStatus().details() == ()


async def test_the_page_shows_the_engine() -> None:
    content = page_content.PageContent(serving(done=True))
    content.show(inspected.make().engine.views, inspected.Resources())
    page = status_page.render(await content.gather())
    assert "<p><b>ready</b>, " in page
    assert "kube-dns" in page


def test_a_process_that_only_admits_is_ready_when_it_can() -> None:
    found = health.OperatorStatus(only_admits=True)
    assert found.unready_reason() == "the operator is starting"
    part = Part("the PodPresets have not been listed yet")
    found.add(part)
    found.admit()
    assert found.unready_reason() == "the PodPresets have not been listed yet"
    part.reasons = (None, None, None)
    assert found.unready_reason() is None
    assert found.converge() == ("ADMISSION_ONLY", 0)
    assert "only admits pods" in found.absent_reason()
    found.stop()
    assert found.unready_reason() == "the operator is stopping"
