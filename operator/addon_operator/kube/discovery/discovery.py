"""What the API server offers: its version, its API groups and their kinds.

Asked for as aggregated documents (two requests), which every API server from Kubernetes 1.30 on has. They may
have a megabyte, so the server is told what is known: it answers in one line if that is still right.
Source: "API Discovery" of the Kubernetes documentation.
"""

import asyncio
import dataclasses
import functools
import http
from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

import msgspec

from addon_operator.aio import absences
from addon_operator.kernel import clock
from addon_operator.kube import api_errors
from addon_operator.kube.client import client, connection
from addon_operator.kube.discovery import api_resources

AGGREGATED: Final = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json"

_MISS_SECONDS: Final = 5.0
_MOVED: Final = {"extensions": ("apps", "networking.k8s.io", "policy")}
"""API groups that Kubernetes no longer has, and those to which it has moved their kinds."""


class NoSuchKind(api_errors.KubernetesError):
    """The API server has no such kind."""

    def __init__(
        self,
        kind: str,
        api_version: str | None,
        versions: Sequence[str] = (),
        near: api_resources.Resource | None = None,
    ) -> None:
        """``versions`` are those in which the kind is served; ``near`` may be meant if there are none."""
        place = f" in {api_version}" if api_version else ""
        served = " and ".join(versions)
        remedy = f"it serves it in {served}" if versions else "is its CRD installed?"
        if near is not None and not versions:
            remedy = f"did you mean {near.kind!r} of {near.api_version}? If not, {remedy}"
        super().__init__(f"the API server has no kind {kind!r}{place}: {remedy}")
        self.kind = kind
        self.api_version = api_version
        self.versions = tuple(versions)
        """In which the kind is served."""

    @property
    def of_the_group(self) -> tuple[str, ...]:
        """Versions of the API group that was asked for in which the kind is served."""
        return _of_groups(self.versions, _group_of(self.api_version or ""))


class _Answer(msgspec.Struct, frozen=True):
    """What one of the documents said."""

    etag: str
    """Names this state of it; empty if the server gives none."""
    groups: tuple[api_resources.GroupVersion, ...]
    failed: tuple[str, ...]


@dataclasses.dataclass(frozen=True)
class Discovered:
    """What the server offered at one moment."""

    version: str
    """Of the server, such as ``v1.36.3``."""
    groups: tuple[api_resources.GroupVersion, ...]
    """In the server's order of preference within each API group."""
    failed: tuple[str, ...]
    """``group/version`` of groups whose server (an APIService) did not answer."""
    answers: tuple[_Answer | None, _Answer | None] = (None, None)
    """What it was read from."""

    @functools.cached_property
    def api_versions(self) -> frozenset[str]:
        """All ``group/version`` and ``group/version/Kind``, as Helm's ``.Capabilities.APIVersions``."""
        return frozenset(name for group in self.groups for name in group.capabilities)


async def server_version(kube: client.KubeClient) -> str:
    """Return the version of the API server, such as ``v1.36.3``."""
    # client-go gives discovery a rate limit of its own, far above that of other requests.
    request = connection.Request("GET", "/version", headers={"Accept": "application/json"})
    document = await kube.document(request, limited=False)
    version = document.get("gitVersion")
    if not isinstance(version, str) or not version:
        raise api_errors.BrokenAnswer("the API server does not report its version at /version: is it one?")
    return version


async def read(kube: client.KubeClient, last: Discovered | None = None) -> Discovered:
    """Ask for everything; ``known`` is what was read before.

    Raises what :class:`.KubeClient` raises; a single group that does not answer is
    no error but stands in ``failed``.
    """
    core, named = (None, None) if last is None else last.answers
    version, *answers = await asyncio.gather(
        server_version(kube), _ask(kube, "/api", core), _ask(kube, "/apis", named)
    )
    core, named = answers
    if core is None or named is None:
        raise api_errors.BrokenAnswer(
            f"the API server, {version}, has no aggregated discovery: use Kubernetes 1.30 or newer"
        )
    if last is not None and version == last.version and core is last.answers[0] and named is last.answers[1]:
        return last
    return Discovered(version, core.groups + named.groups, core.failed + named.failed, (core, named))


async def _ask(kube: client.KubeClient, path: str, last: _Answer | None) -> _Answer | None:
    """Return what a document says; ``None`` if it is no aggregated one."""
    etag = last.etag if last is not None else ""
    headers = {"Accept": AGGREGATED} | ({"If-None-Match": etag} if etag else {})
    request = connection.Request("GET", path, headers=headers)
    response = await kube.request(request, limited=False)
    if response.status == http.HTTPStatus.NOT_MODIFIED and last is not None:
        return last
    document = client.decoded(request, response)
    if document.get("kind") != "APIGroupDiscoveryList":
        return None
    groups, stale = api_resources.from_aggregated(document)
    return _Answer(response.headers.get("ETag", ""), tuple(groups), tuple(stale))


class Kind(NamedTuple):
    """A kind in one version."""

    api_version: str
    """``v1`` or ``group/version``."""
    kind: str


class Catalog:
    """Looks up kinds, and asks the server again when one is not there: its CRD may be younger.

    A kind that was there counts as served until it is gone (:mod:`.absences`), and so does one whose own
    server does not answer.
    """

    def __init__(self, kube: client.KubeClient, time: clock.Clock, absence: float = absences.SECONDS) -> None:
        self._kube = kube
        self._clock = time
        self._lock = asyncio.Lock()
        self._absences = absences.Absences[Kind](time, absence)
        self._asked: set[Kind] = set()
        self._gone: frozenset[Kind] = frozenset()
        self._answer: Discovered | None = None
        self._known: Discovered | None = None
        self._doubted = True
        self._read_at = 0.0

    def forget(self) -> None:
        """Ask again at the next look-up: CRDs have changed."""
        self._doubted = True

    async def look(self) -> Discovered:
        """Ask the server again, and return all that it offers; raises what :func:`read` raises."""
        async with self._lock:
            return await self._read_if(needed=True)

    @property
    def settles_in(self) -> float | None:
        """Seconds until another look decides what is gone; ``None`` if everything known is served."""
        return self._absences.due

    async def serves(self, kind: str, api_version: str) -> bool:
        """Ask the server whether it lists the kind now; raises what :func:`read` raises."""
        async with self._lock:
            await self._read_if(needed=True)
            return self._answer is not None and bool(
                api_resources.find(self._answer.groups, kind, api_version)
            )

    async def readable(self, kinds: Iterable[Kind]) -> dict[Kind, str]:
        """Return the version in which the server lists each of these kinds now; what has none is left out.

        It is the version that was asked for, else another one of its group, or of the group to which
        Kubernetes has moved the kind. Raises what :func:`read` raises.
        """
        async with self._lock:
            await self._read_if(needed=True)
            groups = self._answer.groups if self._answer is not None else ()
        found: dict[Kind, str] = {}
        for each in frozenset(kinds):
            group, served = _group_of(each.api_version), api_resources.versions_of(groups, each.kind)
            near = _of_groups(served, group) or _of_groups(served, *_MOVED.get(group, ()))
            if near:
                found[each] = each.api_version if each.api_version in near else near[0]
        return found

    async def gone(self, kinds: Iterable[Kind]) -> frozenset[Kind]:
        """Return which of these kinds are gone; whether one of the others is may be known later.

        Raises what :func:`read` raises.
        """
        asked = frozenset(kinds)
        async with self._lock:
            self._asked |= asked
            await self._read_if(needed=True)
            return asked & self._gone

    async def version(self) -> str:
        """Ask for the version of the server alone, such as ``v1.36.3``."""
        return await server_version(self._kube)

    async def find(self, kind: str, api_version: str | None = None) -> api_resources.Resource:
        """Return the resource of that kind; ``kind`` may also be a plural, singular or short name.

        Raises :class:`NoSuchKind` if the server has none. It is asked at most every few seconds for one.
        """
        async with self._lock:
            fresh = self._doubted
            resource = api_resources.find((await self._read_if(needed=fresh)).groups, kind, api_version)
            if resource is None and not fresh and self._clock.monotonic() - self._read_at >= _MISS_SECONDS:
                resource = api_resources.find((await self._read_if(needed=True)).groups, kind, api_version)
        if resource is None:
            groups = self._known.groups if self._known is not None else ()
            versions = api_resources.versions_of(groups, kind)
            raise NoSuchKind(kind, api_version, versions, api_resources.nearest(groups, kind, api_version))
        return resource

    async def _read_if(self, *, needed: bool) -> Discovered:
        if self._known is None or self._doubted or needed:
            # Who forgets while it is asked has to be heard.
            self._doubted = False
            try:
                self._answer = await read(self._kube, self._answer)
            except BaseException:
                self._doubted = True
                raise
            self._known = self._with_absent(self._answer, self._known)
            self._read_at = self._clock.monotonic()
        return self._known

    def _with_absent(self, now: Discovered, known: Discovered | None) -> Discovered:
        """Return what is served now, with all that was known and is not gone."""
        known = known or now
        if known is now and not self._asked:
            return now
        there, before = _kinds(now), _kinds(known)
        missing = (before | self._asked) - there
        self._asked &= missing
        silent = {each for each in missing if each.api_version in now.failed}
        self._gone = self._absences.look(missing - silent)
        kept = missing & before - self._gone
        if not kept:
            return now
        groups = api_resources.with_kept(now.groups, known.groups, lambda *kind: Kind(*kind) in kept)
        return dataclasses.replace(now, groups=groups)


def _group_of(api_version: str) -> str:
    return api_version.rpartition("/")[0]


def _of_groups(versions: Sequence[str], *groups: str) -> tuple[str, ...]:
    return tuple(each for each in versions if _group_of(each) in groups)


def _kinds(discovered: Discovered) -> set[Kind]:
    return {Kind(group.name, each.kind) for group in discovered.groups for each in group.resources}
