"""Children of tests: one launcher starts them all."""

import atexit
import functools

from addon_operator.process.children import children, launcher


def programs() -> children.Children:
    """Children without a fence."""
    return children.Children(_starter())


@functools.cache
def _starter() -> launcher.Launcher:
    starter = launcher.Launcher()
    atexit.register(starter.close)
    return starter
