"""What can be wrong with an object that was written by hand."""

from addon_operator.kernel import errors


class MalformedObjectError(errors.AddonOperatorError):
    """An object is not of the form that the Kubernetes API takes; the text names the object and the field."""

    def __init__(self, subject: str, field: str, problem: str) -> None:
        super().__init__(f"{subject}: {field} {problem}" if field else f"{subject} {problem}")
        self.subject = subject
        """The object, as in ``container web``."""
        self.field = field
        """Path of the field in it, as in ``env[0].valueFrom``; empty for the object itself."""
