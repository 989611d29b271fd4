"""What modules require of the cluster: its version, and APIs. Nothing is asked if none requires any."""

from collections.abc import Callable, Iterable
from typing import Final

from addon_operator.kube.discovery import api_resources, discovery, presence
from addon_operator.modules import model, requirements

API_SERVICE: Final = api_resources.Resource(
    "apiregistration.k8s.io/v1", "APIService", "apiservices", namespaced=False
)
"""There is one for each version of each group, also for those of CustomResourceDefinitions."""


def api_service_of(api: str) -> str:
    """Return the name of the APIService of ``group/version``."""
    group, _, version = api.rpartition("/")
    return f"{version}.{group}"


class ClusterRequirements:
    """Looks at the cluster for each discovery of modules."""

    def __init__(self, kinds: discovery.Catalog, probe: presence.ObjectProbe) -> None:
        self._kinds = kinds
        self._probe = probe
        self.apis: frozenset[str] = frozenset()
        """Those that modules required at the last look."""
        self.seen = requirements.ClusterFacts()
        """What the last look showed."""
        self.on_look: Callable[[], None] = lambda: None
        """Called after each look."""

    async def look(self, modules: Iterable[model.Module]) -> requirements.ClusterFacts:
        """Find out what the requirements of the modules are compared with.

        Raises what the API client raises.
        """
        wanted = [module.config.requires for module in modules if not module.problem]
        apis = frozenset(api for each in wanted for api in each.apis)
        seen = requirements.ClusterFacts()
        if apis:
            seen = await self.ask(apis)
        elif any(each.kubernetes for each in wanted):
            seen = requirements.ClusterFacts(await self._kinds.version())
        self.apis, self.seen = apis, seen
        self.on_look()
        return seen

    async def ask(self, apis: frozenset[str]) -> requirements.ClusterFacts:
        """Ask for everything now; of these ``apis`` also whether they are unclear.

        An API that the server does not list although it is registered is unclear: its own server does not
        answer, or this API server has just started.
        """
        found = await self._kinds.look()
        served = frozenset(group.name for group in found.groups) - set(found.failed)
        missing = apis - served
        unclear = [api for api in sorted(missing) if api in found.failed or await self._is_registered(api)]
        return requirements.ClusterFacts(found.version, served, frozenset(unclear))

    async def _is_registered(self, api: str) -> bool:
        return bool(await self._probe.exists(API_SERVICE, "", api_service_of(api)))
