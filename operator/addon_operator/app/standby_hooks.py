"""Hooks that answer the API server in a replica that does not lead, or does not yet.

It goes by what is registered: of each webhook the object in the cluster says module and hook, which are on
disk here, too. A hook is asked for its configuration when it is first needed, and its snapshots are followed
from then on, see :mod:`.standby_loaded`; requests wait for that. Its values are what files, ConfigMap and
Secret say: what hooks patched in memory only the leader knows, and only the leader could keep what this one
patches.
"""

import asyncio
import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import msgspec
from msgspec import structs

from addon_operator.admission.conversions import conversion_specs
from addon_operator.admission.hooks import hook_reviews, hook_specs
from addon_operator.admission.registration import registration_specs
from addon_operator.aio import threads
from addon_operator.app import tools
from addon_operator.engine import events, intents, module_states, state
from addon_operator.engine.bindings import (
    hook_answers,
    kubernetes_binding,
    process_slots,
    review_runs,
    standby_loaded,
)
from addon_operator.engine.hooks import (
    hook_outputs,
    hook_processes,
    hook_run,
    questions,
)
from addon_operator.hook_contract import conversions, hook_entries
from addon_operator.hook_contract.configuration import bindings, webhook_bindings
from addon_operator.hook_contract.outputs import review_answers
from addon_operator.kernel import errors, names
from addon_operator.kube import api_errors, cluster
from addon_operator.kube.client import client
from addon_operator.kube.informers import informers, object_changes
from addon_operator.kube.objects import config_maps
from addon_operator.loading import hook_files, module_files
from addon_operator.telemetry import metrics
from addon_operator.values import config_map_reader

_TIDY_SECONDS: Final = 30.0
"""Between two looks at what is not needed any more."""
_FRESH_SECONDS: Final = 2.0
"""So long the registered webhooks, and the values, are taken as they were read."""


class _Outputs(hook_outputs.HookOutputs):
    """Takes all but patches of values."""

    async def check(self, hook: state.Hook, ran: hook_processes.HookRunResult) -> hook_outputs.CheckedOutputs:
        checked = await super().check(hook, ran)
        if checked.values is not None or checked.config_values is not None:
            raise questions.NotLeadingError(
                f"hook {hook.name}: it patched values, and this replica does not lead, so that they would be "
                "lost; with several replicas, a hook that answers the API server must not patch values"
            )
        return checked


class _Follower(object_changes.ObjectListener):
    """Only the snapshots count."""

    def synced(self) -> None:
        """They are looked at when they are needed."""

    def changed(self, changes: object) -> None:
        """They are looked at when they are needed."""

    def trouble(self, reason: str | None) -> None:
        """Let requests wait as long as they can."""


class StandbyHooks:
    """Finds who answers at webhooks of which the engine of this process has said nothing."""

    def __init__(
        self,
        made: tools.Tools,
        modules: module_files.LoadedModules,
        kube: client.KubeClient,
        template: registration_specs.WebhookConfiguration,
        meters: metrics.Metrics,
        asking: "Surroundings",
    ) -> None:
        """``kube`` reads and writes whoever leads; ``template`` names what is registered."""
        self._modules, self._kube, self._template = modules, kube, template
        self._settings = made.settings
        seen = cluster.Cluster(kube, made.kinds, made.settings.namespace, made.time, meters.watch_failed)
        self._watches, self._jq = seen.watches, made.jq_filters
        self._values = modules.store(made.inspector)
        self._inspector = made.inspector
        self._tell = asking.tell
        self._states = module_states.ModuleStates([files.module for files in modules.modules], asking.tell)
        self._runner = made.hook_processes(alone=True)
        config = made.config_sync(self._values, intents.Inbox(), asking.tell)
        outputs = made.hook_outputs(seen, config, self._values, meters, _Outputs)
        executor = hook_run.HookExecutor(self._runner, self._values, outputs, self._states, asking.tell)
        self._runs = review_runs.ReviewRuns(executor, asking.slots, lambda _hook: None)
        self._is_answered = asking.is_answered
        self._converting: dict[str, tuple[float, Sequence[tuple[str, str]]]] = {}
        self._loaded = standby_loaded.LoadedHooks(self._load, self._follow, made.time)
        self._loading = asyncio.Lock()
        self._registered: dict[hook_reviews.Key, tuple[str, str]] = {}
        self._known: set[hook_reviews.Key] = set()
        self._looked = self._read = float("-inf")

    async def find(self, key: hook_reviews.Key) -> hook_entries.WebhookEntry | None:
        """Return who answers there; what is not registered any more is allowed."""
        arrived = asyncio.get_running_loop().time()
        async with self._loading:
            await self._look(arrived - _FRESH_SECONDS)
            if key not in self._registered:
                # It may have been registered just now.
                await self._look(arrived)
            if key not in self._registered:
                return _allowing(key) if self._looked >= arrived or key in self._known else None
            try:
                loaded = await self._loaded.get(self._registered[key])
                await self._read_values()
            except errors.AddonOperatorError as error:
                raise hook_entries.NotAnsweredError(
                    f"webhook {key[1]} cannot be answered: {error}"
                ) from error
        answers = hook_answers.WebhookAnswers(self._runs, loaded.objects, self._tell)
        for entry in answers.entries([loaded.hook]):
            if (entry.binding.type, entry.binding.name) == key:
                return entry
        return None

    async def find_conversions(self, crd_name: str) -> list[hook_entries.ConversionEntry]:
        """Return who converts objects of a definition, as it says itself.

        Raises :class:`.ConversionError` when that cannot be found out.
        """
        arrived = asyncio.get_running_loop().time()
        async with self._loading:
            try:
                noted = await self._noted(crd_name, arrived)
                loaded = [await self._loaded.get(place) for place in noted]
                if loaded:
                    await self._read_values()
            except errors.AddonOperatorError as error:
                raise conversions.ConversionError(f"{crd_name} cannot be converted: {error}") from error
        found: list[hook_entries.ConversionEntry] = []
        for each in loaded:
            answers = hook_answers.ConversionAnswers(self._runs, each.objects, self._tell)
            found.extend(answers.entries([each.hook]))
        return found

    async def keep(self) -> None:
        """Let go of hooks that nobody asks here any more, until cancelled."""
        while True:
            await asyncio.sleep(_TIDY_SECONDS)
            if self._loaded:
                await self._tidy()

    async def _tidy(self) -> None:
        async with self._loading:
            await self._look(asyncio.get_running_loop().time())
            places = {*self._registered.values()}
            for crd_name in [*self._converting]:
                try:
                    places.update(await self._noted(crd_name, asyncio.get_running_loop().time()))
                except api_errors.KubernetesError:
                    places.update(self._converting[crd_name][1])
        self._loaded.keep_only([place for place in places if not self._is_answered(place)])

    async def _noted(self, crd_name: str, since: float) -> Sequence[tuple[str, str]]:
        """Return module and hook of each that converts, as they were noted since then."""
        now = asyncio.get_running_loop().time()
        looked, noted = self._converting.get(crd_name, (float("-inf"), ()))
        if looked >= since:
            return noted
        try:
            live = await self._kube.get(conversion_specs.path_of(crd_name), metadata_only=True)
        except api_errors.NotFound:
            self._converting.pop(crd_name, None)
            return ()
        note = conversion_specs.note_of(live)
        is_ours = note is not None and note.operator == self._settings.namespace
        noted = note.hooks if note is not None and is_ours else ()
        self._converting[crd_name] = now, noted
        return noted

    async def close(self) -> None:
        """Follow nothing any more."""
        await self._watches.close()

    async def _look(self, since: float) -> None:
        """Find out what is registered, unless that was done since then; it stays if nobody answers."""
        now = asyncio.get_running_loop().time()
        if self._looked >= since:
            return
        found: dict[hook_reviews.Key, tuple[str, str]] = {}
        try:
            for asked, kind in hook_specs.KINDS.items():
                live = await self._live(kind)
                found |= {(asked, name): place for name, place in hook_specs.owners_of(live).items()}
        except api_errors.KubernetesError:
            return
        self._registered, self._looked = found, now
        self._known |= found.keys()

    async def _live(self, kind: registration_specs.ConfigurationKind) -> Mapping[str, Any]:
        try:
            return await self._kube.get(structs.replace(self._template, kind=kind).path)
        except api_errors.NotFound:
            return {}

    def _follow(self, binding: bindings.KubernetesBinding) -> informers.Subscription:
        return self._watches.subscribe(
            kubernetes_binding.selection_of(binding),
            kubernetes_binding.projection_of(binding, self._jq),
            _Follower(),
        )

    async def _load(self, owner: str, name: str) -> tuple[state.Hook, standby_loaded.Stamp]:
        module = names.ModuleName(owner) if owner else None
        if module is None:
            root = hook_files.global_hooks_root(self._settings.global_hooks_dir)
        elif module in self._states:
            root = self._states[module].module.path / hook_files.HOOKS_DIRECTORY
        else:
            raise errors.ConfigurationError(f"there is no module {owner} here")
        files = await asyncio.to_thread(hook_files.discover, root)
        for file in files.executables:
            # A program that holds many hooks is a part of their names.
            if name == file.name or name.startswith(f"{file.name}:"):
                # Before it is asked: a change after that is not to be missed.
                stamp = await asyncio.to_thread(standby_loaded.stamp, file.path)
                read = await self._runner.read(file, module)
                if found := next((hook for hook in read.hooks if hook.name == name), None):
                    return found, stamp
        raise errors.ConfigurationError(f"there is no hook {name} below {root}")

    async def _read_values(self) -> None:
        """Take what ConfigMap and Secret say, unless that was just done; what is wrong stays as it was."""
        now = asyncio.get_running_loop().time()
        if now < self._read + _FRESH_SECONDS:
            return
        settings = self._settings
        read = await config_maps.ConfigMap(self._kube, settings.namespace, settings.config_map).read()
        secret = tools.secret_of(settings, self._kube)
        above = None if secret is None else await secret.read()
        known = [files.module.name for files in self._modules.modules]
        config, values_above = (dict(each.data if each else {}) for each in (read, above))
        await threads.run(threads.EDITS, self._take, known, config, values_above)
        self._read = now

    def _take(
        self, known: list[names.ModuleName], config: Mapping[str, str], secret: Mapping[str, str]
    ) -> None:
        parse = self._inspector.parse_section
        below = config_map_reader.ConfigMapReader(known, "ConfigMap", parse).read(config)
        above = config_map_reader.ConfigMapReader(known, "Secret", parse, is_secret=True).read(secret)
        if not below.violations and not above.violations:
            self._values.set_config(dataclasses.replace(below.values, secret=above.values))
            enabled = [name for name in known if self._values.flag(name).enabled]
            self._values.enabled = self._states.enabled = tuple(enabled)


class Surroundings(msgspec.Struct, frozen=True):
    """What it shares with the engine of this process."""

    slots: process_slots.ProcessSlots
    tell: events.Listener
    is_answered: Callable[[standby_loaded.Place], bool]
    """Says whether the engine of this process answers for a hook."""


def _allowing(key: hook_reviews.Key) -> hook_entries.WebhookEntry:
    async def allow(_request: hook_entries.ReviewRequest) -> review_answers.AdmissionAnswer:
        return review_answers.ALLOWED

    asked, name = key
    binding = webhook_bindings.WebhookBinding(asked, name)
    return hook_entries.Entry("", "", binding, allow)
