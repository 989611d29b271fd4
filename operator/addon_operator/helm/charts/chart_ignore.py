"""What a chart's ``.helmignore`` leaves out of the chart.

Source: "The .helmignore file" of the Helm documentation.
"""

import fnmatch
import pathlib
from collections.abc import Sequence
from typing import Final

import msgspec

from addon_operator.helm.charts import plain_files

FILE: Final = ".helmignore"
MAX_FILE: Final = 64 * 1024
"""How many bytes it may have: each file of the chart is compared with each of its rules."""


class _Rule(msgspec.Struct, frozen=True):
    pattern: str
    is_negated: bool
    """It leaves out everything else."""
    is_for_directories: bool
    is_for_paths: bool
    """It is compared with the path from the chart's directory on, not with the last name."""

    def leaves_out(self, path: pathlib.PurePath, *, is_directory: bool) -> bool:
        if self.is_for_directories and not is_directory:
            return self.is_negated
        return self._matches(path) is not self.is_negated

    def _matches(self, path: pathlib.PurePath) -> bool:
        if not self.is_for_paths:
            return fnmatch.fnmatchcase(path.name, self.pattern)
        patterns = self.pattern.split("/")
        return len(patterns) == len(path.parts) and all(map(fnmatch.fnmatchcase, path.parts, patterns))


class ChartIgnore:
    """The rules of one chart."""

    def __init__(self, lines: Sequence[str] = ()) -> None:
        self._rules = [_rule(line.strip()) for line in lines if line.strip() and not _is_comment(line)]

    def leaves_out(self, path: pathlib.PurePath) -> bool:
        """Return whether a file, named from the chart's directory on, or a directory above it is left out."""
        if not self._rules:
            return False
        above = [each for each in path.parents if each.name]
        return self._leaves_out(path, is_directory=False) or any(
            self._leaves_out(each, is_directory=True) for each in above
        )

    def _leaves_out(self, path: pathlib.PurePath, *, is_directory: bool) -> bool:
        return any(rule.leaves_out(path, is_directory=is_directory) for rule in self._rules)


def read(chart: pathlib.Path) -> ChartIgnore:
    """Read the rules of a chart; without the file there are none.

    Raises :class:`OSError` when it is there and cannot be read.
    """
    try:
        return ChartIgnore(plain_files.read_text(chart / FILE, MAX_FILE, errors="replace").splitlines())
    except (FileNotFoundError, NotADirectoryError):
        return ChartIgnore()


def _is_comment(line: str) -> bool:
    return line.strip().startswith("#")


def _rule(text: str) -> _Rule:
    is_negated = text.startswith("!")
    pattern = text.removeprefix("!")
    is_for_directories = pattern.endswith("/")
    pattern = pattern.removesuffix("/")
    return _Rule(pattern.removeprefix("/"), is_negated, is_for_directories, "/" in pattern)
