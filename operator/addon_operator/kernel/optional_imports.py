"""Importing a library without what it takes along only because it is installed, too."""

import contextlib
import sys
from collections.abc import Iterator


@contextlib.contextmanager
def without(*names: str) -> Iterator[None]:
    """While this lasts, importing these packages fails as if they were not installed.

    For libraries that import others if they are there, to serve those who use both. What is imported already
    stays. Source: "The module cache" of the Python language reference: ``None`` in ``sys.modules``.
    """
    hidden = [name for name in names if name not in sys.modules]
    for name in hidden:
        sys.modules[name] = None  # type: ignore[assignment]  # documented, but not in the stub
    try:
        yield
    finally:
        for name in hidden:
            del sys.modules[name]
