"""The tasks that a converge is made of."""

import asyncio
import collections
import pathlib
from collections.abc import Iterable, Mapping, Sequence

import pytest
from msgspec import structs
from typing_extensions import override

from addon_operator.engine import events, module_states, state
from addon_operator.engine.converge import module_discovery
from addon_operator.engine.modules import left_watch, module_run
from addon_operator.kernel import errors, names
from addon_operator.modules import findings, model, module_config, plan
from addon_operator.values import store
from tests.support import rows
from tests.unit.engine import fakes
from tests.unit.engine.converge import fake_steps

WEB = names.ModuleName("web")


class Discovery(module_discovery.Discovery):
    """Finds what a test says, or fails."""

    def __init__(
        self, states: module_states.ModuleStates, found: plan.Observed | Exception, heard: fakes.Heard
    ) -> None:
        self._states = states
        self.second_look = None
        self._values = store.ValuesStore(())
        self._tell = heard.append
        self._removals_told = frozenset()
        self.found = found
        self.asked = 0

    @override
    async def observe(
        self, releases: Mapping[str, bool], ignored: frozenset[str], moved: frozenset[str] = frozenset()
    ) -> plan.Observed:
        self.asked += 1
        if isinstance(self.found, Exception):
            raise self.found
        return self.found


class Releases(fake_steps.Releases):
    """A module's release that moved to another namespace."""

    def __init__(self, error: errors.AddonOperatorError | None = None) -> None:
        super().__init__()
        self._error = error
        self.known: int | None = None
        self.removed: list[str] = []

    @override
    def successor(self, release: str) -> names.ModuleName | None:
        return WEB if release == "addons/web" else None

    @override
    def revision(self, release: str) -> int | None:
        return self.known

    @override
    def _unconfirmed(self, release: str) -> bool:
        return False

    @override
    async def remove(
        self, release: str, *, keep_record: bool = False, directory: pathlib.Path | None = None
    ) -> None:
        self.removed.append(release)

    @override
    def follow(self, modules: Iterable[names.ModuleName]) -> None:
        """Nothing is watched."""

    @override
    async def observe_all(self, modules: Iterable[model.Module]) -> Mapping[str, bool]:
        if self._error is not None:
            raise self._error
        return {}


class Runner(module_run.ModuleRunner):
    """Nothing of the modules is at work but their releases."""

    def __init__(self, states: module_states.ModuleStates, releases: Releases) -> None:
        self.states = states
        self.releases = releases
        self._left = left_watch.LeftWatch(fakes.Left(), states)
        self._alone = collections.defaultdict(asyncio.Lock)

    @override
    async def answer_only(self, enabled: Sequence[names.ModuleName]) -> None:
        """Nothing answers the API server."""


async def test_a_failed_discovery_is_counted() -> None:
    states = module_states.ModuleStates([model.Module(WEB, 10, pathlib.Path("010-web"))], fakes.ignore)
    heard = fakes.Heard()
    error = errors.AddonOperatorError("the API server does not answer")
    task = module_discovery.DiscoverTask(
        Discovery(states, error, heard), Runner(states, Releases()), "onStartup"
    )
    with pytest.raises(errors.AddonOperatorError):
        await task.run()
    assert (len(heard.of(events.DiscoveryFailed)), states[WEB].last_error) == (1, "")


async def test_each_removal_and_each_that_is_put_off_is_told_once() -> None:
    module = model.Module(WEB, 10, pathlib.Path("010-web"))
    states = module_states.ModuleStates([module], fakes.ignore)
    verdict = model.Verdict(WEB, enabled=False, reason="no one wants it")
    heard = fakes.Heard()
    observed = plan.Observed([module], {WEB: verdict}, {"web": True, "old": True})
    discovery, runner = Discovery(states, observed, heard), Runner(states, Releases())

    async def told() -> list[str]:
        before = len(heard)
        await module_discovery.DiscoverTask(discovery, runner, "onStartup").run()
        of_removals = (events.RemovalDue, events.Warned)
        return [event.text for event in heard[before:] if isinstance(event, of_removals)]

    assert await told() == [
        "module web is deleted: no one wants it",
        "release old is purged: no module directory explains it, and an addon-operator made it",
    ]
    assert (await told(), states.withholds) == ([], False)
    discovery.found = structs.replace(observed, hidden_by="values.yaml, line 2: no")
    [line] = await told()
    assert line.startswith(
        "release old stays for now: no module directory explains it, but something on disk"
    )
    assert line.endswith(" is wrong: values.yaml, line 2: no")
    assert (await told(), states.withholds) == ([], True)
    wanted = {WEB: structs.replace(verdict, enabled=True)}
    discovery.found = plan.Observed([module], wanted, {"web": True})
    [line] = await told()
    assert line.startswith("release web stays as it is, because module web has no chart any more")
    assert states[WEB].texts(findings.CHART_LOST) == (line,)
    states.replace([structs.replace(module, has_chart=True)])
    assert states[WEB].texts(findings.CHART_LOST) == (), "it is back, and no discovery follows"
    assert (await told(), states.withholds) == ([], False)


async def test_releases_that_cannot_be_listed_are_an_error_before_any_script_runs() -> None:
    states = module_states.ModuleStates([model.Module(WEB, 10, pathlib.Path("010-web"))], fakes.ignore)
    away = errors.AddonOperatorError("the API server is away")
    discovery = Discovery(states, AssertionError(), fakes.Heard())
    task = module_discovery.DiscoverTask(discovery, Runner(states, Releases(away)), "onStartup")
    with pytest.raises(errors.AddonOperatorError, match="away"):
        await task.run()
    assert discovery.asked == 0


@rows.each(
    ("known", "status", "is_enabled", "goes"),
    [
        (None, state.ModuleStatus.READY, True, False),
        (1, state.ModuleStatus.FAILED, True, False),
        (1, state.ModuleStatus.READY, True, True),
        (None, state.ModuleStatus.DISABLED, False, True),
    ],
    ids=["not there", "not well", "there", "not wanted"],
)
@rows.each(
    ("release", "stays"),
    [
        ("addons/web", "its release was addons/web and stays until .* edge/web"),
        ("old", "release old stays until module web is installed, which may take over what is in it"),
    ],
    ids=["moves", "is left over"],
)
async def test_a_release_goes_when_what_may_take_it_over_is_there(
    known: int | None, status: state.ModuleStatus, is_enabled: bool, goes: bool, release: str, stays: str
) -> None:
    config = module_config.ModuleConfig(namespace="edge")
    module = model.Module(WEB, 10, pathlib.Path("010-web"), has_chart=True, config=config)
    states, releases = module_states.ModuleStates([module], fakes.ignore), Releases()
    states.enabled = (WEB,) if is_enabled else ()
    states.mark(WEB, status)
    releases.known = known
    task = module_run.ReleasePurgeTask(Runner(states, releases), release, "x")
    if goes:
        await task.run()
        assert releases.removed == [release]
    else:
        with pytest.raises(errors.AddonOperatorError, match=stays):
            await task.run()
        assert releases.removed == []


async def test_runs_come_after_those_of_required_modules_and_deletes_after_those_of_what_requires_them() -> (
    None
):
    db = names.ModuleName("db")
    requires = module_config.Requirements(modules=(db,))
    web = model.Module(WEB, 10, pathlib.Path("010-web"), config=module_config.ModuleConfig(requires=requires))
    states = module_states.ModuleStates([web, model.Module(db, 10, pathlib.Path("010-db"))], fakes.ignore)
    runner = Runner(states, Releases())
    runs = [module_run.ModuleRunTask(runner, name, "") for name in (WEB, db)]
    assert [task.after for task in runs] == [{"db"}, frozenset()]
    deletes = [module_run.ModuleDeleteTask(runner, name, "") for name in (WEB, db)]
    assert [task.after for task in deletes] == [frozenset(), {"web"}]
