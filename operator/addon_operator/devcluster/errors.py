"""Errors of the local control plane; each text is one sentence for the user."""

from addon_operator.kernel import errors


class DevClusterError(errors.AddonOperatorError):
    """The local control plane cannot do what was asked of it."""


class PinsError(DevClusterError):
    """The pinned versions cannot be read."""


class BuildError(DevClusterError):
    """A binary is at hand nowhere and cannot be built."""


class ChecksumError(DevClusterError):
    """A downloaded file is not what its publisher says it is."""


class ComponentError(DevClusterError):
    """A component of the control plane ended, or did not become ready in time."""

    def __init__(self, component: str, message: str) -> None:
        super().__init__(message)
        self.component = component
        """Its name, as in ``kube-apiserver``."""


class PortTakenError(ComponentError):
    """Another program took a port between its choice and its use; another try with other ports will do."""
