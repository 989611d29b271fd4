"""Taking modules in that changed on disk while the operator runs (setting ``WATCH_MODULES``)."""

import asyncio
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence

import msgspec
from msgspec import structs

from addon_operator.engine import engine, events, module_states, reactions, state, tasks
from addon_operator.engine.modules import module_hooks
from addon_operator.engine.sources import config_sync
from addon_operator.kernel import errors, names
from addon_operator.loading import module_files, module_loader, module_scan
from addon_operator.modules import findings, model
from addon_operator.values import checks, store


class _Before(msgspec.Struct, frozen=True):
    """What decides whether a change concerns other modules, too."""

    modules: dict[names.ModuleName, model.Module]
    flags: dict[names.ModuleName, bool]
    global_values: bytes
    values: dict[names.ModuleName, bytes]


class ModuleReload:
    """Brings values, states and hooks to what was loaded; nothing of a changed module runs meanwhile."""

    def __init__(
        self,
        values: store.ValuesStore,
        states: module_states.ModuleStates,
        configuration: config_sync.ConfigSync,
        hooks: module_hooks.ModuleHooks,
        running: engine.Engine,
        tell: events.Listener,
        first: module_scan.Scan,
        taken: Callable[[], Awaitable[None]],
    ) -> None:
        """``first`` shows what is in force; ``taken`` is called when something else is."""
        self._values = values
        self._states = states
        self._configuration = configuration
        self._hooks = hooks
        self._engine = running
        self._tell = tell
        self._in_force = first
        self.taken = taken

    def refuse(self, problem: str) -> None:
        """Report what is wrong on disk, and therefore stays as it was."""
        self._tell(events.ReloadRefused(problem))

    def cannot_look(self, trouble: str) -> None:
        """Note why the directories cannot be looked at; empty when they can again."""
        self._states.unreadable = trouble
        if trouble:
            self.refuse(trouble)
        else:
            self._tell(events.Noted("the modules directories can be read again"))

    async def take_in(self, loading: module_loader.Loading, loader: module_loader.ModuleLoader) -> None:
        """Take the modules in while nothing of them runs in ``main``, and have done what follows from that.

        If that fails, ``loader`` reads all that changed again with the next change.
        """
        await self._engine.reload(ReloadTask(self._engine, self, loading, loader))

    async def unread(self) -> str:
        """Name a directory that is new, or otherwise than what is in force; empty if there is none."""
        directories = tuple(self._in_force.common)
        try:
            now = await asyncio.to_thread(module_scan.scan, directories)
        except (OSError, errors.ConfigurationError):
            return str(directories[0])
        known = {**self._in_force.common, **self._in_force.modules}
        there = {**now.common, **now.modules}
        return next((str(path) for path, found in there.items() if known.get(path) != found), "")

    def changed_by(self, loading: module_loader.Loading) -> frozenset[names.ModuleName]:
        """Return the modules that changed or are gone."""
        there = {files.module.name for files in loading.loaded.modules}
        return frozenset(loading.touched) | {each.name for each in self._states.modules} - there

    async def take(self, loading: module_loader.Loading) -> reactions.Reaction:
        """Take the modules in; the result is what has to follow.

        If that fails, nothing of it is in force: values that cannot be worked out are found first.
        """
        loaded = loading.loaded
        modules = [files.module for files in loaded.modules]
        files = [files.values for files in loaded.modules], loaded.common, loaded.global_schemas
        before = await self._observe(self._values, self._states.modules)
        now = await self._observe(self._values.with_files(*files), modules)
        reaction = self._reaction(before, now, loading.touched)
        self._values.set_files(*files)
        was_refused = self._states.refuses
        is_due = self._states.withholds and not loading.refused and not loaded.lacks
        self._states.refused, self._states.lacks = loading.refused, loaded.lacks
        for name in loaded.strays.keys() - self._states.strays.keys():
            self._tell(events.Warned(loaded.strays[name]))
        self._states.strays = loaded.strays
        refused = {name: f"{state.REFUSED}: {text}" for name, text in loading.left.items()}
        self._states.note_each(findings.WRONG_FILES, refused)
        self._ignore(loaded.strangers)
        for gone in sorted(self._states.replace(modules)):
            self._engine.forget(gone)
            self._tell(events.ModuleGone(gone, before.modules[gone].path))
        if set(before.modules) != set(self._values.modules):
            await self._configuration.set_modules()
        for name in sorted(loading.touched):
            await self._renew_hooks(name)
        if loading.touched:
            self._tell(events.ModulesReloaded(sorted(loading.touched), loading.warnings))
        if was_refused and not self._states.refuses:
            self._tell(events.NothingRefused())
        self._in_force = loading.scan
        return reactions.Reaction(converge=True) if is_due else reaction

    def _ignore(self, strangers: tuple[str, ...]) -> None:
        for text in strangers:
            if text not in self._states.ignored:
                self._tell(events.Warned(text))
        self._states.ignored = strangers

    async def _renew_hooks(self, name: names.ModuleName) -> None:
        try:
            await self._hooks.renew(name)
        except errors.AddonOperatorError as error:
            self._tell(events.ReloadRefused(f"module {name}: {error}", is_of_hooks=True))
            said = f"{state.HOOKS_REFUSED}: module {name}: {errors.without_values(error)}"
            self._states.note(name, findings.WRONG_HOOKS, said)
        else:
            self._states.note(name, findings.WRONG_HOOKS)

    async def _observe(self, values: store.ValuesStore, modules: Sequence[model.Module]) -> _Before:
        known = values.modules
        enabled = [name for name in known if name in self._states.enabled]
        frozen = values.snapshot(*enabled)
        return _Before(
            {module.name: module for module in modules},
            {name: values.flag(name).enabled for name in known},
            await asyncio.to_thread(frozen.values_json, None),
            {name: await asyncio.to_thread(frozen.values_json, name) for name in enabled},
        )

    def _reaction(
        self, before: _Before, now: _Before, touched: Collection[names.ModuleName]
    ) -> reactions.Reaction:
        scripted = {name for name, module in now.modules.items() if module.enabled_script is not None}
        if (
            before.flags != now.flags
            or before.global_values != now.global_values
            or _places(before.modules) != _places(now.modules)
            or scripted & set(touched)
            or _lost_charts(before.modules, now.modules) & set(self._states.enabled)
        ):
            return reactions.Reaction(converge=True)
        changed = {name for name, text in now.values.items() if before.values.get(name) != text}
        return reactions.Reaction(
            runs=tuple(name for name in self._states.enabled if name in changed or name in touched)
        )


class ReloadTask(tasks.Task):
    """Takes changed modules in; after a failure the next change tries again."""

    kind = tasks.TaskKind.RELOAD_MODULES
    is_distinct = True
    allow_failure = True

    def __init__(
        self,
        running: engine.Engine,
        reload: ModuleReload,
        loading: module_loader.Loading,
        loader: module_loader.ModuleLoader,
    ) -> None:
        super().__init__(activation=engine.ACTIVATION_MODULES)
        self.also = reload.changed_by(loading)
        self._engine = running
        self._reload = reload
        self._loading = loading
        self._loader = loader

    async def run(self) -> None:
        """Take them in; raises what is wrong with them, and then nothing of them is in force."""
        try:
            reaction = await self._reload.take(self._loading)
        except Exception:
            self._loader.undo()
            raise
        self._engine.reloaded(reaction)
        await self._reload.taken()


def _lost_charts(
    before: Mapping[names.ModuleName, model.Module], now: Mapping[names.ModuleName, model.Module]
) -> set[names.ModuleName]:
    """Return the modules that have no chart any more: a discovery tells of the releases that they leave."""
    had = {name for name, module in before.items() if module.has_chart}
    return {name for name, module in now.items() if name in had and not module.has_chart}


def _places(modules: dict[names.ModuleName, model.Module]) -> dict[names.ModuleName, tuple[object, ...]]:
    return {
        name: (
            module.order,
            module.path,
            module.enabled_script is None,
            module.release,
            module.config.namespace,
            module.config.requires,
            module.config.windows,
            module.problem,
        )
        for name, module in modules.items()
    }


def config_check(values: store.ValuesStore) -> module_loader.Check:
    """Say whether the files of a module are right with the ConfigMap as it is in force."""

    def check(shared: module_files.LoadedModules, files: module_files.ModuleFiles) -> str | None:
        alone = store.ValuesStore(
            [files.values],
            shared.common,
            shared.global_schemas,
            values.inspector,
            settings_checks=values.settings_checks,
        )
        violations = checks.Checks(alone).config_violations(values.config)
        if not violations:
            return None
        # It is shown where no values may be.
        wrong = "; ".join(str(structs.replace(each, value=None)) for each in violations)
        return f"module {files.module.name}: its values would no longer be valid: {wrong}"

    return check
