"""What hooks gave, as far as a plan can know it: a running operator tells it, or the last releases do."""

import enum
from collections.abc import Callable, Mapping, Sequence
from typing import Final

import msgspec

from addon_operator.commands.plan import running_operator
from addon_operator.helm import release_types
from addon_operator.helm.releases import releases
from addon_operator.kernel import errors, json_types, names
from addon_operator.kube.client import client
from addon_operator.modules import model, module_config
from addon_operator.settings import settings as settings_module
from addon_operator.values import store
from addon_operator.values.patches import hook_values, patches

_NAMED: Final = 5
HOOKS: Final = "hooks"


class Source(enum.StrEnum):
    """Where values that hooks give are taken from."""

    OPERATOR = "operator"
    RELEASES = "releases"
    NOTHING = "nothing"
    """Nobody knows any."""


class HookValuesOrigin(msgspec.Struct, frozen=True):
    """Where the values of hooks are from."""

    source: Source = Source.NOTHING
    operator: str | None = None
    """Who told, if an operator did."""
    releases: Mapping[names.ModuleName, int] = msgspec.field(default_factory=dict)
    """By module, the revision whose values of hooks count."""

    def __str__(self) -> str:
        listed = [f"{name} revision {number}" for name, number in sorted(self.releases.items())]
        revisions = names.listed(listed, _NAMED)
        if self.source is Source.OPERATOR:
            rest = f"; of modules that it has not run yet, those of {revisions}" if listed else ""
            return f"the values and flags that they set are those of {self.operator}{rest}"
        if self.source is Source.RELEASES:
            return (
                "the values and flags that they set are those that the last releases were made with "
                f"({revisions}); --from-pod takes those of a running operator"
            )
        return (
            "the values and flags that they set, and what would follow from them, are unknown: "
            "there is neither a running operator nor a release that records them"
        )


class GivenValues:
    """Brings what hooks gave into the values of a plan."""

    def __init__(
        self,
        values: store.ValuesStore,
        modules: Mapping[names.ModuleName, model.Module],
        manager: releases.ReleaseManager,
        settings: settings_module.Settings,
        note: Callable[[str], None],
    ) -> None:
        self._values = values
        self._modules = modules
        self._manager = manager
        self._settings = settings
        self._note = note

    async def take(self, kube: client.KubeClient, pod: str | None) -> HookValuesOrigin:
        """Take what there is: of the operator in ``pod``, else on the debug socket, else of the releases."""
        operator = await self._told(kube, pod)
        if operator is None:
            of_releases = await self._given(self._modules)
            self._adopt_shared(of_releases)
            self._adopt_own(of_releases)
            return HookValuesOrigin(
                Source.RELEASES if of_releases else Source.NOTHING, releases=_numbers(of_releases)
            )
        self._adopt(None, operator.shared, operator.who)
        self._values.adopt_switches(operator.switches)
        for name, of_module in operator.modules.items():
            if name in self._modules:
                self._adopt(names.ModuleName(name), of_module, operator.who)
            elif of_module:
                self._note(
                    f"{operator.who} has values of hooks of module {name}, which is not here: left out"
                )
        pending = [name for name in self._modules if name in operator.pending and not operator.modules[name]]
        of_releases = await self._given(pending)
        self._adopt_own(of_releases)
        return HookValuesOrigin(Source.OPERATOR, operator.who, _numbers(of_releases))

    async def _told(
        self, kube: client.KubeClient, pod: str | None
    ) -> running_operator.OperatorHookValues | None:
        socket = self._settings.debug_unix_socket
        if pod is None and not socket.is_socket():
            return None
        try:
            if pod is not None:
                found = await running_operator.in_pod(kube, pod, self._settings.namespace)
            else:
                found = await running_operator.on_socket(socket)
            if reason := self._unfit(found, None if pod else kube.access.server):
                raise running_operator.NotToldError(f"what hooks gave to {found.who} is left out: {reason}")
        except running_operator.NotToldError as error:
            self._note(str(error))
            return None
        return found

    def _unfit(self, operator: running_operator.OperatorHookValues, server: str | None) -> str:
        if operator.namespace != self._settings.namespace:
            return (
                f"it works in namespace {operator.namespace}, and the plan is for {self._settings.namespace}"
            )
        if server is not None and operator.server != server:
            return f"it works with the API server {operator.server}, and the plan is for {server}"
        return "its hooks have not run yet" if operator.is_empty else ""

    async def _given(
        self, modules: Sequence[names.ModuleName] | Mapping[names.ModuleName, model.Module]
    ) -> dict[names.ModuleName, release_types.RevisionInputs]:
        """Return what releases were made with, newest first, of modules that hooks may give something."""
        has_global = (self._settings.global_hooks_dir / HOOKS).is_dir()
        by_module = {}
        for name in modules:
            if has_global or (self._modules[name].path / HOOKS).is_dir():
                try:
                    inputs = await self._manager.revision_inputs(name)
                except errors.AddonOperatorError as error:
                    self._note(f"what hooks gave to module {name} is not known: {error}")
                    continue
                if inputs is not None:
                    by_module[name] = inputs
        return dict(sorted(by_module.items(), key=lambda each: each[1].made_at, reverse=True))

    def _adopt_own(self, by_module: Mapping[names.ModuleName, release_types.RevisionInputs]) -> None:
        for name, inputs in by_module.items():
            module, source = self._modules[name], f"revision {inputs.revision} of {name}"
            if not (module.path / HOOKS).is_dir():
                continue
            section = _section(module, inputs)
            if (saved := hook_values.known_places(inputs.hook_places)) is not None:
                self._adopt(name, hook_values.at_places(saved.own, {module.key: section}, source), source)
            elif inputs.by_go_operator:
                own = _object(self._values.values(name)[module.key])
                self._adopt(name, hook_values.unexplained(module.key, own, section, source), source)

    def _adopt_shared(self, by_module: Mapping[names.ModuleName, release_types.RevisionInputs]) -> None:
        """Take what global hooks gave when the newest release was made that records it."""
        if not (self._settings.global_hooks_dir / HOOKS).is_dir():
            return
        told = [(name, saved) for name, inputs in by_module.items()
                if (saved := hook_values.known_places(inputs.hook_places)) is not None]  # fmt: skip
        if told:
            self._values.adopt_switches(told[0][1].switches)
            name, saved = next((each for each in told if _has_all(self._modules[each[0]])), told[0])
            source, shared = _shared(name, by_module[name])
            is_whole = _has_all(self._modules[name])
            self._adopt(None, hook_values.at_places(saved.shared, shared, source, is_whole=is_whole), source)
            return
        for name, inputs in by_module.items():
            if inputs.by_go_operator:
                source, shared = _shared(name, inputs)
                known = _object(self._values.values(None)[names.GLOBAL_KEY])
                inner = _object(shared[names.GLOBAL_KEY])
                self._adopt(None, hook_values.unexplained(names.GLOBAL_KEY, known, inner, source), source)
                return

    def _adopt(self, owner: names.ModuleName | None, given: hook_values.Patches, source: str) -> None:
        try:
            self._values.section_of(owner).adopt(given)
        except patches.PatchError as error:
            self._note(f"what hooks gave to {owner or 'global values'} by {source} is left out: {error}")


def _numbers(
    by_module: Mapping[names.ModuleName, release_types.RevisionInputs],
) -> dict[names.ModuleName, int]:
    return {name: inputs.revision for name, inputs in by_module.items()}


def _has_all(module: model.Module) -> bool:
    """Say whether the module's chart gets all of the shared ``global``, and under its own keys."""
    return module.stock is None or module.stock.values is module_config.ValuesScope.SECTION


def _section(module: model.Module, inputs: release_types.RevisionInputs) -> json_types.JsonObject:
    return _object(inputs.values.get(module.key) if _has_all(module) else dict(inputs.values))


def _shared(
    name: names.ModuleName, inputs: release_types.RevisionInputs
) -> tuple[str, json_types.JsonObject]:
    """Return what a release is called, and the global values that it was made with."""
    return f"revision {inputs.revision} of {name}", {
        names.GLOBAL_KEY: _object(inputs.values.get(names.GLOBAL_KEY))
    }


def _object(value: object) -> json_types.JsonObject:
    return value if isinstance(value, dict) else {}
