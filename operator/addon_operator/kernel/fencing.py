"""Fences: what keeps a replica that no longer leads from changing anything.

Everything with an effect outside the process asks its fence right before it acts: writes to the API server
and starts of children.
"""

import math
from typing import Final

from addon_operator.kernel import errors


class FencedError(errors.AddonOperatorError):
    """Something was to be done by a replica that does not lead, or no longer."""


class Fence:
    """Says whether this process may act: always, unless a subclass knows of a Lease."""

    def check(self) -> None:
        """Return if the process may act now; raises :class:`FencedError` otherwise."""

    def remaining(self) -> float:
        """Return seconds for which it may act without asking again: 0 for never, infinite without limit."""
        return math.inf


OPEN: Final = Fence()
"""That of an operator that is the only one."""
