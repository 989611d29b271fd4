"""Builds binaries with Go from their pins.

Go's caches of sources and compiled packages (several GB) are kept in one private directory while something is
built. An interrupted build finds there what it had compiled; after a complete one they are removed.
"""

import contextlib
import pathlib
import shutil
import types
from collections.abc import Mapping, Sequence
from typing import Final, Self

from addon_operator.devcluster import errors, locks, reporters
from addon_operator.devcluster.binaries import components, pins, toolchain
from addon_operator.process import commands

_COLLECTION: Final = {"GOGC": "off", "GOMEMLIMIT": "1536MiB"}
"""A compiler ends before collecting garbage pays; only the largest ones reach the limit."""
BUILD_FLAGS: Final = ("-trimpath", "-buildvcs=false", "-gcflags=all=-dwarf=false")
"""Flags that make a build the same wherever it happens, and leave out what the linker would strip anyway."""

_CACHES: Final = "go"
_KEEP_MARK: Final = "keep"
_MESSAGE: Final = "go: "
_DOWNLOAD: Final = "go: downloading "
_TO_COMPILE: Final = (
    "{{if and .Stale (ne .StaleReason `not installed but available in build cache`)}}{{.ImportPath}}{{end}}"
)


class GoBuilder:
    """Builds for as long as it is entered; leaving it without an error removes Go's caches."""

    def __init__(
        self,
        cache: pathlib.Path,
        environ: Mapping[str, str],
        reporter: reporters.Reporter,
        *,
        keep_caches: bool = False,
    ) -> None:
        self._caches = cache / _CACHES
        self._lock = cache / f"{_CACHES}.lock"
        self._logs = cache / "logs"
        self._environ = environ
        self._reporter = reporter
        self._keep = keep_caches
        self._session = contextlib.ExitStack()
        self._go: toolchain.Go | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: types.TracebackType | None
    ) -> None:
        self._session.close()
        if kind is None:
            self._remove_caches()

    def build(
        self,
        component: components.Component,
        pin: pins.Pin,
        wanted: Sequence[components.Binary],
        directory: pathlib.Path,
    ) -> None:
        """Build these binaries into ``directory``, in one call, so that what they share is compiled once.

        Raises :class:`.BuildError` when there is no Go, or it fails; its
        whole output is in the log that the error names.
        """
        go = self._toolchain(pin)
        subject = f"{component.name} {pin.version}"
        log = self._logs / f"{component.name}.log"
        packages = [binary.package for binary in wanted]
        flags = (*BUILD_FLAGS, "-ldflags", linker_flags(component, pin))
        try:
            with self._reporter.phase(subject, "downloading sources", "modules") as phase:
                total = self._count(go, phase, pin, packages)
                phase.expect("compiling", "packages", total)
                argv = [go.program, "build", "-v", *flags, "-o", f"{directory}/", *packages]
                commands.stream(argv, _GoOutput(phase, total).take, env=go.env, cwd=pin.folder)
        except commands.CommandError as error:
            raise _build_error(subject, error, log) from error
        for binary in wanted:
            (directory / binary.built_as).replace(directory / binary.name)

    def _toolchain(self, pin: pins.Pin) -> toolchain.Go:
        if self._go is None:
            self._logs.mkdir(parents=True, exist_ok=True)
            # Shared, so that builds of other components go on beside this one, but nobody removes the caches.
            self._session.enter_context(locks.shared(self._lock))
            self._caches.mkdir(exist_ok=True)
            if self._keep:
                (self._caches / _KEEP_MARK).touch()
            found = toolchain.find(self._environ, pin.go, self._caches / "toolchain", self._reporter)
            self._go = toolchain.Go(found.program, go_environment(found.env, self._caches))
        return self._go

    def _count(self, go: toolchain.Go, phase: reporters.Phase, pin: pins.Pin, packages: Sequence[str]) -> int:
        argv = [go.program, "list", "-deps", *BUILD_FLAGS, "-f", _TO_COMPILE, *packages]
        listed = commands.stream(argv, _Downloads(phase).take, env=go.env, cwd=pin.folder)
        return sum(1 for line in listed.stdout.splitlines() if line and not line.startswith(_MESSAGE))

    def _remove_caches(self) -> None:
        if self._keep or not self._caches.exists() or (self._caches / _KEEP_MARK).exists():
            return
        with locks.alone(self._lock) as is_alone:
            if is_alone:
                # Renamed first: caches that were removed in part would look whole to the next build.
                trash = self._caches.with_name(f"{_CACHES}.removed")
                shutil.rmtree(trash, ignore_errors=True)
                self._caches.replace(trash)
                shutil.rmtree(trash, ignore_errors=True)


class _Downloads:
    def __init__(self, phase: reporters.Phase) -> None:
        self._phase = phase

    def take(self, line: str) -> None:
        if line.startswith(_DOWNLOAD):
            self._phase.advance()


class _GoOutput:
    """Follows what ``go build -v`` writes: one line for each package that it compiles."""

    def __init__(self, phase: reporters.Phase, total: int) -> None:
        self._phase = phase
        self._left = total

    def take(self, line: str) -> None:
        if not is_package(line):
            return
        self._phase.advance()
        self._left -= 1
        if self._left <= 0:
            self._phase.describe("linking")


def is_package(line: str) -> bool:
    """Whether a line of ``go build -v`` is the name of a package, and no message."""
    return bool(line) and not line.startswith((_MESSAGE, "#")) and not set(line) & set(" \t:")


def linker_flags(component: components.Component, pin: pins.Pin) -> str:
    """What the linker is told: no debug information, and the component's version."""
    stamps = component.stamps(pin)
    return " ".join(["-s", "-w", *(f"-X {name}={value}" for name, value in sorted(stamps.items()))])


def go_environment(environ: Mapping[str, str], caches: pathlib.Path) -> dict[str, str]:
    """The user's environment with Go's caches in a place of their own and nothing that changes the outcome.

    ``GOPROXY``, ``GOFLAGS`` and the like are the user's; sources are writable, so that they can be removed.
    """
    own = {name: value for name, value in environ.items() if name not in {"GOOS", "GOARCH", "GOEXPERIMENT"}}
    return {
        **_COLLECTION,
        **own,
        "CGO_ENABLED": "0",
        "GOCACHE": str(caches / "build"),
        "GOFLAGS": f"{environ.get('GOFLAGS', '')} -modcacherw".strip(),
        "GOMODCACHE": str(caches / "mod"),
        "GOPATH": str(caches / "path"),
        "GOTOOLCHAIN": "local",
        "GOWORK": "off",
        "LC_ALL": "C",
    }


def _build_error(subject: str, error: commands.CommandError, log: pathlib.Path) -> errors.BuildError:
    text = error.stdout + error.stderr
    log.write_text(text, encoding="utf-8")
    said = [line for line in text.splitlines() if line.strip() and not is_package(line)]
    reason = next((line for line in reversed(said) if not line.startswith(_DOWNLOAD)), str(error))
    full = f"the whole output is in {log}"
    if "no space left on device" in text:
        return errors.BuildError(f"{subject} cannot be built: the disk is full; free about 8 GB ({full})")
    return errors.BuildError(f"{subject} cannot be built: {reason.strip()}; {full}")
