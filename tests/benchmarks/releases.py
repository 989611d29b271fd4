"""What the operator does in an upgrade besides Helm's calls, and what of that keeps data, and records, safe.

All are parts of the same runs, so that a machine that becomes busy slows all.
"""

import asyncio
import contextlib
import functools
import pathlib
import statistics
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from typing import Any, Final
from unittest import mock

from typing_extensions import override

from addon_operator.helm import command
from addon_operator.helm.releases import release_calls, release_run
from addon_operator.process.children import children
from tests.benchmarks import measures, surroundings
from tests.integration import helm_site

_UPGRADES: Final = 20
_AIM: Final = 0.1
_OBJECTS: Final = 20
_NO_ENVIRONMENT: Final[Mapping[str, str]] = {}
_KEEPING: Final[Mapping[type, Sequence[str]]] = {
    release_calls.ReleaseCalls: ("begin", "check_again", "end"),
    release_run.ReleaseRun: (
        "_read_tries", "_begin", "_keep_live", "_look_after_tries", "_set_aside", "_leave_out", "_keep",
        "_tidy_up",
    ),
}  # fmt: skip
"""What an upgrade does for the memory, and for what leaves, moves, was there before, or is left over."""


class _Timed(command.Helm):
    """Adds up the seconds of its processes."""

    spent: Final[list[float]] = []

    @override
    async def run(
        self,
        call: command.Call,
        arguments: Sequence[str],
        timeout: float,
        capture_stdout: int | None = None,
        environ: Mapping[str, str] = _NO_ENVIRONMENT,
    ) -> children.ChildResult:
        began = time.perf_counter()
        try:
            return await super().run(call, arguments, timeout, capture_stdout, environ)
        finally:
            self.spent.append(time.perf_counter() - began)


class _Keeping:
    """Adds up the seconds of what keeps data and records safe, without the calls of Helm in it."""

    def __init__(self) -> None:
        self.spent = 0.0
        self._depth = 0

    def measured(self, work: Callable[..., Awaitable[Any]]) -> Callable[..., Awaitable[Any]]:
        """Return the same work; what it calls of the same kind is part of it."""

        @functools.wraps(work)
        async def measure(*given: object, **named: object) -> object:
            began, helm = time.perf_counter(), sum(_Timed.spent)
            self._depth += 1
            try:
                return await work(*given, **named)
            finally:
                self._depth -= 1
                if not self._depth:
                    self.spent += time.perf_counter() - began - (sum(_Timed.spent) - helm)

        return measure


@contextlib.contextmanager
def _keeping() -> Iterator[_Keeping]:
    found = _Keeping()
    with contextlib.ExitStack() as stack:
        for owner, names in _KEEPING.items():
            for name in names:
                work = found.measured(getattr(owner, name))
                stack.enter_context(mock.patch.object(owner, name, work))
        yield found


def run() -> list[measures.Row]:
    """Upgrade one release again and again; takes about a quarter of a minute."""
    with surroundings.control_plane() as cluster, tempfile.TemporaryDirectory() as root:
        site = helm_site.Site(cluster, cluster.helm, cluster.namespace("bench"), pathlib.Path(root))
        site.helm, site.helm_class = cluster.helm, _Timed
        site.write("Chart.yaml", "apiVersion: v2\nname: web\nversion: 0.0.1\n")
        for number in range(_OBJECTS):
            text = helm_site.CONFIG.replace("{{ .Release.Name }}", f"web-{number}")
            site.write(f"templates/{number}.yaml", text)
        measured = asyncio.run(_upgrades(site))
    own, keeping, helm = (1000 * statistics.median(seconds) for seconds in measured)
    case, aim = f"upgrade of a release with {_OBJECTS} objects", f"<= {_AIM:g} baselines"
    told = {"ms besides Helm's calls, p50": own, "ms that keep data and records safe, p50": keeping}
    return [
        measures.Row("releases", case, what, ours, "Helm's calls in it", helm, aim, ours <= _AIM * helm)
        for what, ours in told.items()
    ]


async def _upgrades(site: helm_site.Site) -> tuple[list[float], list[float], list[float]]:
    """Return the seconds of each upgrade without Helm, what of them keeps data safe, and those of Helm."""
    own, kept, helm = [], [], []
    async with site.manager() as manager:
        await manager.ensure(site.asked(0))
        with _keeping() as keeping:
            for size in range(1, _UPGRADES + 1):
                _Timed.spent.clear()
                keeping.spent, began = 0.0, time.perf_counter()
                await manager.ensure(site.asked(size))
                helm.append(sum(_Timed.spent))
                own.append(time.perf_counter() - began - helm[-1])
                kept.append(keeping.spent)
    return own, kept, helm
