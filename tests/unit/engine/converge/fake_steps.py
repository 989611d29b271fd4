"""A converge without hooks, Helm and a cluster: its steps are written down, and ended by the test."""

import asyncio
import dataclasses
import pathlib
from collections.abc import Iterable, Iterator, Mapping, Sequence

from typing_extensions import override

from addon_operator.engine import module_states, state, tasks
from addon_operator.engine.converge import global_hooks, module_discovery
from addon_operator.engine.modules import left_watch, module_releases, module_run
from addon_operator.hook_contract.configuration import hook_config
from addon_operator.kernel import errors
from addon_operator.kernel.names import ModuleName
from addon_operator.modules import model, module_config, plan
from addon_operator.values import store
from tests.unit.engine import fakes


@dataclasses.dataclass(frozen=True)
class Wanted:
    """What a discovery is to find."""

    modules: Sequence[model.Module]
    enabled: frozenset[str]
    releases: Mapping[str, bool]

    @property
    def observed(self) -> plan.Observed:
        verdicts = {
            module.name: model.Verdict(module.name, enabled=module.name in self.enabled, reason="")
            for module in self.modules
        }
        return plan.Observed(self.modules, verdicts, self.releases)


def make_plan(
    *stages: tuple[int, Sequence[str]],
    deletes: Sequence[str] | Mapping[str, int] = (),
    purges: Sequence[str] = (),
    requires: Mapping[str, Sequence[str]] | None = None,
) -> Wanted:
    """Enabled modules by order, disabled ones with a release and perhaps an order, releases of no module."""

    def module(name: str, order: int) -> model.Module:
        others = tuple(map(ModuleName, (requires or {}).get(name, ())))
        config = module_config.ModuleConfig(requires=module_config.Requirements(modules=others))
        return model.Module(ModuleName(name), order, pathlib.Path(name), config=config)

    modules = [module(name, order) for order, names in stages for name in names]
    enabled = frozenset(str(each.name) for each in modules)
    orders = deletes if isinstance(deletes, Mapping) else dict.fromkeys(deletes, 1)
    modules += [module(name, order) for name, order in orders.items()]
    return Wanted(modules, enabled, dict.fromkeys((*deletes, *purges), True))


class FakeSteps:
    """Steps that write down what ran; a name in ``broken`` fails, one in ``gates`` waits."""

    def __init__(self, hooks: Sequence[state.Hook] = ()) -> None:
        self.ran: list[str] = []
        self.broken: set[str] = set()
        self.misconfigured: set[str] = set()
        self.gates: dict[str, asyncio.Event] = {}
        self.values: list[object] = [0]
        self.with_crds: tuple[str, ...] = ()
        self.after_all_changes: list[object] = []
        self.taken_back: list[str] = []
        self.hooks = Hooks(self, hooks)
        self.runner = Runner(self)
        self.discovery = Discovery(self)
        self.plan = make_plan()

    @property
    def plan(self) -> Wanted:
        return self._plan

    @plan.setter
    def plan(self, wanted: Wanted) -> None:
        self._plan = wanted
        self.runner.states.replace(wanted.modules)

    async def step(self, name: str, task: tasks.Task | None = None) -> None:
        self.ran.append(name)
        if name in self.gates:
            await self.gates[name].wait()
            if task is not None:
                task.checkpoint()
        if name in self.misconfigured and task is not None:
            task.step_aside()
        if name in self.broken | self.misconfigured:
            raise errors.AddonOperatorError(f"{name} is broken")
        if name == "afterAll" and self.after_all_changes:
            self.values.append(self.after_all_changes.pop())


class Hooks(global_hooks.GlobalHooks):
    """One global hook for each step; those given are for bindings only."""

    def __init__(self, steps: FakeSteps, hooks: Sequence[state.Hook]) -> None:
        self.hooks = tuple(hooks)
        self._steps = steps

    @override
    def bound(self, binding: hook_config.LifecycleBinding, activation: str) -> Sequence[tasks.Task]:
        async def run(task: tasks.Task) -> None:
            await self._steps.step(binding.value, task)

        return [fakes.CallTask(tasks.TaskKind.GLOBAL_HOOK_RUN, run, hook=binding.value)]

    @override
    async def global_values(self) -> object:
        return self._steps.values[-1]


class Releases(module_releases.ModuleReleases):
    """Releases that nothing is done to."""

    def __init__(self) -> None:
        self._left_alone: frozenset[str] = frozenset()
        self.windows = fakes.always_open()
        self.there: set[str] = set()
        self.letting_go: asyncio.Event | None = None

    @override
    def exists(self, release: str) -> bool:
        return release in self.there

    @property
    @override
    def ignored(self) -> frozenset[str]:
        return self._left_alone

    @override
    async def observe_all(self, modules: Iterable[model.Module]) -> Mapping[str, bool]:
        return {}

    @property
    @override
    def taken_over(self) -> frozenset[str]:
        return frozenset()

    @override
    def _unconfirmed(self, release: str) -> bool:
        return False

    @override
    async def let_go(self, done: ModuleName | None = None) -> None:
        if self.letting_go is not None:
            await self.letting_go.wait()

    @override
    def converged(self) -> None:
        pass

    @override
    def moved(self, releases: Iterable[str]) -> frozenset[str]:
        return frozenset()

    @override
    def warn_of_unremembered(self, enabled: Iterable[ModuleName]) -> None:
        pass


class Runner(module_run.ModuleRunner):
    """Writes down what is done to which module."""

    def __init__(self, steps: FakeSteps) -> None:
        self.states = module_states.ModuleStates([], fakes.ignore)
        self.releases: Releases = Releases()
        self._left = left_watch.LeftWatch(fakes.Left(), self.states)
        self._fake = steps

    @override
    async def definitions_due(self, enabled: Sequence[ModuleName], activation: str) -> Sequence[tasks.Task]:
        return [
            module_run.DefinitionsTask(self, name, activation)
            for name in enabled
            if name in self._fake.with_crds
        ]

    @override
    async def define(self, name: ModuleName) -> None:
        await self._fake.step(f"crds {name}")

    @override
    def keep_only(self, enabled: Sequence[ModuleName]) -> None:
        """Nothing is bound or watched."""

    @override
    async def answer_only(self, enabled: Sequence[ModuleName]) -> None:
        """Nothing answers the API server."""

    @override
    def stop(self, name: ModuleName) -> None:
        """No call of Helm is under way."""

    @override
    def take_back(self, name: str) -> None:
        self._fake.taken_back.append(name)

    @override
    async def run(self, task: tasks.Task) -> None:
        await self._fake.step(f"run {task.owner}", task)

    @override
    async def delete(self, task: tasks.Task) -> None:
        await self._fake.step(f"delete {task.owner}", task)

    @override
    async def purge(self, release: str) -> None:
        await self._fake.step(f"purge {release}")


class Discovery(module_discovery.Discovery):
    """Finds what the test wants."""

    def __init__(self, steps: FakeSteps) -> None:
        self._fake = steps
        self.second_look: module_discovery.SecondLook | None = None
        self._states = steps.runner.states
        self._values = store.ValuesStore(())
        self._tell = fakes.ignore
        self._removals_told = frozenset()

    @override
    async def observe(
        self, releases: Mapping[str, bool], ignored: frozenset[str], moved: frozenset[str] = frozenset()
    ) -> plan.Observed:
        wanted = self._fake.plan
        await self._fake.step("discover")
        return wanted.observed

    @override
    def switched_off(self) -> Iterator[ModuleName]:
        return iter(())
