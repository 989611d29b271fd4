"""Finding hooks on disk."""

import os
import pathlib
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, TypeAlias

from addon_operator.kernel import errors

HOOKS_DIRECTORY: Final = "hooks"
_VENV: Final = "venv"
LIBRARY: Final = "lib"
_PASSED_DIRECTORIES: Final = frozenset({LIBRARY, _VENV, "__pycache__"})
_DATA_SUFFIXES: Final = frozenset({".yaml", ".json", ".md", ".txt"})
_EXECUTABLE: Final = stat.S_IXUSR | stat.S_IXGRP | stat.S_IXOTH

GO_SUFFIX: Final = ".go"
GO_VERDICT: Final = (
    "is a Go hook, which is compiled into the Go operator: it never runs here; rewrite it as an executable"
)
_HEAD_BYTES: Final = 64 * 1024
_MARKS_OF_HOOKS: Final = (b"--config", b"__config__", b"hook::", b"addon_operator")
"""Stand in hooks, by hand and with the libraries, and hardly in what hooks include."""

_Identity: TypeAlias = tuple[int, int]


class HookFilesError(errors.ConfigurationError):
    """A directory of hooks cannot be read."""


@dataclass(frozen=True, slots=True)
class HookFile:
    """An executable file that is a hook."""

    path: pathlib.Path
    name: str
    """The path relative to the directory of hooks: how the hook is called in logs and metrics."""


@dataclass(frozen=True, slots=True)
class HookFiles:
    """The hooks below one directory."""

    executables: tuple[HookFile, ...] = ()
    """Sorted by name."""
    suspects: tuple[tuple[HookFile, str], ...] = ()
    """Files that look like hooks and are none, each with the part of a sentence after its path."""

    @property
    def warnings(self) -> tuple[str, ...]:
        """One sentence for each of the suspects."""
        return tuple(f"{file.path} {verdict}" for file, verdict in self.suspects)

    @property
    def go_hooks(self) -> tuple[str, ...]:
        """Names of files that only the Go operator could run."""
        return tuple(file.name for file, verdict in self.suspects if verdict == GO_VERDICT)


def global_hooks_root(directory: pathlib.Path) -> pathlib.Path:
    """Return where global hooks are: ``hooks`` in the configured directory if that exists, else itself."""
    hooks = directory / HOOKS_DIRECTORY
    return hooks if hooks.is_dir() else directory


def absolute(path: pathlib.Path, start: pathlib.Path) -> pathlib.Path:
    """Return the absolute path of a file that is named from ``start``, which may be gone by now."""
    while path.parts[:1] == ("..",):
        start, path = start.parent, path.relative_to("..")
    return start / path


def command(hook: pathlib.Path) -> list[pathlib.Path]:
    """Return the words that start the hook at this absolute path.

    A ``.py`` hook below a ``hooks`` directory that has a virtual environment ``venv`` is run by that one's
    Python, as the Go operator does; every other hook is started as it is.
    """
    python = _venv_python(hook) if hook.suffix == ".py" else None
    return [hook] if python is None else [python, hook]


def _venv_python(hook: pathlib.Path) -> pathlib.Path | None:
    for directory in hook.parents:
        if directory.name == HOOKS_DIRECTORY:
            python = directory / _VENV / "bin" / "python3"
            return python if python.exists() else None
    return None


def discover(root: pathlib.Path) -> HookFiles:
    """Return all hooks below ``root``, which need not exist.

    A hook is an executable file; symbolic links are followed. Directories called ``lib`` or ``venv``, hidden
    entries, and ``.yaml``, ``.json``, ``.md`` and ``.txt`` files are ignored; any other file that is not
    executable is a warning.

    Raises :class:`HookFilesError` when a directory cannot be read.
    """
    if not root.exists():
        return HookFiles()
    found = sorted(_files(root, "", frozenset()), key=lambda file: file.name)
    verdicts = [(file, _verdict(file)) for file in found]
    return HookFiles(
        executables=tuple(file for file, verdict in verdicts if verdict is None),
        suspects=tuple((file, verdict) for file, verdict in verdicts if verdict is not None),
    )


def _files(directory: pathlib.Path, prefix: str, above: frozenset[_Identity]) -> Iterator[HookFile]:
    """Yield files that may be hooks; ``above`` are the directories on the way: links may make circles."""
    identity, entries = _read(directory)
    if identity in above:
        return
    for entry in entries:
        path, name = directory / entry.name, f"{prefix}{entry.name}"
        if _is_directory(entry):
            if entry.name not in _PASSED_DIRECTORIES:
                yield from _files(path, f"{name}/", above | {identity})
        elif path.suffix not in _DATA_SUFFIXES:
            yield HookFile(path, name)


def _read(directory: pathlib.Path) -> tuple[_Identity, list[os.DirEntry[str]]]:
    try:
        status = directory.stat()
        with os.scandir(directory) as entries:
            visible = [entry for entry in entries if not entry.name.startswith(".")]
        return (status.st_dev, status.st_ino), visible
    except OSError as error:
        raise HookFilesError(f"cannot read the directory of hooks {directory}: {error.strerror}") from error


def _is_directory(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_dir()
    except OSError:
        return False


def _verdict(file: HookFile) -> str | None:
    try:
        mode = file.path.stat().st_mode
    except OSError as error:
        return f"is ignored: {error.strerror}"
    if not stat.S_ISREG(mode):
        return "is ignored: it is not a regular file"
    if file.path.suffix == GO_SUFFIX:
        return GO_VERDICT
    return None if mode & _EXECUTABLE else _not_executable(file.path)


def _not_executable(path: pathlib.Path) -> str:
    """Say what becomes of such a file, with harmless advice: an executable library would be asked."""
    try:
        with path.open("rb") as file:
            head = file.read(_HEAD_BYTES)
    except OSError as error:
        return f"is ignored: {error.strerror}"
    if not head.startswith(b"#!"):
        return (
            "is ignored: it is neither executable nor begins with '#!', so it is not a hook; "
            f"put a library into {LIBRARY}/, next to the hooks"
        )
    if any(mark in head for mark in _MARKS_OF_HOOKS):
        return f"is ignored because it is not executable; run 'chmod +x {path}'"
    return (
        f"is ignored because it is not executable; put a library into {LIBRARY}/, next to the hooks, "
        f"and run 'chmod +x {path}' only if it answers --config as a hook"
    )
