"""The records that Helm keeps of its releases: Secrets, or ConfigMaps with ``HELM_DRIVER=configmap``.

Only their metadata is read, in one list for all releases: name, revision and status are labels, and so are
the checksums that this operator adds.
"""

import asyncio
import base64
import binascii
import contextlib
import dataclasses
import gzip
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, Protocol

import orjson

from addon_operator.helm import helm_errors
from addon_operator.kernel import errors as kernel_errors
from addon_operator.kernel import json_types
from addon_operator.kube.client import api_errors
from addon_operator.modules import manifests, release, release_objects

_OWNED_BY_HELM: Final = "owner=helm"
_SERVER_SIDE: Final = "ssa"
_MAX_CONTENT: Final = 64 * 1024 * 1024
"""How many bytes a record may unpack to: those that a manifest may have."""
_RESOURCES: Final[Mapping[str, str]] = {
    "": "secrets",
    "secret": "secrets",
    "secrets": "secrets",
    "configmap": "configmaps",
    "configmaps": "configmaps",
}


class Listed(Protocol):
    """Objects of a collection."""

    @property
    def items(self) -> Sequence[json_types.KubernetesObject]:
        """All of them, whatever the pages."""
        ...


class RecordApi(Protocol):
    """What is needed of :class:`.KubeClient`, and of fakes in its place."""

    async def list_all(self, path: str, *, label_selector: str, metadata_only: bool) -> Listed:
        """All objects of the collection that the selector takes."""
        ...

    async def get(self, path: str) -> json_types.KubernetesObject:
        """One object, whole."""
        ...

    async def patch(self, path: str, patch: Mapping[str, Any]) -> json_types.KubernetesObject:
        """Change an object with a merge patch; a ``resourceVersion`` in it is a precondition."""
        ...

    async def delete(self, path: str, *, resource_version: str) -> object:
        """Delete an object if it still has this version."""
        ...


@dataclasses.dataclass(frozen=True, slots=True)
class Record:
    """The record of a release's last revision."""

    revision: release.Revision
    object_name: str
    resource_version: str


@dataclasses.dataclass(frozen=True, slots=True)
class Content:
    """What Helm keeps of a revision."""

    manifest: str
    hooks: tuple[str, ...]
    """Manifests of Helm's hooks."""
    is_server_side: bool
    """Whether the objects were made by server-side apply."""
    description: str
    """How the revision ended: for a failed one, Helm's error."""


class ReleaseRecords:
    """The records of all releases of a namespace.

    ``driver`` is Helm's own setting ``HELM_DRIVER``; raises :class:`kernel_errors.ConfigurationError` for a
    storage that other processes cannot read.
    """

    def __init__(self, api: RecordApi, namespace: str, driver: str = "") -> None:
        self._api = api
        self._resource = _resource(driver)
        self._path = f"/api/v1/namespaces/{namespace}/{self._resource}"

    async def read_all(self) -> dict[str, Record]:
        """The last revision of every release, by the release's name; one list request."""
        return _last_revisions(await self._list(_OWNED_BY_HELM))

    async def read(self, name: str) -> Record | None:
        """The last revision of one release; ``None`` if there is none."""
        selector = f"{_OWNED_BY_HELM},name={name}"
        return _last_revisions(await self._list(selector)).get(name)

    async def add_labels(self, record: Record, labels: Mapping[str, str]) -> Record | None:
        """Add labels to a revision, and give its record as it is then.

        A record that is gone or was touched meanwhile is left alone, and ``None`` is given.
        """
        metadata = {"labels": dict(labels), "resourceVersion": record.resource_version}
        with contextlib.suppress(api_errors.NotFound, api_errors.Conflict):
            return _record(await self._api.patch(self._object_path(record), {"metadata": metadata}))
        return None

    async def drop(self, record: Record) -> None:
        """Delete the record of a revision, so that the one before it is the last.

        A record that is gone or was touched meanwhile is left alone: look again.
        """
        with contextlib.suppress(api_errors.NotFound, api_errors.Conflict):
            await self._api.delete(self._object_path(record), resource_version=record.resource_version)

    async def spare(self, record: Record, is_spared: Callable[[manifests.ManifestResource], bool]) -> None:
        """Take objects out of what Helm knows of a revision: it will not delete them, whatever it does next.

        The revision's checksums go, too: it is no longer what was rendered.
        Raises :class:`helm_errors.ReleaseRecordError` when it cannot be decoded, and what the client raises.
        """
        stored = await self._api.get(self._object_path(record))
        with self._telling(record):
            text, is_secret = stored.get("data", {})["release"], self._resource == "secrets"
            changed = await asyncio.to_thread(_without, text, is_spared, is_secret=is_secret)
        checksums = dict.fromkeys((release.INPUTS_LABEL, release.MANIFEST_LABEL))
        metadata = {"resourceVersion": stored["metadata"]["resourceVersion"], "labels": checksums}
        await self._api.patch(self._object_path(record), {"metadata": metadata, "data": {"release": changed}})

    async def read_deployed(self, name: str) -> tuple[Record, Record] | None:
        """The last deployed revision of a release, and its last one; ``None`` if none is deployed."""
        found = await self._list(f"{_OWNED_BY_HELM},name={name}")
        last = _last_revisions(found).get(name)
        records = [record for record in map(_record, found) if record is not None]
        deployed = [each for each in records if each.revision.status == release.DEPLOYED]
        if last is None or not deployed:
            return None
        return max(deployed, key=lambda record: record.revision.number), last

    async def read_before(self, record: Record) -> Record | None:
        """The revision before this one; ``None`` if it is the first that is kept."""
        revision = record.revision
        found = await self._list(f"{_OWNED_BY_HELM},name={revision.release}")
        older = (each for each in found if _number(each) < revision.number)
        return _last_revisions(older).get(revision.release)

    async def manifest(self, record: Record, *, with_hooks: bool = False) -> str:
        """What Helm applied with this revision; with the manifests of its hooks behind it if they are wanted.

        Raises :class:`helm_errors.ReleaseRecordError` when the record cannot be decoded.
        """
        content = await self.content(record)
        return content.manifest + "".join(f"\n---\n{hook}" for hook in content.hooks if with_hooks)

    async def content(self, record: Record) -> Content:
        """What a record holds; raises :class:`helm_errors.ReleaseRecordError` when it cannot be decoded."""
        stored = await self._api.get(self._object_path(record))
        with self._telling(record):
            # Unpacking a megabyte takes tens of milliseconds.
            text, is_secret = stored.get("data", {})["release"], self._resource == "secrets"
            return await asyncio.to_thread(_decode, text, is_secret=is_secret)

    @contextlib.contextmanager
    def _telling(self, record: Record) -> Iterator[None]:
        try:
            yield
        except (KeyError, TypeError, ValueError, OSError, EOFError, zlib.error) as error:
            raise helm_errors.ReleaseRecordError(
                f"the record {record.object_name} of release {record.revision.release} cannot be decoded "
                f"({type(error).__name__}); 'helm get manifest {record.revision.release}' should fail as well"
            ) from error

    async def _list(self, selector: str) -> Sequence[json_types.KubernetesObject]:
        found = await self._api.list_all(self._path, label_selector=selector, metadata_only=True)
        return found.items

    def _object_path(self, record: Record) -> str:
        return f"{self._path}/{record.object_name}"


def _resource(driver: str) -> str:
    if driver not in _RESOURCES:
        raise kernel_errors.ConfigurationError(
            f"HELM_DRIVER is {driver!r}, where the operator cannot read releases; use 'secret' or 'configmap'"
        )
    return _RESOURCES[driver]


def _last_revisions(objects: Iterable[json_types.KubernetesObject]) -> dict[str, Record]:
    last: dict[str, Record] = {}
    for record in filter(None, map(_record, objects)):
        known = last.get(record.revision.release)
        if known is None or known.revision.number < record.revision.number:
            last[record.revision.release] = record
    return last


def _record(found: json_types.KubernetesObject) -> Record | None:
    """The record in an object's metadata; ``None`` for an object that only looks like one of Helm's."""
    metadata: Mapping[str, Any] = found.get("metadata") or {}
    labels: Mapping[str, str] = metadata.get("labels") or {}
    name, number = labels.get("name"), labels.get("version", "")
    if not name or not number.isdecimal():
        return None
    revision = release.Revision(name, int(number), labels.get("status", "unknown"), dict(labels))
    return Record(revision, metadata["name"], metadata.get("resourceVersion", ""))


def _number(found: json_types.KubernetesObject) -> int:
    record = _record(found)
    return record.revision.number if record else 0


def _without(stored: str, is_spared: Callable[[manifests.ManifestResource], bool], *, is_secret: bool) -> str:
    """A release as it is stored, without some of its objects."""
    decoded = _decoded(stored, is_secret=is_secret)
    manifest = release_objects.without(str(decoded.get("manifest") or ""), is_spared)
    content = base64.b64encode(gzip.compress(orjson.dumps({**decoded, "manifest": manifest})))
    return (base64.b64encode(content) if is_secret else content).decode()


def _decode(stored: str, *, is_secret: bool) -> Content:
    decoded = _decoded(stored, is_secret=is_secret)
    # Helm leaves empty fields out: a chart whose templates are all switched off has no manifest.
    manifest = decoded.get("manifest", "")
    if not isinstance(manifest, str):
        raise binascii.Error("the manifest is no text")
    return Content(
        manifest,
        tuple(str(hook.get("manifest") or "") for hook in decoded.get("hooks") or ()),
        is_server_side=decoded.get("apply_method") == _SERVER_SIDE,
        description=str((decoded.get("info") or {}).get("description") or ""),
    )


def _decoded(stored: str, *, is_secret: bool) -> Mapping[str, Any]:
    """A release in Helm's storage format: base64 of gzipped JSON, and base64 again in a Secret."""
    content = base64.b64decode(stored, validate=True)
    if is_secret:
        content = base64.b64decode(content, validate=True)
    if content[:2] == b"\x1f\x8b":
        content = _unpacked(content)
    decoded: Mapping[str, Any] | None = orjson.loads(content)
    if not isinstance(decoded, dict):
        raise binascii.Error("the release is no object")
    return decoded


def _unpacked(packed: bytes) -> bytes:
    """What was packed, as far as a release may need; a few packed bytes can be gigabytes of zeros."""
    unpack = zlib.decompressobj(wbits=zlib.MAX_WBITS | 16)
    content = unpack.decompress(packed, _MAX_CONTENT)
    if not unpack.eof:
        raise ValueError(f"it is cut off, or more than {_MAX_CONTENT // 1024 // 1024} MiB")
    return content
