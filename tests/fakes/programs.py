"""Children of tests: one launcher starts them all."""

import atexit
import functools

from addon_operator.kernel import fencing
from addon_operator.process.children import children, launcher


def programs(fence: fencing.Fence = fencing.OPEN) -> children.Children:
    """Children without a fence, or with that one."""
    return children.Children(_starter(), fence)


@functools.cache
def _starter() -> launcher.Launcher:
    starter = launcher.Launcher()
    atexit.register(starter.close)
    return starter
