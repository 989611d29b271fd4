"""Files that the operator reads by their name: whether they are there, and their text."""

import pathlib
from typing import Final

from addon_operator.helm.charts import plain_files
from addon_operator.kernel import errors

_SUFFIXES: Final = (".yaml", ".yml")


def is_there(path: pathlib.Path) -> bool:
    """Say whether there is such a file; a link that leads nowhere counts, as it is a mistake.

    Raises a :class:`.ConfigurationError` if there is none, but one whose name is written in another way,
    such as ``values.yml``: nobody would read it, and a module that it enables would be removed. So does what
    cannot be looked at: it may be there.
    """
    try:
        path.lstat()
    except (FileNotFoundError, NotADirectoryError):
        pass
    except OSError as error:
        raise _unreadable(path, error) from None
    else:
        return True
    for entry in _beside(path):
        if is_other_spelling(entry, path.name):
            raise errors.ConfigurationError(f"{entry} is not read; rename it to {path.name}")
    return False


def is_other_spelling(entry: pathlib.Path, name: str) -> bool:
    """Say whether it is a file of this name, but for capitals and ``.yml``."""
    is_alike = entry.stem.lower() == pathlib.PurePath(name).stem.lower()
    return is_alike and entry.suffix.lower() in _SUFFIXES and entry.is_file()


def _beside(path: pathlib.Path) -> list[pathlib.Path]:
    try:
        return sorted(path.parent.iterdir())
    except OSError:
        return []


def read_text(path: pathlib.Path, most: int = plain_files.MAX_FILE) -> str:
    """Read the text of a UTF-8 file with at most so many bytes.

    An unreadable one is a :class:`.ConfigurationError` that says why.
    """
    try:
        return plain_files.read_text(path, most)
    except OSError as error:
        raise _unreadable(path, error) from None
    except UnicodeDecodeError as error:
        raise errors.ConfigurationError(
            f"{path} is not UTF-8 text (byte {error.start}); save it as UTF-8"
        ) from None


def _unreadable(path: pathlib.Path, error: OSError) -> errors.ConfigurationError:
    return errors.ConfigurationError(f"{path.absolute()} cannot be read: {error.strerror}")


def text_if_there(path: pathlib.Path) -> str:
    """Return the text of a file; empty if there is none. Raises as :func:`is_there` and :func:`read_text`."""
    return read_text(path) if is_there(path) else ""
