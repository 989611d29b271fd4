"""What others do to records of releases is noticed by a watch, and what the operator writes is not."""

import asyncio
from typing import Final

import orjson
import pytest
from typing_extensions import override

from addon_operator.engine import events, intents
from addon_operator.engine.drift import drift, drift_backoff, record_watch
from addon_operator.helm import helm_errors, places
from addon_operator.helm.releases import releases
from addon_operator.kernel import names
from addon_operator.kube import api_errors
from addon_operator.kube.discovery import api_resources
from addon_operator.kube.informers import object_changes
from addon_operator.kube.objects import own_deletions
from tests.support import clocks, engine
from tests.unit.engine import fakes, watching

SECRET: Final = api_resources.Resource("v1", "Secret", "secrets", True, watching.ALL)
WEB, DB = watching.WEB, watching.DB


class Manager(releases.ReleaseManager):
    """Knows one record of each release, and what is found when it looks."""

    def __init__(self) -> None:
        self.places = places.ReleaseLocations("addons")
        self.known = {WEB: (2, "20"), DB: (1, "10")}
        self.why: str | Exception = ""
        self.looked: list[str] = []

    @property
    @override
    def record_kind(self) -> str:
        return "Secret"

    @override
    def knows(self, module: names.ModuleName, number: int, version: str, *, is_last: bool = False) -> bool:
        return self.known[module] == (number, version)

    @override
    def last_revision(self, module: names.ModuleName) -> int:
        return self.known[module][0]

    @override
    async def look_at_record(self, module: names.ModuleName) -> str:
        self.looked.append(module)
        if isinstance(self.why, Exception):
            raise self.why
        return self.why


class Bench:
    """A watch of records over a cluster that a test writes to."""

    def __init__(self) -> None:
        self.clock = clocks.Clock()
        self.cluster = watching.Cluster()
        self.manager = Manager()
        self.inbox = fakes.Inbox()
        self.told: list[events.Event] = []
        self.drift = drift.Drift(
            watching.resources_of(self.cluster),
            watching.restorer_of(self.cluster),
            own_deletions.OwnDeletions(),
            self.told.append,
            self.inbox,
            self.clock,
        )
        self.watch = record_watch.RecordWatch(
            self.manager, self.cluster, self.drift, self.told.append, self.inbox, self.clock
        )
        for name, number, version in (("web", 1, "5"), ("web", 2, "20"), ("db", 1, "10")):
            self.put(name, number, version)
        self.watch.follow([WEB, DB])
        self.cluster.sync()

    def put(self, name: str, number: int, version: str) -> None:
        self._enter(name, number, version)
        self.cluster.put(f"{name}.v{number}", resource=SECRET)

    def remove(self, name: str, number: int, version: str) -> None:
        self._enter(name, number, version)
        self.cluster.remove(f"{name}.v{number}", resource=SECRET)

    def _enter(self, name: str, number: int, version: str) -> None:
        key = object_changes.ObjectKey("addons", f"{name}.v{number}")
        self.cluster.entries[key] = orjson.dumps([name, str(number), version])

    async def pass_(self, seconds: float) -> list[str]:
        """Let time pass; which releases were looked at."""
        self.manager.looked.clear()
        await self.clock.advance(seconds)
        await self.watch.look()
        await asyncio.sleep(0)
        return self.manager.looked


@pytest.fixture
def bench() -> Bench:
    return Bench()


async def test_what_the_operator_wrote_is_not_looked_at(bench: Bench) -> None:
    assert await bench.pass_(record_watch.GATHER) == []
    # Helm writes it as pending first, and the operator its digest last.
    for version in ("28", "29", "30"):
        bench.put("web", 3, version)
    bench.manager.known[WEB] = (3, "30")
    assert await bench.pass_(record_watch.GATHER) == []


async def test_what_others_wrote_is_looked_at_at_once_and_once(bench: Bench) -> None:
    await bench.pass_(record_watch.GATHER)
    bench.put("web", 2, "21")
    bench.put("other", 1, "22")
    assert await bench.pass_(record_watch.GATHER) == ["web"]
    assert await bench.pass_(record_watch.RETRY) == []
    assert bench.inbox.empty()


async def test_a_record_that_was_lost_before_the_watch_began_is_missed_too(bench: Bench) -> None:
    bench.manager.known[WEB] = (3, "30")
    assert await bench.pass_(record_watch.GATHER) == ["web"]


async def test_a_release_that_has_to_be_put_in_order_is_run_at_once_and_less_often_if_it_goes_on(
    bench: Bench,
) -> None:
    await bench.pass_(record_watch.GATHER)
    bench.manager.why = "the record addons/web.v2 is gone"
    for _ in range(20):
        bench.remove("web", 2, "21")
        assert await bench.pass_(record_watch.GATHER) == ["web"]
    wanted = intents.RunWanted(WEB, record_watch.ACTIVATION, at_once=True)
    assert bench.inbox.get_nowait() == wanted
    assert bench.inbox.qsize() < 19
    assert (
        events.Warned("module web: the record addons/web.v2 is gone; the module runs to put that in order")
        in bench.told
    )


async def test_while_helm_works_on_a_release_its_record_is_left_alone(bench: Bench) -> None:
    await bench.pass_(record_watch.GATHER)
    async with bench.drift.helm_at_work(WEB):
        bench.put("web", 3, "30")
        assert await bench.pass_(record_watch.GATHER) == []
        bench.manager.known[WEB] = (3, "30")
    assert await bench.pass_(record_watch.RETRY) == []


@pytest.mark.parametrize(
    "error",
    [
        pytest.param(helm_errors.HelmError("web", "may not be read"), id="no right"),
        pytest.param(api_errors.Unreachable("no answer"), id="no answer"),
        pytest.param(ZeroDivisionError(), id="a defect"),
    ],
)
async def test_a_record_that_cannot_be_read_is_read_again(bench: Bench, error: Exception) -> None:
    await bench.pass_(record_watch.GATHER)
    bench.manager.why = error
    bench.put("web", 2, "21")
    assert await bench.pass_(record_watch.GATHER) == ["web"]
    bench.manager.why = ""
    assert await bench.pass_(record_watch.RETRY) == ["web"]


async def test_only_releases_that_are_watched_over_are_followed_where_they_are(bench: Bench) -> None:
    (first,) = bench.cluster.open
    bench.watch.follow([DB])
    assert bench.cluster.open == [first], "the namespaces are the same"
    bench.put("web", 2, "21")
    assert await bench.pass_(record_watch.GATHER) == []
    bench.watch.follow([])
    assert bench.cluster.open == []


async def test_revisions_of_others_are_put_right_five_times_in_ten_minutes(op: engine.Operator) -> None:
    async def revise() -> bool:
        """Make a revision by hand; whether the operator puts it right."""
        number = max(op.helm.records("web")) + 1
        op.helm.put("web", number, "deployed", manifest="---\n{}\n")
        await op.advance(5)
        return max(op.helm.records("web")) > number

    op.settings["drift_mode"] = "correct"
    op.modules.add("web")
    op.helm.charts["web"] = lambda _: []
    await op.start()
    assert [await revise() for _ in range(6)] == [True] * 5 + [False]
    (found,) = op.row("web")["findings"]
    assert found["message"].startswith("revision 12 of release web was made or changed by others")
    assert "'addon-operator module suspend web' leaves all as it is" in found["message"]
    (told,) = [text for text in op.heard.warnings if "insist" in text]
    assert (
        told == "module web: others insist on their revisions, so that they are left until an edit or a run"
    )
    await op.edit(web={"size": 2})
    assert op.row("web")["findings"] == [], "an edit puts it right"
    await op.clock.advance(drift_backoff.CORRECTION_SECONDS)
    assert await revise(), "the ten minutes are over"
