"""Finding hooks on disk."""

import enum
import os
import pathlib
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, TypeAlias

from addon_operator.helm.charts import plain_files
from addon_operator.kernel import errors
from addon_operator.loading import hook_names
from addon_operator.process import start_errors

HOOKS_DIRECTORY: Final = "hooks"
_VENV: Final = "venv"
_PASSED_DIRECTORIES: Final = frozenset({hook_names.LIBRARY, _VENV, "__pycache__"})
_DATA_SUFFIXES: Final = frozenset({".yaml", ".json", ".md", ".txt"})

GO_SUFFIX: Final = ".go"
GO_VERDICT: Final = (
    "is a Go hook, which is compiled into the Go operator: it never runs here; build a program with many "
    "hooks of it, or rewrite it as a script"
)
_HEAD_BYTES: Final = 64 * 1024
_BYTE_ORDER_MARK: Final = b"\xef\xbb\xbf"
_GO_OPERATOR: Final = b"/addon-operator/sdk"
"""What is imported by hooks that are compiled into the Go operator."""
_MARKS_OF_HOOKS: Final = (b"--config", b"__config__", b"hook::run", b"hook.run(")
"""Stand in hooks, by hand and with the libraries, and hardly in what hooks include."""
_INTO_LIBRARY: Final = f"put a library into {hook_names.LIBRARY}/, next to the hooks"

MAX_HOOKS: Final = 1000
"""Executable files in a directory of hooks: each is started once to be asked."""
MAX_DEPTH: Final = 100
"""Directories within each other."""
_SHOWN: Final = 10
_NOT_TEXT: Final = "has a name that is not text in UTF-8; rename it"
_SHOWN_CHARS: Final = 200

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
    refused: tuple[tuple[HookFile, str], ...] = ()
    """Hooks that can never run, each with the part of a sentence after its path."""

    @property
    def problem(self) -> str:
        """What stops the owner of the hooks: a clause for each of the first refused; empty if none is."""
        clauses = [f"hook {file.path} {verdict}" for file, verdict in self.refused[:_SHOWN]]
        if len(self.refused) > _SHOWN:
            clauses.append(f"and {len(self.refused) - _SHOWN} more")
        return errors.writable("; ".join(clauses))

    @property
    def told(self) -> tuple[tuple[HookFile, str], ...]:
        """The suspects, all Go hooks by the first of them: there may be hundreds."""
        go_hooks = [file for file, verdict in self.suspects if verdict == GO_VERDICT]
        others = tuple(each for each in self.suspects if each[1] != GO_VERDICT)
        more = f"; so are {len(go_hooks) - 1} more" if go_hooks[1:] else ""
        return (*others, *((file, f"{GO_VERDICT}{more}") for file in go_hooks[:1]))

    @property
    def warnings(self) -> tuple[str, ...]:
        """One sentence for each of :attr:`told`."""
        return tuple(f"{file.path} {verdict}" for file, verdict in self.told)

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


def may_hold_many(hook: pathlib.Path) -> bool:
    """Say whether it may be a program that holds many hooks: one without an extension, and no script."""
    return not hook.suffix and not start_errors.is_script(hook)


def _venv_python(hook: pathlib.Path) -> pathlib.Path | None:
    for directory in hook.parents:
        if directory.name == HOOKS_DIRECTORY:
            python = directory / _VENV / "bin" / "python3"
            return python if python.exists() else None
    return None


def discover(root: pathlib.Path) -> HookFiles:
    """Return all hooks below ``root``, which need not exist.

    A hook is an executable file; symbolic links are followed. Directories called ``lib`` or ``venv``, hidden
    entries, and ``.yaml``, ``.json``, ``.md`` and ``.txt`` files are ignored. Another file that is not
    executable is ignored if its name says that it is data or a library, and refused if it begins
    as a program. Go sources beside a compiled program are ignored, too, unless they are for the Go operator.

    Raises :class:`HookFilesError` when a directory cannot be read, and for more than :data:`MAX_HOOKS`.
    """
    try:
        root.stat()
        walked = _Walk().files(root, "", frozenset(), is_linked=root.is_symlink())
        files = sorted(walked, key=lambda file: file.name)
    except (FileNotFoundError, NotADirectoryError):
        return HookFiles()
    except OSError as error:
        raise HookFilesError(f"cannot read the hooks in {root}: {error.strerror}") from error
    verdicts = [(file, *_verdict(file)) for file in files]
    if any(verdict is _Verdict.HOOK and may_hold_many(file.path) for file, verdict, _ in verdicts):
        verdicts = [each for each in verdicts if each[2] != GO_VERDICT or _is_of_go_operator(each[0])]
    told = {
        judged: tuple((file, said) for file, verdict, said in verdicts if verdict is judged)
        for judged in _Verdict
    }
    hooks = tuple(file for file, _ in told[_Verdict.HOOK])
    if len(hooks) > MAX_HOOKS:
        raise HookFilesError(
            f"{root} has {len(hooks)} executable files, the first {hooks[0].path}, and may have {MAX_HOOKS}; "
            "does a link lead too far?"
        )
    return HookFiles(hooks, told[_Verdict.SUSPECT], told[_Verdict.REFUSED])


class _Walk:
    """Goes through a directory of hooks, links followed."""

    def __init__(self) -> None:
        self._linked = plain_files.Linked()

    def files(
        self, directory: pathlib.Path, prefix: str, above: frozenset[_Identity], *, is_linked: bool = False
    ) -> Iterator[HookFile]:
        """Yield files that may be hooks; ``above`` are the directories on the way: links may make circles."""
        identity, entries = _read(directory)
        if identity in above:
            return
        if len(above) > MAX_DEPTH:
            place = f"{str(directory)[:_SHOWN_CHARS]}…"
            raise HookFilesError(f"{place} has more than {MAX_DEPTH} directories within each other")
        for entry in entries:
            path, name = directory / entry.name, f"{prefix}{entry.name}"
            if is_linked:
                self._linked.take(path)
            if _is_directory(entry):
                if entry.name not in _PASSED_DIRECTORIES:
                    behind = is_linked or entry.is_symlink()
                    yield from self.files(path, f"{name}/", above | {identity}, is_linked=behind)
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


class _Verdict(enum.Enum):
    HOOK = enum.auto()
    IGNORED = enum.auto()
    SUSPECT = enum.auto()
    REFUSED = enum.auto()


_Judged: TypeAlias = tuple[_Verdict, str]


def _verdict(file: HookFile) -> _Judged:
    try:
        mode = file.path.stat().st_mode
        if not stat.S_ISREG(mode):
            return _Verdict.SUSPECT, "is ignored: it is not a regular file"
        if file.path.suffix == GO_SUFFIX:
            return _Verdict.SUSPECT, GO_VERDICT
        if not start_errors.is_executable(file.path):
            return _not_executable(file)
        # The name of a hook is told to the API server, to scrapes and to the log.
        is_text = errors.writable(file.name) == file.name
        return (_Verdict.HOOK, "") if is_text else (_Verdict.REFUSED, _NOT_TEXT)
    except OSError as error:
        if hook_names.is_data(file.name) or hook_names.is_library(file.name):
            return _Verdict.SUSPECT, f"is ignored: {error.strerror}"
        return _Verdict.REFUSED, f"cannot be read: {error.strerror}; mend it, or remove it"


def _is_of_go_operator(file: HookFile) -> bool:
    """Say so of a Go source; others beside a program with many hooks are what that is built of."""
    try:
        with file.path.open("rb") as opened:
            return _GO_OPERATOR in opened.read(_HEAD_BYTES)
    except OSError:
        return True


def _not_executable(file: HookFile) -> _Judged:
    """Judge such a file by its name, and by how it begins: an executable library would be asked."""
    if hook_names.is_data(file.name):
        return _Verdict.IGNORED, ""
    try:
        with file.path.open("rb") as opened:
            head = opened.read(_HEAD_BYTES).removeprefix(_BYTE_ORDER_MARK)
    except OSError as error:
        return _Verdict.REFUSED, f"is not executable, and cannot be read: {error.strerror}; see its mode"
    is_program = head.startswith((b"#!", start_errors.ELF))
    is_hook = any(mark in head for mark in _MARKS_OF_HOOKS)
    if hook_names.is_library(file.name):
        return _named_like_a_library(file.path) if is_program and is_hook else (_Verdict.IGNORED, "")
    if is_program or is_hook or (head and not file.path.suffix):
        return _Verdict.REFUSED, _mend(file.path, is_program=is_program, is_hook=is_hook)
    if hook_names.may_be_included(file.name):
        return _Verdict.IGNORED, ""
    return _Verdict.SUSPECT, (
        f"is ignored: it is neither executable nor begins with '#!', so it is not a hook; {_INTO_LIBRARY}"
    )


def _named_like_a_library(path: pathlib.Path) -> _Judged:
    mend = start_errors.not_executable(path)
    return _Verdict.SUSPECT, f"is ignored, because its name is one of a library, and it {mend}"


def _mend(path: pathlib.Path, *, is_program: bool, is_hook: bool) -> str:
    mend = start_errors.not_executable(path)
    if not is_program:
        begin = "does not begin with a line such as '#!/usr/bin/env bash'"
        return f"{begin}, and {mend}; if it is not a hook, {_INTO_LIBRARY}"
    return mend if is_hook else f"{mend}, or, if hooks include it, {_INTO_LIBRARY}"
