"""A converge without modules: its steps are written down, and ended by the test."""

import asyncio
from collections.abc import Callable, Sequence

from addon_operator.engine import tasks
from addon_operator.kernel import errors
from addon_operator.kernel.names import ModuleName
from addon_operator.modules import plan


class FakeSteps:
    """Steps that write down what ran; a name in ``broken`` fails, one in ``gates`` waits."""

    def __init__(self) -> None:
        self.ran: list[str] = []
        self.broken: set[str] = set()
        self.misconfigured: set[str] = set()
        self.gates: dict[str, asyncio.Event] = {}
        self.plan = make_plan()
        self.values: list[object] = [0]
        self.with_crds: tuple[str, ...] = ()
        self.after_all_changes: list[object] = []
        self.ends = 0
        self.after: dict[str, set[str]] = {}
        """By the name of a step, the modules whose steps of the same kind come before it."""

    def task(self, name: str, kind: tasks.TaskKind, owner: str = "", **more: object) -> tasks.Task:
        async def run(task: tasks.Task) -> None:
            self.ran.append(name)
            if name in self.gates:
                await self.gates[name].wait()
                task.checkpoint()
            if name in self.misconfigured:
                task.step_aside()
            if name in self.broken | self.misconfigured:
                raise errors.AddonOperatorError(f"{name} is broken")
            if name == "afterAll" and self.after_all_changes:
                self.values.append(self.after_all_changes.pop())

        after = frozenset(self.after.get(name, ()))
        return tasks.Task(kind, run, owner=owner, hook=name, after=after, **more)  # type: ignore[arg-type] # the dataclass's

    def before_all(self, activation: str) -> Sequence[tasks.Task]:
        return [self.task("beforeAll", tasks.TaskKind.GLOBAL_HOOK_RUN)]

    def after_all(self, activation: str) -> Sequence[tasks.Task]:
        return [self.task("afterAll", tasks.TaskKind.GLOBAL_HOOK_RUN)]

    def discover(self, activation: str, found: Callable[[plan.ConvergePlan], None]) -> tasks.Task:
        task = self.task("discover", tasks.TaskKind.DISCOVER_MODULES, holds_queue=True, fixed_delay=5.0)
        run = task.run

        async def discover(task: tasks.Task) -> None:
            await run(task)
            found(self.plan)

        task.run = discover
        return task

    async def ensure_crds(self, enabled: Sequence[ModuleName], activation: str) -> Sequence[tasks.Task]:
        kind = tasks.TaskKind.MODULE_ENSURE_CRDS
        return [
            self.task(f"crds {module}", kind, module, lane=-1)
            for module in enabled
            if module in self.with_crds
        ]

    def run(self, module: ModuleName, activation: str) -> tasks.Task:
        return self.task(f"run {module}", tasks.TaskKind.MODULE_RUN, module)

    def delete(self, module: ModuleName, activation: str) -> tasks.Task:
        return self.task(f"delete {module}", tasks.TaskKind.MODULE_DELETE, module)

    def purge(self, release: str, activation: str) -> tasks.Task:
        return self.task(f"purge {release}", tasks.TaskKind.MODULE_PURGE, release)

    def end_unwanted(self) -> None:
        self.ends += 1

    async def global_values(self) -> object:
        return self.values[-1]


def make_plan(
    *stages: tuple[int, Sequence[str]], deletes: Sequence[str] = (), purges: Sequence[str] = ()
) -> plan.ConvergePlan:
    return plan.ConvergePlan(
        enabled=tuple(ModuleName(name) for _, modules in stages for name in modules),
        deletes=tuple(map(ModuleName, deletes)),
        stages=tuple(plan.Stage(order, tuple(map(ModuleName, modules))) for order, modules in stages),
        purges=tuple(purges),
        verdicts={},
    )
