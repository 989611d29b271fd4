"""Keeps the cache of presets filled: a list first, then a watch, and a list every minute.

The watch is Kopf's, which reports nothing of what was deleted while its connection was gone.
"""

import asyncio
import logging
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import Final

from addon_operator.admission.presets import preset_cache
from addon_operator.aio import waiting, warn_once
from addon_operator.kube import api_errors, paths
from addon_operator.kube.client import client
from addon_operator.kube.discovery import discovery
from addon_operator.podpreset import model

LIST_EVERY_SECONDS: Final = 60.0
_BACKOFF: Final = waiting.Backoff(0.5, 15.0)
# A CustomResourceDefinition that was just applied takes a moment until it is served.
_PATIENCE: Final = 4.0
_AFTER_RESTART_SECONDS: Final = 5.0

_log = logging.getLogger(__name__)


class PresetFeed:
    """Lists and watches the presets of the cluster."""

    def __init__(
        self,
        kube: client.KubeClient,
        kinds: discovery.Catalog,
        cache: preset_cache.PresetCache,
        watching: Callable[[], AbstractAsyncContextManager[None]],
        sleep: waiting.Sleep = asyncio.sleep,
    ) -> None:
        """``watching`` delivers changes to the cache until it is left."""
        self._kube = kube
        self._kinds = kinds
        self._cache = cache
        self._watching = watching
        self._sleep = sleep
        self._poked = asyncio.Event()
        self._refusal = ""

    @property
    def unready_reason(self) -> str | None:
        """Why pods cannot be admitted yet."""
        if self._cache.filled:
            return None
        return "the PodPresets have not been listed yet" + (self._refusal and f": {self._refusal}")

    def interrupted(self, seconds: float) -> None:
        """Take note that the watch is interrupted for this long: what it misses is listed."""
        self._poked.set()
        asyncio.get_running_loop().call_later(seconds + _AFTER_RESTART_SECONDS, self._poked.set)

    async def run(self) -> None:
        """Keep the cache true, until cancelled."""
        while True:
            await self._until_listed()
            async with self._watching():
                await self._until_gone()

    async def _until_listed(self) -> None:
        """List until it works; what is wrong is logged once."""
        trouble = warn_once.WarnOnce(_log)
        for pause in _BACKOFF.pauses():
            try:
                await self._list()
            except api_errors.KubernetesError as error:
                self._refusal = str(error)
                if pause >= _PATIENCE:
                    trouble.warn(f"no pods are admitted with presets before they can be listed: {error}")
            else:
                return
            await self._sleep(pause)

    async def _until_gone(self) -> None:
        """List now and then, until the kind is gone."""
        await self._is_gone()
        while True:
            settled = self._kinds.settles_in
            await waiting.wait_within(self._poked, LIST_EVERY_SECONDS if settled is None else settled)
            self._poked.clear()
            try:
                await self._list()
            except api_errors.KubernetesError as error:
                if isinstance(error, api_errors.NotServed) and await self._is_gone():
                    _log.warning("PodPresets are not served any more: install their CustomResourceDefinition")
                    self._cache.clear()
                    return
                _log.warning("presets are served from memory, which may be late: %s", error)

    async def _is_gone(self) -> bool:
        """Look whether the kind is served; an outage says nothing of that."""
        try:
            self._kinds.forget()
            await self._kinds.find(model.KIND, model.API_VERSION)
        except discovery.NoSuchKind:
            return True
        except api_errors.KubernetesError:
            return False
        return False

    async def _list(self) -> None:
        listed = await self._kube.list_all(paths.of(model.API_VERSION, model.PLURAL))
        await self._cache.fill(listed.items, listed.resource_version)
