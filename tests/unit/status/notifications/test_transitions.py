"""When a target is told of a module, and what is remembered of that: a ledger, and a time of a test's own."""

import asyncio
import pathlib
from collections.abc import Mapping, Sequence

import pytest

from addon_operator.engine import state
from addon_operator.kernel import clock, names
from addon_operator.modules import findings, model, news, windows
from addon_operator.modules.drift import drift_report
from addon_operator.modules.health import module_health, resource_health
from addon_operator.status.notifications import notify_config, transitions
from tests.unit import costs

KINDS = notify_config.KINDS
Status = state.ModuleStatus
BEGIN = clock.parse_rfc3339("2026-11-25T10:00:00Z")
MINUTE = 60.0


def a_target(
    name: str = "ops",
    *,
    after: float = 2 * MINUTE,
    kinds: Sequence[news.NewsKind] = tuple(KINDS.values()),
    modules: tuple[str, ...] = ("*",),
) -> notify_config.Target:
    return notify_config.Target(
        name,
        "https://chat.example/secret",
        notify_config.Format.SLACK,
        frozenset(kinds),
        after=after,
        modules=modules,
    )


OPS = a_target()


class People:
    """A ledger, and targets that are told what is due at once."""

    def __init__(self, *targets: notify_config.Target, ledger: transitions.Ledger | None = None) -> None:
        self.targets = targets or (OPS,)
        self.ledger = ledger or transitions.Ledger()
        self.now = BEGIN

    def module(
        self,
        name: str = "web",
        status: Status = Status.READY,
        *,
        error: str = "",
        failure: str = "",
        health: module_health.ModuleHealth | None = None,
        drift: drift_report.DriftReport | None = None,
        held: windows.HeldBack | None = None,
        next_try: float | None = None,
        hooks: Mapping[findings.FindingKind, str] = {},
        lost_chart: str = "",
    ) -> None:
        found = state.ModuleState(model.Module(names.ModuleName(name), 1, pathlib.Path("/m")), status)
        found.last_error_without_values, found.failure, found.health = error, failure, health
        found.drift, found.held_back, found.next_try = drift, held, next_try
        found.hooks = ()
        found.note(findings.CHART_LOST, lost_chart)
        for kind, text in hooks.items():
            found.note(kind, text)
        self.ledger.saw_state(found, "addons", self.now)

    def fail(self, name: str = "web", failure: str = "") -> None:
        self.module(name, Status.FAILED, error="hook x.sh failed", failure=failure)

    def look(self) -> transitions.Look:
        return asyncio.run(self.ledger.look(self.targets, self.now))

    def due(self) -> Mapping[str, Sequence[transitions.Item]]:
        return self.look().due

    def after(self, minutes: float) -> list[str]:
        """Let time pass, and tell what is due then: who is told what of which module."""
        self.now += minutes * MINUTE
        told = []
        for target, items in self.due().items():
            self.ledger.take(target, items)
            assert not self.due().get(target), "what is on its way is not due"
            self.ledger.told(target, items)
            told += [f"{target}: {_shown(item)}" for item in items]
        return told

    def flap(self, times: int, failing: float, working: float) -> list[str]:
        """Let the module fail and work in turns, for so many minutes each, and tell what is due meanwhile."""
        told = []
        for _ in range(times):
            self.fail()
            told += self.after(failing)
            self.module()
            told += self.after(working)
        return told

    def restarted(self, *modules: str) -> "People":
        """Another operator, which knows what this one remembered."""
        after = People(*self.targets)
        after.now = self.now
        for name in modules or ("web",):
            stored = self.ledger.remembered(name)
            assert stored is not None
            after.ledger.restore(name, "addons", stored, self.now)
        return after


def _shown(item: transitions.Item) -> str:
    if item.over is None:
        return f"{item.module} {item.kind}"
    return f"{item.module} {item.kind} over after {(item.over - item.since) / MINUTE:g} min"


@pytest.fixture
def people() -> People:
    return People()


def test_a_failure_is_told_once_it_has_lasted_and_its_end_likewise(people: People) -> None:
    people.module()
    people.fail()
    assert people.look().next == people.now + 2 * MINUTE
    assert people.after(1) == []
    assert people.after(1) == ["ops: web failed"]
    people.module(status=Status.RUNNING)
    people.fail()
    assert people.after(12) == [], "a retry that fails is not news"
    people.module()
    assert people.after(1) == []
    assert people.after(1) == ["ops: web failed over after 14 min"]
    assert people.after(60) == []


def test_what_passes_soon_is_not_told_at_all(people: People) -> None:
    people.fail()
    assert people.after(1) == []
    people.module()
    assert people.after(60) == []
    assert people.ledger.remembered("web") == {}


def test_a_module_that_flaps_makes_one_message_and_one_when_it_is_over(people: People) -> None:
    told = people.flap(20, failing=3, working=1)
    assert told == ["ops: web failed"]
    assert people.after(8) == [], "it has worked for that long before it failed again"
    assert people.after(1) == ["ops: web failed over after 79 min"]


@pytest.mark.parametrize("down", [0.5, 1.0, 1.5, 1.75])
def test_short_failures_that_come_back_are_one_message_and_one_when_it_works_for_good(
    people: People, down: float
) -> None:
    told = []
    for _ in range(10):
        people.fail()
        for _ in range(7):
            told += people.after(down / 7)
        people.module()
        told += people.after(4 - down)
    assert told == ["ops: web failed"]
    assert people.after(10) == [f"ops: web failed over after {9 * 4 + down:g} min"]
    assert people.after(60) == []


def test_phases_of_any_length_are_not_told_in_turns(people: People) -> None:
    told = people.flap(20, failing=3, working=4)
    assert len(told) == 3, "its first end was told, as it might have been the last"
    assert told[-1] == "ops: web failed"
    assert people.after(6) == ["ops: web failed over after 129 min"]


def test_what_comes_back_after_a_long_time_is_something_new(people: People) -> None:
    people.fail()
    people.after(1.75)
    people.module()
    assert people.after(11) == []
    people.fail()
    assert people.after(1.75) == []


def test_a_flapping_module_is_calm_as_long_after_a_restart(people: People) -> None:
    people.fail()
    people.after(2)
    people.module()
    people.after(1)
    people.fail()
    people.after(1)
    after = people.restarted()
    after.module()
    assert after.after(9) == []
    assert after.after(1) == ["ops: web failed over after 4 min"]


@pytest.mark.parametrize(
    ("kind", "begin", "end"),
    [
        (
            KINDS["unhealthy"],
            {
                "health": module_health.ModuleHealth(
                    resource_health.HealthState.FAILED, "no image: Deployment web"
                )
            },
            {"health": module_health.ModuleHealth(resource_health.HealthState.HEALTHY)},
        ),
        (
            KINDS["drifted"],
            {"drift": drift_report.DriftReport(1, "Deployment web: /spec")},
            {"drift": drift_report.DriftReport()},
        ),
        (KINDS["heldBack"], {"held": windows.HeldBack("revision 3", BEGIN + 3600)}, {}),
        (KINDS["hookFails"], {"hooks": {findings.HOOK_FAILS: "hook a.sh failed twice"}}, {}),
        (KINDS["hookFails"], {"hooks": {findings.BINDING_WAITS: "binding b waits"}}, {}),
        (KINDS["chartLost"], {"lost_chart": "put Chart.yaml back"}, {}),
    ],
    ids=["unhealthy", "drifted", "held back", "a hook that fails", "a binding that waits", "a lost chart"],
)
def test_every_kind_that_lasts_has_a_beginning_and_an_end(
    people: People, kind: news.NewsKind, begin: dict[str, object], end: dict[str, object]
) -> None:
    people.module(**begin)  # type: ignore[arg-type]  # one of them
    assert people.after(2) == [f"ops: web {kind}"]
    people.module(status=Status.RUNNING)
    assert people.after(10) == [], "what is not known is as it was"
    people.module(**end)  # type: ignore[arg-type]  # one of them
    assert people.after(2) == [f"ops: web {kind} over after 12 min"]


def test_resources_in_progress_are_neither_broken_nor_mended(people: People) -> None:
    progressing = module_health.ModuleHealth(
        resource_health.HealthState.PROGRESSING, "1 of 2: Deployment web"
    )
    people.module(health=progressing)
    assert people.after(60) == []


def test_a_target_is_told_only_what_it_wants_and_of_modules_that_it_names() -> None:
    people = People(
        a_target("all"),
        a_target("web", modules=("we*",), kinds=(news.FAILED,)),
        a_target("drift", kinds=(KINDS["drifted"], news.RECOVERED)),
        a_target("patient", after=60 * MINUTE),
    )
    people.fail("web")
    people.fail("db")
    assert people.after(2) == ["all: web failed", "all: db failed", "web: web failed"]
    people.module("web")
    people.module("db")
    assert people.after(70) == ["all: web failed over after 2 min", "all: db failed over after 2 min"]
    people.fail("web")
    assert people.after(60) == ["all: web failed", "web: web failed", "patient: web failed"]


def test_a_rollback_is_told_as_such_to_whom_wants_that_and_only_once() -> None:
    people = People(a_target("both"), a_target("failures", kinds=(news.FAILED, news.RECOVERED)))
    people.fail(failure="RolledBack")
    assert people.after(2) == ["both: web rolledBack", "failures: web failed"]
    people.module()
    assert people.after(2) == [
        "both: web rolledBack over after 2 min",
        "failures: web failed over after 2 min",
    ]


def test_a_failure_that_becomes_a_rollback_is_news(people: People) -> None:
    people.fail()
    assert people.after(2) == ["ops: web failed"]
    people.fail(failure="RolledBack")
    assert people.after(0) == ["ops: web rolledBack"]


def test_an_upgrade_is_told_at_once_and_an_install_is_not(people: People) -> None:
    people.ledger.released("web", "addons", 1, people.now, is_upgrade=False)
    assert people.after(1) == []
    people.ledger.released("web", "addons", 2, people.now, is_upgrade=True)
    people.ledger.released("web", "addons", 2, people.now, is_upgrade=True)
    assert people.after(0) == ["ops: web upgraded"]
    people.ledger.released("web", "addons", 2, people.now, is_upgrade=False)
    assert people.after(1) == []


def test_a_disabled_or_removed_module_ends_what_was_told_of_it(people: People) -> None:
    people.fail("web")
    people.fail("db")
    people.after(2)
    people.module("web", Status.DISABLED)
    people.ledger.gone("db", people.now)
    people.now += 2 * MINUTE
    due = people.due()["ops"]
    assert {item.module: item.ended for item in due} == {"web": "it is disabled", "db": "it is gone"}
    people.after(0)
    assert people.due() == {}
    assert people.ledger.remembered("db") is None


def test_nothing_is_told_twice_over_a_restart(people: People) -> None:
    people.fail()
    people.after(2)
    after = people.restarted()
    after.module(status=Status.PENDING)
    after.module(status=Status.RUNNING)
    after.fail()
    assert after.after(60) == []


def test_a_recovery_during_a_restart_is_told_with_the_whole_time(people: People) -> None:
    people.fail()
    people.after(2)
    people.now += 10 * MINUTE
    after = people.restarted()
    after.module()
    assert after.after(2) == ["ops: web failed over after 12 min"]


def test_a_recovery_that_was_about_to_be_told_is_told_after_a_restart(people: People) -> None:
    people.fail()
    people.after(2)
    people.module()
    people.after(1)
    after = people.restarted()
    assert after.after(1) == ["ops: web failed over after 2 min"]
    after.module()
    assert after.after(60) == []


def test_what_had_begun_to_last_goes_on_after_a_restart(people: People) -> None:
    people.fail()
    people.after(1)
    after = people.restarted()
    after.fail()
    assert after.after(1) == ["ops: web failed"]


def test_what_an_operator_learns_late_of_the_one_before_it_counts_all_the_same(people: People) -> None:
    people.fail()
    people.after(2)
    stored = people.ledger.remembered("web")
    assert stored is not None
    late = People()
    late.now = people.now
    late.module()
    late.ledger.restore("web", "addons", stored, late.now)
    assert late.after(2) == ["ops: web failed over after 2 min"]


def test_an_upgrade_that_nobody_was_told_is_told_after_a_restart(people: People) -> None:
    people.ledger.released("web", "addons", 4, people.now, is_upgrade=False)
    after = people.restarted()
    after.ledger.released("web", "addons", 5, after.now, is_upgrade=False)
    assert after.after(0) == ["ops: web upgraded"]
    again = after.restarted()
    again.ledger.released("web", "addons", 5, again.now, is_upgrade=False)
    assert again.after(0) == []


def test_what_is_remembered_has_no_text_of_an_error(people: People) -> None:
    people.fail()
    people.after(2)
    assert people.ledger.remembered("web") == {
        "problems": [
            {
                "kind": "failed",
                "since": "2026-11-25T10:00:00Z",
                "told": [{"target": "ops", "kind": "failed", "since": "2026-11-25T10:00:00Z"}],
            }
        ]
    }


@pytest.mark.parametrize(
    "stored",
    [
        {"problems": [{"kind": "nonsense", "since": "2026-11-25T10:00:00Z"}]},
        {"problems": [{"kind": "failed", "since": "yesterday"}]},
        {"problems": [{"kind": "failed", "since": "2026-11-25T10:00:00Z", "told": ["ops"]}]},
        {"problems": ["failed"], "revision": "four"},
    ],
)
def test_what_somebody_broke_in_a_status_is_passed_over(people: People, stored: dict[str, object]) -> None:
    people.ledger.restore("web", "addons", stored, people.now)
    people.module()
    assert people.after(10) == []


def test_what_was_given_up_is_due_again_once_it_may_work(people: People) -> None:
    people.fail()
    people.now += 2 * MINUTE
    items = people.due()["ops"]
    people.ledger.take("ops", items)
    people.ledger.give_up("ops", items)
    assert people.after(5) == []
    people.ledger.try_again("ops")
    assert people.after(0) == ["ops: web failed"]


def test_who_did_not_take_a_message_hears_of_it_after_a_restart_and_nothing_of_its_end_before(
    people: People,
) -> None:
    people.fail("web")
    people.fail("db")
    people.now += 2 * MINUTE
    items = people.due()["ops"]
    people.ledger.take("ops", items)
    people.ledger.give_up("ops", items)
    people.module("db")
    assert people.after(5) == [], "it never heard that db failed"
    after = people.restarted("web", "db")
    after.fail("web")
    assert after.after(0) == ["ops: web failed"]
    after.module("web")
    assert after.after(2) == ["ops: web failed over after 7 min"]


def test_an_end_that_a_target_did_not_take_is_told_after_a_restart(people: People) -> None:
    people.fail()
    people.after(2)
    people.module()
    people.now += 2 * MINUTE
    items = people.due()["ops"]
    people.ledger.take("ops", items)
    people.ledger.give_up("ops", items)
    assert people.after(60) == []
    assert people.restarted().after(0) == ["ops: web failed over after 2 min"]


@pytest.mark.slow
def test_a_thousand_failing_modules_are_looked_at_in_one_pass() -> None:
    targets = [a_target(f"target-{number}") for number in range(notify_config.MOST_TARGETS)]

    def failing(count: int) -> People:
        people = People(*targets)
        for number in range(count):
            people.fail(f"module-{number}")
        return people

    assert costs.is_linear(failing, People.look, 100)
    people = failing(1000)
    people.now += 2 * MINUTE
    due = people.due()
    assert {len(items) for items in due.values()} == {transitions.MOST_DUE + 1}, "the rest stays due"
