"""Where the files of one cluster are, and how clusters are named."""

import pathlib
from typing import Final, NewType

from addon_operator.devcluster import errors
from addon_operator.kernel import names

ClusterName = NewType("ClusterName", str)
"""Name of a cluster: lower-case letters, digits and dashes."""

ETCD_SOCKET: Final = "etcd.sock"
"""Where etcd listens, in the cluster's directory."""
DEFAULT_NAME: Final = ClusterName("default")


def parse_name(text: str) -> ClusterName:
    """Check what a user calls a cluster.

    Raises :class:`.DevClusterError` when it cannot be a name.
    """
    if not names.is_dns_label(text):
        raise errors.DevClusterError(
            f"{text!r} cannot be the name of a cluster; use at most 63 lower-case letters, digits and "
            "dashes, with a letter or digit at both ends"
        )
    return ClusterName(text)


class Layout:
    """Paths in a cluster's directory."""

    def __init__(self, root: pathlib.Path) -> None:
        self.root = root
        """The directory; nothing of the cluster is outside it, but for kubeconfigs that were asked for."""
        self.name = ClusterName(root.name)
        """The cluster's name."""
        self.state = root / "state.json"
        """What is known about the cluster's processes."""
        self.kubeconfig = root / "kubeconfig"
        """Kubeconfig of the administrator."""
        self.pki = root / "pki"
        """Certificates and keys."""
        self.kubeconfigs = root / "kubeconfigs"
        """Kubeconfigs of the components."""
        self.logs = root / "logs"
        """One log per component."""
        self.etcd = root / "etcd"
        """All objects of the cluster."""
        self.stages = root / "stages.yaml"
        """What kwok makes of nodes and pods."""
        self.bin = root / "bin"
        """Links to the binaries that fit this cluster; for ``PATH`` and ``KUBEBUILDER_ASSETS``."""

    def log(self, component: str) -> pathlib.Path:
        """Return the log of a component."""
        return self.logs / f"{component}.log"

    def certificate(self, file: str) -> pathlib.Path:
        """Return a certificate of the directory ``pki``."""
        return self.pki / f"{file}.crt"

    def key(self, file: str) -> pathlib.Path:
        """Return a private key of the directory ``pki``."""
        return self.pki / f"{file}.key"

    def make(self) -> None:
        """Make the directories that a cluster needs (mode 0700)."""
        for directory in (self.pki, self.kubeconfigs, self.logs, self.etcd, self.bin):
            directory.mkdir(mode=0o700, exist_ok=True)
