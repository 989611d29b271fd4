"""What modules require of the cluster: its version, and APIs. Nothing is asked if none requires any."""

import asyncio
import dataclasses
from collections.abc import Callable, Iterable

from addon_operator.engine.modules import crd_sources
from addon_operator.kube.discovery import discovery, presence, served_apis
from addon_operator.modules import model, requirements


class ClusterRequirements:
    """Looks at the cluster for each discovery of modules."""

    def __init__(
        self, kinds: discovery.Catalog, probe: presence.ObjectProbe, definitions: crd_sources.CrdSources
    ) -> None:
        """``definitions`` tell which APIs modules bring."""
        self._kinds = kinds
        self._probe = probe
        self._definitions = definitions
        self.apis: frozenset[str] = frozenset()
        """Those that modules required at the last look."""
        self.seen = requirements.ClusterFacts()
        """What the last look showed."""
        self.on_look: Callable[[], None] = lambda: None
        """Called after each look."""

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
            seen = await self.ask(apis)
            if absent := apis - seen.served - seen.unclear:
                # Files are read only for an API that is not there.
                on = [module for module in able if is_on(module)]
                coming = await asyncio.to_thread(self._definitions.bringing, on, absent)
                seen = dataclasses.replace(seen, coming=coming)
        elif any(each.kubernetes for each in wanted):
            seen = requirements.ClusterFacts(await self._kinds.version())
        self.apis, self.seen = apis, seen
        self.on_look()
        return seen

    async def ask(self, apis: frozenset[str]) -> requirements.ClusterFacts:
        """Ask for everything now; of these ``apis`` also whether they are unclear."""
        found = await served_apis.look(self._kinds, self._probe, apis)
        return requirements.ClusterFacts(found.version, found.served, found.unclear)
