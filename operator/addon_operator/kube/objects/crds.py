"""Install CustomResourceDefinitions by server-side apply, and wait until their kinds are served.

A version that a file no longer has but in which objects may still be stored (``status.storedVersions``) is
not simply dropped, which the API server would refuse: it is kept unserved, all objects are written once more,
so that they are stored in the new version, and then it goes.
Source: "Upgrade existing objects to a new stored version" of the Kubernetes documentation.
"""

import asyncio
import contextlib
import functools
import hashlib
import urllib.parse
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final

from addon_operator.aio import waiting
from addon_operator.documents import own_manifests
from addon_operator.kube.client import api_errors, client, paths
from addon_operator.kube.discovery import discovery
from addon_operator.modules import crd_changes, crd_files

ESTABLISH_SECONDS: Final = 30.0
"""How long the API server may take until it serves a new definition."""
_TRIES: Final = 5
_APPLIED: Final = "addon-operator.io/applied"
_DIGEST_LENGTH: Final = 40
_COLLECTION: Final = paths.of(crd_files.API_VERSION, crd_files.PLURAL)
_POLLS: Final = waiting.Backoff(0.05, 1.0)


class CrdError(api_errors.KubernetesError):
    """A definition was taken by the API server but is not served."""


def path_of(name: str) -> str:
    """Return the path of the definition of that name."""
    return paths.of(crd_files.API_VERSION, crd_files.PLURAL, name=name)


async def apply_own(kube: client.KubeClient, name: str) -> None:
    """Bring a definition of the operator's own (see :mod:`.own_manifests`) to this version.

    Raises :class:`.KubernetesError`: ``Forbidden`` without the right to do so.
    """
    await _apply(kube, await asyncio.to_thread(own_manifests.load, name))


async def _apply(kube: client.KubeClient, definition: Mapping[str, Any]) -> None:
    await kube.apply(path_of(definition["metadata"]["name"]), definition, force=True)


class CrdInstaller:
    """Brings definitions of the cluster to what files say; never removes one."""

    def __init__(
        self,
        kube: client.KubeClient,
        kinds: discovery.Catalog,
        labels: Mapping[str, str],
        time: waiting.Time,
    ) -> None:
        """``labels`` are put on every definition."""
        self._kube = kube
        self._kinds = kinds
        self._labels = labels
        self._time = time

    async def applied(self) -> dict[str, str]:
        """Return the digest of what was applied, by name, for all definitions that nobody changed since.

        One request for metadata alone; empty without the right to ask.
        """
        try:
            found = await self._kube.list_all(_COLLECTION, metadata_only=True)
        except (api_errors.Forbidden, api_errors.NotFound):
            return {}
        return dict(filter(None, map(_noted, found.items)))

    def digest(self, text: str) -> str:
        """Return the digest of a definition's text, and of what is put on each definition."""
        labels = "".join(f"{key}={value}," for key, value in sorted(self._labels.items()))
        return hashlib.sha256(f"{labels}\0{text}".encode()).hexdigest()[:_DIGEST_LENGTH]

    async def ensure(self, crd: crd_files.Crd, text: str = "") -> bool:
        """Apply the definition if the live one differs, and wait until it is served; whether it was written.

        ``text`` is what :meth:`applied` will know of then.
        Raises :class:`CrdError` when the API server does not come to serve it, and what
        :class:`.KubeClient` raises when it refuses it.
        """
        live = await self._read(crd)
        lost = crd_changes.lost_versions(crd, live)
        changed = await self._apply(crd, live, lost)
        await self._established(crd)
        if lost:
            await self._move_objects(crd)
            await self._apply(crd, await self._read(crd), ())
            await self._established(crd)
        if changed or lost:
            await self._discovered(crd)
        if text:
            await self._note(crd, self.digest(text))
        return changed or bool(lost)

    async def _note(self, crd: crd_files.Crd, digest: str) -> None:
        """Note down what was applied, with the generation, which a change by somebody else would raise."""
        live = await self._read(crd) or {}
        if dict(filter(None, [_noted(live)])).get(crd.name) == digest:
            return
        generation = live.get("metadata", {}).get("generation", 0)
        annotations = {_APPLIED: f"{digest}.{generation}"}
        with contextlib.suppress(api_errors.NotFound):
            await self._kube.patch(path_of(crd.name), {"metadata": {"annotations": annotations}})

    async def _read(self, crd: crd_files.Crd) -> client.Object | None:
        try:
            return await self._kube.get(path_of(crd.name))
        except api_errors.NotFound:
            return None

    async def _apply(self, crd: crd_files.Crd, live: client.Object | None, keeping: tuple[str, ...]) -> bool:
        for _ in range(_TRIES):
            wanted = crd_changes.desired(crd, self._labels, live)
            if live is not None:
                wanted = crd_changes.keeping(wanted, live, keeping)
                if not crd_changes.differs(wanted, live):
                    return False
                # The live conversion is applied as it was read: it must not have changed since.
                _metadata(wanted)["resourceVersion"] = live["metadata"]["resourceVersion"]
            try:
                await _apply(self._kube, wanted)
            except api_errors.Conflict:
                live = await self._read(crd)
            else:
                self._kinds.forget()
                return True
        raise CrdError(f"{crd.name} changes faster than it can be written; is somebody else at work on it?")

    async def _established(self, crd: crd_files.Crd) -> None:
        async def is_established() -> bool:
            progress = crd_changes.progress(await self._read(crd) or {})
            if progress.phase is crd_changes.CrdPhase.REFUSED:
                raise CrdError(f"the API server does not serve {crd.name}: {progress.message}")
            return progress.phase is crd_changes.CrdPhase.ESTABLISHED

        await self._until(is_established, f"{crd.name} is not Established after {ESTABLISH_SECONDS:.0f} s")

    async def _discovered(self, crd: crd_files.Crd) -> None:
        """Wait until discovery lists the kind: Helm and hooks look it up there."""
        for version in crd_changes.served_versions(crd):
            await self._until(
                functools.partial(self._is_known, crd, version),
                f"{crd.name} is Established, but discovery does not list {version}",
            )

    async def _until(self, done: Callable[[], Awaitable[bool]], problem: str) -> None:
        deadline = self._time.monotonic() + ESTABLISH_SECONDS
        for pause in _POLLS.pauses():
            if await done():
                return
            if self._time.monotonic() >= deadline:
                raise CrdError(problem)
            await self._time.sleep(pause)

    async def _is_known(self, crd: crd_files.Crd, version: str) -> bool:
        try:
            await self._kinds.find(str(_names(crd).get("kind")), f"{_group(crd)}/{version}")
        except discovery.NoSuchKind:
            self._kinds.forget()
            return False
        return True

    async def _move_objects(self, crd: crd_files.Crd) -> None:
        """Write every object once more, so that it is stored in the version that the file wants."""
        version = crd_changes.storage_version(crd)
        collection = paths.of(f"{_group(crd)}/{version}", str(_names(crd).get("plural")))
        for found in (await self._kube.list_all(collection)).items:
            await self._rewrite(collection, found)
        status = {"status": {"storedVersions": [version]}}
        await self._kube.patch(f"{path_of(crd.name)}/status", status)

    async def _rewrite(self, collection: str, found: client.Object) -> None:
        metadata = found["metadata"]
        path = collection
        if namespace := metadata.get("namespace"):
            root, _, plural = collection.rpartition("/")
            path = f"{root}/namespaces/{urllib.parse.quote(namespace)}/{plural}"
        try:
            await self._kube.replace(f"{path}/{urllib.parse.quote(metadata['name'], safe=':')}", found)
        except (api_errors.Conflict, api_errors.NotFound):
            # Whoever wrote it meanwhile stored it in the new version.
            return


def _noted(found: client.Object) -> tuple[str, str] | None:
    metadata = found.get("metadata") or {}
    digest, _, generation = (metadata.get("annotations") or {}).get(_APPLIED, "").partition(".")
    if not digest or generation != str(metadata.get("generation")) or "deletionTimestamp" in metadata:
        return None
    return metadata["name"], digest


def _metadata(wanted: Mapping[str, Any]) -> dict[str, Any]:
    metadata: dict[str, Any] = wanted["metadata"]
    return metadata


def _group(crd: crd_files.Crd) -> str:
    return str(crd.spec.get("group"))


def _names(crd: crd_files.Crd) -> Mapping[str, Any]:
    names = crd.spec.get("names")
    return names if isinstance(names, dict) else {}
