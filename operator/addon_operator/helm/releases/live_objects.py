"""The objects of a manifest in the cluster: whose they are, and what the API server says to changes."""

import asyncio
import contextlib
import copy
from collections.abc import Collection, Mapping, Sequence
from typing import Any, Final

import msgspec
from msgspec import structs

from addon_operator.aio import waiting
from addon_operator.documents import json_pointers, manifest_diff
from addon_operator.helm import messages, places
from addon_operator.helm.releases import record_format
from addon_operator.kernel import names
from addon_operator.kube import api_errors, paths
from addon_operator.kube.client import client, connection, retries
from addon_operator.kube.discovery import api_resources, discovery
from addon_operator.modules import crd_files, keeping, manifests
from addon_operator.modules.drift import corrections, field_owners, not_ours

_FIELD_MANAGER: Final = "helm"
# What server-side apply cannot read as the kind's type is, for the API server, an error of its own.
_REFUSALS: Final = frozenset({400, 403, 422, 500})
_NOT_FOUND: Final = 404
_AT_ONCE: Final = 8
"""So many objects of one release are read at the same time."""
_IN_EVERY_NAMESPACE: Final = (("ConfigMap", "kube-root-ca.crt"), ("ServiceAccount", "default"))
_UNCOUNTED: Final = ("Event", "Endpoints")
"""Kinds whose objects are no reason to keep a namespace."""
_AUTOSCALERS: Final = (
    ("HorizontalPodAutoscaler", "autoscaling/v2"),
    ("ScaledObject", "keda.sh/v1alpha1"),
)
_LINES: Final = "5"
_LONGEST: Final = 500
"""Characters of what a pod wrote last."""
_UNTYPED: Final = "failed to create typed patch object"


class Foreign(msgspec.Struct, frozen=True):
    """An object that is in the cluster already, and not as a part of the release."""

    resource: manifests.ManifestResource
    name: str
    """As a person would name it, with whose it is."""
    is_labelled: bool
    """Whether Helm, or an addon-operator, put its label on it."""
    is_kept: bool = False
    """Whether an operator kept it when its release went or lost it."""
    is_own: bool = False
    """Whether it bears the marks of the release: Helm takes it for a part of it."""
    is_by_hook: bool = False
    """Whether it was made as one of Helm's hooks, of which nobody knows the release."""
    of: places.ReleaseLocation | None = None
    """The release that it bears the marks of."""


class Leaving(msgspec.Struct, frozen=True):
    """An object that is deleted, and still there."""

    resource: manifests.ManifestResource
    finalizers: tuple[str, ...]
    """What it waits for."""

    def __str__(self) -> str:
        """Name it for a person, with what it waits for."""
        return f"{self.resource} ({', '.join(self.finalizers) or 'its end'})"


class LiveObjects:
    """Asks about the objects of releases, and changes those that failed tries of a release made."""

    def __init__(
        self,
        cluster: client.KubeClient,
        kinds: discovery.Catalog,
        where: places.ReleaseLocations,
        labels: Mapping[str, str],
        sleep: waiting.Sleep = asyncio.sleep,
    ) -> None:
        """``labels`` are those that an addon-operator gives."""
        self._sleep = sleep
        self._cluster = cluster
        self._kinds = kinds
        self._places = where
        self._labels = labels

    async def foreign(self, module: names.ModuleName, manifest: str, before: str = "") -> tuple[Foreign, ...]:
        """Return a manifest's objects that exist and are not the release's; what is unreadable is left out.

        ``before`` is what the release has, or made in tries that failed: that is the release's already.
        """
        foreign: list[Foreign] = []
        place = self._places.of(module)
        for resource in await asyncio.to_thread(manifests.dropped, manifest, before, place.namespace):
            try:
                live = await self._cluster.get(
                    await self._path(resource, place.namespace), metadata_only=True
                )
            except api_errors.KubernetesError:
                continue
            labels = (live.get("metadata") or {}).get("labels") or {}
            owner, is_helms = keeping.owner(live), labels.get(keeping.MANAGED_BY) == "Helm"
            is_own = is_helms and owner == (place.name, place.namespace)
            whose = f" of release {owner[1]}/{owner[0]}" if is_helms and owner[0] else ""
            is_ours = any(labels.get(key) == value for key, value in self._labels.items())
            is_kept = keeping.is_marked(live)
            of = places.ReleaseLocation(str(owner[1]), str(owner[0])) if whose else None
            name = f"{resource}{whose}"
            is_labelled, is_by_hook = is_helms or is_ours, manifests.is_hook(live)
            foreign.append(Foreign(resource, name, is_labelled, is_kept, is_own, is_by_hook, of))
        return tuple(foreign)

    async def get(
        self, module: names.ModuleName, resource: manifests.ManifestResource
    ) -> tuple[manifests.Object, str]:
        """Return an object of a module's release, and its namespace; raises what the client raises."""
        path = await self._path(resource, self._places.of(module).namespace)
        found = await self._cluster.get(path)
        return found, str((found.get("metadata") or {}).get("namespace") or "")

    async def delete(self, module: names.ModuleName, resource: manifests.ManifestResource) -> None:
        """Delete an object of the release; whether it may be deleted is decided by :mod:`.keeper` before.

        What is not there or not the release's is left alone. Raises what the client raises.
        """
        if (found := await self._own(module, resource)) is not None:
            with contextlib.suppress(api_errors.NotFound):
                await self._cluster.delete(found[0], uid=found[1]["metadata"].get("uid"))

    async def remove(
        self, module: names.ModuleName, resource: manifests.ManifestResource, live: manifests.Object
    ) -> None:
        """Delete an object as it was seen; one that is gone, or another one by now, is fine.

        Raises what the client raises.
        """
        path = await self._path(resource, self._places.of(module).namespace)
        with contextlib.suppress(api_errors.NotFound, api_errors.Conflict):
            await self._cluster.delete(path, uid=live["metadata"].get("uid"))

    async def versions(self, resources: Collection[manifests.ManifestResource]) -> dict[discovery.Kind, str]:
        """Return the version in which the cluster serves each kind of these objects now.

        What has none is left out. Raises what the client raises.
        """
        return await self._kinds.readable(discovery.Kind(each.api_version, each.kind) for each in resources)

    async def gone(self, resources: Collection[manifests.ManifestResource]) -> frozenset[discovery.Kind]:
        """Return the kinds of these objects that are gone, as a second look has found, too.

        Raises what the client raises.
        """
        return await self._kinds.gone(discovery.Kind(each.api_version, each.kind) for each in resources)

    async def schema_of(self, api_version: str, kind: str) -> Mapping[str, Any] | None:
        """Return the schema of a custom kind; ``None`` if it is none, or nobody may read it."""
        try:
            found = await self._kinds.find(kind, api_version)
            name = f"{found.plural}.{api_version.partition('/')[0]}"
            body = await self._cluster.get(
                paths.of(crd_files.API_VERSION, "customresourcedefinitions", name=name)
            )
        except api_errors.KubernetesError:
            return None
        for version in (body.get("spec") or {}).get("versions") or ():
            if version["name"] == api_version.rpartition("/")[2]:
                schema: Mapping[str, Any] | None = (version.get("schema") or {}).get("openAPIV3Schema")
                return schema
        return None

    async def metadata(
        self, module: names.ModuleName, resources: Collection[manifests.ManifestResource]
    ) -> dict[manifests.ManifestResource, manifests.Object | None]:
        """Return the metadata of objects; ``None`` for what is not there, nothing in what may not be read.

        Raises what the client raises otherwise.
        """
        turns = asyncio.Semaphore(_AT_ONCE)

        async def read(resource: manifests.ManifestResource) -> manifests.Object | None:
            async with turns:
                try:
                    path = await self._path(resource, self._places.of(module).namespace)
                    return await self._cluster.get(path, metadata_only=True)
                except (api_errors.NotFound, discovery.NoSuchKind):
                    return None
                except api_errors.Forbidden:
                    return {}

        return dict(zip(resources, await asyncio.gather(*map(read, resources)), strict=True))

    async def leaving(
        self, module: names.ModuleName, resources: Collection[manifests.ManifestResource]
    ) -> tuple[Leaving, ...]:
        """Return those of the objects that are deleted and still there; raises as :meth:`metadata`."""
        live = await self.metadata(module, resources)
        return tuple(
            Leaving(each, tuple(found["metadata"].get("finalizers") or ()))
            for each, found in live.items()
            if found and found["metadata"].get("deletionTimestamp")
        )

    async def patch(
        self, module: names.ModuleName, resource: manifests.ManifestResource, patch: Mapping[str, Any]
    ) -> None:
        """Change the metadata of an object by a merge patch; one that is gone is fine.

        Raises what the client raises otherwise.
        """
        with contextlib.suppress(api_errors.NotFound, discovery.NoSuchKind):
            await self._cluster.patch(await self._path(resource, self._places.of(module).namespace), patch)

    async def replace(
        self, module: names.ModuleName, resource: manifests.ManifestResource, body: manifests.Object
    ) -> None:
        """Write an object as it was; raises what the client raises."""
        await self._cluster.replace(await self._path(resource, self._places.of(module).namespace), body)

    async def take_over(
        self, module: names.ModuleName, resource: manifests.ManifestResource, body: manifests.Object
    ) -> None:
        """Have an object be what its release says, which another release had before.

        What Helm made of it for that one goes. Raises what the client raises.
        """
        place = self._places.of(module)
        path = await self._path(resource, place.namespace)
        there = await retries.until_written(lambda: self._as_applied(path), self._sleep)
        around = not_ours.Surroundings(place.namespace)
        if json_pointers.find(there, not_ours.REPLICAS) != json_pointers.find(body, not_ours.REPLICAS):
            scaled = await self.scaled([resource.namespace or place.namespace])
            around = structs.replace(around, scaled=scaled)
        body = copy.deepcopy(body)
        for each in await asyncio.to_thread(
            lambda: list(corrections.live_values(None, None, body, there, around))
        ):
            manifests.put(body, each.path, each.live)
        owned = manifests.owned(body, place.name, place.namespace)
        await self._cluster.apply(path, owned, field_manager=_FIELD_MANAGER, force=True)

    async def _as_applied(self, path: str) -> manifests.Object:
        """Have what patches wrote of an object be as applied; returns it as it was.

        Raises :class:`.Conflict` if others wrote it meanwhile, as its controller does.
        """
        there = await self._cluster.get(path)
        entries = there["metadata"].get("managedFields") or []
        if any(map(_is_by_patches, entries)):
            merged = field_owners.as_applied(entries, _is_by_patches)
            version = there["metadata"]["resourceVersion"]
            operations = [
                {"op": "replace", "path": "/metadata/resourceVersion", "value": version},
                {"op": "replace", "path": "/metadata/managedFields", "value": merged},
            ]
            await self._cluster.patch(
                path, operations, client.PatchType.JSON, query={"fieldManager": _FIELD_MANAGER}
            )
        return there

    async def pods_of(self, job: manifests.Object, most: int | None = None) -> list[manifests.Object]:
        """Return the pods of a Job, the first ``most`` of them; raises what the client raises."""
        metadata = job["metadata"]
        path = paths.of("v1", "pods", namespace=metadata["namespace"])
        selector = f"job-name={metadata['name']}"
        found: list[manifests.Object] = []
        async for page in self._cluster.pages(path, label_selector=selector):
            found += page
            if most is not None and len(found) >= most:
                break
        return found[:most]

    async def last_lines(self, pod: manifests.Object) -> str:
        """Return what a pod wrote last, on one line; empty if nobody knows."""
        metadata = pod["metadata"]
        path = paths.of("v1", "pods", namespace=metadata["namespace"], name=metadata["name"]) + "/log"
        try:
            answer = await self._cluster.request(connection.Request("GET", path, {"tailLines": _LINES}))
        except api_errors.KubernetesError:
            return ""
        return " | ".join(answer.body.decode("utf-8", "replace").split("\n")).strip(" |")[-_LONGEST:]

    async def scaled(self, namespaces: Collection[str]) -> frozenset[not_ours.Target]:
        """Return what autoscalers in these namespaces scale; raises what the client raises."""
        found: set[not_ours.Target] = set()
        for kind, api_version in _AUTOSCALERS:
            with contextlib.suppress(discovery.NoSuchKind, api_errors.Forbidden, api_errors.NotFound):
                resource = await self._kinds.find(kind, api_version)
                for namespace in namespaces:
                    items = (await self._cluster.list_all(resource.path(namespace=namespace))).items
                    bodies = [{**each, "kind": kind} for each in items]
                    found.update(not_ours.scaled(bodies, namespace))
        return frozenset(found)

    async def claims(self, namespace: str) -> list[manifests.Object]:
        """Return the metadata of the claims in a namespace; raises what the client raises."""
        path = paths.of("v1", "persistentvolumeclaims", namespace=namespace)
        return (await self._cluster.list_all(path, metadata_only=True)).items

    async def count(self, body: Mapping[str, Any]) -> int | None:
        """Return how many objects a CustomResourceDefinition has; ``None`` if nobody may count them."""
        spec = body.get("spec") or {}
        served = [each["name"] for each in spec.get("versions") or () if each.get("served") is not False]
        try:
            return await self._total(paths.of(f"{spec['group']}/{served[0]}", spec["names"]["plural"]))
        except (KeyError, IndexError, TypeError):
            return None

    async def count_inside(self, namespace: str) -> int | None:
        """Return how many objects are in a namespace; ``None`` if nobody may count all that is there.

        Events, and what every namespace has, do not count. Raises what the client raises otherwise.
        """
        kinds, is_complete = await self._kinds_inside()
        turns = asyncio.Semaphore(_AT_ONCE)

        async def count(kind: api_resources.Resource) -> int | None:
            async with turns:
                total = await self._total(kind.path(namespace=namespace))
            usual = sum(kind.kind == each for each, _ in _IN_EVERY_NAMESPACE)
            return None if total is None else max(0, total - usual)

        counts = await asyncio.gather(*map(count, kinds))
        known = [each for each in counts if each is not None]
        return sum(known) if is_complete and len(known) == len(counts) else None

    async def _total(self, path: str) -> int | None:
        """Return how many objects a list has, of which one is read; ``None`` if nobody may read it."""
        try:
            page = await self._cluster.get(path, query={"limit": "1"})
        except api_errors.KubernetesError:
            return None
        more = (page.get("metadata") or {}).get("remainingItemCount") or 0
        return len(page.get("items") or ()) + int(more)

    async def _kinds_inside(self) -> tuple[list[api_resources.Resource], bool]:
        """Return the kinds of which there may be objects in namespaces, and whether these are all."""
        discovered = await self._kinds.look()
        kinds = {
            (each.api_version.rpartition("/")[0], each.plural): each
            for group in reversed(discovered.groups)
            for each in group.resources
            if each.namespaced and {"list", "delete"} <= each.verbs and each.kind not in _UNCOUNTED
        }
        return [*kinds.values()], not discovered.failed

    async def has_more(self, place: places.ReleaseLocation, namespace: str, own: Collection[str]) -> bool:
        """Say whether there is more in a namespace than objects with these uids, what these made, what every
        namespace has, and the records of the release; what may not be listed may be there.

        Raises what the client raises otherwise.
        """
        found: list[tuple[str, manifests.Object]] = []
        turns = asyncio.Semaphore(_AT_ONCE)

        async def read(kind: api_resources.Resource) -> None:
            async with turns:
                items = await self._cluster.list_all(kind.path(namespace=namespace), metadata_only=True)
                found.extend((kind.kind, each["metadata"]) for each in items.items)

        kinds, is_complete = await self._kinds_inside()
        try:
            await asyncio.gather(*map(read, kinds))
        except api_errors.ApiError:
            return True
        counted = [each for each in found if not _is_usual(*each, place)]
        theirs = set(own)
        while made := [each for each in counted if each[1]["uid"] in theirs or _owners(each[1]) & theirs]:
            theirs |= {metadata["uid"] for _, metadata in made}
            counted = [each for each in counted if each not in made]
        return bool(counted) or not is_complete

    async def merge(
        self, module: names.ModuleName, resource: manifests.ManifestResource, patch: Mapping[str, Any]
    ) -> None:
        """Change an object of the release by a merge patch, as Helm would.

        What is not there or not the release's is left alone. Raises what the client raises.
        """
        if (found := await self._own(module, resource)) is not None:
            with contextlib.suppress(api_errors.NotFound):
                await self._cluster.patch(found[0], patch, query={"fieldManager": _FIELD_MANAGER})

    async def _own(
        self, module: names.ModuleName, resource: manifests.ManifestResource
    ) -> tuple[str, manifests.Object] | None:
        """Return where an object is, and its metadata; ``None`` if it is not there or not the release's."""
        place = self._places.of(module)
        try:
            path = await self._path(resource, place.namespace)
            live = await self._cluster.get(path, metadata_only=True)
        except (api_errors.NotFound, discovery.NoSuchKind):
            return None
        return (path, live) if keeping.is_own(live, place.name, place.namespace) else None

    async def would_take(
        self,
        module: names.ModuleName,
        resource: manifests.ManifestResource,
        operations: Sequence[Mapping[str, Any]],
    ) -> bool:
        """Return whether the API server would take a JSON patch of an object."""
        try:
            await self.change(module, resource, operations, dryRun="All")
        except api_errors.KubernetesError:
            return False
        return True

    async def change(
        self,
        module: names.ModuleName,
        resource: manifests.ManifestResource,
        operations: Sequence[Mapping[str, Any]],
        **query: str,
    ) -> None:
        """Change an object by a JSON patch, as Helm would; raises what the client raises."""
        path = await self._path(resource, self._places.of(module).namespace)
        given = {"fieldManager": _FIELD_MANAGER, **query}
        await self._cluster.patch(path, list(operations), client.PatchType.JSON, query=given)

    async def has_namespace(self, module: names.ModuleName) -> bool:
        """Return whether the namespace of a module's release is known to be there, and stays."""
        path = f"/api/v1/namespaces/{self._places.of(module).namespace}"
        try:
            found = await self._cluster.get(path, metadata_only=True)
        except api_errors.KubernetesError:
            return False
        return "deletionTimestamp" not in found["metadata"]

    async def standing_refusal(
        self, module: names.ModuleName, failed: record_format.Content, manifest: str
    ) -> api_errors.ApiError | None:
        """Say why the API server would refuse a manifest just as when a revision failed; else ``None``.

        Only objects that the failed revision's error names are asked for, by a dry run.
        """
        namespace = self._places.of(module).namespace
        for document in manifest_diff.objects(manifest_diff.parse(manifest)):
            if document.key.name and _is_meant(document.key, namespace, failed.description):
                refusal = await self._refusal(document, namespace, is_server_side=failed.is_server_side)
                if refusal is not None and _is_the_same(refusal, document.key.name, failed.description):
                    return refusal
        return None

    async def _refusal(
        self, document: manifest_diff.ManifestDocument, namespace: str, *, is_server_side: bool
    ) -> api_errors.ApiError | None:
        for resource, body in manifests.find_objects(document.text, lambda _: True):
            try:
                await self._try(await self._path(resource, namespace), body, is_server_side=is_server_side)
            except api_errors.AlreadyExists:
                continue
            except api_errors.ApiError as error:
                return error if error.status in _REFUSALS or _lacks_namespace(error) else None
            except api_errors.KubernetesError:
                return None
        return None

    async def _try(self, path: str, body: manifests.Object, *, is_server_side: bool) -> None:
        query = {"fieldManager": _FIELD_MANAGER, "dryRun": "All"}
        if is_server_side:
            await self._cluster.patch(path, body, client.PatchType.APPLY, query=query | {"force": "true"})
            return
        try:
            await self._cluster.patch(path, body, client.PatchType.MERGE, query=query)
        except api_errors.NotFound:
            await self._cluster.create(path.rpartition("/")[0], body, query=query)

    async def _path(self, resource: manifests.ManifestResource, default: str) -> str:
        try:
            kind = await self._kinds.find(resource.kind, resource.api_version)
        except discovery.NoSuchKind as error:
            if not error.of_the_group:
                raise
            kind = await self._kinds.find(resource.kind, error.of_the_group[0])
        namespace = (resource.namespace or default) if kind.namespaced else None
        return kind.path(namespace=namespace, name=resource.name)


def _is_usual(kind: str, metadata: manifests.Object, place: places.ReleaseLocation) -> bool:
    """Say whether an object does not count: every namespace has it, or it is a record of the release."""
    if (kind, metadata["name"]) in _IN_EVERY_NAMESPACE:
        return True
    labels, namespace = metadata.get("labels") or {}, metadata.get("namespace")
    of_helm = (labels.get("owner"), labels.get("name"), namespace) == ("helm", place.name, place.namespace)
    return of_helm and kind in ("Secret", "ConfigMap")


def _owners(metadata: manifests.Object) -> set[str]:
    return {str(each.get("uid")) for each in metadata.get("ownerReferences") or ()}


def _is_by_patches(entry: Mapping[str, Any]) -> bool:
    """Say whether these are the fields that Helm, or this operator for it, wrote with patches."""
    is_update = entry.get("operation") == "Update" and not entry.get("subresource")
    return entry.get("manager") == _FIELD_MANAGER and is_update


def _lacks_namespace(error: api_errors.ApiError) -> bool:
    return error.status == _NOT_FOUND and messages.missing_namespace(error.message) != ""


def _is_meant(key: manifest_diff.ManifestKey, default: str, description: str) -> bool:
    """Return whether an error is about an object.

    Of one that cannot be read it names the kind only, of one in a namespace that is missing only that.
    """
    name, missing = key.name, messages.missing_namespace(description)
    return (
        (missing != "" and missing == (key.namespace or default))
        or f'"{name}"' in description
        or f"/{name} " in description
        or f"cannot be handled as a {key.kind}:" in description
    )


def _is_the_same(refusal: api_errors.ApiError, name: str, description: str) -> bool:
    # Neither form of a patch that cannot be read has the name in the words of the API server, only in Helm's.
    is_unread = f'cannot patch "{name}" ' in description and ' "" is invalid: patch: ' in description
    is_invalid = f'"{name}" is invalid' in description or is_unread
    is_untyped = _UNTYPED in refusal.message and f"/{name} " in description and _UNTYPED in description
    return (refusal.status == 422 and is_invalid) or is_untyped or refusal.message in description
