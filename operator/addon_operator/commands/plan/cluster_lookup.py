"""What a plan asks the cluster: whether resources are there, and whether their kinds are served."""

import asyncio
import collections
import contextlib
import pathlib
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final

from addon_operator.documents import manifest_diff
from addon_operator.helm.charts import plain_files
from addon_operator.kube import api_errors
from addon_operator.kube.client import client
from addon_operator.kube.discovery import api_resources, discovery
from addon_operator.modules import manifests

_SINGLE_REQUESTS: Final = 4
"""Up to so many objects of a kind are asked for one by one; for more of them the kind is listed."""
_AT_ONCE: Final = 8
_ADDED: Final = manifest_diff.ChangeKind.ADDED
_CRD: Final = "CustomResourceDefinition"
_KIND: Final = re.compile(r"kind: [\"']?(\w+)")


class ClusterLookup:
    """Looks for resources and kinds once: a plan watches nothing."""

    def __init__(
        self,
        cluster: client.KubeClient,
        kinds: discovery.Catalog,
        note: Callable[[str], None],
    ) -> None:
        self._cluster = cluster
        self._kinds = kinds
        self._note = note
        self._turns = asyncio.Semaphore(_AT_ONCE)
        self._defined: dict[pathlib.Path, frozenset[str]] = {}

    async def absent(self, manifest: str, namespace: str) -> tuple[str, ...]:
        """Return the same as :meth:`missing`, as a person would name them."""
        return tuple(map(str, await self.missing(manifest, namespace)))

    async def missing(self, manifest: str, namespace: str) -> list[manifests.ManifestResource]:
        """Return the resources of the manifest that are not in the cluster.

        ``namespace`` is that of the release.
        What may not be read counts as present, and is noted.
        """
        wanted = await asyncio.to_thread(manifests.resources, manifest)
        groups: Mapping[tuple[str, str, str], list[manifests.ManifestResource]] = collections.defaultdict(
            list
        )
        for resource in wanted:
            key = (resource.api_version, resource.kind, resource.namespace or namespace)
            groups[key].append(resource)
        missing = await asyncio.gather(*(self._missing(*key, group) for key, group in groups.items()))
        gone = {resource for group in missing for resource in group}
        return [resource for resource in wanted if resource in gone]

    async def refused(
        self, changes: Iterable[manifest_diff.ManifestChange], definitions: Sequence[pathlib.Path]
    ) -> str | None:
        """Say why Helm would not take the objects that are added; ``None`` if nothing speaks against it.

        A kind that is served in no version may come with something else: unless a file below
        ``definitions``, or the manifest itself, may define it, that is noted.
        """
        added = [change.key for change in changes if change.kind is _ADDED and change.key.api_version]
        defines = any(key.kind == _CRD for key in added)
        for api_version, kind in dict.fromkeys((key.api_version, key.kind) for key in added):
            try:
                await self._kinds.find(kind, api_version)
            except discovery.NoSuchKind as error:
                if error.versions:
                    return str(error)
                if not defines and kind not in await asyncio.to_thread(self.defined, definitions):
                    self._note(f"{error} It has to be there before it is used")
            except api_errors.KubernetesError:
                return None
        return None

    def defined(self, definitions: Iterable[pathlib.Path]) -> frozenset[str]:
        """Return the words that follow ``kind:`` in the files of these directories: kinds may be among them.

        It reads each directory once, and may take its time.
        """
        for directory in definitions:
            if directory not in self._defined and directory.is_dir():
                self._defined[directory] = _kinds_below(directory)
        return frozenset().union(*list(self._defined.values()))

    async def _missing(
        self, api_version: str, kind: str, namespace: str, wanted: Sequence[manifests.ManifestResource]
    ) -> Sequence[manifests.ManifestResource]:
        async with self._turns:
            try:
                kind_served = await self._kinds.find(kind, api_version)
                place = namespace if kind_served.namespaced else None
                present = await self._present(kind_served, place, [resource.name for resource in wanted])
            except api_errors.NotFound:
                return wanted
            except api_errors.KubernetesError as error:
                self._note(f"{kind} {wanted[0].name} cannot be looked up: {error}")
                return ()
        return [resource for resource in wanted if resource.name not in present]

    async def _present(
        self, resource: api_resources.Resource, namespace: str | None, wanted: Sequence[str]
    ) -> set[str]:
        if len(wanted) <= _SINGLE_REQUESTS:
            return {name for name in wanted if await self._exists(resource, namespace, name)}
        listed = await self._cluster.list_all(resource.path(namespace=namespace), metadata_only=True)
        return {str(item["metadata"]["name"]) for item in listed.items}

    async def _exists(self, resource: api_resources.Resource, namespace: str | None, name: str) -> bool:
        try:
            await self._cluster.get(resource.path(namespace=namespace, name=name), metadata_only=True)
        except api_errors.NotFound:
            return False
        return True


def _kinds_below(directory: pathlib.Path) -> frozenset[str]:
    kinds = set[str]()
    for path in directory.rglob("*.y*ml"):
        # What cannot be read is told elsewhere.
        with contextlib.suppress(OSError):
            kinds.update(_KIND.findall(plain_files.read_text(path, errors="replace")))
    return frozenset(kinds)
