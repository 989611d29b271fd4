"""The one error tree of the project.

Whatever a user can cause is an :class:`AddonOperatorError`: its text is one sentence that says what is
wrong, where, and what to do. The command line prints that text and never a traceback.
"""


def writable(text: str) -> str:
    """Return a text that can be written anywhere: names of files may be no text at all."""
    return text if text.isascii() else text.encode("utf-8", "backslashreplace").decode()


class AddonOperatorError(Exception):
    """The root of all errors that are meant for a person."""

    def __str__(self) -> str:
        return writable(super().__str__())

    @property
    def without_values(self) -> str:
        """The text for places where no values may be shown, such as status objects.

        An error that quotes the one that caused it quotes that without values, too.
        """
        text, cause = str(self), self.__cause__
        if isinstance(cause, AddonOperatorError) and str(cause):
            return text.replace(str(cause), cause.without_values)
        return text

    @property
    def line(self) -> str:
        """The text as one line, for where there is no terminal."""
        return str(self)


def without_values(error: BaseException | str) -> str:
    """Return an error's text, or a text that is one, without values; of any other error, its class."""
    if isinstance(error, str):
        return error
    if isinstance(error, AddonOperatorError):
        return error.without_values
    return f"{type(error).__name__}; the operator's log says more"


class ConfigurationError(AddonOperatorError):
    """A setting, a file or an argument is wrong; raised before anything was changed."""

    @property
    def mistakes(self) -> tuple[str, ...]:
        """All that is wrong, one sentence each."""
        return (str(self),)


class MistakesError(ConfigurationError):
    """Several things are wrong with one file; made from one sentence for each."""

    @property
    def mistakes(self) -> tuple[str, ...]:
        """The sentences."""
        return tuple(writable(str(each)) for each in self.args)

    def __str__(self) -> str:
        return "; ".join(self.mistakes)


class ModuleError(AddonOperatorError):
    """Something is wrong with one module; ``module`` is its name."""

    def __init__(self, module: str, message: str) -> None:
        super().__init__(f"module {module}: {message}")
        self.module = module
        """Name of the module, kebab-case."""
        self.message = writable(message)
        """The text without the module's name."""


def of_module(text: str, module: str) -> str:
    """Return a text about a module for a place that names the module already."""
    return text.removeprefix(f"module {module}: ")


def told(error: Exception, subject: str) -> AddonOperatorError:
    """Return an error as one that is meant for a person; ``subject`` is what was done, as in ``reading web``.

    A file that cannot be read is a mistake of the user's; whatever else is unexpected is a defect of ours,
    and the caller logs it with its traceback: :func:`is_defect`.
    """
    if isinstance(error, AddonOperatorError):
        return error
    if isinstance(error, OSError) and error.filename is not None:
        return ConfigurationError(f"{error.filename} cannot be read: {error.strerror}; correct or remove it")
    if isinstance(error, RecursionError):
        return ConfigurationError(f"{subject} failed: something in it nests too deep; make it flatter")
    if isinstance(error, MemoryError):
        return ConfigurationError(f"{subject} failed: it takes too much memory; make it smaller")
    return ConfigurationError(
        f"{subject} failed because of a defect of the operator ({type(error).__name__}); something unusual "
        "in it is the cause: take that out, and report the defect"
    )


def is_defect(error: Exception) -> bool:
    """Say whether an error is none that a user's mistake explains."""
    expected = isinstance(error, AddonOperatorError | RecursionError | MemoryError)
    return not (expected or (isinstance(error, OSError) and error.filename is not None))
