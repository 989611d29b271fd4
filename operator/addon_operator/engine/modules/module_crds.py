"""CustomResourceDefinitions of modules: read from ``crds/`` of the module and of the charts within its chart.

They are applied before anything of the module runs. Each that was applied says so in an annotation, so that
after a restart one list shows what there is to do, and nothing else is read whole.
"""

import asyncio
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final, TypeAlias

from addon_operator.engine import events
from addon_operator.engine.modules import crd_sources, module_files
from addon_operator.helm.charts import chart_cache, chart_files, subcharts
from addon_operator.kernel import errors, names
from addon_operator.kube.objects import crds
from addon_operator.modules import crd_files, model

_Signature: TypeAlias = tuple[tuple[str, int, int, int, int], ...]
_RECENT: Final = 5.0
"""Seconds for which a list of all definitions is good: modules that start together share it."""
_CHART: Final = ("Chart.yaml", "requirements.yaml", "values.yaml")


class ModuleCrds:
    """Knows of which modules the definitions are as the files say."""

    def __init__(
        self,
        installer: crds.CrdInstaller,
        tell: events.Listener,
        sources: crd_sources.CrdSources,
        charts: chart_cache.ChartCache,
    ) -> None:
        self._installer = installer
        self._tell = tell
        self._sources = sources
        self._pulled = charts
        self._applied: dict[names.ModuleName, _Signature] = {}
        self._charts: dict[names.ModuleName, tuple[_Signature, subcharts.Subchart]] = {}
        self._names: dict[names.ModuleName, frozenset[str]] = {}
        self._modules: dict[names.ModuleName, model.Module] = {}
        self._known: asyncio.Task[Mapping[str, str]] | None = None
        self._known_until = 0.0
        self._written: dict[str, str] = {}
        self._told: dict[names.ModuleName, frozenset[str]] = {}
        self.on_defined: Callable[[], None] = lambda: None
        """Called when a module has definitions."""
        self.on_applied: Callable[[], None] = lambda: None
        """Called when kinds have come."""

    async def due(self, modules: Sequence[model.Module]) -> list[names.ModuleName]:
        """Return the enabled modules whose definitions are to be applied: newly enabled, or changed files.

        Modules that are not given are disabled: they will be newly enabled next time.
        """
        self._modules = {module.name: module for module in modules}
        for of_modules in (self._applied, self._charts, self._names, self._told):
            for name in of_modules.keys() - self._modules.keys():
                del of_modules[name]
        # Which of a chart's charts count depends on its values, which may be large.
        return await asyncio.to_thread(
            lambda: [each.name for each in modules if not each.problem and self._may_be_due(each)]
        )

    async def ensure(self, module: model.Module) -> None:
        """Apply the module's definitions, unless nothing changed since that was done.

        Raises a :class:`.ModuleError` that names file and document when a file
        holds something else, or the API server does not take a definition, and what pulling raises.
        """
        if module.problem:
            raise errors.ModuleError(module.name, module.problem)
        await self._pulled.ensure(module)
        try:
            await self._ensure(module)
        except errors.ModuleError:
            raise
        except (errors.AddonOperatorError, OSError) as error:
            told = errors.told(error, f"reading the definitions of module {module.name}")
            raise errors.ModuleError(module.name, str(told)) from error

    async def _ensure(self, module: model.Module) -> None:
        if not await asyncio.to_thread(self._is_due, module):
            return
        await asyncio.to_thread(self._look_at_charts, module)
        # A file that changes while it is read is read again by the next run.
        signature = await asyncio.to_thread(self._signature_now, module)
        await self._install(module)
        if signature:
            self._applied[module.name] = signature
        else:
            self._applied.pop(module.name, None)

    def owners(self, crd: str) -> list[model.Module]:
        """Return the enabled modules that define this."""
        return [
            self._modules[name]
            for name, known in self._names.items()
            if crd in known and name in self._modules
        ]

    async def restore(self, module: model.Module) -> None:
        """Apply those of the module's definitions that are gone; raises what :meth:`ensure` raises."""
        self.forget(module.name)
        await self.ensure(module)

    def forget(self, module: names.ModuleName) -> None:
        """Let the next run of the module look at its definitions."""
        self._applied.pop(module, None)
        self._known = None

    async def _install(self, module: model.Module) -> None:
        texts = await asyncio.to_thread(self._texts, module)
        if not texts:
            self._names.pop(module.name, None)
            return
        known = await self._what_is_applied()
        found, doubts = await asyncio.to_thread(self._read, texts, known)
        self._tell_once(module.name, doubts)
        self._names[module.name] = frozenset(found)
        self.on_defined()
        for name, (crd, text) in found.items():
            if crd is None:
                continue
            try:
                changed = await self._installer.ensure(crd, text)
            except errors.AddonOperatorError as error:
                raise errors.ModuleError(module.name, f"{crd.source}: {error}") from error
            self._written[name] = self._installer.digest(text)
            if changed:
                self._tell(events.Noted(f"CustomResourceDefinition {name} applied", module.name))
                self.on_applied()

    async def _what_is_applied(self) -> Mapping[str, str]:
        now = asyncio.get_running_loop().time()
        if self._known is None or now > self._known_until:
            self._written.clear()
            self._known = asyncio.create_task(self._installer.applied())
            self._known_until = now + _RECENT
        # What was written since the list began is known better than the list tells.
        return {**await asyncio.shield(self._known), **self._written}

    def _tell_once(self, module: names.ModuleName, doubts: Sequence[str]) -> None:
        before = self._told.get(module, frozenset())
        for doubt in doubts:
            if doubt not in before:
                self._tell(events.Warned(f"module {module}: {doubt}"))
        self._told[module] = before.union(doubts)

    def _read(
        self, texts: Sequence[tuple[str, str, bool]], known: Mapping[str, str]
    ) -> tuple[dict[str, tuple[crd_files.Crd | None, str]], list[str]]:
        """Read the definitions by their names, but not those that are applied already; and what is doubtful.

        Of the module's own definitions the last counts, of those of charts the first.
        """
        found: dict[str, tuple[crd_files.Crd | None, str]] = {}
        places: dict[str, str] = {}
        doubts: list[str] = []
        for source, text, is_own in texts:
            for name, place, crd, part in self._definitions(source, text, known):
                if name in found and not is_own:
                    continue
                if name in found:
                    doubts.append(crd_files.defined_twice(name, place, places[name]))
                found[name], places[name] = (crd, part), place
                doubts += crd.doubts if crd is not None else ()
        return found, doubts

    def _definitions(
        self, source: str, text: str, known: Mapping[str, str]
    ) -> Iterator[tuple[str, str, crd_files.Crd | None, str]]:
        """Yield name, place, definition and text of each; no definitions if all are applied already."""
        outline = crd_files.outline(text) or {}
        if outline and all(known.get(name) == self._installer.digest(part) for name, part in outline.items()):
            yield from ((name, source, None, "") for name in outline)
            return
        for crd in crd_files.parse(text, source):
            yield crd.name, source if outline else crd.source, crd, outline.get(crd.name, "")

    def _texts(self, module: model.Module) -> list[tuple[str, str, bool]]:
        """Return places and texts of all files that count, and whether they are the module's, which win."""
        own = [
            (str(path), module_files.read_text(path, crd_sources.MAX_FILE), is_own)
            for path, is_own in self._sources.files(module)
        ]
        known = self._charts.get(module.name)
        if known is None or not self._sources.of_subcharts(module, known[1]):
            return own
        chart = crd_sources.chart_of(module)
        return own + [(place, text, False) for place, text in self._sources.of_subcharts(module, chart)]

    def _look_at_charts(self, module: model.Module) -> None:
        """Learn what charts there are within the module's chart, if their files changed."""
        signature = self._signature_of_charts(module)
        if not signature:
            self._charts.pop(module.name, None)
        elif not self._is_known(module, signature):
            chart = crd_sources.chart_of(module)
            # The texts may be megabytes: they are read again when they are applied.
            self._charts[module.name] = signature, subcharts.without_texts(chart)

    def _is_known(self, module: model.Module, signature: _Signature) -> bool:
        known = self._charts.get(module.name)
        return not signature or (known is not None and known[0] == signature)

    def _may_be_due(self, module: model.Module) -> bool:
        try:
            return self._is_due(module)
        except Exception:  # noqa: BLE001 - the module's own task fails with it, and says so
            return True

    def _is_due(self, module: model.Module) -> bool:
        if not chart_cache.is_there(module):
            return True
        of_charts = self._signature_of_charts(module)
        if not self._is_known(module, of_charts):
            return True
        return self._applied.get(module.name) != (self._signature(module, of_charts) or None)

    def _signature_now(self, module: model.Module) -> _Signature:
        return self._signature(module, self._signature_of_charts(module))

    def _signature(self, module: model.Module, of_charts: _Signature) -> _Signature:
        """Return what the definitions depend on: files, and which of the chart's charts are enabled."""
        own = tuple(_state_of(str(path)) for path, _ in self._sources.files(module))
        if not of_charts:
            return own
        _, chart = self._charts[module.name]
        enabled = tuple((place, 0, 0, 0, 0) for place, _ in self._sources.of_subcharts(module, chart))
        return own + of_charts + enabled if own or enabled else ()

    def _signature_of_charts(self, module: model.Module) -> _Signature:
        chart = module.chart_directory
        if not chart_files.is_complete(chart) or not (found := subcharts.deciding_files(chart)):
            return ()
        found += [str(chart / name) for name in _CHART]
        return tuple(_state_of(path) for path in sorted(found))


def _state_of(path: str) -> tuple[str, int, int, int, int]:
    try:
        status = os.stat(path)  # noqa: PTH116 - a Path for each of a chart's files takes as long as asking
    except OSError:
        return path, 0, 0, 0, 0
    return path, status.st_mtime_ns, status.st_ctime_ns, status.st_size, status.st_ino
