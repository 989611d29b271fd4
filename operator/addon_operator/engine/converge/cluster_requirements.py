"""What modules require of the cluster: its version, and APIs. Nothing is asked if none requires any."""

import asyncio
from collections.abc import Callable, Iterable

from msgspec import structs

from addon_operator.engine.converge import api_watch
from addon_operator.kube.discovery import discovery, presence
from addon_operator.loading import crd_sources
from addon_operator.modules import model, requirements


class ClusterRequirements:
    """Looks at the cluster for each discovery of modules."""

    def __init__(
        self,
        kinds: discovery.Catalog,
        probe: presence.ObjectProbe,
        definitions: crd_sources.CrdSources,
        watch: api_watch.ApiWatch | None = None,
    ) -> None:
        """``definitions`` tell which APIs modules bring; ``watch`` follows what each look has asked for."""
        self._kinds = kinds
        self._probe = probe
        self._definitions = definitions
        self._watch = watch

    async def look(
        self, modules: Iterable[model.Module], is_on: Callable[[model.Module], bool] = lambda _: True
    ) -> requirements.ClusterFacts:
        """Find out what the requirements of the modules are compared with.

        ``is_on``: whether a module is switched on; what others define does not come.
        Raises what the API client raises.
        """
        able = [module for module in modules if not module.problem]
        wanted = [module.config.requires for module in able]
        apis = frozenset(api for each in wanted for api in each.apis)
        seen = requirements.ClusterFacts()
        if apis:
            seen = await api_watch.ask(self._kinds, self._probe, apis)
            if absent := apis - seen.served - seen.unclear:
                # Files are read only for an API that is not there.
                on = [module for module in able if is_on(module)]
                coming = await asyncio.to_thread(self._definitions.bringing, on, absent)
                seen = structs.replace(seen, coming=coming)
        elif any(each.kubernetes for each in wanted):
            seen = requirements.ClusterFacts(await self._kinds.version())
        if self._watch is not None:
            self._watch.follow(apis, seen)
        return seen
