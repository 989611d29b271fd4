"""What can be wrong with an object that was written by hand, or with what its references make of it."""

from typing import Final

from addon_operator.kernel import errors

EXPANDED_MAX: Final = 8 << 20
"""Most characters that references may make of one text, and of a container's environment, command and args.

Linux starts no process with more than 6 MiB of both. A few references to references would make gigabytes.
"""


class MalformedObjectError(errors.AddonOperatorError):
    """An object is not of the form that the Kubernetes API takes; the text names the object and the field."""

    def __init__(self, subject: str, field: str, problem: str) -> None:
        super().__init__(f"{subject}: {field} {problem}" if field else f"{subject} {problem}")
        self.subject = subject
        """The object, as in ``container web``."""
        self.field = field
        """Path of the field in it, as in ``env[0].valueFrom``; empty for the object itself."""


class ExpansionSizeError(errors.AddonOperatorError):
    """References make more text than a process can be given; raised before that text is made."""

    def __init__(self, subject: str, limit: int) -> None:
        super().__init__(
            f"{subject} would have more than {limit} characters: let fewer variables refer to long ones"
        )
        self.subject = subject
        """What is too long, as in ``container web: the environment with command and args``."""
        self.limit = limit
        """How many characters are allowed."""
