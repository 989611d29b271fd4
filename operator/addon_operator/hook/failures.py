"""What goes wrong in a hook, in one sentence each."""

from addon_operator.kernel import errors


class HookError(errors.AddonOperatorError):
    """A hook cannot do its work; raise it in a hook to fail with exactly this text."""


class MissingError(HookError, KeyError):
    """There is nothing at a path of the values, or no snapshot of a name."""

    def __str__(self) -> str:
        # KeyError would show the text with quotes around it.
        return str(self.args[0])
