"""CustomResourceDefinitions of modules: read from ``crds/`` of the module and of the charts within its chart.

They are applied before anything of the module runs. Each that was applied says so in an annotation, so that
after a restart one list shows what there is to do, and nothing else is read whole. Of definitions that
several modules bring one counts, as :mod:`.crd_claims` decides; whichever module is at work applies that one.
"""

import abc
import asyncio
import collections
import os
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import Final, TypeAlias

from addon_operator.engine import events
from addon_operator.engine.definitions import crd_index, module_charts
from addon_operator.helm.charts import chart_files, subcharts
from addon_operator.helm.repositories import chart_cache
from addon_operator.kernel import errors, names
from addon_operator.kernel.json_types import JsonObject
from addon_operator.kube import api_errors
from addon_operator.kube.objects import crds
from addon_operator.loading import crd_sources
from addon_operator.modules import crd_claims, crd_files, model

_Signature: TypeAlias = tuple[tuple[str, int, int, int, int], ...]
_RECENT: Final = 5.0
"""Seconds for which a list of all definitions is good: modules that start together share it."""
_REFUSED: Final = (400, 422)
"""What the API server answers to a definition that breaks its rules."""
_CHART: Final = ("Chart.yaml", "requirements.yaml", "values.yaml")
Create: TypeAlias = Callable[[names.ModuleName, Sequence[JsonObject]], Awaitable[None]]
"""Creates objects for a module that has no deployed revision yet, where they are absent."""


class DefinitionListener(abc.ABC):
    """Whoever watches over definitions, and over what may be there once they are: :class:`.CrdGuard`."""

    @abc.abstractmethod
    def defined(self) -> None:
        """Take note that a module has definitions."""

    @abc.abstractmethod
    def applied(self) -> None:
        """Take note that kinds have come."""


class ModuleCrds:
    """Knows of which modules the definitions are as the files say."""

    def __init__(
        self,
        installer: crds.CrdInstaller,
        tell: events.Listener,
        sources: crd_sources.CrdSources,
        charts: module_charts.ModuleCharts,
        create: Create,
    ) -> None:
        """``create`` makes what charts have beside definitions."""
        self._create = create
        self._installer = installer
        self._tell = tell
        self._sources = sources
        self.charts = charts
        """Those from repositories, which may bring definitions."""
        self._index = crd_index.CrdIndex(sources, installer.digest, self._chart_of)
        self._applied: dict[names.ModuleName, _Signature] = {}
        self._looked: dict[names.ModuleName, tuple[_Signature, list[str]]] = {}
        self._charts: dict[names.ModuleName, tuple[_Signature, subcharts.Subchart]] = {}
        self._modules: dict[names.ModuleName, model.Module] = {}
        self._known: asyncio.Task[Mapping[str, crds.Applied]] | None = None
        self._known_until = 0.0
        self._written: dict[str, crds.Applied] = {}
        self._turns: dict[str, asyncio.Lock] = collections.defaultdict(asyncio.Lock)
        self._told: dict[names.ModuleName, frozenset[str]] = {}
        self._left_out: dict[names.ModuleName, str] = {}
        self._listeners: list[DefinitionListener] = []

    def subscribe(self, listener: DefinitionListener) -> None:
        """Tell the listener from now on which definitions there are and come."""
        self._listeners.append(listener)

    async def due(self, modules: Sequence[model.Module]) -> list[names.ModuleName]:
        """Return the enabled modules whose definitions are to be applied: newly enabled, or changed files.

        Modules that are not given are disabled: they will be newly enabled next time.
        """
        self._modules = {module.name: module for module in modules}
        gone = [name for name in self._looked if name not in self._modules]
        for name in gone:
            self._share_anew(self._index.brought(name).items(), name)
            self._leave_out(name, ())
        self._index.forget(gone)
        for of_modules in (self._applied, self._looked, self._charts, self._told):
            for name in of_modules.keys() - self._modules.keys():
                del of_modules[name]
        # Which of a chart's charts count depends on its values, which may be large.
        return await asyncio.to_thread(self._due, [each for each in modules if not each.problem])

    def _due(self, modules: Sequence[model.Module]) -> list[names.ModuleName]:
        """Find what is due; all is looked at before anything is applied, as it may be of several modules."""
        due = {module.name for module in modules if self._may_be_due(module)}
        for module in modules:
            if module.name in due:
                self._try_to_look(module)
        # What one module brings may concern others that had nothing to do.
        due |= {each.name for each in modules if each.name not in self._applied and self._brings(each)}
        return [module.name for module in modules if module.name in due]

    def _brings(self, module: model.Module) -> bool:
        return bool(self._index.brought(module.name))

    async def ensure(self, module: model.Module) -> None:
        """Apply the module's definitions, unless nothing changed since that was done.

        Raises a :class:`.ModuleError` that names file and document when a file
        holds something else, or the API server does not take a definition. Its chart must be there.
        """
        if module.problem:
            raise errors.ModuleError(module.name, module.problem)
        try:
            await self._ensure(module)
        except errors.ModuleError:
            raise
        except (errors.AddonOperatorError, OSError) as error:
            problem = errors.told(error, f"reading the definitions of module {module.name}")
            raise errors.ModuleError(module.name, str(problem)) from error

    async def _ensure(self, module: model.Module) -> None:
        if not await asyncio.to_thread(self._is_due, module):
            return
        # A file that changes while it is read is read again by the next run.
        signature = await asyncio.to_thread(self._look, module)
        await self._install(module)
        if signature:
            self._applied[module.name] = signature
        else:
            self._applied.pop(module.name, None)

    @property
    def in_force(self) -> set[str]:
        """The definitions that were applied, as far as is known."""
        return {name for module in self._applied for name in self._index.brought(module)}

    def owners(self, crd: str) -> list[model.Module]:
        """Return the enabled modules that define this."""
        return [module for each in self._index.modules(crd) if (module := self._modules.get(each.name))]

    async def restore(self, module: model.Module) -> None:
        """Apply those of the module's definitions that are gone; raises what :meth:`ensure` raises."""
        self.forget(module.name)
        await self.charts.ensure(module)
        await self.ensure(module)

    def forget(self, module: names.ModuleName) -> None:
        """Let the next run of the module look at its definitions."""
        self._applied.pop(module, None)
        self._known = None

    def _try_to_look(self, module: model.Module) -> None:
        """Learn what the module brings, if that can be read."""
        try:
            if chart_cache.is_there(module):
                self._look(module)
        except Exception:  # noqa: BLE001 - the module's own task fails with it, and says so
            self._looked.pop(module.name, None)

    def _look(self, module: model.Module) -> _Signature:
        """Learn what the module brings, unless its files are as they were; returns what that depends on."""
        self._look_at_charts(module)
        signature = self._signature_now(module)
        if self._looked.get(module.name, ((), []))[0] != signature or not self._index.knows(module.name):
            before = self._index.brought(module.name)
            self._looked[module.name] = signature, self._index.look(module)
            self._share_anew(before.items() ^ self._index.brought(module.name).items(), module.name)
        return signature

    def _share_anew(self, definitions: Iterable[tuple[str, str]], module: names.ModuleName) -> None:
        """Let modules look again that have other definitions of these names, which come with digests."""
        for name, digest in definitions:
            for other in self._index.modules(name):
                if other.name != module and self._index.brought(other.name)[name] != digest:
                    self._applied.pop(other.name, None)

    async def _install(self, module: model.Module) -> None:
        self._tell_once(module.name, self._looked[module.name][1])
        brought = self._index.brought(module.name)
        if not brought:
            self._leave_out(module.name, ())
            await self._create_beside(module.name)
            return
        for listener in self._listeners:
            listener.defined()
        for name, digest in brought.items():
            self._index.forgive(name, digest)
        applied = await self._what_is_applied()
        unsettled = await asyncio.to_thread(self._unsettled, module, applied)
        own = await asyncio.to_thread(self._index.read, module.name, unsettled) if unsettled else {}
        self._tell_once(module.name, [doubt for crd in own.values() for doubt in crd.doubts])
        wanted = await asyncio.to_thread(self._index.joined, unsettled, own, module.name)
        stays: list[str] = []
        for name, made in wanted.items():
            async with self._turns[name]:
                try:
                    await self._apply(module, made, applied.get(name))
                except crds.StillServedError as left:
                    stays.append(_stays(name, applied[name].module, left.versions))
        said = await asyncio.to_thread(self._said, module, applied)
        self._leave_out(module.name, (*said, *stays))
        await self._create_beside(module.name)

    async def _create_beside(self, module: names.ModuleName) -> None:
        """Create what Helm would, at the first install, beside the definitions of a chart."""
        if not self._index.is_mixed(module):
            return
        if beside := await asyncio.to_thread(self._index.beside, module):
            await self._create(module, beside)

    def _unsettled(self, module: model.Module, applied: Mapping[str, crds.Applied]) -> list[str]:
        brought = self._index.brought(module.name)
        return [name for name in brought if not self._is_settled(name, self._index.decide(name), applied)]

    def _is_settled(
        self, name: str, decision: crd_claims.Decision, applied: Mapping[str, crds.Applied]
    ) -> bool:
        """Say whether the cluster has the definition as decided, or it is not this operator's turn."""
        live = applied.get(name)
        if live is None:
            return False
        if self._of_a_release(name, live) or self._may_be_of_another(live):
            return True
        owners = [each.name for each in self._index.modules(name)]
        is_theirs = live.module in owners if live.module else not decision.others
        return is_theirs and live == self._index.note(name, decision, live)._replace(module=live.module)

    def _of_a_release(self, name: str, live: crds.Applied) -> names.ModuleName | None:
        """Return the module among whose templates the definition is; those are Helm's."""
        if not live.release:
            return None
        others = self._modules.keys() - {each.name for each in self._index.modules(name)}
        return next((each for each in others if self._modules[each].release == live.release), None)

    def _may_be_of_another(self, live: crds.Applied) -> bool:
        """Say whether an enabled module applied it of which nothing is known yet, such as a chart."""
        return live.module in self._modules and not self._index.knows(live.module)

    async def _apply(
        self,
        module: model.Module,
        decided: tuple[crd_claims.Decision, crd_files.Crd],
        live: crds.Applied | None,
    ) -> None:
        """Apply what counts; what the API server refuses of other modules gives way to the next."""
        (decision, crd), winner = decided, decided[0].winner.module
        if self._is_settled(crd.name, decision, self._written):
            return
        note = self._index.note(crd.name, decision, live)
        try:
            changed = await self._installer.ensure(crd, note, spares=self._spares(crd.name, decision, live))
        except crds.StillServedError:
            raise
        except errors.AddonOperatorError as error:
            failed = errors.ModuleError(module.name, f"{crd.source}: {error}")
            if (rest := await self._without_refused(module, decided, error)) is not None:
                try:
                    await self._apply(module, rest, live)
                except crds.StillServedError:
                    if winner == module.name:
                        raise failed from error
                    raise
            elif live is None or winner == module.name:
                raise failed from error
            # Otherwise the kind is there, and the other module says what is wrong.
            return
        self._written[crd.name] = note
        if changed:
            self._tell(events.Noted(f"CustomResourceDefinition {crd.name} applied", module.name))
            for listener in self._listeners:
                listener.applied()

    def _spares(self, name: str, decision: crd_claims.Decision, live: crds.Applied | None) -> bool:
        """Say whether no served version may go: those of a module whose own definition is not applied."""
        if live is None or live.module in ("", decision.winner.module):
            return False
        return bool(decision.refused) or live.module not in {each.name for each in self._index.modules(name)}

    async def _without_refused(
        self,
        module: model.Module,
        decided: tuple[crd_claims.Decision, crd_files.Crd],
        error: errors.AddonOperatorError,
    ) -> tuple[crd_claims.Decision, crd_files.Crd] | None:
        """Return what counts without what the API server refused; ``None`` if the module is to say it."""
        if not (isinstance(error, api_errors.ApiError) and error.status in _REFUSED):
            return None
        (decision, _), name = decided, decided[1].name
        self._index.refuse(name, decision)
        if not decision.added and decision.winner.module == module.name:
            self._share_anew([(name, decision.winner.digest)], module.name)
            return None
        if any(each.module == module.name for _, each in decision.added):
            text = f"its versions of CustomResourceDefinition {name} are not served: {error}"
            self._tell_once(module.name, [text])
        joined = (await asyncio.to_thread(self._index.joined, [name], {}, "")).get(name)
        return None if joined is None or joined[0] == decision else joined

    def _said(self, module: model.Module, applied: Mapping[str, crds.Applied]) -> list[str]:
        of_releases = [
            f"CustomResourceDefinition {name} is one of the objects of module {other}, and stays with Helm"
            for name in self._index.brought(module.name)
            if name in applied and (other := self._of_a_release(name, applied[name])) is not None
        ]
        return [*(said for _, said in self._index.said(module.name)), *of_releases]

    def _leave_out(self, module: names.ModuleName, sentences: Sequence[str]) -> None:
        """Say which definitions of the module are not in force, and when all are again."""
        self._tell_once(module, sentences)
        text = "; ".join(sentences)
        if text != self._left_out.get(module, ""):
            self._left_out[module] = text
            self._tell(events.DefinitionsLeftOut(module, text))

    async def _what_is_applied(self) -> Mapping[str, crds.Applied]:
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

    def _chart_of(self, module: model.Module) -> subcharts.Subchart | None:
        """Read the module's chart if the charts within it bring definitions."""
        last = self._charts.get(module.name)
        if last is None or not self._sources.of_subcharts(module, last[1]):
            return None
        return crd_sources.chart_of(module)

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
        last = self._charts.get(module.name)
        return not signature or (last is not None and last[0] == signature)

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
        if not chart_files.is_complete(chart) or not (files := subcharts.deciding_files(chart)):
            return ()
        files += [str(chart / name) for name in _CHART]
        return tuple(_state_of(path) for path in sorted(files))


def _state_of(path: str) -> tuple[str, int, int, int, int]:
    try:
        status = os.stat(path)  # noqa: PTH116 - a Path for each of a chart's files takes as long as asking
    except OSError:
        return path, 0, 0, 0, 0
    return path, status.st_mtime_ns, status.st_ctime_ns, status.st_size, status.st_ino


def _stays(name: str, module: str, versions: Sequence[str]) -> str:
    return (
        f"CustomResourceDefinition {name} stays as module {module} left it: it serves {', '.join(versions)}, "
        f"which would go; to have it replaced, run 'kubectl annotate crd {name} {crds.APPLIED}-', and "
        "restart the operator"
    )
