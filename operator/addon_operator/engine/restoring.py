"""Brings back objects of releases as they were: from the record that Helm keeps of the deployed revision.

Helm has no part in it: no process, no revision, no hooks. What was random keeps its value.
"""

import asyncio
import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any, Final, Protocol

from addon_operator.engine import watched_resources
from addon_operator.helm import errors as helm_errors
from addon_operator.helm import release_types
from addon_operator.kernel import names
from addon_operator.kube import errors as kube_errors
from addon_operator.modules import manifests, release_objects

_FIELD_MANAGER: Final = "helm"
"""Helm's own name: the fields stay those of its next upgrade."""
_PASSING: Final = frozenset({404, 405, 409, 429})
_TERMINATING: Final = "because it is being terminated"
_DEFINITION_TERMINATING: Final = "while custom resource definition is terminating"


class Records(Protocol):
    """What releases consist of; see :class:`addon_operator.helm.releases.ReleaseManager`."""

    async def deployed(self, module: names.ModuleName) -> release_types.Deployed | None:
        """What the deployed revision consists of; ``None`` if there is none."""
        ...


class Writer(Protocol):
    """What is needed of :class:`addon_operator.kube.client.KubeClient`."""

    async def create(
        self, path: str, body: Mapping[str, Any], *, query: Mapping[str, str]
    ) -> Mapping[str, Any]:
        """Create an object in a collection."""
        ...

    async def apply(
        self, path: str, body: Mapping[str, Any], *, field_manager: str, force: bool
    ) -> Mapping[str, Any]:
        """Server-side apply."""
        ...


@dataclasses.dataclass(frozen=True, slots=True)
class Restored:
    """What became of absent resources."""

    done: tuple[watched_resources.Watched, ...] = ()
    left: tuple[watched_resources.Watched, ...] = ()
    """These could not be restored."""
    reason: str = ""
    """Why not."""
    is_passing: bool = False
    """Whether that may be another matter in a moment."""
    is_blocked: bool = False
    """Whether nobody, Helm neither, can create them before their definition is gone, which takes seconds."""


class Restorer:
    """Creates absent objects again; Helm must not be at work on the release meanwhile."""

    def __init__(self, records: Records, writer: Writer, *, namespace: str) -> None:
        """``namespace`` is that of the releases."""
        self._records = records
        self._writer = writer
        self._namespace = namespace

    async def restore(
        self, module: names.ModuleName, absent: Sequence[watched_resources.Watched]
    ) -> Restored:
        """Create these resources again; what the deployed revision does not have is not restored."""
        try:
            deployed = await self._records.deployed(module)
        except helm_errors.ReleaseRecordError as error:
            return Restored(left=tuple(absent), reason=str(error))
        except kube_errors.KubernetesError as error:
            return Restored(left=tuple(absent), reason=str(error), is_passing=True)
        if deployed is None:
            return Restored(left=tuple(absent), reason="no revision of the release is deployed")
        if deployed.is_busy:
            # Somebody else's Helm: what it deletes must not be in its way.
            return Restored(
                left=tuple(absent), reason="another Helm is at work on the release", is_passing=True
            )
        return await self._restore(module, absent, deployed)

    async def _restore(
        self,
        module: names.ModuleName,
        absent: Sequence[watched_resources.Watched],
        deployed: release_types.Deployed,
    ) -> Restored:
        wanted = {(each.resource.api_version, each.resource.kind, *each.key): each for each in absent}
        found = await asyncio.to_thread(self._find, deployed.manifest, wanted)
        done: list[watched_resources.Watched] = []
        left: list[watched_resources.Watched] = []
        reason, is_passing, is_blocked = "", False, True
        for watched, body in found:
            try:
                await self._create(
                    watched, release_objects.owned(body, module, self._namespace), deployed.is_server_side
                )
            except kube_errors.AlreadyExists:
                continue
            except kube_errors.KubernetesError as error:
                left.append(watched)
                reason, is_passing = str(error), _may_pass(error)
                is_blocked = is_blocked and _is_blocked(error)
            else:
                done.append(watched)
        return Restored(tuple(done), tuple(left), reason, is_passing, bool(left) and is_blocked)

    def _find(
        self, manifest: str, wanted: Mapping[tuple[str, str, str, str], watched_resources.Watched]
    ) -> list[tuple[watched_resources.Watched, release_objects.Object]]:
        def watched_of(found: manifests.ManifestResource) -> watched_resources.Watched | None:
            namespace = found.namespace or self._namespace
            place = wanted.get((found.api_version, found.kind, namespace, found.name))
            return place or wanted.get((found.api_version, found.kind, "", found.name))

        found = release_objects.find(manifest, lambda each: watched_of(each) is not None)
        placed = [(watched_of(each), body) for each, body in found]
        return [(watched, body) for watched, body in placed if watched is not None]

    async def _create(
        self, watched: watched_resources.Watched, body: release_objects.Object, is_server_side: bool
    ) -> None:
        namespace = watched.key.namespace or None
        if is_server_side:
            path = watched.resource.path(namespace=namespace, name=watched.key.name)
            await self._writer.apply(path, body, field_manager=_FIELD_MANAGER, force=True)
        else:
            path = watched.resource.path(namespace=namespace)
            await self._writer.create(path, body, query={"fieldManager": _FIELD_MANAGER})


def _may_pass(error: kube_errors.KubernetesError) -> bool:
    """Whether the next try may well succeed: no answer, a definition or a namespace that is on its way."""
    if not isinstance(error, kube_errors.ApiError):
        return True
    return error.status in _PASSING or error.status >= 500 or _TERMINATING in error.message


def _is_blocked(error: kube_errors.KubernetesError) -> bool:
    return isinstance(error, kube_errors.Forbidden) and _DEFINITION_TERMINATING in error.message
