"""The engine's view of releases: what is known of them, and how a call is ended."""

import asyncio
import pathlib
from collections.abc import Iterable

import pytest
from typing_extensions import override

from addon_operator.engine import events, tasks
from addon_operator.engine.drift import drift, followed_releases, record_watch
from addon_operator.engine.modules import module_releases, module_windows
from addon_operator.helm import places, release_types
from addon_operator.helm.releases import releases as helm_releases
from addon_operator.kernel import errors
from addon_operator.kernel.names import ModuleName
from addon_operator.kube.objects import own_deletions
from addon_operator.modules import model, release
from addon_operator.values import sources, store
from addon_operator.values.schema import cel_rules, schemas
from tests.support import clocks, unused
from tests.unit.engine import fakes, watching

WEB = ModuleName("web")
MODULE = model.Module(WEB, 1, pathlib.Path("010-web"), has_chart=True)


class Manager(helm_releases.ReleaseManager):
    """Releases in memory; ``gate`` holds up each work on one."""

    def __init__(self) -> None:
        self.gate = asyncio.Event()
        self.places = places.ReleaseLocations("addons")
        self.ended: list[str] = []
        self.error: errors.AddonOperatorError | None = None
        self.last_breath = 0
        self.removals: list[str] = []
        self.unreadable: frozenset[str] = frozenset()

    @override
    async def remember(self) -> frozenset[str]:
        return self.unreadable

    @override
    def assign(self, modules: Iterable[model.Module]) -> frozenset[str]:
        return self.places.assign(modules)

    @override
    async def observe_all(self) -> dict[str, release.Revision]:
        half = {release.REMOVAL_LABEL: release.REMOVAL_BEGUN, release.MANAGED_LABEL: "true"}
        return {
            "web": release.Revision("web", 1, "deployed", {release.GO_OPERATOR_LABEL: "x"}),
            "half": release.Revision("half", 1, "uninstalled", half),
        }

    @override
    def is_ours(self, revision: release.Revision) -> bool:
        return revision.ours

    @override
    async def ensure(self, request: release_types.ReleaseRequest) -> release_types.ReleaseOutcome:
        try:
            await self.gate.wait()
        except asyncio.CancelledError:
            try:
                for _ in range(self.last_breath):
                    await asyncio.sleep(0)
            finally:
                self.ended.append(request.module)
            raise
        if self.error is not None:
            raise self.error
        return release_types.ReleaseOutcome(
            release_types.ReleaseAction.INSTALLED, "as the test says", 1, release.Checksum("x")
        )

    @override
    async def deployed(self, module: ModuleName) -> release_types.Deployed | None:
        return release_types.Deployed(1, f"# manifest of {module}\n")

    @property
    @override
    def has_moving(self) -> bool:
        return False

    @override
    async def remove(
        self,
        module: ModuleName,
        *,
        keep_record: bool = False,
        others: release_types.Others = release_types.Others(),  # noqa: B008 - holds nothing
        directory: pathlib.Path | None = None,
    ) -> bool:
        self.removals.append(f"{module}, record kept" if keep_record else module)
        return module != "half"


class Reported(fakes.Heard):
    @property
    def ensured(self) -> list[str]:
        return [event.module for event in self.of(events.ReleaseEnsured)]

    @property
    def removed(self) -> list[str]:
        return [event.module for event in self.of(events.Noted)]


def releases_of(
    manager: Manager,
    values: store.ValuesStore,
    reported: Reported,
    ignored: frozenset[str] = frozenset(),
    windows: module_windows.ModuleWindows | None = None,
) -> module_releases.ModuleReleases:
    cluster, clock = watching.Cluster(), clocks.Clock()
    resources, deletions = watching.resources_of(cluster), own_deletions.OwnDeletions()
    drifted = drift.Drift(
        resources,
        watching.restorer_of(cluster),
        deletions,
        reported.append,
        fakes.Inbox(),
        clock,
    )
    followed = followed_releases.FollowedReleases(
        manager,
        resources,
        drifted,
        watching.content_of(resources, drifted),
        unused.unused(record_watch.RecordWatch),
        lambda _: None,
        clock,
    )
    return module_releases.ModuleReleases(
        manager,
        values,
        drifted,
        followed,
        watching.healths_of(resources),
        reported.append,
        windows or fakes.always_open(),
        ignored=ignored,
    )


@pytest.fixture
def manager() -> Manager:
    return Manager()


@pytest.fixture
def reported() -> Reported:
    return Reported()


@pytest.fixture
def releases(manager: Manager, reported: Reported) -> module_releases.ModuleReleases:
    values = store.ValuesStore([store.ModuleValues(WEB)])
    return releases_of(manager, values, reported)


async def test_a_release_exists_once_it_was_seen_or_made(
    releases: module_releases.ModuleReleases, manager: Manager, reported: Reported
) -> None:
    manager.gate.set()
    await releases.ensure(MODULE, "onStartup", fresh=False)
    assert releases.exists("web")
    await releases.remove("web")
    assert not releases.exists("web")
    assert (reported.ensured, reported.removed) == (["web"], ["web"])
    assert await releases.observe_all([MODULE]) == {"web": True, "half": True}
    assert releases.exists("web")


async def test_a_removal_that_an_earlier_process_began_is_unfinished_until_it_is_forgotten(
    releases: module_releases.ModuleReleases, manager: Manager, reported: Reported
) -> None:
    await releases.observe_all([MODULE])
    assert not releases.exists("half"), "there is nothing to uninstall any more"
    await releases.forget("half")
    await releases.forget("half")
    assert (manager.removals, reported.removed) == (["half"], [])


async def test_the_record_of_a_removal_is_kept_until_it_is_forgotten(
    releases: module_releases.ModuleReleases, manager: Manager, reported: Reported
) -> None:
    await releases.observe_all([MODULE])
    await releases.remove("web", keep_record=True)
    assert (reported.removed, releases.exists("web")) == (["web"], False)
    await releases.forget("web")
    assert manager.removals == ["web, record kept", "web"]


async def test_a_stopped_call_is_ended_and_gives_way(
    releases: module_releases.ModuleReleases, manager: Manager, reported: Reported
) -> None:
    work = asyncio.create_task(releases.ensure(MODULE, "onStartup", fresh=False))
    await clocks.settle()
    releases.stop(WEB)
    with pytest.raises(tasks.SupersededError, match="release web"):
        await work
    assert manager.ended == ["web"]
    assert reported.ensured == []


async def test_stopping_what_does_not_run_changes_nothing(
    releases: module_releases.ModuleReleases, manager: Manager, reported: Reported
) -> None:
    releases.stop(WEB)
    manager.gate.set()
    await releases.ensure(MODULE, "onStartup", fresh=False)
    assert reported.ensured == ["web"]


@pytest.mark.parametrize("cancellations", [1, 3])
async def test_a_cancelled_run_has_no_helm_left_when_it_ends(
    releases: module_releases.ModuleReleases, manager: Manager, cancellations: int
) -> None:
    manager.last_breath = 10
    work = asyncio.create_task(releases.ensure(MODULE, "onStartup", fresh=False))
    await clocks.settle()
    for _ in range(cancellations):
        work.cancel()
        await asyncio.sleep(0)
    with pytest.raises(asyncio.CancelledError):
        await work
    assert manager.ended == ["web"]


async def test_an_error_of_helm_is_passed_on(
    releases: module_releases.ModuleReleases, manager: Manager
) -> None:
    manager.gate.set()
    manager.error = errors.ModuleError("web", "helm says no")
    with pytest.raises(errors.ModuleError, match="helm says no"):
        await releases.ensure(MODULE, "onStartup", fresh=False)
    releases.stop(WEB)


async def test_an_ignored_release_is_never_removed(manager: Manager, reported: Reported) -> None:
    values = store.ValuesStore([store.ModuleValues(WEB)])
    releases = releases_of(manager, values, reported, frozenset({"web", "half"}))
    await releases.observe_all([MODULE])
    assert not releases.exists("web"), "its module is deleted without Helm"
    await releases.remove("web", keep_record=True)
    await releases.forget("web")
    await releases.forget("half")
    assert (manager.removals, reported.removed) == ([], [])


def test_sensitive_values_stay_out_of_messages() -> None:
    schema = "type: object\nproperties: {password: {type: string, x-sensitive: true}}\n"
    own = sources.parse_module_values(WEB, "web: {password: hunter2, size: small}", "values.yaml")
    read = schemas.load_schemas(None, (schema, "values.yaml"), cel_rules.CelEvaluator())
    values = store.ValuesStore([store.ModuleValues(WEB, own=own, schemas=read)])
    request = module_releases.request_of(values, MODULE)
    assert request.redact("hunter2 is small") == "*** is small"
    assert request.values["web"] == {"password": "hunter2", "size": "small"}
