"""What people can be told of modules: one table of its kinds, with the words of messages.

Those that a finding begins and ends stand with :mod:`.findings`; here are those of runs.
"""

import dataclasses
from typing import Final


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class NewsKind:
    """Something that can be told of a module."""

    key: str
    """What it is called in ``notify.yaml``."""
    began: str = ""
    """What stands behind the name of the module when it began."""
    over: str = ""
    """What stands there when it is over; empty if it never is."""
    no_longer: str = ""
    """What stands there when it is over because the module is off; empty if that is the same."""
    since: str = ""
    """What stands before the time at which it began."""
    follows: str = ""
    """What follows, if the module does not say that itself."""
    command: str = "describe"
    """Which command of ``module`` says more."""
    is_usual: bool = False
    """Whether targets are told that do not say what they want."""

    def __str__(self) -> str:
        return self.key


FAILED: Final = NewsKind(
    key="failed",
    began="failed",
    over="works again",
    no_longer="no longer fails",
    since="It has failed since",
    is_usual=True,
)
ROLLED_BACK: Final = dataclasses.replace(
    FAILED,
    key="rolledBack",
    began="was rolled back",
    since="The upgrade failed, and the release went back to the last revision that worked, at",
)
UPGRADED: Final = NewsKind(key="upgraded", began="was upgraded", since="It was upgraded at")
RECOVERED: Final = NewsKind(key="recovered", is_usual=True)
"""That something else is over."""
