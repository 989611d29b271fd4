"""Run the unit tests in as many processes as there are cores, each with its own share of the files.

Most unit tests take a millisecond. With pytest-xdist each one costs as much again for being reported to
another process, and every worker collects all of them: processes that know their files need a third less.
Arguments are passed on to pytest; the exit code is 0 when no process failed.
"""

import contextlib
import os
import pathlib
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from typing import IO, Final

ROOT: Final = pathlib.Path(__file__).parents[1]
_NOTHING_SELECTED: Final = 5
"""pytest's exit code when none of its files has a test that the arguments select."""


def shares(files: Sequence[pathlib.Path], count: int) -> list[list[pathlib.Path]]:
    """The files in ``count`` shares of about the same size: how long tests take is not known before."""
    found: list[list[pathlib.Path]] = [[] for _ in range(count)]
    weights = [0] * count
    for file in sorted(files, key=lambda file: (-file.stat().st_size, file)):
        lightest = weights.index(min(weights))
        found[lightest].append(file)
        weights[lightest] += file.stat().st_size
    return [sorted(share) for share in found if share]


def start(
    share: Sequence[pathlib.Path], arguments: Sequence[str], output: IO[bytes] | None
) -> subprocess.Popen[bytes]:
    """One pytest process; it leaves the cache of failures alone, which has one writer only."""
    command = [sys.executable, "-m", "pytest", "--quiet", "-p", "no:xdist", "-p", "no:cacheprovider"]
    return subprocess.Popen(
        [*command, *arguments, *map(str, share)], cwd=ROOT, stdout=output, stderr=subprocess.STDOUT
    )


def main(arguments: Sequence[str]) -> int:
    """Run all shares side by side: the first one is seen at work, the others when they have ended."""
    files = sorted((ROOT / "tests" / "unit").rglob("test_*.py"))
    first, *others = shares(files, len(os.sched_getaffinity(0)))
    with contextlib.ExitStack() as stack:
        outputs = [stack.enter_context(tempfile.TemporaryFile()) for _ in others]
        seen = start(first, arguments, None)
        hidden = [start(share, arguments, output) for share, output in zip(others, outputs, strict=True)]
        codes = [seen.wait()]
        for process, output in zip(hidden, outputs, strict=True):
            codes.append(process.wait())
            output.seek(0)
            sys.stdout.write(output.read().decode(errors="replace"))
    return max((code for code in codes if code != _NOTHING_SELECTED), default=_NOTHING_SELECTED)


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except KeyboardInterrupt:
        sys.exit(130)
