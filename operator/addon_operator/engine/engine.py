"""The engine: queues, the converger, and the reactions to edits and to hooks."""

import asyncio
from collections.abc import Iterator
from typing import Final

from addon_operator.aio import background, waiting
from addon_operator.engine import events, intents, reactions, state, tasks
from addon_operator.engine.bindings import hook_bindings
from addon_operator.engine.converge import converge
from addon_operator.engine.modules import module_run
from addon_operator.engine.queues import queue_set, task_queue
from addon_operator.hook_contract.configuration import hook_config
from addon_operator.kernel import errors, names

ACTIVATION_STARTUP = "onStartup"
ACTIVATION_MODULES = "ModulesChanged"
ACTIVATION_APIS = "ApisChanged"
ACTIVATION_SCRIPT = "EnabledScriptAnswers"
_ACTIVATIONS = {"ConfigMap": "ConfigMapChanged", "Secret": "SecretChanged", "Module": "ModuleObjectChanged"}
ACTIVATION_GLOBAL_VALUES = "GlobalValuesChanged"
ACTIVATION_MODULE_VALUES = "ModuleValuesChanged"
AGES_SECONDS: Final = 5.0
"""Between two looks at the heads of the queues."""
_REGISTRATION: Final = waiting.Backoff(2.0, 60.0)
_WAITING_SHOWN: Final = 10
_LOOK_AGAIN: Final = 0.5
"""Seconds between two looks at whether the first converge got stuck."""


class Engine:
    """Takes intents out of its inbox and turns them into tasks, until cancelled."""

    def __init__(
        self,
        inbox: intents.Inbox,
        queues: queue_set.QueueSet,
        converger: converge.Converger,
        runner: module_run.ModuleRunner,
        bindings: hook_bindings.HookBindings,
        tell: events.Listener,
        *,
        may_begin: asyncio.Event | None = None,
    ) -> None:
        """Until ``may_begin`` is set, nothing is done but to watch over the releases that there are."""
        self._inbox = inbox
        self._may_begin = may_begin
        self._queues = queues
        self._queue = queues.main
        self._removals = queues.removals
        self.converger = converger
        """The converger, for status pages, too."""
        self._runner = runner
        self._states = runner.states
        self._bindings = bindings
        self._tell = tell

    @property
    def queues(self) -> tuple[task_queue.TaskQueue, ...]:
        """All queues."""
        return self._queues.all

    async def work(self) -> None:
        """Run the global ``onStartup`` hooks and Synchronizations, converge, then react, until cancelled."""
        if self._may_begin is not None:
            await self._await(self._may_begin)
        async with asyncio.TaskGroup() as group:
            group.create_task(self._queues.work(), name="queues")
            group.create_task(self._bindings.work(), name="schedules")
            group.create_task(self._bindings.watch_registrations(), name="registrations")
            group.create_task(self.converger.work(), name="converge")
            group.create_task(self._start(), name="startup")
            group.create_task(self.react(), name="reactions")

    async def _await(self, may_begin: asyncio.Event) -> None:
        for pause in _REGISTRATION.pauses():
            if may_begin.is_set():
                return
            try:
                await self._runner.follow_all()
            except errors.AddonOperatorError as error:
                self._tell(events.Warned(f"releases are not watched yet: {error}; it is tried again"))
                await waiting.wait_within(may_begin, pause)
            else:
                await may_begin.wait()

    async def drain(self, grace: float) -> None:
        """Begin nothing more, and wait up to ``grace`` seconds for what runs."""
        await self._queues.drain(grace)

    async def keep_ages(self) -> None:
        """Keep the reported age of heads true while nothing happens."""
        while True:
            await asyncio.sleep(AGES_SECONDS)
            for queue in self.queues:
                queue.report()

    async def react(self) -> None:
        """Take intents out of the inbox and do what follows from each, until cancelled.

        One that a defect keeps from its effect is shown and tried again later; the others go on.
        """
        undone = self._states.undone
        while True:
            intent = await self._inbox.get()
            try:
                if not self._run_wanted(intent):
                    self._react(intent)
            except Exception as error:  # noqa: BLE001 - a defect at one intent must not end the operator
                subject = f"the reaction to {type(intent).__name__} {getattr(intent, 'module', '')}".rstrip()
                undone[id(intent)] = str(errors.told(error, subject))
                self._tell(events.PartFailed("reactions", error, background.RESTART_SECONDS))
                loop = asyncio.get_running_loop()
                loop.call_later(background.RESTART_SECONDS, self._inbox.put_nowait, intent)
            else:
                undone.pop(id(intent), None)

    def _run_wanted(self, intent: intents.Intent) -> bool:
        """Do what follows if the intent is about one module's run; say whether it is."""
        match intent:
            case intents.RunWanted(past_windows=True) as wanted:
                self._run_now(wanted)
            case intents.RunWanted(module=module, activation=activation, at_once=at_once):
                self._run_module(module, activation, at_once=at_once)
            case intents.HealthChanged(module=module):
                self._queue.resume(lambda task: self._awaits(task, module))
            case intents.ChartPulled(module=module):
                self._hasten(module)
            case intents.RetryWanted(module=module):
                self._insist(module)
                self._hasten(module)
            case _:
                return False
        return True

    def _react(self, intent: intents.Intent) -> None:
        match intent:
            case intents.ConfigEdited() as edited:
                self._config_edited(edited)
            case intents.ValuesChanged(hook=hook):
                self._values_changed(hook)
            case intents.ConvergeWanted(activation=activation):
                self.converger.request(activation)
            case intents.ApisChanged():
                self.converger.request_by_hook(ACTIVATION_APIS)

    def _config_edited(self, edited: intents.ConfigEdited) -> None:
        self._runner.releases.leave_alone(edited.change.maintenance_changed)
        activation = _ACTIVATIONS[edited.kind]
        reaction = reactions.to_config_change(
            edited.change,
            state=self.converger.state,
            modules=self._states.modules,
            enabled=self._states.enabled,
        )
        self._tell(events.ConfigTaken(edited.change, reaction, edited.kind))
        self._states.edited(reactions.concerned(edited.change, self._states.enabled))
        if reaction.converge:
            self.converger.request(activation)
        for module in reaction.runs:
            self._drop_run(module)
            self._run_module(module, activation)
        self._queue.hasten()
        # A module that the edit enables again stays: the discovery takes its removal back.
        self._removals.hasten(lambda task: not self.converger.is_switched_on(task.owner))

    def _values_changed(self, hook: state.Hook) -> None:
        reaction = reactions.to_hook_effects(
            hook.module,
            state=self.converger.state,
            modules=self._states.modules,
            enabled=self._states.enabled,
        )
        if reaction.converge:
            activation = ACTIVATION_MODULE_VALUES if hook.module else ACTIVATION_GLOBAL_VALUES
            self.converger.request_by_hook(activation)
        for module in reaction.runs:
            self._run_module(module, ACTIVATION_MODULE_VALUES)

    async def reload(self, task: tasks.Task) -> None:
        """Do the task, which takes changed modules in, in ``main``.

        It does not wait for a discovery that fails: the change may be what that lacks.
        """
        discovery = tasks.TaskKind.DISCOVER_MODULES
        self._queue.drop(lambda queued: queued.kind is discovery and queued.attempts > 0)
        for module in task.also:
            self._drop_run(names.ModuleName(module))
        await self._queue.add(task).done
        for module in task.also if task.last_error else ():
            # As nothing was taken in, nothing else has them run.
            self._run_module(names.ModuleName(module), ACTIVATION_MODULES)

    def forget(self, module: names.ModuleName) -> None:
        """End what runs and waits for a module that is gone, but for a purge of its release."""
        self._bindings.end(module)
        self._runner.releases.gone(module)
        delete = tasks.TaskKind.MODULE_DELETE
        self._queue.drop(lambda task: task.owner == module)
        self._removals.drop(lambda task: task.owner == module and task.kind is delete)
        if self.converger.state is state.ConvergeState.RUNNING:
            # It may be about to run or to remove the module, before all changes are taken in.
            self.converger.request(ACTIVATION_MODULES)

    def reloaded(self, reaction: reactions.Reaction) -> None:
        """Do what follows from modules that were taken in."""
        now = self.converger.state
        if now is state.ConvergeState.NOT_STARTED or reaction == reactions.Reaction():
            return
        # A converge that runs needs the runs that would be dropped here.
        if reaction.converge or now is state.ConvergeState.RUNNING:
            self.converger.request(ACTIVATION_MODULES)
            return
        for module in reaction.runs:
            self._drop_run(module)
            self._run_module(module, ACTIVATION_MODULES)

    def _run_module(self, module: names.ModuleName, activation: str, *, at_once: bool = False) -> None:
        """Queue a run of the module, unless one that will see the same values is on its way.

        ``at_once`` ends the wait for the next try of a failed one, and does not wait for modules of lower
        orders, as a first install in a converge does. A module that is disabled or gone is not
        run, whoever wants it: its removal would be undone.
        """
        if module not in self._states.enabled:
            return
        if at_once:
            self._hasten(module)
        if at_once or not self.converger.will_run(module):
            self._queue.add(module_run.ModuleRunTask(self._runner, module, activation))
        if at_once:
            self._insist(module)
        # One that waits for health has news now.
        self._queue.resume(lambda task: task.owner == module)

    def _insist(self, module: names.ModuleName) -> None:
        """Try what was taken back again: somebody wants that, or what it failed of is gone."""
        for task in self._queue.tasks:
            task.insists = task.insists or task.owner == module

    def _awaits(self, task: tasks.Task, module: names.ModuleName) -> bool:
        waiting = self._states.get(names.ModuleName(task.owner))
        is_run = task.kind is tasks.TaskKind.MODULE_RUN
        return is_run and waiting is not None and module in waiting.awaits_health

    def _run_now(self, wanted: intents.RunWanted) -> None:
        """Run the module past its windows, or remove it if it is disabled; it ends the call of Helm."""
        self._runner.releases.windows.let_pass(wanted.module)
        if wanted.module in self._states.enabled:
            self._runner.releases.stop(wanted.module, "'module run --now'")
            self._run_module(wanted.module, wanted.activation, at_once=wanted.at_once)
        else:
            self.converger.request(wanted.activation)

    def _hasten(self, module: names.ModuleName) -> None:
        for queue in (self._queue, self._removals):
            queue.hasten(lambda task: task.owner == module)

    def _drop_run(self, module: names.ModuleName) -> None:
        """Drop the module's run: one that waits for its next try, and one under way at its next step."""
        self._queue.drop(lambda task: task.kind is tasks.TaskKind.MODULE_RUN and task.owner == module)

    @property
    def removals(self) -> int:
        """How many modules and releases are being removed."""
        leaving = {
            str(module.module.name)
            for module in self._states
            if module.leaving and module.status is state.ModuleStatus.DELETING
        }
        return len(leaving | self._removals.owners)

    def waiting_for(self) -> Iterator[str]:
        """Yield a phrase, without values, for the first modules and hooks that the converge waits for."""
        queues = (queue for queue in self.queues if queue is not self._removals)
        failed = [task for queue in queues for task in queue.tasks if task.last_error]
        yield from (_waiting_phrase(task) for task in failed[:_WAITING_SHOWN])
        if (more := len(failed) - _WAITING_SHOWN) > 0:
            yield f"and {more} more"

    async def _start(self) -> None:
        for task in self.converger.hooks.bound(hook_config.LifecycleBinding.ON_STARTUP, "OperatorStartup"):
            await self._queue.add(task).done
        await self._bind_global_hooks()
        is_answered = await self._answer_for_global_hooks()
        self.converger.request(ACTIVATION_STARTUP)
        await self._first_converge()
        self._bindings.tick(tasks.GLOBAL_OWNER)
        self._bindings.open()
        pauses = _REGISTRATION.pauses()
        while not is_answered:
            await asyncio.sleep(next(pauses))
            is_answered = await self._answer_for_global_hooks()

    async def _bind_global_hooks(self) -> None:
        bindings, never = self._bindings, asyncio.Event()
        batches = await bindings.start(tasks.GLOBAL_OWNER, self.converger.hooks.hooks, never)
        for queued in [bindings.queue(batch, ACTIVATION_STARTUP) for batch in batches]:
            await queued.done
        await bindings.wait(tasks.GLOBAL_OWNER, never, patient=True)

    async def _answer_for_global_hooks(self) -> bool:
        """Try to have their webhooks registered; whether nothing is left to do."""
        try:
            await self._bindings.answer(tasks.GLOBAL_OWNER, asyncio.Event())
        except errors.AddonOperatorError as error:
            self._tell(events.Warned(f"webhooks of global hooks are not registered: {error}"))
            return False
        return True

    async def _first_converge(self) -> None:
        """Wait for it, unless a failing module keeps it from its end: that must not stop other hooks."""
        done = self.converger.first_done
        while not done.is_set() and not self.converger.is_stalled:
            await waiting.wait_within(done, _LOOK_AGAIN)


def _waiting_phrase(task: tasks.Task) -> str:
    of_hook = f"hook {task.hook}" if task.hook else task.kind.doing
    subject = f"module {task.owner}" if task.owner else of_hook
    times = "once" if task.attempts == 1 else f"{task.attempts} times"
    return f"{subject} failed {times}: {task.last_error_without_values}"
