"""The one error tree of the project.

Whatever a user can cause is an :class:`AddonOperatorError`: its text is one sentence that says what is
wrong, where, and what to do. The command line prints that text and never a traceback.
"""


class AddonOperatorError(Exception):
    """The root of all errors that are meant for a person."""

    @property
    def without_values(self) -> str:
        """The text for places where no values may be shown, such as status objects.

        An error that quotes the one that caused it quotes that without values, too.
        """
        text, cause = str(self), self.__cause__
        if isinstance(cause, AddonOperatorError) and str(cause):
            return text.replace(str(cause), cause.without_values)
        return text


def without_values(error: BaseException | str) -> str:
    """Return an error's text, or a text that is one, without values; of any other error, its class."""
    if isinstance(error, str):
        return error
    if isinstance(error, AddonOperatorError):
        return error.without_values
    return f"{type(error).__name__}; the operator's log says more"


class ConfigurationError(AddonOperatorError):
    """A setting, a file or an argument is wrong; raised before anything was changed."""


class ModuleError(AddonOperatorError):
    """Something is wrong with one module; ``module`` is its name."""

    def __init__(self, module: str, message: str) -> None:
        super().__init__(f"module {module}: {message}")
        self.module = module
        """Name of the module, kebab-case."""
        self.message = message
        """The text without the module's name."""
