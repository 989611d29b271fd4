"""What stays of modules' releases that lost it: followed by its mark, and shown with the modules."""

import collections
import contextlib
from collections.abc import Sequence
from typing import Final

import orjson

from addon_operator.aio import waiting
from addon_operator.engine import module_states, state
from addon_operator.helm import places
from addon_operator.kernel import errors, names
from addon_operator.kube import cluster
from addon_operator.kube.informers import informers, object_changes, object_selections, projections
from addon_operator.modules import keeping

RETRY: Final = 300.0
"""Seconds until kinds are tried again that could not be followed."""
_KINDS: Final = (*keeping.DATA_KINDS, ("v1", keeping.SECRET))


class KeptObjects(object_changes.ObjectListener):
    """Follows all objects with the mark, of whatever operator, if the whole cluster may be watched."""

    def __init__(
        self,
        seen: cluster.Cluster,
        where: places.ReleaseLocations,
        states: module_states.ModuleStates,
        clock: waiting.Time,
    ) -> None:
        self._cluster = seen
        self._places = where
        self._states = states
        self._clock = clock
        self._subscriptions: dict[str, informers.Subscription] = {}

    async def work(self) -> None:
        """Follow what may be followed, until cancelled; the right to do so may come later."""
        while True:
            await self.begin()
            await self._clock.sleep(RETRY)

    async def begin(self) -> None:
        """Follow what may be followed and is not yet."""
        for api_version, kind in _KINDS:
            if kind in self._subscriptions:
                continue
            with contextlib.suppress(errors.AddonOperatorError):
                resource = await self._cluster.kinds.find(kind, api_version)
                if await self._cluster.probe.may_follow_everywhere(resource):
                    selection = object_selections.ObjectSelection(
                        kind, api_version, label_selector=keeping.KEPT_FROM, metadata_only=True
                    )
                    followed = self._cluster.watches.subscribe(selection, projections.FullObject(), self)
                    self._subscriptions[kind] = followed

    def synced(self) -> None:
        """Show what is there."""
        self._show()

    def changed(self, changes: Sequence[object_changes.Change]) -> None:  # noqa: ARG002 - all is looked at
        """Show what is there now."""
        self._show()

    def trouble(self, reason: str | None) -> None:
        """Show what was known last; the informers report their retries."""

    def _show(self) -> None:
        kept: dict[names.ModuleName, list[state.KeptObject]] = collections.defaultdict(list)
        for kind, followed in self._subscriptions.items():
            for entry in followed.snapshot():
                metadata = orjson.loads(entry)["object"]["metadata"]
                release = metadata["labels"][keeping.KEPT_FROM]
                namespace = keeping.owner({"metadata": metadata})[1] or metadata.get("namespace")
                module = self._module(release, str(namespace or ""))
                if module is not None:
                    since = (metadata.get("annotations") or {}).get(keeping.KEPT_SINCE, "")
                    where = metadata.get("namespace", "")
                    kept[module].append(state.KeptObject(kind, where, metadata["name"], release, since))
        for each in self._states:
            self._states.note_kept(each.module.name, tuple(kept.get(each.module.name, ())))

    def _module(self, release: str, namespace: str) -> names.ModuleName | None:
        """Return the module whose release it was, also if that is elsewhere by now."""
        key = self._places.key(places.ReleaseLocation(namespace, release))
        module = key if self._places.is_of_module(key) else self._places.successor(key)
        return None if module is None else names.ModuleName(module)
