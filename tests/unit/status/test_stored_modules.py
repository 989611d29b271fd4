"""A replica that does not lead shows of modules what their objects say, as the leader does."""

import asyncio
import contextlib
import dataclasses
import json
import pathlib
from collections.abc import AsyncIterator
from typing import Any, Final

import pytest

from addon_operator.engine import introspection, module_states, state
from addon_operator.engine.queues import queue_set
from addon_operator.kernel import names
from addon_operator.kube.discovery import discovery
from addon_operator.kube.informers import informers, reflector
from addon_operator.kube.objects import module_objects, suspension
from addon_operator.modules import findings, model, module_config, windows
from addon_operator.modules.drift import drift_report
from addon_operator.modules.health import module_health
from addon_operator.modules.health.resource_health import HealthState
from addon_operator.status import (
    condition_times,
    health,
    module_conditions,
    module_status,
    page_content,
    page_modules,
    status_page,
    stored_modules,
    told_events,
)
from tests.support import api_server, clocks, kinds, listeners, rows
from tests.unit.debug import inspected
from tests.unit.engine import bound_fakes, fakes
from tests.unit.kube import informing

NOW: Final = 1_700_000_000.0
LATER: Final = NOW + 90
ERROR: Final = "helm upgrade failed: no such image"
WRITTEN: Final = "2026-11-25T03:12:40Z"
Status = state.ModuleStatus


def module(status: state.ModuleStatus = Status.READY, **fields: Any) -> state.ModuleState:  # noqa: ANN401
    config = module_config.ModuleConfig(namespace="web-system", description="Shop of the company")
    found = model.Module(names.ModuleName("web"), 20, pathlib.Path("020-web"), config=config)
    plain = {"discovered": True, "verdict": "by values.yaml", "last_run": NOW}
    made = state.ModuleState(found, status, **{**plain, **fields})
    made.explain()
    return made


def noting(kind: findings.FindingKind, *texts: str) -> state.ModuleState:
    made = module()
    made.note(kind, *texts)
    return made


FAILED: Final = {"last_error": ERROR, "last_error_without_values": ERROR}
MODULES: Final = {
    "without a release": module(),
    "ready": module(health=module_health.ModuleHealth(HealthState.HEALTHY, "")),
    "failed": module(Status.FAILED, **FAILED, tries=4, next_try=LATER, cure=("Secret a/b", "node c")),
    "tried again": module(Status.RUNNING, **FAILED),
    "unhealthy": module(health=module_health.ModuleHealth(HealthState.FAILED, "1 of 3 pods ready")),
    "progressing": module(health=module_health.ModuleHealth(HealthState.PROGRESSING, "2 of 3 pods")),
    "drifted": module(drift=drift_report.DriftReport(1, "ConfigMap x: /data/a (by kubectl-edit)")),
    "suspended": module(suspended=suspension.Suspension("new disks", NOW, "alice", LATER)),
    "held back": module(held_back=windows.HeldBack("upgrade to revision 2", LATER, NOW)),
    "wrong values": noting(findings.WRONG_VALUES, "ConfigMap a/b is invalid since 03:12: web.port"),
    "pending": module(Status.PENDING, waits_for=(names.ModuleName("db"),)),
    "disabled": module(Status.DISABLED, verdict="disabled by ConfigMap addon-operator"),
    "being removed": module(Status.DELETING, **FAILED),
}


def stored(of: state.ModuleState) -> dict[str, Any]:
    """Return the object that the leader writes."""
    since = module_conditions.times(of, {}, NOW)
    release = module_status.ShownRelease(revision=3, checksum="abc")
    written = [
        {"manager": "addon-operator", "time": WRITTEN, "operation": "Apply"},
        {"manager": "kubectl", "time": "2027-01-01T00:00:00Z"},
    ]
    return {
        "metadata": {"name": of.module.name, "namespace": "addons", "managedFields": written},
        "status": module_status.document(of, release, {}, 1, since),
    }


async def leader_card(of: state.ModuleState) -> page_modules.Card:
    """Return what the leader's page says."""
    states = module_states.ModuleStates([of.module], fakes.ignore)
    states._states = {of.module.name: of}
    clock = clocks.Clock()
    queues = queue_set.QueueSet(fakes.ignore, clock=clock)
    views = introspection.Introspection(states, queues, bound_fakes.WaitingBindings(), (), clock)
    object_ = stored(of)["status"]

    async def recall() -> None:
        pass

    shown = module_status.shown(object_, condition_times.stored(object_), [])
    content = page_content.PageContent(health.OperatorStatus())
    content.show(views, inspected.Resources(), page_content.Objects(lambda _: shown, recall))
    return page_modules.cards(await content.gather())[0]


def standby_card(object_: dict[str, Any]) -> page_modules.Card:
    found = stored_modules.read(json.dumps(object_).encode())
    content = page_content.Content(
        state="x",
        modules=[found.row],
        errors={"web": found.row["lastError"]} if found.row["lastError"] else {},
        objects={"web": found.shown},
    )
    return page_modules.cards(content)[0]


@rows.each("of", MODULES.values(), ids=MODULES)
async def test_a_standby_says_of_a_module_what_the_leader_says(of: state.ModuleState) -> None:
    assert standby_card(stored(of)) == await leader_card(of)


def test_a_change_on_disk_that_is_refused_is_said_by_a_standby_too() -> None:
    card = standby_card(stored(noting(findings.WRONG_FILES, "010-web/values.yaml, line 2: not YAML")))
    assert (card.group, card.word) == (page_modules.Group.ATTENTION, "Not in force")
    assert card.sentence.endswith("010-web/values.yaml, line 2: not YAML")


def test_a_webhook_that_is_not_registered_is_said_by_a_standby_too() -> None:
    card = standby_card(
        stored(noting(findings.NOT_REGISTERED, "kubernetesValidating a.b.c is not registered: rights"))
    )
    assert (card.word, card.sentence) == (
        "Not registered",
        "kubernetesValidating a.b.c is not registered: rights",
    )


def test_what_the_build_before_wrote_which_had_no_findings_is_not_green() -> None:
    of = noting(findings.CHANGED_BY_OTHERS, "revision 3 was changed")
    of.note(findings.HOOK_LEFT_OUT, "a.go")
    object_ = stored(of)
    del object_["status"]["findings"]
    card = standby_card(object_)
    assert (card.group, card.word) == (page_modules.Group.ATTENTION, "Changed by others")
    assert card.sentence.startswith("revision 3 was changed; Go hooks never run here: a.go")


def test_a_finding_that_only_the_leaders_build_knows_is_shown() -> None:
    object_ = stored(module())
    object_["status"]["findings"] = [{"type": "Levitates", "message": "it is above its node"}]
    card = standby_card(object_)
    assert (card.group, card.word) == (page_modules.Group.ATTENTION, "Levitates")
    assert card.sentence == "it is above its node"


def test_the_time_is_that_of_the_last_write_of_an_operator() -> None:
    assert stored_modules.read(json.dumps(stored(module())).encode()).written == WRITTEN


@rows.each(
    "status",
    [
        {"state": "Levitating"},
        {"state": "Ready", "conditions": "x"},
        {"state": "Ready", "suspended": {"since": "x"}},
    ],
    ids=["unknown state", "another shape", "not a time"],
)
def test_an_object_that_nobody_can_read_is_not_green(status: dict[str, Any]) -> None:
    card = standby_card({"metadata": {"name": "web"}, "status": status})
    assert card.group is page_modules.Group.FAILED
    assert card.sentence.startswith("its Module object cannot be read by this version")


def test_an_object_that_was_just_made_says_that_nothing_is_known() -> None:
    card = standby_card({"metadata": {"name": "web"}})
    assert (card.group, card.word) == (page_modules.Group.WORKING, "Pending")


def test_a_text_of_any_length_is_kept_up_to_a_bound() -> None:
    long = stored(module(Status.FAILED, **FAILED))
    long["status"]["lastError"] = "x" * 1_000_000
    for condition in long["status"]["conditions"]:
        condition["message"] = "y" * 1_000_000
    assert len(stored_modules._reduced(json.dumps(long).encode()).entry) < 40_000


class Standby(health.OperatorStatus):
    """A replica that stands by until a test says otherwise."""

    def __init__(self) -> None:
        super().__init__()
        self.stand_by(lambda: "pod-1")


@dataclasses.dataclass(frozen=True, slots=True)
class Bench:
    server: api_server.ApiServer
    page: page_content.PageContent
    status: Standby
    watches: informers.Informers

    def put(self, of: state.ModuleState, name: str = "web") -> None:
        body = stored(of)
        self.put_module(
            name,
            labels=module_status.LABELS,
            metadata={"managedFields": body["metadata"]["managedFields"]},
            status=body["status"],
        )

    def put_module(self, name: str, **fields: Any) -> None:  # noqa: ANN401 - JSON
        self.server.put(
            api_server.an_object("Module", name, api_version=module_objects.API_VERSION, **fields)
        )

    async def rows(self) -> dict[str, str]:
        return {row["name"]: row["state"] for row in (await self.page.gather()).modules}


@contextlib.asynccontextmanager
async def running(served: discovery.Catalog) -> AsyncIterator[Bench]:
    pauses = informing.Yielding()
    server = api_server.ApiServer()
    async with api_server.client_of(server, pauses) as kube:
        failed = listeners.Failures().watch_failed
        watches = informers.Informers(kube, served, pauses, failed, reflector.Tuning(silence=5.0))
        status, followed = Standby(), stored_modules.FollowedModules(watches, "addons", clocks.Clock())
        page = page_content.PageContent(status, "addons")
        told = told_events.ToldEvents(kube, "addons", pauses, again=30.0)
        page.stand_in(page_content.OfLeader(followed, told, {"web": ["Kubernetes >=1.30", "module db"]}))
        try:
            yield Bench(server, page, status, watches)
        finally:
            await watches.close()


@pytest.fixture
async def bench() -> AsyncIterator[Bench]:
    async with running(kinds.Kinds()) as made:
        yield made


async def test_nothing_is_followed_until_somebody_looks(bench: Bench) -> None:
    await asyncio.sleep(0)
    assert (bench.watches.watches, bench.server.asked) == ([], [])
    await bench.page.gather()
    assert len(bench.watches.watches) == 1


async def test_who_looks_at_a_standby_sees_the_modules_of_the_leader_at_once_and_how_old_that_is(
    bench: Bench,
) -> None:
    bench.put(MODULES["failed"])
    bench.put_module("strange", status={"state": "Ready"})
    page = status_page.render(await bench.page.gather())
    assert "1 module: 1 failed." in page
    assert ERROR in page
    assert "strange" not in page, "no operator made it"
    assert "as the leader wrote them into their Module objects, last <time" in page
    assert f'datetime="{WRITTEN}"' in page
    assert "<code>kubectl -n addons port-forward pod/pod-1 9650</code>" in page


async def test_a_standby_shows_the_events_of_the_cluster_and_what_modules_require_by_its_own_files(
    bench: Bench,
) -> None:
    bench.put(MODULES["ready"])
    bench.put(MODULES["ready"], "api")
    bench.server.put(
        api_server.an_object(
            "Event",
            "web.1",
            involvedObject={"apiVersion": module_objects.API_VERSION, "kind": "Module", "name": "web"},
            source={"component": "addon-operator"},
            lastTimestamp=WRITTEN,
            type="Warning",
            reason="Drifted",
            message="Somebody changed it.",
        )
    )
    content = await bench.page.gather()
    assert {row["name"]: row["requires"] for row in content.modules} == {
        "web": ["Kubernetes >=1.30", "module db"],
        "api": [],
    }
    page = status_page.render(content)
    assert "<b>Drifted</b> Somebody changed it.</li>" in page
    assert "Kubernetes &gt;=1.30, module db" in page
    assert "The leader also shows queues and global hooks." in page


async def test_a_standby_that_may_not_read_events_says_who_shows_them(bench: Bench) -> None:
    bench.server.refuse(403, lambda asked: asked.path.endswith("/events"))
    bench.put(MODULES["ready"])
    page = status_page.render(await bench.page.gather())
    assert "The leader also shows queues, global hooks and Events." in page


async def test_what_the_leader_writes_is_seen_while_one_looks(bench: Bench) -> None:
    bench.put(MODULES["ready"])
    assert await bench.rows() == {"web": "Ready"}
    await bench.server.until(lambda: bool(bench.server.streams))
    bench.put(MODULES["failed"])
    async with asyncio.timeout(60):
        while await bench.rows() != {"web": "Failed"}:
            pass


async def test_a_replica_that_takes_over_shows_what_was_written_until_it_knows_itself(bench: Bench) -> None:
    bench.put(MODULES["ready"])
    await bench.page.gather()
    bench.status.stand_by(None)
    page = status_page.render(await bench.page.gather())
    assert "as the last leader wrote them" in page
    assert "begins to lead" in page
    world = inspected.make()
    bench.page.show(world.engine.views, inspected.Resources())
    content = await bench.page.gather()
    assert content.stored is None
    assert bench.watches.watches == []
    assert "leader" not in status_page.render(content)


async def test_a_replica_that_never_stood_by_follows_nothing(bench: Bench) -> None:
    bench.status.stand_by(None)
    assert (await bench.page.gather()).stored is None
    assert bench.watches.watches == []


async def test_without_the_definition_a_standby_says_why_it_shows_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(stored_modules, "_SYNC_SECONDS", 0.05)
    async with running(kinds.Kinds("ConfigMap")) as bench:
        content = await bench.page.gather()
        page = status_page.render(content)
        assert not content.knows_modules
        assert "This replica shows no modules: " in page
        assert "Module" in page
        assert "port-forward pod/pod-1" in page


async def test_of_too_many_modules_the_first_are_shown_and_that_is_said(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stored_modules, "MOST", 3)
    for number in range(5):
        bench.put(MODULES["ready"], f"web-{number}")
    page = status_page.render(await bench.page.gather())
    assert "3 modules: " in page
    assert "2 more modules are not shown here" in page
