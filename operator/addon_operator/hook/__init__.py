"""A small library for hooks in Python: what a run is given as objects, what it gives back as methods.

A hook needs nothing but :func:`run`::

    #!/usr/bin/env python3
    from addon_operator import hook

    CONFIG = {"configVersion": "v1", "beforeHelm": 10}

    def main(run: hook.Run) -> None:
        default = 2 if run.values.get("global.highAvailability") else 1
        run.values.set("web.internal.replicas", run.values.get("web.replicas", default))

    if __name__ == "__main__":
        hook.run(CONFIG, main)

The contract stays what ``docs/reference/hooks.md`` says of files and variables; a hook may use both. The
library imports the standard library only, and quickly: every run of a hook is a new process.
"""

import sys

if sys.version_info < (3, 11):  # noqa: UP036 - a hook is run by whichever Python it names
    sys.exit(
        "Error: the library for hooks needs Python 3.11 or newer, and this is "
        f"{'.'.join(map(str, sys.version_info[:2]))}; name another one in the hook's first line"
    )

from addon_operator.hook.contexts import Context, Entry, Snapshots
from addon_operator.hook.conversions import convert
from addon_operator.hook.failures import HookError, MissingError
from addon_operator.hook.metrics import Metrics
from addon_operator.hook.objects import Kubernetes
from addon_operator.hook.running import Run, allow, deny, patch_object, run
from addon_operator.hook.values import Values

TYPE_CHECKING = False  # To import typing takes longer than the whole library.
if TYPE_CHECKING:
    from addon_operator.hook.aliases import Config, Main, Object, Path

__all__ = [
    "run",
    "convert",
    "Run",
    "deny",
    "allow",
    "patch_object",
    "Context",
    "Entry",
    "Snapshots",
    "Values",
    "Kubernetes",
    "Metrics",
    "HookError",
    "MissingError",
    "Config",
    "Main",
    "Object",
    "Path",
]


if not TYPE_CHECKING:  # Else every name would be right.

    def __getattr__(name: str) -> object:
        """Return a name for annotations, when a hook asks for it at run time."""
        if name in ("Config", "Main", "Object", "Path"):
            from addon_operator.hook import aliases

            return getattr(aliases, name)
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
