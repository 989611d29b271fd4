"""Reads the modules that changed on disk; what is wrong stays as it was."""

import pathlib
from collections.abc import Callable, Mapping, Sequence
from typing import Final

import msgspec
from msgspec import structs

from addon_operator.kernel import errors, names
from addon_operator.loading import module_directories, module_files, module_problems, module_scan
from addon_operator.modules import requirements
from addon_operator.values import sources
from addon_operator.values.schema import cel_rules, schema_rules


class Loading(msgspec.Struct, frozen=True):
    """What came of a change on disk."""

    loaded: module_files.LoadedModules
    """All modules as they are to be from now on."""
    scan: module_scan.Scan
    """The state of the directories that shows them."""
    touched: frozenset[names.ModuleName]
    """Modules that are new or whose directory changed, and could be read."""
    problems: tuple[str, ...] = ()
    """What was wrong and therefore left as it was, one sentence each."""
    refused: str = ""
    """What is wrong with what was left as it was, now or before; empty if all that is on disk is loaded."""
    left: Mapping[names.ModuleName, str] = msgspec.field(default_factory=dict)
    """Modules among that, and what is wrong with each."""

    @property
    def warnings(self) -> tuple[str, ...]:
        """What checks nothing in the schemas of the touched modules, one sentence each."""
        touched = (files for files in self.loaded.modules if files.module.name in self.touched)
        return tuple(warning for files in touched for warning in files.values.schemas.warnings)


Check = Callable[[module_files.LoadedModules, module_files.ModuleFiles], str | None]
"""Says why readable files of a module cannot be used; ``None`` if they can."""


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
        """Begin with ``first``, which shows ``loaded``."""
        self.directories: Final = tuple(directories)
        self._unnumbered_order = unnumbered_order
        self._loaded = loaded
        self._last = first
        self._check = check
        self._contents: dict[pathlib.Path, module_scan.Fingerprint | None] = {}
        self._refused: dict[pathlib.Path, str] = {}
        """Modules that changed and cannot stand beside the others, and why."""
        self._left: dict[pathlib.Path, str] = {}
        """Directories of modules and of common values that hold something else than is loaded, and why."""
        self._problems: list[str] = []
        self._touched: set[names.ModuleName] = set()
        self._before = (loaded, first, self._contents, self._refused, self._left)
        self._evaluator: schema_rules.RuleEvaluator

    def learn(self) -> None:
        """Learn the contents of what was loaded; to be called in a thread.

        A checkout of Git writes all files anew: with that, modules that are as before are not touched.
        """
        contents = {path: module_scan.contents(path) for path in self._last.modules}
        now = module_scan.scan(self.directories).modules
        self._contents = {
            path: found for path, found in contents.items() if now.get(path) == self._last.modules[path]
        }

    def load(self, now: module_scan.Scan) -> Loading:
        """Read what changed since the last time; to be called in a thread."""
        self._problems, self._touched = [], set()
        # It keeps what it compiled, for schemas that may be gone the next time.
        self._evaluator = cel_rules.CelEvaluator()
        self._before = (self._loaded, self._last, dict(self._contents), self._refused, dict(self._left))
        try:
            self._loaded, self._last = self._read(now), now
        except Exception as error:  # noqa: BLE001 - a change is taken as a whole, or not at all
            self._problems.append(module_problems.told(error, self.directories[0]))
            self._touched.clear()
            self.undo()
            return Loading(self._loaded, self._last, frozenset(), tuple(self._problems), self._problems[-1])
        wrong = {**self._left, **self._refused}
        of_modules = {files.module.path: files.module.name for files in self._loaded.modules}
        left = {of_modules[path]: text for path, text in wrong.items() if path in of_modules}
        refused = "; ".join((*self._left.values(), *self._refused.values()))
        touched = frozenset(self._touched)
        return Loading(self._loaded, now, touched, tuple(self._problems), refused, left)

    def undo(self) -> None:
        """Forget the last reading, of which nothing was taken in: what changed has yet to be read."""
        self._loaded, self._last, self._contents, self._refused, self._left = self._before

    def _read(self, now: module_scan.Scan) -> module_files.LoadedModules:
        gone = self._last.modules.keys() - now.modules.keys()
        for path in gone:
            # What comes back is new, whatever it holds.
            self._contents.pop(path, None)
            self._left.pop(path, None)
        by_path = {files.module.path: files for files in self._loaded.modules}
        common = [
            self._common(now, *each) for each in zip(self.directories, self._loaded.common, strict=True)
        ]
        shared = structs.replace(
            self._loaded, common=tuple(common), strays=module_directories.by_name(now.strays)
        )
        modules = [
            self._module(now, path, values, shared, by_path.get(path))
            for directory, values in zip(self.directories, common, strict=True)
            for path in now.of(directory)
        ]
        modules, refused = self._of_one_name(modules, by_path)
        self._refuse_new_problems(modules, by_path, refused)
        return structs.replace(shared, modules=tuple(module_files.in_run_order(modules, shared.namespace)))

    def _of_one_name(
        self,
        found: Sequence[module_files.ModuleFiles],
        kept: Mapping[pathlib.Path, module_files.ModuleFiles],
    ) -> tuple[list[module_files.ModuleFiles], dict[pathlib.Path, str]]:
        """Return one module of each name, and of those that were there before why they stay as they were."""
        well = {path: files for path, files in kept.items() if not files.module.problem}
        before = {files.module.name: well[path] for files in found if (path := files.module.path) in well}
        refused: dict[pathlib.Path, str] = {}
        modules: list[module_files.ModuleFiles] = []
        for files in found:
            name, path = files.module.name, files.module.path
            first = before.get(name)
            if first is None or first.module.path == path:
                modules.append(files)
            else:
                refused[first.module.path] = module_files.same_name(name, first.module.path, path)
                self._touched.discard(name)
        modules = [before[each.module.name] if each.module.path in refused else each for each in modules]
        return module_files.one_of_each_name(modules), refused

    def _refuse_new_problems(
        self,
        found: list[module_files.ModuleFiles],
        kept: Mapping[pathlib.Path, module_files.ModuleFiles],
        refused: dict[pathlib.Path, str],
    ) -> None:
        """Leave as it was what changed so that modules can never run beside each other."""
        # Those that were refused before give way to those that changed now.
        for is_suspect in (self._refused.__contains__, lambda _path: True):
            wrong = requirements.problems([files.module for files in found])
            for number, files in enumerate(found):
                name, before = files.module.name, kept.get(files.module.path)
                if name not in wrong or name not in self._touched or not is_suspect(files.module.path):
                    continue
                if before is not None and not before.module.problem:
                    refused[before.module.path] = "; ".join(wrong[name])
                    self._touched.discard(name)
                    found[number] = before
        self._problems += [text for path, text in refused.items() if self._refused.get(path) != text]
        self._refused = refused

    def _common(
        self, now: module_scan.Scan, directory: pathlib.Path, kept: sources.ValuesFile
    ) -> sources.ValuesFile:
        if now.common[directory] == self._last.common.get(directory):
            return kept
        self._left.pop(directory, None)
        try:
            return module_files.common_values(directory)
        except errors.ConfigurationError as error:
            self._problems.append(str(error))
            self._left[directory] = str(error)
            return kept

    def _module(
        self,
        now: module_scan.Scan,
        path: pathlib.Path,
        common: sources.ValuesFile,
        shared: module_files.LoadedModules,
        kept: module_files.ModuleFiles | None,
    ) -> module_files.ModuleFiles:
        before = self._last.modules.get(path)
        is_same = before is not None and (now.modules[path] == before or self._is_as_before(path))
        # What was refused because of other modules, or of the ConfigMap, may be right now.
        is_same = is_same and path not in self._refused and path not in self._left
        if kept is not None and is_same and not kept.module.problem:
            if kept.values.common is common:
                return kept
            files = structs.replace(kept, values=structs.replace(kept.values, common=common))
        else:
            # It changed, it is new, it is back, or it was wrong because of another module.
            files = self._read_module(now, path, common, shared)
        if not files.module.problem and (refused := self._check(shared, files)):
            files = module_files.refused(files, refused)
        return self._taken_or_left(path, files, kept, is_same=is_same)

    def _taken_or_left(
        self,
        path: pathlib.Path,
        files: module_files.ModuleFiles,
        kept: module_files.ModuleFiles | None,
        *,
        is_same: bool,
    ) -> module_files.ModuleFiles:
        """Take in what was read, or leave the module as it was; a new one is there, whatever is wrong."""
        problem, before = files.module.problem, self._left.pop(path, "")
        if kept is not None and kept.module.problem:
            before = kept.module.problem
        if problem and problem != before:
            self._problems.append(problem)
        if problem and kept is not None and not kept.module.problem:
            self._left[path] = problem
            return kept
        if kept is None or not is_same:
            self._touched.add(files.module.name)
        return files

    def _read_module(
        self,
        now: module_scan.Scan,
        path: pathlib.Path,
        common: sources.ValuesFile,
        shared: module_files.LoadedModules,
    ) -> module_files.ModuleFiles:
        taken = module_directories.names_of(now.modules)
        return module_files.read_module(
            path, common, self._unnumbered_order, self._evaluator, shared.charts, taken
        )

    def _is_as_before(self, path: pathlib.Path) -> bool:
        before, now = self._contents.get(path), module_scan.contents(path)
        self._contents[path] = now
        return now is not None and now == before
