"""Where the local control plane keeps its things on a machine.

The cache holds binaries and is shared by all checkouts; the state directory holds one directory per cluster.
Both follow the XDG base directory specification.
"""

import pathlib
from collections.abc import Mapping
from typing import Final

import msgspec

from addon_operator.devcluster import errors

CACHE_VARIABLE: Final = "ADDON_OPERATOR_DEVCLUSTER_CACHE"
"""Environment variable that names another directory for binaries."""
STATE_VARIABLE: Final = "ADDON_OPERATOR_DEVCLUSTER_STATE"
"""Environment variable that names another directory for clusters."""

_SUBDIRECTORY: Final = pathlib.Path("addon-operator", "devcluster")


class Locations(msgspec.Struct, frozen=True):
    """The three directories that everything else is found in."""

    pins: pathlib.Path
    """Holds one folder per component with its ``go.mod`` and ``go.sum``; never written to."""
    cache: pathlib.Path
    """Binaries, locks, and Go's caches while something is built."""
    state: pathlib.Path
    """One directory per cluster."""


def locate(environ: Mapping[str, str]) -> Locations:
    """Return the directories that the environment asks for; none is created.

    Raises :class:`.PinsError` when neither the package nor a checkout has
    pins.
    """
    return Locations(
        pins=_pins(pathlib.Path(__file__).resolve().parent),
        cache=_directory(environ, CACHE_VARIABLE, "XDG_CACHE_HOME", ".cache"),
        state=_directory(environ, STATE_VARIABLE, "XDG_STATE_HOME", ".local/state"),
    )


def create_private(directory: pathlib.Path, variable: str) -> None:
    """Make a directory (mode 0700) with its parents.

    Raises :class:`.DevClusterError` when that cannot be; ``variable`` is
    what the user can set to have another one.
    """
    try:
        directory.parent.mkdir(parents=True, exist_ok=True)
        directory.mkdir(mode=0o700, exist_ok=True)
    except OSError as error:
        raise errors.DevClusterError(
            f"the directory {directory} cannot be made ({error.strerror}); set {variable} to one that can"
        ) from error


def _pins(package: pathlib.Path) -> pathlib.Path:
    candidates = [package / "pins", *(parent / "deploy/devcluster" for parent in package.parents[2:3])]
    for candidate in candidates:
        if candidate.is_dir():
            return candidate
    looked = " nor ".join(str(candidate) for candidate in candidates)
    raise errors.PinsError(
        f"the pinned versions of the control plane are neither in {looked}; reinstall the package"
    )


def _directory(environ: Mapping[str, str], variable: str, xdg: str, fallback: str) -> pathlib.Path:
    own = environ.get(variable)
    if own:
        return _expanded(own).absolute()
    base = pathlib.Path(environ.get(xdg, ""))
    # The specification says that a relative path in such a variable is to be ignored.
    return (base if base.is_absolute() else _expanded("~") / fallback) / _SUBDIRECTORY


def _expanded(path: str) -> pathlib.Path:
    """Return the path with the home directory in place of ``~``; ``/`` for a user without one."""
    try:
        return pathlib.Path(path).expanduser()
    except RuntimeError:
        return pathlib.Path("/", path.removeprefix("~").lstrip("/"))
