"""Why a program could not be started, as one sentence."""

import codecs
import contextlib
import errno
import os
import pathlib
import shlex
import stat
from typing import Final

from addon_operator.kernel import errors

_SHEBANG: Final = b"#!"
_SHEBANG_BYTES: Final = 256
ELF: Final = b"\x7fELF"
"""How compiled programs begin."""
WINDOWS_LINES: Final = (
    "its lines end as on Windows (CR LF), so its interpreter is not found; save it with LF line ends"
)
_EXECUTABLE: Final = stat.S_IXUSR | stat.S_IXGRP | stat.S_IXOTH


class ChildStartError(errors.AddonOperatorError):
    """A program could not be started at all; ``program`` is its path."""

    def __init__(self, program: str, message: str) -> None:
        super().__init__(f"cannot start {program}: {message}")
        self.program = program
        """The first word of the command."""


def explain(error: OSError, program: str, cwd: pathlib.Path | None) -> ChildStartError:
    """Turn what the kernel says about a failed start into a sentence that says what to do."""
    if cwd is not None and error.errno in _ABOUT_A_PATH and not cwd.is_dir():
        return ChildStartError(program, f"its working directory {cwd} does not exist or is not a directory")
    return ChildStartError(program, _reason(error, pathlib.Path(program)))


def start_problem(program: pathlib.Path) -> ChildStartError | None:
    """Say why an executable file could not be started, by its first line; ``None`` if it could."""
    try:
        with program.open("rb"):
            pass
    except OSError as error:
        return explain(error, str(program), None)
    interpreter = _interpreter(program)
    if interpreter is not None and not os.path.exists(interpreter):  # noqa: PTH110 - it is a text
        return explain(OSError(errno.ENOENT, ""), str(program), None)
    if has_windows_lines(program):
        return ChildStartError(str(program), WINDOWS_LINES)
    if interpreter is None and not _first_line(program).startswith(ELF):
        return explain(OSError(errno.ENOEXEC, ""), str(program), None)
    return None


def has_windows_lines(program: pathlib.Path) -> bool:
    """Say whether the first line of a script ends in CR LF, and so what its interpreter is called with."""
    return is_script(program) and _first_line(program).endswith(b"\r")


def is_executable(program: pathlib.Path) -> bool:
    """Say whether the mode of a file lets somebody execute it; raises :class:`OSError` if it is not there."""
    return bool(program.stat().st_mode & _EXECUTABLE)


def not_executable(program: pathlib.Path) -> str:
    """Say what mends a file without the mode to execute it, to be put behind its name."""
    mend = f"is not executable; run 'chmod +x {shlex.quote(str(program))}'"
    if not _mount_flags(program) & os.ST_RDONLY:
        return mend
    return (
        f"{mend} where it comes from, as this place is read-only; files of a ConfigMap or Secret are "
        "executable with 'defaultMode: 0555' in the volume"
    )


_ABOUT_A_PATH: Final = frozenset({errno.ENOENT, errno.ENOTDIR, errno.EACCES})


def _reason(error: OSError, program: pathlib.Path) -> str:
    match error.errno:
        case errno.ENOEXEC:
            return not_a_program(program)
        case errno.ENOENT | errno.ENOTDIR:
            return _missing(program)
        case errno.EACCES | errno.EPERM:
            return _forbidden(program)
        case errno.E2BIG:
            return "its arguments and environment are larger than the kernel takes; make them smaller"
        case _:
            return f"{error.strerror or error}"


def not_a_program(program: pathlib.Path) -> str:
    """Say why the kernel takes an executable file neither for a script nor for a program."""
    if _first_line(program).startswith(ELF):
        return "it is a program for another kind of machine; build it for this one"
    if _first_line(program).startswith(codecs.BOM_UTF8):
        return "a byte order mark stands before its first line; save it as UTF-8 without one"
    return "it has no #! line; begin a script with a line such as '#!/usr/bin/env bash'"


def is_script(program: pathlib.Path) -> bool:
    """Say whether a file begins with ``#!``."""
    return _first_line(program).startswith(_SHEBANG)


def _missing(program: pathlib.Path) -> str:
    if not program.exists():
        return "there is no such file" if program.is_absolute() else "there is no such program in PATH"
    interpreter = _interpreter(program)
    if interpreter is None:
        return "the program loader it needs is not on this machine; is it built for another system?"
    if interpreter.endswith("\r"):
        return WINDOWS_LINES
    return f"its first line names the interpreter {interpreter}, which does not exist on this machine"


def _forbidden(program: pathlib.Path) -> str:
    if program.is_dir():
        return "it is a directory"
    if not is_executable(program):
        return f"it {not_executable(program)}"
    interpreter = _interpreter(program)
    if interpreter is not None and not os.access(interpreter, os.X_OK):
        return f"its first line names the interpreter {interpreter}, which is not executable"
    if _mount_flags(program) & os.ST_NOEXEC:
        return (
            "its file system is mounted with noexec, so nothing starts from there; "
            "mount it without noexec, or put the files into the image"
        )
    if not os.access(program, os.X_OK):
        return f"this user may not execute it; run 'chmod a+rx {shlex.quote(str(program))}'"
    return "permission denied; may this user enter the directories above it?"


def _mount_flags(path: pathlib.Path) -> int:
    with contextlib.suppress(OSError):
        return os.statvfs(path).f_flag
    return 0


def _interpreter(program: pathlib.Path) -> str | None:
    """Return what the ``#!`` line of a script names, with a stray carriage return if there is one."""
    line = _first_line(program)
    words = line.removeprefix(_SHEBANG).decode(errors="replace").strip(" \t").split(" ")
    return words[0] or None if line.startswith(_SHEBANG) else None


def _first_line(program: pathlib.Path) -> bytes:
    """Return the beginning of a file up to the end of its first line; nothing if it cannot be read."""
    with contextlib.suppress(OSError), program.open("rb") as file:
        return file.read(_SHEBANG_BYTES).partition(b"\n")[0]
    return b""
