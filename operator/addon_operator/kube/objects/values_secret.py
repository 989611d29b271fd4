"""The values Secret: read, and never written."""

import base64
from collections.abc import Mapping
from typing import Any, Final

import msgspec
from msgspec import structs

from addon_operator.kube import api_errors, paths
from addon_operator.kube.client import client
from addon_operator.kube.objects import config_maps

_NOT_A_TEXT: Final = "\0"


class ValuesSecret(msgspec.Struct, frozen=True):
    """One Secret of the cluster, which need not exist."""

    kube: client.KubeClient
    namespace: str
    name: str
    is_named: bool = False
    """Whether a setting names it: without the right to read it nothing may begin then."""

    def __str__(self) -> str:
        return f"Secret {self.namespace}/{self.name}"

    async def read(self) -> config_maps.Snapshot | None:
        """Return what it holds, as texts, or ``None`` if it does not exist.

        Raises :class:`.Forbidden` with the right that is missing.
        """
        try:
            return snapshot_of(
                await self.kube.get(paths.of("v1", "secrets", namespace=self.namespace, name=self.name))
            )
        except api_errors.NotFound:
            return None


def snapshot_of(body: Mapping[str, Any]) -> config_maps.Snapshot:
    """Return the part of a Secret object that matters."""
    return structs.replace(config_maps.snapshot_of(body), data=texts_of(body))


def texts_of(body: Mapping[str, Any]) -> dict[str, str]:
    """Return the texts by key; bytes that are not UTF-8 become a text that is neither YAML nor a switch."""
    return {key: _text(value or "") for key, value in (body.get("data") or {}).items()}


def _text(encoded: str) -> str:
    try:
        return base64.b64decode(encoded).decode()
    except UnicodeDecodeError:
        return _NOT_A_TEXT
