"""Charts of modules from repositories: there before anything else of the module is read."""

from addon_operator.engine import intents
from addon_operator.helm.repositories import chart_cache
from addon_operator.modules import model


class ModuleCharts:
    """Has charts pulled, and has modules run again whose charts came late."""

    def __init__(self, cache: chart_cache.ChartCache, inbox: intents.Inbox) -> None:
        self._cache = cache
        self._inbox = inbox

    async def ensure(self, module: model.Module) -> None:
        """Have the module's chart in its place, if it is one of a repository.

        A repository that hangs must not hold up other modules: after some time the module's task fails, the
        pull goes on, and its end is an intent. Raises what :meth:`.ChartCache.ensure` raises.
        """
        try:
            await self._cache.ensure(module)
        except chart_cache.StillPulledError as error:
            pulled = intents.ChartPulled(module.name)
            error.pull.add_done_callback(lambda _: self._inbox.put_nowait(pulled))
            raise
