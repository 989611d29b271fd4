"""Answer questions about a running engine with documents, and have its modules run.

Names and shapes are those of the Go operator's endpoint where it has them; more fields stand beside them.
"""

import asyncio
import json
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import addon_operator
from addon_operator.aio import turns
from addon_operator.debug import debug_client, debug_masking, debug_render, page_details
from addon_operator.engine import introspection, module_requests, module_states, state, tasks
from addon_operator.engine.bindings import hook_bindings
from addon_operator.engine.drift import watched_resources
from addon_operator.engine.hooks import hook_lines
from addon_operator.engine.modules import module_releases, release_monitor
from addon_operator.helm.charts import chart
from addon_operator.hook_contract.configuration import hook_config
from addon_operator.kernel import clock, errors, json_types, names
from addon_operator.kube.objects import suspension
from addon_operator.loading import value_origins
from addon_operator.modules import model
from addon_operator.modules.drift import drift_report
from addon_operator.values import section, store

Monitor = release_monitor.ReleaseMonitor


NO_MONITOR: Final = "No monitor"
"""What the Go operator says of a module whose resources nobody watches."""


class NoSuchModuleError(errors.AddonOperatorError):
    """There is no such module."""


class EngineApi:
    """Answers questions about a running engine."""

    def __init__(
        self,
        views: introspection.Introspection,
        values: store.ValuesStore,
        states: module_states.ModuleStates,
        renderer: debug_render.Renderer,
        bindings: hook_bindings.HookBindings,
        monitor: Monitor,
        requests: module_requests.ModuleRequests,
        outputs: hook_lines.LastOutputs,
    ) -> None:
        self.views: Final = views
        """Modules and queues as the status page shows them, too."""
        self._values = values
        self._states = states
        self._renderer = renderer
        self._bindings = bindings
        self._monitor = monitor
        self._requests = requests
        self._outputs = outputs

    @property
    def home(self) -> Mapping[str, str]:
        """The namespace that the operator works in, and the URL of its API server."""
        return self._renderer.home

    def global_list(self) -> object:
        """Return names of all global hooks, and what of them does not work."""
        views = self.views
        return {
            "globalHooks": [hook.name for hook in views.global_hooks],
            "troubles": views.looks.of_global_hooks(),
            "runningHooks": views.looks.running_of(tasks.GLOBAL_OWNER),
            "waitingBindings": views.waiting_global_bindings,
            "answering": views.answering_global_hooks,
        }

    async def values(
        self, module: str | None, *, with_global: bool, show_sensitive: bool
    ) -> Mapping[str, json_types.JsonValue]:
        """Return the values of a module, or global ones; ``with_global`` puts both under their keys."""
        return await self._sections(
            module, lambda part: part.present, with_global=with_global, show_sensitive=show_sensitive
        )

    async def config(self, module: str | None, *, with_global: bool, show_sensitive: bool) -> object:
        """Return what the ConfigMap says of a module, or of global values."""
        return await self._sections(
            module, lambda part: part.config, with_global=with_global, show_sensitive=show_sensitive
        )

    async def patches(self, module: str | None, *, show_sensitive: bool) -> object:
        """Return the accumulated operations of a module's hooks, or of the global hooks."""
        name = None if module is None else self._module(module).name
        operations = await asyncio.to_thread(self._values.snapshot(name).patches, name)
        if show_sensitive:
            return operations
        return await asyncio.to_thread(self._values.frozen(name).masked_operations, operations)

    async def origins(self, module: str, *, show_sensitive: bool) -> object:
        """Return the values of a module, and where each comes from; what is sensitive is masked."""
        name = self._module(module).name
        frozen = self._values.snapshot(name)

        def rows() -> list[value_origins.OriginRow]:
            return value_origins.ValueOrigins(frozen, name).rows(show_sensitive=show_sensitive)

        return {"module": name, "values": await asyncio.to_thread(rows)}

    async def why(self, module: str, wanted: str, path: str, *, paths: bool = False) -> object:
        """Return where objects of a module, or fields of one, come from; see :meth:`.Why.of`."""
        return await self._renderer.why.of(self._module(module), wanted, path, paths=paths)

    async def hook_values(self) -> object:
        """Return what all hooks gave, sensitive values included: ``plan`` replays it over other files."""
        return {
            "version": addon_operator.__version__,
            **self._renderer.home,
            "global": {
                "patches": await self._groups(None),
                "switches": dict(self._values.hook_switches),
            },
            "modules": {
                row["name"]: {
                    "patches": await self._groups(names.ModuleName(row["name"])),
                    "hasRun": row["lastRun"] is not None,
                }
                for row in await self.views.modules()
            },
        }

    async def _groups(self, module: names.ModuleName | None) -> object:
        return await asyncio.to_thread(self._values.snapshot(module).patch_groups, module)

    async def snapshots(self, module: str | None, *, show_sensitive: bool) -> object:
        """Return the objects that kubernetes bindings hold, by hook and binding."""
        views = self.views
        hooks = views.global_hooks if module is None else views.hooks_of(self._module(module).name) or ()
        held = {hook: self._bindings.snapshots(hook) for hook in hooks}

        def document() -> object:
            return {
                hook.name: _snapshots_of(hook, entries, show_sensitive=show_sensitive)
                for hook, entries in held.items()
            }

        return await asyncio.to_thread(document)

    async def modules(self) -> dict[str, Any]:
        """Return all modules, what of the global hooks does not work, and what values are not in force."""
        rows = await self.views.modules()
        enabled, refusals = self.views.enabled, list(self.views.refusals())
        global_hooks = self.views.looks.of_global_hooks()
        shared = self._monitor.resources.shared
        revisions = {
            row["name"]: self._monitor.releases.last_revision(names.ModuleName(row["name"])) for row in rows
        }

        def document() -> dict[str, Any]:
            shared_by = _by_module(shared)
            modules = [
                {
                    **row,
                    "revision": revisions[row["name"]],
                    "sharedObjects": shared_by.get(row["name"], []),
                }
                for row in rows
            ]
            return {
                "enabledModules": sorted(enabled),
                "modules": modules,
                "wrongValues": refusals,
                "globalHooks": global_hooks,
            }

        return await asyncio.to_thread(document)

    async def module(self, module: str) -> Mapping[str, object]:
        """Return one module with its hooks, its release and what is to know of that one's objects."""
        known = self._module(module)
        name = known.name
        hooks = self.views.hooks_of(name)
        titled = await asyncio.to_thread(_chart_title, known)
        return {
            **self.views.module(name),
            "namespace": self._monitor.resources.namespace_of(name),
            "chart": titled,
            "hooks": None if hooks is None else list(map(_hook, hooks)),
            "failingHooks": self.views.looks.hooks_of(name),
            "revision": self._monitor.releases.last_revision(name),
            "sharedObjects": _by_module(self._monitor.resources.shared).get(name, []),
            "absentObjects": _absent(self._monitor, name),
            "restoredObjects": dict(self._monitor.drift.recent(name)),
        }

    async def details(self, module: str) -> page_details.Details:
        """Return what only people with rights in the operator's pod see of a module; sensitive values masked.

        Raises what :meth:`pending` raises.
        """
        known = self._module(module)
        name, values = known.name, await self.values(module, with_global=False, show_sensitive=False)
        changes, revisions = await self.diff(module), await self._renderer.revisions(known)
        pending = "" if self._states[name].held_back is None else await self.pending(module)
        written = self._outputs.of(name)

        def outputs() -> dict[str, str]:
            redact = module_releases.redactor_of(self._values.snapshot(name), known)
            return {hook: redact("\n".join(lines)) for hook, lines in sorted(written.items())}

        return page_details.Details(
            name=name,
            values=values,
            error=self._states[name].last_error,
            differences=changes["differences"],
            revisions=revisions,
            pending=pending,
            outputs=await asyncio.to_thread(outputs),
        )

    async def diff(self, module: str) -> dict[str, Any]:
        """Return what others changed of the module's resources, and if they are compared at all.

        What is sensitive is masked.
        """
        name = self._module(module).name
        rows = drift_report.rows(self._monitor.content.found(name))
        redact = await asyncio.to_thread(
            lambda: module_releases.redactor_of(self._values.snapshot(name), self._states[name].module)
        )
        shown = ("expected", "live")
        return {
            "compared": self._states[name].drift is not None,
            "differences": [row | {key: row[key] and redact(row[key]) for key in shown} for row in rows],
        }

    async def run(self, module: str, *, waits: bool, past_windows: bool = False) -> object:
        """Have a module run now, although nothing changed; return its row, with ``waits`` after that run.

        With ``past_windows`` nothing of it waits for a window this once, its removal neither.
        Raises :class:`.CannotRunError` for a module that is not enabled, and whose removal is not wanted.
        """
        name = self._module(module).name
        ended = self._requests.run(name, past_windows=past_windows)
        if waits:
            await ended()
        return self.views.module(name)

    def retry(self, module: str) -> object:
        """Try a module again now whose run, or removal, failed; return its row.

        Raises :class:`.CannotRunError` if nothing of it waits for another try.
        """
        name = self._module(module).name
        self._requests.retry(name)
        return self.views.module(name)

    def confirm(self, release: str) -> object:
        """Have the removal of a module, or of a release without one, begin that waits for a confirmation.

        Raises :class:`.CannotRunError` if it does not wait for that.
        """
        self._monitor.releases.confirm(names.ModuleName(release))
        self._requests.converge()
        return {"name": release}

    async def suspend(
        self, module: str, reason: str, by: str, duration: str = "", *, replaces: bool = False
    ) -> object:
        """Have Helm and healing leave a module alone, if a duration (as in Go) is given, for that long.

        Raises :class:`.CannotRunError` if that cannot be kept, or somebody suspended it already and this
        does not replace that, and :class:`.DurationError`.
        """
        name, now = self._module(module).name, time.time()
        if not replaces and (found := self._states[name].suspended) is not None:
            raise module_requests.CannotRunError(suspension.already(name, found))
        until = now + clock.parse_duration(duration) if duration else None
        wanted = suspension.Suspension(reason, now, by, until)
        await self._requests.suspend(name, wanted)
        return {"name": name, "suspended": str(wanted)}

    async def resume(self, module: str) -> object:
        """Look after a module again that somebody suspended; raises :class:`.CannotRunError`."""
        name = self._module(module).name
        if self._states[name].suspended is None:
            raise module_requests.CannotRunError(f"module {name} is not suspended")
        await self._requests.resume(name)
        return {"name": name}

    async def resource_monitor(self) -> object:
        """Return the resources of each enabled module's release that are watched."""
        return dict(
            await turns.mapped(lambda name: (name, _watched(self._monitor, name)), self.views.enabled)
        )

    async def render(self, module: str, *, diff: bool, show_sensitive: bool) -> str:
        """Return the manifest of a module, or how it differs from the cluster."""
        name = self._module(module)
        renderer = self._renderer
        return await (renderer.diff if diff else renderer.render)(name, show_sensitive=show_sensitive)

    async def pending(self, module: str) -> str:
        """Return what waits for a window, as a unified diff below a line that says until when."""
        known = self._module(module)
        held = self._states[known.name].held_back
        if held is None:
            return debug_client.NOTHING_PENDING
        return f"{held}\n{await self._renderer.pending(known, is_removal=held.is_removal)}"

    async def main_queue(self) -> introspection.QueueRow:
        """Return the ``main`` queue."""
        return await self.views.main_queue()

    async def queues(self, *, show_empty: bool) -> introspection.QueueList:
        """Return all queues; of empty ones only their number unless they are wanted."""
        queues = await self.views.queues()
        return queues if show_empty else {**queues, "empty": []}

    def _module(self, name: str) -> model.Module:
        try:
            found = names.find(name, self._values.modules)
        except errors.ConfigurationError as error:
            raise NoSuchModuleError(str(error)) from None
        if found is None:
            raise NoSuchModuleError(
                "'global' is not a module; ask for global values with 'addon-operator global'"
            )
        return self._states[found].module

    async def _sections(
        self,
        module: str | None,
        read: Callable[[section.Section], json_types.JsonObject],
        *,
        with_global: bool,
        show_sensitive: bool,
    ) -> Mapping[str, json_types.JsonValue]:
        own = None if module is None else self._module(module).name
        wanted = (None, own) if with_global and own is not None else (own,)
        sections = [self._values.frozen(name) for name in wanted]
        shown = await asyncio.to_thread(_shown, sections, read, show_sensitive=show_sensitive)
        return shown if with_global else shown[sections[0].key]


def _snapshots_of(
    hook: state.Hook, held: Mapping[str, Sequence[bytes]], *, show_sensitive: bool
) -> dict[str, list[Any]]:
    """Parse snapshots and hide what is a Secret's; slow enough to be run in a thread."""
    kinds = {binding.name: binding.kind for binding in hook.config.kubernetes}
    parsed = {name: [json.loads(entry) for entry in entries] for name, entries in held.items()}
    if show_sensitive:
        return parsed
    return {
        name: [debug_masking.masked_snapshot(kinds.get(name, ""), entry) for entry in entries]
        for name, entries in parsed.items()
    }


def _chart_title(module: model.Module) -> str:
    """Return the module's chart as a person calls it; empty without one."""
    if not module.has_chart:
        return ""
    if module.stock is not None and (wanted := module.stock.reference) is not None:
        return f"{wanted.name} {wanted.version} of {wanted.repository}"
    return chart.title(module.path if module.stock is None else module.stock.directory) or "its templates/"


def _shown(
    kept: Sequence[section.Section],
    read: Callable[[section.Section], json_types.JsonObject],
    *,
    show_sensitive: bool,
) -> dict[str, json_types.JsonObject]:
    return {part.key: read(part) if show_sensitive else part.masked(read(part)) for part in kept}


def _hook(hook: state.Hook) -> json_types.JsonObject:
    return {"name": hook.name, "bindings": list(map(hook_config.row_document, hook_config.rows(hook.config)))}


def _by_module(
    shared: Mapping[tuple[names.ModuleName, ...], Sequence[str]],
) -> dict[str, list[json_types.JsonObject]]:
    """Return the objects that each module shares, with the other modules, and the one to which each belongs.

    ``shared``: see :attr:`.WatchedResources.shared`.
    """
    pairs_of: dict[str, list[tuple[names.ModuleName, ...]]] = {}
    for pair, resources in shared.items():
        for resource in resources:
            pairs_of.setdefault(resource, []).append(pair)
    by_module: dict[str, list[json_types.JsonObject]] = {}
    for resource, pairs in sorted(pairs_of.items()):
        modules = {module for pair in pairs for module in pair}
        owner = min(modules - {earlier for earlier, _ in pairs}, default="")
        for module in modules:
            others: list[json_types.JsonValue] = [*sorted(modules - {module})]
            by_module.setdefault(module, []).append({"resource": resource, "modules": others, "owner": owner})
    return by_module


def _absent(monitor: Monitor, module: names.ModuleName) -> list[json_types.JsonValue]:
    rows = monitor.resources.view(module) or ()
    return [row["resource"] for row in rows if row["state"] == watched_resources.ResourceState.ABSENT]


def _watched(monitor: Monitor, module: names.ModuleName) -> object:
    resources = monitor.resources.view(module)
    return NO_MONITOR if resources is None else list(resources)
