"""Which files of which modules were saved, found by their times."""

import os
import pathlib
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Final

import msgspec

from addon_operator.commands.dev import dev_view
from addon_operator.loading import module_directories, module_scan

_MOST_FILES: Final = 10
_SHARE: Final = 0.05
"""Of the time that looks may take."""

Directory = str
"""The name of a module's directory; empty for files that all modules share."""


class Saved(msgspec.Struct, frozen=True):
    """What was saved of a module."""

    at: float
    """When, in seconds since the epoch: the last of the files."""
    files: Sequence[str]
    """The first ones, as they lie on disk."""


class Saves:
    """Looks for what was saved, and keeps it until it has led to a run."""

    def __init__(
        self,
        root: pathlib.Path,
        shown: pathlib.Path,
        monotonic: Callable[[], float] = time.monotonic,
        *,
        of_modules: bool = True,
    ) -> None:
        """``shown`` is what people call ``root``; not ``of_modules``: all of it belongs to global hooks."""
        self._of_modules = of_modules
        self._root = root
        self._shown = shown
        self._monotonic = monotonic
        self._times = {path: _time(path) for path in _files(root)}
        self._new: dict[Directory, Saved] = {}
        self._taken: dict[str, Saved] = {}
        self._noticed: dict[Directory, float] = {}
        self._looks_again = 0.0

    @property
    def is_due(self) -> bool:
        """Whether it is time for another look: where there are many files, one takes long."""
        return self._monotonic() >= self._looks_again

    def look(self) -> Iterator[dev_view.Line]:
        """Look for what was saved, or is gone, since the last look, and yield it."""
        began = self._monotonic()
        now = {path: _time(path) for path in _files(self._root)}
        changed = [path for path, at in now.items() if self._times.get(path) != at]
        gone = [path for path in self._times if path not in now]
        self._times = now
        ended = self._monotonic()
        self._looks_again = ended + (ended - began) / _SHARE
        saved: dict[Directory, list[pathlib.Path]] = {self._directory(path): [] for path in (*changed, *gone)}
        for path in changed:
            saved[self._directory(path)].append(path)
        for directory, files in saved.items():
            self._note(directory, files)
            self._noticed[directory] = began
        yield from self._lines("saved", changed)
        yield from self._lines("removed", gone)

    def _note(self, directory: Directory, changed: Sequence[pathlib.Path]) -> None:
        before = self._new.get(directory)
        files = [*([] if before is None else before.files), *map(self.shown, changed)]
        at = max((self._times[path] for path in changed), default=time.time())
        self._new[directory] = Saved(at, list(dict.fromkeys(files))[:_MOST_FILES])

    def _lines(self, topic: str, paths: Sequence[pathlib.Path]) -> Iterator[dev_view.Line]:
        for path in paths[:_MOST_FILES]:
            module = module_directories.module_name(pathlib.Path(self._directory(path)))
            yield dev_view.Line(topic, f"{module}: {self.shown(path)}" if module else self.shown(path))
        if (more := len(paths) - _MOST_FILES) > 0:
            yield dev_view.Line(topic, f"and {more} more")

    def take(self, modules: Sequence[str]) -> None:
        """Note that the operator has read these modules again: their next runs are for what was saved."""
        shared = self._new.pop("", None)
        for directory in [*self._new]:
            name = module_directories.module_name(pathlib.Path(directory))
            if name in modules:
                self._taken[str(name)] = self._new.pop(directory)
        if shared is not None:
            for module in modules:
                self._taken.setdefault(module, shared)

    def of(self, module: str) -> Saved | None:
        """Return what was saved of a module since it was asked for last."""
        return self._taken.pop(module, None)

    def are_after(self, moment: float, path: pathlib.Path) -> bool:
        """Say whether something of the module in which a file lies was saved after this monotonic moment."""
        return self._noticed.get(self._directory(path), 0.0) > moment

    def is_any_after(self, moment: float) -> bool:
        """Say whether something was saved after this monotonic moment."""
        return any(at > moment for at in self._noticed.values())

    def is_named_in(self, text: str) -> bool:
        """Say whether a text names a file of these."""
        return str(self._root) in text

    def is_module_after(self, moment: float, module: str) -> bool:
        """Say whether something of a module was saved after this monotonic moment."""
        return any(
            at > moment and module_directories.module_name(pathlib.Path(directory)) == module
            for directory, at in self._noticed.items()
        )

    def has(self, path: pathlib.Path) -> bool:
        """Say whether a file lies below the modules."""
        return path.is_relative_to(self._root)

    def shown(self, path: pathlib.Path) -> str:
        """Return the path as people call it."""
        return os.path.relpath(self._shown / path.relative_to(self._root))

    def _directory(self, path: pathlib.Path) -> Directory:
        first, *below = path.relative_to(self._root).parts
        return first if below and self._of_modules else ""


def _files(root: pathlib.Path) -> Iterator[pathlib.Path]:
    for directory, below, files in os.walk(root, followlinks=True):
        below[:] = [each for each in below if not module_scan.is_passed(each)]
        yield from (pathlib.Path(directory, name) for name in files if not module_scan.is_passed(name))


def _time(path: pathlib.Path) -> float:
    try:
        return path.stat().st_mtime
    except OSError:
        return 0.0
