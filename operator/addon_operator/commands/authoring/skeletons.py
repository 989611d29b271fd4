"""Skeletons: files with marks in them, which become the files of a new module or hook."""

import contextlib
import pathlib
from collections.abc import Iterator, Mapping
from typing import Final

from addon_operator.kernel import errors

ROOT: Final = pathlib.Path(__file__).with_name("skeletons")
_DOT: Final = "dot."
"""Begins the names of files that are hidden where they are written: packaging leaves hidden ones out."""


def filled(directory: str, marks: Mapping[str, str]) -> Iterator[tuple[pathlib.PurePath, str]]:
    """Yield path and text of each file of a skeleton, with its marks replaced, as in ``__MODULE__``."""
    root = ROOT / directory
    for path in sorted(root.rglob("*")):
        if path.is_file():
            where = path.relative_to(root)
            name = f".{where.name.removeprefix(_DOT)}" if where.name.startswith(_DOT) else where.name
            yield pathlib.PurePath(fill(str(where.with_name(name)), marks)), read(path, marks)


def read(path: pathlib.Path, marks: Mapping[str, str]) -> str:
    """Return the text of one file of a skeleton with its marks replaced."""
    return fill(path.read_text("utf-8"), marks)


def fill(text: str, marks: Mapping[str, str]) -> str:
    """Return a text with its marks replaced."""
    for mark, value in marks.items():
        text = text.replace(f"__{mark}__", value)
    return text


@contextlib.contextmanager
def writing(path: pathlib.Path, refusal: type[errors.AddonOperatorError], more: str = "") -> Iterator[None]:
    """Raise a ``refusal`` that says which of the files at a path cannot be written, and why."""
    try:
        yield
    except OSError as error:
        raise refusal(f"{error.filename or path} cannot be written: {error.strerror}{more}") from None
