"""Runs and deletes of one module: its hooks and its Helm release, step by step.

A run:

1. Pull the chart if it is one of a repository, and apply the module's definitions, as far as that is due.
2. Ask the hooks for their configuration, once; the first time run those with ``onStartup``.
3. Begin the bindings: the Synchronization runs come before anything that may need their snapshots' effects.
   When the snapshots are there, webhooks are registered; a discovery that disables the module removes them.
4. Run the ``beforeHelm`` hooks.
5. Install or upgrade the release. If the values or Helm lack something, step 4 is repeated by the next try.
6. Run the ``afterHelm`` hooks. If these changed the values, go on at 4, up to :data:`MAX_RERUNS` times.
7. With ``health.wait``, end only when the module is healthy; a run begins when those that it requires are.

A try that fails is repeated by the queue; hooks that succeeded in it do not run again. Between two steps a
newer intent ends the run. A delete runs ``beforeDeleteHelm`` hooks, uninstalls, runs ``afterDeleteHelm``
hooks, and forgets the module; the record of the release stays until then, so that no crash loses a step. It
runs beside the runs of other modules, and never beside one of its own.

Source: steps 5 and 6 of "Steps of addon-operator lifecycle" in the documentation.
"""

import asyncio
import collections
import contextlib
import functools
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from typing import Final

from addon_operator.engine import config_events, events, module_states, state, tasks
from addon_operator.engine.bindings import hook_bindings
from addon_operator.engine.definitions import module_crds
from addon_operator.engine.hooks import enabled_scripts
from addon_operator.engine.modules import health_gate, left_watch, module_hooks, module_releases
from addon_operator.helm import helm_errors
from addon_operator.hook_contract.configuration import hook_config
from addon_operator.kernel import errors, names
from addon_operator.modules import model, requirements

_DEFINITIONS_LANE: Final = -1
"""Modules' definitions are applied side by side, whatever the modules' orders."""
MAX_RERUNS: Final = 10
"""Runs in a row because ``afterHelm`` changed values, after which it counts as a failure."""


class ModuleRunner:
    """Runs and deletes modules; the order among modules is not its concern."""

    def __init__(
        self,
        states: module_states.ModuleStates,
        hooks: module_hooks.ModuleHooks,
        bound: hook_bindings.HookBindings,
        releases: module_releases.ModuleReleases,
        definitions: module_crds.ModuleCrds,
        left: left_watch.LeftWatch,
        tell: events.Listener,
        ask_again: Callable[[tasks.Task], Awaitable[None]],
    ) -> None:
        """``ask_again`` asks the ``enabled`` script of a task's module once more, and has a converge follow.

        It raises why that gives no verdict.
        """
        self.states = states
        """The states of the modules."""
        self.hooks = hooks
        """The hooks of the modules."""
        self.releases = releases
        """The releases of the modules."""
        self._gate = health_gate.HealthGate(states, releases)
        self._bindings = bound
        self._definitions = definitions
        self._left = left
        self._tell = tell
        self._ask_again = ask_again
        self._alone: dict[str, asyncio.Lock] = collections.defaultdict(asyncio.Lock)
        """Held by who runs or removes a module."""

    async def definitions_due(
        self, enabled: Sequence[names.ModuleName], activation: str
    ) -> Sequence[tasks.Task]:
        """Make one task per enabled module whose CustomResourceDefinitions are to be applied."""
        due = await self._definitions.due([self.states[name].module for name in enabled])
        return [DefinitionsTask(self, name, activation) for name in due]

    async def define(self, name: names.ModuleName) -> None:
        """Pull the module's chart and apply its definitions, as far as that is due.

        Raises what :meth:`.ModuleCrds.ensure` raises; that is the module's failure.
        """
        try:
            module = self.states[name].module
            if module.problem:
                raise errors.ModuleError(name, module.problem)
            await self._definitions.charts.ensure(module)
            await self._definitions.ensure(module)
        except Exception as error:
            problem = errors.told(error, f"applying the definitions of module {name}")
            self.states.mark(name, state.ModuleStatus.FAILED, problem)
            self._tell(events.ModuleFailed(name))
            raise

    async def answer_only(self, enabled: Sequence[names.ModuleName]) -> None:
        """Let hooks of no other module than these answer the API server; raises when that cannot be done."""
        await self._bindings.answer_only({tasks.GLOBAL_OWNER, *enabled})

    def keep_only(self, enabled: Sequence[names.ModuleName]) -> None:
        """Run hooks for events of no other module than these, and watch over the releases of these."""
        for name in set(self.states.started) - set(enabled):
            self._bindings.mute(name)
        self.releases.follow(enabled)

    async def follow_all(self) -> None:
        """Watch over all releases of modules, before anybody has decided which are enabled.

        Raises what the API client raises.
        """
        releases = await self.releases.observe_all(self.states.modules)
        waiting_ones = [module.name for module in self.states.modules if module.name in releases]
        self.releases.follow(waiting_ones)
        self.states.await_config(waiting_ones)

    def stop(self, name: names.ModuleName) -> None:
        """End runs for events, and Helm, of a module that is switched off meanwhile."""
        module = self.states[name]
        if module.started:
            self._bindings.mute(name)
        if module.status is state.ModuleStatus.RUNNING:
            self.releases.stop(name)

    def take_back(self, name: str) -> None:
        """End Helm in the removal of a module that is enabled again."""
        self.releases.stop(names.ModuleName(name))

    async def run(self, task: tasks.Task) -> None:
        """Try a module run once. What succeeded in an earlier try is not repeated.

        Only ``beforeHelm`` hooks run again when the check before Helm, or Helm itself, failed.

        Raises the error of the step that failed, :class:`tasks.SupersededError` between two steps, and
        :class:`tasks.PostponedError` while it waits for health.
        """
        name = names.ModuleName(task.owner)
        if (undecided := self.states[name].undecided) is not None:
            await self._decide(task, name, undecided)
            return
        if task.waits_since is None or task.wanted_again:
            alone = self._alone[name]
            with task.waiting("its removal to end") if alone.locked() else contextlib.nullcontext():
                await alone.acquire()
            try:
                task.checkpoint()
                await self._run_steps(task, name)
            finally:
                alone.release()
        held = self.states[name].held_back
        if held is not None and held.is_broken:
            self.states.mark(name, state.ModuleStatus.FAILED, f"the last revision failed; {held}")
            return
        await self._await_health(task, name)
        self.states.applied(name)
        self.states.mark(name, state.ModuleStatus.READY, "")

    async def _decide(
        self, task: tasks.Task, name: names.ModuleName, undecided: errors.AddonOperatorError
    ) -> None:
        """Fail as the ``enabled`` script did, until it gives a verdict: then a converge decides.

        With wrong values nothing is tried again before an edit, which has a converge follow.
        """
        if isinstance(undecided, config_events.WrongValuesError):
            self.states.mark(name, state.ModuleStatus.FAILED, undecided)
            self._tell(events.ModuleFailed(name))
            return
        is_hanging = isinstance(undecided, enabled_scripts.StillRunsError)
        if is_hanging:
            self.states.mark(name, state.ModuleStatus.FAILED, undecided)
            task.step_aside()
            task.set_stuck()
        try:
            if task.attempts == 0 and not is_hanging:
                raise undecided
            await self._ask_again(task)
        except tasks.SupersededError:
            raise
        except errors.AddonOperatorError as error:
            task.step_aside()
            self.states.mark(name, state.ModuleStatus.FAILED, error)
            self._tell(events.ModuleFailed(name))
            raise
        finally:
            task.is_stuck = False
        raise tasks.SupersededError(f"module {name}: its enabled script gives a verdict")

    async def _await_health(self, task: tasks.Task, name: names.ModuleName) -> None:
        try:
            await self._gate.check_own(task)
        except errors.ModuleError as error:
            task.waits_since = None
            told = await self.releases.roll_back_unhealthy(self.states[name].module, error)
            self.states.mark(name, state.ModuleStatus.FAILED, told)
            self._tell(events.ModuleFailed(name))
            raise told from None

    async def _run_steps(self, task: tasks.Task, name: names.ModuleName) -> None:
        task.waits_since = None
        self._gate.end_tests(name)
        self._gate.check_required(task)
        try:
            await self.define(name)
        except Exception:
            task.step_aside()
            raise
        task.checkpoint()
        _begin_try(task, self.states[name])
        passes = self.releases.windows.may_pass(name)
        self.states.mark(name, state.ModuleStatus.RUNNING)
        began = time.monotonic()
        try:
            await self._steps(task, self.states[name])
        except tasks.SupersededError:
            self.states.mark(name, state.ModuleStatus.PENDING)
            raise
        except Exception as error:
            # Why it was taken back was told when that was known.
            is_old = isinstance(error, helm_errors.HelmError) and error.is_old
            problem = errors.told(error, f"the run of module {name}")
            is_told = is_old and bool(self.states[name].last_error)
            self.states.mark(name, state.ModuleStatus.FAILED, None if is_told else problem)
            self._tell(events.ModuleFailed(name))
            await self.releases.let_go()
            raise
        finally:
            self.states[name].last_run = time.time()
            self.states[name].runs += 1
            self._tell(events.ModuleRan(name, task.activation, time.monotonic() - began))
        if passes:
            self.releases.windows.has_passed(name)

    async def delete(self, task: tasks.Task) -> None:
        """Try a module's removal once: ``beforeDeleteHelm``, uninstall, ``afterDeleteHelm``, forget it."""
        async with self._alone[task.owner]:
            task.checkpoint()
            await self._delete(task, names.ModuleName(task.owner))

    async def _delete(self, task: tasks.Task, name: names.ModuleName) -> None:
        module = self.states[name]
        dependants = requirements.dependants(self.states.modules).get(name, ())
        why = f"the module is disabled: {module.verdict}"
        required = self._removed_after(name)
        if self.releases.hold_removal(name, name, why, dependants, required):
            self.states.mark(name, state.ModuleStatus.DELETING, "")
            return
        _begin_try(task, module)
        # Enabled again before this ends, it starts up again.
        module.started = module.settled = False
        # The error of a run does not matter any more.
        self.states.mark(name, state.ModuleStatus.DELETING, None if task.attempts else "")
        try:
            await self._remove(task, module)
            task.checkpoint()
        except tasks.SupersededError:
            raise
        except Exception as error:
            problem = errors.told(error, f"the removal of module {name}")
            self.states.mark(name, state.ModuleStatus.DELETING, problem)
            self._tell(events.ModuleFailed(name, deleting=True))
            raise
        self._bindings.end(name)
        self.hooks.forget(name)
        module.reset()
        self.releases.windows.has_passed(name)
        left = self._left.leaving.get(name, "")
        self.states.note_leaving(name, helm_errors.leaving_text(left))
        self.states.mark(name, state.ModuleStatus.DELETING if left else state.ModuleStatus.DISABLED, "")

    def _removed_after(self, name: names.ModuleName) -> list[names.ModuleName]:
        """Return what a module requires, also by others, and is disabled, too."""
        found = [name]
        for each in found:
            off = (one for one in requirements.required(self.states[each].module) if one in self.states)
            found += [one for one in off if one not in self.states.enabled and one not in found]
        return found[1:]

    async def purge(self, release: str) -> None:
        """Remove a release without a module; it stays as long as a module may yet take over what is in it."""
        async with self._alone[release]:
            await self._purge(release)

    async def _purge(self, release: str) -> None:
        if names.ModuleName(release) in self.states:
            # Its directory is back: the next converge decides.
            return
        module = self.releases.successor(release)
        if module is None:
            self._check_installed(release)
        elif module in self.states.enabled:
            self._check_moved(self.states[module], release)
        owner = module or names.ModuleName(release)
        if self.releases.hold_removal(release, owner, "no module directory explains it"):
            return
        await self.releases.remove(release)
        if left := self._left.leaving.get(names.ModuleName(release)):
            self._tell(events.Noted(f"the release is removed, and waits for finalizers: {left}", release))

    def _check_installed(self, release: str) -> None:
        """Raise if a module is not installed yet: it may be what the module of this release is called now."""
        modules = map(self.states.__getitem__, self.states.enabled)
        late = next((each for each in modules if not each.maintenance and self._is_to_come(each)), None)
        if late is not None:
            raise errors.AddonOperatorError(
                f"release {release} stays until module {late.module.name} is installed, "
                "which may take over what is in it"
            )

    def _is_to_come(self, module: state.ModuleState) -> bool:
        is_failed = module.status is state.ModuleStatus.FAILED
        return module.module.has_chart and (is_failed or self.releases.revision(module.module.name) is None)

    def _check_moved(self, module: state.ModuleState, release: str) -> None:
        name = module.module.name
        if self._is_to_come(module):
            title = module.module.release_title
            raise errors.ModuleError(
                name, f"its release was {release} and stays until the new one, {title}, is there"
            )

    async def _steps(self, task: tasks.Task, module: state.ModuleState) -> None:
        _check(task, module.module)
        await self._start(task, module)
        for _ in range(MAX_RERUNS):
            await self.hooks.run(task, module, hook_config.LifecycleBinding.BEFORE_HELM)
            task.checkpoint()
            await self._release(task, module)
            task.checkpoint()
            await self._after_helm(task, module)
            if not module.progress.values_changed:
                return
            module.progress = state.RunProgress()
            task.checkpoint()
        raise errors.ModuleError(
            module.module.name,
            f"afterHelm hooks changed the values in {MAX_RERUNS} runs in a row; "
            "make them stop changing values",
        )

    async def _start(self, task: tasks.Task, module: state.ModuleState) -> None:
        try:
            if not module.started:
                await self.hooks.check_values(module.module.name)
            await self.hooks.load(module)
        except errors.AddonOperatorError:
            task.step_aside()
            raise
        if not module.started:
            await self.hooks.run(task, module, hook_config.LifecycleBinding.ON_STARTUP)
            module.started = True
        await self._bind(task, module)

    async def _bind(self, task: tasks.Task, module: state.ModuleState) -> None:
        """Begin the bindings, with the Synchronization runs that have not succeeded yet."""
        name = module.module.name
        for batch in await self._bindings.start(name, module.hooks or (), task.stopping):
            task.checkpoint()
            await self._bindings.run(task, batch)
        task.checkpoint()
        await self._bindings.wait(name, task.stopping)
        task.checkpoint()
        await self._bindings.answer(name, task.stopping)
        task.checkpoint()
        self._bindings.tick(name)

    async def _release(self, task: tasks.Task, module: state.ModuleState) -> None:
        if not module.module.has_chart:
            self.releases.windows.done(module.module.name)
            return
        fresh = task.converge is None or task.attempts > 0
        insists, task.insists = task.insists, False
        name = module.module.name
        revision = self.releases.revision(name)
        slips = await self.releases.slips.of(module.module)
        module.warned.clear()
        try:
            while True:
                before = self._left.in_the_way
                try:
                    async with self._giving_way(task, name):
                        await self.releases.ensure(
                            module.module, task.activation, fresh=fresh, insists=insists
                        )
                    return
                except helm_errors.LeavingError as error:
                    await self._wait_for_others(task, module, error.message, before)
        except errors.AddonOperatorError:
            # What the values or Helm lack may be what these hooks bring the next time.
            module.progress.repeat(hook_config.LifecycleBinding.BEFORE_HELM)
            raise
        finally:
            self.states.note_warnings(name, slips, is_other=self.releases.revision(name) != revision)

    @contextlib.asynccontextmanager
    async def _giving_way(self, task: tasks.Task, name: names.ModuleName) -> AsyncIterator[None]:
        """Note for which of its own hooks Helm waits, and end it for a newer wish if that gets nowhere."""
        note = functools.partial(self.states.note_hook, name)
        watching = asyncio.create_task(
            self.releases.watch_hook(name, task.stopping, note), name=f"hook of Helm of {name}"
        )
        try:
            yield
        finally:
            watching.cancel()
            await asyncio.gather(watching, return_exceptions=True)
            note("")

    async def _wait_for_others(
        self,
        task: tasks.Task,
        module: state.ModuleState,
        message: str,
        before: object,
    ) -> None:
        """Wait until something else than before is in the way, as ``message`` says; others go on."""
        name = module.module.name
        self.states.note_leaving(name, message)
        try:
            with task.waiting(message) as checkpoint:
                while self._left.in_the_way == before:
                    await self._left.change(task.stopping)
                    checkpoint()
        finally:
            self.states.note_leaving(name, "")

    async def _after_helm(self, task: tasks.Task, module: state.ModuleState) -> None:
        try:
            await self.hooks.run(task, module, hook_config.LifecycleBinding.AFTER_HELM)
        except tasks.SupersededError:
            raise
        except errors.AddonOperatorError:
            if not module.settled:
                # The documents: a first run that fails in afterHelm is repeated from onStartup.
                module.started = False
                module.progress = state.RunProgress()
                self._bindings.begin_again(module.module.name)
            raise
        module.settled = True

    async def _remove(self, task: tasks.Task, module: state.ModuleState) -> None:
        _check(task, module.module)
        name = module.module.name
        # As long as objects need its hooks to be converted, it stays.
        await self._bindings.let_go(name)
        if module.hooks is None and not self.releases.is_left(name):
            # A removal before this one ended after the converge had looked.
            return
        await self.hooks.load(module)
        if self.releases.exists(name):
            await self.hooks.run(task, module, hook_config.LifecycleBinding.BEFORE_DELETE_HELM)
            task.checkpoint()
            is_more = bool(state.bound(module.hooks or (), hook_config.LifecycleBinding.AFTER_DELETE_HELM))
            directory = module.module.chart_directory if module.module.has_chart else None
            await self.releases.remove(name, keep_record=is_more, directory=directory)
        await self.hooks.run(task, module, hook_config.LifecycleBinding.AFTER_DELETE_HELM)
        await self.releases.forget(name)


class DefinitionsTask(tasks.Task):
    """Applies the CustomResourceDefinitions of a module, before any module of the converge runs."""

    kind = tasks.TaskKind.MODULE_ENSURE_CRDS
    lane = _DEFINITIONS_LANE

    def __init__(self, runner: ModuleRunner, module: names.ModuleName, activation: str) -> None:
        super().__init__(owner=module, activation=activation)
        self._runner = runner
        self._module = module

    async def run(self) -> None:
        """Try it once; see :meth:`ModuleRunner.define`."""
        await self._runner.define(self._module)


class ModuleRunTask(tasks.Task):
    """Runs a module, after those of its order that it requires."""

    kind = tasks.TaskKind.MODULE_RUN
    longest_delay = 300.0

    def __init__(self, runner: ModuleRunner, module: names.ModuleName, activation: str) -> None:
        super().__init__(owner=module, activation=activation)
        self._runner = runner
        described = runner.states[module].module
        self.lane = described.order
        self.after = frozenset(requirements.required(described))

    async def run(self) -> None:
        """Try it once; see :meth:`ModuleRunner.run`."""
        await self._runner.run(self)


class ModuleDeleteTask(tasks.Task):
    """Removes a disabled module, after those that require it."""

    kind = tasks.TaskKind.MODULE_DELETE

    def __init__(self, runner: ModuleRunner, module: names.ModuleName, activation: str) -> None:
        super().__init__(owner=module, activation=activation)
        self._runner = runner
        self.lane = runner.states[module].module.order
        self.after = frozenset(requirements.dependants(runner.states.modules).get(module, ()))

    async def run(self) -> None:
        """Try it once; see :meth:`ModuleRunner.delete`."""
        await self._runner.delete(self)


class ReleasePurgeTask(tasks.Task):
    """Removes a release without a module."""

    kind = tasks.TaskKind.MODULE_PURGE

    def __init__(self, runner: ModuleRunner, release: str, activation: str) -> None:
        super().__init__(owner=release, activation=activation)
        self._runner = runner

    async def run(self) -> None:
        """Try it once; see :meth:`ModuleRunner.purge`."""
        await self._runner.purge(self.owner)


def _check(task: tasks.Task, module: model.Module) -> None:
    if module.stopped_by:
        task.step_aside()
        raise errors.ModuleError(module.name, module.stopped_by)


def _begin_try(task: tasks.Task, module: state.ModuleState) -> None:
    """Keep the progress of the tries before, unless a reason for a new run came."""
    if task.attempts == 0 or task.wanted_again:
        module.progress = state.RunProgress()
    task.wanted_again, module.edits_seen = False, module.edits
