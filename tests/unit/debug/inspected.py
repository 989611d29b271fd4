"""A small operator to look at: two modules, one with hooks, one task that fails, and no cluster."""

import asyncio
import dataclasses
import functools
import json
import pathlib
from collections.abc import Mapping, Sequence
from typing import Any, Final

from typing_extensions import override

from addon_operator.debug import debug_api, debug_render, engine_api, runtime_config
from addon_operator.engine import intents, introspection, module_requests, module_states, state, tasks
from addon_operator.engine.bindings import hook_bindings
from addon_operator.engine.definitions import crd_guard
from addon_operator.engine.drift import (
    content_drift,
    drift,
    followed_releases,
    module_healths,
    record_watch,
    watched_resources,
)
from addon_operator.engine.hooks import hook_lines
from addon_operator.engine.modules import module_releases, release_monitor
from addon_operator.engine.queues import queue_set, task_queue
from addon_operator.hook_contract.configuration import bindings, hook_config
from addon_operator.kernel import errors, json_types, names
from addon_operator.kube.client import client
from addon_operator.modules import model
from addon_operator.modules.drift import drift_report, field_drift
from addon_operator.status import health, page_content
from addon_operator.values import config_map_reader, store
from addon_operator.values.patches import patches
from addon_operator.values.schema import schemas
from tests.support import clocks, timers, unused
from tests.unit.engine import bound_fakes, fakes

WEB = names.ModuleName("web")
KUBE_DNS = names.ModuleName("kube-dns")
SECRET = "hunter2-and-more"
SHARED = tuple("abcdefg")
"""Names of the objects that both modules have."""
_SCHEMA = "properties: {password: {type: string, x-sensitive: true}, size: {type: integer}}"
_GLOBAL_SCHEMA = "properties: {token: {type: string, x-sensitive: true}, domain: {type: string}}"


_WAITING: Final[hook_bindings.WaitingBinding] = {
    "hook": "pods.sh",
    "binding": "pods",
    "kind": "Pod",
    "reason": "the operator may not list pods",
}


HOME = ("addons", "https://cluster")
"""Its namespace and API server."""


class Renderer(debug_render.Renderer):
    def __init__(self) -> None:
        self.error: errors.AddonOperatorError | None = None

    @property
    @override
    def home(self) -> dict[str, str]:
        return {"namespace": HOME[0], "server": HOME[1]}

    @override
    async def render(self, module: model.Module, *, show_sensitive: bool) -> str:
        if self.error is not None:
            raise self.error
        return f"manifest of {module.name}, sensitive: {show_sensitive}\n"

    @override
    async def diff(self, module: model.Module, *, show_sensitive: bool) -> str:
        return f"diff of {module.name}, sensitive: {show_sensitive}\n"

    @override
    async def revisions(self, module: model.Module) -> str:
        return f"revision 6 → 7\n+the change of {module.name}\n"

    @override
    async def pending(self, module: model.Module, *, is_removal: bool) -> str:
        return f"the difference of {module.name}\n"


class Snapshots(hook_bindings.HookBindings):
    def __init__(self) -> None:
        """Nothing is followed."""

    @override
    def snapshots(self, hook: state.Hook) -> Mapping[str, Sequence[bytes]]:
        secret: json_types.JsonObject = {"kind": "Secret", "data": {"key": SECRET}}
        pod: json_types.JsonObject = {"kind": "Pod", "metadata": {"name": "one"}}
        return {
            "secrets": [json.dumps({"object": secret, "filterResult": SECRET}).encode()],
            "pods": [json.dumps({"object": pod, "filterResult": "one"}).encode()],
        }


class Resources(watched_resources.WatchedResources):
    """Those of web, one of which is gone, and those that both modules have."""

    def __init__(self, *shared: str) -> None:
        """Nothing is followed; ``shared``: what both modules have."""
        self._pairs: dict[tuple[names.ModuleName, ...], tuple[str, ...]] = {(KUBE_DNS, WEB): shared}
        if not shared:
            self._pairs.clear()

    @property
    @override
    def shared(self) -> dict[tuple[names.ModuleName, ...], tuple[str, ...]]:
        return self._pairs

    @override
    def view(self, module: names.ModuleName) -> list[watched_resources.Row] | None:
        if module != WEB:
            return None
        return [
            {"resource": "v1/ConfigMap addons/web", "state": "present"},
            {"resource": "v1/ConfigMap addons/gone", "state": "absent"},
        ]

    @override
    def namespace_of(self, module: names.ModuleName) -> str:
        return "addons"


class Drift(drift.Drift):
    """One object of web has been restored again and again."""

    def __init__(self) -> None:
        """Nothing is restored."""

    @override
    def recent(self, module: names.ModuleName) -> dict[str, int]:
        return {"ConfigMap addons/web": 3} if module == WEB else {}


class Releases(module_releases.ModuleReleases):
    """That of web is there."""

    def __init__(self) -> None:
        """Nothing is released."""

    @override
    def revision(self, release: str) -> int | None:
        return 7 if release == WEB else None

    @override
    def last_revision(self, release: names.ModuleName) -> int | None:
        return self.revision(release)


class Content(content_drift.ContentDrift):
    """Somebody changed two objects of web."""

    def __init__(self) -> None:
        """Nothing is compared."""

    @override
    def found(self, module: names.ModuleName) -> drift_report.Found:
        def changed(path: str, expected: str, live: str | None, manager: str) -> field_drift.Difference:
            return field_drift.Difference(("data", path), ("data", path), expected, live, manager)

        return {
            "ConfigMap web": [changed("a", "b", "z", "alice")],
            "Secret hidden": [changed("password", "c2VjcmV0", None, "")],
        }


def monitor() -> release_monitor.ReleaseMonitor:
    """What web consists of, and that one of its objects comes and goes."""
    return release_monitor.ReleaseMonitor(
        Drift(),
        Resources(*(f"ConfigMap addons/{name}" for name in SHARED)),
        unused.unused(followed_releases.FollowedReleases),
        Releases(),
        unused.unused(crd_guard.CrdGuard),
        unused.unused(module_healths.ModuleHealths),
        Content(),
        unused.unused(record_watch.RecordWatch),
    )


@dataclasses.dataclass(frozen=True)
class World:
    """The operator, and what a test may change of it."""

    api: debug_api.DebugApi
    engine: engine_api.EngineApi
    renderer: Renderer
    levels: list[str]
    queue: task_queue.TaskQueue
    states: module_states.ModuleStates
    values: store.ValuesStore
    inbox: intents.Inbox


def make() -> World:
    """An operator whose engine is not there yet; ``world.api.serve(world.engine)`` gives it one."""
    clock = clocks.Clock()
    modules = [
        model.Module(WEB, 20, pathlib.Path("020-web")),
        model.Module(KUBE_DNS, 10, pathlib.Path("010-d")),
    ]
    states = module_states.ModuleStates(modules, fakes.ignore)
    states.enabled = (WEB, KUBE_DNS)
    hook = state.Hook("pods.sh", pathlib.Path("pods.sh"), _hook_config())
    states[WEB].hooks = (hook,)
    states[WEB].next_try = clock.time() + 30
    queues = queue_set.QueueSet(fakes.ignore, clock=clock)
    queues.use("idle")
    queues["idle"]
    waiting = bound_fakes.WaitingBindings({WEB: [_WAITING]})
    renderer, levels, values, inbox = Renderer(), list[str](), _values(), intents.Inbox()
    engine = engine_api.EngineApi(
        introspection.Introspection(states, queues, waiting, (hook,), clock),
        values,
        states,
        renderer,
        Snapshots(),
        monitor(),
        module_requests.ModuleRequests(states, inbox, unused.unused(client.KubeClient), "addons"),
        outputs := hook_lines.LastOutputs(),
    )
    write = outputs.begin(WEB, "pods.sh")
    write("found 3 pods")
    write(f"the password is {SECRET}")
    runtime = runtime_config.RuntimeConfig(
        "info", timers.Timers().call_later, clock=clock, set_level=levels.append
    )
    page = page_content.PageContent(health.OperatorStatus(), "addons")
    page.show(engine.views, Resources())
    api = debug_api.DebugApi(runtime, lambda: "the operator is starting; ask again in a moment", page)
    return World(api, engine, renderer, levels, queues.main, states, values, inbox)


def _hook_config() -> hook_config.HookConfig:
    return hook_config.HookConfig(
        orders={hook_config.LifecycleBinding.BEFORE_HELM: 10},
        kubernetes=(
            bindings.KubernetesBinding("secret", name="secrets"),
            bindings.KubernetesBinding("Pod", name="pods"),
        ),
    )


@functools.cache
def _schemas() -> tuple[schemas.SectionSchemas, schemas.SectionSchemas]:
    """Those of the module and the global ones; nothing changes them, and dozens of tests want them."""
    return (
        schemas.load_schemas((_SCHEMA, "config-values.yaml"), (_SCHEMA, "values.yaml")),
        schemas.load_schemas((_GLOBAL_SCHEMA, "config-values.yaml")),
    )


def _values() -> store.ValuesStore:
    section, global_schemas = _schemas()
    made = store.ValuesStore(
        [store.ModuleValues(WEB, schemas=section), store.ModuleValues(KUBE_DNS)], (), global_schemas
    )
    data = {"global": f"domain: example.org\ntoken: {SECRET}", "web": "size: 2"}
    made.set_config(config_map_reader.ConfigMapReader(made.modules).read(data).usable())
    made.apply_values_patch(WEB, _patch({"op": "add", "path": "/web/password", "value": SECRET}))
    made.apply_values_patch(None, _patch({"op": "add", "path": "/global/zone", "value": "a"}))
    return made


def _patch(*operations: dict[str, Any]) -> patches.ValuesPatch:
    return patches.parse_patch(json.dumps(operations), "patch")


async def fail_a_task(world: World) -> None:
    """Put a task at the head of the main queue that has failed once."""

    async def run(_: tasks.Task) -> None:
        raise errors.AddonOperatorError("the chart is broken")

    world.queue.add(fakes.CallTask(tasks.TaskKind.MODULE_RUN, run, owner="web", fixed_delay=5.0))
    worker = asyncio.create_task(world.queue.work())
    await clocks.settle()
    worker.cancel()
    await asyncio.gather(worker, return_exceptions=True)
