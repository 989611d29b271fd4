"""What can go wrong with charts, releases and Helm; every text carries the module's name."""

from addon_operator.kernel import errors


class ChartError(errors.ModuleError):
    """The module's chart cannot be read."""


class HelmError(errors.ModuleError):
    """Helm refused or failed; the text is Helm's own message, on one line."""

    is_old: bool = False
    """Whether that was so before, and nothing was tried."""
    is_final: bool = False
    """Whether the same chart and values are not tried again by themselves, as the text says."""

    def __init__(self, module: str, message: str, without_values: str | None = None) -> None:
        """``without_values`` is the message for places that show no values, if that is another one."""
        super().__init__(module, message)
        self._without_values = message if without_values is None else without_values

    @property
    def without_values(self) -> str:
        """The same without what Helm and the API server quote."""
        return f"module {self.module}: {self._without_values}"

    def because(self, cause: str) -> "HelmError":
        """Return the same error with its cause before it."""
        return type(self)(self.module, f"{cause}; {self.message}", f"{cause}; {self._without_values}")

    def followed_by(self, text: str) -> "HelmError":
        """Return the same error with something behind it."""
        return type(self)(self.module, f"{self.message}; {text}", f"{self._without_values}; {text}")


class HelmTimeoutError(HelmError):
    """Helm did not end in time and was stopped."""


class NotCalledError(HelmError):
    """Helm was not called: what it would go by, or make, is not as it has to be."""


class LeavingError(NotCalledError):
    """Objects that Helm is to make are being deleted, or another call of Helm moves them just now."""


def leaving_text(objects: str) -> str:
    """Say that these objects are being deleted; nothing if there are none."""
    return f"waits for finalizers: {objects}" if objects else ""


class RolledBackError(HelmError):
    """A revision failed and was taken back; the text says both."""

    reason = "RolledBack"
    """In one word, as conditions have it."""


class RollbackRefusedError(HelmError):
    """A revision failed and was not taken back; the text says why."""

    reason = "RollbackRefused"
    """In one word, as conditions have it."""


class ReleaseRecordError(errors.AddonOperatorError):
    """What the cluster has stored of a release cannot be understood."""


class ForeignRecordError(ReleaseRecordError):
    """What the cluster has stored of a release is not what this operator, or its Helm, has stored."""
