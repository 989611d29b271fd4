"""Converge, the original's "reload all modules": bring the cluster to what the sources say.

1. Run the ``beforeAll`` hooks, one after another.
2. Discover the modules: verdicts of flags, requirements and ``enabled`` scripts, and a plan of what follows.
3. Apply the definitions (CRDs) of all enabled modules: any of them may have objects of another's kinds.
4. Begin to delete the disabled modules that left something behind, in reverse run order.
5. Run the enabled modules, stage by stage; a stage is the modules of one order, side by side. One that fails,
   or whose hook does not come to its end, holds up first installs of higher orders and what requires it; what
   has a release runs. Then delete what left a release meanwhile and is in no other one.
6. Begin to purge the releases that no module directory explains, as a second look has found, too.
7. Run the ``afterAll`` hooks. If they changed global values, all begins again; after some rounds in a row
   only with a growing delay, so that hooks that never agree do not upgrade releases without end.

Each step puts tasks into the ``main`` queue and waits for them: the hooks and the discovery until they
succeed, definitions for their first try only, and module runs as ``CONVERGE_ON_FAILURE`` says. Deletes and
purges have a queue of their own, and nothing waits for them; a discovery that finds their module enabled
takes them back. A newer intent ends a converge at any of these waits: what has not begun is
dropped, what runs stops at its next step, and the next converge starts at 1.
"""

import asyncio
import enum
import functools
import random
import time
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from typing import Final

import msgspec
from msgspec import structs

from addon_operator.aio import waiting
from addon_operator.engine import events, tasks
from addon_operator.engine.converge import global_hooks, module_discovery
from addon_operator.engine.modules import module_run
from addon_operator.engine.queues import queue_set, task_queue
from addon_operator.engine.state import ConvergeState
from addon_operator.hook_contract.configuration import hook_config
from addon_operator.kernel import names
from addon_operator.modules import model, plan

ACTIVATION_AFTER_ALL: Final = "AfterAllHooksChangeGlobalValues"
ACTIVATION_ABSENCE: Final = "Absence"
"""A second look at what seemed to be gone is due."""
AT_ONCE: Final = 5
"""Rounds in a row that follow without a delay."""
GIVE_WAY: Final = 3
"""Converges in a row that give way to what hooks change on events and ticks."""
LOOK_AGAIN: Final = 1.0
"""Seconds between two looks at whether a converge that does not give way is stalled."""


class OnFailure(enum.StrEnum):
    """What a failing module does to modules with a higher number (setting ``CONVERGE_ON_FAILURE``)."""

    WAIT = "wait"
    CONTINUE = "continue"


class ConvergeBackoff:
    """Counts the rounds since global values were last left alone, or something else asked for a converge.

    The documents converge again whenever an ``afterAll`` hook changed global values. Hooks that never agree
    would keep every module running and could upgrade every release again and again; so only some rounds
    follow at once, and later ones with the delays of a failing task.
    """

    def __init__(self, rng: random.Random | None = None) -> None:
        self._rng = rng or random.Random()  # noqa: S311 # jitter
        self.rounds = 0
        """Converges in a row whose ``afterAll`` hooks changed global values."""

    def reset(self) -> None:
        """Start counting again."""
        self.rounds = 0

    def changed(self) -> float:
        """Count a round; seconds until the next one may begin, 0 for at once."""
        self.rounds += 1
        late = self.rounds - AT_ONCE
        return task_queue.retry_delay(late, self._rng) if late > 0 else 0.0


class _SupersededError(Exception):
    """A newer intent came; never leaves this file."""


class _Progress(msgspec.Struct):
    number: int
    activation: str
    planned: set[names.ModuleName] = msgspec.field(default_factory=set)
    """Modules whose run in this converge is still to be queued."""
    is_planned: bool = False
    """Whether that is known."""
    queued: list[tasks.Task] = msgspec.field(default_factory=list)
    """All tasks that it has queued."""
    runs: list[tasks.Task] = msgspec.field(default_factory=list)
    """The module runs whose success the converge needs."""

    def is_held(self, task: tasks.Task) -> bool:
        """Say whether the task waits for one that comes before it, which failed or waits itself."""
        return bool(task.after) and any(
            other.kind is task.kind and other.owner in task.after and not other.done.done()
            for other in self.queued
        )


class Converger:
    """Runs one converge at a time, always of the newest intent."""

    def __init__(
        self,
        queues: queue_set.QueueSet,
        hooks: global_hooks.GlobalHooks,
        discovery: module_discovery.Discovery,
        runner: module_run.ModuleRunner,
        tell: events.Listener,
        *,
        on_failure: OnFailure = OnFailure.WAIT,
        timers: waiting.Timers | None = None,
    ) -> None:
        self._queue = queues.main
        self._removals = queues.removals
        self.hooks = hooks
        """The global hooks."""
        self._discovery = discovery
        self._runner = runner
        self._tell = tell
        self._on_failure = on_failure
        self._timers = timers
        self._backoff = ConvergeBackoff()
        self._later: asyncio.TimerHandle | None = None
        self._second_look: asyncio.TimerHandle | None = None
        self._times_given_way = 0
        self._postponed: str | None = None
        self._wanted: str | None = None
        self._wake = asyncio.Event()
        self._progress: _Progress | None = None
        self._count = 0
        self.first_done = asyncio.Event()
        """Set once a converge went through."""

    @property
    def state(self) -> ConvergeState:
        """Whether a converge runs or is wanted."""
        if self._progress is not None or self._wanted is not None:
            return ConvergeState.RUNNING
        return ConvergeState.IDLE if self.first_done.is_set() else ConvergeState.NOT_STARTED

    @property
    def is_stalled(self) -> bool:
        """Whether only retries of failing modules, waits for health, and what waits for these are left."""
        if self._progress is None:
            return False
        queued = [task for task in self._queue.tasks if task.converge == self._progress.number]
        stuck = {task.owner for task in self._queue.tasks if task.is_stuck}
        stuck |= {task.owner for task in queued if task.attempts > 0 or task.postponed}
        stuck.discard(tasks.GLOBAL_OWNER)
        for task in queued:
            if not stuck.isdisjoint(task.after):
                stuck.add(task.owner)
        return bool(queued) and all(task.owner in stuck for task in queued)

    @property
    def remaining(self) -> int:
        """Number of tasks that the running converge has queued or planned."""
        if self._progress is None:
            return 0
        queued = sum(task.converge == self._progress.number for task in self._queue.tasks)
        return queued + len(self._progress.planned)

    def is_switched_on(self, owner: str) -> bool:
        """Say whether a module is to be enabled, although no discovery may have said so yet."""
        return self._discovery.is_switched_on(owner)

    def request(self, activation: str) -> None:
        """Converge to what the sources say now; a running converge gives way. Many requests make one."""
        if self._later is not None:
            self._later.cancel()
            self._later = None
        if activation != ACTIVATION_AFTER_ALL:
            self._backoff.reset()
        self._postponed = None
        self._wanted = activation
        self._queue.drop(lambda task: task.converge is not None or task.kind is tasks.TaskKind.MODULE_RUN)
        for module in self._discovery.switched_off():
            self._runner.stop(module)
        self._wake.set()

    def request_by_hook(self, activation: str) -> None:
        """Converge to what a hook changed.

        Some converges in a row give way to that. The one after them goes on until it is done or stalled:
        hooks that change something all the time must not keep the last modules from ever being run.
        """
        if self._progress is None or self._wanted is not None:
            self.request(activation)
        elif self._times_given_way < GIVE_WAY or self.is_stalled:
            self._times_given_way += 1
            self.request(activation)
        elif self._postponed is None:
            self._postponed = activation
            self._retry_request()

    def _retry_request(self) -> None:
        """Begin what was put off once the converge is stalled."""
        if self._postponed is not None and self.is_stalled:
            self.request(self._postponed)
        elif self._postponed is not None:
            timers = self._timers or asyncio.get_running_loop()
            self._later = timers.call_later(LOOK_AGAIN, self._retry_request)

    def coming_runs(self) -> Iterator[tuple[model.Module, bool]]:
        """Yield the enabled modules, and of each whether a run that changes its release is on its way.

        As long as that is not known, one is, and any module may be enabled. A module whose try has failed may
        take for ever, and the files of one that is neither planned nor queued may be newer than what was read
        of them.
        """
        states, progress = self._runner.states, self._progress
        is_known = self._wanted is None and (progress is None or progress.is_planned)
        every = [module.name for module in states.modules]
        planned = set(every) if not is_known else set() if progress is None else progress.planned
        queued = {
            task.owner: task.attempts == 0
            for task in self._queue.tasks
            if task.kind is tasks.TaskKind.MODULE_RUN and task.waits_since is None
        }
        for name in states.enabled if is_known and self._postponed is None else every:
            yield states[name].module, queued.get(name, name in planned)

    def will_run(self, module: names.ModuleName) -> bool:
        """Say whether a converge that is wanted or under way has yet to begin a run of the module."""
        return self._wanted is not None or (self._progress is not None and module in self._progress.planned)

    async def work(self) -> None:
        """Converge whenever it is requested, until cancelled."""
        try:
            while True:
                await self._wake.wait()
                self._wake.clear()
                while self._wanted is not None:
                    activation, self._wanted = self._wanted, None
                    await self._one(activation)
        finally:
            self._discovery.scripts.end()

    async def _one(self, activation: str) -> None:
        self._count += 1
        self._progress = _Progress(self._count, activation)
        self._tell(events.ConvergeStarted(activation))
        began = time.monotonic()
        superseded = True
        try:
            await self._converge(self._progress)
            superseded = False
        except _SupersededError:
            pass
        finally:
            self._progress = None
            self._tell(events.ConvergeEnded(activation, time.monotonic() - began, superseded))
        if not superseded and self._wanted is None:
            self.first_done.set()
            self._runner.releases.converged()
            self._times_given_way = 0
            if self._postponed is not None:
                self.request(self._postponed)
        elif superseded and self._wanted is None and self._queue.is_open:
            # Something of it was dropped by somebody who wants no converge; the rest is still to be done.
            self.request(self._postponed or activation)

    def _look_twice(self) -> None:
        """Have a second look follow at what seems to be gone, if anything does."""
        if self._second_look is not None:
            self._second_look.cancel()
            self._second_look = None
        second_look = self._discovery.second_look
        if second_look is not None and (due := second_look.converged()) is not None:
            timers = self._timers or asyncio.get_running_loop()
            self._second_look = timers.call_later(due, self._look_now)

    def _look_now(self) -> None:
        """Converge for that; one that runs is done before, or stalled."""
        self._second_look = None
        if self._progress is None:
            self.request(ACTIVATION_ABSENCE)
        elif self._postponed is None:
            self._postponed = ACTIVATION_ABSENCE
            self._retry_request()

    async def _converge(self, progress: _Progress) -> None:
        """Take the steps that this module's docstring tells, in their order."""
        runner, activation = self._runner, progress.activation
        await self._each(progress, self.hooks.bound(hook_config.LifecycleBinding.BEFORE_ALL, activation))
        decided = await self._discover(progress)
        definitions = await runner.definitions_due(decided.enabled, activation)
        await self._together(progress, definitions, wait=_first_try)
        self._begin(module_run.ModuleDeleteTask(runner, name, activation) for name in decided.deletes)
        for verdict in decided.verdicts.values():
            if verdict.error is not None and not verdict.enabled:
                # Nothing waits for it: its enabled script is asked again, with its own backoff.
                self._queue.add(module_run.ModuleRunTask(runner, verdict.module, activation))
        # A module whose definitions the API server refuses fails by itself; the stage goes on without it.
        held = frozenset(task.owner for task in definitions if not task.done.done())
        late = [late for stage in decided.stages if (late := await self._begin_stage(progress, stage, held))]
        for stage in late:
            lower = [run for run in progress.runs if run.lane is not None and run.lane < stage.order]
            await self._succeed(progress, lower)
            await self._stage(progress, stage, held)
        await self._succeed(progress, progress.runs)
        await runner.releases.let_go()
        # What came meanwhile may be the directory of a module whose release would be purged.
        self._give_way()
        self._begin(module_run.ReleasePurgeTask(runner, release, activation) for release in decided.purges)
        self._look_twice()
        changing = await self._after_all(progress)
        if not changing:
            self._backoff.reset()
        if not changing or not self._start_over(changing):
            await self._stragglers(progress)

    def _begin(self, removals: Iterable[tasks.Task]) -> None:
        """Queue the removals that are not queued or under way yet."""
        under_way = self._removals.owners
        for task in removals:
            if task.owner not in under_way:
                self._removals.add(task)

    async def _after_all(self, progress: _Progress) -> Sequence[str]:
        """Run the hooks; those that changed global values if these differ in the end."""
        hooks = self.hooks
        before, changing = await hooks.global_values(), []
        for task in hooks.bound(hook_config.LifecycleBinding.AFTER_ALL, progress.activation):
            earlier = await hooks.global_values()
            await self._together(progress, [task], wait=_success)
            if await hooks.global_values() != earlier:
                changing.append(task.hook)
        return changing if await hooks.global_values() != before else ()

    def _start_over(self, changing: Sequence[str]) -> bool:
        """Ask for the next converge; return whether it follows at once."""
        delay = self._backoff.changed()
        if not delay:
            self.request(ACTIVATION_AFTER_ALL)
            return True
        self._tell(events.ConvergeUnsettled(self._backoff.rounds, changing, delay))
        timers = self._timers or asyncio.get_running_loop()
        self._later = timers.call_later(delay, functools.partial(self.request, ACTIVATION_AFTER_ALL))
        return False

    async def _stragglers(self, progress: _Progress) -> None:
        """Require success of modules that nothing waited for before the converge counts as done."""
        if not all([await _success(run) for run in progress.runs]):
            raise _SupersededError

    async def _discover(self, progress: _Progress) -> plan.ConvergePlan:
        task = module_discovery.DiscoverTask(self._discovery, self._runner, progress.activation)
        await self._each(progress, [task])
        if task.plan is None:
            raise AssertionError("a discovery that is done has a plan")
        enabled = frozenset(task.plan.enabled)
        progress.planned = {module for stage in task.plan.stages for module in stage.modules}
        progress.is_planned = True
        # A run that was wanted before this discovery would come before the removal, or hold it up.
        self._queue.drop(lambda task: task.kind is tasks.TaskKind.MODULE_RUN and task.owner not in enabled)
        for name in sorted(enabled & self._removals.owners):
            self._runner.take_back(name)
        self._removals.drop(lambda task: task.owner in enabled)
        return task.plan

    async def _begin_stage(
        self, progress: _Progress, stage: plan.Stage, held: frozenset[str]
    ) -> plan.Stage | None:
        """Run the modules that no module of a lower order holds up; return the others."""
        if all(run.aside.is_set() or progress.is_held(run) for run in progress.runs):
            await self._stage(progress, stage, held)
            return None
        there: list[names.ModuleName] = []
        late: list[names.ModuleName] = []
        for module in stage.modules:
            (there if self._runner.releases.exists(module) else late).append(module)
        await self._stage(progress, structs.replace(stage, modules=tuple(there)), held)
        return structs.replace(stage, modules=tuple(late)) if late else None

    async def _stage(self, progress: _Progress, stage: plan.Stage, held: frozenset[str]) -> None:
        """Run the modules until each was tried; nothing waits for those ``held`` up by their definitions."""
        runs = [
            module_run.ModuleRunTask(self._runner, module, progress.activation) for module in stage.modules
        ]
        for run in runs:
            if run.owner in held:
                run.step_aside()
        progress.planned -= set(stage.modules)
        queued = await self._together(progress, runs, wait=_first_try)
        if self._on_failure is OnFailure.WAIT:
            progress.runs += queued

    async def _succeed(self, progress: _Progress, runs: Iterable[tasks.Task]) -> None:
        """Wait for the success of runs, but of those that stepped aside, or wait for such a one."""
        if not all([progress.is_held(run) or await _success_or_aside(run) for run in runs]):
            raise _SupersededError
        self._give_way()

    async def _each(self, progress: _Progress, wanted: Iterable[tasks.Task]) -> None:
        for task in wanted:
            await self._together(progress, [task], wait=_success)

    async def _together(
        self,
        progress: _Progress,
        wanted: Iterable[tasks.Task],
        *,
        wait: "Callable[[tasks.Task], Awaitable[bool]]",
    ) -> list[tasks.Task]:
        self._give_way()
        queued = [self._queue.add(task.of_converge(progress.number)) for task in wanted]
        progress.queued += queued
        # In their order: what a task comes after was waited for before.
        successes = [progress.is_held(task) or await wait(task) for task in queued]
        self._give_way()
        if not all(successes):
            raise _SupersededError
        return queued

    def _give_way(self) -> None:
        if self._wanted is not None:
            raise _SupersededError


async def _success(task: tasks.Task) -> bool:
    return await task.done is tasks.Outcome.DONE


async def _success_or_aside(task: tasks.Task) -> bool:
    await task.aside.wait()
    return not _is_dropped(task)


async def _first_try(task: tasks.Task) -> bool:
    await task.tried
    return not _is_dropped(task)


def _is_dropped(task: tasks.Task) -> bool:
    return task.done.done() and task.done.result() is tasks.Outcome.DROPPED
