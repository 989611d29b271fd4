"""Try whether the tests of a room notice mistakes in one of its files.

It makes mistakes in copies of the project, a seeded sample of all that ``mutations.py`` knows, runs the unit
tests of the room against each, and prints which survive. Each mistake gets a process that was forked when
everything foreign was imported. The exit code is 1 when the tests notice too few, 2 when nothing was tried.
"""

import argparse
import contextlib
import dataclasses
import difflib
import importlib
import multiprocessing
import multiprocessing.connection
import multiprocessing.process
import os
import pathlib
import random
import resource
import shutil
import signal
import sys
import tempfile
import time
import tomllib
from collections.abc import Iterator, Sequence
from typing import Final

import hypothesis
import mutations
import pytest

ROOT: Final = pathlib.Path(__file__).resolve().parents[1]
PACKAGE: Final = pathlib.PurePath("operator", "addon_operator")
EQUIVALENT: Final = pathlib.PurePath("tests", "equivalent_mutants.toml")
"""Mistakes that change nothing anybody could notice, each with the reason."""
ENOUGH: Final = 0.95
_FORK: Final = multiprocessing.get_context("fork")
_AT_LEAST: Final = 10.0
_TIMES: Final = 4
"""A mutant may take that often as long as the file without a mistake: it may never end."""
_MEMORY: Final = 4 << 30
"""Bytes of addresses; a mutant may never stop to collect things."""
_IMPORTED: Final = "ignore:Module already imported:pytest.PytestAssertRewriteWarning"
_NOT_COPIED: Final = (".*", "__pycache__", "dist")


class NothingTriedError(Exception):
    """It cannot be said what the tests notice; the text says why, and what to do."""


@dataclasses.dataclass(frozen=True, slots=True)
class Subject:
    """A file of the package, and the tests that shall notice mistakes in it."""

    path: pathlib.PurePath
    """From the root of the project, as :attr:`tests`."""
    tests: tuple[str, ...]
    """Those first that name the file."""

    @property
    def source(self) -> str:
        """What is in the file."""
        return (ROOT / self.path).read_text("utf-8")


def subject_of(file: str) -> Subject:
    """Return the file with the tests of its room: those in the folder of the same name."""
    path = pathlib.Path(file).resolve()
    if not path.is_file() or not path.is_relative_to(ROOT / PACKAGE):
        raise NothingTriedError(f"{file} is no file below {PACKAGE}: name one with FILE=")
    room = path.relative_to(ROOT / PACKAGE).parent
    found = sorted((ROOT / "tests" / "unit" / room).rglob("test_*.py"))
    if not found:
        raise NothingTriedError(f"there is no test in {pathlib.PurePath('tests', 'unit', room)}")
    found.sort(
        key=lambda test: (
            not test.stem.startswith(f"test_{path.stem}"),
            path.stem not in test.read_text("utf-8"),
        )
    )
    return Subject(path.relative_to(ROOT), tuple(str(test.relative_to(ROOT)) for test in found))


def mistakes(subject: Subject) -> list[mutations.Mutation]:
    """Return all mistakes in a file that tests could notice."""
    listed = tomllib.loads((ROOT / EQUIVALENT).read_text("utf-8")).get("mutant", [])
    equivalent = {each["after"] for each in listed if each["file"] == str(subject.path)}
    found = mutations.of(subject.source)
    if unknown := equivalent - {one.after for one in found}:
        raise NothingTriedError(
            f"{EQUIVALENT}: {subject.path} has no mutant {min(unknown)!r} any more: remove it"
        )
    return [one for one in found if one.after not in equivalent]


class Trial:
    """One run of the tests in a copy of the project."""

    def __init__(self, subject: Subject, place: pathlib.Path, bound: float = float("inf")) -> None:
        self.place = place
        self.output = place.with_suffix(".txt")
        self.imported = place.with_suffix(".imported")
        """The foreign modules that the tests needed, one a line."""
        self._process = _FORK.Process(target=self._run, args=(subject,))
        self._process.start()
        self._until = time.monotonic() + bound

    @property
    def sentinel(self) -> int:
        """What becomes readable when it has ended."""
        return self._process.sentinel

    @property
    def has_ended(self) -> bool:
        """Whether there is nothing to wait for: the tests ended, or took too long."""
        return bool(multiprocessing.connection.wait([self.sentinel], 0)) or time.monotonic() > self._until

    def passed(self) -> bool:
        """Whether no test failed, when it has ended; what still runs is ended."""
        self.end()
        return self._process.exitcode == 0

    def end(self) -> None:
        """End the process, and those that it started."""
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid or 0, signal.SIGKILL)
        self._process.kill()
        self._process.join()

    def _run(self, subject: Subject) -> None:
        os.setsid()
        resource.setrlimit(resource.RLIMIT_AS, (_MEMORY, _MEMORY))
        descriptor = os.open(self.output, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        os.dup2(descriptor, 1)
        os.dup2(descriptor, 2)
        os.chdir(self.place)
        os.environ["PYTHONPATH"] = str(self.place / "operator")
        tempfile.tempdir = None
        code = pytest.main([*_arguments(self.place), *subject.tests])
        package = sys.modules.get("addon_operator")
        if package is None or not str(package.__file__).startswith(str(self.place)):
            sys.stderr.write("the tests did not import the copy of the project\n")
            code = pytest.ExitCode.INTERNAL_ERROR
        self.imported.write_text("\n".join(_foreign_modules(self.place)), "utf-8")
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def _arguments(place: pathlib.Path) -> Iterator[str]:
    yield from ("-x", "--quiet", "--no-header", "--tb=short", "-W", _IMPORTED)
    # The last one is of the package that is being changed here, which may be a small one in a test.
    for plugin in ("xdist", "cacheprovider", "addon-operator"):
        yield from ("-p", f"no:{plugin}")
    yield from ("--rootdir", str(place), "--basetemp", str(place.with_suffix(".files")))


def _foreign_modules(place: pathlib.Path) -> list[str]:
    return [
        name
        for name, module in sys.modules.items()
        if (file := getattr(module, "__file__", None))
        and not str(file).startswith((str(place), str(ROOT / "operator")))
    ]


def _examples() -> None:
    """Let Hypothesis try the same examples each time, and end with the first that fails."""
    phases = (hypothesis.Phase.explicit, hypothesis.Phase.generate)
    checks = list(hypothesis.HealthCheck)
    hypothesis.settings.register_profile(
        "mutants", derandomize=True, database=None, deadline=None, phases=phases, suppress_health_check=checks
    )
    hypothesis.settings.load_profile("mutants")


def copies(subject: Subject, directory: pathlib.Path, count: int) -> tuple[list[pathlib.Path], float]:
    """Make copies of the project in which the tests pass, and say how many seconds they take there."""
    first, *others = [directory / f"copy{number}" for number in range(count)]
    shutil.copytree(ROOT, first, ignore=shutil.ignore_patterns(*_NOT_COPIED))
    begun = time.monotonic()
    trial = Trial(subject, first)
    multiprocessing.connection.wait([trial.sentinel])
    took = time.monotonic() - begun
    if not trial.passed():
        output = trial.output.read_text("utf-8", errors="replace")
        raise NothingTriedError(f"the tests fail without a mistake, too:\n{output}")
    for name in trial.imported.read_text("utf-8").split():
        with contextlib.suppress(ImportError):
            importlib.import_module(name)
    # Whoever writes the file within a second, and as long, would get the compiled one.
    sys.dont_write_bytecode = True
    os.environ["PYTHONDONTWRITEBYTECODE"] = "1"
    for compiled in (first / subject.path.parent / "__pycache__").glob(f"{subject.path.stem}.*"):
        compiled.unlink()
    for other in others:
        shutil.copytree(first, other)
    return [first, *others], took


def survivors(
    subject: Subject, chosen: Sequence[mutations.Mutation], places: Sequence[pathlib.Path], bound: float
) -> Iterator[tuple[mutations.Mutation, bool]]:
    """Yield each mistake and whether it survived, as they end: one at a time in each of the places."""
    waiting, free = list(reversed(chosen)), list(places)
    running: list[tuple[mutations.Mutation, Trial]] = []
    try:
        while waiting or running:
            while waiting and free:
                place, mutation = free.pop(), waiting.pop()
                (place / subject.path).write_text(mutation.source, "utf-8")
                running.append((mutation, Trial(subject, place, bound)))
            multiprocessing.connection.wait([trial.sentinel for _, trial in running], timeout=1)
            for each in [each for each in running if each[1].has_ended]:
                running.remove(each)
                yield each[0], each[1].passed()
                free.append(each[1].place)
    finally:
        for _, trial in running:
            trial.end()


def tried(subject: Subject, sample: int, seed: int) -> float:
    """Print what becomes of each mistake; return the share that the tests notice."""
    found = mistakes(subject)
    chosen = sorted(random.Random(seed).sample(found, min(sample, len(found))), key=lambda one: one.line)  # noqa: S311  # no secret
    if not chosen:
        raise NothingTriedError(f"{subject.path} has nothing that could be wrong")
    _examples()
    lived = []
    with tempfile.TemporaryDirectory(prefix="mutants-") as directory:
        places, took = copies(subject, pathlib.Path(directory), len(os.sched_getaffinity(0)))
        for mutation, survived in survivors(subject, chosen, places, max(_AT_LEAST, _TIMES * took)):
            print(
                f"{'SURVIVED' if survived else 'killed  '} {subject.path}:{mutation.line}: {mutation.after}",
                flush=True,
            )
            if survived:
                lived.append(mutation)
    for mutation in sorted(lived, key=lambda one: one.line):
        print("", *_diff(subject, mutation), sep="\n")
    share = 1 - len(lived) / len(chosen)
    print(
        f"\n{len(chosen) - len(lived)} of {len(chosen)} mutants killed ({share:.0%}); "
        f"the file has {len(found)} in all"
    )
    return share


def _diff(subject: Subject, mutation: mutations.Mutation) -> Iterator[str]:
    before, after = subject.source.splitlines(), mutation.source.splitlines()
    yield f"{subject.path}:{mutation.line}"
    yield from [line.rstrip() for line in difflib.unified_diff(before, after, n=1)][2:]


def main(arguments: Sequence[str]) -> int:
    """Try a sample; say whether enough of it was noticed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("file", nargs="?", default="")
    parser.add_argument("--sample", type=int, default=60, help="how many mistakes are tried")
    parser.add_argument("--seed", type=int, default=1, help="another number is another sample")
    options = parser.parse_args(arguments)
    try:
        return 0 if tried(subject_of(options.file), options.sample, options.seed) >= ENOUGH else 1
    except NothingTriedError as error:
        print(error, file=sys.stderr)
        return 2


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except KeyboardInterrupt:
        sys.exit(130)
