"""Reads the pinned versions of a component from its ``go.mod`` and ``go.sum``."""

import dataclasses
import hashlib
import pathlib
import re
from collections.abc import Mapping
from typing import Final

from addon_operator.devcluster import errors

_REQUIREMENT: Final = re.compile(
    r"^\s*(?:require\s+)?(?P<module>[^\s()]+)\s+(?P<version>v\d\S*)\s*(?://.*)?$", re.MULTILINE
)
_GO: Final = re.compile(r"^go (?P<major>\d+)\.(?P<minor>\d+)", re.MULTILINE)


@dataclasses.dataclass(frozen=True, slots=True)
class Pin:
    """What a component's folder says."""

    folder: pathlib.Path
    """Where its ``go.mod`` and ``go.sum`` are."""
    version: str
    """Version of the component's own module, as in ``v1.37.1``."""
    go: tuple[int, int]
    """The oldest Go that can build it, major and minor."""
    requirements: Mapping[str, str]
    """Version of every module it is built from."""
    digest: str
    """Changes whenever a pin changes: hexadecimal SHA-256 of both files."""

    @property
    def minor(self) -> str:
        """Major and minor version, as in ``1.37``."""
        return ".".join(self.version.removeprefix("v").split(".")[:2])


def read(folder: pathlib.Path, module: str) -> Pin:
    """The pins in a folder whose component is the Go module ``module``.

    Raises :class:`.PinsError` when a file is missing or does not pin it.
    """
    go_mod, go_sum = (_content(folder / name) for name in ("go.mod", "go.sum"))
    text = go_mod.decode("utf-8", errors="replace")
    requirements = {match["module"]: match["version"] for match in _REQUIREMENT.finditer(text)}
    go = _GO.search(text)
    if module not in requirements or go is None:
        raise errors.PinsError(
            f"{folder / 'go.mod'} does not pin {module} and a Go version; restore the file"
        )
    digest = hashlib.sha256(go_mod + b"\0" + go_sum).hexdigest()
    return Pin(folder, requirements[module], (int(go["major"]), int(go["minor"])), requirements, digest)


def _content(path: pathlib.Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise errors.PinsError(f"the pins in {path} cannot be read: {error.strerror}") from error
