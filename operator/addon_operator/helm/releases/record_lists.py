"""Lists of the records that Helm keeps of its releases: one request for all, or one by namespace.

Where releases are of modules that are gone, only the operator's memory says. Builds before there was one kept
an object for that beside the records: it is read as long as nothing has been taken over.
"""

import asyncio
import contextlib
import itertools
from collections.abc import Sequence
from typing import Final

from addon_operator.helm import helm_errors, memory, places
from addon_operator.helm.releases import record_format
from addon_operator.kernel import json_types
from addon_operator.kube import api_errors
from addon_operator.kube.client import client

OWNED_BY_HELM: Final = "owner=helm"
"""Selects Helm's records."""
NAMESPACES: Final = "addon-operator-release-namespaces"
"""What earlier builds remembered the namespaces of releases in."""
NAMESPACES_ANNOTATION: Final = "addon-operator.io/release-namespaces"
_MOST_AHEAD: Final = 2**31
"""Revisions after the last one of ours that others may have made."""


class RecordLists:
    """Lists records in the namespaces where releases are, by their metadata, and whether that is true."""

    def __init__(
        self,
        api: client.KubeClient,
        where: places.ReleaseLocations,
        resource: str,
        remembered: memory.Memory,
    ) -> None:
        """``resource``: ``secrets`` or ``configmaps``."""
        self._api = api
        self._places = where
        self._memory = remembered
        self._resource = resource
        self._is_secret = resource == "secrets"
        self._read_through: dict[str, set[tuple[str, str]]] = {}
        """Records of releases, by name and version, that say inside what they say outside."""
        self.unreadable: frozenset[str] = frozenset()
        """Namespaces whose releases may not be read."""

    def path(self, namespace: str) -> str:
        """Return where the records of a namespace are in the API."""
        return f"/api/v1/namespaces/{namespace}/{self._resource}"

    async def of_all(self) -> Sequence[json_types.KubernetesObject]:
        """Ask once, for the whole cluster if need be; by namespace where that is not allowed."""
        self.unreadable = frozenset()
        own = self.path(self._places.own_namespace)
        others = await self._others()
        if not others:
            return await self._list(own, OWNED_BY_HELM)
        try:
            return await self._list(f"/api/v1/{self._resource}", OWNED_BY_HELM)
        except api_errors.Forbidden:
            objects = await self._list(own, OWNED_BY_HELM)
        return [
            *objects,
            *itertools.chain.from_iterable(await asyncio.gather(*map(self._list_other, sorted(others)))),
        ]

    async def _others(self) -> frozenset[str]:
        """Return the namespaces, beside the operator's, where releases may be."""
        others = self._places.of_modules | {place.namespace for place in self._memory.locations}
        if not self._memory.taken_over:
            others |= await self._from_before()
        return others - {self._places.own_namespace}

    async def _from_before(self) -> frozenset[str]:
        """Return the namespaces that a build without a memory remembered."""
        path = f"{self.path(self._places.own_namespace)}/{NAMESPACES}"
        with contextlib.suppress(api_errors.NotFound, api_errors.Forbidden):
            metadata = (await self._api.get(path, metadata_only=True))["metadata"]
            text = (metadata.get("annotations") or {}).get(NAMESPACES_ANNOTATION, "")
            return frozenset(filter(None, text.split(",")))
        return frozenset()

    async def forget_namespaces(self) -> None:
        """Delete what a build without a memory remembered."""
        with contextlib.suppress(api_errors.NotFound, api_errors.Forbidden):
            await self._api.delete(f"{self.path(self._places.own_namespace)}/{NAMESPACES}")

    async def check_labels(self, name: str) -> None:
        """Raise :class:`.NotCalledError` if Helm would take records of a release for other revisions than we.

        Helm goes by what is in a record, and the operator by its labels and its name. Where only the operator
        writes records, Helm has written both.
        """
        if self.is_private(name):
            return
        place, right = self._places.of(name), set[tuple[str, str]]()
        known = self._read_through.get(name, right)
        for found in await self.of(name):
            metadata = found["metadata"]
            key = metadata["name"], metadata["resourceVersion"]
            if key not in known and not await self._is_as_labelled(place, metadata["name"]):
                raise helm_errors.NotCalledError(
                    name,
                    f"the record {place.namespace}/{key[0]} of release {name} is not what its name and "
                    "labels say, and Helm would go by what is in it: somebody else has made it; delete it",
                )
            right.add(key)
        self._read_through[name] = right

    async def _is_as_labelled(self, place: places.ReleaseLocation, object_name: str) -> bool:
        try:
            stored = await self._api.get(f"{self.path(place.namespace)}/{object_name}")
        except api_errors.NotFound:
            return True
        labels = stored["metadata"].get("labels") or {}
        label = labels.get("version", "")
        text = str((stored.get("data") or {}).get("release"))
        try:
            decoded = await asyncio.to_thread(record_format.decode, text, is_secret=self._is_secret)
        except record_format.UNREADABLE:
            return False
        number = decoded.get("version")
        status = (decoded.get("info") or {}).get("status")
        said = (decoded.get("name"), decoded.get("namespace"), str(number), status, object_name)
        named = f"sh.helm.release.v1.{place.name}.v{label}"
        wanted = (place.name, place.namespace, label, labels.get("status"), named)
        most = self._memory.of(place).last + _MOST_AHEAD
        return said == wanted and type(number) is int and 0 < number < most

    def is_private(self, name: str) -> bool:
        """Say whether nobody but the operator may write records of a release."""
        return self._is_secret and not self._places.is_elsewhere(name)

    async def of(self, name: str) -> Sequence[json_types.KubernetesObject]:
        """List the revisions of one release; raises :class:`.HelmError` if its namespace may not be read."""
        place = self._places.of(name)
        try:
            return await self._list(self.path(place.namespace), f"{OWNED_BY_HELM},name={place.name}")
        except api_errors.Forbidden as error:
            if place.namespace == self._places.own_namespace:
                raise
            raise helm_errors.HelmError(
                name,
                f"the releases of namespace {place.namespace} may not be read ({error}); give the operator "
                "a Role there, as releaseNamespaces of its chart does",
            ) from error

    async def _list_other(self, namespace: str) -> Sequence[json_types.KubernetesObject]:
        try:
            return await self._list(self.path(namespace), OWNED_BY_HELM)
        except api_errors.Forbidden:
            self.unreadable |= {namespace}
            return ()

    async def _list(self, path: str, selector: str) -> Sequence[json_types.KubernetesObject]:
        return (await self._api.list_all(path, label_selector=selector, metadata_only=True)).items
