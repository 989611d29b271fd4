"""The ``helm`` binary: where it is and which version it has.

Source: "Helm settings" of the addon-operator documentation (``HELM_BIN_PATH``, else ``PATH``; the version is
detected by running it).
"""

import os
import pathlib
import re
import shutil
from collections.abc import Mapping
from typing import Final

import msgspec

from addon_operator.kernel import errors
from addon_operator.process.children import children

OLDEST: Final = (3, 17)
"""The first version that knows ``--take-ownership``."""
FIRST_UNKNOWN_MAJOR: Final = 5

_DETECTION_SECONDS: Final = 60.0
_OUTPUT_BYTES: Final = 4096
_VERSION = re.compile(r"^v?(?P<major>[0-9]+)\.(?P<minor>[0-9]++)\S*$")
_DANGEROUS = re.compile(r"v?4\.(?:0(?:\.\S*)?|1\.0(?:[-+]\S*)?)")
_WHAT_TO_DO: Final = "install Helm 3.17 or newer (Helm 4 is fine), or set HELM_BIN_PATH to such a binary"


class HelmBinaryError(errors.ConfigurationError):
    """There is no ``helm`` that the operator can work with."""


class HelmBinary(msgspec.Struct, frozen=True):
    """A ``helm`` that was run once to learn its version."""

    path: pathlib.Path
    version: str
    """As Helm says it, for example ``v3.19.0``."""
    major: int
    minor: int

    @property
    def danger(self) -> str:
        """What this version is known to do to objects, as a sentence; empty for all others."""
        if _DANGEROUS.fullmatch(self.version):
            return (
                f"{self.path} is Helm {self.version}, which deletes an object whose apiVersion changes in an "
                "upgrade, instead of keeping it; install Helm 4.1.1 or newer, or Helm 3"
            )
        return ""


async def find(configured: str | None, environ: Mapping[str, str], programs: children.Children) -> HelmBinary:
    """Find the binary (``configured`` is ``HELM_BIN_PATH``) and learn its version by running it.

    Raises :class:`HelmBinaryError` when it is missing, cannot be run, or has a version that is not served.
    """
    path = _locate(configured, environ)
    version = await _detect(path, environ, programs)
    match = _VERSION.match(version)
    if match is None:
        raise HelmBinaryError(
            f"{path} is not Helm: 'helm version' printed {version[:80]!r} instead of a version; {_WHAT_TO_DO}"
        )
    helm = HelmBinary(path, version, int(match["major"]), int(match["minor"]))
    _check_version(helm)
    return helm


def _locate(configured: str | None, environ: Mapping[str, str]) -> pathlib.Path:
    found = shutil.which(configured or "helm", path=environ.get("PATH", os.defpath))
    if found is not None:
        return pathlib.Path(found).absolute()
    if not configured:
        raise HelmBinaryError(f"there is no 'helm' in PATH; {_WHAT_TO_DO}")
    path = pathlib.Path(configured)
    what = "is a directory" if path.is_dir() else "is not executable" if path.exists() else "does not exist"
    raise HelmBinaryError(f"HELM_BIN_PATH names {configured}, which {what}; {_WHAT_TO_DO}")


async def _detect(path: pathlib.Path, environ: Mapping[str, str], programs: children.Children) -> str:
    argv: list[str | pathlib.Path] = [path, "version", "--template", "{{.Version}}"]
    try:
        result = await programs.run(
            argv,
            env=environ,
            timeout=_DETECTION_SECONDS,
            capture_stdout=_OUTPUT_BYTES,
        )
    except children.ChildStartError as error:
        raise HelmBinaryError(f"{error}; {_WHAT_TO_DO}") from error
    if result.timed_out:
        raise HelmBinaryError(
            f"'{path} version' did not end within {_DETECTION_SECONDS:.0f} s; {_WHAT_TO_DO}"
        )
    if result.exit_code != 0:
        said = " ".join(result.stderr_tail.split())[-200:] or "no message"
        raise HelmBinaryError(f"'{path} version' failed with code {result.exit_code} ({said}); {_WHAT_TO_DO}")
    return (result.stdout or b"").decode(errors="replace").strip()


def _check_version(helm: HelmBinary) -> None:
    if (helm.major, helm.minor) < OLDEST:
        raise HelmBinaryError(f"{helm.path} is Helm {helm.version}, which is too old; {_WHAT_TO_DO}")
    if helm.major >= FIRST_UNKNOWN_MAJOR:
        raise HelmBinaryError(
            f"{helm.path} is Helm {helm.version}, which this operator does not know yet; {_WHAT_TO_DO}"
        )
