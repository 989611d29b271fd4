"""Where the files of one cluster are, and how clusters are named."""

import dataclasses
import pathlib
from typing import Final, NewType

from addon_operator.devcluster import errors
from addon_operator.kernel import object_names

ClusterName = NewType("ClusterName", str)
"""Name of a cluster: lower-case letters, digits and dashes."""

DEFAULT_NAME: Final = ClusterName("default")


def parse_name(text: str) -> ClusterName:
    """Check what a user calls a cluster.

    Raises :class:`.DevClusterError` when it cannot be a name.
    """
    if not object_names.is_dns_label(text):
        raise errors.DevClusterError(
            f"{text!r} cannot be the name of a cluster; use at most 63 lower-case letters, digits and "
            "dashes, with a letter or digit at both ends"
        )
    return ClusterName(text)


@dataclasses.dataclass(frozen=True, slots=True)
class Layout:
    """Paths in a cluster's directory."""

    root: pathlib.Path
    """The directory; nothing of the cluster is outside it, but for kubeconfigs that were asked for."""

    @property
    def name(self) -> ClusterName:
        """The cluster's name."""
        return ClusterName(self.root.name)

    @property
    def state(self) -> pathlib.Path:
        """What is known about the cluster's processes."""
        return self.root / "state.json"

    @property
    def kubeconfig(self) -> pathlib.Path:
        """Kubeconfig of the administrator."""
        return self.root / "kubeconfig"

    @property
    def pki(self) -> pathlib.Path:
        """Certificates and keys."""
        return self.root / "pki"

    @property
    def kubeconfigs(self) -> pathlib.Path:
        """Kubeconfigs of the components."""
        return self.root / "kubeconfigs"

    @property
    def logs(self) -> pathlib.Path:
        """One log per component."""
        return self.root / "logs"

    @property
    def etcd(self) -> pathlib.Path:
        """All objects of the cluster."""
        return self.root / "etcd"

    @property
    def stages(self) -> pathlib.Path:
        """What kwok makes of nodes and pods."""
        return self.root / "stages.yaml"

    @property
    def bin(self) -> pathlib.Path:
        """Links to the binaries that fit this cluster; for ``PATH`` and ``KUBEBUILDER_ASSETS``."""
        return self.root / "bin"

    def log(self, component: str) -> pathlib.Path:
        """The log of a component."""
        return self.logs / f"{component}.log"

    def certificate(self, file: str) -> pathlib.Path:
        """A certificate of the directory ``pki``."""
        return self.pki / f"{file}.crt"

    def key(self, file: str) -> pathlib.Path:
        """A private key of the directory ``pki``."""
        return self.pki / f"{file}.key"

    def make(self) -> None:
        """Make the directories that a cluster needs (mode 0700)."""
        for directory in (self.pki, self.kubeconfigs, self.logs, self.etcd, self.bin):
            directory.mkdir(mode=0o700, exist_ok=True)
