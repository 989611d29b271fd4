"""What hooks gave, as far as a plan can know it: a running operator tells it, or the last releases do."""

import dataclasses
import enum
from collections.abc import Callable, Mapping, Sequence
from typing import Final

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


@dataclasses.dataclass(frozen=True, slots=True)
class HookValuesOrigin:
    """Where the values of hooks are from."""

    source: Source = Source.NOTHING
    operator: str | None = None
    """Who told, if an operator did."""
    releases: Mapping[names.ModuleName, int] = dataclasses.field(default_factory=dict)
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
        told = await self._told(kube, pod)
        if told is None:
            given = await self._given(self._modules)
            self._adopt_shared(given)
            self._adopt_own(given)
            return HookValuesOrigin(Source.RELEASES if given else Source.NOTHING, releases=_numbers(given))
        self._adopt(None, told.shared, told.who)
        self._values.adopt_switches(told.switches)
        for name, found in told.modules.items():
            if name in self._modules:
                self._adopt(names.ModuleName(name), found, told.who)
            elif found:
                self._note(f"{told.who} has values of hooks of module {name}, which is not here: left out")
        pending = [name for name in self._modules if name in told.pending and not told.modules[name]]
        given = await self._given(pending)
        self._adopt_own(given)
        return HookValuesOrigin(Source.OPERATOR, told.who, _numbers(given))

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

    def _unfit(self, told: running_operator.OperatorHookValues, server: str | None) -> str:
        if told.namespace != self._settings.namespace:
            return f"it works in namespace {told.namespace}, and the plan is for {self._settings.namespace}"
        if server is not None and told.server != server:
            return f"it works with the API server {told.server}, and the plan is for {server}"
        return "its hooks have not run yet" if told.is_empty else ""

    async def _given(
        self, modules: Sequence[names.ModuleName] | Mapping[names.ModuleName, model.Module]
    ) -> dict[names.ModuleName, release_types.RevisionInputs]:
        """Return what releases were made with, newest first, of modules that hooks may give something."""
        has_global = (self._settings.global_hooks_dir / HOOKS).is_dir()
        found = {}
        for name in modules:
            if has_global or (self._modules[name].path / HOOKS).is_dir():
                try:
                    given = await self._manager.revision_inputs(name)
                except errors.AddonOperatorError as error:
                    self._note(f"what hooks gave to module {name} is not known: {error}")
                    continue
                if given is not None:
                    found[name] = given
        return dict(sorted(found.items(), key=lambda each: each[1].made_at, reverse=True))

    def _adopt_own(self, given: Mapping[names.ModuleName, release_types.RevisionInputs]) -> None:
        for name, found in given.items():
            module, source = self._modules[name], f"revision {found.revision} of {name}"
            if not (module.path / HOOKS).is_dir():
                continue
            section = _section(module, found)
            if (saved := hook_values.known_places(found.hook_places)) is not None:
                self._adopt(name, hook_values.at_places(saved.own, {module.key: section}, source), source)
            elif found.by_go_operator:
                known = _object(self._values.values(name)[module.key])
                self._adopt(name, hook_values.unexplained(module.key, known, section, source), source)

    def _adopt_shared(self, given: Mapping[names.ModuleName, release_types.RevisionInputs]) -> None:
        """Take what global hooks gave when the newest release was made that records it."""
        if not (self._settings.global_hooks_dir / HOOKS).is_dir():
            return
        told = [(name, saved) for name, found in given.items()
                if (saved := hook_values.known_places(found.hook_places)) is not None]  # fmt: skip
        if told:
            self._values.adopt_switches(told[0][1].switches)
            name, saved = next((each for each in told if _has_all(self._modules[each[0]])), told[0])
            source, shared = _shared(name, given[name])
            is_whole = _has_all(self._modules[name])
            self._adopt(None, hook_values.at_places(saved.shared, shared, source, is_whole=is_whole), source)
            return
        for name, found in given.items():
            if found.by_go_operator:
                source, shared = _shared(name, found)
                known = _object(self._values.values(None)[names.GLOBAL_KEY])
                inner = _object(shared[names.GLOBAL_KEY])
                self._adopt(None, hook_values.unexplained(names.GLOBAL_KEY, known, inner, source), source)
                return

    def _adopt(self, owner: names.ModuleName | None, given: hook_values.Patches, source: str) -> None:
        try:
            self._values.adopt(owner, given)
        except patches.PatchError as error:
            self._note(f"what hooks gave to {owner or 'global values'} by {source} is left out: {error}")


def _numbers(given: Mapping[names.ModuleName, release_types.RevisionInputs]) -> dict[names.ModuleName, int]:
    return {name: found.revision for name, found in given.items()}


def _has_all(module: model.Module) -> bool:
    """Say whether the module's chart gets all of the shared ``global``, and under its own keys."""
    return module.stock is None or module.stock.values is module_config.ValuesScope.SECTION


def _section(module: model.Module, found: release_types.RevisionInputs) -> json_types.JsonObject:
    return _object(found.values.get(module.key) if _has_all(module) else dict(found.values))


def _shared(name: names.ModuleName, found: release_types.RevisionInputs) -> tuple[str, json_types.JsonObject]:
    """Return what a release is called, and the global values that it was made with."""
    return f"revision {found.revision} of {name}", {
        names.GLOBAL_KEY: _object(found.values.get(names.GLOBAL_KEY))
    }


def _object(found: object) -> json_types.JsonObject:
    return found if isinstance(found, dict) else {}
