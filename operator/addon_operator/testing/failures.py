"""How failures read: what the author of a test wrote, and a sentence; no code of pytest or of ours."""

import pathlib
from types import TracebackType
from typing import Final

import pytest
from _pytest._code.code import ExceptionChainRepr
from _pytest.config import ConftestImportFailure

import addon_operator
from addon_operator.kernel import errors
from addon_operator.testing.modules import places

_OURS: Final = pathlib.Path(addon_operator.__file__).parent
_REMEDY: Final = "correct the name, or install what it is of"
_BESIDE: Final = (
    "files beside a test are not imported, as several modules may have one of that name; "
    "make a fixture of it in conftest.py beside the test"
)


def of_collection(excinfo: pytest.ExceptionInfo[BaseException], path: pathlib.Path) -> str | None:
    """Return what is wrong with a file of tests that Python cannot read or import; ``None`` for all else."""
    error: BaseException | None = excinfo.value
    error = error.cause if isinstance(error, ConftestImportFailure) else error and error.__cause__
    if not is_test(path / places.TESTS):
        return None
    if isinstance(error, SyntaxError):
        place = _place(pathlib.Path(error.filename or path), error.lineno)
        return f"{place}: {error.msg}; correct it{_marked(error)}"
    if isinstance(error, ImportError):
        is_beside = bool(error.name) and (path.parent / f"{error.name}.py").is_file()
        return f"{_importing(error.__traceback__, path)}: {error}; {_BESIDE if is_beside else _REMEDY}"
    return None


def is_test(path: pathlib.Path) -> bool:
    """Say whether a file is among the tests of a module or of global hooks."""
    return places.module_around(path) is not None or places.global_hooks_around(path) is not None


def _place(path: pathlib.Path, line: int | None) -> str:
    return places.shown(path) + (f", line {line}" if line else "")


def _marked(error: SyntaxError) -> str:
    """Return the line with a mark below what is wrong in it."""
    if not error.text or not error.text.strip():
        return ""
    text = error.text.rstrip("\n")
    indent = len(text) - len(text.lstrip())
    mark = " " * max((error.offset or 1) - 1 - indent, 0)
    return f"\n\n    {text.strip()}\n    {mark}^"


def _importing(traceback: TracebackType | None, path: pathlib.Path) -> str:
    """Return the last place below the tests from which the import went."""
    place = places.shown(path)
    while traceback is not None:
        file = pathlib.Path(traceback.tb_frame.f_code.co_filename)
        if is_test(file):
            place = _place(file, traceback.tb_lineno)
        traceback = traceback.tb_next
    return place


def shorten(excinfo: pytest.ExceptionInfo[BaseException]) -> None:
    """Leave of the way to an error what the author of the test wrote."""
    step: TracebackType | None = excinfo.tb
    while step is not None:
        if step.tb_next is not None and _is_ours(step.tb_next):
            step.tb_next = None
        step = step.tb_next
    excinfo.traceback = type(excinfo.traceback)(excinfo.tb)
    excinfo.value.__cause__, excinfo.value.__suppress_context__ = None, True


def _is_ours(step: TracebackType) -> bool:
    return _OURS in pathlib.Path(step.tb_frame.f_code.co_filename).parents


def say(report: pytest.TestReport, item: pytest.Item, error: errors.AddonOperatorError) -> None:
    """Let a report have the sentence of an error, without the name of its class."""
    shown = report.longrepr
    if not isinstance(shown, ExceptionChainRepr):
        return
    if report.when != "call":
        path, line, name = item.reportinfo()
        place = _place(pathlib.Path(path), None if line is None else line + 1)
        report.longrepr = f"{place}: {name}\n{error}"
        return
    named = f"{type(error).__module__}.{type(error).__qualname__}: "
    for entry in shown.reprtraceback.reprentries:
        entry.lines = [line.replace(named, "", 1) for line in entry.lines]
    if shown.reprcrash is not None:
        shown.reprcrash.message = str(error)
