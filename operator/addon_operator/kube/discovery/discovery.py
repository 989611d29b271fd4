"""What the API server offers: its version, its API groups and their kinds.

Asked for as aggregated documents (two requests), which every API server from Kubernetes 1.30 on has.
Source: "API Discovery" of the Kubernetes documentation.
"""

import asyncio
import dataclasses
from collections.abc import Sequence
from typing import Any, Final

from addon_operator.kernel import clock
from addon_operator.kube.client import api_errors, client, connection
from addon_operator.kube.discovery import api_resources

_AGGREGATED: Final = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json"

_MISS_SECONDS: Final = 5.0


class NoSuchKind(api_errors.KubernetesError):
    """The API server has no such kind."""

    def __init__(self, kind: str, api_version: str | None, versions: Sequence[str] = ()) -> None:
        """``versions`` are those in which the kind is served."""
        place = f" in {api_version}" if api_version else ""
        served = " and ".join(versions)
        remedy = f"it serves it in {served}" if versions else "is its CRD installed?"
        super().__init__(f"the API server has no kind {kind!r}{place}: {remedy}")
        self.kind = kind
        self.api_version = api_version
        self.versions = tuple(versions)
        """In which the kind is served."""


@dataclasses.dataclass(frozen=True, slots=True)
class Discovered:
    """What the server offered at one moment."""

    version: str
    """Of the server, such as ``v1.36.3``."""
    groups: tuple[api_resources.GroupVersion, ...]
    """In the server's order of preference within each API group."""
    failed: tuple[str, ...]
    """``group/version`` of groups whose server (an APIService) did not answer."""

    @property
    def api_versions(self) -> frozenset[str]:
        """All ``group/version`` and ``group/version/Kind``, as Helm's ``.Capabilities.APIVersions``."""
        return frozenset(name for group in self.groups for name in group.capabilities)


async def server_version(kube: client.KubeClient) -> str:
    """Return the version of the API server, such as ``v1.36.3``."""
    document = await _get(kube, "/version")
    version = document.get("gitVersion")
    if not isinstance(version, str) or not version:
        raise api_errors.BrokenAnswer("the API server does not report its version at /version: is it one?")
    return version


async def read(kube: client.KubeClient) -> Discovered:
    """Ask for everything.

    Raises what :class:`.KubeClient` raises; a single group that does not answer is
    no error but stands in ``failed``.
    """
    version, core, named = await asyncio.gather(
        server_version(kube), _get(kube, "/api", _AGGREGATED), _get(kube, "/apis", _AGGREGATED)
    )
    found: list[api_resources.GroupVersion] = []
    failed: list[str] = []
    for document in (core, named):
        if document.get("kind") != "APIGroupDiscoveryList":
            raise api_errors.BrokenAnswer(
                f"the API server, {version}, has no aggregated discovery: use Kubernetes 1.30 or newer"
            )
        groups, stale = api_resources.from_aggregated(document)
        found += groups
        failed += stale
    return Discovered(version, tuple(found), tuple(failed))


class Catalog:
    """Looks up kinds, and asks the server again when one is not there: its CRD may be younger."""

    def __init__(self, kube: client.KubeClient, time: clock.Clock) -> None:
        self._kube = kube
        self._clock = time
        self._lock = asyncio.Lock()
        self._known: Discovered | None = None
        self._read_at = 0.0

    def forget(self) -> None:
        """Ask again at the next look-up: CRDs have changed."""
        self._known = None

    async def look(self) -> Discovered:
        """Ask the server again, and return all that it offers; raises what :func:`read` raises."""
        async with self._lock:
            return await self._read_if(needed=True)

    async def version(self) -> str:
        """Ask for the version of the server alone, such as ``v1.36.3``."""
        return await server_version(self._kube)

    async def find(self, kind: str, api_version: str | None = None) -> api_resources.Resource:
        """Return the resource of that kind; ``kind`` may also be a plural, singular or short name.

        Raises :class:`NoSuchKind` if the server has none. It is asked at most every few seconds for one.
        """
        async with self._lock:
            fresh = self._known is None
            resource = api_resources.find((await self._read_if(needed=fresh)).groups, kind, api_version)
            if resource is None and not fresh and self._clock.monotonic() - self._read_at >= _MISS_SECONDS:
                resource = api_resources.find((await self._read_if(needed=True)).groups, kind, api_version)
        if resource is None:
            groups = self._known.groups if self._known is not None else ()
            raise NoSuchKind(kind, api_version, api_resources.versions_of(groups, kind))
        return resource

    async def _read_if(self, *, needed: bool) -> Discovered:
        if self._known is None or needed:
            self._known = await read(self._kube)
            self._read_at = self._clock.monotonic()
        return self._known


async def _get(kube: client.KubeClient, path: str, accept: str = "application/json") -> dict[str, Any]:
    # client-go gives discovery a rate limit of its own, far above that of other requests.
    request = connection.Request("GET", path, headers={"Accept": accept})
    return await kube.document(request, limited=False)
