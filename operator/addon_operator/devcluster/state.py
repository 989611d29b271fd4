"""What is written down about a cluster, so that later commands find its processes."""

import dataclasses
import json
import pathlib
from collections.abc import Mapping
from typing import Any, Final, Literal

from addon_operator.devcluster.controlplane import certificates, controlplane
from addon_operator.process import daemons

Phase = Literal["starting", "ready"]

_FORMAT: Final = 1


@dataclasses.dataclass(frozen=True, slots=True)
class Component:
    """A program of the cluster that was started."""

    process: daemons.ProcessIdentity
    argv: tuple[str, ...]
    """With which it can be started again."""


@dataclasses.dataclass(frozen=True, slots=True)
class ClusterState:
    """One cluster as its last ``up`` left it."""

    version: str
    """Of Kubernetes, as in ``v1.37.1``."""
    phase: Phase
    """``starting`` until everything was seen to work; if it stays so, ``up`` was interrupted."""
    ports: controlplane.Ports
    components: Mapping[str, Component] = dataclasses.field(default_factory=dict)
    exports: tuple[str, ...] = ()
    """Kubeconfigs outside the cluster's directory."""

    def with_component(self, name: str, component: Component) -> "ClusterState":
        """The same with that program started."""
        return dataclasses.replace(self, components={**self.components, name: component})


def save(path: pathlib.Path, state: ClusterState) -> None:
    """Write the state, whole or not at all."""
    document = {"format": _FORMAT, **dataclasses.asdict(state)}
    certificates.write_private(path, json.dumps(document, indent=2).encode())


def load(path: pathlib.Path) -> ClusterState | None:
    """Read the state; ``None`` when there is none that this version understands."""
    try:
        document = json.loads(path.read_bytes())
        if document["format"] != _FORMAT:
            return None
        return _decode(document)
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None


def _decode(document: Mapping[str, Any]) -> ClusterState:
    return ClusterState(
        version=str(document["version"]),
        phase="ready" if document["phase"] == "ready" else "starting",
        ports=controlplane.Ports(**document["ports"]),
        components={name: _component(raw) for name, raw in document["components"].items()},
        exports=tuple(document["exports"]),
    )


def _component(raw: Mapping[str, Any]) -> Component:
    return Component(daemons.ProcessIdentity(**raw["process"]), tuple(raw["argv"]))
