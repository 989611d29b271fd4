"""The state of the modules directories at one moment, to be compared with a later one."""

import contextlib
import hashlib
import os
import pathlib
import stat
from collections.abc import Iterator, Mapping, Sequence
from typing import Final, NewType

import msgspec

from addon_operator.helm.charts import chart_files, plain_files
from addon_operator.loading import module_directories, module_files
from addon_operator.modules import module_config

Fingerprint = NewType("Fingerprint", bytes)
"""Equal as long as names, sizes, modes and times of change of a file or of all files of a directory are."""

_PARTS: Final = (
    module_files.VALUES_FILE,
    module_config.FILE,
    "Chart.yaml",
    "templates",
    "charts",
    "chart",
    "chart/Chart.yaml",
    "chart/templates",
    "chart/charts",
)
_PASSED: Final = frozenset({"__pycache__", "venv", "node_modules"})
_PASSED_SUFFIXES: Final = (".pyc", "~", ".swp", ".tmp")


class Scan(msgspec.Struct, frozen=True):
    """The state of all modules directories at one moment."""

    common: Mapping[pathlib.Path, Fingerprint]
    """``values.yaml`` of each modules directory, by the directory."""
    modules: Mapping[pathlib.Path, Fingerprint]
    """Each module's directory."""
    parts: frozenset[pathlib.Path] = frozenset()
    """Files and directories in them that are not empty, and without which a module may have no release."""
    strays: Mapping[pathlib.Path, str] = msgspec.field(default_factory=dict)
    """Directories among them that are not modules, with a sentence for each."""

    def lacks(self, before: "Scan") -> frozenset[pathlib.Path]:
        """Return what is gone that was there, and whose end would be the end of a release, or of objects."""
        return frozenset({*before.modules, *before.parts} - {*self.modules, *self.parts})

    def of(self, directory: pathlib.Path) -> list[pathlib.Path]:
        """Return the directories of modules in a modules directory, by name."""
        return sorted(path for path in self.modules if path.parent == directory)


def scan(directories: Sequence[pathlib.Path]) -> Scan:
    """Look at the directories; files that editors and interpreters leave behind do not count.

    Raises :class:`OSError` when one of them cannot be read, and a :class:`.ConfigurationError` when one is
    not a directory of modules any more.
    """
    strays = module_directories.strays(directories)
    modules = [path for directory in directories for path in module_directories.listed(directory)]
    return Scan(
        {directory: _of_file(directory / module_files.VALUES_FILE) for directory in directories},
        {path: _of_directory(path) for path in modules},
        frozenset(path / part for path in modules for part in _PARTS if _is_filled(path / part)),
        strays,
    )


def _is_filled(path: pathlib.Path) -> bool:
    try:
        status = path.stat()
        return any(path.iterdir()) if stat.S_ISDIR(status.st_mode) else status.st_size > 0
    except OSError:
        return False


def _of_file(path: pathlib.Path) -> Fingerprint:
    try:
        return _fingerprint([(path.name, _status_of(path))])
    except FileNotFoundError:
        return Fingerprint(b"")


def _of_directory(directory: pathlib.Path) -> Fingerprint:
    try:
        return _fingerprint(sorted(_files(directory), key=lambda entry: entry[0]))
    except plain_files.TooMuchLinkedError as error:
        # To read the module says it, too.
        return Fingerprint(str(error).encode(errors="surrogateescape"))


def _fingerprint(entries: Sequence[tuple[str, os.stat_result]]) -> Fingerprint:
    digest = hashlib.blake2b(digest_size=16)
    for name, status in entries:
        known = (status.st_mtime_ns, status.st_size, status.st_mode, status.st_ino)
        digest.update(f"{name}\0{known}\n".encode(errors="surrogateescape"))
    return Fingerprint(digest.digest())


def _files(directory: pathlib.Path) -> Iterator[tuple[str, os.stat_result]]:
    """Yield all files below a directory, symbolic links followed, each directory once.

    Raises :class:`.TooMuchLinkedError`.
    """
    linked = plain_files.Linked()
    pending, seen = [("", str(directory), directory.is_symlink())], set[tuple[int, int]]()
    while pending:
        prefix, path, is_linked = pending.pop()
        try:
            with os.scandir(path) as entries:
                files = [(entry, _status(entry)) for entry in entries if not is_passed(entry.name)]
        except FileNotFoundError:
            # Something goes away just now: the next look tells.
            continue
        except OSError:
            # To read the module says why; others are looked at meanwhile.
            with contextlib.suppress(FileNotFoundError):
                yield f"{prefix}/", _status_of(pathlib.Path(path))
            continue
        for entry, status in files:
            name = f"{prefix}{entry.name}"
            if is_linked:
                linked.take(entry.path)
            if not stat.S_ISDIR(status.st_mode):
                yield name, status
            elif (status.st_dev, status.st_ino) not in seen:
                seen.add((status.st_dev, status.st_ino))
                pending.append((f"{name}/", entry.path, is_linked or entry.is_symlink()))


def _status(entry: os.DirEntry[str]) -> os.stat_result:
    try:
        return entry.stat()
    except OSError:
        # A link that leads nowhere, or back to itself, and can be repaired.
        return entry.stat(follow_symlinks=False)


def _status_of(path: pathlib.Path) -> os.stat_result:
    try:
        return path.stat()
    except OSError:
        # As with _status.
        return path.lstat()


def contents(directory: pathlib.Path) -> Fingerprint | None:
    """Return what a directory holds, however it was written.

    ``None`` if it changes just now, or cannot be read.
    """
    digest = hashlib.blake2b(digest_size=16)
    try:
        for name, status in sorted(_files(directory), key=lambda entry: entry[0]):
            content = ""
            if status.st_size > chart_files.MAX_FILE:
                content = f"{status.st_size} bytes of {status.st_mtime_ns}"
            # A pipe would be waited for, and so would be some files that the kernel makes up when asked.
            elif stat.S_ISREG(status.st_mode) and status.st_size:
                with (directory / name).open("rb") as file:
                    content = hashlib.file_digest(file, "blake2b").hexdigest()
            is_executable = bool(status.st_mode & stat.S_IXUSR)
            digest.update(f"{name}\0{is_executable}\0{content}\n".encode(errors="surrogateescape"))
    except OSError:
        return None
    return Fingerprint(digest.digest())


def is_passed(name: str) -> bool:
    """Say whether a file or directory of this name does not count: hidden, or left behind by a tool."""
    return name.startswith(".") or name in _PASSED or name.endswith(_PASSED_SUFFIXES)
