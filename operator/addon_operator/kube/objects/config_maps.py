"""One ConfigMap: read, and changed without losing what others write at the same time."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from typing import Any, Final

import msgspec

from addon_operator.aio import waiting
from addon_operator.kernel import errors
from addon_operator.kube import api_errors, paths
from addon_operator.kube.client import client, retries

# By this the webhook that checks edits recognises the operator's own writes, which it lets pass.
_AS_OPERATOR: Final = {"fieldManager": client.FIELD_MANAGER}

Change = Callable[[Mapping[str, str]], Awaitable[Mapping[str, str]]]
"""Gives the data as it should be from the data as it is; called again after a conflict."""


class Snapshot(msgspec.Struct, frozen=True):
    """The ConfigMap at one moment."""

    data: Mapping[str, str]
    resource_version: str
    """Empty for a ConfigMap that does not exist."""
    uid: str = ""
    binary: tuple[str, ...] = ()
    """Keys of ``binaryData``, which is not read."""
    of_hooks: frozenset[str] = frozenset()
    """Keys that the operator wrote last, for hooks."""

    def is_older_than(self, other: "Snapshot") -> bool:
        """Say whether it is surely older: of a state without a number, nobody can tell."""
        versions = (self.resource_version, other.resource_version)
        if not all(version.isdecimal() for version in versions):
            return False
        return int(versions[0]) < int(versions[1])


ABSENT: Final = Snapshot({}, "")


class MissingError(errors.AddonOperatorError):
    """A ConfigMap that was there is missing, and is not made anew from the few keys of a change."""

    def __init__(self, source: str) -> None:
        super().__init__(f"{source} is missing, and nothing can be written to it: put it back")


class ConfigMap:
    """One ConfigMap of the cluster, which need not exist."""

    def __init__(
        self, kube: client.KubeClient, namespace: str, name: str, sleep: waiting.Sleep = asyncio.sleep
    ) -> None:
        self._kube = kube
        self._namespace = namespace
        self._name = name
        self._sleep = sleep
        self._path = paths.of("v1", "configmaps", namespace=namespace, name=name)
        self._collection = paths.of("v1", "configmaps", namespace=namespace)

    async def read(self) -> Snapshot | None:
        """Return what it holds, or ``None`` if it does not exist.

        Raises :class:`.Forbidden` with the right that is missing.
        """
        try:
            return snapshot_of(await self._kube.get(self._path))
        except api_errors.NotFound:
            return None

    async def update(self, change: Change, *, may_create: bool = True) -> Snapshot:
        """Write what ``change`` makes of the data, and give what is stored then.

        Only keys that ``change`` changes are written, with the resourceVersion as precondition; after a
        conflict the fresh data is changed again. A missing ConfigMap is created if that may be; without
        changes nothing is written.

        Raises :class:`.Conflict` if others write faster, every time, and :class:`MissingError`.
        """

        async def attempt() -> Snapshot:
            now = await self.read() or ABSENT
            if now is ABSENT and not may_create:
                raise MissingError(f"ConfigMap {self._namespace}/{self._name}")
            difference = _difference(now.data, await change(now.data))
            return await self._write(now, difference) if difference else now

        return await retries.until_written(attempt, self._sleep)

    async def _write(self, now: Snapshot, difference: Mapping[str, str | None]) -> Snapshot:
        if not now.resource_version:
            metadata = {"name": self._name, "namespace": self._namespace}
            body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": difference}
            return snapshot_of(await self._kube.create(self._collection, body, query=_AS_OPERATOR))
        patch = {"metadata": {"resourceVersion": now.resource_version}, "data": difference}
        try:
            return snapshot_of(await self._kube.patch(self._path, patch, query=_AS_OPERATOR))
        except api_errors.NotFound as error:
            # Deleted since it was read: the next try creates it, if that may be.
            raise error.around(kind=api_errors.Conflict) from error


def _difference(old: Mapping[str, str], new: Mapping[str, str]) -> dict[str, str | None]:
    changed: dict[str, str | None] = {key: text for key, text in new.items() if old.get(key) != text}
    return changed | dict.fromkeys(old.keys() - new.keys())


def snapshot_of(body: Mapping[str, Any]) -> Snapshot:
    """Return the part of a ConfigMap object that matters."""
    metadata = body.get("metadata") or {}
    return Snapshot(
        dict(body.get("data") or {}),
        str(metadata.get("resourceVersion") or ""),
        str(metadata.get("uid") or ""),
        tuple(body.get("binaryData") or ()),
        frozenset(_written(metadata.get("managedFields") or ())),
    )


def _written(managers: Iterable[Mapping[str, Any]]) -> Iterator[str]:
    """Yield the keys that the operator wrote last."""
    for each in managers:
        if each.get("manager") == client.FIELD_MANAGER:
            fields = (each.get("fieldsV1") or {}).get("f:data") or {}
            yield from (name.removeprefix("f:") for name in fields if name.startswith("f:"))
