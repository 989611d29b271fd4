"""What a plan is made from: files, and a cluster, or a state file in its place."""

import contextlib
import dataclasses
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

import msgspec
import orjson
from msgspec import structs

from addon_operator.app import tools
from addon_operator.commands import authors_helm
from addon_operator.commands.plan import given_values, proposal
from addon_operator.commands.plan_state import (
    hidden_values,
    plan_state,
    recorded_cluster,
    recorded_manifests,
)
from addon_operator.engine import config_events, events, intents
from addon_operator.helm import release_types
from addon_operator.kernel import names
from addon_operator.kube import api_errors
from addon_operator.kube.access import auth
from addon_operator.kube.client import client, retries
from addon_operator.kube.objects import module_objects
from addon_operator.loading import module_files, preflight
from addon_operator.process.children import children, launcher
from addon_operator.settings import settings as settings_module
from addon_operator.values import inspectors, store
from addon_operator.values.patches import patches


class Hidden(msgspec.Struct, frozen=True):
    """What a state file keeps to itself."""

    places: tuple[str, ...] = ()
    """Of values, as JSON pointers with their section's key."""
    unplannable: Mapping[str, str] = msgspec.field(default_factory=dict)
    """Modules whose manifests it does not have, and why."""

    def of_module(self, key: names.ValuesKey) -> bool:
        """Say whether the chart of a module gets hidden values."""
        return any(place.startswith((f"/{key}/", f"/{names.GLOBAL_KEY}/")) for place in self.places)


class PlanSources(msgspec.Struct, frozen=True):
    """All of it, as it was read."""

    loaded: module_files.LoadedModules
    values: store.ValuesStore
    parts: tools.Tools
    ignored: frozenset[str]
    """Releases that are never removed."""
    notes: list[str]
    """What has to be said; more is added while the plan is made."""
    wrong: Mapping[str, str]
    """What is wrong with sections and switches of ConfigMap and Secret, by their keys."""
    take: Callable[[], Awaitable[given_values.HookValuesOrigin]]
    """Brings what hooks gave into :attr:`values`, once releases were observed."""
    hidden: Hidden | None = None
    """``None`` if there is a cluster."""

    def adjusted(
        self, request: release_types.ReleaseRequest, key: names.ValuesKey
    ) -> release_types.ReleaseRequest:
        """Return the request, without Helm's own look at values that are hidden."""
        if self.hidden is None or not self.hidden.of_module(key):
            return request
        return structs.replace(request, skips_schemas=True)


async def live(
    settings: settings_module.Settings,
    environ: Mapping[str, str],
    stack: contextlib.AsyncExitStack,
    pod: str | None,
    proposed: proposal.Proposal = proposal.NOTHING,
) -> PlanSources:
    """Read files and cluster; ``pod``: which operator tells what hooks gave."""
    if proposed.secret is not None and settings.values_secret_name is None:
        raise proposal.ProposalError(
            "--secret stands in for the values Secret, and VALUES_SECRET is none: leave one of them out"
        )
    loaded, notes = _loaded(settings)
    notes += proposed.notes()
    access = auth.load_access(settings.kube_config, settings.kube_context, settings.kube_server, environ)
    kube = client.KubeClient(access, rate=retries.Rate(settings.kube_client_qps, settings.kube_client_burst))
    parts = await _tools(settings, environ, stack, kube)
    try:
        await parts.memory.read()
    except api_errors.Forbidden as error:
        notes.append(f"what the operator remembers of releases is left out: {error}")
    ignored = await tools.ignored_releases(kube, settings, environ)
    values = loaded.store(crd_names=settings.enabled_modules_crd_names)
    wrong = await _values(values, parts, notes, proposed)
    modules = {files.module.name: files.module for files in loaded.modules}
    given = given_values.GivenValues(values, modules, parts.releases, settings, notes.append)
    return PlanSources(loaded, values, parts, ignored, notes, wrong, lambda: given.take(kube, pod))


async def of_state(
    state: plan_state.PlanState,
    settings: settings_module.Settings,
    environ: Mapping[str, str],
    stack: contextlib.AsyncExitStack,
) -> PlanSources:
    """Read files, and a state file in place of the cluster."""
    if settings.namespace != state.namespace:
        raise plan_state.PlanStateError(
            f"the state file is of namespace {state.namespace}, and the settings name {settings.namespace}; "
            "leave the namespace out, or record that one"
        )
    loaded, notes = _loaded(settings)
    notes += state.notes
    empty = stack.enter_context(preflight.workspace(settings)) / "kubeconfig"
    empty.touch(mode=0o600)
    kube = recorded_cluster.client_of(state, recorded_cluster.access(empty))
    without = {name: text for name, text in environ.items() if not name.startswith("KUBE")}
    parts = await _tools(settings, without, stack, kube)
    if parts.memory.path in state.objects:
        await parts.memory.read()
    else:
        parts.memory.has_taken_over()
    hashes = hidden_values.StandIns(bytes.fromhex(state.hash_key))
    parts.without_cluster(lambda manifest: recorded_manifests.with_hashes(manifest, hashes))
    inspector = inspectors.Inspector(hidden_values.HiddenPlaces(state.hidden).leave)
    values = loaded.store(inspector, crd_names=settings.enabled_modules_crd_names)
    wrong = await _values(values, parts, notes, proposal.NOTHING)

    async def take() -> given_values.HookValuesOrigin:
        return _adopt(state.hook_values, values)

    hidden = Hidden(tuple(state.hidden), state.unplannable)
    return PlanSources(loaded, values, parts, frozenset(state.ignored), notes, wrong, take, hidden)


def _loaded(settings: settings_module.Settings) -> tuple[module_files.LoadedModules, list[str]]:
    preflight.check_global_hooks(settings)
    loaded = preflight.load_modules(settings)
    return loaded, [*settings.warnings, *loaded.warnings, *loaded.strangers]


async def _tools(
    settings: settings_module.Settings,
    environ: Mapping[str, str],
    stack: contextlib.AsyncExitStack,
    kube: client.KubeClient,
) -> tools.Tools:
    programs = children.Children(stack.enter_context(launcher.Launcher()), leaves_nothing=True)
    helm = await authors_helm.find_helm(environ, programs, settings.helm_bin_path)
    await stack.enter_async_context(kube)
    # Nothing is left behind: a plan changes nothing.
    tidy = dataclasses.replace(settings, debug_keep_tmp_files=False)
    return await tools.Tools.open(stack, tidy, environ, helm, kube, programs)


async def _values(
    values: store.ValuesStore, parts: tools.Tools, notes: list[str], proposed: proposal.Proposal
) -> dict[str, str]:
    """Read the values; return what is wrong with some, by their keys."""
    wrong: dict[str, str] = {}

    def note(event: events.Event) -> None:
        if isinstance(event, events.Warned):
            notes.append(event.text)
        elif isinstance(event, config_events.ConfigRefused):
            for key in {each.key for each in event.wrong}:
                of_key = config_events.listed_wrong([each for each in event.wrong if each.key == key])
                wrong[key] = f"its section of {event.source} is wrong: {of_key}"

    await parts.config_sync(values, intents.Inbox(), note).load(proposed.changed)
    try:
        namespace = parts.settings.namespace
        values.suspend(await module_objects.suspended(parts.kube, namespace, time.time()))
    except api_errors.Forbidden as error:
        notes.append(f"modules that somebody suspended are planned as if nobody had: {error}")
    return wrong


def _adopt(given: plan_state.HookValues, values: store.ValuesStore) -> given_values.HookValuesOrigin:
    values.adopt_switches(given["switches"])
    owners: dict[names.ModuleName | None, Sequence[Any]] = {None: given["shared"]} | {
        name: given["modules"].get(name, ()) for name in values.modules
    }
    for owner, groups in owners.items():
        patches_of = [patches.parse_patch(orjson.dumps(each).decode(), "the state file") for each in groups]
        values.section_of(owner).adopt(patches_of)
    releases = {names.ModuleName(name): number for name, number in given["releases"].items()}
    return given_values.HookValuesOrigin(given_values.Source(given["source"]), given["operator"], releases)
