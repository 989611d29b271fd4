"""The CustomResourceDefinition of Modules: applied, and put in the place of that of an older version.

Modules of older versions belong to the cluster, and the scope of a definition cannot be changed: the old one
goes first, with all its objects. These hold only what the operators tell, so that nothing is lost.
"""

import asyncio
import contextlib
from typing import Final

from addon_operator.aio import waiting, warn_once
from addon_operator.documents import own_manifests
from addon_operator.kernel import errors as kernel_errors
from addon_operator.kube import api_errors
from addon_operator.kube.client import client
from addon_operator.kube.objects import crds
from addon_operator.status import module_status

NAME: Final = f"{module_status.PLURAL}.addon-operator.io"

_PATH: Final = crds.path_of(NAME)
_KIND_PATH: Final = f"/apis/{module_status.API_VERSION}"
_GONE_ATTEMPTS: Final = 100
_GONE_PAUSE_SECONDS: Final = 0.1


class InTheWayError(kernel_errors.AddonOperatorError):
    """The cluster has the definition of an older version, which this operator leaves as it is."""

    def __init__(self, reason: str, *, may_apply: bool = True) -> None:
        """``may_apply`` says whether the operator brings its own definition once that one is gone."""
        then = "" if may_apply else ", then run 'kubectl apply --server-side -f crds/modules.yaml'"
        super().__init__(
            f"the CustomResourceDefinition {NAME} of an older version, whose objects have no namespace, is "
            f"in the way, and it is not replaced ({reason}): run 'kubectl delete crd {NAME}'{then}"
        )


class ModuleDefinition:
    """Keeps the definition as this version needs it; replaces that of an older version once at most."""

    def __init__(
        self, kube: client.KubeClient, log: warn_once.Log, *, sleep: waiting.Sleep = asyncio.sleep
    ) -> None:
        self._kube = kube
        self._log = log
        self._sleep = sleep
        self._has_replaced = False

    async def apply(self) -> None:
        """Bring the definition to what this version needs.

        Raises :class:`InTheWayError` when an older one stays, and
        :class:`.KubernetesError`: ``Forbidden`` without the right to apply it.
        """
        try:
            await crds.apply_own(self._kube, own_manifests.MODULES)
        except api_errors.Forbidden as error:
            if await self._is_without_namespaces():
                raise InTheWayError(str(error), may_apply=False) from None
            raise
        except api_errors.Invalid:
            # Perhaps because of the scope: a definition that is wrong otherwise is refused again.
            await self._remove_older()
            await crds.apply_own(self._kube, own_manifests.MODULES)

    async def _is_without_namespaces(self) -> bool:
        """Return whether Modules are served as objects of the cluster, which everybody may ask."""
        try:
            document = await self._kube.get(_KIND_PATH)
        except api_errors.ApiError:
            return False
        resources = {each.get("name"): each for each in document.get("resources") or ()}
        return resources.get(module_status.PLURAL, {}).get("namespaced") is False

    async def _remove_older(self) -> None:
        try:
            live = await self._kube.get(_PATH)
            if _is_older(live):
                await self._remove(live)
        except api_errors.NotFound:
            pass  # It is gone.
        except api_errors.Forbidden as error:
            raise InTheWayError(str(error)) from None

    async def _remove(self, live: client.Object) -> None:
        """Have it deleted, unless that is so already, and wait; raises ``NotFound`` as soon as it is gone."""
        uid = str(live["metadata"]["uid"])
        if "deletionTimestamp" not in live["metadata"]:
            self._claim(live)
            # Another operator may have put a new one in its place meanwhile.
            with contextlib.suppress(api_errors.Conflict):
                await self._kube.delete(_PATH, uid=uid)
            self._has_replaced = True
            self._log.info(
                f"the CustomResourceDefinition {NAME} of an older version is replaced: Modules are objects "
                "in the namespace of their operator now"
            )
        for _ in range(_GONE_ATTEMPTS):
            definition = await self._kube.get(_PATH)
            if definition["metadata"]["uid"] != uid:
                return
            await self._sleep(_GONE_PAUSE_SECONDS)

    def _claim(self, live: client.Object) -> None:
        """Raise :class:`InTheWayError` for what no operator has applied, and what was replaced before."""
        if self._has_replaced:
            raise InTheWayError("it was replaced before, and somebody has put the old one back")
        if not any(_is_ours(entry) for entry in live["metadata"].get("managedFields") or ()):
            raise InTheWayError("no operator has applied it")


def _is_older(definition: client.Object) -> bool:
    return bool(definition["spec"].get("scope") == "Cluster")


def _is_ours(entry: client.Object) -> bool:
    return bool(entry.get("manager") == client.FIELD_MANAGER and entry.get("operation") == "Apply")
