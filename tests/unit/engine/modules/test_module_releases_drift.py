"""Releases with healing: what is followed when, what absent resources lead to, and maintenance."""

import asyncio
import pathlib
from collections.abc import Callable, Iterable

import pytest
from msgspec import structs
from typing_extensions import override

from addon_operator.engine import events
from addon_operator.engine.drift import drift, followed_releases, record_watch
from addon_operator.engine.modules import module_releases
from addon_operator.helm import helm_errors, release_types
from addon_operator.helm.releases import releases as helm_releases
from addon_operator.kernel import errors
from addon_operator.kernel.names import ModuleName
from addon_operator.kube.objects import own_deletions
from addon_operator.modules import manifests, model, module_config, release
from addon_operator.values import store
from tests.support import clocks
from tests.unit.engine import fakes, watching

WEB = watching.WEB
MODULE = model.Module(WEB, 1, pathlib.Path("web"), has_chart=True)
OTHER = model.Module(watching.DB, 2, pathlib.Path("db"), has_chart=True)


class Manager(helm_releases.ReleaseManager):
    """Helm as far as releases see it."""

    def __init__(self, cluster: watching.Cluster) -> None:
        self.cluster = cluster
        self.places = cluster.places
        self.number = 1
        self.revision_seen: int | None = None
        self.names: tuple[str, ...] = ("a",)
        self.changes = False
        """Whether Helm has something to do."""
        self.meanwhile: Callable[[], None] = lambda: None
        """What happens after a run has looked at what is absent, and before Helm renders."""
        self.calls: list[tuple[str, bool, tuple[str, ...]]] = []
        self.manifests_read = 0
        self.dropped: tuple[manifests.ManifestResource, ...] = ()
        self.given_up: tuple[str, ...] = ()
        self.error: errors.AddonOperatorError | None = None
        self.is_deployed = True
        self.unreadable = frozenset[str]()
        self.may_be_gained: bool | None = None
        self.has_left = False
        self.all_went = asyncio.Event()
        self.renders: tuple[ModuleName, ...] = ()
        """Modules whose charts have what left releases."""
        self.has_newer_files = False
        """Whether each module is due, also one without a run on its way."""

    @override
    async def remember(self) -> frozenset[str]:
        return self.unreadable

    @override
    def assign(self, modules: Iterable[model.Module]) -> frozenset[str]:
        return self.places.assign(modules)

    @override
    async def observe_all(self) -> dict[str, release.Revision]:
        if self.revision_seen is None:
            return {}
        revisions = (release.Revision(name, self.revision_seen, "deployed") for name in (WEB, watching.DB))
        return {revision.release: revision for revision in revisions}

    @override
    def is_ours(self, revision: release.Revision) -> bool:
        return revision.ours

    @override
    async def ensure(self, request: release_types.ReleaseRequest) -> release_types.ReleaseOutcome:
        self.meanwhile()
        if self.changes:
            await request.before_change()
        if self.dropped:
            self.may_be_gained = await request.others.may_gain()
            self.given_up = tuple(map(str, await request.others.give_up(self.dropped)))
        self.calls.append(("ensure", request.fresh, request.absent))
        if request.absent:
            self.number += 1
            self.cluster.put(*self.names)
        action = (
            release_types.ReleaseAction.UPGRADED if request.absent else release_types.ReleaseAction.SKIPPED
        )
        return release_types.ReleaseOutcome(action, "because", self.number, release.Checksum("x"))

    @override
    async def deployed(self, release: ModuleName) -> release_types.Deployed | None:
        self.manifests_read += 1
        if self.error is not None:
            raise self.error
        if not self.is_deployed:
            return None
        document = "apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: {}}}\n"
        return release_types.Deployed(self.number, "---\n".join(map(document.format, self.names)))

    @property
    @override
    def has_moving(self) -> bool:
        return self.has_left

    @override
    async def let_go(self, others_of: Callable[[ModuleName], release_types.Others]) -> None:
        self.has_left = False
        self.all_went.set()

    @override
    async def is_due(self, request: release_types.ReleaseRequest) -> bool:
        return self.has_newer_files

    @override
    async def may_gain(self, request: release_types.ReleaseRequest) -> bool:
        return request.module in self.renders

    @override
    async def remove(
        self,
        module: ModuleName,
        *,
        keep_record: bool = False,
        others: release_types.Others = release_types.Others(),  # noqa: B008 - holds nothing
        directory: pathlib.Path | None = None,
    ) -> bool:
        deployed = await self.deployed(module)
        spared = await others.give_up(manifests.resources(deployed.manifest if deployed else ""))
        self.calls.append(("remove", keep_record, tuple(map(str, spared))))
        return True


class Values(store.ValuesStore):
    """Values with a maintenance mode that is set by hand."""

    mode = ""

    @override
    def maintenance(self, module: ModuleName) -> str:
        return self.mode


class Bench:
    def __init__(self) -> None:
        self.clock = clocks.Clock()
        self.modules = [MODULE]
        self.cluster = watching.Cluster()
        self.resources = watching.resources_of(self.cluster)
        self.inbox = fakes.Inbox()
        self.told: list[tuple[str, ...]] = []
        self.warnings: list[str] = []
        self.defects: list[str] = []
        self.helm = Manager(self.cluster)
        self.drift = drift.Drift(
            self.resources,
            watching.restorer_of(self.cluster),
            own_deletions.OwnDeletions(),
            self._tell,
            self.inbox,
            self.clock,
        )
        self.records = record_watch.RecordWatch(
            self.helm, self.cluster, self.drift, self._tell, self.inbox, self.clock
        )
        self.followed = followed_releases.FollowedReleases(
            self.helm,
            self.resources,
            self.drift,
            watching.content_of(self.resources, self.drift),
            self.records,
            self._tell,
            self.clock,
        )
        self.values = Values([store.ModuleValues(WEB), store.ModuleValues(watching.DB)])
        self.releases = module_releases.ModuleReleases(
            self.helm,
            self.values,
            self.drift,
            self.followed,
            watching.healths_of(self.resources),
            self._tell,
            fakes.always_open(),
        )

    async def see(self, revision: int) -> None:
        """The discovery finds the releases with this revision."""
        self.helm.revision_seen = revision
        await self.releases.observe_all(self.modules)

    @property
    def runs(self) -> list[str]:
        return [run.module for run in self.inbox.runs]

    def _tell(self, event: events.Event) -> None:
        match event:
            case events.ResourcesHealed():
                self.told.append(("healed", *event.resources))
            case events.Warned():
                self.warnings.append(event.text)
            case events.PartFailed():
                self.defects.append(f"{event.part}: {event.error}")
            case events.MaintenanceChanged():
                self.told.append(("maintenance", event.mode))

    async def run(self) -> None:
        await self.releases.ensure(MODULE, "x", fresh=False)
        await self.followed.follow_new()
        self.cluster.sync()

    async def after(self, seconds: float) -> None:
        self.clock.now += seconds
        await self.followed.follow_new()
        self.cluster.sync()
        await self.drift.look()

    @property
    def watched(self) -> list[str]:
        return [row["name"] for row in self.resources.view(WEB) or ()]


@pytest.fixture
def bench() -> Bench:
    return Bench()


async def test_the_resources_of_a_release_are_followed_after_a_run(bench: Bench) -> None:
    bench.cluster.put("a")
    await bench.run()
    assert bench.watched == ["a"]
    await bench.after(10)
    assert bench.runs == []


async def test_the_manifest_is_read_once_for_each_revision(bench: Bench) -> None:
    bench.cluster.put("a")
    await bench.run()
    await bench.run()
    assert bench.helm.manifests_read == 1
    bench.helm.number, bench.helm.names = 2, ("a", "b")
    bench.cluster.put("b")
    await bench.run()
    assert bench.helm.manifests_read == 2
    assert bench.watched == ["a", "b"]


async def test_a_run_tells_helm_what_cannot_be_restored_and_counts_it_as_healed(bench: Bench) -> None:
    bench.cluster.put("a")
    await bench.run()
    bench.cluster.remove("a")
    await bench.after(1)
    assert bench.runs == [WEB]
    await bench.run()
    assert bench.helm.calls[-1] == ("ensure", True, ("ConfigMap addons/a",))
    assert bench.told == [("healed", "ConfigMap addons/a")]
    await bench.after(100)
    assert bench.runs == [WEB]


async def test_a_manifest_that_cannot_be_read_is_read_again_later(bench: Bench) -> None:
    bench.helm.error = errors.AddonOperatorError("no answer")
    await bench.run()
    assert bench.warnings == ["module web: resources are not watched yet: no answer"]
    bench.helm.error = None
    await bench.after(followed_releases.RETRY / 2)
    assert bench.watched == []
    await bench.after(followed_releases.RETRY)
    assert bench.watched == ["a"]


async def test_a_defect_at_a_manifest_is_told_and_it_is_read_again_later(bench: Bench) -> None:
    bench.helm.error = TypeError("a bug")  # type: ignore[assignment] # nobody expects it
    await bench.run()
    assert (bench.defects, bench.watched) == (["followed: a bug"], [])
    bench.helm.error = None
    await bench.after(followed_releases.RETRY)
    assert bench.watched == ["a"]


@pytest.mark.parametrize(
    "error", [helm_errors.ForeignRecordError("by others"), None], ids=["foreign", "none"]
)
async def test_a_release_whose_record_others_had_changed_is_followed_as_soon_as_it_is_put_right(
    bench: Bench, error: errors.AddonOperatorError | None
) -> None:
    bench.helm.error, bench.helm.is_deployed = error, False
    await bench.see(1)
    bench.releases.follow([WEB])
    await bench.after(1)
    assert bench.watched == []
    bench.helm.error, bench.helm.is_deployed = None, True
    bench.records.looked(WEB)
    await bench.after(1)
    assert bench.watched == ["a"]


async def test_a_release_is_followed_from_the_run_on_that_made_a_revision_over_one_of_others(
    bench: Bench,
) -> None:
    bench.helm.error = helm_errors.ForeignRecordError("by others")
    await bench.see(1)
    bench.releases.follow([WEB])
    await bench.after(1)
    assert bench.watched == []
    made = bench.helm.ensure

    async def ensure(request: release_types.ReleaseRequest) -> release_types.ReleaseOutcome:
        outcome = await made(request)
        bench.helm.error = None
        return outcome

    bench.helm.changes, bench.helm.ensure = True, ensure  # type: ignore[method-assign] # the fake's
    await bench.run()
    await bench.after(1)
    assert bench.watched == ["a"]


async def test_unknown_kinds_are_looked_up_again_later(bench: Bench) -> None:
    bench.cluster.kinds = []
    await bench.run()
    await bench.after(1)
    assert bench.cluster.open == []
    bench.cluster.kinds = list(watching.KINDS)
    await bench.after(followed_releases.UNKNOWN_KIND_RETRY)
    assert len(bench.cluster.open) == 1


async def test_a_removed_release_is_followed_no_more(bench: Bench) -> None:
    bench.cluster.put("a")
    await bench.run()
    await bench.releases.remove(WEB, keep_record=True)
    assert bench.cluster.open == []
    await bench.releases.forget(WEB)
    assert bench.helm.calls[-2:] == [("remove", True, ()), ("remove", False, ())]
    bench.cluster.remove("a")
    await bench.after(10)
    assert bench.runs == []
    await bench.run()
    assert bench.watched == ["a"]


async def test_a_release_that_is_removed_while_its_manifest_is_read_is_not_followed(bench: Bench) -> None:
    await bench.releases.ensure(MODULE, "x", fresh=False)
    original = bench.helm.deployed

    async def removed_meanwhile(release: ModuleName) -> release_types.Deployed | None:
        bench.helm.deployed = original  # type: ignore[method-assign] # the fake's
        await bench.releases.remove(WEB)
        return await original(release)

    bench.helm.deployed = removed_meanwhile  # type: ignore[method-assign] # the fake's
    await bench.followed.follow_new()
    assert bench.cluster.subscriptions == []


async def test_in_maintenance_neither_helm_nor_healing_does_anything(bench: Bench) -> None:
    bench.cluster.put("a")
    await bench.run()
    bench.values.mode = "NoResourceReconciliation"
    for _ in range(2):
        await bench.run()
    bench.cluster.remove("a")
    await bench.after(100)
    assert (len(bench.helm.calls), bench.runs, bench.cluster.open) == (1, [], [])
    assert bench.told == [("maintenance", "NoResourceReconciliation")]


async def test_of_a_module_that_goes_and_comes_back_all_is_told_again_although_its_release_stayed(
    bench: Bench,
) -> None:
    bench.cluster.put("a")
    await bench.run()
    bench.releases.gone(WEB)
    assert (bench.watched, bench.cluster.open) == ([], [])
    bench.values.mode = "Suspended"
    for _ in range(2):
        await bench.run()
        bench.releases.gone(WEB)
    assert bench.told == [("maintenance", "Suspended")] * 2
    bench.values.mode = ""
    await bench.run()
    assert bench.watched == ["a"]


async def test_maintenance_begins_before_the_run_that_it_leads_to(bench: Bench) -> None:
    bench.cluster.put("a")
    await bench.run()
    bench.releases.leave_alone([WEB])
    assert bench.watched == ["a"]
    bench.values.mode = "Suspended"
    bench.releases.leave_alone([WEB])
    bench.cluster.remove("a")
    await bench.after(100)
    assert (bench.watched, bench.runs) == ([], [])


async def test_after_maintenance_what_disappeared_meanwhile_is_healed(bench: Bench) -> None:
    bench.values.mode = "NoResourceReconciliation"
    await bench.run()
    bench.values.mode = ""
    await bench.run()
    await bench.after(1)
    assert bench.told == [("maintenance", "NoResourceReconciliation"), ("maintenance", "")]
    assert bench.runs == [WEB]


async def test_a_release_is_followed_before_its_modules_run_and_whatever_becomes_of_that(
    bench: Bench,
) -> None:
    await bench.see(1)
    bench.cluster.record = await bench.helm.deployed(WEB)
    bench.releases.follow([WEB])
    await bench.after(1)
    await bench.after(1)
    assert [body["metadata"]["name"] for _, body in bench.cluster.written] == ["a"]
    assert bench.helm.calls == []
    # The run that comes then finds the same revision: its manifest is not read once more.
    reads = bench.helm.manifests_read
    await bench.run()
    assert bench.helm.manifests_read == reads


async def test_in_maintenance_a_release_is_not_followed(bench: Bench) -> None:
    await bench.see(1)
    bench.values.mode = "NoResourceReconciliation"
    bench.releases.follow([WEB])
    await bench.after(1)
    assert bench.cluster.subscriptions == []


async def test_what_another_module_has_too_is_spared_when_a_release_is_removed(bench: Bench) -> None:
    bench.cluster.put("a")
    bench.helm.names = ("a", "b")
    await bench.resources.follow(watching.DB, watching.wanted("a"))
    await bench.releases.remove(WEB)
    assert bench.helm.calls == [("remove", False, ("ConfigMap a",))]


async def test_nothing_is_removed_while_nobody_can_say_what_others_have(bench: Bench) -> None:
    bench.helm.error = errors.AddonOperatorError("no answer")
    with pytest.raises(errors.AddonOperatorError, match="no answer"):
        await bench.releases.remove(WEB)
    assert bench.helm.calls == []


async def test_what_another_module_has_too_is_left_to_it_when_the_chart_drops_it(bench: Bench) -> None:
    await bench.see(1)
    # After a start: nobody asked for the other release's resources yet.
    bench.releases.follow([watching.DB])
    bench.helm.dropped = tuple(watching.wanted("a", "b"))
    await bench.run()
    assert bench.helm.given_up == ("ConfigMap a",)


async def test_what_a_module_in_maintenance_has_too_is_its_own_before_any_run_of_it(bench: Bench) -> None:
    await bench.see(1)
    asked = watching.wanted("a", "b")
    others = bench.followed.others_of(WEB, lambda: asyncio.sleep(0, ""))
    assert await others.give_up(asked) == ()
    bench.values.mode = "Suspended"
    bench.releases.follow([watching.DB])
    assert await others.give_up(asked) == (asked[0],)
    reads = bench.helm.manifests_read
    bench.releases.follow([watching.DB])
    bench.values.mode = ""
    assert await others.give_up(asked) == (asked[0],)
    assert bench.helm.manifests_read == reads, "of the same revision nothing is read again"
    assert bench.cluster.subscriptions == []
    bench.releases.follow([watching.DB])
    await bench.after(1)
    assert bench.cluster.subscriptions != [], "it is looked after again"


@pytest.mark.parametrize("begins", [True, False])
async def test_maintenance_may_change_while_a_manifest_is_read(bench: Bench, *, begins: bool) -> None:
    await bench.see(1)
    bench.values.mode = "" if begins else "Suspended"
    bench.releases.follow([WEB])

    async def change(release: ModuleName) -> release_types.Deployed | None:
        bench.values.mode = "Suspended" if begins else ""
        bench.releases.follow([WEB])
        return await read(release)

    read, bench.helm.deployed = bench.helm.deployed, change  # type: ignore[method-assign]
    await bench.followed.follow_new()
    bench.helm.deployed = read  # type: ignore[method-assign]
    await bench.followed.follow_new()
    assert bench.watched == ([] if begins else ["a"])
    assert bench.resources.owners(WEB, watching.wanted("a")) != {}


async def drop(bench: Bench, error: errors.AddonOperatorError | None = None) -> None:
    """Have a module drop something while the record of the other release cannot be read."""
    await bench.see(1)
    bench.helm.error = error
    if error is not None:
        bench.releases.follow([watching.DB])
    bench.releases.coming_runs = lambda: [(OTHER, not bench.helm.has_newer_files)]
    bench.helm.dropped, bench.helm.has_left = tuple(watching.wanted("a")), True
    await bench.releases.ensure(MODULE, "x", fresh=False)


async def test_what_a_release_that_cannot_be_read_may_have_too_is_not_deleted_before_it_is_read(
    bench: Bench,
) -> None:
    await drop(bench, errors.AddonOperatorError("no answer"))
    assert (bench.helm.may_be_gained, bench.helm.has_moving) == (True, True)
    assert not bench.followed.is_known(bench.helm.places.of(WEB))
    bench.helm.error = None
    await bench.releases.let_go(WEB)
    assert bench.helm.has_moving, "it is not read again at once"
    bench.clock.now += followed_releases.RETRY
    # The streams of records are not of interest.
    bench.records.follow = lambda modules: None  # type: ignore[method-assign]
    work = asyncio.create_task(bench.followed.work())
    async with asyncio.timeout(60):
        await bench.helm.all_went.wait()
    work.cancel()
    assert bench.followed.is_known(bench.helm.places.of(WEB))


@pytest.mark.parametrize("has_it", [True, False])
@pytest.mark.parametrize("why", ["maintenance", "foreign", "unreadable", "newer files"])
async def test_of_a_release_that_is_not_read_for_long_its_chart_says_what_waits(
    bench: Bench, why: str, *, has_it: bool
) -> None:
    bench.helm.renders = (watching.DB,) if has_it else ()
    if why == "newer files":
        await bench.see(1)
        bench.helm.has_newer_files = True
        await drop(bench)
    elif why == "unreadable":
        edge = structs.replace(OTHER, config=module_config.ModuleConfig(namespace="edge"))
        bench.modules.append(edge)
        for unreadable in (frozenset({"edge"}), frozenset[str](), frozenset({"edge"})):
            bench.helm.unreadable = unreadable
            await bench.see(1)
            assert bench.followed.is_known(bench.helm.places.of(edge.name)) == (not unreadable)
        await drop(bench)
    elif why == "maintenance":
        await bench.see(1)
        bench.values.mode = "Suspended"
        bench.releases.leave_alone([watching.DB])
        bench.values.mode = ""
        await drop(bench)
    else:
        await drop(bench, helm_errors.ForeignRecordError("by others"))
    assert (bench.helm.may_be_gained, bench.helm.has_left) == (True, has_it)


@pytest.mark.parametrize("answers", [True, False], ids=["listed", "no list in time"])
async def test_before_helm_changes_a_release_after_a_start_what_is_absent_is_restored(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, *, answers: bool
) -> None:
    monkeypatch.setattr(followed_releases, "SETTLE", 10.0 if answers else 0.0)
    await bench.see(1)
    bench.helm.changes, bench.helm.names = True, ("a", "b")
    bench.cluster.record = await bench.helm.deployed(WEB)
    bench.cluster.put("b")
    running = asyncio.create_task(bench.releases.ensure(MODULE, "x", fresh=False))
    async with asyncio.timeout(60):
        # Manifests are read in a thread, which takes as long as it takes.
        while not bench.cluster.subscriptions:
            await clocks.settle()
    if answers:
        assert (bench.cluster.written, bench.helm.calls) == ([], [])
        bench.cluster.sync()
    await running
    assert [body["metadata"]["name"] for _, body in bench.cluster.written] == ["a"]
    assert bench.helm.calls == [("ensure", False, ())]


async def test_what_goes_after_the_run_has_looked_is_restored_before_helm_renders(bench: Bench) -> None:
    """A chart that looks up its password would make another one."""
    bench.cluster.put("a")
    bench.helm.changes = True
    await bench.run()
    bench.cluster.record = await bench.helm.deployed(WEB)
    bench.helm.meanwhile = lambda: bench.cluster.remove("a")
    await bench.run()
    assert [body["metadata"]["name"] for _, body in bench.cluster.written] == ["a"]


async def test_a_start_without_a_change_reads_no_record_before_helm_is_asked(bench: Bench) -> None:
    await bench.see(1)
    await bench.releases.ensure(MODULE, "x", fresh=False)
    assert (bench.helm.manifests_read, bench.cluster.subscriptions, bench.cluster.probed) == (0, [], [])


async def test_a_change_of_a_release_that_is_followed_costs_no_question(bench: Bench) -> None:
    bench.cluster.put("a")
    bench.helm.changes = True
    await bench.run()
    reads = bench.helm.manifests_read
    await bench.run()
    assert (bench.helm.manifests_read, bench.cluster.probed) == (reads, [])


async def test_without_a_usable_record_helm_continues_and_that_is_reported(bench: Bench) -> None:
    await bench.see(1)
    bench.helm.changes = True
    bench.helm.error = helm_errors.ReleaseRecordError("it cannot be decoded")
    await bench.releases.ensure(MODULE, "x", fresh=False)
    assert bench.helm.calls == [("ensure", False, ())]
    assert bench.warnings == [
        "module web: missing objects cannot be restored before Helm runs: it cannot be decoded"
    ]


async def test_while_it_is_not_known_what_is_absent_helm_does_not_begin(bench: Bench) -> None:
    await bench.see(1)
    bench.helm.changes = True
    bench.helm.error = errors.AddonOperatorError("no answer")
    with pytest.raises(errors.AddonOperatorError, match="no answer"):
        await bench.releases.ensure(MODULE, "x", fresh=False)
    assert bench.helm.calls == []
