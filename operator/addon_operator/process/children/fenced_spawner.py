"""A spawner that starts nothing once its fence says no."""

import pathlib
from collections.abc import Mapping, Sequence

from addon_operator.kernel import fencing
from addon_operator.process.children import spawning


class FencedSpawner:
    """Implements :class:`.Spawner`."""

    def __init__(self, spawner: spawning.Spawner, fence: fencing.Fence) -> None:
        self._spawner = spawner
        self._fence = fence

    def start(
        self,
        argv: Sequence[str],
        *,
        env: Mapping[str, str],
        cwd: pathlib.Path | None,
        stdout: int,
        stderr: int,
    ) -> int:
        """Start a program; raises :class:`.fencing.FencedError` if that is not allowed."""
        self._fence.check()
        return self._spawner.start(argv, env=env, cwd=cwd, stdout=stdout, stderr=stderr)

    def reap(self, pid: int) -> spawning.Exit:
        """Take the exit of a process; see :class:`.Spawner`."""
        return self._spawner.reap(pid)
