"""Modules that change on disk: noticed by repeated scans, and read again when they have come to rest.

There is no portable way to be notified of changes: mounted volumes and network file systems send nothing.
What is wrong stays as it was.
"""

import asyncio
import contextlib
import dataclasses
import hashlib
import os
import pathlib
import stat
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from typing import Final, NewType

from addon_operator.aio import waiting
from addon_operator.engine.modules import module_directories, module_files, module_problems
from addon_operator.helm.charts import chart_files
from addon_operator.kernel import errors, names
from addon_operator.modules import requirements
from addon_operator.values import sources
from addon_operator.values.schema import cel_rules, schema_rules

INTERVAL: Final = 1.0
"""Seconds between two looks; more when a look takes long."""
_SHARE: Final = 0.05
"""Of the time that looks may take."""
Fingerprint = NewType("Fingerprint", bytes)
"""Equal as long as names, sizes, modes and times of change of a file or of all files of a directory are."""

GONE_LOOKS: Final = 5
"""Looks in a row that show that something is gone, before it counts as gone: it may be written anew."""
_PASSED: Final = frozenset({"__pycache__", "venv", "node_modules"})
_PASSED_SUFFIXES: Final = (".pyc", "~", ".swp", ".tmp")


@dataclasses.dataclass(frozen=True, slots=True)
class Scan:
    """The state of all modules directories at one moment."""

    common: Mapping[pathlib.Path, Fingerprint]
    """``values.yaml`` of each modules directory, by the directory."""
    modules: Mapping[pathlib.Path, Fingerprint]
    """Each module's directory."""
    with_values: frozenset[pathlib.Path] = frozenset()
    """Those whose ``values.yaml`` is there and not empty: it may be what enables the module."""

    def is_less_than(self, before: "Scan") -> bool:
        """Say whether something is gone that was there, and whose end would be the end of a release."""
        return not before.modules.keys() <= self.modules.keys() or not before.with_values <= self.with_values

    def of(self, directory: pathlib.Path) -> list[pathlib.Path]:
        """Return the directories of modules in a modules directory, by name."""
        return sorted(path for path in self.modules if path.parent == directory)


def scan(directories: Sequence[pathlib.Path]) -> Scan:
    """Look at the directories; files that editors and interpreters leave behind do not count.

    Raises :class:`OSError` when one of them cannot be read.
    """
    modules = [path for directory in directories for path in module_directories.of(directory)]
    return Scan(
        {directory: _of_file(directory / module_files.VALUES_FILE) for directory in directories},
        {path: _of_directory(path) for path in modules},
        frozenset(path for path in modules if _is_filled(path / module_files.VALUES_FILE)),
    )


def _is_filled(path: pathlib.Path) -> bool:
    try:
        return path.stat().st_size > 0
    except OSError:
        return False


def _of_file(path: pathlib.Path) -> Fingerprint:
    try:
        return _fingerprint([(path.name, path.stat())])
    except FileNotFoundError:
        return Fingerprint(b"")


def _of_directory(directory: pathlib.Path) -> Fingerprint:
    return _fingerprint(sorted(_files(directory), key=lambda entry: entry[0]))


def _fingerprint(entries: Sequence[tuple[str, os.stat_result]]) -> Fingerprint:
    digest = hashlib.blake2b(digest_size=16)
    for name, status in entries:
        known = (status.st_mtime_ns, status.st_size, status.st_mode, status.st_ino)
        digest.update(f"{name}\0{known}\n".encode(errors="surrogateescape"))
    return Fingerprint(digest.digest())


def _files(directory: pathlib.Path) -> Iterator[tuple[str, os.stat_result]]:
    """Yield all files below a directory, symbolic links followed, each directory once."""
    pending, seen = [("", str(directory))], set[tuple[int, int]]()
    while pending:
        prefix, path = pending.pop()
        try:
            with os.scandir(path) as entries:
                found = [(entry, _status(entry)) for entry in entries if not _is_passed(entry.name)]
        except FileNotFoundError:
            # Something goes away just now: the next look tells.
            continue
        except OSError:
            # To read the module says why; others are looked at meanwhile.
            yield f"{prefix}/", pathlib.Path(path).stat()
            continue
        for entry, status in found:
            name = f"{prefix}{entry.name}"
            if not stat.S_ISDIR(status.st_mode):
                yield name, status
            elif (status.st_dev, status.st_ino) not in seen:
                seen.add((status.st_dev, status.st_ino))
                pending.append((f"{name}/", entry.path))


def _status(entry: os.DirEntry[str]) -> os.stat_result:
    try:
        return entry.stat()
    except OSError:
        # A link that leads nowhere, or back to itself, and can be repaired.
        return entry.stat(follow_symlinks=False)


def _contents(directory: pathlib.Path) -> Fingerprint | None:
    """Return what a directory holds, however it was written; ``None`` if it changes just now."""
    digest = hashlib.blake2b(digest_size=16)
    try:
        for name, status in sorted(_files(directory), key=lambda entry: entry[0]):
            content = ""
            if status.st_size > chart_files.MAX_FILE:
                content = f"{status.st_size} bytes of {status.st_mtime_ns}"
            # A pipe would be waited for.
            elif stat.S_ISREG(status.st_mode):
                with (directory / name).open("rb") as file:
                    content = hashlib.file_digest(file, "blake2b").hexdigest()
            is_executable = bool(status.st_mode & stat.S_IXUSR)
            digest.update(f"{name}\0{is_executable}\0{content}\n".encode(errors="surrogateescape"))
    except OSError:
        return None
    return Fingerprint(digest.digest())


def _is_passed(name: str) -> bool:
    return name.startswith(".") or name in _PASSED or name.endswith(_PASSED_SUFFIXES)


@dataclasses.dataclass(frozen=True, slots=True)
class Loading:
    """What came of a change on disk."""

    loaded: module_files.LoadedModules
    """All modules as they are to be from now on."""
    touched: frozenset[names.ModuleName]
    """Modules that are new or whose directory changed, and could be read."""
    problems: tuple[str, ...] = ()
    """What was wrong and therefore left as it was, one sentence each."""
    refused: str = ""
    """What is wrong with what was left as it was, now or before; empty if all that is on disk is loaded."""
    left: Mapping[names.ModuleName, str] = dataclasses.field(default_factory=dict)
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
        first: Scan,
        check: Check,
    ) -> None:
        """Begin with ``first``, which shows ``loaded``."""
        self.directories: Final = tuple(directories)
        self._unnumbered_order = unnumbered_order
        self._loaded = loaded
        self._last = first
        self._check = check
        self._contents: dict[pathlib.Path, Fingerprint | None] = {}
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
        contents = {path: _contents(path) for path in self._last.modules}
        now = scan(self.directories).modules
        self._contents = {
            path: found for path, found in contents.items() if now.get(path) == self._last.modules[path]
        }

    def load(self, now: Scan) -> Loading:
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
            return Loading(self._loaded, frozenset(), tuple(self._problems), self._problems[-1])
        wrong = {**self._left, **self._refused}
        of_modules = {files.module.path: files.module.name for files in self._loaded.modules}
        left = {of_modules[path]: text for path, text in wrong.items() if path in of_modules}
        refused = "; ".join((*self._left.values(), *self._refused.values()))
        return Loading(self._loaded, frozenset(self._touched), tuple(self._problems), refused, left)

    def undo(self) -> None:
        """Forget the last reading, of which nothing was taken in: what changed has yet to be read."""
        self._loaded, self._last, self._contents, self._refused, self._left = self._before

    def _read(self, now: Scan) -> module_files.LoadedModules:
        gone = self._last.modules.keys() - now.modules.keys()
        for path in gone:
            # What comes back is new, whatever it holds.
            self._contents.pop(path, None)
            self._left.pop(path, None)
        kept = {files.module.path: files for files in self._loaded.modules}
        common = [
            self._common(now, *each) for each in zip(self.directories, self._loaded.common, strict=True)
        ]
        shared = dataclasses.replace(self._loaded, common=tuple(common))
        found = [
            self._module(now, path, values, shared, kept.get(path))
            for directory, values in zip(self.directories, common, strict=True)
            for path in now.of(directory)
        ]
        self._refuse_new_problems(found, kept)
        return dataclasses.replace(shared, modules=tuple(module_files.in_run_order(found, shared.namespace)))

    def _refuse_new_problems(
        self,
        found: list[module_files.ModuleFiles],
        kept: Mapping[pathlib.Path, module_files.ModuleFiles],
    ) -> None:
        """Leave as it was what changed so that modules can never run beside each other."""
        refused: dict[pathlib.Path, str] = {}
        # Those that were refused before give way to those that changed now.
        for is_suspect in (self._refused.__contains__, lambda _path: True):
            wrong = requirements.problems([files.module for files in found])
            for number, files in enumerate(found):
                name, before = files.module.name, kept.get(files.module.path)
                if name not in wrong or name not in self._touched or not is_suspect(files.module.path):
                    continue
                if before is not None and not before.module.problem:
                    refused[before.module.path] = wrong[name]
                    self._touched.discard(name)
                    found[number] = before
        self._problems += [text for path, text in refused.items() if self._refused.get(path) != text]
        self._refused = refused

    def _common(self, now: Scan, directory: pathlib.Path, kept: sources.ValuesFile) -> sources.ValuesFile:
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
        now: Scan,
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
            files = dataclasses.replace(kept, values=dataclasses.replace(kept.values, common=common))
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
        now: Scan,
        path: pathlib.Path,
        common: sources.ValuesFile,
        shared: module_files.LoadedModules,
    ) -> module_files.ModuleFiles:
        taken = module_directories.names_of(now.modules)
        return module_files.read_module(
            path, common, self._unnumbered_order, self._evaluator, shared.charts, taken
        )

    def _is_as_before(self, path: pathlib.Path) -> bool:
        before, now = self._contents.get(path), _contents(path)
        self._contents[path] = now
        return now is not None and now == before


class ModuleWatch:
    """Finds changes that have come to rest, reads them and hands them over."""

    def __init__(
        self,
        loader: ModuleLoader,
        first: Scan,
        *,
        take: Callable[[Loading], Awaitable[None]],
        refused: Callable[[str], None],
        unreadable: Callable[[str], None],
        sleep: waiting.Sleep = asyncio.sleep,
    ) -> None:
        """``take`` takes in what was loaded; ``refused`` gets what is wrong with what was not.

        ``unreadable`` gets why the directories cannot be looked at, and an empty text when they can again.
        """
        self._loader = loader
        self._taken = self._seen = first
        self._take = take
        self._refused = refused
        self._unreadable = unreadable
        self._sleep = sleep
        self._trouble = ""
        self._looks = 0

    async def work(self) -> None:
        """Look again and again, until cancelled."""
        with contextlib.suppress(OSError):
            await asyncio.to_thread(self._loader.learn)
        pause = INTERVAL
        while True:
            await self._sleep(pause)
            began = time.monotonic()
            await self.look()
            pause = max(INTERVAL, (time.monotonic() - began) / _SHARE)

    async def look(self) -> None:
        """Look once; hand a change over when the look after it shows the same.

        Something that goes has to be gone for longer.
        """
        now = await self._scan()
        if now is None or now == self._taken:
            self._seen = self._taken
            return
        if now != self._seen:
            self._seen, self._looks = now, 0
            return
        self._looks += 1
        if now.is_less_than(self._taken) and self._looks < GONE_LOOKS:
            return
        self._taken = now
        loading = await asyncio.to_thread(self._loader.load, now)
        for problem in loading.problems:
            self._refused(problem)
        await self._take(loading)

    async def _scan(self) -> Scan | None:
        try:
            found = await asyncio.to_thread(scan, self._loader.directories)
        except OSError as error:
            self._report(
                f"{error.filename} cannot be read: {error.strerror}; put it back, or correct its permissions"
            )
            return None
        self._report("")
        return found

    def _report(self, trouble: str) -> None:
        if trouble != self._trouble:
            self._unreadable(trouble)
        self._trouble = trouble
