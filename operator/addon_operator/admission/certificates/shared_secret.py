"""A Secret of the operator's namespace that all replicas read and write."""

import base64
from collections.abc import Mapping
from typing import Any

from addon_operator.documents import yaml_loader
from addon_operator.kube import api_errors, paths
from addon_operator.kube.client import client


class SharedSecret:
    """Reads and writes the data of one Secret; after a conflict it has to be read again."""

    def __init__(self, kube: client.KubeClient, namespace: str, name: str, type_: str = "Opaque") -> None:
        """``type_`` is that of the Secret if it is created here."""
        self._kube = kube
        self._namespace, self._name, self._type = namespace, name, type_
        self._path = paths.of("v1", "secrets", namespace=namespace, name=name)

    async def read(self) -> tuple[Mapping[str, Any] | None, dict[str, bytes]]:
        """Return the object, ``None`` if there is none, and its data; raises a :class:`.KubernetesError`."""
        try:
            stored = await self._kube.get(self._path)
            return stored, {
                key: yaml_loader.base64_bytes(value) for key, value in (stored.get("data") or {}).items()
            }
        except api_errors.NotFound:
            return None, {}

    async def write(self, stored: Mapping[str, Any] | None, data: Mapping[str, bytes]) -> client.Object:
        """Make this the data of the object that was read; raises :class:`.Conflict` if it changed since."""
        encoded = {key: base64.b64encode(value).decode() for key, value in data.items()}
        if stored is not None:
            # The resourceVersion that was read is in it.
            return await self._kube.replace(self._path, {**stored, "data": encoded})
        labels = {"app.kubernetes.io/managed-by": "addon-operator"}
        metadata = {"name": self._name, "namespace": self._namespace, "labels": labels}
        body = {"apiVersion": "v1", "kind": "Secret", "type": self._type, "metadata": metadata}
        return await self._kube.create(
            paths.of("v1", "secrets", namespace=self._namespace), {**body, "data": encoded}
        )
