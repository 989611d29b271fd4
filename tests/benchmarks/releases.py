"""What the operator does in an upgrade besides the calls of Helm: what keeps data, and records, safe.

Both are parts of the same runs, so that a machine that becomes busy slows both.
"""

import asyncio
import pathlib
import statistics
import tempfile
import time
from collections.abc import Mapping, Sequence
from typing import Final

from typing_extensions import override

from addon_operator.helm import command
from addon_operator.process.children import children
from tests.benchmarks import measures, surroundings
from tests.integration import helm_site

_UPGRADES: Final = 20
_AIM: Final = 0.1
_OBJECTS: Final = 20
_NO_ENVIRONMENT: Final[Mapping[str, str]] = {}


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


def run() -> list[measures.Row]:
    """Upgrade one release again and again; takes about a quarter of a minute."""
    with surroundings.control_plane() as cluster, tempfile.TemporaryDirectory() as root:
        site = helm_site.Site(cluster, cluster.helm, cluster.namespace("bench"), pathlib.Path(root))
        site.helm, site.helm_class = cluster.helm, _Timed
        site.write("Chart.yaml", "apiVersion: v2\nname: web\nversion: 0.0.1\n")
        for number in range(_OBJECTS):
            text = helm_site.CONFIG.replace("{{ .Release.Name }}", f"web-{number}")
            site.write(f"templates/{number}.yaml", text)
        own, helm = asyncio.run(_upgrades(site))
    case = f"upgrade of a release with {_OBJECTS} objects"
    ours, theirs = (1000 * statistics.median(seconds) for seconds in (own, helm))
    return [
        measures.Row("releases", case, "ms besides Helm's calls, p50", ours, "Helm's calls in it", theirs,
                     f"<= {_AIM:g} baselines", ours <= _AIM * theirs),
    ]  # fmt: skip


async def _upgrades(site: helm_site.Site) -> tuple[list[float], list[float]]:
    """Return the seconds of each upgrade without Helm, and those of Helm."""
    own, helm = [], []
    async with site.manager() as manager:
        await manager.ensure(site.asked(0))
        for size in range(1, _UPGRADES + 1):
            _Timed.spent.clear()
            began = time.perf_counter()
            await manager.ensure(site.asked(size))
            helm.append(sum(_Timed.spent))
            own.append(time.perf_counter() - began - helm[-1])
    return own, helm
