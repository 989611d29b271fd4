"""The one runner of an engine in memory: a whole operator, but for processes, HTTP and Kopf.

Its objects are made by the composition root of the operator itself (``app/graph.py``). In memory are only the
API server, the programs (Helm and hooks are functions) and the workers; time passes when a test says so.
"""

import asyncio
import contextlib
import inspect
import json
import math
import pathlib
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from typing import Any, Final, Generic, TypeVar

import jq as libjq  # type: ignore[import-not-found]  # an extension module without stubs
import msgspec
from typing_extensions import override

from addon_operator.app import graph, parts, tools
from addon_operator.engine import events, introspection, state
from addon_operator.engine import intents as intents_module
from addon_operator.engine.bindings import binding_events, process_slots, webhooks
from addon_operator.helm import memory
from addon_operator.hook_contract import hook_entries, jq_programs
from addon_operator.inspection import values_worker
from addon_operator.kernel import errors, fencing, names
from addon_operator.kube import api_errors
from addon_operator.kube.objects import config_maps
from addon_operator.loading import preflight
from addon_operator.modules import findings
from addon_operator.process.jq import jq_workers
from addon_operator.settings import settings_loading
from addon_operator.telemetry import metrics
from tests.support import api_server, clocks, helm, hooks, modules, programs

CONFIG_MAP: Final = "addon-operator"
Of = TypeVar("Of")


class Heard(list[events.Event]):
    """Events; its ``append`` is the listener."""

    def of(self, kind: type[Of]) -> list[Of]:
        """Those of one class."""
        return [event for event in self if isinstance(event, kind)]

    @property
    def warnings(self) -> list[str]:
        return [event.text for event in self.of(events.Warned)]

    @property
    def failures(self) -> list[tuple[str, str, float | None]]:
        """Owner, error and delay of each failed task."""
        return [(each.task.owner, str(each.error), each.delay) for each in self.of(events.TaskFailed)]


class Fence(fencing.Fence):
    """Open until the Lease is lost."""

    def __init__(self) -> None:
        self.is_lost = False

    @override
    def check(self) -> None:
        if self.is_lost:
            raise fencing.FencedError("the Lease is another's")

    @override
    def remaining(self) -> float:
        return math.inf


Asked = TypeVar("Asked", hook_entries.WebhookEntry, hook_entries.ConversionEntry)


class Registry(webhooks.NoRegistry, Generic[Asked]):
    """Takes the place of the site of admission: a test asks the entries itself."""

    def __init__(self) -> None:
        self.registered: dict[str, list[str]] = {}
        """What the API server would ask, by owner."""
        self.refuse: list[errors.AddonOperatorError] = []
        """What the next registrations end with."""
        self.troubles: dict[str, str] = {}
        """Why something that is registered is not asked, by its name."""
        self._answering: dict[str, list[Asked]] = {}

    def entry(self, owner: str, name: str) -> Asked:
        """What answers for a name now."""
        return next(entry for entry in self._answering[owner] if entry.binding.name == name)

    def answering(self, owner: str) -> list[str]:
        return [entry.binding.name for entry in self._answering.get(owner, ())]

    @override
    def replace(self, owner: str, entries: Sequence[Asked]) -> None:  # type: ignore[override]
        self._answering[owner] = list(entries)

    @override
    async def open(self, owner: str, entries: Sequence[Asked]) -> None:  # type: ignore[override]
        if entries and self.refuse:
            raise self.refuse.pop(0)
        self._answering[owner] = list(entries)
        self.registered[owner] = [entry.binding.name for entry in entries]

    @override
    def trouble(self, entry: Asked) -> str:  # type: ignore[override]
        return self.troubles.get(entry.binding.name, "")

    @override
    async def keep_only(self, owners: Collection[str]) -> None:
        self.registered = {owner: names for owner, names in self.registered.items() if owner in owners}


class JqHere(jq_workers.JqWorkers):
    """Runs jq in this process."""

    @override
    async def run(
        self, program: str, documents: Sequence[bytes], timeout: float
    ) -> list[bytes | jq_programs.JqError]:
        compiled = libjq.compile(f"(\n{program}\n) | tojson")
        answers: list[bytes | jq_programs.JqError] = []
        for document in documents:
            try:
                results = compiled.input_text(document.decode()).all()
            except ValueError as error:
                answers.append(jq_programs.error_of(str(error)))
            else:
                answers.append(f"[{','.join(results)}]".encode())
        return answers


class WorkerHere(values_worker.ValuesWorker):
    """Does the work of the values worker in this process."""

    @override
    def call(self, function: Callable[..., Any], *arguments: Any, gives: Any = Any) -> Any:
        try:
            result = function(*arguments)
        except errors.AddonOperatorError as error:
            raise errors.ConfigurationError(str(error)) from None
        return msgspec.json.decode(msgspec.json.encode(result), type=gives)


class Operator:
    """An operator, the cluster that it works on, and the directories that it reads."""

    def __init__(self, root: pathlib.Path) -> None:
        self.root = root
        self.server = api_server.ApiServer()
        self.clock = clocks.Clock()
        self.programs = programs.Programs()
        self._story: list[str] = []
        self.helm = helm.Helm(self.server, self._story.append)
        self.programs.add(helm.PATH, self.helm.run)
        self.modules = modules.ModulesDir(root / "modules")
        self.global_hooks = root / "global-hooks"
        self.global_hooks.mkdir()
        self.webhooks = Registry[hook_entries.WebhookEntry]()
        self.conversions = Registry[hook_entries.ConversionEntry]()
        self.fence = Fence()
        self.places = 4
        """How many processes may answer requests at once."""
        self.heard = Heard()
        self.settings: dict[str, str | None] = {
            "namespace": api_server.NAMESPACE,
            "config_map": CONFIG_MAP,
            "modules_dirs": str(self.modules.path),
            "global_hooks_dir": str(self.global_hooks),
            "tmp_dir": str(root / "tmp"),
        }
        """As flags, by the fields of :class:`.Settings`; a test changes them before the start."""
        self.parts: graph.Operator
        """The objects of the running operator."""
        self.graph: graph.Graph
        self._stack = contextlib.AsyncExitStack()

    # What a test gives it.

    def hook(self, place: str, config: Mapping[str, Any], act: hooks.Act | None = None) -> hooks.Hook:
        """Add a hook: ``web/a.sh`` is one of a module, ``a.sh`` a global one."""
        module, _, name = place.rpartition("/")
        hook = hooks.Hook(config, act, lambda run: self._story.append(f"{name}: {run}"))
        directory = self.global_hooks if not module else self.modules.add(module) / "hooks"
        modules.write(directory, {name: "#!/bin/sh\n"})
        (directory / name).chmod(0o755)
        self.programs.add(directory / name, hook)
        return hook

    def enabled_script(
        self, module: str, decide: Callable[[dict[str, Any]], bool | str | Awaitable[bool]]
    ) -> None:
        """Give a module an ``enabled`` script; it gets the values, and may give any text for its verdict."""

        async def run(call: programs.Call) -> None:
            decided = decide(json.loads(call.file("VALUES_PATH").read_bytes()))
            verdict = await decided if inspect.isawaitable(decided) else decided
            call.file("MODULE_ENABLED_RESULT").write_text(
                verdict if isinstance(verdict, str) else str(verdict).lower()
            )

        directory = self.modules.add(module, {"enabled": "#!/bin/sh\n"})
        self.programs.add(directory / "enabled", run)

    # Its life.

    async def start(self) -> None:
        """Start it, and let everything happen that follows."""
        kube = await self._stack.enter_async_context(
            api_server.client_of(self.server, self.clock, fence=self.fence)
        )
        self._stack.enter_context(clocks.without_threads())
        settings = settings_loading.load(self.settings, {})
        made = await ToolsHere.open(
            self._stack, settings, {}, helm.found(), kube, self.programs, time=self.clock
        )
        await made.memory.load()
        self._stack.push_async_callback(_save, made.memory)
        loaded = preflight.load_modules(settings)
        self.meters = metrics.Metrics("addon_operator_")
        slots = process_slots.ProcessSlots(self.places)
        asking = parts.Asking(slots, self.webhooks, self.conversions)
        self.graph = graph.Graph(made, loaded, self.meters, self.heard.append, asking)
        self.parts = await self.graph.build()
        works = {"engine": self.parts.engine.work, **self.parts.beside}
        running = [asyncio.create_task(work(), name=name) for name, work in works.items()]
        self._stack.push_async_callback(_end, running)
        self._stack.push_async_callback(self.parts.cluster.watches.close)
        await clocks.settle()

    async def stop(self) -> None:
        """End all of it at once; a further :meth:`start` starts another operator over the same cluster."""
        await self._stack.aclose()
        self._stack = contextlib.AsyncExitStack()

    async def advance(self, seconds: float) -> None:
        """Let time pass, second by second, and everything happen that is due then."""
        left = seconds
        while left > 0:
            await self.clock.advance(min(1.0, left))
            left -= 1.0

    async def reread(self) -> None:
        """Let changes on disk come to rest and be read: pauses between looks grow on a busy machine."""
        for _ in range(3):
            await self.clock.advance(60)

    async def edit(self, **sections: Any) -> None:  # noqa: ANN401 - JSON
        """Edit keys of the ConfigMap, ``None`` removes one; what is no text is written as JSON."""
        data = self.config() | {
            key: value if isinstance(value, str) or value is None else json.dumps(value)
            for key, value in sections.items()
        }
        body = api_server.an_object("ConfigMap", CONFIG_MAP)
        body["data"] = {key: text for key, text in data.items() if text is not None}
        stored = self.server.put(body)
        if hasattr(self, "parts"):
            self.parts.config.received(config_maps.snapshot_of(stored))
            await clocks.settle()

    async def want(self, *intents: intents_module.Intent) -> None:
        """Put these intents into the inbox of the engine, as its sources do."""
        for intent in intents:
            self.graph._inbox.put_nowait(intent)
        await clocks.settle()

    # What a test looks at.

    @property
    def told(self) -> list[str]:
        """The runs of all hooks in brief, such as ``a.sh: beforeHelm``; forgets them."""
        return [step for step in self.story if ": " in step]

    @property
    def story(self) -> list[str]:
        """The same, and what Helm changed in between, such as ``upgrade web``; forgets both."""
        found = self._story[:]
        self._story.clear()
        return found

    def config(self) -> dict[str, str | None]:
        """What the ConfigMap holds."""
        with contextlib.suppress(KeyError):
            return dict(self.server.get("ConfigMap", CONFIG_MAP).get("data") or {})
        return {}

    @property
    def waits(self) -> list[str]:
        """Bindings that began to wait, and why, or that wait no more; forgets them."""
        found = self.heard.of(binding_events.BindingWaits)
        self.heard[:] = [event for event in self.heard if event not in found]
        return [f"{event.binding.name}: {event.reason or 'no more'}" for event in found]

    async def failing_hooks(self, module: str) -> list[str]:
        """What the operator shows of a module's hooks that fail beside its runs."""
        await self.advance(30)
        return list(self.module(module).texts(findings.HOOK_FAILS))

    def row(self, name: str) -> introspection.ModuleRow:
        """What the operator shows of a module."""
        return self.parts.answers.views.module(names.ModuleName(name))

    def module(self, name: str) -> state.ModuleState:
        """What the engine knows of a module."""
        return self.graph.states[names.ModuleName(name)]

    @property
    def statuses(self) -> dict[str, str]:
        """Where each module is on its way."""
        return {each.module.name: each.status.value for each in self.graph.states}


class ToolsHere(tools.Tools):
    """Those whose workers are in this process."""

    worker = WorkerHere
    jq_pool = JqHere


async def _save(remembered: memory.Memory) -> None:
    with contextlib.suppress(errors.AddonOperatorError):
        await remembered.write()


async def _end(tasks: Sequence[asyncio.Task[None]]) -> None:
    for task in tasks:
        task.cancel()
    for outcome in await asyncio.gather(*tasks, return_exceptions=True):
        if isinstance(outcome, Exception) and not isinstance(outcome, api_errors.KubernetesError):
            raise outcome
