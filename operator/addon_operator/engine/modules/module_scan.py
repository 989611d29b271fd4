"""What the modules directories look like on disk: enough to notice changes, cheap enough to look often."""

import dataclasses
import hashlib
import os
import pathlib
import stat
from collections.abc import Iterator, Mapping, Sequence
from typing import Final, NewType

from addon_operator.engine.modules import module_files

Fingerprint = NewType("Fingerprint", bytes)
"""Equal as long as names, sizes, modes and times of change of a file or of all files of a directory are."""

_PASSED: Final = frozenset({"__pycache__", "venv", "node_modules"})
_PASSED_SUFFIXES: Final = (".pyc", "~", ".swp", ".tmp")


@dataclasses.dataclass(frozen=True, slots=True)
class Scan:
    """The state of all modules directories at one moment."""

    common: Mapping[pathlib.Path, Fingerprint]
    """``values.yaml`` of each modules directory, by the directory."""
    modules: Mapping[pathlib.Path, Fingerprint]
    """Each module's directory."""

    def of(self, directory: pathlib.Path) -> list[pathlib.Path]:
        """The directories of modules in a modules directory, by name."""
        return sorted(path for path in self.modules if path.parent == directory)


def scan(directories: Sequence[pathlib.Path]) -> Scan:
    """Look at the directories; files that editors and interpreters leave behind do not count.

    Raises :class:`OSError` when one of them cannot be read.
    """
    modules = [path for directory in directories for path in module_files.module_directories(directory)]
    return Scan(
        {directory: _of_file(directory / module_files.VALUES_FILE) for directory in directories},
        {path: _of_directory(path) for path in modules},
    )


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
    """All files below a directory, symbolic links followed, each directory once."""
    pending, seen = [("", str(directory))], set[tuple[int, int]]()
    while pending:
        prefix, path = pending.pop()
        try:
            with os.scandir(path) as entries:
                found = [(entry, entry.stat()) for entry in entries if not _is_passed(entry.name)]
        except FileNotFoundError:
            # Something goes away just now: the next look tells.
            continue
        for entry, status in found:
            name = f"{prefix}{entry.name}"
            if not stat.S_ISDIR(status.st_mode):
                yield name, status
            elif (status.st_dev, status.st_ino) not in seen:
                seen.add((status.st_dev, status.st_ino))
                pending.append((f"{name}/", entry.path))


def _is_passed(name: str) -> bool:
    return name.startswith(".") or name in _PASSED or name.endswith(_PASSED_SUFFIXES)
