"""A cluster whose objects are put and removed by hand, and bindings that follow them."""

import asyncio
import dataclasses
import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from typing_extensions import override

from addon_operator.engine import events, state, tasks
from addon_operator.engine.bindings import (
    hook_answers,
    hook_bindings,
    hook_tasks,
    process_slots,
    review_runs,
    schedules,
    triggers,
    webhooks,
)
from addon_operator.engine.hooks import hook_outputs, hook_run
from addon_operator.engine.queues import queue_set
from addon_operator.hook_contract import binding_contexts, hook_entries, jq_programs
from addon_operator.hook_contract.configuration import hook_config
from addon_operator.kernel import clock as clocks
from addon_operator.kernel import errors
from addon_operator.kernel.names import ModuleName
from addon_operator.kube.informers import informers, object_changes, object_selections, projections
from tests.unit.engine import fakes

ADDED, MODIFIED, DELETED = object_changes.ChangeType


def entry(name: str, **more: object) -> bytes:
    metadata = {"name": name, "namespace": "n"}
    return binding_contexts.entry(json.dumps({"kind": "Pod", "metadata": metadata, **more}).encode())


@dataclasses.dataclass(eq=False)
class Subscription(informers.Subscription):
    """What one binding sees."""

    cluster: "Cluster"
    kind: str
    listener: object_changes.ObjectListener
    synced: bool = False
    is_kind_known = True
    reason: str | None = None

    @override
    def snapshot(self) -> list[bytes]:
        return [found for _, found in sorted(self.cluster.objects.get(self.kind, {}).items())]

    @override
    def lazy_snapshot(self) -> Sequence[bytes]:
        return tuple(self.snapshot())

    @property
    @override
    def size(self) -> int:
        return sum(map(len, self.snapshot()))

    @property
    @override
    def count(self) -> int:
        return len(self.keys())

    @override
    def keys(self) -> list[object_changes.ObjectKey]:
        return [
            object_changes.ObjectKey("n", name) for name in sorted(self.cluster.objects.get(self.kind, {}))
        ]

    @override
    def close(self) -> None:
        self.cluster.subscriptions.remove(self)


class Cluster(informers.Informers):
    """Follows by kind; a kind is listed at once unless it is in ``slow`` or in ``unknown``."""

    def __init__(self) -> None:
        self.objects: dict[str, dict[str, bytes]] = {}
        self.subscriptions: list[Subscription] = []
        self.followed = asyncio.Event()
        """Set with the first subscription."""
        self.slow: set[str] = set()
        self.unknown: dict[str, str] = {}

    @override
    def subscribe(
        self,
        selection: object_selections.ObjectSelection,
        projection: projections.Projection,
        listener: object_changes.ObjectListener,
    ) -> informers.Subscription:
        made = Subscription(self, selection.kind, listener)
        self.subscriptions.append(made)
        self.followed.set()
        if selection.kind in self.unknown:
            made.reason = self.unknown[selection.kind]
            asyncio.get_running_loop().call_soon(listener.trouble, made.reason)
        elif selection.kind not in self.slow:
            asyncio.get_running_loop().call_soon(self._list, made)
        return made

    def appear(self, kind: str) -> None:
        """The kind can be listed now."""
        self.unknown.pop(kind, None)
        for found in self._of(kind):
            if found.reason is not None:
                found.reason = None
                found.listener.trouble(None)
            self._list(found)

    def put(self, kind: str, name: str, **more: object) -> None:
        known = self.objects.setdefault(kind, {})
        change = MODIFIED if name in known else ADDED
        known[name] = entry(name, **more)
        self._tell(kind, change, name, known[name])

    def remove(self, kind: str, name: str) -> None:
        self._tell(kind, DELETED, name, self.objects[kind].pop(name))

    def _list(self, subscription: Subscription) -> None:
        subscription.synced = True
        subscription.listener.synced()

    def _tell(self, kind: str, change: object_changes.ChangeType, name: str, found: bytes) -> None:
        told = object_changes.Change(change, object_changes.ObjectKey("n", name), found, "1")
        for subscription in self._of(kind):
            if subscription.synced:
                subscription.listener.changed([told])

    def _of(self, kind: str) -> list[Subscription]:
        return [found for found in self.subscriptions if found.kind == kind]


class WaitingBindings(hook_bindings.HookBindings):
    """Bindings of which some cannot be followed just now, by their owner."""

    def __init__(self, waiting: Mapping[str, list[hook_bindings.WaitingBinding]] | None = None) -> None:
        self.of_owner = dict(waiting or {})
        self.answers: dict[str, list[webhooks.AnsweringRow]] = {}
        self.failures: list[hook_tasks.AllowedFailure] = []

    @property
    @override
    def allowed_failures(self) -> Sequence[hook_tasks.AllowedFailure]:
        return self.failures

    @override
    def waiting(self, owner: str) -> list[hook_bindings.WaitingBinding]:
        return self.of_owner.get(owner, [])

    @override
    def answering(self, owner: str) -> list[webhooks.AnsweringRow]:
        return self.answers.get(owner, [])


class NoJq:
    """Nothing is filtered."""

    async def run(
        self, program: str, documents: Sequence[bytes], timeout: float
    ) -> list[bytes | jq_programs.JqError]:
        raise AssertionError("nothing is filtered here")


NO_REGISTRY: Final = webhooks.NoRegistry()
Bound = tuple[queue_set.QueueSet, hook_bindings.HookBindings, schedules.Schedules, hook_tasks.HookTasks]


def bound_with_tasks(
    executor: hook_run.HookExecutor,
    cluster: Cluster,
    clock: clocks.Clock,
    tell: events.Listener = fakes.ignore,
    inbox: fakes.Inbox | None = None,
    registry: webhooks.WebhookRegistry[hook_entries.WebhookEntry] = NO_REGISTRY,
) -> Bound:
    """Everything around bindings but the hooks' processes and the cluster."""
    queues = queue_set.QueueSet(tell, clock=clock)
    ticks = schedules.Schedules(clock)
    objects, inbox = triggers.FollowedObjects(), inbox or fakes.Inbox()
    tasks = hook_tasks.HookTasks(queues, executor, objects, inbox, clock)
    runs = review_runs.ReviewRuns(executor, process_slots.ProcessSlots(1), review_runs.put_into(inbox))
    answering = webhooks.Webhooks(hook_answers.WebhookAnswers(runs, objects, tell), registry)
    made = hook_bindings.HookBindings(tasks, cluster, NoJq(), ticks, tell, (answering,))
    return queues, made, ticks, tasks


@dataclasses.dataclass(frozen=True)
class Run:
    """What a hook was told."""

    hook: str
    contexts: list[dict[str, Any]]
    labels: events.HookLabels
    allow_failure: bool

    @override
    def __str__(self) -> str:
        """``hook: binding Synchronization a b, binding Added c``."""
        return f"{self.hook}: " + ", ".join(map(_brief, self.contexts))


def _brief(context: dict[str, Any]) -> str:
    words = [context["binding"], context.get("watchEvent") or context.get("type", "")]
    listed = context.get("objects", [context] if "object" in context else [])
    return " ".join([*words, *(item["object"]["metadata"]["name"] for item in listed)]).strip()


class Hooks(hook_run.HookExecutor):
    """Instead of processes: notes runs, which fail or wait when they are told to."""

    def __init__(self) -> None:
        self.runs: list[Run] = []
        self.fail: dict[str, int] = {}
        self.gates: dict[str, asyncio.Event] = {}
        self.effects = hook_outputs.HookEffects()

    @override
    async def run(
        self,
        hook: state.Hook,
        contexts: Iterable[binding_contexts.Context],
        labels: events.HookLabels,
        task: tasks.Task,
        *,
        allow_failure: bool = False,
    ) -> hook_outputs.HookEffects:
        told = json.loads(b"".join(binding_contexts.document(contexts)))
        self.runs.append(Run(hook.name, told, labels, allow_failure))
        if hook.name in self.gates:
            await self.gates[hook.name].wait()
        if self.fail.get(hook.name, 0) > 0:
            self.fail[hook.name] -= 1
            raise errors.AddonOperatorError(f"hook {hook.name} failed")
        return self.effects

    @property
    def told(self) -> list[str]:
        """All runs in brief; forgets them."""
        found = [str(run) for run in self.runs]
        self.runs.clear()
        return found


def hook(name: str, document: Mapping[str, object], module: str | None = None) -> state.Hook:
    text = json.dumps({"configVersion": "v1", **document})
    kind = hook_config.HookKind.GLOBAL if module is None else hook_config.HookKind.MODULE
    owner = None if module is None else ModuleName(module)
    return state.Hook(name, fakes.NOWHERE / name, hook_config.parse(text, kind, name), owner)
