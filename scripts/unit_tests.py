"""Run the unit tests in two processes more than there are cores, which take file after file from one queue.

Most unit tests take a millisecond. With pytest-xdist each one costs as much again for being reported to
another process, and every worker collects all of them: processes that take whole files need a third less,
and they end together, however long the tests of a file take. Arguments are passed on to pytest; the exit
code is 0 when no process failed.
"""

import contextlib
import importlib
import multiprocessing
import multiprocessing.process
import os
import pathlib
import shutil
import sys
import tempfile
from collections.abc import Iterator, Sequence
from typing import IO, Final

import pytest
import unit_queue

from addon_operator.kernel import optional_imports

_UNIT: Final = pathlib.Path(__file__).parents[1] / "tests" / "unit"
_NOTHING_SELECTED: Final = 5
"""pytest's exit code when none of its files has a test that the arguments select."""
_IMPORTS: Final = ("addon_operator.app.run", "addon_operator.commands.plan.planning", "hypothesis.strategies")
_IMPORTED: Final = "ignore:Module already imported:pytest.PytestAssertRewriteWarning"
"""Hypothesis belongs to a plugin, whose assertions pytest would show at length."""
_FORK: Final = multiprocessing.get_context("fork")
_MEMORY: Final = pathlib.Path("/dev/shm")  # noqa: S108  # a directory of its own is made in it
_ROOM: Final = 1 << 28
"""Bytes; the tests write some megabytes."""


@contextlib.contextmanager
def directories(count: int) -> Iterator[list[pathlib.Path]]:
    """Places for the files of that many processes, in memory where programs can be run from there."""
    in_memory = (
        _MEMORY.is_dir()
        and os.access(_MEMORY, os.W_OK)
        and not os.statvfs(_MEMORY).f_flag & os.ST_NOEXEC
        and shutil.disk_usage(_MEMORY).free > _ROOM
    )
    with tempfile.TemporaryDirectory(prefix="unit-tests-", dir=_MEMORY if in_memory else None) as made:
        yield [pathlib.Path(made, str(number)) for number in range(count)]


def start(
    taker: unit_queue.Taker, basetemp: pathlib.Path, arguments: Sequence[str], output: IO[bytes] | None
) -> multiprocessing.process.BaseProcess:
    """One pytest process; it leaves the cache of failures alone, which has one writer only."""
    without = ("-p", "no:xdist", "-p", "no:cacheprovider")
    # No percentages: how many tests there are is known when the last file was read.
    how = ("-o", "console_output_style=classic", "-W", _IMPORTED, "--basetemp", str(basetemp))
    process = _FORK.Process(target=_run, args=(taker, ("--quiet", *without, *how, *arguments), output))
    process.start()
    return process


def _run(taker: unit_queue.Taker, arguments: Sequence[str], output: IO[bytes] | None) -> None:
    if output is not None:
        os.dup2(output.fileno(), 1)
        os.dup2(output.fileno(), 2)
    sys.exit(pytest.main([*arguments, str(_UNIT)], plugins=[taker]))


def main(arguments: Sequence[str]) -> int:
    """Run all processes side by side: the first one is seen at work, the others when they have ended."""
    # Some wait for programs: two more than there are cores keep these busy.
    count = len(os.sched_getaffinity(0)) + 2
    with optional_imports.quick_imports():
        # What most tests import, once for all processes.
        for name in _IMPORTS:
            importlib.import_module(name)
    batches = unit_queue.batches_of(_UNIT)
    with contextlib.ExitStack() as stack:
        taker = unit_queue.Taker(stack.enter_context(unit_queue.filled(len(batches))), batches)
        first, *others = stack.enter_context(directories(count))
        outputs = [stack.enter_context(tempfile.TemporaryFile()) for _ in others]
        seen = start(taker, first, arguments, None)
        hidden = [
            start(taker, basetemp, arguments, output)
            for basetemp, output in zip(others, outputs, strict=True)
        ]
        codes = [_ended(seen)]
        for process, output in zip(hidden, outputs, strict=True):
            codes.append(_ended(process))
            output.seek(0)
            sys.stdout.write(output.read().decode(errors="replace"))
    return max((code for code in codes if code != _NOTHING_SELECTED), default=_NOTHING_SELECTED)


def _ended(process: multiprocessing.process.BaseProcess) -> int:
    process.join()
    return abs(process.exitcode or 0)


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except KeyboardInterrupt:
        sys.exit(130)
