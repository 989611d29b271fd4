"""The cluster as one operator sees it: all of its parts share the kinds, the watches and what was deleted."""

from collections.abc import Mapping

from addon_operator.aio import waiting
from addon_operator.kube.client import client
from addon_operator.kube.discovery import discovery, presence
from addon_operator.kube.informers import informers, projections, reflector
from addon_operator.kube.objects import crds, object_patches, own_deletions


class Cluster:
    """Makes what reads and writes objects, so that one part learns what another did."""

    def __init__(
        self,
        kube: client.KubeClient,
        kinds: discovery.Catalog,
        namespace: str,
        time: waiting.Time,
        failed: reflector.OnFailure,
    ) -> None:
        """``namespace`` is the operator's; ``failed`` is called for each list or watch that fails."""
        self.kube = kube
        self.namespace = namespace
        self.kinds = kinds
        self.watches = informers.Informers(kube, self.kinds, time, failed)
        self.deletions = own_deletions.OwnDeletions()
        self.probe = presence.ObjectProbe(kube)
        self._time = time

    def object_patcher(self, jq: projections.JqRunner) -> object_patches.ObjectPatcher:
        """Make what carries out the operations of hooks."""
        return object_patches.ObjectPatcher(self.kube, self.kinds, self.deletions, jq, self._time)

    def crd_installer(self, labels: Mapping[str, str]) -> crds.CrdInstaller:
        """Make what applies the definitions of modules; each gets ``labels``."""
        return crds.CrdInstaller(self.kube, self.kinds, labels, self._time)
