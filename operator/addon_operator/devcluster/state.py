"""What is written down about a cluster, so that later commands find its processes."""

import dataclasses
import pathlib
from collections.abc import Mapping
from typing import Literal

import msgspec

from addon_operator.devcluster.controlplane import certificates, controlplane
from addon_operator.process import daemons


@dataclasses.dataclass(frozen=True, slots=True)
class StartedProgram:
    """A program of the cluster that was started."""

    process: daemons.ProcessIdentity
    argv: tuple[str, ...]
    """With which it can be started again."""


@dataclasses.dataclass(frozen=True, slots=True)
class ClusterState:
    """One cluster as its last ``up`` left it."""

    version: str
    """Of Kubernetes, as in ``v1.37.1``."""
    phase: Literal["starting", "ready"]
    """``starting`` until everything was seen to work; if it stays so, ``up`` was interrupted."""
    port: int
    """Of the API server, on loopback."""
    components: Mapping[str, StartedProgram] = dataclasses.field(default_factory=dict)
    exports: tuple[str, ...] = ()
    """Kubeconfigs outside the cluster's directory."""
    format: Literal[2] = 2
    """Raised when an older version would misread what is written."""

    @property
    def url(self) -> str:
        """Where the API server answers."""
        return f"https://{controlplane.LOOPBACK}:{self.port}"

    def with_component(self, name: str, component: StartedProgram) -> "ClusterState":
        """Return the same with that program started."""
        return dataclasses.replace(self, components={**self.components, name: component})


def save(path: pathlib.Path, state: ClusterState) -> None:
    """Write the state, whole or not at all."""
    certificates.write_private(path, msgspec.json.format(msgspec.json.encode(state)))


def load(path: pathlib.Path) -> ClusterState | None:
    """Read the state; ``None`` when there is none that this version understands."""
    try:
        return msgspec.json.decode(path.read_bytes(), type=ClusterState)
    except (OSError, msgspec.MsgspecError):
        return None
