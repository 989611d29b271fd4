"""The tasks that a converge is made of."""

import dataclasses
import pathlib
from collections.abc import Mapping
from typing import cast

import pytest

from addon_operator.engine import events, state
from addon_operator.engine.bindings import hook_bindings
from addon_operator.engine.converge import module_discovery, task_factory
from addon_operator.engine.hooks import hook_run
from addon_operator.engine.modules import module_crds, module_hooks, module_releases, module_run
from addon_operator.kernel import errors, names
from addon_operator.modules import model, module_config, plan
from addon_operator.values import store
from tests.unit.engine import fakes

WEB = names.ModuleName("web")


class Discovery:
    def __init__(self, error: Exception) -> None:
        self._error = error
        self.asked = 0

    async def observe(self, releases: Mapping[str, bool], *_: frozenset[str]) -> plan.Observed:
        self.asked += 1
        raise self._error


class Releases:
    def __init__(self, error: errors.AddonOperatorError | None = None) -> None:
        self._error = error
        self.known: int | None = None
        self.removed: list[str] = []

    def successor(self, release: str) -> names.ModuleName | None:
        return WEB if release == "addons/web" else None

    def moved(self, _releases: object) -> frozenset[str]:
        return frozenset()

    def revision(self, _release: str) -> int | None:
        return self.known

    async def remove(self, release: str) -> None:
        self.removed.append(release)

    def follow(self, modules: object) -> None:
        """Nothing is watched."""

    ignored: frozenset[str] = frozenset()

    async def observe_all(self, _modules: object) -> Mapping[str, bool]:
        if self._error is not None:
            raise self._error
        return {}


def factory(
    states: state.ModuleStates, discovery: Discovery, releases: Releases, heard: fakes.Heard
) -> task_factory.TaskFactory:
    runner = module_run.ModuleRunner(
        states,
        cast("module_hooks.ModuleHooks", None),
        cast("hook_run.HookExecutor", None),
        cast("hook_bindings.HookBindings", None),
        cast("module_releases.ModuleReleases", releases),
        heard.append,
    )
    return task_factory.TaskFactory(
        store.ValuesStore(()),
        cast("task_factory.GlobalHooks", None),
        cast("module_discovery.Discovery", discovery),
        runner,
        cast("module_crds.ModuleCrds", None),
        heard.append,
    )


@pytest.mark.parametrize(
    ("error", "shown"),
    [
        (errors.ModuleError(WEB, "its enabled script failed"), "module web: its enabled script failed"),
        (errors.AddonOperatorError("the API server does not answer"), ""),
    ],
    ids=["of a module", "of all"],
)
async def test_a_failed_discovery_is_counted_and_shown_at_its_module(
    error: errors.AddonOperatorError, shown: str
) -> None:
    states = state.ModuleStates([model.Module(WEB, 10, pathlib.Path("010-web"))], fakes.ignore)
    heard = fakes.Heard()
    made = factory(states, Discovery(error), Releases(), heard)
    task = made.discover("onStartup", lambda _plan: None)
    with pytest.raises(type(error)):
        await task.run(task)
    assert (len(heard.of(events.DiscoveryFailed)), states[WEB].last_error) == (1, shown)


class Found:
    """A discovery that finds what a test says."""

    def __init__(self, observed: plan.Observed) -> None:
        self.observed = observed

    async def observe(self, *_: object) -> plan.Observed:
        return self.observed


async def test_each_removal_and_each_that_is_put_off_is_told_once() -> None:
    module = model.Module(WEB, 10, pathlib.Path("010-web"))
    states = state.ModuleStates([module], fakes.ignore)
    verdict = model.Verdict(WEB, enabled=False, reason="no one wants it")
    found = Found(plan.Observed([module], {WEB: verdict}, {"web": True, "old": True}))
    heard = fakes.Heard()
    made = factory(states, cast("Discovery", found), Releases(), heard)

    async def told() -> list[str]:
        before = len(heard)
        task = made.discover("onStartup", lambda _plan: None)
        await task.run(task)
        of_removals = (events.RemovalDue, events.Warned)
        return [event.text for event in heard[before:] if isinstance(event, of_removals)]

    assert await told() == [
        "module web is deleted: no one wants it",
        "release old is purged: no module directory explains it, and an addon-operator made it",
    ]
    assert (await told(), states.withholds) == ([], False)
    found.observed = dataclasses.replace(found.observed, hidden_by="values.yaml, line 2: no")
    [line] = await told()
    assert line.startswith(
        "release old stays for now: no module directory explains it, but something on disk"
    )
    assert line.endswith(" is wrong: values.yaml, line 2: no")
    assert (await told(), states.withholds) == ([], True)


async def test_releases_that_cannot_be_listed_are_an_error_before_any_script_runs() -> None:
    states = state.ModuleStates([model.Module(WEB, 10, pathlib.Path("010-web"))], fakes.ignore)
    discovery, away = Discovery(AssertionError()), errors.AddonOperatorError("the API server is away")
    task = factory(states, discovery, Releases(away), fakes.Heard()).discover("onStartup", lambda _plan: None)
    with pytest.raises(errors.AddonOperatorError, match="away"):
        await task.run(task)
    assert discovery.asked == 0


@pytest.mark.parametrize(
    ("known", "status", "is_enabled", "goes"),
    [
        (None, state.ModuleStatus.READY, True, False),
        (1, state.ModuleStatus.FAILED, True, False),
        (1, state.ModuleStatus.READY, True, True),
        (None, state.ModuleStatus.DISABLED, False, True),
    ],
    ids=["not there", "not well", "there", "not wanted"],
)
async def test_a_release_that_moves_goes_when_the_new_one_is_there(
    known: int | None, status: state.ModuleStatus, is_enabled: bool, goes: bool
) -> None:
    config = module_config.ModuleConfig(namespace="edge")
    module = model.Module(WEB, 10, pathlib.Path("010-web"), has_chart=True, config=config)
    states, releases = state.ModuleStates([module], fakes.ignore), Releases()
    states.enabled = (WEB,) if is_enabled else ()
    states.mark(WEB, status)
    releases.known = known
    made = factory(states, Discovery(AssertionError()), releases, fakes.Heard())
    if goes:
        task = made.purge("addons/web", "x")
        await task.run(task)
        assert releases.removed == ["addons/web"]
    else:
        task = made.purge("addons/web", "x")
        with pytest.raises(
            errors.ModuleError, match=r"its release was addons/web and stays until .* edge/web"
        ):
            await task.run(task)
        assert releases.removed == []


async def test_runs_come_after_those_of_required_modules_and_deletes_after_those_of_what_requires_them() -> (
    None
):
    db = names.ModuleName("db")
    requires = module_config.Requirements(modules=(db,))
    web = model.Module(WEB, 10, pathlib.Path("010-web"), config=module_config.ModuleConfig(requires=requires))
    states = state.ModuleStates([web, model.Module(db, 10, pathlib.Path("010-db"))], fakes.ignore)
    made = factory(states, Discovery(errors.AddonOperatorError("")), Releases(), fakes.Heard())
    assert [made.run(name, "").after for name in (WEB, db)] == [{"db"}, frozenset()]
    assert [made.delete(name, "").after for name in (WEB, db)] == [frozenset(), {"web"}]
