"""Runs that wait for health: for that of required modules, and with ``health.wait`` for their own.

A run that waits holds no worker: its task is put off, and looked at again when the health of a module
changes.
"""

import asyncio
from typing import Final

from addon_operator.engine import intents, module_states, state, tasks
from addon_operator.engine.modules import module_releases
from addon_operator.kernel import clock as clocks
from addon_operator.kernel import errors, names
from addon_operator.modules import requirements
from addon_operator.modules.health import resource_health

LOOK_AGAIN: Final = 300.0
"""Seconds after which a run looks again by itself."""


class HealthGate:
    """Lets runs through when what they wait for is healthy."""

    def __init__(self, states: module_states.ModuleStates, releases: module_releases.ModuleReleases) -> None:
        self._states = states
        self._releases = releases
        self._healths = releases.healths
        self._inbox = releases.healths.inbox
        self._tests: dict[names.ModuleName, asyncio.Task[None]] = {}
        """Tests of charts that run."""

    def check_required(self, task: tasks.Task) -> None:
        """Raise :class:`.PostponedError` until all required modules were healthy since their revisions."""
        name = names.ModuleName(task.owner)
        module = self._states[name].module
        until_ready = module.config.requires.until_ready
        unhealthy = [
            other
            for other in requirements.required(module)
            if other not in until_ready and not self._healths.has_been_healthy(other)
        ]
        if unhealthy:
            self._states.await_health(name, state.ModuleStatus.PENDING, unhealthy)
            # What follows in the converge does not wait for the health of modules that it does not require.
            task.step_aside()
            raise tasks.PostponedError(LOOK_AGAIN)

    def end_tests(self, module: names.ModuleName) -> None:
        """End tests of the chart that run: the release will be another one."""
        if (running := self._tests.pop(module, None)) is not None:
            running.cancel()

    async def check_own(self, task: tasks.Task) -> None:
        """Raise :class:`.PostponedError` until a module that waits for health or tests is as it should be.

        Raises :class:`.ModuleError` if it has failed, or has waited too long, or a test of its chart fails.
        """
        name = names.ModuleName(task.owner)
        module = self._states[name]
        config = module.module.config.health
        if not ((config.wait or config.test) and module.module.has_chart) or module.maintenance:
            return
        self._check_healthy(task, module)
        if config.test:
            await self._check_tests(task, module)
        if module.module.config.rollback:
            await self._releases.mark_healthy(name)

    def _check_healthy(self, task: tasks.Task, module: state.ModuleState) -> None:
        name, config = module.module.name, module.module.config.health
        if self._healths.has_been_healthy(name):
            return
        health, now = self._healths.health_of(name), asyncio.get_running_loop().time()
        if task.waits_since is None:
            task.waits_since = now
        told = health.message if health is not None else "nothing is known of its resources"
        has_failed = health is not None and health.state is resource_health.HealthState.FAILED
        if has_failed and self._healths.is_fresh(name):
            raise errors.ModuleError(name, f"the release is in place and not healthy: {told}")
        left = task.waits_since + config.timeout - now
        if left <= 0:
            waited = clocks.duration_text(config.timeout)
            raise errors.ModuleError(name, f"the release is in place and not healthy within {waited}: {told}")
        self._states.await_health(name, state.ModuleStatus.RUNNING, [name])
        raise tasks.PostponedError(left)

    async def _check_tests(self, task: tasks.Task, module: state.ModuleState) -> None:
        name = module.module.name
        running = self._tests.get(name)
        if running is None:
            if await self._releases.is_tested(name):
                return
            running = self._tests[name] = asyncio.create_task(
                self._releases.test(module.module), name=f"tests of module {name}"
            )
            # The task is looked at again as soon as its health is news.
            running.add_done_callback(lambda _: self._inbox.put_nowait(intents.HealthChanged(name)))
        if not running.done():
            task.waits_since = task.waits_since or asyncio.get_running_loop().time()
            self._states.await_health(name, state.ModuleStatus.RUNNING, [name])
            raise tasks.PostponedError(LOOK_AGAIN)
        del self._tests[name]
        await running
