"""What charts have in ``crds/`` beside their definitions, such as policies.

As with Helm, it is created where it is absent, at the first install alone. It belongs to no release, and is
never changed, healed or removed.
"""

from collections.abc import Sequence

from addon_operator.helm.releases import releases
from addon_operator.hook_contract.outputs import object_operations
from addon_operator.kernel import errors, names
from addon_operator.kernel.json_types import JsonObject
from addon_operator.kube.client import client
from addon_operator.kube.discovery import discovery
from addon_operator.kube.objects import object_patches, own_deletions

_KEEP = object_operations.IfExists.KEEP


class BesideDefinitions:
    """Creates these objects."""

    def __init__(
        self,
        manager: releases.ReleaseManager,
        kinds: discovery.Catalog,
        patcher: object_patches.ObjectPatcher,
    ) -> None:
        self._manager = manager
        self._kinds = kinds
        self._patcher = patcher

    async def create(self, module: names.ModuleName, objects: Sequence[JsonObject]) -> None:
        """Create what is absent, unless a revision of the module is deployed.

        Raises :class:`.AddonOperatorError` for what cannot be created.
        """
        if await self._manager.deployed(module) is not None:
            return
        operations = [await self._creation(module, *pair) for pair in enumerate(objects)]
        owner = own_deletions.Owner(module)
        writer = object_patches.HookWriter("crds/ of the chart", owner, client.FIELD_MANAGER)
        await self._patcher.apply(operations, writer)

    async def _creation(
        self, module: names.ModuleName, number: int, body: JsonObject
    ) -> object_operations.Create:
        metadata = body.get("metadata")
        kind, api_version = str(body.get("kind")), str(body.get("apiVersion"))
        if not isinstance(metadata, dict) or not metadata.get("name"):
            raise errors.ModuleError(module, f"crds/ of its chart has a {kind} without metadata.name")
        namespace = metadata.get("namespace")
        if (await self._kinds.find(kind, api_version)).namespaced:
            namespace = namespace or self._manager.places.of(module).namespace
            body = {**body, "metadata": {**metadata, "namespace": namespace}}
        target = object_operations.ObjectTarget(
            kind, str(metadata["name"]), str(namespace) if namespace else None, api_version
        )
        origin = object_operations.Origin(number, _KEEP.value)
        return object_operations.Create(origin, target, body, _KEEP)
