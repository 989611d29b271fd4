"""Brings back objects of releases as they were: from the record that Helm keeps of the deployed revision.

Helm has no part in it: no process, no revision, no hooks. What was random keeps its value.
What Helm failed to change because nobody may change it is Helm's: it makes it as the chart has it now.
"""

import asyncio
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Final, TypeAlias

import msgspec
from msgspec import structs

from addon_operator.engine.drift import watched_resources
from addon_operator.helm import helm_errors, messages, release_types
from addon_operator.helm.releases import releases
from addon_operator.kernel import names
from addon_operator.kube import api_errors
from addon_operator.kube.client import client
from addon_operator.kube.discovery import api_resources
from addon_operator.modules import manifests

_FIELD_MANAGER: Final = "helm"
"""Helm's own name: the fields stay those of its next upgrade."""
AT_ONCE: Final = 8
"""So many objects of one module are created at the same time."""
_FIRST: Final = frozenset({"Namespace", "CustomResourceDefinition", "PriorityClass"})
"""Kinds that others cannot be created without."""
_LAST: Final = frozenset({"pods", "replicationcontrollers"})
_LAST_GROUPS: Final = frozenset({"apps", "batch", "admissionregistration.k8s.io", "apiregistration.k8s.io"})
"""What makes use of others as soon as it is there."""
_NO_NAMESPACE: Final = 'namespaces "'
_PASSING: Final = frozenset({404, 405, 409, 429})
_TERMINATING: Final = "because it is being terminated"
_DEFINITION_TERMINATING: Final = "while custom resource definition is terminating"


class Restored(msgspec.Struct, frozen=True):
    """What became of absent resources."""

    done: tuple[watched_resources.Watched, ...] = ()
    left: tuple[watched_resources.Watched, ...] = ()
    """These could not be restored."""
    reason: str = ""
    """Why not."""
    is_passing: bool = False
    """Whether that may be another matter in a moment."""
    is_blocked: bool = False
    """Whether nobody, Helm neither, can create some of them before their definition is gone and back, which
    takes seconds.
    """
    for_helm: tuple[watched_resources.Watched, ...] = ()
    """These were not tried: Helm will make them otherwise than they were."""


class Restorer:
    """Creates absent objects again; Helm must not be at work on the release meanwhile."""

    def __init__(
        self,
        manager: releases.ReleaseManager,
        kube: client.KubeClient,
        *,
        is_brought: Callable[[str], bool] = lambda _: False,
    ) -> None:
        """``is_brought`` says whether somebody here sees to it that the CustomResourceDefinition of that name
        comes back.
        """
        self._is_brought = is_brought
        self._manager = manager
        self._kube = kube

    async def restore(
        self,
        module: names.ModuleName,
        absent: Sequence[watched_resources.Watched],
        *,
        insist_on: Collection[watched_resources.Watched] = (),
    ) -> Restored:
        """Create these resources again; what the deployed revision does not have is not restored.

        Neither is what Helm failed to change because it never changes, unless it is in ``insist_on``.
        """
        try:
            deployed = await self._manager.deployed(module)
        except helm_errors.ReleaseRecordError as error:
            return Restored(left=tuple(absent), reason=str(error))
        except api_errors.KubernetesError as error:
            return Restored(left=tuple(absent), reason=str(error), is_passing=True)
        if deployed is None:
            return Restored(left=tuple(absent), reason="no revision of the release is deployed")
        if deployed.is_busy:
            # Somebody else's Helm: what it deletes must not be in its way.
            return Restored(left=tuple(absent), reason="another Helm works on the release", is_passing=True)
        for_helm: list[watched_resources.Watched] = []
        ours: list[watched_resources.Watched] = []
        for each in absent:
            is_unchangeable = any(_is_named(each, name) for name in deployed.unchangeable)
            (for_helm if is_unchangeable and each not in insist_on else ours).append(each)
        restored = await self._restore(module, ours, deployed)
        return structs.replace(restored, for_helm=tuple(for_helm))

    async def _restore(
        self,
        module: names.ModuleName,
        absent: Sequence[watched_resources.Watched],
        deployed: release_types.Deployed,
    ) -> Restored:
        place = self._manager.places.of(module)
        in_manifest = await asyncio.to_thread(find, deployed.manifest, absent, place.namespace)
        turns = asyncio.Semaphore(AT_ONCE)
        done: list[watched_resources.Watched] = []
        failed: dict[watched_resources.Watched, api_errors.KubernetesError] = {}

        async def create(watched: watched_resources.Watched, body: manifests.Object) -> None:
            owned = manifests.owned(body, place.name, place.namespace)
            try:
                async with turns:
                    await self._create(watched, owned, deployed.is_server_side)
            except api_errors.AlreadyExists:
                return
            except api_errors.KubernetesError as error:
                failed[watched] = error
            else:
                done.append(watched)

        for wave in _waves(in_manifest):
            await asyncio.gather(*(create(watched, body) for watched, body in wave))
        return self._outcome(done, failed)

    def _outcome(
        self,
        done: Sequence[watched_resources.Watched],
        failed: Mapping[watched_resources.Watched, api_errors.KubernetesError],
    ) -> Restored:
        # What will not pass by itself is the reason that counts.
        reason = next((error for error in failed.values() if not _may_pass(error)), None)
        reason = reason or next(iter(failed.values()), None)
        blocked = {watched for watched, error in failed.items() if self._is_blocked(watched, error)}
        others = [error for watched, error in failed.items() if watched not in blocked]
        is_passing = bool(failed) and all(map(_may_pass, others))
        return Restored(
            tuple(done), tuple(failed), str(reason or ""), is_passing, is_passing and bool(blocked)
        )

    def _is_blocked(self, watched: watched_resources.Watched, error: api_errors.KubernetesError) -> bool:
        """Say whether the definition of the object is on its way out, or gone and about to come back."""
        if isinstance(error, api_errors.NotFound | api_errors.NotServed):
            group = watched.resource.api_version.rpartition("/")[0]
            return _NO_NAMESPACE not in error.message and self._is_brought(
                f"{watched.resource.plural}.{group}"
            )
        return isinstance(error, api_errors.Forbidden) and _DEFINITION_TERMINATING in error.message

    async def _create(
        self, watched: watched_resources.Watched, body: manifests.Object, is_server_side: bool
    ) -> None:
        namespace = watched.key.namespace or None
        if is_server_side:
            path = watched.resource.path(namespace=namespace, name=watched.key.name)
            await self._kube.apply(path, body, field_manager=_FIELD_MANAGER, force=True)
        else:
            path = watched.resource.path(namespace=namespace)
            await self._kube.create(path, body, query={"fieldManager": _FIELD_MANAGER})


def _may_pass(error: api_errors.KubernetesError) -> bool:
    """Say whether the next try may well succeed: no answer, or a definition or namespace is on its way."""
    if not isinstance(error, api_errors.ApiError):
        return True
    return error.status in _PASSING or error.status >= 500 or _TERMINATING in error.message


_ManifestObject: TypeAlias = tuple[watched_resources.Watched, manifests.Object]


def find(
    manifest: str,
    resources: Iterable[watched_resources.Watched],
    namespace: str,
) -> list[_ManifestObject]:
    """Return what is wanted of a manifest, in its order; ``namespace`` is that of objects that name none."""
    wanted = {(each.resource.api_version, each.resource.kind, *each.key): each for each in resources}

    def watched_of(resource: manifests.ManifestResource) -> watched_resources.Watched | None:
        place = wanted.get(
            (resource.api_version, resource.kind, resource.namespace or namespace, resource.name)
        )
        return place or wanted.get((resource.api_version, resource.kind, "", resource.name))

    objects = manifests.find_objects(manifest, lambda each: watched_of(each) is not None)
    placed = [(watched_of(each), body) for each, body in objects]
    return [(watched, body) for watched, body in placed if watched is not None]


def _waves(in_manifest: Sequence[_ManifestObject]) -> Iterator[list[_ManifestObject]]:
    """Yield what may be created at the same time, in the order of the manifest, which is Helm's."""
    rank_of = {watched: _rank(watched.resource) for watched, _ in in_manifest}
    for rank in sorted(set(rank_of.values())):
        yield [each for each in in_manifest if rank_of[each[0]] == rank]


def _rank(resource: api_resources.Resource) -> int:
    group = resource.api_version.rpartition("/")[0]
    if resource.kind in _FIRST:
        return 0
    is_custom = "." in group and not group.endswith(".k8s.io")
    return 2 if is_custom or group in _LAST_GROUPS or (not group and resource.plural in _LAST) else 1


def _is_named(watched: watched_resources.Watched, name: messages.ObjectName) -> bool:
    return (name.kind, name.name) == (watched.resource.kind, watched.key.name) and (
        not name.namespace or name.namespace == watched.key.namespace
    )
