"""What can go wrong with charts, releases and Helm; every text carries the module's name."""

from addon_operator.kernel import errors


class ChartError(errors.ModuleError):
    """The module's chart cannot be read."""


class HelmError(errors.ModuleError):
    """Helm refused or failed; the text is Helm's own message, on one line."""


class HelmTimeoutError(HelmError):
    """Helm did not end in time and was stopped."""


class ReleaseRecordError(errors.AddonOperatorError):
    """What the cluster has stored of a release cannot be understood."""
