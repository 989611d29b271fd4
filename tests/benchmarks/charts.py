"""What charts of the size of public ones cost at a restart where nothing changed, beside a render."""

import dataclasses
import pathlib
import resource
import subprocess
import tempfile
from typing import Final

from addon_operator.devcluster import handle
from tests.benchmarks import measures, real_charts, surroundings
from tests.integration import operator_site

CHARTS: Final = 22
_RESTARTS: Final = 3
_PROCESSOR_AIM: Final = 1.5
_AS_A_PROCESS: Final = {"PYTHONUNBUFFERED": "1"}
"""With a setting of Python's own, no copy of a process that has imported everything is used."""


def run() -> list[measures.Row]:
    """All measurements; takes about two minutes."""
    with (
        surroundings.control_plane() as cluster,
        surroundings.site(cluster) as empty,
        surroundings.site(cluster) as site,
    ):
        site.values("".join(f"{real_charts.key(number)}Enabled: true\n" for number in range(CHARTS)))
        for number in range(CHARTS):
            real_charts.write(site.module(f"10-{real_charts.name(number)}"), number)
        installed = _start(site)
        before = len(site.helm_calls())
        starts = [(_start(empty), _start(site)) for _ in range(_RESTARTS)]
        calls = len(site.helm_calls()) - before
        rendered = _render_all(cluster, site)
    idle, restarts = ([pair[which] for pair in starts] for which in (0, 1))
    return _rows(installed, restarts, idle, rendered, calls)


@dataclasses.dataclass(frozen=True, slots=True)
class _Start:
    seconds: float
    """Until it was ready."""
    processor_seconds: float
    """Of all its processes, from the first import on."""
    mebibytes: float
    """Of all its processes; what they share counts once."""
    scraped: int
    """Bytes of ``/metrics``."""


def _start(site: operator_site.Site) -> _Start:
    seconds, operator = surroundings.seconds_until_ready(lambda: site.start(**_AS_A_PROCESS))
    found = _Start(
        seconds,
        surroundings.tree_seconds(operator.pid),
        surroundings.tree_mebibytes(operator.pid),
        len(operator.get("/metrics").text),
    )
    operator.stop()
    return found


def _render_all(cluster: handle.DevCluster, site: operator_site.Site) -> float:
    """Processor seconds of Helm to render each of the charts once, which is what a look at it would cost."""
    with tempfile.TemporaryDirectory() as home:
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        for chart in sorted(site.modules.glob("*/chart")):
            command = [str(cluster.helm), "template", "x", str(chart)]
            subprocess.run(
                command, check=True, stdout=subprocess.DEVNULL, env={"HOME": home}, cwd=pathlib.Path(home)
            )
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def _rows(
    installed: _Start, restarts: list[_Start], idle: list[_Start], rendered: float, calls: int
) -> list[measures.Row]:
    case = f"restart with {CHARTS} unchanged charts of {real_charts.FILES} files"
    spent, plain = (min(each.processor_seconds for each in starts) for starts in (restarts, idle))
    memory, bare = (min(each.mebibytes for each in starts) for starts in (restarts, idle))
    return [
        measures.Row("charts", f"first install of {CHARTS} charts", "s until ready", installed.seconds,
                     "restart", min(each.seconds for each in restarts)),
        measures.Row("charts", case, f"processor s of all processes, best of {_RESTARTS}", spent,
                     "without modules", plain, f"<= {_PROCESSOR_AIM:g}", spent <= _PROCESSOR_AIM),
        measures.Row("charts", case, f"processor s of all processes, best of {_RESTARTS}", spent,
                     "helm template of each", rendered),
        measures.Row("charts", case, "Helm processes, without 'helm version'", calls, "", None,
                     "0", calls == 0),
        measures.Row("charts", case, "MiB of all processes", memory, "without modules", bare),
        measures.Row("charts", "first install", "MiB of all processes", installed.mebibytes,
                     "restart", memory),
        measures.Row("charts", case, "KiB of /metrics", restarts[-1].scraped / 1024,
                     "first install", installed.scraped / 1024),
    ]  # fmt: skip
