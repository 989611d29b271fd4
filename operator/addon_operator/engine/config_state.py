"""The values ConfigMap, both ways: edits taken into the store, hooks' config values written back."""

import asyncio
import dataclasses
from collections.abc import Callable, Collection, Mapping
from typing import Protocol

from addon_operator.kernel import names
from addon_operator.kube import config_maps
from addon_operator.values import config_map, patches, sources, store


class ConfigMapClient(Protocol):
    """The ConfigMap in the cluster."""

    async def read(self) -> config_maps.Snapshot | None:
        """What it holds now, or ``None`` when it does not exist."""
        ...

    async def update(self, change: Callable[[Mapping[str, str]], Mapping[str, str]]) -> config_maps.Snapshot:
        """Write ``change(data)`` with the resourceVersion as precondition, again on a conflict.

        A missing ConfigMap is created.
        """
        ...


class ConfigObserver(Protocol):
    """Who is told of edits."""

    def config_changed(self, change: store.ConfigChange) -> None:
        """Somebody's edit changed values or flags; the store has them already."""
        ...

    def config_invalid(self, error: sources.ConfigMapError, uid: str) -> None:
        """An edit of the ConfigMap with that uid was wrong; the last good values stay in force.

        Told once per edit.
        """
        ...


class ConfigState:
    """Keeps the store's config values in step with the ConfigMap."""

    def __init__(
        self,
        values: store.ValuesStore,
        client: ConfigMapClient,
        observer: ConfigObserver,
        *,
        modules: Collection[names.ModuleName],
        source: str,
        warn: Callable[[str], None],
    ) -> None:
        self._values = values
        self._client = client
        self._observer = observer
        self._modules = modules
        self._source = source
        self._warn = warn
        self._seen = config_maps.ABSENT
        self._writing = asyncio.Lock()
        self._deferred: list[config_maps.Snapshot | None] = []

    async def load(self) -> None:
        """Read the ConfigMap for the first time.

        Raises :class:`~addon_operator.values.sources.ConfigMapError` when it is wrong, and what the client
        raises when it cannot be read.
        """
        snapshot = await self._client.read() or config_maps.ABSENT
        self._values.set_config(self._parse(snapshot))
        self._seen = snapshot

    def received(self, snapshot: config_maps.Snapshot | None) -> None:
        """Take in what a watch delivered; ``None`` means that the ConfigMap was deleted."""
        if self._writing.locked():
            # The watch may be faster than the answer to our own write, which must not look like an edit.
            self._deferred.append(snapshot)
        else:
            self._take(snapshot)

    def _take(self, snapshot: config_maps.Snapshot | None) -> None:
        now = snapshot or config_maps.ABSENT
        if _older(now, self._seen):
            return
        same = now.data == self._seen.data
        self._seen = now
        if same:
            return
        try:
            parsed = self._parse(now)
        except sources.ConfigMapError as error:
            self._observer.config_invalid(error, now.uid)
            return
        change = self._values.set_config(parsed)
        if change:
            self._observer.config_changed(change)

    def check(self, owner: names.ModuleName | None, patch: patches.ValuesPatch) -> None:
        """Raise a :class:`~addon_operator.values.patches.PatchError` for a patch that cannot be applied."""
        self._values.apply_config_patch(owner, patch)

    async def write(self, owner: names.ModuleName | None, patch: patches.ValuesPatch) -> bool:
        """Apply a hook's patch to the ConfigMap and to the store; whether it changed something.

        It makes no edit of its own. What somebody else changed meanwhile is taken in as that person's edit.
        """
        results: list[config_map.ConfigPatchResult] = []

        def change(data: Mapping[str, str]) -> Mapping[str, str]:
            results.append(self._patched(data, owner, patch))
            return config_map.render(data, results[-1])

        async with self._writing:
            try:
                written = await self._client.update(change)
                self._set_section(results[-1])
                self._take(written)
            finally:
                deferred, self._deferred = self._deferred, []
                for snapshot in deferred:
                    self._take(snapshot)
        return results[-1].changed

    def _patched(
        self, data: Mapping[str, str], owner: names.ModuleName | None, patch: patches.ValuesPatch
    ) -> config_map.ConfigPatchResult:
        # Only the section itself is read: another one may just now hold somebody's bad edit.
        key = names.GLOBAL_KEY if owner is None else names.values_key(owner)
        own: dict[str, str] = {key: data[key]} if key in data else {}
        fresh = sources.parse_config_map(own, self._modules, self._source)
        return config_map.patch_section(owner, patch, fresh)

    def _set_section(self, result: config_map.ConfigPatchResult) -> None:
        config = self._values.config
        sections = {**config.sections, result.key: result.section}
        self._values.set_config(dataclasses.replace(config, sections=sections))

    def _parse(self, snapshot: config_maps.Snapshot) -> sources.ConfigValues:
        parsed = sources.parse_config_map(snapshot.data, self._modules, self._source)
        for warning in parsed.warnings:
            self._warn(warning)
        return parsed


def _older(now: config_maps.Snapshot, seen: config_maps.Snapshot) -> bool:
    versions = (now.resource_version, seen.resource_version)
    if not all(version.isdecimal() for version in versions):
        return False
    return int(versions[0]) < int(versions[1])
