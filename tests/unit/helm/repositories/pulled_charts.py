"""A cache of charts whose repository is a fake."""

import asyncio
import contextlib
import pathlib
from collections.abc import AsyncIterator

from typing_extensions import override

from addon_operator.helm.repositories import chart_cache, chart_pull
from addon_operator.kernel import names
from addon_operator.modules import model, module_config
from tests.unit.helm.charts import packed_charts

WANTED = module_config.ChartReference("oci://registry.example.com/charts", "web", "1.2.3")


class Puller(chart_pull.ChartPuller):
    """Gives an archive, as often as it is asked."""

    def __init__(self, root: pathlib.Path) -> None:
        self.archive = packed_charts.pack(root / "web.tgz", packed_charts.CHART)
        self.pulls = 0
        self.came = asyncio.Semaphore(0)
        self.go = asyncio.Event()
        self.go.set()
        self.fails = ""

    @contextlib.asynccontextmanager
    @override
    async def pulled(self, wanted: module_config.ChartReference) -> AsyncIterator[pathlib.Path]:
        self.pulls += 1
        self.came.release()
        await self.go.wait()
        if self.fails:
            raise chart_pull.PullError(self.fails)
        yield self.archive


class World:
    def __init__(self, root: pathlib.Path) -> None:
        self.charts = root / "cache" / "charts"
        self.puller = Puller(root)
        self.notes: list[str] = []
        self.cache = self.another()

    def another(self) -> chart_cache.ChartCache:
        """That of another process."""
        return chart_cache.ChartCache(self.charts, self.puller, self.notes.append)

    def module(self, name: str = "web", wanted: module_config.ChartReference = WANTED) -> model.Module:
        stock = model.StockChart(chart_cache.place(self.charts, wanted), reference=wanted)
        return model.Module(names.ModuleName(name), 1, self.charts, has_chart=True, stock=stock)

    def names(self) -> list[str]:
        return sorted(path.name for path in self.charts.iterdir())
