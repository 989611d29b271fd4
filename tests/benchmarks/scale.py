"""How the cost of modules grows with their number: each figure beside that of the fewest modules."""

import dataclasses
import os
import statistics
import time
from typing import Final

from tests.benchmarks import lifecycle, measures, surroundings

SIZES: Final = (10, 100, 300)
LARGE: Final = (500, 1000)
"""With ``ONLY=scale``, after the others."""
_EDITS: Final = 5
_REST_SECONDS: Final = 20.0
_SETTLED_SECONDS: Final = 5.0


@dataclasses.dataclass(frozen=True, slots=True)
class _Found:
    """What so many modules cost."""

    modules: int
    install: float
    install_processor: float
    edit: float
    memory: float
    rest: float
    restart: float
    restart_processor: float


def run() -> list[measures.Row]:
    """All sizes, one after another; four minutes, or half an hour with the large ones."""
    sizes = (*SIZES, *LARGE) if os.environ.get("ONLY") == "scale" else SIZES
    found = [_of(modules) for modules in sizes]
    return [row for each in found for row in _rows(each, found[0])]


def _of(modules: int) -> _Found:
    with surroundings.control_plane() as cluster, surroundings.site(cluster) as site:
        lifecycle.write_modules(site, modules)
        install, operator = surroundings.seconds_until_ready(site.start)
        processor = surroundings.processor_seconds(operator.pid)
        api = surroundings.Api(cluster)
        site.config(unused="")
        edits = [lifecycle.edit_one(site, api, number) for number in range(_EDITS)]
        time.sleep(_SETTLED_SECONDS)
        before = surroundings.tree_seconds(operator.pid)
        time.sleep(_REST_SECONDS)
        rest = 100 * (surroundings.tree_seconds(operator.pid) - before) / _REST_SECONDS
        memory = surroundings.tree_mebibytes(operator.pid)
        operator.stop()
        restart = lifecycle.start(site)
    return _Found(
        modules, install, processor, statistics.median(edits), memory, rest, restart.seconds,
        restart.processor_seconds,
    )  # fmt: skip


def _rows(found: _Found, fewest: _Found) -> list[measures.Row]:
    case, times = f"{found.modules} modules", found.modules / fewest.modules
    each, same = f"{fewest.modules} modules, as often", f"{fewest.modules} modules"
    return [
        measures.Row("scale", case, "install: s until ready", found.install, each, fewest.install * times),
        measures.Row("scale", case, "install: processor s of the operator itself", found.install_processor,
                     each, fewest.install_processor * times),
        measures.Row("scale", case, "restart: s until ready", found.restart, same, fewest.restart),
        measures.Row("scale", case, "restart: processor s", found.restart_processor, same,
                     fewest.restart_processor),
        measures.Row("scale", case, "edit: s until deployed, p50", found.edit, same, fewest.edit),
        measures.Row("scale", case, "MiB of all processes", found.memory, same, fewest.memory),
        measures.Row("scale", case, "processor at rest, %", found.rest, same, fewest.rest),
    ]  # fmt: skip
