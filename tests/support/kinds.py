"""Kinds that an API server serves, known without asking it."""

from collections.abc import Iterable

from typing_extensions import override

from addon_operator.kube.discovery import api_resources, discovery

CLUSTER_WIDE = ("Namespace",)


class Kinds(discovery.Catalog):
    """Serves the kinds that were given, in any version; without any, it serves all."""

    def __init__(self, *served: str) -> None:
        self._served = served

    @override
    async def find(self, kind: str, api_version: str | None = None) -> api_resources.Resource:
        if self._served and kind not in self._served:
            raise discovery.NoSuchKind(kind, api_version)
        return api_resources.Resource(
            api_version or "v1", kind, f"{kind.lower()}s", namespaced=kind not in CLUSTER_WIDE
        )

    @override
    async def readable(self, kinds: Iterable[discovery.Kind]) -> dict[discovery.Kind, str]:
        return {each: each.api_version for each in kinds if not self._served or each.kind in self._served}
