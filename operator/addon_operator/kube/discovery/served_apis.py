"""Which APIs the cluster serves just now, and which of those that are missing may come back."""

from collections.abc import Collection
from typing import Final

import msgspec

from addon_operator.kube.discovery import api_resources, discovery, presence

API_SERVICE: Final = api_resources.Resource(
    "apiregistration.k8s.io/v1", "APIService", "apiservices", namespaced=False
)
"""There is one for each version of each group, also for those of CustomResourceDefinitions."""


class ServedApis(msgspec.Struct, frozen=True):
    """What the API server offered at one moment."""

    version: str
    """Of the server, such as ``v1.36.3``."""
    served: frozenset[str]
    """``v1`` and ``group/version`` of all APIs that answer."""
    unclear: frozenset[str]
    """Those that were asked for and are registered, but whose server does not answer."""


def api_service_of(api: str) -> str:
    """Return the name of the APIService of ``group/version``."""
    group, _, version = api.rpartition("/")
    return f"{version}.{group}"


async def look(kinds: discovery.Catalog, probe: presence.ObjectProbe, apis: Collection[str]) -> ServedApis:
    """Ask for everything now; of these ``apis`` also whether they are unclear.

    An API that the server does not list although it is registered is unclear: its own server does not
    answer, or this API server has just started. Raises what the client raises.
    """
    discovered = await kinds.look()
    served = frozenset(group.name for group in discovered.groups) - set(discovered.failed)
    missing = sorted(set(apis) - served)
    unclear = [
        api
        for api in missing
        if api in discovered.failed or await probe.exists(API_SERVICE, "", api_service_of(api))
    ]
    return ServedApis(discovered.version, served, frozenset(unclear))
