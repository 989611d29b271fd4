"""Modules that changed on disk, read again; what is wrong stays as it was."""

import dataclasses
import pathlib
from collections.abc import Callable, Sequence

from addon_operator.engine.modules import module_files, module_scan
from addon_operator.kernel import errors, names
from addon_operator.values import sources
from addon_operator.values.schema import cel_rules, schema_rules


@dataclasses.dataclass(frozen=True, slots=True)
class Loading:
    """What came of a change on disk."""

    loaded: module_files.LoadedModules
    """All modules as they are to be from now on."""
    touched: frozenset[names.ModuleName]
    """Modules that are new or whose directory changed, and could be read."""
    problems: tuple[str, ...] = ()
    """What was wrong and therefore left as it was, one sentence each."""

    @property
    def warnings(self) -> tuple[str, ...]:
        """What checks nothing in the schemas of the touched modules, one sentence each."""
        touched = (files for files in self.loaded.modules if files.module.name in self.touched)
        return tuple(warning for files in touched for warning in files.values.schemas.warnings)


Check = Callable[[module_files.LoadedModules, module_files.ModuleFiles], str | None]
"""Why the files of a module cannot be taken in although they can be read; ``None`` if they can."""


class ModuleLoader:
    """Remembers what was loaded last, and reads what changed since."""

    def __init__(
        self,
        directories: Sequence[pathlib.Path],
        unnumbered_order: int,
        loaded: module_files.LoadedModules,
        first: module_scan.Scan,
        check: Check,
    ) -> None:
        """``loaded`` is what ``first`` shows."""
        self._directories = tuple(directories)
        self._unnumbered_order = unnumbered_order
        self._loaded = loaded
        self._last = first
        self._check = check

    def load(self, now: module_scan.Scan) -> Loading:
        """Read what changed since the last time; to be called in a thread."""
        reading = _Reading(self._loaded, self._last, now, self._check)
        try:
            loading = reading.read(self._directories, self._unnumbered_order)
        except errors.ConfigurationError as error:
            loading = Loading(self._loaded, frozenset(), (*reading.problems, str(error)))
        self._loaded, self._last = loading.loaded, now
        return loading


class _Reading:
    def __init__(
        self,
        before: module_files.LoadedModules,
        last: module_scan.Scan,
        now: module_scan.Scan,
        check: Check,
    ) -> None:
        self.problems: list[str] = []
        self._before = before
        self._last = last
        self._now = now
        self._check = check
        self._kept = {files.module.path: files for files in before.modules}
        self._evaluator: schema_rules.RuleEvaluator = cel_rules.CelEvaluator()
        self._touched: set[names.ModuleName] = set()

    def read(self, directories: Sequence[pathlib.Path], unnumbered_order: int) -> Loading:
        common = tuple(map(self._common, directories, self._before.common))
        shared = dataclasses.replace(self._before, common=common)
        found = [
            files
            for directory, values in zip(directories, common, strict=True)
            for path in self._now.of(directory)
            if (files := self._module(path, values, unnumbered_order, shared)) is not None
        ]
        module_files.check_unique(found)
        found.sort(key=lambda files: files.module.run_order)
        loaded = dataclasses.replace(shared, modules=tuple(found))
        return Loading(loaded, frozenset(self._touched), tuple(self.problems))

    def _common(self, directory: pathlib.Path, kept: sources.ValuesFile) -> sources.ValuesFile:
        if self._now.common[directory] == self._last.common.get(directory):
            return kept
        try:
            return module_files.common_values(directory)
        except errors.ConfigurationError as error:
            self.problems.append(str(error))
            return kept

    def _module(
        self,
        path: pathlib.Path,
        common: sources.ValuesFile,
        unnumbered_order: int,
        shared: module_files.LoadedModules,
    ) -> module_files.ModuleFiles | None:
        kept = self._kept.get(path)
        is_same = self._now.modules[path] == self._last.modules.get(path)
        if is_same and (kept is None or kept.values.common is common):
            return kept
        try:
            files = self._read(path, common, unnumbered_order, kept if is_same else None)
        except errors.ConfigurationError as error:
            self.problems.append(str(error))
            return kept
        if problem := self._check(shared, files):
            self.problems.append(problem)
            return kept
        if not is_same:
            self._touched.add(files.module.name)
        return files

    def _read(
        self,
        path: pathlib.Path,
        common: sources.ValuesFile,
        unnumbered_order: int,
        kept: module_files.ModuleFiles | None,
    ) -> module_files.ModuleFiles:
        if kept is not None:
            return dataclasses.replace(kept, values=dataclasses.replace(kept.values, common=common))
        return module_files.read_module(path, common, unnumbered_order, self._evaluator)
