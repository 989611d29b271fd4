"""The objects that make hooks run for ``schedule`` and ``kubernetes`` bindings."""

import dataclasses
from collections.abc import Callable

from addon_operator.engine import events, intents
from addon_operator.engine.bindings import (
    hook_bindings,
    hook_rates,
    hook_tasks,
    kubernetes_binding,
    schedules,
)
from addon_operator.engine.hooks import hook_run
from addon_operator.engine.queues import queue_set
from addon_operator.kernel import clock as clocks


@dataclasses.dataclass(frozen=True, slots=True)
class BindingParts:
    """They know each other, and the engine knows them."""

    bindings: hook_bindings.HookBindings
    tasks: hook_tasks.HookTasks
    schedules: schedules.Schedules


def bind(
    queues: queue_set.QueueSet,
    executor: hook_run.HookExecutor,
    subscribe: kubernetes_binding.Subscribe,
    tell: events.Listener,
    inbox: intents.Inbox,
    warn: Callable[[str], None],
    clock: clocks.Clock,
) -> BindingParts:
    """Make them; ``subscribe`` follows the objects of a binding."""
    bound = hook_bindings.Bound()
    rates = hook_rates.HookRates(clock)
    tasks = hook_tasks.HookTasks(queues, executor, bound, rates, inbox)
    ticks = schedules.Schedules(clock)
    sources = hook_bindings.BindingSources(subscribe, ticks, tell)
    return BindingParts(hook_bindings.HookBindings(bound, tasks, queues, rates, sources, warn), tasks, ticks)
