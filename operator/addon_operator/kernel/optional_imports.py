"""Importing a library without what it takes along only because it is installed, too."""

import contextlib
import gc
import importlib
import sys
from collections.abc import Iterator, Mapping
from typing import Final

_TAKEN_ALONG: Final[Mapping[str, tuple[str, ...]]] = {
    # For handlers that hand it objects of these clients: a third of a second, and 15 MiB for ever.
    "kopf": ("kubernetes", "kubernetes_asyncio", "pykube"),
    # For tracebacks in colors, which no log of ours has.
    "structlog": ("better_exceptions", "rich"),
}
"""What libraries import only because it is installed, and what we have no use for there."""


@contextlib.contextmanager
def without(*names: str) -> Iterator[None]:
    """Make imports of these packages fail while this lasts, as if they were not installed.

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


@contextlib.contextmanager
def quick_imports() -> Iterator[None]:
    """Import the operator's parts in here: a third faster, and without what nothing uses.

    The garbage collector finds nothing in modules that are being imported, and looks again and again; what
    they are made of stays for the life of the process, so that it need not look at it later either.
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        for library, others in _TAKEN_ALONG.items():
            with without(*others):
                importlib.import_module(library)
        yield
    finally:
        gc.freeze()
        if was_enabled:
            gc.enable()
