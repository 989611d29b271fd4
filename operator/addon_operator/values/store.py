"""All values of the operator: the sources, what hooks changed, and what is read of them.

The store lives in one thread. Documents that it gives out are fresh copies, so that no caller can change it.
"""

import copy
import dataclasses
import pathlib
from collections.abc import Collection, Mapping, Sequence
from typing import Final, Self, cast

import msgspec
import orjson

from addon_operator.documents import json_documents
from addon_operator.kernel import errors, json_types, names
from addon_operator.values import (
    config_map,
    hook_writers,
    inspectors,
    origins,
    section,
    section_state,
    settings_checks,
    sources,
)
from addon_operator.values.patches import hook_values
from addon_operator.values.patches import patches as json_patches
from addon_operator.values.schema import schema_violations
from addon_operator.values.schema import schemas as values_schemas


class UnknownModuleError(errors.AddonOperatorError):
    """The store has no module of that name."""


_NO_FILE: Final = sources.ValuesFile("values.yaml")
_NO_SCHEMAS: Final = values_schemas.SectionSchemas()


class ModuleValues(msgspec.Struct, frozen=True):
    """What a module brings into the store."""

    module: names.ModuleName
    common: sources.ValuesFile = _NO_FILE
    """``values.yaml`` of the modules directory that the module lies in."""
    own: sources.ValuesFile = _NO_FILE
    """``values.yaml`` of the module."""
    schemas: values_schemas.SectionSchemas = _NO_SCHEMAS
    """The module's ``openapi/``."""
    has_crds: bool = False
    """Whether the module brings definitions."""
    hooks: pathlib.Path | None = None
    """The directory of its hooks, among which programs may check settings."""


class ValuesStore:
    """The values of all modules through all sources."""

    def __init__(
        self,
        modules: Sequence[ModuleValues] = (),
        common: Sequence[sources.ValuesFile] = (),
        global_schemas: values_schemas.SectionSchemas = _NO_SCHEMAS,
        inspector: inspectors.Inspector = inspectors.HERE,
        *,
        crd_names: bool = False,
        settings_checks: settings_checks.SettingsChecks = settings_checks.NO_PROGRAMS,
    ) -> None:
        """Take as ``common`` the ``values.yaml`` of all modules directories in order, for ``global``.

        ``crd_names`` is the setting ``ENABLED_MODULES_CRD_NAMES``.
        """
        self.inspector: Final = inspector
        self.settings_checks: Final = settings_checks
        self.enabled: Sequence[names.ModuleName] = ()
        """Enabled modules in run order, as the last discovery found them."""
        self._crd_names = crd_names
        self._with_crds: frozenset[names.ModuleName] = frozenset()
        self._hooks: dict[names.ModuleName, pathlib.Path] = {}
        self._config = sources.ConfigValues()
        self.withheld: Mapping[names.ModuleName, frozenset[str]] = {}
        """Modules of whose configuration nothing is known to be right, with their keys that are wrong."""
        self._suspended: frozenset[names.ModuleName] = frozenset()
        self._writers: dict[names.ModuleName | None, hook_writers.HookWriters] = {}
        self._files: dict[names.ModuleName, tuple[sources.ValuesFile, ...]] = {}
        self._common: tuple[sources.ValuesFile, ...] = ()
        self._modules: dict[names.ModuleName, section.Section] = {}
        self._global = section.Section(None, inspector)
        self.set_files(modules, common, global_schemas)

    @property
    def config(self) -> sources.ConfigValues:
        """What the ConfigMap says, with the Secret that lies over it."""
        return self._config

    @property
    def modules(self) -> tuple[names.ModuleName, ...]:
        """All modules, whether enabled or not."""
        return tuple(self._modules)

    def snapshot(self, *modules: names.ModuleName | None) -> Self:
        """Return what the store has now of ``global`` and of these modules, for another thread to read.

        With values as large as they may be, whatever is made of them takes too long for the loop.
        """
        frozen = copy.copy(self)
        frozen._global = self._global.snapshot()  # noqa: SLF001
        frozen._modules = {each: self.section_of(each).snapshot() for each in modules if each}  # noqa: SLF001
        return frozen

    def set_files(
        self,
        modules: Sequence[ModuleValues],
        common: Sequence[sources.ValuesFile],
        global_schemas: values_schemas.SectionSchemas = _NO_SCHEMAS,
    ) -> None:
        """Replace the sources that are files; patches of modules that stay are kept.

        ConfigMap and Secret must then be read again with the new modules and given to :meth:`set_config`.
        """
        shared = copy.copy(self._global)
        shared.set_files([file.section(names.GLOBAL_KEY) for file in common], global_schemas)
        sections = {module.module: self._module_section(module) for module in modules}
        # Nothing of this can fail.
        self._global, self._modules, self._common = shared, sections, tuple(common)
        self._files = {module.module: (module.common, module.own) for module in modules}
        self._with_crds = frozenset(module.module for module in modules if module.has_crds)
        self._hooks = {module.module: module.hooks for module in modules if module.hooks is not None}

    def with_files(
        self,
        modules: Sequence[ModuleValues],
        common: Sequence[sources.ValuesFile],
        global_schemas: values_schemas.SectionSchemas = _NO_SCHEMAS,
    ) -> Self:
        """Return what the store will be after :meth:`set_files`: an error there leaves all as it is."""
        changed = copy.copy(self)
        changed.set_files(modules, common, global_schemas)
        return changed

    def _module_section(self, module: ModuleValues) -> section.Section:
        before = self._modules.get(module.module)
        own = section.Section(module.module, self.inspector) if before is None else copy.copy(before)
        files = (module.common.section(own.key), module.own.section(own.key))
        own.set_files(files, module.schemas)
        own.set_config(self._config.section(own.key), self._config.secret_section(own.key))
        return own

    def set_config(
        self, config: sources.ConfigValues, withheld: Mapping[names.ModuleName, frozenset[str]] | None = None
    ) -> sources.ConfigChange:
        """Replace what ConfigMap and Secret say, and return what that changed.

        Nothing is to be done with modules that are :attr:`withheld`; by default, those stay that are.
        """
        before = self._decided()
        self._config = config
        self.withheld = self.withheld if withheld is None else withheld
        after = self._decided()
        for each in (self._global, *self._modules.values()):
            each.come_into_force()
        return sources.ConfigChange(
            self._set_config_of(self._global),
            frozenset(module for module in self._modules if before[module][0] != after[module][0]),
            frozenset(module for module, each in self._modules.items() if self._set_config_of(each)),
            frozenset(module for module in self._modules if before[module][1] != after[module][1]),
        )

    def _set_config_of(self, part: section.Section) -> bool:
        return part.set_config(self._config.section(part.key), self._config.secret_section(part.key))

    def config_values(self, module: names.ModuleName | None) -> json_types.JsonObject:
        """Return what hooks find under ``CONFIG_VALUES_PATH``: sections of ConfigMap and Secret."""
        text = self.config_values_json(module)
        return cast("json_types.JsonObject", json_documents.decode(text))

    def config_values_json(self, module: names.ModuleName | None) -> bytes:
        """Return :meth:`config_values` as JSON."""
        parts = [self._global] if module is None else [self._global, self.section_of(module)]
        return json_documents.encode({part.key: orjson.Fragment(part.config_text) for part in parts})

    def values(
        self, module: names.ModuleName | None, enabled_modules: Sequence[names.ModuleName] | None = None
    ) -> json_types.JsonObject:
        """Return what hooks find under ``VALUES_PATH``, and charts: ``global``, and a module's own section.

        ``enabled_modules`` become ``global.enabledModules``, for hooks of modules and ``enabled`` scripts,
        unless a file or the ConfigMap has that key.
        """
        text = self.values_json(module, enabled_modules)
        return cast("json_types.JsonObject", json_documents.decode(text))

    def values_json(
        self, module: names.ModuleName | None, enabled_modules: Sequence[names.ModuleName] | None = None
    ) -> bytes:
        """Return :meth:`values` as JSON, without parsing or copying what did not change."""
        global_values: object = orjson.Fragment(self._global.text)
        if enabled_modules is not None:
            listed = self.enabled_modules(enabled_modules)
            shared = {**self._global.present}
            shared.setdefault(names.ENABLED_MODULES, listed)
            global_values = shared
        parts = {names.GLOBAL_KEY: global_values}
        if module is not None:
            own = self.section_of(module)
            parts[own.key] = orjson.Fragment(own.text)
        return json_documents.encode(parts)

    def enabled_modules(
        self, enabled: Sequence[names.ModuleName] | None = None
    ) -> list[json_types.JsonValue]:
        """Return ``global.enabledModules`` if these modules are enabled, by default :attr:`enabled`.

        With ``ENABLED_MODULES_CRD_NAMES``, ``NAME-crd`` stands before each module that brings definitions, as
        in modules of Deckhouse.
        """
        listed: list[json_types.JsonValue] = []
        for name in self.enabled if enabled is None else enabled:
            if self._crd_names and name in self._with_crds:
                listed.append(f"{name}-crd")
            listed.append(name)
        return listed

    def flag(self, module: names.ModuleName) -> sources.Flag:
        """Say whether the sources enable the module, and which of them decided.

        Raises :class:`UnknownModuleError`.
        """
        self.section_of(module)
        return sources.decide(module, self._files[module], self._global.hook_switches, self._config)

    def maintenance(self, module: names.ModuleName) -> str:
        """Return the module's maintenance mode; empty if it is managed as usual."""
        mode = self._config.maintenance_of(module)
        return sources.SUSPENDED if module in self._suspended and not mode else mode

    def suspend(self, modules: Collection[names.ModuleName]) -> sources.ConfigChange:
        """Have exactly these modules in maintenance, whatever the ConfigMap says, and return the change."""
        before = self._decided()
        self._suspended = frozenset(modules)
        after = self._decided()
        changed = frozenset(module for module in self._modules if before[module] != after[module])
        return sources.ConfigChange(
            global_changed=False,
            flags_changed=frozenset(),
            sections_changed=frozenset(),
            maintenance_changed=changed,
        )

    def masked_values(self, module: names.ModuleName | None) -> json_types.JsonObject:
        """Return :meth:`values` with what the schemas call sensitive hidden, for people to see."""
        parts = [self._global] if module is None else [self._global, self.section_of(module)]
        return {part.key: part.masked(part.present) for part in parts}

    def settings_verdicts(
        self, module: names.ModuleName, settings: json_types.JsonObject
    ) -> list[settings_checks.SettingsVerdict]:
        """Return what programs of the module say of settings; to be called in a thread."""
        hooks = self._hooks.get(module)
        return [] if hooks is None else self.settings_checks.verdicts(hooks, module, settings)

    def layers(
        self, module: names.ModuleName | None, config: sources.ConfigValues | None = None
    ) -> list[origins.Layer]:
        """Return what each source says of a section, lowest first.

        ``config`` is another state of ConfigMap and Secret than the one in force.
        """
        config = self._config if config is None else config
        key = self.section_of(module).key
        files = self._common if module is None else self._files[module]
        below = [origins.Layer(file.source, file.section(key)) for file in files]
        configured = [config] if config.secret is None else [config, config.secret]
        return [*below, *(origins.Layer(each.source, each.sections.get(key, {})) for each in configured)]

    def is_current(self, owner: names.ModuleName | None, patch: section_state.SectionPatch) -> bool:
        """Say whether a patch was worked out from what is in force."""
        return self.section_of(owner).is_current(patch)

    def apply_values_patch(
        self,
        owner: names.ModuleName | None,
        patch: json_patches.ValuesPatch,
        ready: section_state.SectionPatch | None = None,
    ) -> tuple[bool, bool]:
        """Apply a values patch whole, and remember it; after an error the store is as before.

        Return what it changed, by content: the values of the section, and what switches of modules decide.
        ``ready`` is what :meth:`.Section.patched` made of it on :meth:`frozen` values; made again if out of
        date.

        Raises :class:`.PatchError` or
        :class:`.InvalidValuesError`.
        """
        own = self.section_of(owner)
        if ready is None or not own.is_current(ready):
            ready = own.patched(patch)
        if ready.hook_switches == own.hook_switches:
            return own.take(ready), False
        before = self._decided()
        return own.take(ready), before != self._decided()

    def config_patched(
        self,
        owner: names.ModuleName | None,
        patch: json_patches.ValuesPatch,
        config: sources.ConfigValues | None = None,
    ) -> config_map.ConfigPatchResult:
        """Return what must be written to the ConfigMap; the store learns of it by :meth:`set_config`.

        ``config`` is a fresher state of the ConfigMap than the store's, after a conflict. What the Secret
        says is taken from the store: it lies over the ConfigMap, and never gets into it.

        Raises :class:`.PatchError` or
        :class:`.InvalidValuesError`.
        """
        own = self.section_of(owner)
        fresh = dataclasses.replace(config or self._config, secret=self._config.secret)
        result = config_map.patch_section(owner, patch, fresh)
        merged = sources.merge(result.section, fresh.secret_section(own.key))
        if violations := own.config_violations(merged):
            raise schema_violations.of_patch(patch, violations, {own.key: merged})
        return result

    def patches(self, owner: names.ModuleName | None) -> list[json_patches.Operation]:
        """Return a copy of the accumulated operations of a module's hooks, or of the global hooks."""
        operations = self.section_of(owner).log.operations()
        if owner is not None:
            return operations
        return operations + [
            {"op": "add", "path": "/" + key, "value": value}
            for key, value in self._global.hook_switches.items()
        ]

    def patch_groups(self, owner: names.ModuleName | None) -> list[list[json_patches.Operation]]:
        """Return the same as :meth:`patches`, without switches, by what counts only together."""
        return hook_values.groups(self.section_of(owner).log)

    def note_writer(
        self, owner: names.ModuleName | None, patch: json_patches.ValuesPatch, now: float
    ) -> None:
        """Remember which hook wrote a patch that was applied, for whoever asks where values are from."""
        self._writers.setdefault(owner, hook_writers.HookWriters()).note(patch, now)

    def writers(self, owner: names.ModuleName | None) -> hook_writers.HookWriters:
        """Return the last writes of hooks to a section."""
        return self._writers.get(owner) or hook_writers.HookWriters()

    @property
    def hook_switches(self) -> Mapping[str, bool]:
        """What global hooks say of modules."""
        return self._global.hook_switches

    def hook_places(self, module: names.ModuleName) -> hook_values.HookPaths:
        """Say where hooks wrote to, and what the Secret sets, as far as the module's chart gets it."""
        own = self.section_of(module)
        return hook_values.HookPaths(
            hook_values.places(self._global.log.steps()),
            hook_values.places(own.log.steps()),
            self._global.hook_switches,
            (*self._global.secret_places, *own.secret_places),
        )

    def adopt_switches(self, switches: Mapping[str, bool]) -> None:
        """Take over what global hooks said of modules elsewhere."""
        self._global.hook_switches = dict(switches)

    def frozen(
        self, module: names.ModuleName | None, config: json_types.JsonObject | None = None
    ) -> section.Section:
        """Return a section (``None``: ``global``) as it is now, for another thread to read.

        ``config``: as if the ConfigMap said that of it.
        """
        return self.section_of(module).snapshot(config)

    def drop_patches(self, module: names.ModuleName) -> None:
        """Forget what the module's hooks changed."""
        self.section_of(module).drop_patches()

    def section_of(self, module: names.ModuleName | None) -> section.Section:
        """Return the section of a module, or ``global``, as it changes.

        Raises :class:`UnknownModuleError`.
        """
        if module is None:
            return self._global
        try:
            return self._modules[module]
        except KeyError:
            raise UnknownModuleError(f"there is no module {module!r} with values") from None

    def _decided(self) -> dict[names.ModuleName, tuple[tuple[bool, bool], str]]:
        return {
            module: ((self.flag(module).enabled, module in self.withheld), self.maintenance(module))
            for module in self._modules
        }

    def is_enabled_by_sources(self, module: names.ModuleName) -> bool:
        """Say whether the module is enabled without a hook's doing."""
        return sources.decide(module, self._files[module], {}, self._config).enabled

    def enabled_by(self, config: sources.ConfigValues) -> list[names.ModuleName]:
        """Return the modules that are enabled if ConfigMap and Secret say this."""
        return [
            module
            for module, files in self._files.items()
            if sources.decide(module, files, self._global.hook_switches, config).enabled
        ]
